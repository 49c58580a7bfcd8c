/* json_write.c - the writing half of json.h. Keeps no stack: whether a comma is
 * due depends on the last token alone. */
#include "app/json.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void value_begin(struct json_writer *w)
{
    if (w->comma)
        buf_char(w->out, ',');
    w->comma = true;
}

void json_open(struct json_writer *w, char bracket)
{
    value_begin(w);
    buf_char(w->out, bracket);
    w->comma = false;
}

void json_close(struct json_writer *w, char bracket)
{
    buf_char(w->out, bracket);
    w->comma = true;
}

static void quoted(struct buf *out, const char *s, size_t n)
{
    static const char names[] = "\b\f\n\r\t\"\\", escapes[] = "bfnrt\"\\";
    buf_char(out, '"');
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t bytes = utf8_decode(s + i, n - i, &cp);
        const char *name = cp && cp < 0x80 ? strchr(names, (int)cp) : NULL;
        if (name)
            buf_printf(out, "\\%c", escapes[name - names]);
        else if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
            buf_printf(out, "\\u%04x", (unsigned)cp);
        else if (bytes == 1 && cp == UTF8_REPLACEMENT)
            buf_str(out, "\xef\xbf\xbd");
        else
            buf_add(out, s + i, bytes);
        i += bytes;
    }
    buf_char(out, '"');
}

void json_key(struct json_writer *w, const char *key)
{
    value_begin(w);
    quoted(w->out, key, strlen(key));
    buf_char(w->out, ':');
    w->comma = false;
}

void json_text(struct json_writer *w, const char *s, size_t n)
{
    value_begin(w);
    quoted(w->out, s, n);
}

static void word(struct json_writer *w, const char *text)
{
    value_begin(w);
    buf_str(w->out, text);
}

void json_str(struct json_writer *w, const char *s)
{
    if (s)
        json_text(w, s, strlen(s));
    else
        word(w, "null");
}

void json_int(struct json_writer *w, int64_t v)
{
    value_begin(w);
    buf_printf(w->out, "%lld", (long long)v);
}

void json_number(struct json_writer *w, double v)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    word(w, isfinite(v) ? text : "null");
}

void json_fixed(struct json_writer *w, double v, int decimals)
{
    if (!isfinite(v)) {
        word(w, "null");
        return;
    }
    value_begin(w);
    buf_printf(w->out, "%.*f", decimals, v);
}

void json_bool(struct json_writer *w, bool v)
{
    word(w, v ? "true" : "false");
}
