/* test_device_faults.c - a whole life of an engine (model, weights, a prompt,
 * an answer, its timeline to disk and back) with an operation failing in each of
 * its stages: one clear reason, nothing left behind, and the next life is as if
 * nothing had been. FAULTS=all tries every operation of every stage. */
#define TEST_SECONDS 400
#include "tests/engine/timeline.h"

#include "base/fault.h"

enum { PROMPT = 40, NEW = 6 };
enum stage { OPENING, PREFILL, DECODE, WRITING, READING, AGAIN, STAGES };

/* The nth operation of a kind from a stage on. */
struct fault {
    enum fault_kind kind;
    enum stage stage;
    unsigned n;
};

struct life {
    const char *dir;
    const struct tokens *prompt;
    struct fault fault;
    struct model *model;
    struct engine *engine;
    struct session *session;
    int32_t ids[NEW];
};

static void reached(const struct life *l, enum stage stage)
{
    if (l->fault.n && l->fault.stage == stage)
        fault_arm(l->fault.kind, l->fault.n);
}

static void life_end(struct life *l)
{
    struct engine_info info;
    if (l->engine) {
        session_close(l->session);
        engine_info(l->engine, &info);
        CHECK(info.validation_errors == 0);
    }
    engine_close(l->engine);
    model_close(l->model);
}

static int prefill(struct life *l, struct err *err)
{
    return session_sync(l->session, l->prompt->v, l->prompt->len, NULL, NULL, err);
}

static int decode(struct life *l, struct err *err)
{
    const struct sampler_params greedy = { 0 };
    size_t n;
    for (size_t made = 0; made < NEW; made += n)
        if (session_decode(l->session, NEW - (uint32_t)made, &greedy, l->ids + made, &n,
                           err) < 0)
            return -1;
    return 0;
}

static int put_away(struct life *l, struct err *err)
{
    struct session_write_result w;
    return session_write(l->session, &(struct session_write_params){ .dir = l->dir }, &w,
                         err);
}

/* From the disk, after another conversation. */
static int fetch(struct life *l, struct err *err)
{
    const int32_t other[] = { 4, 5 }, *ids;
    struct session_read_result r = { 0 };
    struct tokens t = { 0 };
    size_t n = session_tokens(l->session, &ids);
    tokens_add(&t, ids, n);
    const struct session_read_params p = { .dir = l->dir, .ids = t.v, .n = n };
    int rc = session_sync(l->session, other, 2, NULL, NULL, err);
    if (rc == 0)
        rc = session_read(l->session, &p, &r, err);
    if (rc == 0)
        CHECK(r.tokens == n - 1 || l->fault.kind == FAULT_OPEN);
    tokens_release(&t);
    return rc;
}

static int life_open(struct life *l, struct err *err)
{
    const struct engine_params p = { .math = MATH_FLOAT, .validate = drivers_validate() };
    const struct session_params sp = { .ctx_tokens = 128, .chunk_tokens = 16 };
    if (model_open(&l->model, MODEL, err) < 0 ||
        engine_open(&l->engine, l->model, &p, err) < 0)
        return -1;
    return session_open(&l->session, l->engine, &sp, err);
}

static int life_again(struct life *l, struct err *err)
{
    return prefill(l, err) < 0 ? -1 : decode(l, err);
}

static int life_run(struct life *l, struct err *err)
{
    static int (*const stages[STAGES])(struct life *,
                                       struct err *) = { life_open, prefill, decode,
                                                         put_away,  fetch,   life_again };
    int rc = 0;
    for (int i = 0; rc == 0 && i < STAGES; i++) {
        reached(l, (enum stage)i);
        rc = stages[i](l, err);
    }
    return rc;
}

/* Whether it came to the fault. */
static bool life_with_fault(struct fault fault, const struct tokens *t,
                            const int32_t *want)
{
    struct folder f = folder_make();
    struct err err = { "" };
    struct life l = { .dir = f.dir, .prompt = t, .fault = fault };
    int rc = life_run(&l, &err);
    bool hit = fault_disarm(fault.kind);
    if (rc < 0) {
        if (!hit || strchr(err.text, '\n'))
            printf("# kind %d, stage %d, operation %u: %s\n", fault.kind, fault.stage,
                   fault.n, err.text);
        CHECK(hit && strlen(err.text) > 10 && !strchr(err.text, '\n'));
    } else {
        /* A file that cannot be read costs time, never the answer. */
        CHECK(!want || !memcmp(l.ids, want, sizeof l.ids));
        CHECK(!hit || fault.kind < FAULT_MAP);
    }
    life_end(&l);
    folder_remove(&f);
    return hit;
}

static const struct fault faults[] = {
    { FAULT_OPEN, OPENING, 1 },          { FAULT_OPEN, WRITING, 1 },
    { FAULT_OPEN, READING, 1 },          { FAULT_MAP, OPENING, 1 },
    { FAULT_DEVICE_ALLOC, OPENING, 1 },  { FAULT_DEVICE_ALLOC, OPENING, 5 },
    { FAULT_DEVICE_ALLOC, OPENING, 20 }, { FAULT_DEVICE_SUBMIT, OPENING, 1 },
    { FAULT_DEVICE_SUBMIT, OPENING, 9 }, { FAULT_DEVICE_SUBMIT, OPENING, 40 },
    { FAULT_DEVICE_SUBMIT, PREFILL, 2 }, { FAULT_DEVICE_SUBMIT, WRITING, 1 },
    { FAULT_DEVICE_SUBMIT, READING, 3 }, { FAULT_DEVICE_WAIT, OPENING, 3 },
    { FAULT_DEVICE_WAIT, PREFILL, 2 },   { FAULT_DEVICE_WAIT, DECODE, 1 },
    { FAULT_DEVICE_WAIT, WRITING, 1 },   { FAULT_DEVICE_LOST, OPENING, 2 },
    { FAULT_DEVICE_LOST, PREFILL, 2 },   { FAULT_DEVICE_LOST, DECODE, 1 },
    { FAULT_DEVICE_LOST, WRITING, 2 },   { FAULT_DEVICE_LOST, READING, 3 },
};

static unsigned try_some(const struct tokens *t, const int32_t *want)
{
    unsigned fired = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        bool hit = life_with_fault(faults[i], t, want);
        if (!hit)
            printf("# row %zu did not come to its fault\n", i);
        CHECK(hit);
        fired += hit;
    }
    return fired;
}

static unsigned try_all(const struct tokens *t, const int32_t *want)
{
    unsigned fired = 0;
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        for (int stage = OPENING; stage < STAGES; stage++) {
            struct fault f = { (enum fault_kind)kind, (enum stage)stage, 1 };
            for (; life_with_fault(f, t, want); f.n++)
                fired++;
        }
    return fired;
}

/* After each of them the next life has the same answer. */
static void test_failing_operations(void)
{
    const char *all = getenv("FAULTS");
    struct tokens t = { 0 };
    struct folder f = folder_make();
    struct err err = { "" };
    ids_add(&t, PROMPT, 9);
    struct life l = { .dir = f.dir, .prompt = &t };
    OK(life_run(&l, &err), &err);
    life_end(&l);
    folder_remove(&f);
    bool every = all && !strcmp(all, "all");
    unsigned fired = every ? try_all(&t, l.ids) : try_some(&t, l.ids);
    CHECK(fired >= sizeof faults / sizeof *faults);
    tokens_release(&t);
}

TEST_MAIN(T(test_failing_operations))
