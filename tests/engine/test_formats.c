/* test_formats.c - whole models whose matrices are of every format in turn:
 * their twins hold the same values as F32 and must give the same logits. */
#include "tests/engine/blocks.h"
#include "tests/engine/tiny_model.h"
#include "tests/engine/whole.h"

/* Every matrix has rows of 256 or 512, whole blocks of any format. */
enum {
    EMBD = 256, WIDTH = 512, N_HEAD = 2, N_KV = 1, DIM = 128, Q = 2 * N_HEAD * DIM,
    KV = N_KV * DIM, KEYS = 128, VALUES = 256, CONV = 2 * KEYS + VALUES, N_IDS = 16,
    MORE = 3
};

static const struct number keys[] = {
    { "block_count", LAYERS }, { "context_length", 4096 }, { "embedding_length", EMBD },
    { "feed_forward_length", WIDTH }, { "attention.head_count", N_HEAD },
    { "attention.head_count_kv", N_KV }, { "attention.key_length", DIM },
    { "attention.value_length", DIM }, { "rope.dimension_count", 32 },
    { "ssm.conv_kernel", 4 }, { "ssm.state_size", 128 }, { "ssm.group_count", 1 },
    { "ssm.time_step_rank", 2 }, { "ssm.inner_size", VALUES },
    { "full_attention_interval", 4 },
};

/* One model being written, and its twin. */
struct twins {
    struct gguf_writer mixed, plain;
    void *data[128];
    size_t n_data;
    enum quant next;   /* format of the last matrix */
    uint32_t dealt;    /* formats so far */
    uint32_t noise;
};

static void *keep(struct twins *t, void *data)
{
    REQUIRE(t->n_data < sizeof t->data / sizeof *t->data);
    return t->data[t->n_data++] = data;
}

/* A vector of n values in low..high, F32 in both. */
static void put_vector(struct twins *t, const char *name, uint64_t n, uint64_t rows,
                       float low, float high)
{
    float *v = keep(t, mem_array(n * rows, sizeof *v));
    for (size_t i = 0; i < n * rows; i++)
        v[i] = low + (high - low) * (0.5f + 0.5f * block_value(&t->noise));
    gw_tensor(&t->mixed, name, QUANT_F32, n, rows, v);
    gw_tensor(&t->plain, name, QUANT_F32, n, rows, v);
}

static double mean_square(const float *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * v[i];
    return sum / (double)n;
}

/* A matrix of format q whose products keep the size of what they multiply. */
static void put_matrix(struct twins *t, const char *name, enum quant q, uint64_t cols,
                       uint64_t rows)
{
    size_t n = cols * rows;
    float *values = keep(t, mem_array(n, sizeof *values));
    uint8_t *probe = blocks_random(q, n, 1, &t->noise);
    quant_dequantize(q, probe, n, values);
    double size = sqrt(mean_square(values, n) * (double)cols);
    free(probe);
    uint8_t *blocks = keep(t, blocks_random(q, n, (float)(1 / size), &t->noise));
    quant_dequantize(q, blocks, n, values);
    gw_tensor(&t->mixed, name, q, cols, rows, blocks);
    gw_tensor(&t->plain, name, QUANT_F32, cols, rows, values);
}

static enum quant next_format(struct twins *t)
{
    do
        t->next = (enum quant)((t->next + 1) % QUANT_COUNT);
    while (!quant_format(t->next)->runs);
    t->dealt++;
    return t->next;
}

static void layer_matrix(struct twins *t, uint32_t layer, const char *role, uint64_t cols,
                         uint64_t rows)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s.weight", layer, role);
    put_matrix(t, name, next_format(t), cols, rows);
}

static void layer_vector(struct twins *t, uint32_t layer, const char *role, uint64_t n,
                         float low, float high)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%u.%s", layer, role);
    put_vector(t, name, n, 1, low, high);
}

static void put_mixer(struct twins *t, uint32_t i)
{
    char name[64];
    if ((i + 1) % 4 == 0) {
        layer_matrix(t, i, "attn_q", EMBD, Q);
        layer_matrix(t, i, "attn_k", EMBD, KV);
        layer_matrix(t, i, "attn_v", EMBD, KV);
        layer_matrix(t, i, "attn_output", Q / 2, EMBD);
        layer_vector(t, i, "attn_q_norm.weight", DIM, 0.8f, 1.2f);
        layer_vector(t, i, "attn_k_norm.weight", DIM, 0.8f, 1.2f);
        return;
    }
    layer_matrix(t, i, "attn_qkv", EMBD, CONV);
    layer_matrix(t, i, "attn_gate", EMBD, VALUES);
    layer_matrix(t, i, "ssm_beta", EMBD, 2);
    layer_matrix(t, i, "ssm_alpha", EMBD, 2);
    layer_matrix(t, i, "ssm_out", VALUES, EMBD);
    snprintf(name, sizeof name, "blk.%u.ssm_conv1d.weight", i);
    put_vector(t, name, 4, CONV, -0.5f, 0.5f);
    layer_vector(t, i, "ssm_dt.bias", 2, -1, 1);
    layer_vector(t, i, "ssm_a", 2, -1, -0.1f);
    layer_vector(t, i, "ssm_norm.weight", 128, 0.8f, 1.2f);
}

static void put_ffn(struct twins *t, uint32_t i)
{
    char name[64];
    enum quant q = next_format(t); /* gate and up share a matrix */
    snprintf(name, sizeof name, "blk.%u.ffn_gate.weight", i);
    put_matrix(t, name, q, EMBD, WIDTH);
    snprintf(name, sizeof name, "blk.%u.ffn_up.weight", i);
    put_matrix(t, name, q, EMBD, WIDTH);
    layer_matrix(t, i, "ffn_down", WIDTH, EMBD);
}

static void put_keys(struct gguf_writer *w)
{
    gw_begin(w);
    gw_str(w, "general.architecture", "qwen35");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[64];
        snprintf(key, sizeof key, "qwen35.%s", keys[i].key);
        gw_u32(w, key, keys[i].value);
    }
    gw_f32(w, "qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
    gw_f32(w, "qwen35.rope.freq_base", 1e7f);
    write_vocab(w);
}

/* Every format is dealt to one matrix at least. */
static void write_twins(char mixed[256], char plain[256])
{
    struct twins t = { .next = QUANT_F32, .noise = 1 };
    uint32_t count = 0;
    for (int q = 0; q < QUANT_COUNT; q++)
        count += quant_format((enum quant)q)->runs;
    put_keys(&t.mixed);
    put_keys(&t.plain);
    put_matrix(&t, "token_embd.weight", next_format(&t), EMBD, TOKENS);
    put_matrix(&t, "output.weight", next_format(&t), EMBD, TOKENS);
    put_vector(&t, "output_norm.weight", EMBD, 1, 0.8f, 1.2f);
    for (uint32_t i = 0; i < LAYERS; i++) {
        layer_vector(&t, i, "attn_norm.weight", EMBD, 0.8f, 1.2f);
        layer_vector(&t, i, "post_attention_norm.weight", EMBD, 0.8f, 1.2f);
        put_mixer(&t, i);
        put_ffn(&t, i);
    }
    REQUIRE(t.mixed.n_pieces == t.mixed.n_tensors && t.dealt >= count);
    gw_finish(&t.mixed);
    gw_finish(&t.plain);
    gw_save(&t.mixed, gw_path(mixed, "mixed.gguf"));
    gw_save(&t.plain, gw_path(plain, "plain.gguf"));
    gw_release(&t.mixed);
    gw_release(&t.plain);
    for (size_t i = 0; i < t.n_data; i++)
        free(t.data[i]);
}

/* Logits after each of the last 1 + MORE of N_IDS tokens: [1 + MORE][TOKENS].
 * What comes before them goes in as one chunk, or token by token. */
static void run_model(const char *path, enum math_path math, bool chunk, float *logits)
{
    struct whole w = whole_open(path, math);
    struct session *s = whole_session(&w, &(struct session_params){ .kv = KV_F32 });
    struct err err = { "" };
    int32_t ids[N_IDS], id;
    size_t n;
    for (int i = 0; i < N_IDS; i++)
        ids[i] = 17 * i % 251;
    for (size_t i = chunk ? N_IDS - MORE : 1; i <= N_IDS; i++) {
        OK(session_sync(s, ids, i, NULL, NULL, &err), &err);
        OK(session_decode(s, 1, &(struct sampler_params){ 0 }, &id, &n, &err), &err);
        if (i >= N_IDS - MORE)
            OK(session_logits(s, logits + (i - (N_IDS - MORE)) * TOKENS, &err), &err);
    }
    session_close(s);
    whole_close(&w);
}

/* Root of the mean square difference, relative to the size of `want`. */
static double distance(const float *got, const float *want, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    return sqrt(sum / (double)n / mean_square(want, n));
}

static void test_twins(void)
{
    enum { N = (1 + MORE) * TOKENS };
    char mixed[256], plain[256];
    float *want = mem_array(N, 4), *got = mem_array(N, 4), *rounded = mem_array(N, 4);
    write_twins(mixed, plain);
    run_model(plain, MATH_FLOAT, true, want);
    run_model(mixed, MATH_FLOAT, true, got);
    /* Token by token needs half the kernels: tests build all that they use. */
    run_model(mixed, MATH_INT8, false, rounded);
    double exact = distance(got, want, N), coarse = distance(rounded, want, N);
    printf("# float differs by %.2g of the size of the logits, int8 by %.2g\n", exact,
           coarse);
    CHECK(mean_square(want, N) > 1e-3);
    CHECK(exact < 2e-5);
    CHECK(coarse > 1e-4 && coarse < 0.1);
    free(want);
    free(got);
    free(rounded);
}

TEST_MAIN(T(test_twins))
