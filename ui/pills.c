/* pills.c - see pills.h. Number i has the code point PILL_FIRST + i. */
#include "ui/pills.h"

#include "base/mem.h"
#include "base/sanitize.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static char *clean_label(const char *label)
{
    struct buf b = BUF_INIT;
    sanitize_line(&b, label, strlen(label));
    return buf_detach(&b);
}

bool pills_add(struct pills *p, const char *label, const char *text, size_t n,
               char out[PILL_BYTES])
{
    if (p->n >= PILLS_MAX)
        return false;
    p->v = mem_regrow(p->v, p->n + 1, sizeof *p->v);
    p->v[p->n] = (struct pill){ .label = clean_label(label) };
    buf_add(&p->v[p->n].text, text, n);
    utf8_encode(PILL_FIRST + (uint32_t)p->n++, out);
    return true;
}

void pills_label(struct pills *p, size_t i, const char *label)
{
    if (i >= p->n)
        return;
    free(p->v[i].label);
    p->v[i].label = clean_label(label);
}

static bool in_range(uint32_t cp)
{
    return cp >= PILL_FIRST && cp < PILL_FIRST + PILLS_MAX;
}

const struct pill *pills_at(const struct pills *p, const char *s, size_t n)
{
    uint32_t cp;
    if (!p || n < PILL_BYTES || (unsigned char)s[0] != 0xF4)
        return NULL;
    utf8_decode(s, n, &cp);
    return in_range(cp) && cp - PILL_FIRST < p->n ? &p->v[cp - PILL_FIRST] : NULL;
}

void pills_expand(const struct pills *p, const char *s, size_t n, struct buf *out)
{
    for (size_t i = 0, from = 0; i <= n; i++) {
        const struct pill *pill = i < n ? pills_at(p, s + i, n - i) : NULL;
        if (!pill && i < n)
            continue;
        buf_add(out, s + from, i - from);
        if (pill) {
            buf_add(out, buf_cstr(&pill->text), pill->text.len);
            i += PILL_BYTES - 1;
        }
        from = i + 1;
    }
}

bool pills_in(const char *s, size_t n)
{
    for (const char *at = s; (at = memchr(at, 0xF4, n - (size_t)(at - s))); at++) {
        uint32_t cp;
        utf8_decode(at, n - (size_t)(at - s), &cp);
        if (in_range(cp))
            return true;
    }
    return false;
}

void pills_clean(const char *s, size_t n, struct buf *out)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        if (in_range(cp))
            buf_str(out, "\xEF\xBF\xBD");
        else
            buf_add(out, s + i, len);
    }
}

void pills_release(struct pills *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].label);
        buf_release(&p->v[i].text);
    }
    free(p->v);
    *p = (struct pills){ 0 };
}
