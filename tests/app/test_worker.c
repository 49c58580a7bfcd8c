/* test_worker.c - the inference thread against a scripted engine: what it
 * reports, how it stops, what it survives. Also built with ThreadSanitizer. */
#include "app/worker.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

#include <poll.h>
#include <time.h>

/* All events up to one of the wanted kind, which is returned. */
struct seen {
    struct buf text, thinking;
    struct tokens ids;
    unsigned n_prefill, n_loading, n_tokens;
    uint64_t prefill_done, prefill_total, reused;
};

static struct worker_event wait_event(struct worker *w, enum worker_event_kind wanted,
                                      struct seen *s)
{
    for (;;) {
        struct worker_event e;
        struct pollfd fd = { .fd = worker_fd(w), .events = POLLIN };
        REQUIRE(poll(&fd, 1, 10000) == 1);
        if (!worker_next(w, &e))
            continue;
        if (s && e.kind == EVENT_TOKENS) {
            s->n_tokens++;
            tokens_add(&s->ids, e.ids.v, e.ids.len);
            buf_add(&s->text, e.text, e.text_bytes);
            buf_add(&s->thinking, e.thinking, e.thinking_bytes);
            CHECK(utf8_valid(buf_cstr(&s->text), s->text.len));
        }
        if (s && e.kind == EVENT_PREFILL) {
            s->n_prefill++;
            s->prefill_done = e.done;
            s->prefill_total = e.total;
            s->reused = e.reused;
        }
        if (s)
            s->n_loading += e.kind == EVENT_LOADING;
        if (e.kind == wanted)
            return e;
        CHECK(e.kind != EVENT_DONE && e.kind != EVENT_READY && e.kind != EVENT_UNUSABLE);
        worker_event_release(&e);
    }
}

static void seen_release(struct seen *s)
{
    buf_release(&s->text);
    buf_release(&s->thinking);
    tokens_release(&s->ids);
}

static struct worker *start(void)
{
    struct worker *w;
    struct err err;
    REQUIRE(worker_open(&w, &(struct worker_params){ 0 }, &err) == 0);
    worker_load(w, "fake.gguf");
    return w;
}

static struct worker *start_ready(void)
{
    struct worker *w = start();
    struct worker_event e = wait_event(w, EVENT_READY, NULL);
    CHECK(e.model && e.engine && e.ctx_tokens);
    worker_event_release(&e);
    return w;
}

static struct generation prompt(const char *text, uint32_t max_tokens)
{
    struct generation g = { .max_tokens = max_tokens, .asked_ns = clock_ns() };
    for (size_t i = 0; i < strlen(text); i++)
        tokens_push(&g.ids, FAKE_BYTE + (unsigned char)text[i]);
    g.header = g.ids.len;
    tokens_push(&g.ids, FAKE_START);
    tokens_push(&g.ids, FAKE_ASSISTANT);
    return g;
}

static void ask(struct worker *w, const char *text, uint32_t max_tokens)
{
    struct generation g = prompt(text, max_tokens);
    worker_generate(w, &g);
    CHECK(!g.ids.v);
}

static void test_answer(void)
{
    fake.answers[0] = "<think>\nwhy\n</think>\n\nParis \u6f22\U0001f468\u200d\U0001f469.";
    struct worker *w = start_ready();
    struct seen s = { 0 };
    ask(w, "capital?", 0);
    struct worker_event e = wait_event(w, EVENT_DONE, &s);
    CHECK(e.state == STATE_COMPLETE && !e.text);
    CHECK_STR(buf_cstr(&s.text), "Paris \u6f22\U0001f468\u200d\U0001f469.");
    CHECK_STR(buf_cstr(&s.thinking), "why");
    /* Every id counts: two for the tags, one to end, a byte each. */
    CHECK(s.ids.len == strlen("\nwhy\n\n\nParis \u6f22\U0001f468\u200d\U0001f469.") + 3);
    CHECK(s.ids.v[0] == FAKE_THINK && s.ids.v[s.ids.len - 1] == FAKE_END);
    CHECK(e.stats.generated_tokens == s.ids.len && e.stats.prompt_tokens == 10);
    CHECK(e.stats.reused_tokens + e.stats.evaluated_tokens == 10);
    CHECK(e.ctx_used == 10 + s.ids.len);
    CHECK(fake.max_steps == 8);
    worker_event_release(&e);
    seen_release(&s);
    CHECK(worker_close(w, 5000));
}

static void test_limit_and_full_context(void)
{
    fake.answers[0] = "0123456789";
    fake.ctx_tokens = 16;
    struct worker *w = start_ready();
    for (uint32_t limit = 1; limit <= 3; limit++) {
        ask(w, "q", limit);
        struct seen s = { 0 };
        struct worker_event e = wait_event(w, EVENT_DONE, &s);
        CHECK(e.state == STATE_LENGTH && e.stats.generated_tokens == limit);
        CHECK(s.text.len == limit);
        worker_event_release(&e);
        seen_release(&s);
    }
    ask(w, "12345678", 0); /* 10 tokens, room for 6 */
    struct worker_event e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_LENGTH && e.stats.generated_tokens == 6 && e.ctx_used == 16);
    worker_event_release(&e);
    ask(w, "this does not fit at all", 0);
    e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_FAILED && strstr(e.text, "does not fit"));
    worker_event_release(&e);
    ask(w, "q", 2);
    e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_LENGTH);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

static void test_stop_while_decoding(void)
{
    fake.answers[0] = "a very long answer that takes its time to be said in full";
    fake.step_s = 0.01;
    struct worker *w = start_ready();
    struct seen s = { 0 };
    ask(w, "q", 0);
    struct worker_event e = wait_event(w, EVENT_TOKENS, NULL);
    worker_event_release(&e);
    uint64_t from = clock_ns();
    worker_stop(w);
    e = wait_event(w, EVENT_DONE, &s);
    CHECK(clock_ns() - from < 300000000u);
    CHECK(e.state == STATE_STOPPED && e.stats.generated_tokens < 40);
    CHECK(e.stats.generated_tokens == s.ids.len + 1);
    worker_event_release(&e);
    seen_release(&s);
    /* The stop is used up: the next answer runs to its end. */
    fake.step_s = 0;
    ask(w, "q", 0);
    e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_COMPLETE);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

/* A stop text over many tokens, in reasoning first: the answer ends before it,
 * and its ids are those of what is left. */
static void test_stop_text(void)
{
    static const char *const whole = "<think>\nEND\n</think>\n\nParis, EN END of it.";
    fake.answers[0] = whole;
    struct worker *w = start_ready();
    struct seen s = { 0 };
    struct err err;
    struct generation g = prompt("capital?", 0);
    CHECK(stop_list_add(&g.stops, " END", &err) == 0);
    worker_generate(w, &g);
    CHECK(g.stops.n == 0);
    struct worker_event e = wait_event(w, EVENT_DONE, &s);
    CHECK(e.state == STATE_COMPLETE && e.at_stop && !e.text);
    CHECK_STR(buf_cstr(&s.text), "Paris, EN");
    CHECK_STR(buf_cstr(&s.thinking), "END");
    /* Two tags, and a byte each. */
    const size_t kept = strlen("\nEND\n\n\nParis, EN") + 2;
    CHECK(e.ids.len == kept && !memcmp(e.ids.v, s.ids.v, kept * sizeof *e.ids.v));
    CHECK(e.ctx_used == 10 + kept && s.ids.len > kept);
    /* The timeline can go back to it: what follows reads its own tokens only. */
    g = prompt("capital?", 0);
    tokens_add(&g.ids, e.ids.v, e.ids.len);
    worker_event_release(&e);
    seen_release(&s);
    struct tokens settled = { 0 };
    tokens_add(&settled, g.ids.v, g.ids.len);
    tokens_push(&g.ids, FAKE_BYTE + '?');
    worker_settle(w, &settled);
    CHECK(!settled.v);
    worker_keep(w, 1); /* its turn comes when that is done */
    e = wait_event(w, EVENT_KEPT, NULL);
    worker_event_release(&e);
    worker_generate(w, &g);
    e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.stats.reused_tokens == 10 + kept - 1 && e.stats.evaluated_tokens == 2);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

/* None comes: the answer is whole, even where it ends in the beginning of one. */
static void test_stop_text_that_does_not_come(void)
{
    fake.answers[0] = "Paris. EN";
    struct worker *w = start_ready();
    struct seen s = { 0 };
    struct err err;
    struct generation g = prompt("capital?", 0);
    CHECK(stop_list_add(&g.stops, "END", &err) == 0);
    worker_generate(w, &g);
    struct worker_event e = wait_event(w, EVENT_DONE, &s);
    CHECK(e.state == STATE_COMPLETE && !e.at_stop && e.ids.len == 0);
    CHECK_STR(buf_cstr(&s.text), "Paris. EN");
    worker_event_release(&e);
    seen_release(&s);
    CHECK(worker_close(w, 5000));
}

static void test_stop_while_prefilling(void)
{
    char text[2001];
    memset(text, 'x', 2000);
    text[2000] = 0;
    fake.prefill_s = 0.001;
    fake.chunk_tokens = 50;
    struct worker *w = start_ready();
    struct seen s = { 0 };
    ask(w, text, 0);
    struct worker_event e = wait_event(w, EVENT_PREFILL, NULL);
    CHECK(e.total == 2001 && e.done < 1000 && e.reused == 0);
    worker_event_release(&e);
    worker_stop(w);
    e = wait_event(w, EVENT_DONE, &s);
    CHECK(e.state == STATE_STOPPED && e.stats.generated_tokens == 0);
    CHECK(e.stats.evaluated_tokens >= 50 && e.stats.evaluated_tokens < 1000);
    CHECK(s.n_tokens == 0);
    uint32_t evaluated = e.stats.evaluated_tokens;
    worker_event_release(&e);
    /* What was read is not read again. */
    ask(w, text, 0);
    e = wait_event(w, EVENT_DONE, &s);
    CHECK(e.state == STATE_COMPLETE && e.stats.reused_tokens == evaluated);
    CHECK(s.n_prefill && s.prefill_done == s.prefill_total && s.reused == evaluated);
    CHECK(fabs(e.stats.prefill_tps - 1000) < 250);
    worker_event_release(&e);
    seen_release(&s);
    CHECK(worker_close(w, 5000));
}

/* 20 tokens a second after a long prompt: the prompt's time is in the time to
 * the first token and not in the rate. */
static void test_figures(void)
{
    fake.answers[0] = "<think>0123456789</think>0123456789";
    fake.step_s = 0.05;
    fake.prefill_s = 0.005;
    struct worker *w = start_ready();
    char text[199] = "";
    memset(text, 'x', 198);
    ask(w, text, 0);
    struct worker_event e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.stats.generated_tokens == 23);
    CHECK(fabs(e.stats.decode_tps - 20) < 1);
    CHECK(e.stats.ttft_ms > 1000 && e.stats.ttft_ms < 1300);
    CHECK(fabs(e.stats.prefill_tps - 200) < 20);
    CHECK(fake.max_steps == 1);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

static void test_failure_and_recovery(void)
{
    fake.answers[0] = "0123456789012345678901234567890123456789";
    fake.decode_fails_at = 3;
    fake.session_fails_at = 2;
    struct worker *w = start_ready();
    struct seen s = { 0 };
    ask(w, "q", 0);
    struct worker_event e = wait_event(w, EVENT_DONE, &s);
    CHECK(e.state == STATE_FAILED && strstr(e.text, "device lost"));
    CHECK(s.text.len == 9 && e.stats.generated_tokens == 9);
    worker_event_release(&e);
    seen_release(&s);
    /* No new session on that engine: a new engine is opened. */
    ask(w, "q", 0);
    e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_COMPLETE);
    CHECK(fake.n_engines == 2 && fake.n_sessions == 3 && fake.n_models == 1);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

/* Texts of tokens lie in the model file: with it gone the answer is no answer. */
static void test_model_cut_short(void)
{
    struct worker *w = start_ready();
    fake.model_cut = true;
    ask(w, "q", 0);
    struct worker_event e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_FAILED && strstr(e.text, "cut short"));
    worker_event_release(&e);
    fake.model_cut = false;
    ask(w, "q", 0);
    e = wait_event(w, EVENT_DONE, NULL);
    CHECK(e.state == STATE_COMPLETE);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

static void test_lost_for_good(void)
{
    fake.decode_fails_at = 1;
    fake.session_fails_at = 2;
    fake.engine_fails_at = 2;
    struct worker *w = start_ready();
    for (int i = 0; i < 3; i++) {
        ask(w, "q", 0);
        struct worker_event e = wait_event(w, EVENT_DONE, NULL);
        CHECK(e.state == (i < 2 ? STATE_FAILED : STATE_COMPLETE));
        CHECK(!(i == 1) || strstr(e.text, "no device"));
        worker_event_release(&e);
    }
    CHECK(worker_close(w, 5000));
}

static void test_unusable(void)
{
    fake.model_fails = "not a GGUF file";
    struct worker *w = start();
    struct worker_event e = wait_event(w, EVENT_UNUSABLE, NULL);
    CHECK_STR(e.text, "fake.gguf: not a GGUF file");
    worker_event_release(&e);
    fake.model_fails = NULL;
    fake.refusal = "no tensors";
    worker_load(w, "b.gguf");
    e = wait_event(w, EVENT_UNUSABLE, NULL);
    CHECK_STR(e.text, "b.gguf: no tensors");
    worker_event_release(&e);
    fake.refusal = NULL;
    fake.engine_fails = "no Vulkan device";
    worker_load(w, "b.gguf");
    e = wait_event(w, EVENT_UNUSABLE, NULL);
    CHECK_STR(e.text, "no Vulkan device");
    worker_event_release(&e);
    fake.engine_fails = NULL;
    worker_load(w, "b.gguf");
    struct seen s = { 0 };
    e = wait_event(w, EVENT_READY, &s);
    CHECK_STR(model_info(e.model)->name, "Fake");
    CHECK(s.n_loading >= 1);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
}

/* Closing while an answer runs and nobody reads its events. */
static void test_close_in_the_middle(void)
{
    fake.answers[0] = "x";
    struct buf text = BUF_INIT;
    for (int i = 0; i < 4000; i++)
        buf_str(&text, "word ");
    fake.answers[0] = text.v;
    fake.ctx_tokens = 30000;
    struct worker *w = start_ready();
    ask(w, "q", 0);
    struct timespec t = { 0, 100000000 };
    nanosleep(&t, NULL);
    CHECK(worker_close(w, 5000));
    w = start();
    CHECK(worker_close(w, 5000));
    struct err err;
    REQUIRE(worker_open(&w, &(struct worker_params){ 0 }, &err) == 0);
    CHECK(worker_close(w, 5000));
    CHECK(worker_close(NULL, 0));
    buf_release(&text);
}

/* A timeline that is being written is not lost to a close that is in a hurry. */
static void test_close_waits_for_writing(void)
{
    char root[64];
    struct worker *w;
    struct err err;
    snprintf(root, sizeof root, "/tmp/tern-worker-%d", (int)getpid());
    fake.write_s = 0.6;
    REQUIRE(worker_open(&w, &(struct worker_params){ .keep_root = root }, &err) == 0);
    worker_load(w, "fake.gguf");
    struct worker_event e = wait_event(w, EVENT_READY, NULL);
    worker_event_release(&e);
    struct generation g = prompt("q", 0);
    g.keep_id = 3;
    worker_generate(w, &g);
    e = wait_event(w, EVENT_DONE, NULL);
    worker_event_release(&e);
    worker_keep(w, 3);
    CHECK(worker_close(w, 100));
    CHECK(fake.n_writes == 1 && access(root, F_OK) == 0);
    REQUIRE(worker_open(&w, &(struct worker_params){ .keep_root = root }, &err) == 0);
    worker_forget(w, 3);
    CHECK(worker_close(w, 5000));
    CHECK(rmdir(root) == 0);
}

/* The timeline of another conversation is not written as this one's, and an
 * answer does not wait for a writing. */
static void test_keeping_gives_way(void)
{
    char root[64], command[96];
    struct worker *w;
    struct err err;
    snprintf(root, sizeof root, "/tmp/tern-worker-%d", (int)getpid());
    fake.write_s = 5;
    REQUIRE(worker_open(&w, &(struct worker_params){ .keep_root = root }, &err) == 0);
    worker_load(w, "fake.gguf");
    struct worker_event e = wait_event(w, EVENT_READY, NULL);
    worker_event_release(&e);
    for (int turn = 0; turn < 2; turn++) {
        uint64_t from = clock_ns();
        struct generation g = prompt("q", 0);
        g.keep_id = 3;
        worker_generate(w, &g);
        if (turn) {
            e = wait_event(w, EVENT_KEPT, NULL);
            CHECK(e.keep_id == 3 && e.written && e.written->cancelled);
            worker_event_release(&e);
        }
        e = wait_event(w, EVENT_DONE, NULL);
        CHECK(e.state == STATE_COMPLETE && clock_ns() - from < 2000000000);
        worker_event_release(&e);
        if (!turn)
            worker_keep(w, 3);
    }
    fake.write_s = 0;
    worker_keep(w, 4);
    e = wait_event(w, EVENT_KEPT, NULL);
    CHECK(e.keep_id == 4 && !e.written);
    worker_event_release(&e);
    worker_keep(w, 3);
    e = wait_event(w, EVENT_KEPT, NULL);
    CHECK(e.keep_id == 3 && e.written && e.written->tokens);
    worker_event_release(&e);
    CHECK(worker_close(w, 5000));
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0);
}

/* A driver call that does not come back must not keep the program. */
static void test_close_gives_up(void)
{
#ifdef __SANITIZE_THREAD__
    SKIP("leaves a thread behind on purpose");
#endif
    fake.load_s = 1;
    struct worker *w = start();
    struct timespec t = { 0, 100000000 };
    nanosleep(&t, NULL);
    uint64_t from = clock_ns();
    CHECK(!worker_close(w, 200));
    CHECK(clock_ns() - from < 600000000u);
    _exit(test_failures ? 1 : 0);
}

TEST_MAIN(T(test_answer), T(test_limit_and_full_context), T(test_stop_while_decoding),
          T(test_stop_text), T(test_stop_text_that_does_not_come),
          T(test_stop_while_prefilling), T(test_figures), T(test_failure_and_recovery),
          T(test_model_cut_short), T(test_lost_for_good), T(test_unusable), T(test_close_in_the_middle),
          T(test_close_waits_for_writing), T(test_keeping_gives_way),
          T(test_close_gives_up))
