/* pretoken.c - the pre-tokenizers written out by hand: general regular
 * expression engines take stack or time that grows with the text. */
#include "engine/pretoken.h"

#include "base/unicode.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

const char *pretoken_name(enum pretoken_rule rule)
{
#define PRETOKEN_ROW(name, text) [PRETOKEN_##name] = (text),
    static const char *const names[] = { PRETOKEN_RULES(PRETOKEN_ROW) };
#undef PRETOKEN_ROW
    return names[rule];
}

int pretoken_from_name(const char *name, size_t bytes)
{
    for (int i = 0; i < PRETOKEN_RULE_COUNT; i++) {
        const char *known = pretoken_name((enum pretoken_rule)i);
        if (strlen(known) == bytes && !memcmp(known, name, bytes))
            return i;
    }
    return -1;
}

struct cutter {
    const char *s;
    size_t n;
    bool marks_join; /* marks are letters */
};

/* One character: its length is 0 at the end of the text. */
struct point {
    uint32_t c;
    size_t len;
    enum unicode_class class;
};

static struct point point_at(const struct cutter *t, size_t pos)
{
    struct point p = { 0 };
    if (pos >= t->n)
        return p;
    p.len = utf8_decode(t->s + pos, t->n - pos, &p.c);
    p.class = unicode_class(p.c);
    return p;
}

static bool is_newline(struct point p)
{
    return p.len && (p.c == '\r' || p.c == '\n');
}

/* A letter of a word. */
static bool is_word(const struct cutter *t, struct point p)
{
    return p.len &&
           (p.class == UNICODE_LETTER || (t->marks_join && p.class == UNICODE_MARK));
}

/* Punctuation and all else that is in no other class. */
static bool is_other(const struct cutter *t, struct point p)
{
    return p.len && p.class != UNICODE_SPACE && p.class != UNICODE_NUMBER &&
           !is_word(t, p);
}

static size_t word_end(const struct cutter *t, size_t pos)
{
    struct point p;
    while (p = point_at(t, pos), is_word(t, p))
        pos += p.len;
    return pos;
}

/* End of a run of punctuation and of the line ends that follow it. */
static size_t other_end(const struct cutter *t, size_t pos)
{
    struct point p;
    while (p = point_at(t, pos), is_other(t, p))
        pos += p.len;
    while (is_newline(point_at(t, pos)))
        pos++;
    return pos;
}

/* Length of 's, 't, 'm, 'd, 're, 've, 'll in any case of ASCII letters, or 0. */
static size_t contraction(const struct cutter *t)
{
    static const char *const endings[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    if (t->s[0] != '\'')
        return 0;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t len = strlen(endings[i]), k = 0;
        while (k < len && k + 1 < t->n && (t->s[k + 1] | 0x20) == endings[i][k])
            k++;
        if (k == len)
            return k + 1;
    }
    return 0;
}

/* White space: up to the last line end of the run; else all but its last
 * character, which belongs to what follows; else the run. */
static size_t space_end(const struct cutter *t)
{
    size_t pos = 0, last = 0, after_newline = 0;
    struct point p;
    while (p = point_at(t, pos), p.len && p.class == UNICODE_SPACE) {
        last = pos;
        pos += p.len;
        if (is_newline(p))
            after_newline = pos;
    }
    if (after_newline)
        return after_newline;
    return pos < t->n && last > 0 ? last : pos;
}

size_t pretoken_next(enum pretoken_rule rule, const char *s, size_t n)
{
    const struct cutter t = { s, n, rule == PRETOKEN_QWEN35 };
    size_t k = contraction(&t);
    if (k)
        return k;
    struct point first = point_at(&t, 0), second = point_at(&t, first.len);
    if (!is_newline(first) && first.class != UNICODE_LETTER &&
        first.class != UNICODE_NUMBER && is_word(&t, second))
        return word_end(&t, first.len + second.len);
    if (is_word(&t, first))
        return word_end(&t, first.len);
    if (first.class == UNICODE_NUMBER)
        return first.len;
    if (is_other(&t, first))
        return other_end(&t, first.len);
    if (first.c == ' ' && is_other(&t, second))
        return other_end(&t, first.len + second.len);
    return space_end(&t);
}
