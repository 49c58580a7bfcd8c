/* pretoken.h - cuts text into the pieces within which byte pairs are merged.
 * Thread-safety: pure functions. */
#ifndef ENGINE_PRETOKEN_H
#define ENGINE_PRETOKEN_H

#include <stddef.h>

/* Names as in tokenizer.ggml.pre. */
#define PRETOKEN_RULES(X)        X(QWEN2, "qwen2") X(QWEN35, "qwen35")
#define PRETOKEN_ROW(name, text) PRETOKEN_##name,
enum pretoken_rule { PRETOKEN_RULES(PRETOKEN_ROW) PRETOKEN_RULE_COUNT };
#undef PRETOKEN_ROW

const char *pretoken_name(enum pretoken_rule rule);
/* The rule of that name (not NUL-terminated), or -1. */
int pretoken_from_name(const char *name, size_t bytes);

/* Length in bytes of the first piece of s, n > 0 bytes of UTF-8 that end where
 * the text or its plain part ends. A byte that is not part of well-formed
 * UTF-8 counts as a punctuation mark. Cutting a whole text so takes linear
 * time. The pieces are those of leftmost matches, first alternative first, of
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N} |
 *    ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
 * where qwen35 counts marks (\p{M}) among the letters, except in the
 * optional first character of the second alternative. */
size_t pretoken_next(enum pretoken_rule rule, const char *s, size_t n);

#endif
