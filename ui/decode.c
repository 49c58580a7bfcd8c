/* decode.c - key presses and pastes. The control sequences are parsed in csi.c.
 *
 * Invariant: in.v[0, at) was consumed; what follows is undecided input. */
#include "ui/decode.h"

#include "base/utf8.h"
#include "ui/csi.h"

#include <string.h>

#define PASTE_BEGIN "\x1b[200~"
#define PASTE_END   "\x1b[201~"
#define MARK_BYTES  (sizeof PASTE_END - 1)
/* What a hand can have typed within PASTE_TAIL_MS of a paste. */
#define TYPED_MAX 64

void decode_release(struct decoder *d)
{
    buf_release(&d->in);
    buf_release(&d->paste);
    *d = (struct decoder){ 0 };
}

void decode_feed(struct decoder *d, const char *bytes, size_t n, int64_t now_ms)
{
    if (d->at > 0) {
        memmove(d->in.v, d->in.v + d->at, d->in.len - d->at);
        buf_truncate(&d->in, d->in.len - d->at);
        d->at = 0;
    }
    buf_add(&d->in, bytes, n);
    d->last_ms = now_ms;
}

static const char *find(const char *s, size_t n, const char *mark)
{
    while (n >= MARK_BYTES) {
        const char *esc = memchr(s, mark[0], n - MARK_BYTES + 1);
        if (!esc || !memcmp(esc, mark, MARK_BYTES))
            return esc;
        n -= (size_t)(esc + 1 - s);
        s = esc + 1;
    }
    return NULL;
}

/* Bytes at the end of s that may be the start of an end mark. */
static size_t half_mark(const char *s, size_t n)
{
    size_t most = n < MARK_BYTES ? n : MARK_BYTES - 1;
    for (size_t k = most; k > 0; k--)
        if (!memcmp(s + n - k, PASTE_END, k))
            return k;
    return 0;
}

static void paste_add(struct decoder *d, const char *s, size_t n)
{
    size_t room = PASTE_BYTES_MAX - d->paste.len;
    if (n > room) {
        d->paste_cut = true;
        n = room;
    }
    buf_add(&d->paste, s, n);
}

/* One line ending, no controls but newline and tab, valid UTF-8. */
static void paste_clean(struct buf *b)
{
    size_t out = 0, n = b->len;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(b->v + i, n - i, &cp);
        bool crlf = cp == '\r' && i + 1 < n && b->v[i + 1] == '\n';
        bool control = (cp < 0x20 && cp != '\n' && cp != '\t' && cp != '\r') ||
                       (cp >= 0x7F && cp <= 0x9F);
        if (crlf || control || (cp == UTF8_REPLACEMENT && len == 1))
            continue;
        memmove(b->v + out, b->v + i, len); /* out <= i: never grows */
        if (cp == '\r')
            b->v[out] = '\n';
        out += len;
    }
    buf_truncate(b, out);
}

static bool paste_done(struct decoder *d, struct key *out)
{
    d->state = DECODE_KEYS;
    paste_clean(&d->paste);
    d->paste_shown = true;
    *out = (struct key){ .code = K_PASTE };
    return true;
}

/* Inside a paste: everything up to the end mark is text. */
static bool paste_next(struct decoder *d, int64_t now, struct key *out)
{
    const char *s = buf_cstr(&d->in) + d->at;
    size_t n = d->in.len - d->at;
    const char *end = find(s, n, PASTE_END);
    size_t text = end ? (size_t)(end - s) : n - half_mark(s, n);
    paste_add(d, s, text);
    d->at += text;
    if (end) {
        d->at += MARK_BYTES;
        d->state = DECODE_PASTE_TAIL;
        return false;
    }
    return now - d->last_ms >= PASTE_WAIT_MS && paste_done(d, out);
}

/* After an end mark. Text that holds an end mark itself would otherwise go on
 * as key presses, Enter among them. So the mark counts only when it is followed
 * by silence, or by no more than a few keys and then silence. */
static bool tail_next(struct decoder *d, int64_t now, struct key *out)
{
    const char *s = buf_cstr(&d->in) + d->at;
    size_t n = d->in.len - d->at;
    const char *end = find(s, n, PASTE_END);
    if (find(s, end ? (size_t)(end - s) : n, PASTE_BEGIN)) /* the next paste */
        return paste_done(d, out);
    if (end || n > TYPED_MAX) {
        d->state = DECODE_PASTE;
        return false;
    }
    return now - d->last_ms >= PASTE_TAIL_MS && paste_done(d, out);
}

static struct key control_key(unsigned char c)
{
    struct key k = { .code = K_CHAR, .mods = MOD_CTRL };
    switch (c) {
    case '\r':
        return (struct key){ .code = K_ENTER };
    case '\t':
        return (struct key){ .code = K_TAB };
    case 0x08:
    case 0x7F:
        return (struct key){ .code = K_BACKSPACE };
    case 0:
        k.cp = ' ';
        return k;
    default:
        k.cp = c < 0x1B ? (uint32_t)(c + 0x60) : (uint32_t)(c + 0x40);
        return k;
    }
}

/* A key that is no sequence; 0 while its bytes are incomplete. */
static size_t plain_key(const char *s, size_t n, struct key *out)
{
    unsigned char c = (unsigned char)s[0];
    if (c < 0x20 || c == 0x7F) {
        *out = control_key(c);
        return 1;
    }
    if (utf8_complete(s, n < 4 ? n : 4) == 0)
        return 0;
    uint32_t cp;
    size_t len = utf8_decode(s, n, &cp);
    bool bad = (cp == UTF8_REPLACEMENT && len == 1) || (cp >= 0x80 && cp <= 0x9F);
    *out = (struct key){ .code = bad ? K_NONE : K_CHAR, .cp = cp };
    return len;
}

/* What starts with ESC. `late`: nothing more will come. */
static size_t escape_key(const char *s, size_t n, bool late, struct key *out)
{
    *out = (struct key){ .code = K_ESC };
    if (n == 1)
        return late ? 1 : 0;
    if ((unsigned char)s[1] < 0x20 && s[1] != '\r' && s[1] != '\b')
        return 1; /* two keys: Alt with a control key has no meaning here */
    if (s[1] == '[' || s[1] == 'O') {
        size_t len = csi_parse(s, n, out);
        if (len > 0 || !late)
            return len;
        if (n > 2) { /* cut off for good: drop it, type none of it */
            *out = (struct key){ .code = K_NONE };
            return n;
        }
    }
    size_t len = plain_key(s + 1, n - 1, out);
    out->mods |= MOD_ALT;
    return len > 0 ? len + 1 : late ? n : 0;
}

static bool key_next(struct decoder *d, int64_t now, struct key *out)
{
    while (d->at < d->in.len) {
        const char *s = d->in.v + d->at;
        size_t n = d->in.len - d->at, len;
        bool late = now - d->last_ms >= ESC_WAIT_MS;
        if (n >= MARK_BYTES && !memcmp(s, PASTE_BEGIN, MARK_BYTES)) {
            d->at += MARK_BYTES;
            d->state = DECODE_PASTE;
            d->paste_cut = false;
            return false;
        }
        len = s[0] == 0x1B ? escape_key(s, n, late, out) : plain_key(s, n, out);
        if (len == 0 && !late)
            return false;
        d->at += len ? len : 1;
        if (len > 0 && out->code != K_NONE)
            return true;
    }
    return false;
}

bool decode_next(struct decoder *d, int64_t now_ms, struct key *out)
{
    if (d->paste_shown) {
        buf_truncate(&d->paste, 0);
        d->paste_shown = false;
    }
    for (;;) {
        enum decode_state state = d->state;
        bool found = state == DECODE_KEYS    ? key_next(d, now_ms, out)
                     : state == DECODE_PASTE ? paste_next(d, now_ms, out)
                                             : tail_next(d, now_ms, out);
        if (found || d->state == state)
            return found;
    }
}

int decode_timeout_ms(const struct decoder *d, int64_t now_ms)
{
    int64_t wait = d->state == DECODE_PASTE        ? PASTE_WAIT_MS
                   : d->state == DECODE_PASTE_TAIL ? PASTE_TAIL_MS
                                                   : ESC_WAIT_MS;
    if (d->state == DECODE_KEYS && d->at == d->in.len)
        return -1;
    int64_t left = d->last_ms + wait - now_ms;
    return left > 0 ? (int)left : 0;
}
