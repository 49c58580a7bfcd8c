/* test_view.c - whole screens as text, driven by key bytes, without a terminal. */
#include "ui/view.h"

#include "base/mem.h"
#include "tests/test.h"
#include "ui/copy.h"
#include "ui/theme.h"

#include <time.h>

struct fixture {
    struct core core;
    struct ui_model model;
    struct chat chat;
    struct message messages[64];
    struct buf texts[64];
    int rows, cols;
    int64_t now;
    struct ui_intent intent; /* the last one that was no REDRAW */
    int intents;
};

static char empty[] = "";

static void begin(struct fixture *f, int rows, int cols)
{
    *f = (struct fixture){ .rows = rows, .cols = cols, .now = 100000 };
    f->chat = (struct chat){ .id = 7, .title = empty, .model = empty };
    f->model.chat = &f->chat;
    f->model.messages = f->messages;
    f->model.status = (struct ui_status){ .phase = PHASE_IDLE, .model = "m" };
    core_init(&f->core, &(struct ui_params){ .commands = "/export FILE  writes it\n" });
}

static void end(struct fixture *f)
{
    free(f->intent.text);
    free(f->intent.path);
    for (size_t i = 0; i < 64; i++)
        buf_release(&f->texts[i]);
    core_release(&f->core);
}

static struct message *say(struct fixture *f, enum role role, const char *text)
{
    size_t i = f->model.n_messages++;
    buf_str(&f->texts[i], text);
    f->messages[i] = (struct message){ .id = (int64_t)i + 100,
                                       .chat_id = 7,
                                       .role = role,
                                       .text = f->texts[i].v,
                                       .text_bytes = f->texts[i].len,
                                       .siblings = 1 };
    return &f->messages[i];
}

static void stream(struct fixture *f, const char *more)
{
    size_t i = f->model.n_messages - 1;
    buf_str(&f->texts[i], more);
    f->messages[i].text = f->texts[i].v;
    f->messages[i].text_bytes = f->texts[i].len;
}

static void draw(struct fixture *f)
{
    core_draw(&f->core, &f->model, f->rows, f->cols);
}

/* Feeds bytes as a terminal would, draws when asked to, lets time pass. */
static void keys_n(struct fixture *f, const char *bytes, size_t n)
{
    decode_feed(&f->core.keys, bytes, n, f->now);
    for (int pass = 0; pass < 2 || core_timeout_ms(&f->core, f->now) >= 0; pass++) {
        struct ui_intent in;
        while (core_next(&f->core, f->now, &in)) {
            if (in.kind == UI_REDRAW)
                continue;
            free(f->intent.text);
            free(f->intent.path);
            f->intent = in;
            f->intents++;
        }
        draw(f);
        f->now += 25;
    }
}

static void keys(struct fixture *f, const char *bytes)
{
    keys_n(f, bytes, strlen(bytes));
}

static char *screen_text(struct fixture *f)
{
    struct buf b = BUF_INIT;
    draw(f);
    screen_dump(&f->core.screen, &b);
    return buf_detach(&b);
}

static void check_screen(struct fixture *f, const char *want)
{
    char *got = screen_text(f);
    CHECK_STR(got, want);
    free(got);
}

static bool shows(struct fixture *f, const char *s)
{
    char *got = screen_text(f);
    bool found = strstr(got, s) != NULL;
    free(got);
    return found;
}

/* One row as text. */
static char *row_text(struct fixture *f, int row)
{
    struct buf b = BUF_INIT;
    for (int c = 0; c < f->core.screen.cols; c++) {
        const struct cell *cell = screen_cell(&f->core.screen, row, c);
        buf_add(&b, cell->bytes, cell->len);
    }
    return buf_detach(&b);
}

#define RULE20                                                     \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80" \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80" \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80" \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"

static void test_conversation(void)
{
    struct fixture f;
    begin(&f, 12, 20);
    say(&f, ROLE_USER, "hello *there*");
    say(&f, ROLE_ASSISTANT, "Hi **you**.")->state = STATE_STOPPED;
    keys(&f, "abc");
    check_screen(&f, "new conversation\nYou\nhello *there*\n\nAssistant\nHi "
                     "you.\n[stopped]\n\n\n" RULE20 "\n> abc\nm              ready\n");
    CHECK(f.core.screen.cursor_shown && f.core.screen.cursor_row == 10 &&
          f.core.screen.cursor_col == 5);
    end(&f);
}

static void test_message_states(void)
{
    struct fixture f;
    begin(&f, 30, 60);
    say(&f, ROLE_SYSTEM, "be kind");
    struct message *m = say(&f, ROLE_ASSISTANT, "text");
    m->siblings = 3;
    m->sibling_index = 1;
    m->state = STATE_PARTIAL;
    CHECK(shows(&f, "[incomplete: the answer was interrupted]"));
    CHECK(shows(&f, "Assistant  version 2 of 3"));
    CHECK(shows(&f, "System\nbe kind"));
    f.model.status.phase = PHASE_DECODE; /* being written: no mark */
    CHECK(!shows(&f, "[incomplete"));
    f.model.status.phase = PHASE_IDLE;
    m->state = STATE_LENGTH;
    CHECK(shows(&f, "[cut: the token limit was reached]"));
    m->state = STATE_FAILED;
    CHECK(shows(&f, "[failed: this is the text so far]"));
    end(&f);
}

static void test_thinking(void)
{
    struct fixture f;
    begin(&f, 20, 60);
    say(&f, ROLE_USER, "q");
    struct message *m = say(&f, ROLE_ASSISTANT, "");
    char thought[] = "first \xC3\xA4 idea\nsecond";
    m->thinking = thought;
    m->thinking_bytes = strlen(thought);
    m->state = STATE_PARTIAL;
    f.model.status.phase = PHASE_DECODE;
    CHECK(shows(&f, "\xE2\x96\xB8 Thinking: 19 characters (Ctrl+T shows)"));
    CHECK(!shows(&f, "second"));
    stream(&f, "answer");
    CHECK(shows(&f, "Thought: 19 characters"));
    keys(&f, "\x14");
    CHECK(shows(&f, "first \xC3\xA4 idea\nsecond\nanswer"));
    keys(&f, "\x14");
    CHECK(!shows(&f, "second"));
    end(&f);
}

/* How long it thought, and what each message cost. */
static void test_figures(void)
{
    struct fixture f;
    setenv("TZ", "UTC", 1);
    tzset();
    begin(&f, 14, 120);
    char model[] = "Big\x1b[2J", thinking[] = "hm";
    say(&f, ROLE_USER, "q")->created_ms = INT64_C(1767225600000);
    struct message *m = say(&f, ROLE_ASSISTANT, "");
    m->thinking = thinking;
    m->thinking_bytes = 2;
    m->model = model;
    m->stats = (struct message_stats){ .generated_tokens = 1234,
                                       .evaluated_tokens = 20,
                                       .reused_tokens = 10000,
                                       .ttft_ms = 340,
                                       .decode_tps = 45.25,
                                       .thinking_tokens = 340,
                                       .thinking_ms = 12300 };
    f.model.status.phase = PHASE_DECODE;
    CHECK(shows(&f, "Thinking for 12 s, 340 tokens (Ctrl+T shows)"));
    f.model.status.phase = PHASE_IDLE;
    stream(&f, "answer");
    CHECK(shows(&f, "Thought for 12 s, 340 tokens") && !shows(&f, "2026-01-01"));
    keys(&f, "\x1b"
             "i");
    CHECK(shows(&f, "You  2026-01-01 00:00\n"));
    CHECK(shows(&f, "Assistant  1,234 tokens at 45.2/s, first after 340 ms, read 20 and "
                    "reused 10,000  Big\\x1b[2J\n"));
    keys(&f, "\x1b"
             "i");
    CHECK(!shows(&f, "2026-01-01"));
    keys(&f, "\x1b[1;3A"); /* the selected one */
    CHECK(shows(&f, "Assistant  1,234 tokens") && !shows(&f, "2026-01-01"));
    end(&f);
}

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

static void test_scrolling_while_streaming(void)
{
    struct fixture f;
    begin(&f, 24, 40);
    say(&f, ROLE_USER, "q");
    say(&f, ROLE_ASSISTANT, "")->state = STATE_PARTIAL;
    f.model.status.phase = PHASE_DECODE;
    for (int i = 0; i < 100; i++) {
        char s[32];
        snprintf(s, sizeof s, "line %d\n\n", i);
        stream(&f, s);
        draw(&f);
    }
    CHECK(shows(&f, "line 99") && f.core.transcript.follow);
    keys(&f, "\x1b[5~\x1b[5~");
    CHECK(!f.core.transcript.follow);
    CHECK(shows(&f, "more below"));
    char *before[20];
    for (int i = 0; i < 20; i++)
        before[i] = row_text(&f, i + 1);
    for (int i = 0; i < 500; i++) {
        stream(&f, "word ");
        draw(&f);
    }
    for (int i = 0; i < 20; i++) { /* what is read does not move */
        char *now = row_text(&f, i + 1);
        CHECK_STR(now, before[i]);
        free(now);
        free(before[i]);
    }
    CHECK(f.core.transcript.new_lines == 64); /* 500 words, 8 on a line, and a gap */
    CHECK(shows(&f, "64 new lines below (End)"));
    keys(&f, "\x1b[F");
    CHECK(f.core.transcript.follow && f.core.transcript.new_lines == 0);
    CHECK(!shows(&f, "below (End)"));
    stream(&f, "\n\nlast");
    CHECK(shows(&f, "last"));
    end(&f);
}

static void test_anchor_over_resize(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    for (int i = 0; i < 20; i++) {
        char s[400] = "";
        for (int k = 0; k < 30; k++)
            snprintf(s + strlen(s), sizeof s - strlen(s), "m%d.%d words ", i, k);
        say(&f, i % 2 ? ROLE_ASSISTANT : ROLE_USER, s);
    }
    draw(&f);
    keys(&f, "\x1b[5~\x1b[5~\x1b[1;2A");
    struct anchor top = f.core.transcript.top;
    REQUIRE(!f.core.transcript.follow && top.place.part == PART_BODY &&
            top.place.pos > 0);
    static const int sizes[][2] = {
        { 24, 40 }, { 10, 25 }, { 50, 61 }, { 6, 30 }, { 24, 80 }
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        f.rows = sizes[i][0];
        f.cols = sizes[i][1];
        draw(&f);
        CHECK(!f.core.transcript.follow && f.core.transcript.top.message == top.message);
        CHECK(f.core.transcript.top.place.part == PART_BODY);
        CHECK(f.core.transcript.top.place.pos <= top.place.pos);
    }
    CHECK(f.core.transcript.new_lines == 0);
    end(&f);
}

static void test_jump_and_edit(void)
{
    struct fixture f;
    begin(&f, 24, 60);
    for (int i = 0; i < 20; i++) {
        char s[32];
        snprintf(s, sizeof s, "message %d", i);
        say(&f, i % 2 ? ROLE_ASSISTANT : ROLE_USER, s)->siblings = i == 19 ? 2 : 1;
    }
    draw(&f);
    keys(&f, "\x12");
    CHECK(f.intent.kind == UI_REGENERATE && f.intent.id == 119);
    keys(&f, "\x1b[1;3D");
    CHECK(f.intent.kind == UI_SIBLING && f.intent.id == 119 && f.intent.delta == -1);
    keys(&f, "\x1b[1;3A\x1b[1;3A\x1b[1;3A\x1b[1;3A");
    CHECK(f.core.transcript.selected == 116);
    keys(&f, "\x1b[1;3A\x12"); /* the selected answer */
    CHECK(f.intent.kind == UI_REGENERATE && f.intent.id == 115);
    keys(&f, "\x1b[1;3A\x1b"
             "e");
    CHECK_STR(buf_cstr(&f.core.editor.text), "message 14");
    CHECK(shows(&f, "edit> message 14"));
    keys(&f, "!\r");
    CHECK(f.intent.kind == UI_EDIT && f.intent.id == 114);
    CHECK_STR(f.intent.text, "message 14!");
    CHECK(f.core.editing == 0 && f.core.transcript.follow);
    keys(&f, "\x1b"
             "e"); /* nothing selected: the last of the user's */
    CHECK_STR(buf_cstr(&f.core.editor.text), "message 18");
    keys(&f, "\x1b");
    CHECK(f.core.editor.text.len == 0 && f.core.editing == 0);
    int before = f.intents;
    f.model.status.phase = PHASE_DECODE;
    draw(&f);
    keys(&f, "\x12\x1b"
             "e\x1b[1;3C"); /* not while an answer is written */
    CHECK(f.intents == before && f.core.editing == 0);
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

static void test_hostile_text_everywhere(void)
{
    static char evil[] = "x\x1b]52;c;eA==\x07\x1b[2J\x9b\xC2\x9b\xE2\x80\xAE\r\x08y";
    struct fixture f;
    begin(&f, 24, 100);
    f.chat.title = evil;
    f.model.notice = evil;
    f.model.status.model = f.model.status.device = f.model.status.note = evil;
    say(&f, ROLE_USER, evil);
    say(&f, ROLE_ASSISTANT, evil);
    say(&f, ROLE_SYSTEM, evil);
    f.messages[1].thinking = evil;
    f.messages[1].thinking_bytes = strlen(evil);
    editor_set(&f.core.editor, evil);
    f.core.transcript.thinking = true;
    char *got = screen_text(&f);
    for (const char *s = got; *s; s++)
        CHECK((unsigned char)*s >= 0x20 || *s == '\n');
    CHECK(strstr(got, "\xC2\x9b") == NULL && strstr(got, "\xE2\x80\xAE") == NULL);
    CHECK(strstr(got, "\\x1b]52;c;eA==\\x07") != NULL);
    free(got);
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

/* Every size, while text streams and keys are pressed: no crash, and a fresh
 * front end at the same place draws the same. */
static void test_resize_storm(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    say(&f, ROLE_USER, "q \xE4\xBD\xA0\xE5\xA5\xBD");
    say(&f, ROLE_ASSISTANT, "")->state = STATE_PARTIAL;
    f.model.status.phase = PHASE_DECODE;
    uint32_t seed = 17;
    for (int i = 0; i < 400; i++) {
        seed = seed * 1664525u + 1013904223u;
        f.rows = (int)(seed >> 8) % 101;
        f.cols = (int)(seed >> 16) % 301;
        if (i % 4 == 0)
            f.rows = f.cols = (int)(seed >> 24) % 6;
        stream(&f, i % 3 ? "some **text** with `code` and \xF0\x9F\x98\x80 "
                         : "\n\n- item\n");
        keys(&f, i % 7 == 0 ? "\x1b[5~" : i % 7 == 3 ? "\x1b[6~" : "k");
    }
    keys(&f, "\x1b[1;5F");
    f.rows = 24;
    f.cols = 80;
    char *got = screen_text(&f);
    struct core fresh;
    core_init(&fresh, &(struct ui_params){ 0 });
    editor_set(&fresh.editor, buf_cstr(&f.core.editor.text));
    core_draw(&fresh, &f.model, 24, 80);
    struct buf want = BUF_INIT;
    screen_dump(&fresh.screen, &want);
    CHECK_STR(got, want.v);
    free(got);
    buf_release(&want);
    core_release(&fresh);
    end(&f);
}

static double stream_cost(struct fixture *f, int tokens)
{
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < tokens; i++) {
        stream(f, i % 12 ? "word " : "word\n\n");
        draw(f);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3) /
           tokens;
}

/* A token costs the same in a message of 1 MB as in a short one. */
static void test_cost_per_token(void)
{
    struct fixture f;
    begin(&f, 24, 80);
    say(&f, ROLE_USER, "q");
    say(&f, ROLE_ASSISTANT, "")->state = STATE_PARTIAL;
    f.model.status.phase = PHASE_DECODE;
    stream_cost(&f, 300);
    double small = stream_cost(&f, 1000);
    for (int i = 0; i < 1 << 17; i++)
        stream(&f, i % 12 ? "another " : "another\n\n");
    draw(&f);
    double large = stream_cost(&f, 1000);
    printf("# per token: %.1f us at 6 KB, %.1f us at %zu KB\n", small, large,
           f.texts[1].len >> 10);
    CHECK(f.texts[1].len > 1000000);
    CHECK(large < small * 2 + 20);
    end(&f);
}

/* Nor does it depend on how many messages there are, or where one looks. */
static void test_many_messages(void)
{
    enum { N = 20000 };
    struct fixture f;
    begin(&f, 24, 80);
    struct message *list = calloc(N, sizeof *list);
    char text[] = "a message of some **words**";
    for (int i = 0; i < N; i++)
        list[i] = (struct message){ .id = i + 1,
                                    .chat_id = 7,
                                    .text = text,
                                    .siblings = 1,
                                    .text_bytes = strlen(text),
                                    .role = i % 2 ? ROLE_ASSISTANT : ROLE_USER };
    f.model.messages = list;
    f.model.n_messages = N;
    clock_t before = clock();
    draw(&f);
    keys(&f, "\x1b[1;5H"); /* the top, then down by pages */
    CHECK(f.core.transcript.top.message == 0 && !f.core.transcript.follow);
    for (int i = 0; i < 300; i++)
        keys(&f, "\x1b[6~");
    CHECK(f.core.transcript.top.message > 1000);
    keys(&f, "\x1b[1;5F");
    CHECK(f.core.transcript.follow);
    double ms = (double)(clock() - before) * 1000 / CLOCKS_PER_SEC / 600;
    printf("# 20,000 messages: %.2f ms a draw\n", ms);
    CHECK(ms < 5);
    size_t kept = 0;
    for (size_t i = 0; i < f.core.transcript.n; i++)
        kept += f.core.transcript.entries[i].used;
    CHECK(kept < 1500); /* the rest was dropped again */
    f.model.messages = f.messages;
    f.model.n_messages = 0;
    draw(&f);
    free(list);
    end(&f);
}

static void test_small_windows(void)
{
    struct fixture f;
    begin(&f, 4, 80);
    say(&f, ROLE_USER, "q");
    check_screen(&f, "tern: window too small\n\n\n\n");
    f.rows = 1;
    f.cols = 1;
    check_screen(&f, "t\n");
    f.rows = 5;
    f.cols = 20;
    keys(&f, "hi");
    check_screen(&f, "You\nq\n\n> hi\nm              ready\n");
    f.rows = f.cols = 0;
    check_screen(&f, "");
    end(&f);
}

TEST_MAIN(T(test_conversation), T(test_message_states), T(test_thinking), T(test_figures),
          T(test_send_and_newlines), T(test_type_ahead), T(test_interrupt), T(test_paste),
          T(test_pills), T(test_pill_in_small_window), T(test_files), T(test_completion),
          T(test_selection), T(test_scrolling_while_streaming),
          T(test_anchor_over_resize), T(test_jump_and_edit), T(test_commands),
          T(test_list), T(test_list_details), T(test_search), T(test_copy),
          T(test_clicks), T(test_models), T(test_find), T(test_hostile_text_everywhere),
          T(test_resize_storm), T(test_cost_per_token), T(test_many_messages),
          T(test_small_windows))
