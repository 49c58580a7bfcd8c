/* json.h - a small JSON reader for the data files of the tests: the text
 * becomes a tree of nodes, found by key or index. Not for hostile input: a
 * malformed file ends the test. */
#ifndef TESTS_JSON_H
#define TESTS_JSON_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

struct json {
    enum json_kind kind;
    bool boolean;
    double number;
    char *text; /* strings: UTF-8, may hold NULs, terminated after bytes */
    size_t bytes;
    char *key;          /* members of objects */
    struct json *items; /* arrays and objects, n of them */
    size_t n;
};

struct json_reader {
    const char *p, *end, *path;
};

static inline _Noreturn void json_fail(const struct json_reader *r, const char *what)
{
    printf("# %s: malformed JSON (%s) with %zu bytes left\n", r->path, what,
           (size_t)(r->end - r->p));
    exit(1);
}

static inline char json_peek(struct json_reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
        r->p++;
    return r->p < r->end ? *r->p : 0;
}

static inline bool json_take(struct json_reader *r, char c)
{
    if (json_peek(r) != c || r->p == r->end)
        return false;
    r->p++;
    return true;
}

static inline unsigned json_hex4(struct json_reader *r)
{
    char hex[5] = { 0 };
    if (r->end - r->p < 4)
        json_fail(r, "escape");
    memcpy(hex, r->p, 4);
    r->p += 4;
    char *stop;
    unsigned v = (unsigned)strtoul(hex, &stop, 16);
    if (*stop)
        json_fail(r, "escape");
    return v;
}

static inline size_t json_utf8(unsigned c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 63));
    out[0] = (char)((0xF00 >> n) | c);
    return n;
}

static inline size_t json_escape(struct json_reader *r, char *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = r->p < r->end ? *r->p++ : 0;
    if (c != 'u') {
        const char *at = c ? strchr(names, c) : NULL;
        if (!at)
            json_fail(r, "escape");
        out[0] = values[at - names];
        return 1;
    }
    unsigned v = json_hex4(r);
    if (v >= 0xD800 && v < 0xDC00 && r->end - r->p >= 6 && r->p[0] == '\\' &&
        r->p[1] == 'u') {
        r->p += 2;
        v = 0x10000 + ((v - 0xD800) << 10) + (json_hex4(r) - 0xDC00);
    }
    return json_utf8(v, out);
}

static inline char *json_string(struct json_reader *r, size_t *bytes)
{
    if (!json_take(r, '"'))
        json_fail(r, "string");
    const char *close = r->p; /* a text is never longer than it is written */
    while (close < r->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= r->end)
        json_fail(r, "string");
    char *text = calloc(1, (size_t)(close - r->p) + 1);
    size_t n = 0;
    while (*r->p != '"') {
        if (*r->p == '\\') {
            r->p++;
            n += json_escape(r, text + n);
        } else {
            text[n++] = *r->p++;
        }
    }
    r->p++;
    *bytes = n;
    return text;
}

static inline struct json json_value(struct json_reader *r);

static inline void json_items(struct json_reader *r, struct json *v, char close)
{
    if (json_take(r, close))
        return;
    size_t cap = 0;
    do {
        if (v->n == cap) {
            cap = cap * 2 + 8;
            v->items = realloc(v->items, cap * sizeof *v->items);
        }
        char *key = NULL;
        if (v->kind == JSON_OBJECT) {
            size_t bytes;
            key = json_string(r, &bytes);
            if (!json_take(r, ':'))
                json_fail(r, "colon");
        }
        v->items[v->n] = json_value(r);
        v->items[v->n++].key = key;
    } while (json_take(r, ','));
    if (!json_take(r, close))
        json_fail(r, "end of list");
}

static inline bool json_word(struct json_reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n))
        return false;
    r->p += n;
    return true;
}

static inline struct json json_value(struct json_reader *r)
{
    struct json v = { 0 };
    char c = json_peek(r);
    if (c == '{' || c == '[') {
        r->p++;
        v.kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        json_items(r, &v, c == '{' ? '}' : ']');
    } else if (c == '"') {
        v.kind = JSON_STRING;
        v.text = json_string(r, &v.bytes);
    } else if (json_word(r, "true") || json_word(r, "false")) {
        v.kind = JSON_BOOL;
        v.boolean = c == 't';
    } else if (!json_word(r, "null")) {
        char *stop; /* the text is terminated, see json_read */
        v.kind = JSON_NUMBER;
        v.number = strtod(r->p, &stop);
        if (stop == r->p)
            json_fail(r, "value");
        r->p = stop;
    }
    return v;
}

/* Reads a whole file; ends the test if it cannot. */
static inline struct json json_read(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("# cannot open %s\n", path);
        exit(1);
    }
    char *text = NULL;
    size_t n = 0, got;
    do {
        text = realloc(text, n + 65537);
        got = fread(text + n, 1, 65536, f);
        n += got;
    } while (got);
    fclose(f);
    text[n] = 0;
    struct json_reader r = { text, text + n, path };
    struct json v = json_value(&r);
    if (json_peek(&r) || r.p != r.end)
        json_fail(&r, "text after the value");
    free(text);
    return v;
}

static inline void json_release(struct json *v)
{
    for (size_t i = 0; i < v->n; i++) {
        free(v->items[i].key);
        json_release(&v->items[i]);
    }
    free(v->items);
    free(v->text);
    *v = (struct json){ 0 };
}

/* The member of an object, NULL if it has none of that name. */
static inline const struct json *json_get(const struct json *v, const char *key)
{
    for (size_t i = 0; v && v->kind == JSON_OBJECT && i < v->n; i++)
        if (!strcmp(v->items[i].key, key))
            return &v->items[i];
    return NULL;
}

/* Element i of an array or object, NULL beyond its end. */
static inline const struct json *json_at(const struct json *v, size_t i)
{
    return v && i < v->n ? &v->items[i] : NULL;
}

/* A number, or the number of an absent value: 0. */
static inline double json_number(const struct json *v)
{
    return v && v->kind == JSON_NUMBER ? v->number : 0;
}

/* A text, or "" for anything else. */
static inline const char *json_text(const struct json *v)
{
    return v && v->kind == JSON_STRING ? v->text : "";
}

#endif
