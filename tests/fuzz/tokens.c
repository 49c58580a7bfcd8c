/* tokens.c - text to ids and back, with the vocabularies of two models. */
#include "tests/fuzz/fuzz.h"

#include "base/unicode.h"
#include "engine/gguf.h"
#include "engine/vocab.h"
#include "engine/engine.h"

const unsigned fuzz_rounds = 1500;
const size_t fuzz_max_bytes = 1 << 14;

enum { VOCABS = 2, EXPANDS = 12 /* ids a byte at most, of U+FFFD or what composes */ };

static const struct vocab *vocab_of(unsigned which)
{
    static const char *const paths[VOCABS] = { "assets/tern-mini.gguf",
                                               "tests/data/qwen3-vocab.gguf" };
    static struct gguf *file[VOCABS];
    static struct vocab *vocab[VOCABS];
    struct err err;
    which %= VOCABS;
    if (!vocab[which]) {
        MUST(gguf_open(&file[which], paths[which], &err) == 0);
        MUST(vocab_open(&vocab[which], file[which], &err) == 0);
    }
    return vocab[which];
}

static void through(const struct vocab *v, const char *text, size_t n, unsigned flags,
                    struct buf *back)
{
    struct tokens ids = { 0 };
    vocab_encode(v, text, n, flags, &ids);
    MUST(ids.len <= EXPANDS * n);
    for (size_t i = 0; i < ids.len; i++) {
        MUST(ids.v[i] >= 0 && (uint32_t)ids.v[i] < vocab_size(v));
        MUST(flags || vocab_type(v, ids.v[i]) != TOKEN_CONTROL);
        vocab_decode(v, ids.v[i], TOKENIZE_SPECIAL, back);
    }
    tokens_release(&ids);
}

/* Text in normalisation form C comes back as it was; other text in that form,
 * which then stays. */
static void round_trip(const struct vocab *v, const char *text, size_t n, unsigned flags)
{
    struct buf once = BUF_INIT, twice = BUF_INIT;
    through(v, text, n, flags, &once);
    if (unicode_is_nfc(text, n))
        MUST(once.len == n && (n == 0 || !memcmp(once.v, text, n)));
    through(v, buf_cstr(&once), once.len, flags, &twice);
    MUST(!strcmp(buf_cstr(&once), buf_cstr(&twice)) && once.len == twice.len);
    buf_release(&once);
    buf_release(&twice);
}

static void any_id(const struct vocab *v, int32_t id)
{
    struct buf text = BUF_INIT;
    size_t bytes;
    vocab_decode(v, id, 0, &text);
    MUST(text.len == 0 || (id >= 0 && (uint32_t)id < vocab_size(v)));
    MUST(vocab_text(v, id, &bytes) ? bytes < 1 << 20 : bytes == 0);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input_bytes in = { data, size };
    unsigned how = take(&in);
    const struct vocab *v = vocab_of(how & 1);
    int32_t id;
    for (size_t i = 0; i + sizeof id <= in.n && i < 64; i += sizeof id) {
        memcpy(&id, in.v + i, sizeof id);
        any_id(v, id);
        any_id(v, id & 0xffff);
    }
    round_trip(v, (const char *)in.v, in.n, how & 2 ? TOKENIZE_SPECIAL : 0);
    return 0;
}
