/* test_model_bad.c - malformed models: a tiny one with one key or one tensor
 * wrong at a time, then noise. */
#define TEST_SECONDS 60
#include "tests/engine/tiny_model.h"

/* ---- malformed ------------------------------------------------------------ */

static void test_missing_keys(void)
{
    static const char *const optional[] = { "attention.value_length",
                                            "full_attention_interval" };
    for (int moe = 0; moe < 2; moe++) {
        const char *arch = moe ? "qwen35moe" : "qwen35";
        size_t n = sizeof numbers / sizeof *numbers;
        size_t n_moe = sizeof expert_numbers / sizeof *expert_numbers;
        for (size_t i = 0; i < n + (moe ? n_moe : 0); i++) {
            const char *key = i < n ? numbers[i].key : expert_numbers[i - n].key;
            char want[128];
            if (same(key, optional[0]) || same(key, optional[1]) ||
                (moe && same(key, "feed_forward_length")))
                continue;
            snprintf(want, sizeof want, "lacks the metadata key %s.%s", arch, key);
            MALFORMED(want, .arch = arch, .drop_key = key);
            snprintf(want, sizeof want, "%s.%s is 0, not 1 to", arch, key);
            MALFORMED(want, .arch = arch, .set_key = key, .value = 0);
            snprintf(want, sizeof want, "%s.%s is 2147483648, not 1 to", arch, key);
            MALFORMED(want, .arch = arch, .set_key = key, .value = 1u << 31);
            snprintf(want, sizeof want, "key %s.%s is not an integer", arch, key);
            MALFORMED(want, .arch = arch, .set_key = key, .value_type = GGUF_F32);
            snprintf(want, sizeof want, "key %s.%s is -1, out of range", arch, key);
            MALFORMED(want, .arch = arch, .set_key = key, .value = UINT32_MAX,
                      .value_type = GGUF_I32);
        }
    }
    MALFORMED("lacks the metadata key qwen35.rope.freq_base",
              .drop_key = "rope.freq_base");
    MALFORMED("lacks the metadata key qwen35.attention.layer_norm_rms_epsilon",
              .drop_key = "attention.layer_norm_rms_epsilon");
}

static void keys_uneven(struct gguf_writer *w)
{
    static const int32_t kv[LAYERS] = { 1, 0, 2, 1 };
    gw_i32s(w, "qwen35.attention.head_count_kv", kv, LAYERS);
}

static void keys_all_zero(struct gguf_writer *w)
{
    static const int32_t kv[LAYERS] = { 0 };
    gw_i32s(w, "qwen35.attention.head_count_kv", kv, LAYERS);
}

static void keys_negative(struct gguf_writer *w)
{
    static const int32_t kv[LAYERS] = { -2, 0, 0, -2 };
    gw_i32s(w, "qwen35.attention.head_count_kv", kv, LAYERS);
}

static void test_bad_numbers(void)
{
    enum { NOT_A_NUMBER = 0x7fc00000, INFINITE = 0x7f800000, MINUS_ONE = 0xbf800000 };
    MALFORMED("is 1001, not 1 to 1000", .blocks = 1001);
    MALFORMED("2 heads cannot share 3", .set_key = "attention.head_count_kv", .value = 3);
    MALFORMED("cannot rotate 15", .set_key = "rope.dimension_count", .value = 15);
    MALFORMED("cannot rotate 34", .set_key = "rope.dimension_count", .value = 34);
    MALFORMED("rank 2 is no multiple", .set_key = "ssm.group_count", .value = 3);
    MALFORMED("ssm.inner_size 255", .set_key = "ssm.inner_size", .value = 255);
    MALFORMED("ssm.time_step_rank 4", .set_key = "ssm.time_step_rank", .value = 4);
    MALFORMED("uses 5 of 4 experts", .arch = "qwen35moe",
              .set_key = "expert_used_count", .value = 5);
    MALFORMED("differs between layers", .drop_key = "attention.head_count_kv",
              .keys = keys_uneven);
    MALFORMED("is 0, not 1", .drop_key = "attention.head_count_kv",
              .keys = keys_all_zero);
    MALFORMED("out of range", .drop_key = "attention.head_count_kv",
              .keys = keys_negative);
    MALFORMED("rope.freq_base is nan", .set_key = "rope.freq_base",
              .value = NOT_A_NUMBER);
    MALFORMED("rope.freq_base is inf", .set_key = "rope.freq_base", .value = INFINITE);
    MALFORMED("rope.freq_base is 0", .set_key = "rope.freq_base", .value = 0);
    MALFORMED("rms_epsilon is -1", .set_key = "attention.layer_norm_rms_epsilon",
              .value = MINUS_ONE);
    MALFORMED("rms_epsilon is 0", .set_key = "attention.layer_norm_rms_epsilon",
              .value = 0);
    MALFORMED("full_attention_interval is 0", .set_key = "full_attention_interval");
}

static void keys_short_list(struct gguf_writer *w)
{
    gw_array(w, "qwen35.attention.recurrent_layers", GGUF_BOOL, 2);
    gw_number(w, 0x0101, 2);
}

static void keys_wrong_list(struct gguf_writer *w)
{
    gw_array(w, "qwen35.attention.recurrent_layers", GGUF_BOOL, LAYERS);
    gw_number(w, 0x01010101, 4);
}

static void test_kinds_contradict(void)
{
    MALFORMED("layer 1 has the tensors of a recurrent layer, but the metadata calls it "
              "attention", .set_key = "full_attention_interval", .value = 2);
    MALFORMED("layer 3 has the tensors of an attention layer, but the metadata calls it "
              "recurrent", .keys = keys_wrong_list);
    MALFORMED("has 2 entries for 4 layers", .keys = keys_short_list);
}

/* Walks over the tensors of a tiny model: each one in turn is taken away, gets
 * another extent, and, if it must be of a float type, another type. */
static void try_tensors(const char *arch)
{
    struct model *m = need_tiny(&(struct tiny){ .arch = arch });
    size_t n = gguf_n_tensors(m->file);
    CHECK(n > 50);
    for (size_t i = 0; i < n; i++) {
        struct tensor t = *gguf_tensor(m->file, i);
        char want[256];
        snprintf(want, sizeof want, "tensor %s is missing", t.name);
        MALFORMED(want, .arch = arch, .drop = t.name);
        snprintf(want, sizeof want, "tensor %s has the shape {%u", t.name,
                 (unsigned)t.ne[0] + 32);
        MALFORMED(want, .arch = arch, .reshape = t.name,
                  .ne = { t.ne[0] + 32, t.ne[1], t.ne[2] });
        MALFORMED(same(t.name, "token_embd.weight") ? "rows in token_embd.weight"
                                                    : t.name,
                  .arch = arch, .reshape = t.name,
                  .ne = { t.ne[0], t.ne[1] + 1, t.ne[2] });
        MALFORMED(t.name, .arch = arch, .reshape = t.name,
                  .ne = { t.ne[0], t.ne[1], t.ne[2] + 1 });
        if (t.ne[0] % 32 == 0 && (t.n_dims == 1 || strstr(t.name, "gate_inp"))) {
            snprintf(want, sizeof want, "tensor %s is of type Q8_0, not a float", t.name);
            MALFORMED(want, .arch = arch, .retype = t.name, .type = QUANT_Q8_0);
        }
    }
    model_close(m);
}

static void test_tensors_dense(void)
{
    try_tensors("qwen35");
}

static void test_tensors_moe(void)
{
    try_tensors("qwen35moe");
}

static void test_tensors_next(void)
{
    try_tensors("qwen3next");
}

static void test_shapes_are_told(void)
{
    MALFORMED("tensor blk.0.attn_qkv.weight has the shape {64, 500}, not {64, 512}; the "
              "file is damaged", .reshape = "blk.0.attn_qkv.weight", .ne = { E, 500 });
    MALFORMED("has the shape {32, 64, 3}, not {32, 64, 4}", .arch = "qwen35moe",
              .reshape = "blk.0.ffn_down_exps.weight", .ne = { M, E, 3 });
    MALFORMED("has 260 tokens in its vocabulary but 250 rows",
              .reshape = "token_embd.weight", .ne = { E, 250 });
}

static void keys_recurrent(struct gguf_writer *w)
{
    gw_array(w, "qwen35.attention.recurrent_layers", GGUF_BOOL, LAYERS);
    gw_number(w, 0x00010101, 4);
}

/* ---- noise ---------------------------------------------------------------- */

static bool try_open(const char *path)
{
    struct model *m;
    struct err e = { "" };
    if (model_open(&m, path, &e) < 0) {
        CHECK(m == NULL && one_clear_line(e.text));
        return false;
    }
    CHECK(!m->refusal || one_clear_line(m->refusal));
    CHECK(m->refusal || (m->complete && m->vocab && m->tmpl));
    model_close(m);
    return true;
}

static void test_bit_flips(void)
{
    char path[256];
    struct gguf_writer w;
    uint64_t state = 4711;
    size_t opened = 0;
    write_tiny(&w, &(struct tiny){ .keys = keys_recurrent });
    gw_path(path, "flip.gguf");
    gw_save(&w, path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    for (int i = 0; i < 4000; i++) {
        size_t at = gw_random(&state) % w.head.len;
        char c = (char)(w.head.v[at] ^ 1 << gw_random(&state) % 8);
        REQUIRE(pwrite(fd, &c, 1, (off_t)at) == 1);
        opened += try_open(path);
        REQUIRE(pwrite(fd, &w.head.v[at], 1, (off_t)at) == 1);
    }
    CHECK(opened > 100 && opened < 3900);
    CHECK(try_open(path));
    close(fd);
    gw_release(&w);
}

/* The shipped model with noise at some place of its header. */
static void test_mini_flips(void)
{
    char path[256], command[600];
    uint64_t state = 12345;
    snprintf(command, sizeof command, "cp %s %s", MINI, gw_path(path, "mini.gguf"));
    REQUIRE(system(command) == 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    for (int i = 0; i < 150; i++) {
        uint64_t noise = gw_random(&state);
        off_t at = (off_t)(gw_random(&state) % (i & 1 ? 2048 : 279936));
        char old[8];
        REQUIRE(pread(fd, old, 8, at) == 8 && pwrite(fd, &noise, 8, at) == 8);
        try_open(path);
        REQUIRE(pwrite(fd, old, 8, at) == 8);
    }
    CHECK(try_open(path));
    close(fd);
}

TEST_MAIN(T(test_missing_keys), T(test_bad_numbers), T(test_kinds_contradict),
          T(test_tensors_dense), T(test_tensors_moe), T(test_tensors_next),
          T(test_shapes_are_told), T(test_bit_flips), T(test_mini_flips))
