/* test_title.c - titles from messages and from what models answer. */
#include "app/title.h"

#include "base/utf8.h"
#include "tests/test.h"

static void check_title(const char *text, const char *want)
{
    char *title = title_from_text(text, strlen(text));
    CHECK_STR(title, want);
    CHECK(utf8_width(title, strlen(title)) <= 60);
    free(title);
}

static void test_titles(void)
{
    check_title("", "");
    check_title("\n\n  Hello there \r\nsecond line", "Hello there");
    check_title("0123456789012345678901234567890123456789012345678901234567890123456789",
                "01234567890123456789012345678901234567890123456789012345678\u2026");
    check_title("012345678901234567890123456789012345678901234567890123456789",
                "012345678901234567890123456789012345678901234567890123456789");
    /* A family of four code points falls on the end: all of it or nothing. */
    check_title("0123456789012345678901234567890123456789012345678901234567"
                "\U0001f468\u200d\U0001f469\u200d\U0001f467 rest",
                "0123456789012345678901234567890123456789012345678901234567\u2026");
    check_title("\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22"
                "\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22"
                "\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22",
                "\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22"
                "\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22\u6f22"
                "\u6f22\u6f22\u6f22\u6f22\u6f22\u2026");
}

static void test_what_is_said(void)
{
    check_title("Hi! Could you please explain how a heat pump works? I have one.",
                "Explain how a heat pump works?");
    check_title("please fix this", "please fix this"); /* too little without it */
    check_title("Hello", "Hello");
    check_title("hey, hi there", "hey, hi there");
    check_title("high ground is where we go", "high ground is where we go");
    check_title("## Plan for the garden", "Plan for the garden");
    check_title("- milk and eggs\n- bread", "milk and eggs");
    check_title("-5 degrees outside", "-5 degrees outside");
    check_title("No. 5 is alive", "No. 5 is alive"); /* no sentence yet */
    check_title("The build is broken again. Here is the log.",
                "The build is broken again");
    check_title("notes.txt:\n```txt\nlong text\n```\nSummarise it", "Summarise it");
    check_title("notes.txt:\n```txt\nlong text\n```\n", "notes.txt:");
    check_title("```c\nint main(void);\n```\nWhat does this do?", "What does this do?");
    check_title("```\nonly code\n```", "only code");
    check_title(
        "a very long first line that goes on and on until it has to be cut off somewhere",
        "a very long first line that goes on and on until it has to\u2026");
    check_title("tab\tand\rreturn", "tab and return");
}

static void check_answer(const char *text, const char *want)
{
    char *title = title_from_answer(text, strlen(text));
    CHECK_STR(title ? title : "NULL", want);
    free(title);
}

static void test_of_a_model(void)
{
    check_answer("Heat pumps in old houses", "Heat pumps in old houses");
    check_answer("\n\n\"Heat Pumps\"\n\nIs that good?", "Heat Pumps");
    check_answer("Title: **Heat Pumps.**", "Heat Pumps");
    check_answer("# \u201cHeat Pumps\u201d", "Heat Pumps");
    check_answer("", "NULL");
    check_answer("...", "NULL");
    check_answer("\"\"", "NULL");
    check_answer("This title is far too long because the model did not understand what "
                 "it was asked for",
                 "NULL");
    check_answer("\u6696\u6c23", "\u6696\u6c23");
}

TEST_MAIN(T(test_titles), T(test_what_is_said), T(test_of_a_model))
