/* test_queue.c - messages that wait for the end of an answer, and drafts. */
#include "app/queue.h"
#include "tests/app/chat_bench.h"

static void begin(struct bench *b)
{
    fake.answers[0] = "a long answer a long answer a long answer";
    fake.answers[1] = "second";
    fake.answers[2] = "third";
    fake.step_s = 0.005;
    bench_open(b);
    REQUIRE(conversation_send(&b->c, "one", 3, &b->err) == 0);
    PUMP_UNTIL(b, b->c.answer.generated >= 1);
}

static void test_sent_in_order(void)
{
    struct bench b;
    size_t n;
    begin(&b);
    CHECK(queue_wanted(&b.c));
    queue_add(&b.c, "two", 3);
    queue_add(&b.c, "three", 5);
    const struct message *m = conversation_messages(&b.c, &n);
    REQUIRE(n == 4 && b.c.n_queue == 2);
    CHECK_STR(m[1].text, "a");
    CHECK_STR(m[2].text, "two");
    CHECK(m[2].id < 0 && m[3].id < 0 && m[2].id != m[3].id && m[3].role == ROLE_USER);
    PUMP_UNTIL(&b, !conversation_busy(&b.c) && !b.c.n_queue);
    CHECK_TEXTS(&b, "one", fake.answers[0], "two", "second", "three", "third");
    char *draft = draft_take(&b.c);
    CHECK(!draft);
    bench_close(&b);
}

static void test_stopped(void)
{
    struct bench b;
    begin(&b);
    queue_add(&b.c, "two", 3);
    queue_add(&b.c, "three", 5);
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(b.c.n_queue == 2 && fake.n_prompts == 1);
    char *text = queue_take(&b.c, false);
    CHECK_STR(text ? text : "NULL", "three");
    free(text);
    queue_add(&b.c, "four", 4);
    text = queue_take(&b.c, true);
    CHECK_STR(text ? text : "NULL", "two\n\nfour");
    free(text);
    CHECK(!queue_take(&b.c, true) && b.c.n_queue == 0);
    say(&b, "five");
    bench_close(&b);
}

/* An answer that failed is not followed by what was to come after it. */
static void test_failed(void)
{
    struct bench b;
    fake.decode_fails_at = 4;
    begin(&b);
    queue_add(&b.c, "two", 3);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(b.c.n_queue == 1 && b.c.answer.m.state == STATE_FAILED);
    bench_close(&b);
}

/* What cannot be sent goes on waiting, and the notice says why. */
static void test_context_full(void)
{
    struct bench b;
    fake.ctx_tokens = 120;
    begin(&b);
    queue_add(&b.c, "0123456789012345678901234567890123456789", 40);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(b.c.n_queue == 1);
    CHECK(b.c.notice && strstr(b.c.notice, "context full"));
    bench_close(&b);
}

/* The draft goes with the conversation and comes back with it. */
static void test_drafts(void)
{
    struct bench b;
    begin(&b);
    int64_t first = b.c.chat.id;
    queue_add(&b.c, "two", 3);
    queue_add(&b.c, "three", 5);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    CHECK(b.c.n_queue == 2); /* still the same one */
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    CHECK(b.c.n_queue == 0);
    CHECK(!draft_take(&b.c));
    /* In a new conversation, while the other one's answer runs. */
    queue_add(&b.c, "elsewhere", 9);
    PUMP_UNTIL(&b, !conversation_busy(&b.c) && !b.c.n_queue);
    CHECK(b.c.chat.id != first);
    CHECK_TEXTS(&b, "elsewhere", "second");
    CHECK(!draft_take(&b.c));
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    CHECK(!draft_take(&b.c));
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    char *text = draft_take(&b.c);
    CHECK_STR(text ? text : "NULL", "two\n\nthree");
    free(text);
    CHECK(!draft_take(&b.c));
    draft_save(&b.c, "typed");
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    draft_save(&b.c, "new one");
    text = draft_take(&b.c);
    CHECK_STR(text ? text : "NULL", "new one");
    free(text);
    REQUIRE(conversation_delete(&b.c, first, &b.err) == 0);
    bench_close(&b);
}

TEST_MAIN(T(test_sent_in_order), T(test_stopped), T(test_failed), T(test_context_full),
          T(test_drafts))
