/* test_view_input.c - what is typed, pasted, selected and completed in the input. */
#include "tests/ui/view_rig.h"

static void test_send_and_newlines(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    draw(&f);
    keys(&f, "a\nb\x1b\rc\x1b[13;2ud\x1b[13;2~e\x1b[27;2;13~f");
    CHECK_STR(buf_cstr(&f.core.editor.text), "a\nb\nc\nd\ne\nf");
    CHECK(f.core.layout.input.rows == 6);
    CHECK(f.intents == 0);
    keys(&f, "\r");
    CHECK(f.intent.kind == UI_SEND);
    CHECK_STR(f.intent.text, "a\nb\nc\nd\ne\nf");
    CHECK(f.core.editor.text.len == 0 && f.core.layout.input.rows == 1);
    keys(&f, "  \r"); /* nothing but blanks is not sent */
    CHECK(f.intents == 1);
    keys(&f, "\x15\x1b[A");
    CHECK_STR(buf_cstr(&f.core.editor.text), "a\nb\nc\nd\ne\nf");
    end(&f);
}

/* What Enter will do stands below what it will do it with, where there is room. */
static void test_enter_hint(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    CHECK(!shows(&f, "Enter sends"));
    keys(&f, "x");
    CHECK(shows(&f, "\nEnter sends, Ctrl+J breaks the line "));
    f.model.status.phase = PHASE_DECODE;
    CHECK(shows(&f, "\nEnter queues it, Ctrl+J breaks the line "));
    f.model.status.phase = PHASE_IDLE;
    keys(&f, "\x15/x");
    CHECK(shows(&f, "\nEnter runs a command, Tab completes it "));
    keys(&f, "\x15x");
    f.model.notice = "look";
    CHECK(shows(&f, "\nlook ") && !shows(&f, "Enter sends"));
    f.model.notice = NULL;
    f.cols = 34;
    CHECK(!shows(&f, "breaks"));
    end(&f);
    begin(&f, 24, 80);
    keymap_bind(&f.core.keymap, "newline", "F6, Ctrl+J", &(struct err){ 0 });
    keys(&f, "x");
    CHECK(shows(&f, "\nEnter sends, F6 breaks the line "));
    end(&f);
}

static void test_type_ahead(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    say(&f, ROLE_USER, "q");
    say(&f, ROLE_ASSISTANT, "")->state = STATE_PARTIAL;
    f.model.status.phase = PHASE_DECODE;
    draw(&f);
    keys(&f, "next one\r");
    CHECK(f.intent.kind == UI_SEND && f.intents == 1); /* the caller queues it */
    CHECK_STR(f.intent.text, "next one");
    struct message *queued = say(&f, ROLE_USER, "next one");
    queued->id = -1;
    f.model.n_queued = 1;
    CHECK(shows(&f, "next one\n[queued: sent after the answer"));
    CHECK(!shows(&f, "[incomplete")); /* the answer before it is still live */
    keys(&f, "more");
    keys(&f, "\x1b[A"); /* within the text */
    CHECK(f.intents == 1);
    keys(&f, "\x15\x1b[A");
    CHECK(f.intent.kind == UI_UNQUEUE && f.intents == 2);
    keys(&f, "\x1b");
    CHECK(f.intent.kind == UI_STOP && f.intents == 3);
    keys(&f, "x\x03");
    CHECK(f.intent.kind == UI_STOP && f.intents == 4);
    CHECK_STR(buf_cstr(&f.core.editor.text), "x");
    keys(&f, "\x1b[1;3A\x1b"
             "e"); /* what is queued is not edited in place */
    CHECK(!f.core.editing);
    end(&f);
}

static void test_interrupt(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    draw(&f);
    keys(&f, "draft\x03");
    CHECK(f.core.editor.text.len == 0 && f.intents == 0);
    keys(&f, "\x1b[A");
    CHECK_STR(buf_cstr(&f.core.editor.text), "draft");
    keys(&f, "\x03\x03");
    CHECK(f.intents == 0 && shows(&f, "press Ctrl+C again to quit"));
    f.now += 3000; /* too late: asks again */
    keys(&f, "\x03");
    CHECK(f.intents == 0);
    keys(&f, "x\x7f\x03"); /* something else in between: asks again */
    CHECK(f.intents == 0);
    keys(&f, "\x03");
    CHECK(f.intent.kind == UI_QUIT && f.intents == 1);
    keys(&f, "x\x04"); /* Ctrl+D quits on empty input only */
    CHECK(f.intents == 1);
    keys(&f, "\x15\x04");
    CHECK(f.intents == 2);
    end(&f);
}

static void test_paste(void)
{
    struct fixture f;
    struct buf in = BUF_INIT;
    begin(&f, 24, 80);
    draw(&f);
    buf_str(&in, "\x1b[200~");
    for (int i = 0; i < 20000; i++)
        buf_printf(&in, "line %d\twith \x1b]52;c;eA==\x07 and \x1b[201~ marks\r\n", i);
    buf_str(&in, "\x1b[201~");
    clock_t before = clock();
    keys_n(&f, in.v, in.len);
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    CHECK(f.intents == 1 && f.intent.kind == UI_LABEL); /* nothing is sent */
    CHECK(f.core.editor.text.len == PILL_BYTES && shows(&f, " pasted: 20,000 lines, "));
    keys(&f, "\x1bv"); /* shown as text, and edited */
    size_t lines = 0;
    for (size_t i = 0; i < f.core.editor.text.len; i++)
        lines += f.core.editor.text.v[i] == '\n';
    CHECK(lines == 20000);
    CHECK(seconds < 1);
    printf("# 20,000 lines, %zu bytes: %.3f s\n", in.len, seconds);
    before = clock();
    for (int i = 0; i < 20; i++)
        keys(&f, "x\x1b[A"); /* still editable */
    seconds = (double)(clock() - before) / CLOCKS_PER_SEC / 40;
    printf("# then %.2f ms a key\n", seconds * 1000);
    CHECK(seconds < 0.1);
    CHECK(f.core.layout.input.rows == 8);
    keys(&f, "\x1b[A\x1b[B\x1b[F\x1b[H");
    buf_release(&in);
    end(&f);
}

/* What is long stands as a label, is sent whole, comes back as it was. */
static void test_pills(void)
{
    struct fixture f;
    struct buf paste = BUF_INIT, want = BUF_INIT;
    begin(&f, 24, 80);
    draw(&f);
    for (int i = 0; i < 12; i++)
        buf_printf(&want, "row %d \xF4\x8F\x80\x80\n", i); /* of the pills' range */
    buf_printf(&paste, "\x1b[200~%s\x1b[201~", want.v);
    keys(&f, "see ");
    keys_n(&f, paste.v, paste.len);
    keys(&f, " there");
    CHECK(f.intent.kind == UI_LABEL && f.intent.id == 0);
    CHECK_STR(f.intent.text, want.v);
    pills_label(&f.core.pills, 0, "pasted: 12 lines, 99 tokens\x1b[2J");
    CHECK(shows(&f, "> see  pasted: 12 lines, 99 tokens\\x1b[2J  there\n"));
    keys(&f, "\r");
    CHECK(f.intent.kind == UI_SEND);
    char *sent = mem_strdup(f.intent.text);
    CHECK(!strncmp(sent, "see row 0 ", 10) && strlen(sent) == want.len + 10);
    CHECK(!strncmp(sent + 4, want.v, want.len));
    /* It could not be sent: it comes back as it stood there. */
    input_set(&f.core, sent);
    CHECK(f.core.editor.text.len == 4 + PILL_BYTES + 6);
    keys(&f, "\x15\x1b[A"); /* and from the history */
    CHECK(shows(&f, "> see  pasted: 12 lines"));
    /* The cursor steps over it, Backspace takes it whole, undo brings it back. */
    for (int i = 0; i < 6; i++)
        keys(&f, "\x1b[D");
    keys(&f, "\x7f");
    CHECK_STR(buf_cstr(&f.core.editor.text), "see  there");
    keys(&f, "\x1b"
             "z");
    CHECK(shows(&f, "> see  pasted: 12 lines"));
    keys(&f, "\x1bv");
    CHECK(shows(&f, "row 10 \xEF\xBF\xBD\n"));
    keys(&f, "\x15\x1bv");
    CHECK(shows(&f, "no long paste"));
    /* A few lines stay lines; nobody types a pill. */
    keys(&f, "\x15\x0b\x1b[F");
    editor_set(&f.core.editor, "");
    keys(&f, "\x1b[200~a\nb\x1b[201~");
    CHECK_STR(buf_cstr(&f.core.editor.text), "a\nb");
    keys(&f, "\xF4\x8F\x80\x80");
    CHECK_STR(buf_cstr(&f.core.editor.text), "a\nb");
    input_set(&f.core, "x\xF4\x8F\x80\x80y");
    CHECK_STR(buf_cstr(&f.core.editor.text), "x\xEF\xBF\xBDy");
    free(sent);
    buf_release(&paste);
    buf_release(&want);
    end(&f);
}

/* A label that is wider than the box is cut, and the cursor stays inside. */
static void test_pill_in_small_window(void)
{
    for (int cols = 20; cols < 60; cols += 7) {
        struct fixture f;
        begin(&f, 10, cols);
        draw(&f);
        input_attach(&f.core, "a-very-long-name-of-a-file.txt: 12 lines", "text");
        keys(&f, "ab");
        CHECK(f.core.screen.cursor_shown && f.core.screen.cursor_col < cols);
        CHECK(shows(&f, "ab"));
        end(&f);
    }
}

static void test_files(void)
{
    struct fixture f;
    char folder[] = "/tmp/tern-view-XXXXXX";
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0);
    REQUIRE(system("echo text >note.txt; echo more >other.txt") == 0);
    begin(&f, 24, 80);
    draw(&f);
    keys(&f, "compare @no\t and @other.txt, me@note.txt\r");
    CHECK(f.intent.kind == UI_ATTACH && f.intents == 1);
    CHECK_STR(f.intent.text, "note.txt");
    input_attach(&f.core, "note.txt: 1 line, 5 bytes, 2 tokens",
                 "note.txt:\n```\ntext\n```\n");
    keys(&f, ""); /* goes on with the other one by itself */
    CHECK(f.intent.kind == UI_ATTACH && f.intents == 2);
    CHECK_STR(f.intent.text, "other.txt");
    input_attach(&f.core, NULL, NULL); /* cannot be had */
    CHECK(shows(
        &f, "> compare\n   note.txt: 1 line, 5 bytes, 2 tokens  and @other.txt, me@"));
    keys(&f, "\r"); /* and goes as it is */
    CHECK(f.intent.kind == UI_SEND && f.intents == 3);
    CHECK_STR(f.intent.text, "compare \nnote.txt:\n```\ntext\n```\n and @other.txt, "
                             "me@note.txt");
    end(&f);
    REQUIRE(chdir("/") == 0);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
}

static void test_completion(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    free(f.core.commands);
    free(f.core.words);
    f.core.commands = mem_strdup("/new  a\n/next  b\n/theme NAME  c\n");
    f.core.words = mem_strdup("/theme dark light\n");
    draw(&f);
    keys(&f, "/th\t");
    CHECK_STR(buf_cstr(&f.core.editor.text), "/theme ");
    keys(&f, "\t");
    CHECK_STR(buf_cstr(&f.core.editor.text), "/theme dark");
    CHECK(shows(&f, "dark  light"));
    keys(&f, "\t");
    CHECK_STR(buf_cstr(&f.core.editor.text), "/theme light");
    keys(&f, "\x1b[Z\x1b[Z");
    CHECK_STR(buf_cstr(&f.core.editor.text), "/theme light");
    keys(&f, "!\t"); /* typing ends it */
    CHECK_STR(buf_cstr(&f.core.editor.text), "/theme light!");
    keys(&f, "\x15/n\t");
    CHECK_STR(buf_cstr(&f.core.editor.text), "/ne");
    CHECK(shows(&f, "/new   /next"));
    keys(&f, "\x15nothing\t");
    CHECK_STR(buf_cstr(&f.core.editor.text), "nothing");
    end(&f);
}

static void test_selection(void)
{
    struct fixture f;
    begin(&f, 12, 40);
    draw(&f);
    keys(&f, "one two three");
    keys(&f, "\x1b[1;6D\x1b[1;2D"); /* Ctrl+Shift+Left, Shift+Left */
    struct buf styles = BUF_INIT;
    draw(&f);
    screen_dump_styles(&f.core.screen, &styles);
    CHECK(strstr(buf_cstr(&styles), "\npp       RRRRRR\n") != NULL);
    buf_release(&styles);
    keys(&f, "X"); /* replaces it */
    CHECK_STR(buf_cstr(&f.core.editor.text), "one twoX");
    keys(&f, "\x1b[1;2H\x18"); /* Shift+Home, Ctrl+X */
    CHECK_STR(buf_cstr(&f.core.editor.text), "");
    keys(&f, "\x19\x19");
    CHECK_STR(buf_cstr(&f.core.editor.text), "one twoXone twoX");
    keys(&f, "\x1b"
             "a\x7f");
    CHECK_STR(buf_cstr(&f.core.editor.text), "");
    keys(&f, "\x1b"
             "z");
    CHECK_STR(buf_cstr(&f.core.editor.text), "one twoXone twoX");
    keys(&f, "\x1b"
             "a\x1b"); /* Esc only ends the selection */
    CHECK(f.core.editor.mark == SIZE_MAX && f.core.editor.text.len > 0);
    keys(&f, "\x1b[1;2D\x1b[C!"); /* so does a plain move */
    CHECK_STR(buf_cstr(&f.core.editor.text), "one twoXone twoX!");
    end(&f);
}

static void test_commands(void)
{
    struct fixture f;
    begin(&f, 24, 60);
    draw(&f);
    keys(&f, "/help\r");
    CHECK(f.core.view == &help_view && shows(&f, "Ctrl+J, Alt+Enter"));
    CHECK(!shows(&f, "/export FILE"));
    keys(&f, "\x1b[F");
    CHECK(shows(&f, "\n/export FILE  writes it\n\nA stopped"));
    keys(&f, "\x1b");
    keys(&f, "/list\r");
    CHECK(f.core.view == &list_view);
    keys(&f, "\x1b");
    keys(&f, "/search\r");
    CHECK(f.core.view == &search_view);
    keys(&f, "\x1b");
    keys(&f, "/new\r");
    CHECK(f.core.view == &chat_view && f.intent.kind == UI_NEW);
    keys(&f, "/system be brief\r");
    CHECK(f.intent.kind == UI_COMMAND);
    CHECK_STR(f.intent.text, "/system be brief");
    keys(&f, "/usr/bin is a path\r");
    CHECK(f.intent.kind == UI_SEND);
    keys(&f, "/quit\r");
    CHECK(f.intent.kind == UI_QUIT);
    end(&f);
}

TEST_MAIN(T(test_send_and_newlines), T(test_enter_hint), T(test_type_ahead),
          T(test_interrupt), T(test_paste), T(test_pills), T(test_pill_in_small_window),
          T(test_files), T(test_completion), T(test_selection), T(test_commands))
