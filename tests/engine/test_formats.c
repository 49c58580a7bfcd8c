/* test_formats.c - whole models of every architecture, each with matrices of
 * every format, against the plain C reference: a chunk, then tokens one by one. */
#include "tests/engine/random_model.h"

enum { N_IDS = 16, MORE = 3 };

/* Rows of 256 or 512, whole blocks of any format. Each begins with another
 * format, so that a format has another role in each. */
static const struct random_model models[] = {
    { .arch = "qwen35",
      .layers = 4,
      .embd = 256,
      .ff = 512,
      .heads = 2,
      .kv_heads = 1,
      .dim = 128,
      .rope = 32,
      .k_heads = 1,
      .v_heads = 2,
      .type = QUANT_F32,
      .deal = true,
      .factors = true,
      .noise = 1 },
    { .arch = "qwen35moe",
      .layers = 4,
      .embd = 256,
      .heads = 2,
      .kv_heads = 1,
      .dim = 128,
      .rope = 32,
      .k_heads = 1,
      .v_heads = 2,
      .experts = 4,
      .used = 2,
      .ff_expert = 256,
      .ff_shared = 256,
      .type = QUANT_Q4_1,
      .deal = true,
      .factors = true,
      .noise = 2 },
    { .arch = "qwen3next",
      .layers = 4,
      .embd = 256,
      .heads = 2,
      .kv_heads = 1,
      .dim = 128,
      .rope = 32,
      .k_heads = 1,
      .v_heads = 2,
      .experts = 4,
      .used = 2,
      .ff_expert = 256,
      .ff_shared = 256,
      .type = QUANT_IQ4_NL,
      .deal = true,
      .noise = 3 },
    { .arch = "qwen3",
      .layers = 4,
      .embd = 256,
      .ff = 512,
      .heads = 2,
      .kv_heads = 1,
      .dim = 128,
      .type = QUANT_Q6_K,
      .deal = true,
      .noise = 4 },
};

static void check_model(const struct random_model *m, enum math_path math, double most)
{
    char path[256];
    int32_t ids[N_IDS];
    uint32_t seen[QUANT_COUNT];
    const struct random_question q = { ids, N_IDS, MORE };
    for (int i = 0; i < N_IDS; i++)
        ids[i] = 17 * i % 251;
    random_write(m, gw_path(path, "random.gguf"), seen);
    for (int f = 0; f < QUANT_COUNT; f++)
        CHECK(seen[f] > 0 || !quant_format((enum quant)f)->runs);
    CHECK(random_agrees(path, math, math == MATH_FLOAT, &q, most));
}

static void test_qwen35(void)
{
    check_model(&models[0], MATH_FLOAT, 2e-5);
}

static void test_qwen35moe(void)
{
    check_model(&models[1], MATH_FLOAT, 2e-5);
}

static void test_qwen3next(void)
{
    check_model(&models[2], MATH_FLOAT, 2e-5);
}

static void test_qwen3(void)
{
    check_model(&models[3], MATH_FLOAT, 2e-5);
}

/* Rounded activations; token by token, which needs half the kernels. What moves
 * the choice of experts moves the logits a lot, so only where there are none. */
static void test_qwen35_int8(void)
{
    check_model(&models[0], MATH_INT8, 0.1);
}

TEST_MAIN(T(test_qwen35), T(test_qwen35moe), T(test_qwen3next), T(test_qwen3),
          T(test_qwen35_int8))
