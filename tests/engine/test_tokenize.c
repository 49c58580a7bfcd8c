/* test_tokenize.c - the tokenizer and the chat format by way of model files, as
 * the program uses them. */
#include "engine/engine.h"
#include "tests/engine/gguf_writer.h"
#include "tests/test.h"

static struct model *open_model(const char *path)
{
    struct model *m;
    struct err err;
    if (model_open(&m, path, &err)) {
        printf("# %s\n", err.text);
        REQUIRE(0);
    }
    return m;
}

static void test_chat_model(void)
{
    struct model *m = open_model("assets/tern-mini.gguf");
    struct tokens t = { 0 };
    struct buf text = BUF_INIT;
    struct err err;
    size_t starts[2];
    const struct turn turns[] = {
        { .role = ROLE_USER, .text = "hello", .text_bytes = 5 }
    };
    const struct render_params p = { .thinking = true, .generate = true };
    REQUIRE(model_render(m, turns, 1, &p, &t, starts, &err) == 0);
    static const int32_t want[] = {
        1, 313, 268, 203, 5989, 2, 203, 1, 532, 406, 412, 203
    };
    CHECK(t.len == 12 && !memcmp(t.v, want, sizeof want));
    CHECK(starts[0] == 0 && starts[1] == 7);
    for (size_t i = 0; i < t.len; i++)
        model_detokenize(m, t.v[i], TOKENIZE_SPECIAL, &text);
    CHECK_STR(buf_cstr(&text),
              "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
    t.len = 0;
    model_tokenize(m, text.v, text.len, TOKENIZE_SPECIAL, &t);
    CHECK(t.len == 12 && !memcmp(t.v, want, sizeof want));
    CHECK(model_is_end(m, 2) && !model_is_end(m, 1));
    CHECK(model_think_begin(m) == 3 && model_think_end(m) == 4);
    struct sampler_params s;
    model_sampling(m, true, &s);
    CHECK(s.temperature == 0.3f && s.top_k == 20 && s.top_p == 0.9f);
    CHECK_STR(model_info(m)->family, "chatml");
    CHECK(!model_info(m)->thinking_default);
    tokens_release(&t);
    buf_release(&text);
    model_close(m);
}

/* A file with a vocabulary and nothing else tokenises. */
static void test_vocabulary_only(void)
{
    struct model *m = open_model("tests/data/qwen3-vocab.gguf");
    struct tokens t = { 0 };
    static const int32_t want[] = { 9707, 11, 1879, 0 };
    model_tokenize(m, "Hello, world!", 13, 0, &t);
    CHECK(t.len == 4 && !memcmp(t.v, want, sizeof want));
    CHECK(model_info(m)->refusal);
    CHECK(model_think_begin(m) == 151667 && model_think_end(m) == 151668);
    tokens_release(&t);
    model_close(m);
}

/* A file without vocabulary: nothing happens, and a prompt is refused. */
static void test_no_vocabulary(void)
{
    char path[256];
    struct gguf_writer w;
    gw_begin(&w);
    gw_str(&w, "general.architecture", "qwen35");
    gw_finish(&w);
    gw_save(&w, gw_path(path, "bare.gguf"));
    gw_release(&w);
    struct model *m = open_model(path);
    struct tokens t = { 0 };
    struct buf b = BUF_INIT;
    struct err err = { "" };
    struct sampler_params s;
    const struct turn turns[] = { { .role = ROLE_USER, .text = "x", .text_bytes = 1 } };
    const struct render_params p = { .generate = true };
    model_tokenize(m, "x", 1, 0, &t);
    model_detokenize(m, 0, 0, &b);
    model_sampling(m, false, &s);
    CHECK(t.len == 0 && b.len == 0 && s.top_k == 20);
    CHECK(!model_is_end(m, 0) && model_think_begin(m) == -1 && model_think_end(m) == -1);
    CHECK(model_render(m, turns, 1, &p, &t, NULL, &err) == -1);
    CHECK(strstr(err.text, "no vocabulary"));
    model_close(m);
}

TEST_MAIN(T(test_chat_model), T(test_vocabulary_only), T(test_no_vocabulary))
