/* test_complete.c - candidates at the cursor, and files that an @ names. */
#include "ui/complete.h"

#include "tests/test.h"

#include <sys/stat.h>

static const char commands[] = "/new  start one\n/file PATH  a file\n/find [WORDS]  x\n"
                               "/theme NAME  colours\n/model [FILE]  another\n";
static const char words[] = "/theme 16 dark light none\n";

static char folder[64];

static void enter(void)
{
    snprintf(folder, sizeof folder, "/tmp/tern-complete-XXXXXX");
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0);
    REQUIRE(mkdir("notes", 0700) == 0 && mkdir("two words", 0700) == 0);
    static const char *const names[] = { "notes/a.txt",     "notes/ab.txt", "notes.md",
                                         ".hidden",         "evil\x1b[2J",  "no\nline",
                                         "two words/x.txt", "\xff" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        FILE *f = fopen(names[i], "w");
        REQUIRE(f);
        fclose(f);
    }
}

static void leave(void)
{
    char command[96];
    REQUIRE(chdir("/") == 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    REQUIRE(system(command) == 0);
}

/* The candidates, separated by '|', and the part that they replace. */
static void check(const char *text, const char *want, const char *part)
{
    struct completion c;
    char got[512] = "", replaced[128] = "";
    if (complete(&c, text, strlen(text), commands, words)) {
        for (size_t i = 0; i < c.n; i++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? "|" : "",
                     c.v[i]);
        snprintf(replaced, sizeof replaced, "%.*s", (int)(c.end - c.start),
                 text + c.start);
        for (size_t i = 0; i < c.n; i++)
            CHECK(!strncmp(c.v[i], c.v[0], c.common));
    }
    CHECK_STR(got, want);
    CHECK_STR(replaced, part);
    complete_release(&c);
}

static void test_commands(void)
{
    enter();
    check("/", "/file |/find |/model |/new |/theme ", "/");
    check("/fi", "/file |/find ", "/fi");
    check("/new", "/new ", "/new");
    check("/nothing", "", "");
    check("/theme ", "16|dark|light|none", "");
    check("/theme d", "dark", "d");
    check("/theme dark x", "", "");
    check("/find wo", "", "");
    check("text /fi", "", "");
    check("", "", "");
    leave();
}

static void test_files(void)
{
    enter();
    check("/file ", "notes.md|notes/|two words/", "");
    check("/file notes/a", "notes/a.txt|notes/ab.txt", "notes/a");
    check("/model no", "notes.md|notes/", "no");
    check("/file .h", ".hidden", ".h");
    check("/file nowhere/x", "", "");
    check("see @no", "@notes.md|@notes/", "@no");
    check("see @notes/ab", "@notes/ab.txt", "@notes/ab");
    check("see @tw", "@\"two words/", "@tw");
    check("see @\"two words/", "@\"two words/x.txt\"", "@\"two words/");
    check("me@no", "", "");
    check("@notes.md and more", "", "");
    check("line\n@notes/a", "@notes/a.txt|@notes/ab.txt", "@notes/a");
    setenv("HOME", folder, 1);
    check("/file ~/not", "~/notes.md|~/notes/", "~/not");
    leave();
}

static void check_reference(const char *s, const char *want, size_t bytes)
{
    size_t n = 0;
    char *path = complete_reference(s, strlen(s), &n);
    CHECK_STR(path ? path : "NULL", want);
    CHECK(!path || n == bytes);
    free(path);
}

static void test_references(void)
{
    enter();
    check_reference("@notes.md", "notes.md", 9);
    check_reference("@notes.md what is it", "notes.md", 9);
    check_reference("@notes.md.", "notes.md", 9);
    check_reference("@notes.md?)", "notes.md", 9);
    check_reference("@\"two words/x.txt\" now", "two words/x.txt", 18);
    check_reference("@\"two words/x.txt", "two words/x.txt", 17);
    check_reference("@notes", "NULL", 0); /* a folder */
    check_reference("@nobody", "NULL", 0);
    check_reference("@", "NULL", 0);
    check_reference("@\"", "NULL", 0);
    check_reference("@...", "NULL", 0);
    leave();
}

TEST_MAIN(T(test_commands), T(test_files), T(test_references))
