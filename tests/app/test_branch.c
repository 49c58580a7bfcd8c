/* test_branch.c - taking back, forking, going on, other system prompts. */
#include "app/setup.h"
#include "tests/app/chat_bench.h"

static const struct message *stored_leaf(struct bench *b, struct message_list *path)
{
    struct chat chat;
    REQUIRE(store_chat_get(b->store, b->c.chat.id, &chat, &b->err) == 0);
    REQUIRE(store_path(b->store, chat.leaf_id, path, &b->err) == 0);
    chat_release(&chat);
    return path->len ? &path->v[path->len - 1] : NULL;
}

static void test_undo_redo(void)
{
    struct bench b;
    char *text;
    fake.answers[0] = "A1";
    fake.answers[1] = "A2";
    fake.answers[2] = "A3";
    bench_open(&b);
    b.c.settings.system = mem_strdup("Be brief.");
    CHECK(conversation_undo(&b.c, &text, &b.err) < 0 && !text);
    CHECK(conversation_redo(&b.c, &b.err) < 0);
    say(&b, "one");
    say(&b, "two");
    REQUIRE(conversation_undo(&b.c, &text, &b.err) == 0);
    CHECK_STR(text, "two");
    free(text);
    CHECK_TEXTS(&b, "Be brief.", "one", "A1");
    REQUIRE(conversation_undo(&b.c, &text, &b.err) == 0);
    CHECK_STR(text, "one");
    free(text);
    CHECK_TEXTS(&b, "Be brief.");
    CHECK(conversation_undo(&b.c, &text, &b.err) < 0);
    REQUIRE(conversation_redo(&b.c, &b.err) == 0); /* all of it */
    CHECK_TEXTS(&b, "Be brief.", "one", "A1", "two", "A2");
    CHECK(conversation_redo(&b.c, &b.err) < 0);
    REQUIRE(conversation_undo(&b.c, &text, &b.err) == 0);
    free(text);
    say(&b, "instead");
    CHECK_TEXTS(&b, "Be brief.", "one", "A1", "instead", "A3");
    CHECK(message_at(&b, 3)->siblings == 2 && message_at(&b, 3)->sibling_index == 1);
    CHECK(conversation_redo(&b.c, &b.err) < 0);
    bench_close(&b);
}

/* Without a system prompt nothing is left on the branch. */
static void test_undo_all(void)
{
    struct bench b;
    char *text;
    bench_open(&b);
    say(&b, "one");
    int64_t chat = b.c.chat.id;
    REQUIRE(conversation_undo(&b.c, &text, &b.err) == 0);
    free(text);
    CHECK(n_messages(&b) == 0 && b.c.chat.id == chat);
    say(&b, "two");
    CHECK_TEXTS(&b, "two", "ok");
    CHECK(b.c.chat.id == chat && message_at(&b, 0)->siblings == 2);
    bench_close(&b);
}

static void test_fork(void)
{
    struct bench b;
    bench_open(&b);
    CHECK(conversation_fork(&b.c, 0, &b.err) < 0);
    say(&b, "one");
    say(&b, "two");
    int64_t first = b.c.chat.id, answer = message_at(&b, 1)->id;
    CHECK(conversation_fork(&b.c, 4711, &b.err) < 0 && b.c.chat.id == first);
    REQUIRE(conversation_fork(&b.c, answer, &b.err) == 0);
    CHECK(b.c.chat.id != first);
    CHECK_TEXTS(&b, "one", "ok");
    CHECK_STR(b.c.chat.title, "one (fork)");
    CHECK(message_at(&b, 1)->n_ids > 2 && message_at(&b, 1)->stats.generated_tokens);
    unsigned prompts = fake.n_prompts;
    say(&b, "three");
    /* What was said before it is not evaluated again. */
    CHECK(fake.n_prompts == prompts + 1);
    const struct message_stats *s = &message_at(&b, 3)->stats;
    CHECK(s->evaluated_tokens < 15);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    CHECK_TEXTS(&b, "one", "ok", "two", "ok");
    /* All of it, or nothing. */
    struct chat_list l;
    for (unsigned n = 1;; n++) {
        fault_arm(FAULT_SQL, n);
        int rc = conversation_fork(&b.c, 0, &b.err);
        if (!fault_disarm(FAULT_SQL))
            break;
        REQUIRE(store_chat_list(b.store, &l, &b.err) == 0);
        CHECK(rc < 0 || l.len == 3);
        CHECK(l.len == 2 || n > 10);
        if (l.len == 3) {
            chat_list_release(&l);
            break;
        }
        chat_list_release(&l);
    }
    bench_close(&b);
}

static void test_edit_answer(void)
{
    struct bench b;
    fake.answers[0] = "wrong";
    fake.answers[1] = "next";
    bench_open(&b);
    say(&b, "one");
    say(&b, "two");
    int64_t answer = message_at(&b, 1)->id;
    REQUIRE(conversation_edit(&b.c, answer, "right", 5, &b.err) == 0);
    CHECK(!conversation_busy(&b.c) && fake.n_prompts == 2);
    CHECK_TEXTS(&b, "one", "right");
    CHECK(message_at(&b, 1)->siblings == 2 && message_at(&b, 1)->sibling_index == 1);
    say(&b, "three");
    const struct tokens *p = &fake.prompts[2];
    struct tokens want = { 0 };
    tokens_add(&want, message_at(&b, 0)->ids, message_at(&b, 0)->n_ids);
    CHECK(begins_with(p, want.v, want.len));
    tokens_release(&want);
    CHECK(p->v[p->len - 3] == FAKE_BYTE + '\n' || p->len > 10);
    bool found = false;
    for (size_t i = 0; i + 5 <= p->len; i++)
        found = found || (p->v[i] == FAKE_BYTE + 'r' && p->v[i + 4] == FAKE_BYTE + 't');
    CHECK(found);
    REQUIRE(conversation_sibling(&b.c, message_at(&b, 1)->id, -1, &b.err) == 0);
    CHECK_TEXTS(&b, "one", "wrong", "two", "next");
    bench_close(&b);
}

static void test_system(void)
{
    struct bench b;
    struct message_list path;
    fake.answers[0] = "<think>hm</think>A1";
    bench_open(&b);
    REQUIRE(conversation_set_system(&b.c, "First.", &b.err) == 0); /* of the new one */
    say(&b, "one");
    say(&b, "two");
    CHECK_TEXTS(&b, "First.", "one", "A1", "two", "A1");
    REQUIRE(conversation_set_system(&b.c, "First.", &b.err) == 0);
    CHECK(message_at(&b, 0)->siblings == 1); /* it is that one already */
    struct reading r = conversation_reading(&b.c, 0);
    CHECK(r.tokens > 20);
    REQUIRE(conversation_set_system(&b.c, "Second.", &b.err) == 0);
    CHECK_TEXTS(&b, "Second.", "one", "A1", "two", "A1");
    CHECK(message_at(&b, 0)->siblings == 2 && fake.n_prompts == 2);
    CHECK_STR(message_at(&b, 2)->thinking, "hm");
    CHECK(message_at(&b, 2)->stats.generated_tokens > 0 && message_at(&b, 2)->n_ids > 4);
    say(&b, "three");
    CHECK(fake.prompts[2].v[2] == FAKE_BYTE + 'S');
    REQUIRE(conversation_edit(&b.c, message_at(&b, 0)->id, "Third.", 6, &b.err) == 0);
    CHECK_STR(message_at(&b, 0)->text, "Third.");
    CHECK(n_messages(&b) == 7 && message_at(&b, 0)->siblings == 3);
    REQUIRE(conversation_set_system(&b.c, "", &b.err) == 0);
    CHECK_TEXTS(&b, "one", "A1", "two", "A1", "three", "A1");
    CHECK(stored_leaf(&b, &path) && path.len == 6);
    message_list_release(&path);
    REQUIRE(conversation_sibling(&b.c, message_at(&b, 0)->id, -1, &b.err) == 0);
    CHECK_STR(message_at(&b, 0)->text, "Third.");
    bench_close(&b);
}

static void test_continue(void)
{
    struct bench b;
    fake.answers[0] = "<think>a thought</think>0123456789012345678901234567890123456789";
    fake.answers[1] = "\nand more";
    fake.step_s = 0.005;
    bench_open(&b);
    CHECK(conversation_continue(&b.c, &b.err) < 0);
    REQUIRE(conversation_send(&b.c, "go", 2, &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.m.text_bytes >= 5);
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    const struct message *m = message_at(&b, 1);
    char *before = mem_strdup(m->text);
    int64_t id = m->id;
    size_t ids = m->n_ids;
    uint32_t generated = m->stats.generated_tokens;
    REQUIRE(m->state == STATE_STOPPED && ids > 8);
    REQUIRE(conversation_continue(&b.c, &b.err) == 0);
    CHECK(conversation_busy(&b.c) && n_messages(&b) == 2);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    m = message_at(&b, 1);
    CHECK(m->id == id && m->state == STATE_COMPLETE && m->siblings == 1);
    CHECK(!strncmp(m->text, before, strlen(before)));
    CHECK_STR(m->text + strlen(before), "\nand more");
    CHECK_STR(m->thinking, "a thought");
    CHECK(m->stats.generated_tokens == generated + 10 && m->n_ids == ids + 10);
    /* The prompt was what was there, to the token; only the last was evaluated. */
    CHECK(fake.prompts[1].len == fake.prompts[0].len - 2 + ids);
    CHECK(m->stats.evaluated_tokens <= 1);
    free(before);
    bench_close(&b);
}

/* What the user wrote for the model is gone on with, too; and a stop at once loses
 * nothing. */
static void test_continue_edited(void)
{
    struct bench b;
    fake.answers[0] = "no";
    fake.answers[1] = " and on";
    bench_open(&b);
    say(&b, "go");
    REQUIRE(conversation_edit(&b.c, message_at(&b, 1)->id, "On", 2, &b.err) == 0);
    REQUIRE(conversation_continue(&b.c, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "go", "On and on");
    CHECK(message_at(&b, 1)->siblings == 2);
    fake.prefill_s = 0.05;
    fake.chunk_tokens = 1;
    REQUIRE(conversation_set_system(&b.c, "Another prompt, all is read again", &b.err) ==
            0);
    REQUIRE(conversation_continue(&b.c, &b.err) == 0);
    pump(&b);
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(n_messages(&b) == 3);
    CHECK_STR(message_at(&b, 2)->text, "On and on");
    bench_close(&b);
}

/* What it takes to read an edited message is told when the editing begins, if it
 * takes longer than a second. */
static void test_editing_cost(void)
{
    static const char *const long_text =
        "a message that takes its time, as there are a hundred and twenty letters of it "
        "or even more, so that a rate comes of it.";
    struct bench b;
    bench_open(&b);
    fake.prefill_s = 0.004;
    say(&b, long_text);
    say(&b, long_text);
    say(&b, long_text);
    int64_t chat = b.c.chat.id, last = message_at(&b, 4)->id;
    conversation_notice(&b.c, NULL);
    conversation_editing(&b.c, last);
    conversation_editing(&b.c, message_at(&b, 1)->id); /* an answer is not read yet */
    conversation_editing(&b.c, 12345);
    pump(&b);
    CHECK(!b.c.notice);
    /* Another conversation has the timeline now. */
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    say(&b, "elsewhere");
    REQUIRE(conversation_show(&b.c, chat, &b.err) == 0);
    conversation_notice(&b.c, NULL);
    conversation_editing(&b.c, last);
    PUMP_UNTIL(&b, b.c.notice);
    CHECK(strstr(b.c.notice, "sending this reads 38"));
    CHECK(strstr(b.c.notice, "tokens again, some 2 s"));
    REQUIRE(conversation_edit(&b.c, last, "short", 5, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    /* From its start on, as it was said: nothing is read twice. */
    CHECK(message_at(&b, 5)->stats.reused_tokens < 8);
    conversation_notice(&b.c, NULL);
    conversation_editing(&b.c, message_at(&b, 4)->id);
    pump(&b);
    CHECK(!b.c.notice);
    bench_close(&b);
}

TEST_MAIN(T(test_undo_redo), T(test_undo_all), T(test_fork), T(test_edit_answer),
          T(test_system), T(test_continue), T(test_continue_edited), T(test_editing_cost))
