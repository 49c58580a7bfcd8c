/* test_view_lists.c - lists, searches, copying and clicks. */
#include "tests/ui/view_rig.h"

static void test_list(void)
{
    struct fixture f;
    begin(&f, 12, 60);
    char a[] = "alpha", b[] = "Beta \x1b[2J", c[] = "\xC3\x84pfel", none[] = "";
    struct chat chats[] = {
        { .id = 1, .title = a, .n_messages = 3 },
        { .id = 7, .title = b },
        { .id = 3, .title = c },
        { .id = 4, .title = none },
    };
    f.model.chats = chats;
    f.model.n_chats = 4;
    draw(&f);
    keys(&f, "\x0f");
    CHECK(shows(&f, "*  Beta \\x1b[2J") && shows(&f, "(untitled)"));
    CHECK(f.core.list.selected == 7); /* the shown one */
    keys(&f, "\x1b[A\r");
    CHECK(f.intent.kind == UI_OPEN && f.intent.id == 1 && f.core.view == &chat_view);
    keys(&f, "\x0f\xC3\xA4pf"); /* filters without case */
    CHECK(f.core.list.n == 1 && f.core.list.items[0].id == 3);
    keys(&f, "\x1b[13~"); /* F3 goes elsewhere, and back */
    keys(&f, "\x0f");
    CHECK(f.core.list.n == 4);
    keys(&f, "\x1b[F\x1b[12~");
    CHECK(f.core.list.mode == LIST_RENAME);
    keys(&f, "\x15new name\r");
    CHECK(f.intent.kind == UI_RENAME && f.intent.id == 4);
    CHECK_STR(f.intent.text, "new name");
    int before = f.intents;
    keys(&f, "\x1b[H\x1b[3~");
    CHECK(shows(&f, "delete \"alpha\" for good? y/n"));
    keys(&f, "n");
    keys(&f, "\x1b[3~\x1b");
    keys(&f, "\x1b[3~x");
    CHECK(f.intents == before && f.core.list.mode == LIST_BROWSE);
    keys(&f, "\x1b[3~y");
    CHECK(f.intent.kind == UI_DELETE && f.intent.id == 1);
    keys(&f, "\x1bp");
    CHECK(f.intent.kind == UI_PIN && f.intent.id == 1);
    before = f.intents - 1;
    keys(&f, "zzz");
    CHECK(shows(&f, "nothing fits the filter"));
    keys(&f, "\r");
    CHECK(f.intents == before + 1);
    end(&f);
}

/* What is known of a conversation, as far as there is room; hostile model names. */
static void test_list_details(void)
{
    struct fixture f;
    setenv("TZ", "UTC", 1);
    tzset();
    begin(&f, 12, 100);
    char title[] = "talk", model[] = "Big\x1b[2J Model", none[] = "";
    struct chat chats[] = {
        { .id = 7,
          .title = title,
          .model = model,
          .n_messages = 41,
          .n_bytes = 12345,
          .updated_ms = INT64_C(1767225600000),
          .pinned = true },
        { .id = 8, .title = title, .model = none, .n_messages = 2, .n_bytes = 999 },
        { .id = 9, .title = title, .model = none, .n_bytes = 1500000 },
    };
    f.model.chats = chats;
    f.model.n_chats = 3;
    draw(&f);
    keys(&f, "\x0f");
    CHECK(shows(&f, "*^ talk   "));
    CHECK(shows(&f, " Big\\x1b[2J Model      12 KB      41  2026-01-01 00:00\n"));
    CHECK(shows(&f, " 999 B       2  1970-01-01 00:00\n") &&
          shows(&f, " 1.5 MB       0  "));
    f.cols = 70;
    CHECK(!shows(&f, "Model") && shows(&f, " 12 KB      41  2026-01-01 00:00\n"));
    f.cols = 60;
    CHECK(!shows(&f, "KB") && shows(&f, "      41  2026-01-01 00:00\n"));
    f.cols = 40;
    CHECK(!shows(&f, "2026") && shows(&f, "*^ talk\n"));
    end(&f);
}

static void test_search(void)
{
    struct fixture f;
    begin(&f, 14, 40);
    for (int i = 0; i < 30; i++)
        say(&f, i % 2 ? ROLE_ASSISTANT : ROLE_USER, "text");
    draw(&f);
    keys(&f, "\x13ro");
    CHECK(f.intent.kind == UI_SEARCH);
    CHECK_STR(f.intent.text, "ro");
    struct ui_hit hits[] = {
        { 5, 50, "first", "a \x02rose\x03 is a rose" },
        { 7, 104, "second \x1b[2J",
          "the \x02ro\x03\x1b]0;x\x07"
          "ad" },
    };
    search_set(&f.core.search, hits, 2);
    check_screen(&f,
                 "Search\nfirst\n  a rose is a rose\nsecond \\x1b[2J\n"
                 "  the ro\\x1b]0;x\\x07ad\n\n\n\n\n\n\n" RULE20 RULE20 "\nsearch> ro\n"
                 "m                                  ready\n");
    struct buf styles = BUF_INIT;
    screen_dump_styles(&f.core.screen, &styles);
    CHECK(strstr(buf_cstr(&styles), "ddMMMMdddddd") != NULL);
    buf_release(&styles);
    keys(&f, "\x1b[B\r");
    CHECK(f.intent.kind == UI_OPEN && f.intent.id == 7 && f.intent.message_id == 104);
    CHECK(f.core.view == &chat_view && !f.core.transcript.follow);
    CHECK(f.core.transcript.top.message == 4 && f.core.transcript.selected == 104);
    keys(&f, "\x13zz");
    search_set(&f.core.search, NULL, 0);
    CHECK(shows(&f, "nothing found"));
    keys(&f, "\x1b[B\x1b[A\x1b[6~\x1b");
    CHECK(f.core.view == &chat_view);
    end(&f);
}

static void test_clicks(void)
{
    struct fixture f;
    char thinking[] = "deep thought", title[] = "t";
    begin(&f, 12, 40);
    say(&f, ROLE_USER, "q");
    struct message *m = say(&f, ROLE_ASSISTANT, "answer");
    m->thinking = thinking;
    m->thinking_bytes = strlen(thinking);
    draw(&f);
    keys(&f, "\x1b[<0;3;6M\x1b[<0;3;6m"); /* the line about thinking */
    CHECK(shows(&f, "deep thought"));
    keys(&f, "\x1b[<0;3;6M");
    CHECK(!shows(&f, "deep thought"));
    keys(&f, "\x1b[<0;2;5M"); /* a label */
    CHECK(f.core.transcript.selected == m->id);
    keys(&f, "\x1b[<0;2;5M");
    CHECK(f.core.transcript.selected == 0);
    keys(&f, "one two\x1b[<0;5;11M"); /* into the input, after its prompt */
    CHECK(f.core.editor.cursor == 2);
    keys(&f, "\x1b[<0;39;11M");
    CHECK(f.core.editor.cursor == 7);
    keys(&f, "\x1b[<0;1;1M\x1b[<0;999;999M\x1b[<0;3;9M\x1b[<2;3;6M\x1b[<32;3;6M");
    CHECK(!shows(&f, "deep thought")); /* other places, buttons and moves */
    struct chat chats[] = { { .id = 7, .title = title }, { .id = 8, .title = title } };
    f.model.chats = chats;
    f.model.n_chats = 2;
    keys(&f, "\x0f\x1b[<0;3;3M");
    CHECK(f.core.list.selected == 8 && f.intents == 0);
    keys(&f, "\x1b[<0;3;3M");
    CHECK(f.intent.kind == UI_OPEN && f.intent.id == 8);
    keys(&f, "\x13x");
    struct ui_hit hits[] = { { 5, 50, "first", "x" }, { 6, 60, "second", "x" } };
    search_set(&f.core.search, hits, 2);
    keys(&f, "\x1b[<0;3;5M\x1b[<0;3;4M");
    CHECK(f.intent.kind == UI_OPEN && f.intent.message_id == 60);
    end(&f);
}

static void test_models(void)
{
    struct fixture f;
    begin(&f, 20, 80);
    struct ui_model_file files[] = {
        { "/m/a.gguf", "Alpha", "1 GB", "name Alpha\nruns yes\n", true, true },
        { "/m/b.gguf", "Beta \x1b[2J", "2 GB\x07", "name Beta\x1b]0;x\x07\nruns yes\n",
          true, false },
        { "/m/c.gguf", "Gamma", "", "no\n", false, false },
    };
    draw(&f);
    f.model.scanning_files = true;
    keys(&f, "\x10");
    CHECK(f.intent.kind == UI_MODELS && shows(&f, "looking for models"));
    f.model.files = files;
    f.model.n_files = 3;
    f.model.scanning_files = false;
    draw(&f);
    CHECK(shows(&f, "* Alpha") && shows(&f, "Beta \\x1b[2J") &&
          shows(&f, "name Alpha\n"));
    keys(&f, "\x1b[B");
    CHECK(shows(&f, "name Beta\\x1b]0;x\\x07\nruns yes\n"));
    keys(&f, "\r"); /* nothing was said yet: no question */
    CHECK(f.intent.kind == UI_MODEL && f.core.view == &chat_view);
    CHECK_STR(f.intent.text, "/m/b.gguf");
    say(&f, ROLE_USER, "q");
    keys(&f, "/model\r");
    keys(&f, "\x1b[B\r");
    CHECK(f.intent.kind == UI_MODELS && shows(&f, "reads this conversation anew"));
    keys(&f, "\x1b[A\x1b[B\r"); /* the question is put again */
    CHECK(f.intent.kind == UI_MODELS);
    keys(&f, "\r");
    CHECK(f.intent.kind == UI_MODEL);
    keys(&f, "\x10"
             "gam\r");
    CHECK(f.intent.kind == UI_MODELS && shows(&f, "does not run"));
    keys(&f, "x");
    CHECK(shows(&f, "nothing fits the filter"));
    keys(&f, "\r\x1b");
    CHECK(f.core.view == &chat_view);
    for (int rows = 5; rows < 20; rows++) { /* whatever the room */
        f.rows = rows;
        f.cols = 20 + rows;
        keys(&f, "\x10\x1b[6~\x1b");
    }
    end(&f);
}

static void test_find(void)
{
    struct fixture f;
    begin(&f, 10, 60);
    for (int i = 0; i < 30; i++)
        say(&f, i % 2 ? ROLE_ASSISTANT : ROLE_USER,
            i == 3    ? "a **needle** here, a NEEDLE there"
            : i == 20 ? "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight n\xC3\xA4H"
                      : "hay");
    draw(&f);
    keys(&f, "\x06");
    CHECK(shows(&f, "find>\n"));
    keys(&f, "needle");
    CHECK(shows(&f, "a needle here, a NEEDLE there") && !f.core.transcript.follow);
    struct buf styles = BUF_INIT;
    screen_dump_styles(&f.core.screen, &styles);
    CHECK(strstr(buf_cstr(&styles), "\n  MMMMMM         MMMMMM\n") != NULL);
    buf_release(&styles);
    size_t pos = f.core.transcript.found_pos;
    keys(&f, "\r"); /* the one before, in the same message */
    CHECK(f.core.transcript.found_pos < pos && f.core.transcript.found_message == 3);
    keys(&f, "\x1b[A"); /* round to the last one */
    CHECK(f.core.transcript.found_pos == pos);
    keys(&f, "\x1b[B");
    CHECK(f.core.transcript.found_pos < pos);
    keys(&f, "\x15n\xC3\x84h"); /* deep in a message, in another case */
    CHECK(shows(&f, "eight n\xC3\xA4H"));
    keys(&f, "\x15nowhere");
    CHECK(shows(&f, "not in this conversation"));
    keys(&f, "\x15hay\x1b"); /* stays where it is, without marks */
    CHECK(f.core.view == &chat_view && !f.core.transcript.words);
    keys(&f, "/find needle\r");
    CHECK(f.core.view == &find_view && shows(&f, "NEEDLE") && f.intents == 0);
    keys(&f, "\x1b");
    keys(&f, "/search needle\r");
    CHECK(f.core.view == &search_view && f.intent.kind == UI_SEARCH);
    end(&f);
}

static void test_copy(void)
{
    struct fixture f;
    begin(&f, 24, 60);
    draw(&f);
    keys(&f, "\x1b"
             "c");
    CHECK(shows(&f, "nothing to copy yet") && f.core.clipboard.len == 0);
    keys(&f, "\x1b"
             "e");
    CHECK(shows(&f, "no message of yours to edit") && f.core.editing == 0);
    say(&f, ROLE_USER, "quest\x1b[2Jion");
    say(&f, ROLE_ASSISTANT,
        "A:\n```c\nint a;\n\tb;\n```\n- x\n```\n\xE4\xBD\xA0\n```\nend");
    keys(&f, "\x1b"
             "x");
    CHECK_STR(buf_cstr(&f.core.clipboard), "\xE4\xBD\xA0\n");
    keys(&f, "\x1b"
             "x");
    CHECK_STR(buf_cstr(&f.core.clipboard), "int a;\n\tb;\n");
    keys(&f, "\x1b"
             "x");
    CHECK(shows(&f, "no (other) code block"));
    keys(&f, "\x1b"
             "c");
    CHECK_STR(buf_cstr(&f.core.clipboard), f.messages[1].text);
    keys(&f, "\x1b[1;3A\x1b[1;3A\x1b"
             "c"); /* the selected one, no control bytes */
    CHECK_STR(buf_cstr(&f.core.clipboard), "quest[2Jion");
    keys(&f, "two words\x1b[1;6D\x1b"
             "c"); /* what is selected in the input goes first */
    CHECK_STR(buf_cstr(&f.core.clipboard), "words");
    int before = f.intents;
    keys(&f, "\x1b"
             "a\x7f/copy some file.txt\r"); /* to a file, as it is */
    CHECK(f.intents == before + 1 && f.intent.kind == UI_SAVE);
    CHECK_STR(f.intent.path, "some file.txt");
    CHECK_STR(f.intent.text, "quest\x1b[2Jion");
    struct message *large = say(&f, ROLE_ASSISTANT, "");
    for (int i = 0; i < 8000; i++)
        stream(&f, "0123456789");
    large->siblings = 1;
    keys(&f, "\x1b[F\x1b"
             "c"); /* more than terminals take */
    CHECK(f.intent.kind == UI_SAVE && !f.intent.path && f.core.clipboard.len == 0);
    CHECK(f.intent.text && strlen(f.intent.text) == 80000);
    f.core.no_clipboard = true;
    keys(&f, "x\x1b"
             "a\x1b"
             "c");
    CHECK(f.intent.kind == UI_SAVE);
    CHECK_STR(f.intent.text, "x");
    struct buf b = BUF_INIT;
    const char *nested = "1. do\n\n   ```sh\n   ls\n     -l\n   ```\n2. ~~~\n";
    CHECK(copy_code(&b, nested, strlen(nested), 0));
    CHECK_STR(buf_cstr(&b), "ls\n  -l\n");
    CHECK(!copy_code(&b, nested, strlen(nested), 1));
    buf_truncate(&b, 0);
    copy_sequence(&b, "hello", 5);
    copy_sequence(&b, "abc", 3);
    copy_sequence(&b, "x", 1);
    CHECK_STR(buf_cstr(&b), "\x1b]52;c;aGVsbG8=\x07\x1b]52;c;YWJj\x07\x1b]52;c;eA==\x07");
    buf_truncate(&b, 0);
    copy_sequence_screen(&b, "hello", 5);
    CHECK_STR(buf_cstr(&b), "\x1bP\x1b]52;c;aGVsbG8=\x07\x1b\\");
    buf_release(&b);
    end(&f);
}

TEST_MAIN(T(test_list), T(test_list_details), T(test_search), T(test_clicks),
          T(test_models), T(test_find), T(test_copy))
