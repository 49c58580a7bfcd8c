/* gguf.c - model files: container, hyper-parameters, tensors, vocabulary and
 * template. An odd last byte stands for a file whose weights are all there. */
#include "tests/fuzz/fuzz.h"

#include "engine/gguf_file.h"
#include "engine/model.h"

const unsigned fuzz_rounds = 3000;
const size_t fuzz_max_bytes = 1 << 16;

enum { WEIGHT_BYTES = 8 << 20 };

static void touch_strings(const struct gguf *g, const char *key)
{
    struct gguf_array a;
    if (gguf_array(g, key, GGUF_STRINGS, &a, NULL) != 1)
        return;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < a.n; i++) {
        struct gguf_str s = gguf_array_str(&a, i);
        bytes += s.bytes ? (uint8_t)s.v[0] + (uint8_t)s.v[s.bytes - 1] : 0u;
    }
    MUST(bytes < UINT64_MAX);
}

/* Reads the first and the last byte of all that the file claims to hold. */
static void touch_all(const struct gguf *g)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct tensor *t = gguf_tensor(g, i);
        MUST(t->bytes > 0 && gguf_tensor_find(g, t->name) == t);
        sum += t->data[0] + t->data[t->bytes - 1];
    }
    for (size_t i = 0; i < gguf_n_keys(g); i++) {
        const struct gguf_value *v = &g->parts[0].values[i];
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)(v->key.bytes < 100 ? v->key.bytes : 100),
                 v->key.v);
        touch_strings(g, key);
    }
    MUST(sum < UINT64_MAX);
}

static void use_vocabulary(const struct model *m)
{
    static const char text[] = "The \xc3\xa9t\xc3\xa9, 12 <|im_end|> a b<think>\n\n\xff";
    const struct turn turn = { .role = ROLE_USER,
                               .text = text,
                               .text_bytes = sizeof text - 1 };
    struct tokens ids = { 0 };
    struct buf back = BUF_INIT;
    struct err err;
    for (unsigned flags = 0; flags <= TOKENIZE_SPECIAL; flags++) {
        ids.len = 0;
        model_tokenize(m, text, sizeof text - 1, flags, &ids);
        for (size_t i = 0; i < ids.len; i++) {
            MUST(ids.v[i] >= 0 && (uint32_t)ids.v[i] < m->info.n_vocab);
            model_detokenize(m, ids.v[i], flags, &back);
        }
    }
    model_detokenize(m, -1, 0, &back);
    model_detokenize(m, INT32_MAX, TOKENIZE_SPECIAL, &back);
    model_render(m, &turn, 1, &(struct render_params){ .thinking = true, .generate = true }, &ids, NULL, &err);
    tokens_release(&ids);
    buf_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model *m = NULL;
    struct err err = { "" };
    const char *path = fuzz_file(data, size);
    if (size && data[size - 1] & 1)
        fuzz_file_grow(path, size + WEIGHT_BYTES);
    if (model_open(&m, path, &err) < 0) {
        MUST(!m && err.text[0] && one_line(err.text));
        return 0;
    }
    const struct model_info *info = model_info(m);
    MUST(info->path && info->architecture && info->name && info->quantisation);
    MUST(info->family && info->tokenizer_id);
    MUST(!info->refusal || one_line(info->refusal));
    MUST(info->weight_bytes <= info->file_bytes);
    touch_all(m->file);
    if (m->vocab)
        use_vocabulary(m);
    model_close(m);
    return 0;
}
