/* test_caption.c - titles that the model makes while it is idle: when it is asked,
 * that it costs the conversation nothing, and that what is of no use is not kept. */
#include "base/mem.h"
#include "base/utf8.h"
#include "tests/app/chat_bench.h"

static const char rain[] = "Why does it rain? I have wondered about that for years.";

/* Titles of the model, whatever its size. */
static void open_titled(struct bench *b, const char *answer, const char *title)
{
    fake.answers[0] = answer;
    fake.answers[1] = title;
    fake.answers[2] = "later";
    bench_open(b);
    b->c.titles = TITLES_MODEL;
}

/* Takes what comes until an event of this kind; how many titles came before. */
static unsigned take_until(struct bench *b, enum worker_event_kind kind)
{
    struct worker_event e;
    unsigned said = 0;
    for (bool done = false; !done;) {
        struct pollfd fd = { .fd = worker_fd(b->worker), .events = POLLIN };
        REQUIRE(poll(&fd, 1, 10000) == 1);
        while (!done && worker_next(b->worker, &e)) {
            done = e.kind == kind;
            said += e.kind == EVENT_SAID && !done;
            conversation_event(&b->c, &e);
            worker_event_release(&e);
        }
    }
    return said;
}

static unsigned ask(struct bench *b, const char *text)
{
    REQUIRE(conversation_send(&b->c, text, strlen(text), &b->err) == 0);
    return take_until(b, EVENT_DONE);
}

static void wait_said(struct bench *b)
{
    take_until(b, EVENT_SAID);
}

/* How many titles were asked for that were not waited for. */
static unsigned asked_for(struct bench *b)
{
    struct tokens ids = { 0 };
    tokens_push(&ids, FAKE_BYTE);
    worker_measure(b->worker, 99, &ids);
    return take_until(b, EVENT_MEASURED);
}

static void test_title(void)
{
    struct bench b;
    struct chat chat;
    open_titled(&b, "Because of clouds.", "\"The Causes of Rain\"\n");
    ask(&b, rain);
    CHECK_STR(b.c.chat.title, "Why does it rain?");
    wait_said(&b);
    CHECK_STR(b.c.chat.title, "The Causes of Rain");
    CHECK(b.c.chat.title_source == TITLE_MODEL);
    REQUIRE(store_chat_get(b.store, b.c.chat.id, &chat, &b.err) == 0);
    CHECK_STR(chat.title, "The Causes of Rain");
    chat_release(&chat);
    /* The timeline is where it was, and no second title is asked for. */
    say(&b, "more");
    CHECK(message_at(&b, 3)->stats.evaluated_tokens <= 16);
    CHECK(message_at(&b, 3)->stats.reused_tokens > 70);
    CHECK_TEXTS(&b, rain, "Because of clouds.", "more", "later");
    CHECK(asked_for(&b) == 0 && fake.n_prompts == 3);
    bench_close(&b);
}

/* What was quoted is the beginning, without reasoning, and not too much of it. */
static void test_question(void)
{
    struct bench b;
    struct buf text = BUF_INIT, asked = BUF_INIT;
    for (int i = 0; i < 500; i++)
        buf_str(&text, "\u00e4\u00f6 ");
    open_titled(&b, "<think>hidden</think>shown", "Umlauts");
    b.c.settings.system = mem_strdup("Be-secret.");
    ask(&b, text.v);
    wait_said(&b);
    CHECK_STR(b.c.chat.title, "Umlauts");
    const struct tokens *ids = &fake.prompts[1];
    for (size_t i = 0; i < ids->len; i++)
        if (ids->v[i] >= FAKE_BYTE)
            buf_char(&asked, (char)(ids->v[i] - FAKE_BYTE));
    CHECK(strstr(asked.v, "User: \u00e4\u00f6 ") && strstr(asked.v, "Assistant: shown"));
    CHECK(strstr(asked.v, " [...]") && utf8_valid(asked.v, asked.len));
    CHECK(!strstr(asked.v, "hidden") && !strstr(asked.v, "Be-secret"));
    CHECK(asked.len < 1300);
    buf_release(&text);
    buf_release(&asked);
    bench_close(&b);
}

static void test_users_title_stays(void)
{
    struct bench b;
    open_titled(&b, "Because of clouds.", "The Causes of Rain");
    REQUIRE(conversation_send(&b.c, rain, strlen(rain), &b.err) == 0);
    REQUIRE(conversation_rename(&b.c, b.c.chat.id, "Mine", &b.err) == 0);
    take_until(&b, EVENT_DONE);
    CHECK(asked_for(&b) == 0);
    CHECK_STR(b.c.chat.title, "Mine");
    bench_close(&b);
    /* Named while the model thinks about it. */
    fake_begin((struct fake_script){ .step_s = 0.02 });
    open_titled(&b, "ok", "The Causes of Rain");
    ask(&b, rain);
    REQUIRE(conversation_rename(&b.c, b.c.chat.id, "Mine", &b.err) == 0);
    wait_said(&b);
    CHECK(fake.n_prompts == 2);
    CHECK_STR(b.c.chat.title, "Mine");
    bench_close(&b);
}

/* A message that is sent meanwhile does not wait for it. */
static void test_gives_way(void)
{
    struct bench b;
    fake.step_s = 0.2;
    open_titled(&b, "ok", "Takes five seconds to write");
    ask(&b, rain);
    PUMP_UNTIL(&b, fake.n_prompts == 2);
    CHECK(ask(&b, "more") == 1);
    CHECK_STR(b.c.chat.title, "Why does it rain?");
    CHECK(message_at(&b, 3)->stats.ttft_ms < 2500);
    CHECK_TEXTS(&b, rain, "ok", "more", "later");
    wait_said(&b); /* and then there is time for another one */
    CHECK_STR(b.c.chat.title, "later");
    bench_close(&b);
}

static void test_useless(void)
{
    static const char *const useless[] = {
        "",
        "<think>A title is",
        "...",
        "\n\n",
        "a title of more tokens than there are for it",
    };
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
        struct bench b;
        fake_begin((struct fake_script){ 0 });
        open_titled(&b, "ok", useless[i]);
        ask(&b, rain);
        wait_said(&b);
        CHECK(fake.n_prompts == 2);
        CHECK_STR(b.c.chat.title, "Why does it rain?");
        bench_close(&b);
    }
}

/* Nobody is asked where it is not worth it or not wanted. */
static void test_not_asked(void)
{
    static const enum titles never[] = { TITLES_AUTO, TITLES_FIRST };
    for (size_t i = 0; i < 2; i++) {
        struct bench b;
        fake_begin((struct fake_script){ 0 });
        open_titled(&b, "ok", "A title");
        b.c.titles = never[i]; /* the scripted model is a small one */
        ask(&b, rain);
        CHECK(asked_for(&b) == 0);
        bench_close(&b);
    }
    struct bench b;
    fake_begin((struct fake_script){ .step_s = 0.05 });
    open_titled(&b, "an answer that is stopped", "A title");
    REQUIRE(conversation_send(&b.c, rain, strlen(rain), &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.generated > 2);
    conversation_stop(&b.c);
    take_until(&b, EVENT_DONE);
    CHECK(asked_for(&b) == 0);
    bench_close(&b);
}

/* No room for a second session, or a device that fails in it: no title, no more. */
static void test_no_room(void)
{
    struct bench b;
    fake.session_fails_at = 2;
    open_titled(&b, "ok", "A title");
    ask(&b, rain);
    wait_said(&b);
    CHECK(fake.n_sessions == 2 && !b.c.notice);
    CHECK_STR(b.c.chat.title, "Why does it rain?");
    say(&b, "more");
    CHECK_TEXTS(&b, rain, "ok", "more", "A title"); /* which is the next answer */
    bench_close(&b);
    fake_begin((struct fake_script){ 0 });
    open_titled(&b, "ok", "A title");
    fake.decode_fails_at = 4; /* the first of the title */
    ask(&b, rain);
    wait_said(&b);
    CHECK(fake.n_decodes >= 4 && !b.c.notice);
    CHECK_STR(b.c.chat.title, "Why does it rain?");
    say(&b, "more");
    CHECK_STR(message_at(&b, 3)->text, "later");
    bench_close(&b);
}

TEST_MAIN(T(test_title), T(test_question), T(test_users_title_stays), T(test_gives_way),
          T(test_useless), T(test_not_asked), T(test_no_room))
