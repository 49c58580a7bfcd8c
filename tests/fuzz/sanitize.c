/* sanitize.c - foreign text on its way to a terminal, and the functions that
 * measure and cut it there. */
#include "tests/fuzz/fuzz.h"

#include "base/sanitize.h"
#include "base/utf8.h"

const unsigned fuzz_rounds = 3000;
const size_t fuzz_max_bytes = 1 << 12;

static void check_clean(const struct buf *b, bool one_line)
{
    const char *s = buf_cstr(b);
    MUST(utf8_valid(s, b->len) && strlen(s) == b->len);
    for (size_t at = 0; at < b->len;) {
        uint32_t cp;
        at += utf8_decode(s + at, b->len - at, &cp);
        MUST(sanitize_allows(cp) || (!one_line && (cp == '\n' || cp == '\t')));
    }
}

/* What was cleaned stays as it is. */
static void check_again(const struct buf *b)
{
    struct buf again = BUF_INIT;
    sanitize(&again, buf_cstr(b), b->len);
    MUST(!strcmp(buf_cstr(&again), buf_cstr(b)));
    buf_release(&again);
}

/* A stream gives the same as the whole. */
static void check_pieces(const char *s, size_t n, size_t step, const struct buf *whole)
{
    struct buf b = BUF_INIT;
    size_t done = 0;
    for (size_t at = 0; at < n;) {
        at = at + step < n ? at + step : n;
        size_t upto = at == n ? n : done + utf8_complete(s + done, at - done);
        sanitize(&b, s + done, upto - done);
        done = upto;
    }
    MUST(!strcmp(buf_cstr(&b), buf_cstr(whole)));
    buf_release(&b);
}

/* Steps forward go on and end; the steps back meet them in clean text. */
static void check_steps(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t at = 0; at < n;) {
        size_t next = utf8_grapheme_next(s, n, at);
        MUST(next > at && next <= n);
        int width = utf8_grapheme_width(s + at, next - at);
        MUST(width >= 0);
        columns += (size_t)width;
        at = next;
    }
    MUST(utf8_width(s, n) == columns);
    for (size_t at = n; at > 0;) {
        size_t before = utf8_grapheme_prev(s, n, at);
        MUST(before < at);
        at = before;
    }
    for (size_t at = 0, next; at < n; at = next)
        MUST((next = utf8_word_next(s, n, at)) > at && next <= n);
    for (size_t at = n, before; at > 0; at = before)
        MUST((before = utf8_word_prev(s, n, at)) < at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input_bytes in = { data, size };
    size_t step = 1 + take(&in) % 16;
    const char *s = (const char *)in.v;
    struct buf many = BUF_INIT, one = BUF_INIT;
    sanitize(&many, s, in.n);
    sanitize_line(&one, s, in.n);
    check_clean(&many, false);
    check_clean(&one, true);
    check_again(&many);
    check_pieces(s, in.n, step, &many);
    check_steps(s, in.n);
    check_steps(buf_cstr(&one), one.len);
    buf_release(&many);
    buf_release(&one);
    return 0;
}
