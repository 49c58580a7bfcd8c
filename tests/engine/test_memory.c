/* test_memory.c - device memory: what is counted is what is allocated, and what
 * the device does not hold is refused before anything is uploaded. */
#include "base/fault.h"
#include "engine/session.h"
#include "tests/engine/random_model.h"

static void test_one_byte_too_much(void)
{
    const struct model_memory need = {
        .weights = 5ull << 30, .kv = 1 << 20, .state = 2 << 20, .scratch = (4 << 20) + 1
    };
    const uint64_t bytes = (5ull << 30) + (7 << 20) + 1;
    struct err err = { "" };
    CHECK(memory_check(&need, 4096, bytes, "a device", &err) == 0);
    CHECK(memory_check(&need, 4096, bytes - 1, "a device", &err) == -1);
    CHECK_STR(
        err.text,
        "5128 MiB of device memory are needed (weights 5120, a context of 4096 tokens "
        "3, working memory 5), a device has 5127 MiB free: use a smaller context "
        "(--ctx), or another device (see tern devices)");
    CHECK(memory_check(&need, 4096, (5ull << 30) - 1, "a device", &err) == -1);
    CHECK(strstr(err.text, "5119 MiB free: use a smaller model or quantisation"));
}

/* What is counted without the device is what is allocated on it. */
static void check_counts(const char *path)
{
    struct whole w = whole_open(path, MATH_AUTO);
    struct engine_info before, after;
    CHECK(device_weights_allocation(w.model) == arena_bytes(&w.engine->weights.arena));
    CHECK(device_weights_allocation(w.model) >= device_weights_bytes(w.model));
    engine_info(w.engine, &before);
    struct session *s = whole_session(&w, &(struct session_params){ .ctx_tokens = 700 });
    engine_info(w.engine, &after);
    struct model_memory plan = { .weights = 0 };
    session_memory_plan(s, &plan);
    uint64_t taken = after.device_bytes - before.device_bytes;
    if (taken != plan.kv + plan.state + plan.scratch)
        printf("# %s: %llu allocated, %llu + %llu + %llu planned\n", path,
               (unsigned long long)taken, (unsigned long long)plan.kv,
               (unsigned long long)plan.state, (unsigned long long)plan.scratch);
    CHECK(taken == plan.kv + plan.state + plan.scratch);
    const struct model_info *info = model_info(w.model);
    CHECK(plan.kv >= 700ull * info->kv_bytes_per_token &&
          plan.kv < 700ull * info->kv_bytes_per_token + 512ull * info->n_attention);
    CHECK(plan.state >= info->state_bytes);
    session_close(s);
    whole_close(&w);
}

static void test_counts(void)
{
    static const struct random_model plain = { .arch = "qwen3",
                                               .layers = 2,
                                               .embd = 256,
                                               .ff = 256,
                                               .heads = 2,
                                               .kv_heads = 1,
                                               .dim = 128,
                                               .type = QUANT_Q4_K,
                                               .noise = 1 };
    char path[256];
    check_counts("tests/data/dense_qwen35.gguf");
    check_counts("tests/data/moe_qwen35.gguf");
    check_counts(MINI);
    random_write(&plain, gw_path(path, "plain.gguf"), NULL);
    check_counts(path);
}

/* Without a device: for the usual one, at any context. */
static void test_estimate(void)
{
    struct model *m;
    struct err err = { "" };
    struct model_memory short_one, long_one, vocabulary;
    OK(model_open(&m, MINI, &err), &err);
    const struct model_info *info = model_info(m);
    model_memory(m, 1000, &short_one);
    model_memory(m, 3000, &long_one);
    CHECK(short_one.weights >= info->weight_bytes / 2 && short_one.scratch > 0);
    CHECK(short_one.weights == long_one.weights && short_one.state >= info->state_bytes);
    uint64_t more = 2000ull * info->kv_bytes_per_token;
    CHECK(long_one.kv - short_one.kv > more * 9 / 10);
    CHECK(long_one.kv - short_one.kv < more * 11 / 10);
    model_close(m);
    OK(model_open(&m, "tests/data/qwen3-vocab.gguf", &err), &err);
    model_memory(m, 0, &vocabulary);
    CHECK(vocabulary.weights == 0 && vocabulary.kv == 0 && vocabulary.scratch == 0);
    model_close(m);
}

/* The file is a hole as large as it claims to be. Not a byte may be allocated. */
static void check_refused(struct tiny *t, uint32_t ctx_tokens, const char *want)
{
    struct model *m = need_tiny(t);
    struct engine *e;
    struct err err = { "" };
    fault_arm(FAULT_DEVICE_ALLOC, 1);
    CHECK(engine_open(&e, m, &(struct engine_params){ .ctx_tokens = ctx_tokens }, &err) ==
              -1 &&
          !e);
    CHECK(!fault_disarm(FAULT_DEVICE_ALLOC));
    check_text(err.text, " MiB of device memory are needed (weights ", "numbers",
               __LINE__);
    check_text(err.text, want, "hint", __LINE__);
    model_close(m);
}

static void test_refused_before_upload(void)
{
    /* 4 layers of 3 matrices of 64 x 4 M values are 12 GiB. */
    check_refused(&(struct tiny){ .wide_ff = 1 << 22 }, 0, "use a smaller model");
    check_refused(&(struct tiny){ .set_key = "context_length", .value = 1 << 30 },
                  1 << 30, "a context of 1073741824 tokens");
    check_refused(&(struct tiny){ .set_key = "context_length", .value = 1 << 30 },
                  1 << 30, "use a smaller context (--ctx)");
}

TEST_MAIN(T(test_one_byte_too_much), T(test_counts), T(test_estimate),
          T(test_refused_before_upload))
