/* chat_format.c - features of the chat templates of the Qwen families:
 *   qwen3     <think>\n\n</think>\n\n is put before an answer without thinking
 *   qwen3.5   and <think>\n before one with it
 *   qwen3.6   preserve_thinking, off when not given
 *   qwen3.8   preserve_thinking, on when not given; reasoning_effort, a sentence
 *             at the head of the system turn
 * Everything is looked for in a copy in which the escape \n is a line end. */
#include "engine/chat_format.h"

#include "base/buf.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { PREAMBLE_BYTES = 256 };

static const char skip_block[] = "<think>\n\n</think>\n\n";
static const char open_block[] = "<think>\n";

struct span {
    const char *v;
    size_t n;
};

/* Where needle begins at or after `from`, or n. */
static size_t span_find(struct span s, size_t from, const char *needle)
{
    size_t len = strlen(needle);
    while (from < s.n && len <= s.n - from) {
        const char *hit = memchr(s.v + from, needle[0], s.n - from - len + 1);
        if (!hit)
            break;
        from = (size_t)(hit - s.v);
        if (!memcmp(hit, needle, len))
            return from;
        from++;
    }
    return s.n;
}

static bool has(struct span s, const char *needle)
{
    return span_find(s, 0, needle) < s.n;
}

static bool has_any(struct span s, const char *const *needles)
{
    for (; *needles; needles++)
        if (has(s, *needles))
            return true;
    return false;
}

/* The part that writes the header of an answer: what follows the last mention
 * of add_generation_prompt, or all if it is never mentioned. */
static struct span header_part(struct span s)
{
    static const char word[] = "add_generation_prompt";
    size_t at = 0;
    for (size_t hit = 0; (hit = span_find(s, hit, word)) < s.n; hit++)
        at = hit;
    return (struct span){ s.v + at, s.n - at };
}

/* Whether <think>\n is written without being closed at once. */
static bool opens_block(struct span header)
{
    for (size_t at = 0; (at = span_find(header, at, open_block)) < header.n; at++) {
        struct span rest = { header.v + at, header.n - at };
        if (span_find(rest, 0, skip_block) != 0)
            return true;
    }
    return false;
}

static bool starts_thinking(struct span all, struct span header)
{
    static const char *const on[] = { "enable_thinking is false",
                                      "enable_thinking == false",
                                      "enable_thinking is undefined",
                                      "enable_thinking is not defined",
                                      "default(true",
                                      NULL };
    /* some files carry the family's template behind a fixed choice */
    struct span preamble = { all.v, all.n < PREAMBLE_BYTES ? all.n : PREAMBLE_BYTES };
    if (has(preamble, "set enable_thinking = false"))
        return false;
    if (has(preamble, "set enable_thinking = true"))
        return true;
    return has_any(header, on);
}

/* The quoted text that contains `begin` at its start, NULL if there is none. */
static char *quoted(struct span s, const char *begin)
{
    for (size_t at = 0; (at = span_find(s, at, begin)) < s.n; at++) {
        char quote = at > 0 ? s.v[at - 1] : 0;
        size_t most =
            s.n - at < CHAT_FORMAT_MAX_SENTENCE ? s.n - at : CHAT_FORMAT_MAX_SENTENCE;
        const char *end = memchr(s.v + at, quote, most);
        if ((quote == '\'' || quote == '"') && end)
            return mem_strndup(s.v + at, (size_t)(end - s.v) - at);
    }
    return NULL;
}

/* Degrees of effort: the usual one, and the sentence of each that has one. */
static void efforts_read(struct chat_format *f, struct span s)
{
    static const char *const sentences[EFFORT_COUNT] = {
        [EFFORT_LOW] = "Reasoning effort is set to low",
        [EFFORT_MEDIUM] = "Reasoning effort is set to medium",
        [EFFORT_XHIGH] = "Reasoning effort is set to xhigh",
    };
    if (!has(s, "reasoning_effort"))
        return;
    f->effort = has(s, "reasoning_effort|default('low')")      ? EFFORT_LOW
                : has(s, "reasoning_effort|default('medium')") ? EFFORT_MEDIUM
                                                               : EFFORT_XHIGH;
    for (int e = EFFORT_LOW; e < EFFORT_COUNT; e++)
        f->sentences[e] = quoted(s, sentences[e]);
}

static const char *family_name(const struct chat_format *f, struct span s)
{
    if (f->opens && has(s, "reasoning_effort"))
        return "qwen3.8";
    if (f->opens && has(s, "preserve_thinking"))
        return "qwen3.6";
    if (f->opens && f->can_choose)
        return "qwen3.5";
    return f->thinks || has(s, "<tool_call>") ? "qwen3" : "chatml";
}

static void features_read(struct chat_format *f, struct span s)
{
    struct span header = header_part(s);
    f->recognised = has(s, "<|im_start|>") && has(s, "<|im_end|>");
    if (!f->recognised)
        return;
    f->opens = opens_block(header);
    f->can_choose = has(header, "enable_thinking") && has(header, skip_block);
    f->thinks = f->opens || f->can_choose;
    f->default_on = f->thinks && (!f->can_choose || starts_thinking(s, header));
    f->family = family_name(f, s);
    /* a block before every answer, or before all unless it is asked not to be */
    f->history_block =
        f->opens && (has(s, "preserve_thinking is undefined") ||
                     (has(s, "\n<think>\n' + reasoning") && !has(s, "> ns.last_query")));
    if (f->opens)
        efforts_read(f, s);
}

void chat_format_read(struct chat_format *f, const char *text, size_t bytes)
{
    struct buf copy = BUF_INIT;
    *f = (struct chat_format){ .family = "chatml" };
    for (size_t i = 0; i < bytes; i++) {
        bool newline = text[i] == '\\' && i + 1 < bytes && text[i + 1] == 'n';
        buf_char(&copy, newline ? '\n' : text[i]);
        i += newline;
    }
    features_read(f, (struct span){ buf_cstr(&copy), copy.len });
    buf_release(&copy);
}

void chat_format_release(struct chat_format *f)
{
    for (int e = 0; e < EFFORT_COUNT; e++) {
        free(f->sentences[e]);
        f->sentences[e] = NULL;
    }
}
