/* json.h - JSON out and in: a writer that appends to a buffer, and a strict
 * reader for files that others may have made.
 * Thread-safety: each object belongs to one thread. */
#ifndef APP_JSON_H
#define APP_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ------------------------------------------------------------ */

/* struct json_writer w = { .out = &b }; Commas are set by themselves; opening
 * and closing in pairs is up to the caller. The result is one line of UTF-8. */
struct json_writer {
    struct buf *out;
    bool comma; /* the next value follows another one */
};

void json_open(struct json_writer *w, char bracket);  /* '{' or '[' */
void json_close(struct json_writer *w, char bracket); /* '}' or ']' */
void json_key(struct json_writer *w, const char *key);
/* Any bytes; what is not UTF-8 becomes U+FFFD. */
void json_text(struct json_writer *w, const char *s, size_t n);
/* A NUL-terminated text, NULL as null. */
void json_str(struct json_writer *w, const char *s);
void json_int(struct json_writer *w, int64_t v);
/* The shortest form that reads back as v; null where v is not finite. */
void json_number(struct json_writer *w, double v);
/* v rounded to so many decimals. */
void json_fixed(struct json_writer *w, double v, int decimals);
void json_bool(struct json_writer *w, bool v);

/* ---- reading ------------------------------------------------------------ */

enum { JSON_MAX_DEPTH = 32 };
#define JSON_MAX_BYTES ((size_t)64 << 20)

enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/* A value is known by its index in the document; 0 is no value. */
struct json_doc;

/* Reads one RFC 8259 value that fills the text but for white space: no
 * comments, no trailing commas, no unpaired surrogates, valid UTF-8, at most
 * JSON_MAX_DEPTH levels and JSON_MAX_BYTES bytes. err names the byte. */
int json_parse(struct json_doc **out, const char *text, size_t n, struct err *err);
void json_doc_close(struct json_doc *d);
uint32_t json_root(const struct json_doc *d);

/* All accept 0 and values of another kind, and then return the default. */
enum json_kind json_kind(const struct json_doc *d, uint32_t v);
/* The member of that name (the first of several), 0 if there is none. */
uint32_t json_get(const struct json_doc *d, uint32_t object, const char *key);
/* First element or member, and the one after v. */
uint32_t json_first(const struct json_doc *d, uint32_t v);
uint32_t json_next(const struct json_doc *d, uint32_t v);
size_t json_count(const struct json_doc *d, uint32_t v);
/* Owned by the document, NUL-terminated at [*n], may hold NULs; def if v is no
 * string. n may be NULL. */
const char *json_get_text(const struct json_doc *d, uint32_t v, size_t *n,
                          const char *def);
/* Whether v is a number without fraction in [min, max]; then *out is set. */
bool json_get_int(const struct json_doc *d, uint32_t v, int64_t min, int64_t max,
                  int64_t *out);
double json_get_number(const struct json_doc *d, uint32_t v, double def);
bool json_get_bool(const struct json_doc *d, uint32_t v, bool def);

#endif
