/* test_context.c - what a conversation's settings do to prompts and sampling,
 * with a scripted engine and a real store. */
#include "app/prompt.h"
#include "base/mem.h"
#include "tests/app/chat_bench.h"

/* After the requests before it; the worker does one at a time. */
static void wait_idle(struct bench *b)
{
    struct worker_event e = { .kind = EVENT_NOTE };
    worker_keep(b->worker, 999);
    while (e.kind != EVENT_KEPT) {
        struct pollfd fd = { .fd = worker_fd(b->worker), .events = POLLIN };
        REQUIRE(poll(&fd, 1, 10000) == 1);
        if (worker_next(b->worker, &e))
            worker_event_release(&e);
    }
}

static struct tokens bytes_of(const char *text)
{
    struct tokens t = { 0 };
    for (; *text; text++)
        tokens_push(&t, FAKE_BYTE + (unsigned char)*text);
    return t;
}

/* Whether the ids of a text stand one after the other in a prompt. */
static bool holds(const struct tokens *prompt, const char *text)
{
    struct tokens t = bytes_of(text);
    bool found = false;
    for (size_t i = 0; !found && i + t.len <= prompt->len; i++)
        found = !memcmp(prompt->v + i, t.v, t.len * sizeof *t.v);
    tokens_release(&t);
    return found;
}

/* ---- sampling ------------------------------------------------------------ */

static void test_sampler(void)
{
    struct bench b;
    bench_open(&b);
    say(&b, "one");
    CHECK(fake.sampler.temperature == 0.7f && fake.sampler.top_k == 20);
    CHECK(fake.sampler.repeat_penalty == 0 && fake.sampler.presence_penalty == 0);
    struct chat_settings *s = &b.c.settings;
    s->temperature = 0.5;
    s->top_k = 7;
    s->top_p = 0.9;
    s->min_p = 0.1;
    s->repeat_penalty = 1.25;
    s->presence_penalty = -1.5;
    s->frequency_penalty = 0.5;
    say(&b, "two");
    const struct sampler_params *p = &fake.sampler;
    CHECK(p->temperature == 0.5f && p->top_k == 7 && p->top_p == 0.9f &&
          p->min_p == 0.1f);
    CHECK(p->repeat_penalty == 1.25f && p->presence_penalty == -1.5f);
    CHECK(p->frequency_penalty == 0.5f);
    s->presence_penalty = 0; /* off, whatever the model's makers recommend */
    say(&b, "three");
    CHECK(fake.sampler.presence_penalty == 0);
    bench_close(&b);
}

/* ---- stop texts ---------------------------------------------------------- */

/* The next turn sees what the user saw, and reads nothing but itself. */
static void test_stop_text(void)
{
    struct bench b;
    struct err err;
    fake.answers[0] = "Paris. END And so on.";
    fake.answers[1] = "Yes.";
    bench_open(&b);
    CHECK(stop_list_add(&b.c.settings.stops, " END", &err) == 0);
    say(&b, "Capital?");
    CHECK_TEXTS(&b, "Capital?", "Paris.");
    const struct message *m = message_at(&b, 1);
    CHECK(m->state == STATE_COMPLETE && b.c.answer.at_stop);
    CHECK(m->n_ids == 2 + strlen("Paris."));
    wait_idle(&b);
    const size_t settled = fake.prompts[1].len;
    CHECK(fake.n_prompts == 2 && b.c.ctx_used == settled);
    say(&b, "Sure?");
    const struct tokens *p = &fake.prompts[2];
    CHECK(fake.n_prompts == 3 && !holds(p, "END") && holds(p, "Paris."));
    CHECK(begins_with(p, fake.prompts[1].v, settled));
    CHECK(message_at(&b, 3)->stats.reused_tokens == settled - 1);
    CHECK(!b.c.answer.at_stop);
    bench_close(&b);
}

/* ---- reasoning in the context -------------------------------------------- */

static void test_thinking_is_preserved(void)
{
    struct bench b;
    fake.answers[0] = "<think>hmm</think>one";
    fake.answers[1] = "two";
    bench_open(&b);
    say(&b, "first");
    wait_idle(&b);
    CHECK(fake.n_prompts == 1);
    say(&b, "second");
    CHECK(fake.n_prompts == 2 && holds(&fake.prompts[1], "hmm"));
    bench_close(&b);
}

/* Left out, and the shorter context read while nobody waits. */
static void test_thinking_is_left_out(void)
{
    struct bench b;
    fake.answers[0] = "<think>hmm</think>one";
    fake.answers[1] = "two";
    bench_open(&b);
    b.c.settings.preserve_thinking = 0;
    say(&b, "first");
    CHECK_STR(message_at(&b, 1)->thinking, "hmm");
    wait_idle(&b);
    const size_t settled = fake.prompts[1].len;
    CHECK(fake.n_prompts == 2 && !holds(&fake.prompts[1], "hmm"));
    CHECK(holds(&fake.prompts[1], "one") && b.c.ctx_used == settled);
    say(&b, "second");
    CHECK(fake.n_prompts == 3 && !holds(&fake.prompts[2], "hmm"));
    CHECK(begins_with(&fake.prompts[2], fake.prompts[1].v, settled));
    CHECK(message_at(&b, 3)->stats.reused_tokens == settled - 1);
    /* The second answer did not reason: nothing is to be read anew. */
    wait_idle(&b);
    CHECK(fake.n_prompts == 3);
    bench_close(&b);
}

/* A message of another tokenizer, or an imported one, has no ids that hold: its
 * reasoning goes into the prompt as text. */
static void test_turns_as_text(void)
{
    struct model *m;
    struct err err;
    char answer[] = "one", thinking[] = "hmm", user[] = "first", other[] = "other";
    int32_t ids[] = { 1, 2, 3 };
    const struct message path[] = {
        { .role = ROLE_USER, .text = user, .text_bytes = 5 },
        { .role = ROLE_ASSISTANT,
          .text = answer,
          .text_bytes = 3,
          .thinking = thinking,
          .thinking_bytes = 3,
          .ids = ids,
          .n_ids = 3,
          .ids_model = other },
    };
    REQUIRE(model_open(&m, "fake", &err) == 0);
    for (int strip = 0; strip < 2; strip++) {
        struct prompt p;
        const struct prompt_style style = { .strip_thinking = strip };
        REQUIRE(prompt_compose(&p, m, path, 2, &style, &err) == 0);
        CHECK(holds(&p.ids, "hmm") == !strip && holds(&p.ids, "one"));
        prompt_release(&p);
    }
    model_close(m);
}

/* Where effort is part of the system turn, that turn is written anew. */
static void test_effort(void)
{
    struct bench b;
    fake.has_effort = true;
    bench_open(&b);
    b.c.settings.system = mem_strdup("Be brief.");
    say(&b, "first");
    CHECK(fake.effort == EFFORT_DEFAULT && holds(&fake.prompts[0], "Be brief."));
    CHECK(!holds(&fake.prompts[0], "effort"));
    b.c.settings.effort = EFFORT_LOW;
    say(&b, "second");
    CHECK(fake.effort == EFFORT_LOW && holds(&fake.prompts[1], "effort 1 Be brief."));
    bench_close(&b);
}

TEST_MAIN(T(test_sampler), T(test_stop_text), T(test_thinking_is_preserved),
          T(test_thinking_is_left_out), T(test_turns_as_text), T(test_effort))
