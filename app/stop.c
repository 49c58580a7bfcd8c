/* stop.c - looks for stop texts at the end of what has come, byte by byte; holds
 * back at most one byte less than the longest of them. */
#include "app/stop.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* What a backslash and this letter stand for, 0: nothing. */
static char unescaped(char letter)
{
    return letter == 'n' ? '\n' : letter == 't' ? '\t' : letter == '\\' ? '\\' : 0;
}

int stop_list_add(struct stop_list *l, const char *text, struct err *err)
{
    struct buf b = BUF_INIT;
    for (const char *p = text; *p; p++) {
        char escape = *p == '\\' ? unescaped(p[1]) : 0;
        buf_char(&b, escape ? escape : *p);
        p += escape != 0;
    }
    int rc = 0;
    if (!b.len || b.len > STOP_BYTES || !utf8_valid(b.v, b.len))
        rc = err_set(err, "a stop text has 1 to %d bytes of UTF-8", STOP_BYTES);
    else if (l->n == STOP_MAX)
        rc = err_set(err, "there can be %d stop texts at most", STOP_MAX);
    if (rc == 0)
        l->v[l->n++] = buf_detach(&b);
    buf_release(&b);
    return rc;
}

void stop_list_copy(struct stop_list *dst, const struct stop_list *src)
{
    for (dst->n = 0; dst->n < src->n; dst->n++)
        dst->v[dst->n] = mem_strdup(src->v[dst->n]);
}

void stop_list_release(struct stop_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    l->n = 0;
}

/* ---- on its way ---------------------------------------------------------- */

void stopper_init(struct stopper *s, const struct stop_list *list)
{
    *s = (struct stopper){ .list = list };
}

static bool ends_with(const struct buf *b, const char *text, size_t n)
{
    return b->len >= n && !memcmp(b->v + b->len - n, text, n);
}

/* Length of the longest stop text that the held text ends with, or 0. */
static size_t complete(const struct stopper *s)
{
    size_t best = 0;
    for (size_t i = 0; i < s->list->n; i++) {
        size_t n = strlen(s->list->v[i]);
        if (n > best && ends_with(&s->held, s->list->v[i], n))
            best = n;
    }
    return best;
}

/* How much of the held text's end is the beginning of a stop text. */
static size_t beginning(const struct stopper *s)
{
    size_t best = 0;
    for (size_t i = 0; i < s->list->n; i++)
        for (size_t n = strlen(s->list->v[i]) - 1; n > best; n--)
            if (ends_with(&s->held, s->list->v[i], n))
                best = n;
    return best;
}

static void pass(struct stopper *s, size_t n, struct buf *out)
{
    buf_add(out, buf_cstr(&s->held), n);
    s->passed += n;
    memmove(s->held.v, s->held.v + n, s->held.len - n);
    buf_truncate(&s->held, s->held.len - n);
}

void stopper_add(struct stopper *s, const char *text, size_t n, struct buf *out)
{
    if (!s->list->n) {
        buf_add(out, text, n);
        s->passed += n;
        return;
    }
    for (size_t i = 0; i < n && !s->hit; i++) {
        buf_char(&s->held, text[i]);
        size_t found = complete(s);
        s->hit = found > 0;
        size_t keep = found ? found : beginning(s);
        if (s->held.len > keep)
            pass(s, s->held.len - keep, out);
    }
}

void stopper_end(struct stopper *s, struct buf *out)
{
    if (!s->hit && s->held.len)
        pass(s, s->held.len, out);
}

void stopper_release(struct stopper *s)
{
    buf_release(&s->held);
}
