/* test_chat.c - what happens to a conversation, with a scripted engine and a
 * real store. */
#include "app/prompt.h"
#include "base/fault.h"
#include "base/mem.h"
#include "tests/app/chat_bench.h"

#include <signal.h>
#include <time.h>

static char db_path[64];

/* ---- turns --------------------------------------------------------------- */

static void test_two_turns_read_nothing_twice(void)
{
    struct bench b;
    fake.answers[0] = "<think>hm\n</think>\n\nParis.";
    fake.answers[1] = "On the Seine.";
    bench_open(&b);
    b.c.settings.system = mem_strdup("Be brief.");
    say(&b, "Capital of France?");
    CHECK_TEXTS(&b, "Be brief.", "Capital of France?", "Paris.");
    CHECK_STR(message_at(&b, 2)->thinking, "hm");
    CHECK(message_at(&b, 2)->stats.thinking_tokens == 5); /* its marks included */
    CHECK_STR(message_at(&b, 2)->model, "Fake");
    CHECK(message_at(&b, 2)->state == STATE_COMPLETE);
    CHECK_STR(b.c.chat.title, "Capital of France?");
    CHECK_STR(b.c.chat.model, "Fake");

    say(&b, "Where is it?");
    REQUIRE(n_messages(&b) == 5 && fake.n_prompts == 2);
    /* Turn 2's prompt is turn 1's, the exact ids of its answer, and what is new. */
    const struct message *answer = message_at(&b, 2);
    struct tokens first = { 0 };
    const struct tokens *p1 = &fake.prompts[0], *p2 = &fake.prompts[1];
    tokens_add(&first, p1->v, p1->len - 2);
    tokens_add(&first, answer->ids, answer->n_ids);
    CHECK(begins_with(p2, p1->v, p1->len));
    CHECK(begins_with(p2, first.v, first.len));
    CHECK(answer->ids[2] == FAKE_THINK && answer->ids[answer->n_ids - 1] == FAKE_END);
    /* All but the last token of the first turn were in the timeline. */
    const struct message_stats *stats = &message_at(&b, 4)->stats;
    CHECK(stats->reused_tokens == first.len - 1);
    CHECK(stats->prompt_tokens == p2->len);
    CHECK(stats->evaluated_tokens == p2->len - stats->reused_tokens);
    CHECK(b.c.ctx_used == p2->len + stats->generated_tokens);
    tokens_release(&first);
    bench_close(&b);
}

static void test_prompt_survives_restart(void)
{
    struct bench b;
    fake.answers[0] = "<think>secret</think>one";
    snprintf(db_path, sizeof db_path, "/tmp/tern-chat-%d.db", (int)getpid());
    bench_open_db(&b, db_path);
    conversation_load(&b.c, "fake.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    say(&b, "first");
    int64_t chat = b.c.chat.id;
    struct tokens want = { 0 };
    tokens_add(&want, fake.prompts[0].v, fake.prompts[0].len - 2);
    tokens_add(&want, message_at(&b, 1)->ids, message_at(&b, 1)->n_ids);
    bench_close(&b);

    bench_open_db(&b, db_path);
    conversation_load(&b.c, "fake.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    REQUIRE(conversation_show(&b.c, chat, &b.err) == 0);
    CHECK(b.c.ctx_used == want.len);
    say(&b, "second");
    CHECK(begins_with(&fake.prompts[1], want.v, want.len));
    bench_close(&b);
    tokens_release(&want);
    unlink(db_path);
}

static bool folder_is_there(int64_t chat)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%lld", timelines, (long long)chat);
    return access(path, F_OK) == 0;
}

/* With a timeline on disk, the first turn after a restart evaluates what is new
 * and nothing else; it goes with its conversation. */
static void test_restart_reads_nothing_again(void)
{
    struct bench b;
    snprintf(db_path, sizeof db_path, "/tmp/tern-chat-%d.db", (int)getpid());
    snprintf(timelines, sizeof timelines, "/tmp/tern-chat-%d", (int)getpid());
    fake.write_s = 0.3;
    bench_open_db(&b, db_path);
    conversation_load(&b.c, "fake.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    say(&b, "first");
    int64_t chat = b.c.chat.id;
    uint32_t known = b.c.ctx_used;
    bench_close(&b); /* waits for the writing */
    CHECK(fake.n_writes == 1 && folder_is_there(chat));

    bench_open_db(&b, db_path);
    conversation_load(&b.c, "fake.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    REQUIRE(conversation_show(&b.c, chat, &b.err) == 0);
    say(&b, "second");
    CHECK(message_at(&b, 3)->stats.reused_tokens == known - 1);
    REQUIRE(conversation_delete(&b.c, chat, &b.err) == 0);
    bench_close(&b);
    CHECK(!folder_is_there(chat));
    CHECK(rmdir(timelines) == 0);
    unlink(db_path);
}

static void test_message_is_stored_first(void)
{
    struct bench b;
    fake.prefill_s = 0.005;
    fake.chunk_tokens = 4;
    bench_open(&b);
    REQUIRE(conversation_send(&b.c, "a long question", 15, &b.err) == 0);
    /* Nothing was generated yet, and the message is in the store. */
    struct message_list list;
    REQUIRE(store_path(b.store, b.c.path.v[0].id, &list, &b.err) == 0);
    CHECK(list.len == 1 && list.v[0].n_ids > 15 && list.v[0].state == STATE_COMPLETE);
    CHECK_STR(list.v[0].text, "a long question");
    message_list_release(&list);
    CHECK(n_messages(&b) == 1 && conversation_busy(&b.c));
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(n_messages(&b) == 1);
    /* Answered later on demand. */
    REQUIRE(conversation_regenerate(&b.c, b.c.path.v[0].id, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "a long question", "ok");
    CHECK(message_at(&b, 1)->siblings == 1);
    bench_close(&b);
}

static void test_stop_keeps(void)
{
    struct bench b;
    fake.answers[0] = "one two three four five six seven eight nine ten eleven twelve";
    fake.answers[1] = "next";
    fake.step_s = 0.005;
    bench_open(&b);
    REQUIRE(conversation_send(&b.c, "count", 5, &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.generated >= 10);
    CHECK(n_messages(&b) == 2 && b.c.answer.m.id);
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    const struct message *m = message_at(&b, 1);
    CHECK(m->state == STATE_STOPPED && m->text_bytes >= 10);
    CHECK(!strncmp(m->text, fake.answers[0], m->text_bytes));
    CHECK(m->n_ids == 2 + m->text_bytes && m->stats.generated_tokens == m->text_bytes);
    struct tokens want = { 0 };
    tokens_add(&want, fake.prompts[0].v, fake.prompts[0].len - 2);
    tokens_add(&want, m->ids, m->n_ids);
    say(&b, "go on");
    CHECK(begins_with(&fake.prompts[1], want.v, want.len));
    CHECK(message_at(&b, 3)->stats.reused_tokens == want.len - 1);
    tokens_release(&want);
    bench_close(&b);
}

static void test_refusals(void)
{
    struct bench b;
    fake.answers[0] = "a long answer a long answer a long answer a long answer";
    fake.step_s = 0.005;
    bench_open(&b);
    CHECK(conversation_send(&b.c, " \n\t ", 4, &b.err) < 0);
    CHECK(conversation_regenerate(&b.c, 1, &b.err) < 0);
    CHECK(conversation_show(&b.c, 99, &b.err) < 0 && strstr(b.err.text, "99"));
    REQUIRE(conversation_send(&b.c, "x", 1, &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.generated >= 1);
    int64_t user = message_at(&b, 0)->id, answer = message_at(&b, 1)->id;
    CHECK(conversation_send(&b.c, "y", 1, &b.err) < 0 && strstr(b.err.text, "stop"));
    CHECK(conversation_edit(&b.c, user, "y", 1, &b.err) < 0);
    CHECK(conversation_regenerate(&b.c, answer, &b.err) < 0);
    CHECK(conversation_sibling(&b.c, user, 1, &b.err) < 0);
    CHECK(conversation_delete(&b.c, b.c.chat.id, &b.err) < 0);
    CHECK(n_messages(&b) == 2);
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(conversation_edit(&b.c, answer + 9, "y", 1, &b.err) < 0);
    CHECK(conversation_sibling(&b.c, user, 1, &b.err) < 0);
    CHECK(conversation_sibling(&b.c, user, -1, &b.err) < 0);
    CHECK(conversation_edit(&b.c, 12345, "y", 1, &b.err) < 0);
    CHECK(conversation_delete(&b.c, b.c.chat.id, &b.err) == 0);
    CHECK(n_messages(&b) == 0 && b.c.chat.id == 0);
    bench_close(&b);
}

static void test_context_full(void)
{
    struct bench b;
    fake.ctx_tokens = 100;
    fake.answers[0] = "0123456789012345678901234567890123456789";
    bench_open(&b);
    say(&b, "0123456789");
    CHECK(n_messages(&b) == 2);
    CHECK(conversation_send(&b.c, "0123456789012345678901234567890", 31, &b.err) < 0);
    CHECK(strstr(b.err.text, "context full") && strstr(b.err.text, "holds 100"));
    CHECK(n_messages(&b) == 2 && !conversation_busy(&b.c));
    int64_t last;
    REQUIRE(store_newest_leaf(b.store, message_at(&b, 0)->id, &last, &b.err) == 0);
    CHECK(last == message_at(&b, 1)->id);
    /* An answer that meets the end of the context says so. */
    fake.answers[0] = "01234567890123456789012345678901234567890123456789"
                      "01234567890123456789012345678901234567890123456789";
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    say(&b, "x");
    CHECK(message_at(&b, 1)->state == STATE_LENGTH && b.c.ctx_used == 100);
    CHECK(b.c.notice && strstr(b.c.notice, "100 of 100"));
    /* A limit of the user's own is no reason for a notice. */
    conversation_notice(&b.c, NULL);
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    b.c.settings.max_tokens = 3;
    say(&b, "x");
    CHECK(message_at(&b, 1)->state == STATE_LENGTH && message_at(&b, 1)->text_bytes == 3);
    CHECK(!b.c.notice);
    bench_close(&b);
}

/* ---- versions ------------------------------------------------------------ */

static void test_regenerate(void)
{
    struct bench b;
    fake.answers[0] = "first";
    fake.answers[1] = "second";
    fake.answers[2] = "third";
    bench_open(&b);
    b.c.settings.has_seed = true;
    b.c.settings.seed = 7;
    say(&b, "q");
    CHECK(fake.sampler.seed == 7);
    int64_t first = message_at(&b, 1)->id;
    REQUIRE(conversation_regenerate(&b.c, first, &b.err) == 0);
    CHECK(n_messages(&b) == 1);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "q", "second");
    CHECK(fake.sampler.seed == 8);
    CHECK(message_at(&b, 1)->siblings == 2 && message_at(&b, 1)->sibling_index == 1);
    /* The answer's header begins where a snapshot was kept: all but that is reused. */
    CHECK(message_at(&b, 1)->stats.reused_tokens ==
          message_at(&b, 1)->stats.prompt_tokens - 2);
    REQUIRE(conversation_sibling(&b.c, message_at(&b, 1)->id, -1, &b.err) == 0);
    CHECK_TEXTS(&b, "q", "first");
    say(&b, "more");
    CHECK_TEXTS(&b, "q", "first", "more", "third");
    REQUIRE(conversation_sibling(&b.c, first, 1, &b.err) == 0);
    CHECK_TEXTS(&b, "q", "second");
    REQUIRE(conversation_sibling(&b.c, message_at(&b, 1)->id, -1, &b.err) == 0);
    CHECK_TEXTS(&b, "q", "first", "more", "third");
    bench_close(&b);
}

/* A new answer that is stopped before it has a token leaves the old one shown. */
static void test_regenerate_stopped_early(void)
{
    struct bench b;
    fake.answers[0] = "first";
    bench_open(&b);
    say(&b, "a question of some length");
    fake.step_s = 0.1;
    REQUIRE(conversation_regenerate(&b.c, message_at(&b, 1)->id, &b.err) == 0);
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    if (b.c.answer.generated == 0)
        CHECK_TEXTS(&b, "a question of some length", "first");
    bench_close(&b);
}

static void test_edit(void)
{
    struct bench b;
    fake.answers[0] = "a1";
    fake.answers[1] = "a2";
    fake.answers[2] = "a2b";
    fake.answers[3] = "b1";
    bench_open(&b);
    say(&b, "q1");
    say(&b, "q2");
    int64_t q1 = message_at(&b, 0)->id, q2 = message_at(&b, 2)->id;
    REQUIRE(conversation_edit(&b.c, q2, "q2b", 3, &b.err) == 0);
    CHECK(message_at(&b, 2)->siblings == 2 && message_at(&b, 2)->sibling_index == 1);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "q1", "a1", "q2b", "a2b");
    CHECK(message_at(&b, 2)->siblings == 2 && message_at(&b, 2)->sibling_index == 1);
    CHECK(message_at(&b, 2)->parent_id == message_at(&b, 1)->id);
    /* What comes before the edited message, and the line break after it. */
    CHECK(message_at(&b, 3)->stats.reused_tokens ==
          message_at(&b, 0)->n_ids + message_at(&b, 1)->n_ids + 1);

    REQUIRE(conversation_edit(&b.c, q1, "other", 5, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "other", "b1");
    CHECK(message_at(&b, 0)->siblings == 2 && message_at(&b, 0)->parent_id == 0);
    REQUIRE(conversation_sibling(&b.c, message_at(&b, 0)->id, -1, &b.err) == 0);
    CHECK_TEXTS(&b, "q1", "a1", "q2b", "a2b");
    CHECK(message_at(&b, 0)->id == q1);
    REQUIRE(conversation_sibling(&b.c, message_at(&b, 2)->id, -1, &b.err) == 0);
    CHECK_TEXTS(&b, "q1", "a1", "q2", "a2");
    CHECK(b.c.chat.n_messages == 8);
    bench_close(&b);
}

/* ---- while the model is not there ---------------------------------------- */

static void test_send_while_loading(void)
{
    struct bench b;
    fake.load_s = 0.2;
    fake.answers[0] = "here";
    bench_open_db(&b, ":memory:");
    conversation_load(&b.c, "fake.gguf");
    REQUIRE(conversation_send(&b.c, "early", 5, &b.err) == 0);
    CHECK(b.c.phase == MODEL_LOADING && n_messages(&b) == 1 && b.c.path.v[0].id);
    CHECK(b.c.path.v[0].n_ids == 0);
    CHECK(conversation_send(&b.c, "again", 5, &b.err) < 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "early", "here");
    CHECK(message_at(&b, 0)->n_ids == strlen("early") + 4);
    CHECK_STR(message_at(&b, 0)->ids_model, "fake-bytes");
    bench_close(&b);
}

static void test_no_model(void)
{
    struct bench b;
    fake.model_fails = "too short for a GGUF header";
    bench_open_db(&b, ":memory:");
    conversation_load(&b.c, "bad.gguf");
    PUMP_UNTIL(&b, b.c.phase == MODEL_UNUSABLE);
    CHECK_STR(b.c.problem, "bad.gguf: too short for a GGUF header");
    REQUIRE(conversation_send(&b.c, "kept", 4, &b.err) == 0);
    CHECK(n_messages(&b) == 1 && strstr(b.c.notice, "kept"));
    fake.model_fails = NULL;
    conversation_load(&b.c, "good.gguf");
    conversation_stop(&b.c);
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    CHECK(n_messages(&b) == 1 && !conversation_busy(&b.c) && !b.c.problem);
    bench_close(&b);
}

/* A new answer that is wanted while there is no model, and then not. */
static void test_regenerate_without_model(void)
{
    struct bench b;
    bench_open(&b);
    say(&b, "q");
    fake.load_s = 0.3;
    conversation_load(&b.c, "fake.gguf");
    REQUIRE(conversation_regenerate(&b.c, message_at(&b, 1)->id, &b.err) == 0);
    CHECK(n_messages(&b) == 1 && conversation_busy(&b.c));
    conversation_stop(&b.c);
    CHECK_TEXTS(&b, "q", "ok");
    REQUIRE(conversation_regenerate(&b.c, message_at(&b, 1)->id, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK(n_messages(&b) == 2 && message_at(&b, 1)->siblings == 2);
    bench_close(&b);
}

static void test_load_while_answering(void)
{
    struct bench b;
    fake.answers[0] = "an answer that goes on for some time";
    fake.step_s = 0.02;
    bench_open(&b);
    REQUIRE(conversation_send(&b.c, "q", 1, &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.generated > 2);
    conversation_load(&b.c, "other.gguf");
    CHECK(!b.c.model && b.c.phase == MODEL_LOADING);
    PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
    CHECK(message_at(&b, 1)->state == STATE_STOPPED);
    CHECK(message_at(&b, 1)->text_bytes < strlen(fake.answers[0]));
    fake.step_s = 0;
    say(&b, "r");
    CHECK(n_messages(&b) == 4 && message_at(&b, 3)->state == STATE_COMPLETE);
    CHECK_STR(b.c.model_path, "other.gguf");
    bench_close(&b);
}

static void test_other_tokenizer(void)
{
    struct bench b;
    bench_open(&b);
    say(&b, "q");
    struct message m = *message_at(&b, 1);
    char other[] = "other-tokenizer";
    int32_t wrong[] = { 1, 2, 3 };
    m.ids_model = other;
    m.ids = wrong;
    m.n_ids = 3;
    REQUIRE(store_message_update(b.store, &m, &b.err) == 0);
    REQUIRE(conversation_show(&b.c, b.c.chat.id, &b.err) == 0);
    say(&b, "r");
    /* The answer was tokenised from its text "ok". */
    const struct tokens *p = &fake.prompts[1];
    size_t at = fake.prompts[0].len;
    CHECK(p->v[at] == FAKE_BYTE + 'o' && p->v[at + 1] == FAKE_BYTE + 'k');
    CHECK(p->v[at + 2] == FAKE_END);
    bench_close(&b);
}

/* ---- failures ------------------------------------------------------------ */

static void test_engine_fails(void)
{
    struct bench b;
    fake.answers[0] = "0123456789012345678901234567890123456789";
    fake.decode_fails_at = 3;
    bench_open(&b);
    say(&b, "q");
    CHECK(message_at(&b, 1)->state == STATE_FAILED);
    CHECK_STR(message_at(&b, 1)->text, "012345678");
    CHECK(b.c.notice && strstr(b.c.notice, "device lost"));
    say(&b, "again");
    CHECK(n_messages(&b) == 4 && message_at(&b, 3)->state == STATE_COMPLETE);
    bench_close(&b);
}

/* Every statement of a send and its answer fails once: either nothing happened
 * and the reason is known, or the conversation is whole in the end. */
static void test_store_fails(void)
{
    for (unsigned nth = 1;; nth++) {
        struct bench b;
        struct message_list list = { 0 };
        bench_open(&b);
        fault_arm(FAULT_SQL, nth);
        int rc = conversation_send(&b.c, "q", 1, &b.err);
        if (rc < 0) {
            CHECK(b.err.text[0] && !conversation_busy(&b.c));
            CHECK(n_messages(&b) == 0 && b.c.chat.id == 0);
        } else {
            uint64_t until = clock_ns() + UINT64_C(5000000000);
            while ((conversation_busy(&b.c) || b.c.answer.unsaved) && clock_ns() < until)
                pump(&b);
            CHECK(n_messages(&b) == 2 && !b.c.answer.unsaved);
        }
        bool fired = fault_disarm(FAULT_SQL);
        struct chat_list chats = { 0 };
        REQUIRE(store_chat_list(b.store, &chats, &b.err) == 0);
        CHECK(chats.len == (rc == 0));
        if (rc == 0) {
            REQUIRE(store_path(b.store, chats.v[0].leaf_id, &list, &b.err) == 0);
            CHECK(list.len == 2 && list.v[1].state == STATE_COMPLETE);
            CHECK_STR(list.v[1].text, "ok");
        }
        message_list_release(&list);
        chat_list_release(&chats);
        bench_close(&b);
        if (!fired)
            break;
    }
}

/* Killed while an answer is written: the message and all of the answer but for
 * about the last second are there. */
static void test_kill_while_streaming(void)
{
    struct bench b;
    snprintf(db_path, sizeof db_path, "/tmp/tern-kill-%d.db", (int)getpid());
    struct buf text = BUF_INIT;
    for (int i = 0; i < 300; i++)
        buf_printf(&text, "%03d ", i);
    fake.answers[0] = text.v;
    fake.step_s = 0.005;
    int told[2];
    REQUIRE(pipe(told) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        bench_open_db(&b, db_path);
        conversation_load(&b.c, "fake.gguf");
        PUMP_UNTIL(&b, b.c.phase == MODEL_READY);
        REQUIRE(conversation_send(&b.c, "count", 5, &b.err) == 0);
        for (;;) {
            pump(&b);
            uint32_t n = b.c.answer.generated;
            if (write(told[1], &n, sizeof n) != sizeof n)
                _exit(1);
        }
    }
    close(told[1]);
    uint32_t generated = 0;
    while (generated < 500)
        REQUIRE(read(told[0], &generated, sizeof generated) == sizeof generated);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    while (read(told[0], &generated, sizeof generated) == sizeof generated)
        ;
    struct message_list list;
    int64_t chat;
    struct chat row;
    REQUIRE(store_open(&b.store, db_path, &b.err) == 0);
    REQUIRE(store_chat_last(b.store, &chat, &b.err) == 0 && chat);
    REQUIRE(store_chat_get(b.store, chat, &row, &b.err) == 0);
    REQUIRE(store_path(b.store, row.leaf_id, &list, &b.err) == 0);
    REQUIRE(list.len == 2);
    CHECK_STR(list.v[0].text, "count");
    CHECK(list.v[1].state == STATE_PARTIAL);
    CHECK(!strncmp(list.v[1].text, text.v, list.v[1].text_bytes));
    /* 200 tokens a second, a save each second. */
    CHECK(list.v[1].text_bytes + 250 > generated);
    CHECK(list.v[1].n_ids == list.v[1].text_bytes + 2);
    message_list_release(&list);
    chat_release(&row);
    store_close(b.store);
    buf_release(&text);
    unlink(db_path);
    strcat(db_path, "-wal");
    unlink(db_path);
    memcpy(db_path + strlen(db_path) - 3, "shm", 3);
    unlink(db_path);
}

static void test_look_elsewhere_meanwhile(void)
{
    struct bench b;
    fake.answers[0] = "short";
    fake.answers[1] = "an answer that goes on for some time";
    bench_open(&b);
    say(&b, "one");
    int64_t first = b.c.chat.id;
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    fake.step_s = 0.01;
    REQUIRE(conversation_send(&b.c, "two", 3, &b.err) == 0);
    int64_t second = b.c.chat.id;
    PUMP_UNTIL(&b, b.c.answer.generated > 2);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    CHECK_TEXTS(&b, "one", "short");
    pump(&b);
    REQUIRE(conversation_show(&b.c, second, &b.err) == 0);
    CHECK(n_messages(&b) == 2 && message_at(&b, 1)->text_bytes >= 2);
    size_t bytes = message_at(&b, 1)->text_bytes;
    CHECK(bytes == b.c.answer.text.len);
    REQUIRE(conversation_show(&b.c, first, &b.err) == 0);
    PUMP_UNTIL(&b, !conversation_busy(&b.c));
    CHECK_TEXTS(&b, "one", "short");
    REQUIRE(conversation_show(&b.c, second, &b.err) == 0);
    CHECK_TEXTS(&b, "two", "an answer that goes on for some time");
    bench_close(&b);
}

static void test_finish(void)
{
    struct bench b;
    fake.answers[0] = "an answer that goes on for a very long time indeed";
    fake.step_s = 0.01;
    bench_open(&b);
    REQUIRE(conversation_send(&b.c, "q", 1, &b.err) == 0);
    PUMP_UNTIL(&b, b.c.answer.generated > 2);
    REQUIRE(conversation_finish(&b.c, 2000, &b.err) == 0);
    CHECK(!conversation_busy(&b.c));
    CHECK(message_at(&b, 1)->state == STATE_STOPPED && message_at(&b, 1)->n_ids > 4);
    bench_close(&b);
}

/* ---- small things -------------------------------------------------------- */

static void test_lock(void)
{
    struct lock *a, *b;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tern-lock-%d", (int)getpid());
    lock_open(&a, path);
    CHECK(lock_take(a, 5) && lock_take(a, 5));
    pid_t pid = fork();
    if (pid == 0) {
        lock_open(&b, path);
        bool ok = !lock_take(b, 5) && lock_take(b, 6) && !lock_take(b, 5);
        lock_close(b);
        _exit(ok ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(lock_take(a, 6));
    pid = fork();
    if (pid == 0) {
        lock_open(&b, path);
        _exit(lock_take(b, 5) && !lock_take(b, 6) ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(lock_take(a, 0));
    lock_close(a);
    lock_open(&a, "/dev/null/x");
    CHECK(lock_take(a, 5));
    lock_close(a);
    lock_close(NULL);
    unlink(path);
}

TEST_MAIN(T(test_two_turns_read_nothing_twice), T(test_prompt_survives_restart),
          T(test_restart_reads_nothing_again), T(test_message_is_stored_first),
          T(test_stop_keeps), T(test_refusals), T(test_context_full), T(test_regenerate),
          T(test_regenerate_stopped_early), T(test_edit), T(test_send_while_loading),
          T(test_no_model), T(test_regenerate_without_model),
          T(test_load_while_answering), T(test_other_tokenizer), T(test_engine_fails),
          T(test_store_fails), T(test_kill_while_streaming),
          T(test_look_elsewhere_meanwhile), T(test_finish), T(test_lock))
