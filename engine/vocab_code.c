/* vocab_code.c - text to ids, in the order that the models were trained with:
 * special tokens are cut out of the raw text, the rest is brought into
 * normalisation form C, cut into pre-tokens, merged; and ids to bytes. */
#include "base/unicode.h"
#include "base/utf8.h"
#include "engine/engine.h"
#include "engine/vocab_internal.h"

#include <string.h>

struct encoder {
    const struct vocab *v;
    struct bpe_scratch scratch;
    struct buf normal;
    struct tokens *out;
};

/* Text without special tokens. */
static void encode_plain(struct encoder *e, const char *s, size_t n)
{
    if (!unicode_is_nfc(s, n)) {
        buf_truncate(&e->normal, 0);
        unicode_nfc(s, n, &e->normal);
        s = e->normal.v;
        n = e->normal.len;
    }
    while (n) {
        size_t piece = pretoken_next(e->v->pre, s, n);
        bpe_encode(e->v->bpe, &e->scratch, s, piece, e->out);
        s += piece;
        n -= piece;
    }
}

void vocab_encode(const struct vocab *v, const char *text, size_t bytes, unsigned flags,
                  struct tokens *out)
{
    struct encoder e = { .v = v, .out = out };
    const bool *skip = flags & TOKENIZE_SPECIAL ? NULL : v->hidden;
    while (bytes) {
        size_t at = bytes, used = 0;
        int32_t id = special_find(v->special, skip, text, bytes, &at, &used);
        encode_plain(&e, text, at);
        if (id >= 0)
            tokens_push(out, id);
        text += at + used;
        bytes -= at + used;
    }
    bpe_scratch_release(&e.scratch);
    buf_release(&e.normal);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of a token written as <0xNN>, or -1. */
static int byte_token(const struct bpe_text *t)
{
    if (t->bytes != 6 || memcmp(t->v, "<0x", 3) != 0 || t->v[5] != '>')
        return -1;
    int high = hex_digit(t->v[3]), low = hex_digit(t->v[4]);
    return high >= 0 && low >= 0 ? high * 16 + low : -1;
}

/* Each code point of a normal token stands for a byte; others, which no
 * encoder makes, stand for themselves. */
static void decode_normal(const struct bpe_text *t, struct buf *out)
{
    for (size_t pos = 0; pos < t->bytes;) {
        uint32_t cp;
        size_t used = utf8_decode(t->v + pos, t->bytes - pos, &cp);
        int byte = bpe_char_byte(cp);
        if (byte >= 0)
            buf_char(out, (char)byte);
        else
            buf_add(out, t->v + pos, used);
        pos += used;
    }
}

void vocab_decode(const struct vocab *v, int32_t id, unsigned flags, struct buf *out)
{
    if (!vocab_has(v, id))
        return;
    const struct bpe_text *t = &v->tokens[id];
    switch ((enum token_type)v->types[id]) {
    case TOKEN_NORMAL:
        decode_normal(t, out);
        break;
    case TOKEN_USER_DEFINED:
        buf_add(out, t->v, t->bytes);
        break;
    case TOKEN_CONTROL:
    case TOKEN_UNKNOWN:
        if (flags & TOKENIZE_SPECIAL)
            buf_add(out, t->v, t->bytes);
        break;
    case TOKEN_BYTE:
        if (byte_token(t) >= 0)
            buf_char(out, (char)byte_token(t));
        break;
    case TOKEN_UNUSED:
        break;
    }
}
