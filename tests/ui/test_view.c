/* test_view.c - the conversation on the screen: messages, thinking, figures,
 * scrolling, windows of all sizes. */
#include "tests/ui/view_rig.h"

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

/* A question without an answer says so and can have one; Ctrl+R asks. */
static void test_unanswered(void)
{
    struct fixture f;
    begin(&f, 30, 60);
    say(&f, ROLE_USER, "first");
    say(&f, ROLE_ASSISTANT, "answer");
    say(&f, ROLE_USER, "q");
    CHECK(shows(&f, "q\n[no answer yet: /retry asks for one]\n"));
    keys(&f, "\x12");
    CHECK(f.intent.kind == UI_REGENERATE && f.intent.id == 102);
    f.model.status.phase = PHASE_PREFILL;
    CHECK(!shows(&f, "no answer yet"));
    f.model.status.phase = PHASE_LOADING;
    f.model.waiting = true;
    CHECK(shows(&f, "q\n[answered as soon as there is a model]\n"));
    keys(&f, "\x1b");
    CHECK(f.intent.kind == UI_STOP);
    f.model.waiting = false;
    CHECK(shows(&f, "q\n[no answer yet: /retry asks for one]\n"));
    say(&f, ROLE_USER, "later")->id = -1;
    f.model.n_queued = 1;
    CHECK(shows(&f, "q\n[no answer yet") && shows(&f, "later\n[queued"));
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
    keymap_bind(&f.core.keymap, "thinking", "F8", &(struct err){ 0 });
    CHECK(shows(&f, "characters (F8 shows)"));
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
    check_screen(&f, "You\nq\n[no answer yet: /ret\n> hi\nm              ready\n");
    f.rows = f.cols = 0;
    check_screen(&f, "");
    end(&f);
}

TEST_MAIN(T(test_conversation), T(test_message_states), T(test_unanswered),
          T(test_thinking), T(test_figures), T(test_scrolling_while_streaming),
          T(test_anchor_over_resize), T(test_jump_and_edit),
          T(test_hostile_text_everywhere), T(test_resize_storm), T(test_cost_per_token),
          T(test_many_messages), T(test_small_windows))
