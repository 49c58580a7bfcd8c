/* bench.c - `tern bench`: rates of prefill and decode at a depth of context.
 * What is timed is whole calls of the session, as a chat makes them. Each test
 * runs once, and then for a second, before the runs that are measured: idle
 * devices clock down, and need as long to come back. */
#include "app/command.h"

#include "base/clock.h"
#include "base/mem.h"

#include "app/bench_profile.h"
#include "app/json.h"
#include "app/open.h"
#include "app/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT_TOKENS = 512, NEW_TOKENS = 128, RUNS = 3, RUNS_MAX = 1000, STEPS = 8 };

struct bench {
    struct opened o;
    uint32_t prompt, count, depth, runs;
    int32_t *ids; /* [depth + prompt + 1], arbitrary but always the same */
};

struct result {
    char test[32];
    double tps, tps_min, tps_max, ttft_ms; /* medians of the runs; ttft 0: none */
};

static double seconds_since(uint64_t from)
{
    return (double)(clock_ns() - from) * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Sorts v. */
static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void ids_fill(struct bench *b)
{
    uint64_t x = 88172645463325252u; /* xorshift64, from its author's example */
    size_t n = (size_t)b->depth + b->prompt + 1;
    uint32_t n_vocab = model_info(b->o.model)->n_vocab;
    b->ids = mem_array(n, sizeof *b->ids);
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        b->ids[i] = (int32_t)(x % n_vocab);
    }
}

/* Makes the first n tokens evaluated, with one more pending. */
static int sync_to(struct bench *b, size_t n, struct err *err)
{
    const size_t mark = b->depth;
    const struct sync_params p = { .marks = &mark, .n_marks = b->depth > 0 };
    struct sync_result result;
    return session_sync(b->o.session, b->ids, n + 1, &p, &result, err);
}

static int decode_one(struct bench *b, struct err *err)
{
    int32_t ids[STEPS];
    size_t n;
    return session_decode(b->o.session, 1, &(struct sampler_params){ 0 }, ids, &n, err);
}

/* Back to the depth: to nothing by another first token, or to its snapshot. */
static int rewind_to_depth(struct bench *b, struct err *err)
{
    int32_t first = b->ids[0];
    struct sync_result result;
    if (b->depth)
        return sync_to(b, b->depth, err);
    first = first ? 0 : 1;
    return session_sync(b->o.session, &first, 1, &(struct sync_params){ 0 }, &result,
                        err);
}

static int prefill_run(struct bench *b, double *tps, double *ttft_ms, struct err *err)
{
    if (rewind_to_depth(b, err) < 0)
        return -1;
    uint64_t from = clock_ns();
    if (sync_to(b, (size_t)b->depth + b->prompt, err) < 0)
        return -1;
    *tps = b->prompt / seconds_since(from);
    if (decode_one(b, err) < 0)
        return -1;
    *ttft_ms = seconds_since(from) * 1e3;
    return 0;
}

static int decode_run(struct bench *b, double *tps, struct err *err)
{
    const struct sampler_params greedy = { 0 };
    int32_t ids[STEPS];
    uint32_t done = 0;
    if (rewind_to_depth(b, err) < 0)
        return -1;
    uint64_t from = clock_ns();
    while (done < b->count) {
        size_t n;
        uint32_t steps = b->count - done < STEPS ? b->count - done : STEPS;
        if (session_decode(b->o.session, steps, &greedy, ids, &n, err) < 0)
            return -1;
        done += (uint32_t)n;
    }
    *tps = done / seconds_since(from);
    return 0;
}

static int run_once(struct bench *b, bool prefill, struct err *err)
{
    double tps, ttft_ms;
    return prefill ? prefill_run(b, &tps, &ttft_ms, err) : decode_run(b, &tps, err);
}

/* The first run compiles the kernels; it does not count as time. */
static int warm_up(struct bench *b, bool prefill, struct err *err)
{
    if (run_once(b, prefill, err) < 0)
        return -1;
    for (uint64_t from = clock_ns(); seconds_since(from) < 1;)
        if (run_once(b, prefill, err) < 0)
            return -1;
    return 0;
}

static int measure(struct bench *b, bool prefill, struct result *r, struct err *err)
{
    double *tps = mem_zalloc(b->runs * sizeof *tps);
    double *ttft = mem_zalloc(b->runs * sizeof *ttft);
    int rc = warm_up(b, prefill, err);
    for (uint32_t i = 0; rc == 0 && i < b->runs; i++)
        rc = prefill ? prefill_run(b, &tps[i], &ttft[i], err)
                     : decode_run(b, &tps[i], err);
    if (rc == 0) {
        *r = (struct result){ .tps = median(tps, b->runs),
                              .tps_min = tps[0],
                              .tps_max = tps[b->runs - 1],
                              .ttft_ms = prefill ? median(ttft, b->runs) : 0 };
        snprintf(r->test, sizeof r->test, "%s%u", prefill ? "pp" : "tg",
                 prefill ? b->prompt : b->count);
    }
    free(ttft);
    free(tps);
    return rc;
}

/* ---- printing ------------------------------------------------------------ */

static void print_json(const struct bench *b, const struct result *r, size_t n)
{
    struct engine_info engine;
    engine_info(b->o.engine, &engine);
    struct buf text = BUF_INIT;
    struct json_writer w = { .out = &text };
    json_open(&w, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(&w, '{');
        json_key(&w, "test");
        json_str(&w, r[i].test);
        json_key(&w, "depth");
        json_int(&w, b->depth);
        json_key(&w, "tps");
        json_fixed(&w, r[i].tps, 2);
        json_key(&w, "tps_min");
        json_fixed(&w, r[i].tps_min, 2);
        json_key(&w, "tps_max");
        json_fixed(&w, r[i].tps_max, 2);
        if (r[i].ttft_ms > 0) {
            json_key(&w, "ttft_ms");
            json_fixed(&w, r[i].ttft_ms, 3);
        }
        json_key(&w, "runs");
        json_int(&w, b->runs);
        json_key(&w, "math");
        json_str(&w, engine.math);
        json_key(&w, "device");
        json_str(&w, engine.device.name);
        json_key(&w, "model");
        json_str(&w, model_info(b->o.model)->name);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    out_printf("%s\n", buf_cstr(&text));
    buf_release(&text);
}

static void print_text(const struct bench *b, const struct result *r, size_t n)
{
    const struct model_info *info = model_info(b->o.model);
    struct engine_info engine;
    engine_info(b->o.engine, &engine);
    struct buf line = BUF_INIT;
    buf_printf(&line, "%s (%s) on %s, %s products", info->name, info->quantisation,
               engine.device.name, engine.math);
    out_line(buf_cstr(&line));
    buf_release(&line);
    if (engine.note && *engine.note)
        out_line(engine.note);
    for (size_t i = 0; i < n; i++) {
        out_printf("%-8s depth %-6u %10.2f tokens/s  (%.2f to %.2f, %u runs)", r[i].test,
                   b->depth, r[i].tps, r[i].tps_min, r[i].tps_max, b->runs);
        if (r[i].ttft_ms > 0)
            out_printf("  first token after %.1f ms", r[i].ttft_ms);
        out_printf("\n");
    }
}

/* ---- profile ------------------------------------------------------------- */

/* Seconds of one decoded token by itself. */
static int time_token(struct bench *b, double *seconds, struct err *err)
{
    uint64_t from = clock_ns();
    if (decode_one(b, err) < 0)
        return -1;
    *seconds = seconds_since(from);
    return 0;
}

/* In a session of its own, since timestamps between the steps cost time. A chunk
 * is the part of the prompt that the session evaluates at once. */
static int profile(struct bench *b, uint32_t room, struct err *err)
{
    const struct session_params p = { .ctx_tokens = room, .profile = true };
    double seconds = 0, tps = 1, ttft_ms;
    session_close(b->o.session);
    b->o.session = NULL;
    if (session_open(&b->o.session, b->o.engine, &p, err) < 0)
        return -1;
    uint32_t chunk = session_chunk_tokens(b->o.session);
    if (b->prompt > chunk)
        b->prompt = chunk;
    char title[48];
    snprintf(title, sizeof title, "prefill of %u tokens", b->prompt);
    if (b->prompt &&
        (warm_up(b, true, err) < 0 || prefill_run(b, &tps, &ttft_ms, err) < 0))
        return -1;
    if (b->prompt && bench_profile_print(b->o.session, PROFILE_PREFILL, title,
                                         b->prompt / tps, err) < 0)
        return -1;
    if (!b->count)
        return 0;
    if (warm_up(b, false, err) < 0 || rewind_to_depth(b, err) < 0 ||
        time_token(b, &seconds, err) < 0 || time_token(b, &seconds, err) < 0)
        return -1;
    return bench_profile_print(b->o.session, PROFILE_DECODE, "one decoded token", seconds,
                               err);
}

static uint32_t or_default(int64_t v, uint32_t def)
{
    return v < 0 ? def : (uint32_t)v;
}

int cmd_bench(struct env *env, struct err *err)
{
    const struct options *o = &env->opt;
    struct bench b = {
        .prompt = or_default(o->prompt, PROMPT_TOKENS),
        .count = or_default(o->count, NEW_TOKENS),
        .depth = or_default(o->depth, 0),
        .runs = or_default(o->runs, RUNS),
    };
    struct result results[2] = { 0 };
    size_t n = 0;
    int rc = -1;
    uint64_t room = (uint64_t)b.depth + (b.prompt > b.count ? b.prompt : b.count) + 2;
    if (b.runs > RUNS_MAX)
        return err_set(err, "-r is at most %d", RUNS_MAX);
    if (o->profile && o->json)
        return err_set(err, "--profile prints tables, not JSON");
    if (!b.runs || (!b.prompt && !b.count))
        return err_set(err,
                       "there is nothing to measure: -r, and -p or -n, must be over 0");
    if (room > UINT32_MAX)
        return err_set(err, "%llu tokens are more than any context holds",
                       (unsigned long long)room);
    if (opened_open(&b.o, env, OPEN_SESSION, (uint32_t)room, err) < 0)
        return -1;
    ids_fill(&b);
    if ((b.prompt && measure(&b, true, &results[n++], err) < 0) ||
        (b.count && measure(&b, false, &results[n++], err) < 0))
        goto out;
    if (o->json)
        print_json(&b, results, n);
    else
        print_text(&b, results, n);
    if (o->profile && profile(&b, (uint32_t)room, err) < 0)
        goto out;
    rc = EXIT_OK;
out:
    opened_close(&b.o);
    free(b.ids);
    return rc;
}
