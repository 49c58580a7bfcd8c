/* make_model.c - writes a small model of a kind with random weights, for tests of
 * the program itself: make_model KIND FILE. */
#include "tests/engine/random_model.h"

#define TEMPLATE                                                                         \
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + "         \
    "message.content + '<|im_end|>' + '\\n' }}{%- endfor %}"                             \
    "{%- if enable_thinking is undefined or enable_thinking is true %}"                  \
    "{%- set effort = reasoning_effort|default('xhigh') %}"                              \
    "{{- 'Reasoning effort is set to xhigh. Think.' }}{%- endif %}"                      \
    "{%- if preserve_thinking is undefined %}{%- endif %}"                               \
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"                   \
    "{%- if enable_thinking is defined and enable_thinking is false %}"                  \
    "{{- '<think>\\n\\n</think>\\n\\n' }}{%- else %}{{- '<think>\\n' }}{%- endif %}{%- " \
    "endif %}"

static void thinking_keys(struct gguf_writer *w)
{
    gw_str(w, "tokenizer.chat_template", TEMPLATE);
}

/* As the keys of a rotated model, of a version that is not known. */
static void rotated_keys(struct gguf_writer *w)
{
    gw_u32(w, "prism.hadamard.version", 9);
}

static const struct {
    const char *kind;
    struct random_model m;
} rows[] = {
    { "qwen3",
      { .arch = "qwen3",
        .layers = 2,
        .embd = 256,
        .ff = 512,
        .heads = 2,
        .kv_heads = 1,
        .dim = 128,
        .type = QUANT_PQ2_0,
        .tied = true,
        .keys = thinking_keys,
        .noise = 1 } },
    { "qwen35",
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
        .type = QUANT_Q4_K,
        .noise = 2 } },
    { "qwen35moe",
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
        .type = QUANT_NVFP4,
        .factors = true,
        .noise = 3 } },
    { "rotated",
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
        .type = QUANT_PTQ1_0,
        .keys = rotated_keys,
        .noise = 4 } },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(argv[1], rows[i].kind)) {
            random_write(&rows[i].m, argv[2], NULL);
            return 0;
        }
    fprintf(stderr, "make_model: no such kind\n");
    return 1;
}
