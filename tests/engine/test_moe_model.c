/* test_moe_model.c - whole models with experts: a chunk equals its tokens one
 * by one, other forms of the same tensors give the same model, and rounded
 * activations change little where they cannot change the choice of experts. */
#include "tests/engine/rewrite.h"
#include "tests/engine/whole.h"

#include <math.h>

#define MOE  "tests/data/moe_qwen35.gguf"
#define NEXT "tests/data/next.gguf"

enum { LONG = 70 };

static void make_prompt(int32_t *ids, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)(5 + (seed >> 10) % 500);
    }
}

/* Logits after a prompt, in chunks of that many tokens. */
static float *logits_of(const struct whole *w, const int32_t *ids, size_t n, uint32_t chunk)
{
    float *logits = mem_array(w->n_vocab, sizeof *logits);
    struct session *s = whole_session(w, &(struct session_params){ .chunk_tokens = chunk });
    whole_first(s, ids, n, logits);
    session_close(s);
    return logits;
}

static bool same(const float *a, const float *b, uint32_t n)
{
    return !memcmp(a, b, n * sizeof *a);
}

/* Chunks and single tokens go through the same kernels in the same order, the
 * choice of experts included: equal means bit for bit. */
static void chunks_agree(const char *path, enum math_path math)
{
    struct whole w = whole_open(path, math);
    struct err err = { "" };
    int32_t ids[LONG], id;
    size_t n;
    make_prompt(ids, LONG, 3);
    float *want = logits_of(&w, ids, LONG, 0);
    static const uint32_t chunks[] = { 1, 3, 32, 33 };
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        float *got = logits_of(&w, ids, LONG, chunks[i]);
        if (!whole_agree(&w, got, want))
            printf("# chunks of %u differ\n", chunks[i]);
        CHECK(whole_agree(&w, got, want));
        free(got);
    }
    struct session *s = whole_session(&w, NULL);
    for (size_t i = 1; i <= LONG; i++) {
        OK(session_sync(s, ids, i, NULL, NULL, &err), &err);
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &n, &err), &err);
    }
    float *got = mem_array(w.n_vocab, sizeof *got);
    OK(session_logits(s, got, &err), &err);
    CHECK(whole_agree(&w, got, want));
    session_close(s);
    free(got);
    free(want);
    whole_close(&w);
}

static void test_chunks_agree_float(void)
{
    chunks_agree(MOE, MATH_FLOAT);
}

static void test_chunks_agree_int8(void)
{
    chunks_agree(NEXT, MATH_INT8);
}

/* ---- other forms of the same model --------------------------------------- */

static void same_model(const char *path, const char *other, enum math_path math)
{
    struct whole a = whole_open(path, math), b = whole_open(other, math);
    int32_t ids[LONG];
    make_prompt(ids, LONG, 7);
    float *want = logits_of(&a, ids, LONG, 0), *got = logits_of(&b, ids, LONG, 0);
    CHECK(same(got, want, a.n_vocab));
    free(want);
    free(got);
    whole_close(&a);
    whole_close(&b);
}

/* The name of another tensor of the same block. */
static void block_name(char name[GGUF_NAME_BYTES], const struct tensor *t, const char *role)
{
    int n = (int)(4 + strcspn(t->name + 4, ".") + 1);
    snprintf(name, GGUF_NAME_BYTES, "%.*s%s", n, t->name, role);
}

static bool is_role(const struct tensor *t, const char *role)
{
    char name[GGUF_NAME_BYTES];
    block_name(name, t, role);
    return !strncmp(t->name, "blk.", 4) && !strcmp(t->name, name);
}

static const struct tensor *sibling(const struct rewrite *r, const struct tensor *t,
                                    const char *role)
{
    char name[GGUF_NAME_BYTES];
    block_name(name, t, role);
    return gguf_tensor_find(r->from, name);
}

/* The old form: attn_qkv and attn_gate in one tensor, head by head: of key
 * head h its q and k rows, then v and z rows of its two value heads. */
static bool into_ssm_in(struct rewrite *r, const struct tensor *t)
{
    enum { DIM = 128, HEADS = 2, VALUES = 2 * DIM };
    if (is_role(t, "attn_gate.weight"))
        return true;
    const struct tensor *gate = sibling(r, t, "attn_gate.weight");
    if (!is_role(t, "attn_qkv.weight") || !gate)
        return false;
    size_t row = t->bytes / t->ne[1];
    uint8_t *data = rewrite_room(r, t->bytes + gate->bytes), *to = data;
    for (size_t h = 0; h < HEADS; h++) {
        const struct {
            const uint8_t *from;
            size_t rows;
        } parts[] = {
            { t->data + h * DIM * row, DIM },
            { t->data + (HEADS + h) * DIM * row, DIM },
            { t->data + (2 * HEADS * DIM + h * VALUES) * row, VALUES },
            { gate->data + h * VALUES * row, VALUES },
        };
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            memcpy(to, parts[i].from, parts[i].rows * row);
            to += parts[i].rows * row;
        }
    }
    REQUIRE(to == data + t->bytes + gate->bytes);
    char name[GGUF_NAME_BYTES];
    block_name(name, t, "ssm_in.weight");
    rewrite_tensor(r, name, t, t->ne[1] + gate->ne[1], data);
    return true;
}

static void test_old_fused_projections(void)
{
    char path[256];
    rewrite_file(NEXT, gw_path(path, "ssm_in.gguf"), into_ssm_in);
    struct model *m;
    struct err err = { "" };
    OK(model_open(&m, path, &err), &err);
    CHECK(!model_info(m)->refusal && model_info(m)->n_tensors == 73 - 3);
    model_close(m);
    same_model(NEXT, path, MATH_FLOAT);
}

/* Gate and up rows of each expert in one tensor, gate first. */
static bool into_gate_up(struct rewrite *r, const struct tensor *t)
{
    if (is_role(t, "ffn_up_exps.weight"))
        return true;
    if (!is_role(t, "ffn_gate_exps.weight"))
        return false;
    const struct tensor *up = sibling(r, t, "ffn_up_exps.weight");
    size_t slab = t->bytes / t->ne[2];
    uint8_t *data = rewrite_room(r, 2 * t->bytes);
    for (size_t e = 0; e < t->ne[2]; e++) {
        memcpy(data + 2 * e * slab, t->data + e * slab, slab);
        memcpy(data + (2 * e + 1) * slab, up->data + e * slab, slab);
    }
    char name[GGUF_NAME_BYTES];
    block_name(name, t, "ffn_gate_up_exps.weight");
    rewrite_tensor(r, name, t, 2 * t->ne[1], data);
    return true;
}

static void test_fused_gate_and_up(void)
{
    char path[256];
    rewrite_file(MOE, gw_path(path, "gate_up.gguf"), into_gate_up);
    same_model(MOE, path, MATH_INT8);
}

/* ---- rounded activations ------------------------------------------------- */

static double relative_error(const float *got, const float *want, uint32_t n)
{
    double error = 0, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        size += (double)want[i] * want[i];
    }
    return sqrt(error / size);
}

/* A copy of a model that uses all of its experts. */
static void use_all_experts(const char *from, const char *to)
{
    static const char key[] = "expert_used_count";
    size_t n, length = sizeof key - 1;
    FILE *f = fopen(from, "rb");
    REQUIRE(f && fseek(f, 0, SEEK_END) == 0);
    n = (size_t)ftell(f);
    char *v = mem_alloc(n);
    rewind(f);
    REQUIRE(fread(v, 1, n, f) == n);
    fclose(f);
    size_t at = 0;
    while (memcmp(v + at, key, length) != 0)
        at++;
    CHECK(v[at + length + 4] == 3);
    v[at + length + 4] = 8;
    f = fopen(to, "wb");
    REQUIRE(f && fwrite(v, 1, n, f) == n);
    fclose(f);
    free(v);
}

/* Rounding moves the logits of random weights by a few per cent of their
 * spread. Where it swaps nearly equal experts it moves them by far more, so
 * here nothing can be swapped. */
static void test_int8_is_near(void)
{
    static const char *const paths[] = { MOE, NEXT };
    for (int i = 0; i < 2; i++) {
        char path[256];
        use_all_experts(paths[i], gw_path(path, "all.gguf"));
        struct whole a = whole_open(path, MATH_FLOAT), b = whole_open(path, MATH_INT8);
        for (size_t n = 1; n <= LONG; n += 23) {
            int32_t ids[LONG];
            make_prompt(ids, n, (uint32_t)n);
            float *want = logits_of(&a, ids, n, 0), *got = logits_of(&b, ids, n, 0);
            double error = relative_error(got, want, a.n_vocab);
            if (!(error < 0.15))
                printf("# prompt of %zu: relative error %g\n", n, error);
            CHECK(error < 0.15);
            free(want);
            free(got);
        }
        whole_close(&a);
        whole_close(&b);
    }
}

TEST_MAIN(T(test_chunks_agree_float), T(test_chunks_agree_int8),
          T(test_old_fused_projections), T(test_fused_gate_and_up),
          T(test_int8_is_near))
