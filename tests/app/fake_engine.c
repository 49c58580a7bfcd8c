/* fake_engine.c - the scripted engine of fake_engine.h. The session keeps the
 * contract of the real one: longest common prefix, marks as the only places to
 * go back to, cancelling between chunks, a full context as an error. */
#include "tests/app/fake_engine.h"

#include "base/clock.h"
#include "base/file.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct fake_script fake;

struct model {
    struct model_info info;
    char name[64];
};

struct engine {
    const struct model *model;
};

struct session {
    uint32_t ctx_tokens;
    struct tokens ids;
    size_t evaluated;
    size_t marks[64];
    size_t n_marks;
    const char *answer; /* what is left of it */
    uint64_t due_ns;    /* when the next token comes */
};

static void wait_s(double s)
{
    struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };
    if (s > 0)
        nanosleep(&t, NULL);
}

/* Tokens come on a schedule, so that a busy machine does not slow them down. */
static void wait_step(uint64_t *due_ns)
{
    *due_ns += (uint64_t)(fake.step_s * 1e9);
    uint64_t now = clock_ns();
    if (*due_ns > now)
        wait_s((double)(*due_ns - now) * 1e-9);
}

/* ---- model --------------------------------------------------------------- */

int model_open(struct model **out, const char *path, struct err *err)
{
    *out = NULL;
    fake.n_models++;
    wait_s(fake.load_s);
    if (fake.model_fails)
        return err_set(err, "%s: %s", path, fake.model_fails);
    if (fake.named_by_file && strstr(path, "bad"))
        return err_set(err, "%s: not a GGUF file", path);
    struct model *m = mem_zalloc(sizeof *m);
    m->info = (struct model_info){
        .path = path,
        .architecture = "fake",
        .name = fake.model_name ? fake.model_name : "Fake",
        .family = "chatml",
        .quantisation = "F32 100%",
        .refusal = fake.refusal,
        .has_thinking = true,
        .thinking_default = fake.opens_thinking,
        .effort = fake.has_effort ? EFFORT_XHIGH : EFFORT_DEFAULT,
        .n_vocab = FAKE_VOCAB,
        .ctx_tokens = fake.ctx_tokens ? fake.ctx_tokens : 4096,
        .tokenizer_id = "fake-bytes",
        .kv_bytes_per_token = fake.kv_bytes,
        .state_bytes = fake.state_bytes,
    };
    if (fake.named_by_file) {
        const char *slash = strrchr(path, '/');
        snprintf(m->name, sizeof m->name, "%s", slash ? slash + 1 : path);
        m->name[strcspn(m->name, ".")] = 0;
        m->info.name = m->name;
        if (strstr(m->name, "odd"))
            m->info.refusal = "an architecture that is not known";
    }
    *out = m;
    return 0;
}

void model_close(struct model *m)
{
    free(m);
}

int model_check(const struct model *m, struct err *err)
{
    (void)m;
    return fake.model_cut ? err_set(err, "fake.gguf: cut short") : 0;
}

const struct model_info *model_info(const struct model *m)
{
    return &m->info;
}

void model_memory(const struct model *m, uint32_t ctx_tokens, struct model_memory *out)
{
    *out = (struct model_memory){ .kv = (uint64_t)ctx_tokens * m->info.kv_bytes_per_token,
                                  .state = m->info.state_bytes };
}

void model_tokenize(const struct model *m, const char *text, size_t bytes, unsigned flags,
                    struct tokens *out)
{
    (void)m;
    (void)flags;
    for (size_t i = 0; i < bytes; i++)
        tokens_push(out, FAKE_BYTE + (unsigned char)text[i]);
}

void model_detokenize(const struct model *m, int32_t id, unsigned flags, struct buf *out)
{
    (void)m;
    (void)flags;
    if (id >= FAKE_BYTE)
        buf_char(out, (char)(id - FAKE_BYTE));
}

bool model_is_end(const struct model *m, int32_t id)
{
    (void)m;
    return id == FAKE_END || id == FAKE_END_OF_TEXT;
}

int32_t model_think_begin(const struct model *m)
{
    (void)m;
    return FAKE_THINK;
}

int32_t model_think_end(const struct model *m)
{
    (void)m;
    return FAKE_END_THINK;
}

static void header_add(enum role role, struct tokens *out)
{
    tokens_push(out, FAKE_START);
    tokens_push(out, FAKE_SYSTEM + (int32_t)role);
}

/* As the real template does: a turn that was cut short is ended. */
static void turn_close(struct tokens *out)
{
    bool newline = out->len > 1 && out->v[out->len - 1] == FAKE_BYTE + '\n' &&
                   out->v[out->len - 2] == FAKE_END;
    if (newline)
        return;
    if (out->v[out->len - 1] != FAKE_END)
        tokens_push(out, FAKE_END);
    tokens_push(out, FAKE_BYTE + '\n');
}

/* What stands before the text of a turn. */
static void preamble_add(const struct model *m, const struct turn *t, enum effort effort,
                         struct tokens *out)
{
    char text[32];
    if (t->role == ROLE_SYSTEM && fake.has_effort && effort) {
        snprintf(text, sizeof text, "effort %d ", (int)effort);
        model_tokenize(m, text, strlen(text), 0, out);
    }
    if (t->thinking_bytes) {
        tokens_push(out, FAKE_THINK);
        model_tokenize(m, t->thinking, t->thinking_bytes, 0, out);
        tokens_push(out, FAKE_END_THINK);
    }
}

int model_render(const struct model *m, const struct turn *turns, size_t n_turns,
                 const struct render_params *p, struct tokens *out, size_t *starts,
                 struct err *err)
{
    (void)err;
    fake.effort = p->effort;
    for (size_t i = 0; i < n_turns; i++) {
        if (starts)
            starts[i] = out->len;
        if (turns[i].ids) {
            tokens_add(out, turns[i].ids, turns[i].n_ids);
        } else {
            header_add(turns[i].role, out);
            preamble_add(m, &turns[i], p->effort, out);
            model_tokenize(m, turns[i].text, turns[i].text_bytes, 0, out);
            tokens_push(out, FAKE_END);
        }
        turn_close(out);
    }
    if (starts)
        starts[n_turns] = out->len;
    if (p->generate) {
        header_add(ROLE_ASSISTANT, out);
        if (p->thinking || fake.opens_thinking)
            tokens_push(out, FAKE_THINK);
    }
    return 0;
}

void model_sampling(const struct model *m, bool thinking, struct sampler_params *out)
{
    (void)m;
    *out = (struct sampler_params){ .temperature = thinking ? 1.0f : 0.7f,
                                    .top_k = 20,
                                    .top_p = 0.8f };
}

/* ---- engine -------------------------------------------------------------- */

int device_list(struct device_info *out, size_t max, size_t *n, int *chosen,
                struct err *err)
{
    (void)err;
    *n = 1;
    *chosen = 0;
    if (max)
        out[0] =
            (struct device_info){ .name = "fake device", .kind = "cpu", .usable = true };
    return 0;
}

int device_bandwidth(int device, double *bytes_per_second, struct err *err)
{
    (void)bytes_per_second;
    return err_set(err, "device %d has no memory", device);
}

int device_test(int device, device_test_fn *each, void *arg, struct err *err)
{
    (void)device;
    (void)err;
    if (each)
        each(arg, "fake", 0, 0);
    return 0;
}

int engine_open(struct engine **out, const struct model *m, const struct engine_params *p,
                struct err *err)
{
    *out = NULL;
    fake.n_engines++;
    if (fake.engine_fails || fake.n_engines == fake.engine_fails_at)
        return err_set(err, "%s", fake.engine_fails ? fake.engine_fails : "no device");
    for (uint64_t i = 0; i <= 4 && p->progress; i++)
        p->progress(p->arg, i * 25, 100);
    struct engine *e = mem_zalloc(sizeof *e);
    e->model = m;
    *out = e;
    return 0;
}

void engine_close(struct engine *e)
{
    free(e);
}

void engine_info(const struct engine *e, struct engine_info *out)
{
    (void)e;
    *out = (struct engine_info){ .math = "float", .note = "" };
    snprintf(out->device.name, sizeof out->device.name, "fake device");
}

/* ---- session ------------------------------------------------------------- */

int session_open(struct session **out, struct engine *e, const struct session_params *p,
                 struct err *err)
{
    *out = NULL;
    fake.n_sessions++;
    if (fake.n_sessions == fake.session_fails_at)
        return err_set(err, "session: device lost");
    struct session *s = mem_zalloc(sizeof *s);
    s->ctx_tokens = p->ctx_tokens ? p->ctx_tokens : e->model->info.ctx_tokens;
    *out = s;
    return 0;
}

void session_close(struct session *s)
{
    if (s)
        tokens_release(&s->ids);
    free(s);
}

uint32_t session_ctx_tokens(const struct session *s)
{
    return s->ctx_tokens;
}

uint32_t session_chunk_tokens(const struct session *s)
{
    (void)s;
    return fake.chunk_tokens ? fake.chunk_tokens : 64;
}

static void prompt_note(const int32_t *ids, size_t n)
{
    if (fake.n_prompts < FAKE_PROMPTS)
        tokens_add(&fake.prompts[fake.n_prompts], ids, n);
    fake.n_prompts++;
}

static const char *answer_now(void)
{
    size_t n = 0;
    while (n < sizeof fake.answers / sizeof *fake.answers && fake.answers[n])
        n++;
    if (!n)
        return "ok";
    return fake.answers[fake.n_prompts - 1 < n ? fake.n_prompts - 1 : n - 1];
}

/* fake-N.state holds the ids of a timeline of N tokens and zeros up to its size,
 * fake.kv is as large as its rows would be. */
static char *timeline_path(const char *dir, size_t tokens)
{
    struct buf b = BUF_INIT;
    if (tokens)
        buf_printf(&b, "%s/fake-%zu.state", dir, tokens);
    else
        buf_printf(&b, "%s/fake.kv", dir);
    return buf_detach(&b);
}

static int timeline_write(const char *dir, size_t tokens, const void *bytes, size_t n,
                          uint64_t size, struct err *err)
{
    char *path = timeline_path(dir, tokens);
    int rc = file_write_atomic(path, bytes, n, err);
    if (rc == 0 && size > n && truncate(path, (off_t)size) < 0)
        rc = err_set(err, "cannot grow %s", path);
    free(path);
    return rc;
}

int session_write(struct session *s, const struct session_write_params *p,
                  struct session_write_result *result, struct err *err)
{
    const size_t n = s->evaluated, ids_bytes = n * sizeof *s->ids.v;
    *result = (struct session_write_result){ .kv_name = "fake.kv" };
    snprintf(result->state_name, sizeof result->state_name, "fake-%zu.state", n);
    fake.n_writes++;
    for (double waited = 0; waited < fake.write_s; waited += 0.01) {
        wait_s(0.01);
        result->cancelled = p->cancel && atomic_load(p->cancel);
        if (result->cancelled)
            return 0;
    }
    result->kv_bytes = 1 + n * fake.kv_bytes;
    result->state_bytes = ids_bytes > fake.state_bytes ? ids_bytes : fake.state_bytes;
    if (file_mkdirs(p->dir, 0700, err) < 0 ||
        timeline_write(p->dir, 0, "k", 1, result->kv_bytes, err) < 0 ||
        timeline_write(p->dir, n, s->ids.v, ids_bytes, result->state_bytes, err) < 0)
        return -1;
    result->tokens = n;
    return 0;
}

size_t session_reusable(const struct session *s, const int32_t *ids, size_t n)
{
    size_t common = 0, best = 0;
    while (common < s->evaluated && common + 1 < n && s->ids.v[common] == ids[common])
        common++;
    if (common == s->evaluated)
        return common;
    for (size_t i = 0; i < s->n_marks; i++)
        if (s->marks[i] <= common)
            best = s->marks[i];
    return best;
}

int session_read(struct session *s, const struct session_read_params *p,
                 struct session_read_result *result, struct err *err)
{
    (void)err;
    *result = (struct session_read_result){ 0 };
    const size_t above = session_reusable(s, p->ids, p->n);
    for (size_t n = p->n - 1; n > above && !result->tokens; n--) {
        char *path = timeline_path(p->dir, n);
        struct buf b = BUF_INIT;
        bool there = file_read_all(path, 1 << 20, &b, NULL) == 0;
        if (there && !memcmp(b.v, "bad!", 4)) {
            unlink(path);
            if (!result->n_removed++)
                err_set(&result->reason, "%s is bad", path);
        } else if (there && !memcmp(b.v, p->ids, n * sizeof *p->ids)) {
            s->ids.len = 0;
            tokens_add(&s->ids, p->ids, n);
            s->evaluated = result->tokens = n;
            s->n_marks = 0;
        }
        buf_release(&b);
        free(path);
    }
    atomic_fetch_add(&fake.n_reads, result->tokens > 0);
    return 0;
}

static void rewind_to(struct session *s, size_t keep)
{
    if (keep >= s->evaluated)
        return;
    while (s->n_marks && s->marks[s->n_marks - 1] > keep)
        s->n_marks--;
    s->evaluated = s->n_marks ? s->marks[s->n_marks - 1] : 0;
}

static void mark_keep(struct session *s, const struct sync_params *p)
{
    for (size_t i = 0; i < p->n_marks; i++)
        if (p->marks[i] == s->evaluated && s->evaluated && s->n_marks < 64 &&
            (!s->n_marks || s->marks[s->n_marks - 1] < s->evaluated))
            s->marks[s->n_marks++] = s->evaluated;
}

int session_sync(struct session *s, const int32_t *ids, size_t n,
                 const struct sync_params *p, struct sync_result *result, struct err *err)
{
    *result = (struct sync_result){ 0 };
    uint64_t from = clock_ns();
    if (!n || n > s->ctx_tokens)
        return err_set(err, "a prompt of %zu tokens does not fit", n);
    prompt_note(ids, n);
    s->answer = answer_now();
    size_t keep = 0;
    while (keep < s->ids.len && keep < n - 1 && s->ids.v[keep] == ids[keep])
        keep++;
    rewind_to(s, keep);
    s->ids.len = s->evaluated;
    result->reused = s->evaluated;
    mark_keep(s, p);
    const size_t start = s->evaluated, chunk = session_chunk_tokens(s);
    while (s->evaluated < n - 1) {
        if (p->cancel && atomic_load(p->cancel)) {
            result->cancelled = true;
            break;
        }
        size_t stop = s->evaluated + chunk < n - 1 ? s->evaluated + chunk : n - 1;
        for (size_t i = 0; i < p->n_marks; i++)
            if (p->marks[i] > s->evaluated && p->marks[i] < stop)
                stop = p->marks[i];
        wait_s(fake.prefill_s * (double)(stop - s->evaluated));
        tokens_add(&s->ids, ids + s->evaluated, stop - s->evaluated);
        s->evaluated = stop;
        mark_keep(s, p);
        if (p->progress)
            p->progress(p->arg, s->evaluated - start, n - 1 - start);
    }
    if (!result->cancelled)
        tokens_push(&s->ids, ids[n - 1]);
    result->evaluated = s->evaluated - start;
    s->due_ns = clock_ns();
    result->seconds = (double)(s->due_ns - from) * 1e-9;
    return 0;
}

static int32_t token_next(struct session *s)
{
    if (!*s->answer)
        return FAKE_END;
    if (!strncmp(s->answer, "<think>", 7)) {
        s->answer += 7;
        return FAKE_THINK;
    }
    if (!strncmp(s->answer, "</think>", 8)) {
        s->answer += 8;
        return FAKE_END_THINK;
    }
    return FAKE_BYTE + (unsigned char)*s->answer++;
}

int session_decode(struct session *s, uint32_t steps, const struct sampler_params *p,
                   int32_t *ids, size_t *n_ids, struct err *err)
{
    *n_ids = 0;
    fake.sampler = *p;
    if (steps > fake.max_steps)
        fake.max_steps = steps;
    if (++fake.n_decodes == fake.decode_fails_at)
        return err_set(err, "decode: device lost");
    if (s->ids.len + steps > s->ctx_tokens)
        return err_set(err, "the context of %u tokens is full", s->ctx_tokens);
    for (uint32_t i = 0; i < steps; i++) {
        wait_step(&s->due_ns);
        ids[i] = token_next(s);
        tokens_push(&s->ids, ids[i]);
        s->evaluated++;
        (*n_ids)++;
        if (ids[i] == FAKE_END)
            break;
    }
    return 0;
}

int session_profile(struct session *s, enum profile_pass pass, struct step_time *out,
                    size_t *n, struct err *err)
{
    (void)s;
    (void)pass;
    (void)out;
    *n = 0;
    return err_set(err, "no timestamps");
}

int session_logits(struct session *s, float *out, struct err *err)
{
    (void)err;
    for (int i = 0; i < FAKE_VOCAB; i++)
        out[i] = i == s->ids.v[s->ids.len - 1] ? 10 : 0;
    return 0;
}

int session_warm(struct session *s, struct err *err)
{
    (void)s;
    (void)err;
    return 0;
}

size_t session_tokens(const struct session *s, const int32_t **ids)
{
    if (ids)
        *ids = s->ids.v;
    return s->ids.len;
}

uint64_t session_snapshot_bytes(const struct session *s)
{
    return s->n_marks * 1000;
}
