/* json_read.c - the reading half of json.h.
 * Invariants: nodes.v[0] stands for "no value"; a node's children are linked
 * through next and all have higher indices, so a document has no cycles. Keys
 * and texts lie NUL-terminated in one buffer. Recursion ends at JSON_MAX_DEPTH;
 * the memory used is at most a fixed multiple of the text's length. */
#include "app/json.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 24 bytes, since a hostile file can have a node for every second byte. Offsets
 * into texts fit 32 bits: texts are no longer than JSON_MAX_BYTES. */
struct node {
    uint8_t kind;  /* enum json_kind */
    bool integral; /* a number: integer holds it, not number */
    uint32_t next;
    struct span {
        uint32_t at, bytes;
    } key; /* members: the name */
    union {
        struct span text; /* strings */
        int64_t integer;
        double number;
        struct {
            uint32_t first, count;
        } items; /* arrays and objects */
    } u;
};

struct json_doc {
    struct node *v;
    uint32_t len, cap;
    struct buf texts;
};

struct reader {
    struct json_doc *d;
    const char *start, *p, *end;
    struct err *err;
    int depth;
};

static int bad(const struct reader *r, const char *what)
{
    return err_set(r->err, "not valid JSON: %s at byte %zu", what,
                   (size_t)(r->p - r->start));
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end &&
           (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static uint32_t node_new(struct json_doc *d, enum json_kind kind)
{
    if (d->len == d->cap) {
        d->cap = d->cap * 2 + 16;
        d->v = mem_regrow(d->v, d->cap, sizeof *d->v);
    }
    d->v[d->len] = (struct node){ .kind = (uint8_t)kind };
    return d->len++;
}

/* ---- strings ------------------------------------------------------------ */

static int read_hex4(struct reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        char c = r->p < r->end ? *r->p : 0;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return bad(r, "\\u without four hexadecimal digits");
        *out = *out << 4 | digit;
        r->p++;
    }
    return 0;
}

static int read_unicode_escape(struct reader *r, struct buf *out)
{
    uint32_t cp, low;
    char utf8[4];
    if (read_hex4(r, &cp) < 0)
        return -1;
    if (cp >= 0xD800 && cp < 0xDC00) {
        if (!take(r, '\\') || !take(r, 'u'))
            return bad(r, "an unpaired surrogate");
        if (read_hex4(r, &low) < 0)
            return -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return bad(r, "an unpaired surrogate");
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
    } else if (cp >= 0xDC00 && cp <= 0xDFFF) {
        return bad(r, "an unpaired surrogate");
    }
    buf_add(out, utf8, utf8_encode(cp, utf8));
    return 0;
}

static int read_escape(struct reader *r, struct buf *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = r->p < r->end ? *r->p : 0;
    const char *at = c ? strchr(names, c) : NULL;
    if (c != 'u' && !at)
        return bad(r, "an unknown escape");
    r->p++;
    if (c == 'u')
        return read_unicode_escape(r, out);
    buf_char(out, values[at - names]);
    return 0;
}

/* The text after an opening quote, appended to texts with a NUL behind it. */
static int read_string(struct reader *r, struct span *span)
{
    struct buf *out = &r->d->texts;
    span->at = (uint32_t)out->len;
    for (;;) {
        if (r->p == r->end)
            return bad(r, "a string without end");
        unsigned char c = (unsigned char)*r->p;
        if (c == '"')
            break;
        if (c < 0x20)
            return bad(r, "a control character in a string");
        if (c == '\\') {
            r->p++;
            if (read_escape(r, out) < 0)
                return -1;
            continue;
        }
        uint32_t cp;
        size_t n = utf8_decode(r->p, (size_t)(r->end - r->p), &cp);
        if (n == 1 && cp == UTF8_REPLACEMENT)
            return bad(r, "a byte that is not UTF-8");
        buf_add(out, r->p, n);
        r->p += n;
    }
    r->p++;
    span->bytes = (uint32_t)out->len - span->at;
    buf_char(out, 0);
    return 0;
}

/* ---- numbers and words --------------------------------------------------- */

static size_t skip_digits(struct reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return (size_t)(r->p - from);
}

/* Scans the grammar by hand, since strtod accepts more than JSON does. */
static int read_number(struct reader *r, struct node *v)
{
    const char *from = r->p;
    bool integral = true;
    take(r, '-');
    if (!take(r, '0') && !skip_digits(r))
        return bad(r, "a value that is none");
    if (take(r, '.')) {
        integral = false;
        if (!skip_digits(r))
            return bad(r, "a number without digits after its point");
    }
    if (take(r, 'e') || take(r, 'E')) {
        integral = false;
        if (!take(r, '+'))
            take(r, '-');
        if (!skip_digits(r))
            return bad(r, "an exponent without digits");
    }
    char text[64] = "";
    size_t n = (size_t)(r->p - from);
    if (n >= sizeof text)
        return bad(r, "a number of too many digits");
    memcpy(text, from, n);
    double number = strtod(text, NULL);
    if (!isfinite(number))
        return bad(r, "a number that is too large");
    v->integral = integral && fabs(number) < 9.2e18;
    if (v->integral)
        v->u.integer = strtoll(text, NULL, 10);
    else
        v->u.number = number;
    return 0;
}

static int read_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return bad(r, "a value that is none");
    r->p += n;
    return 0;
}

/* ---- values ------------------------------------------------------------- */

static int read_value(struct reader *r, uint32_t *out);

static int read_member_name(struct reader *r, struct span *key)
{
    skip_space(r);
    if (!take(r, '"'))
        return bad(r, "a member without a name");
    if (read_string(r, key) < 0)
        return -1;
    skip_space(r);
    return take(r, ':') ? 0 : bad(r, "a name without a colon");
}

static int read_items(struct reader *r, uint32_t parent, char close)
{
    uint32_t last = 0;
    skip_space(r);
    if (take(r, close))
        return 0;
    do {
        struct span key = { 0, 0 };
        uint32_t item;
        if (close == '}' && read_member_name(r, &key) < 0)
            return -1;
        if (read_value(r, &item) < 0)
            return -1;
        struct node *v = r->d->v;
        v[item].key = key;
        if (last)
            v[last].next = item;
        else
            v[parent].u.items.first = item;
        v[parent].u.items.count++;
        last = item;
        skip_space(r);
    } while (take(r, ','));
    return take(r, close) ? 0 : bad(r, "a list or object without end");
}

static int read_scalar(struct reader *r, char c, struct node *v)
{
    switch (c) {
    case '"':
        r->p++;
        v->kind = JSON_STRING;
        return read_string(r, &v->u.text);
    case 't':
    case 'f':
        v->kind = JSON_BOOL;
        v->u.integer = c == 't';
        return read_word(r, c == 't' ? "true" : "false");
    case 'n':
        v->kind = JSON_NULL;
        return read_word(r, "null");
    default:
        v->kind = JSON_NUMBER;
        return read_number(r, v);
    }
}

static int read_value(struct reader *r, uint32_t *out)
{
    skip_space(r);
    char c = r->p < r->end ? *r->p : 0;
    *out = node_new(r->d, c == '{' ? JSON_OBJECT : JSON_ARRAY);
    if (c == '{' || c == '[') {
        if (++r->depth > JSON_MAX_DEPTH)
            return bad(r, "too many levels");
        r->p++;
        int rc = read_items(r, *out, c == '{' ? '}' : ']');
        r->depth--;
        return rc;
    }
    struct node v = { 0 };
    if (read_scalar(r, c, &v) < 0)
        return -1;
    r->d->v[*out] = v;
    return 0;
}

int json_parse(struct json_doc **out, const char *text, size_t n, struct err *err)
{
    *out = NULL;
    if (n > JSON_MAX_BYTES)
        return err_set(err, "%zu bytes of JSON are more than the %zu allowed", n,
                       JSON_MAX_BYTES);
    struct json_doc *d = mem_zalloc(sizeof *d);
    struct reader r = { .d = d, .start = text, .p = text, .end = text + n, .err = err };
    uint32_t root;
    node_new(d, JSON_NULL);
    int rc = read_value(&r, &root);
    skip_space(&r);
    if (rc == 0 && r.p != r.end)
        rc = bad(&r, "something after the value");
    if (rc < 0) {
        json_doc_close(d);
        return -1;
    }
    *out = d;
    return 0;
}

void json_doc_close(struct json_doc *d)
{
    if (!d)
        return;
    free(d->v);
    buf_release(&d->texts);
    free(d);
}

/* ---- looking at a document ----------------------------------------------- */

uint32_t json_root(const struct json_doc *d)
{
    return d->len > 1 ? 1 : 0;
}

enum json_kind json_kind(const struct json_doc *d, uint32_t v)
{
    return (enum json_kind)d->v[v].kind;
}

static bool has_items(const struct json_doc *d, uint32_t v)
{
    return d->v[v].kind == JSON_ARRAY || d->v[v].kind == JSON_OBJECT;
}

uint32_t json_first(const struct json_doc *d, uint32_t v)
{
    return has_items(d, v) ? d->v[v].u.items.first : 0;
}

uint32_t json_next(const struct json_doc *d, uint32_t v)
{
    return d->v[v].next;
}

size_t json_count(const struct json_doc *d, uint32_t v)
{
    return has_items(d, v) ? d->v[v].u.items.count : 0;
}

uint32_t json_get(const struct json_doc *d, uint32_t object, const char *key)
{
    size_t n = strlen(key);
    if (d->v[object].kind != JSON_OBJECT)
        return 0;
    for (uint32_t i = json_first(d, object); i; i = d->v[i].next)
        if (d->v[i].key.bytes == n && !memcmp(d->texts.v + d->v[i].key.at, key, n))
            return i;
    return 0;
}

const char *json_get_text(const struct json_doc *d, uint32_t v, size_t *n,
                          const char *def)
{
    bool is_text = d->v[v].kind == JSON_STRING;
    if (n)
        *n = is_text ? d->v[v].u.text.bytes : def ? strlen(def) : 0;
    return is_text ? d->texts.v + d->v[v].u.text.at : def;
}

bool json_get_int(const struct json_doc *d, uint32_t v, int64_t min, int64_t max,
                  int64_t *out)
{
    const struct node *node = &d->v[v];
    if (node->kind != JSON_NUMBER || !node->integral || node->u.integer < min ||
        node->u.integer > max)
        return false;
    *out = node->u.integer;
    return true;
}

double json_get_number(const struct json_doc *d, uint32_t v, double def)
{
    const struct node *node = &d->v[v];
    if (node->kind != JSON_NUMBER)
        return def;
    return node->integral ? (double)node->u.integer : node->u.number;
}

bool json_get_bool(const struct json_doc *d, uint32_t v, bool def)
{
    const struct node *node = &d->v[v];
    return node->kind == JSON_BOOL ? node->u.integer != 0 : def;
}
