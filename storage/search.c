/* search.c - full-text search, quick enough for every key that is typed. What the
 * user typed is never taken as the query language of FTS5: each word becomes a
 * quoted string, matched as a prefix unless that would be half of all words. */
#include "storage/store.h"

#include "base/buf.h"
#include "base/mem.h"
#include "storage/db.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS  32   /* more do not narrow a search any further */
#define WORD_BYTES 256  /* what is longer matches by its beginning */
#define PART_BYTES 1000 /* the same of a text that is looked for in texts */
#define WHOLE_MAX  2    /* so short a word matches no beginnings */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* The length of a text that is cut to most bytes, but not within a character. */
static size_t cut(const char *text, size_t n, size_t most)
{
    if (n <= most)
        return n;
    n = most;
    while (n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static bool is_short(const char *word, size_t n)
{
    size_t characters = 0;
    for (size_t i = 0; i < n; i++)
        characters += ((unsigned char)word[i] & 0xc0) != 0x80;
    return characters <= WHOLE_MAX;
}

/* "say to \"hi" becomes "say"* "to" """hi"*: words that must all occur. */
static void add_query(struct buf *b, const char *words)
{
    for (int i = 0; i < MAX_WORDS; i++) {
        while (*words && is_blank(*words))
            words++;
        size_t n = 0;
        while (words[n] && !is_blank(words[n]))
            n++;
        if (n == 0)
            return;
        buf_char(b, '"');
        for (size_t k = 0; k < cut(words, n, WORD_BYTES); k++) {
            if (words[k] == '"')
                buf_char(b, '"');
            buf_char(b, words[k]);
        }
        buf_str(b, is_short(words, n) ? "\" " : "\"* ");
        words += n;
    }
}

static void add_trimmed(struct buf *b, const char *words)
{
    while (*words && is_blank(*words))
        words++;
    size_t n = strlen(words);
    buf_add(b, words, cut(words, n, PART_BYTES));
    while (b->len && is_blank(b->v[b->len - 1]))
        buf_truncate(b, b->len - 1);
}

/* The text anywhere in another, for LIKE. */
static void add_pattern(struct buf *b, const char *text)
{
    buf_char(b, '%');
    for (; *text; text++) {
        if (strchr("%_\\", *text))
            buf_char(b, '\\');
        buf_char(b, *text);
    }
    buf_char(b, '%');
}

/* Adds the rows of a query to out: chat, message, title, snippet. pattern is for
 * queries with a third parameter. */
static int add_hits(struct store *st, const char *sql, const char *text,
                    const char *pattern, size_t max, struct hit_list *out,
                    struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;
    if (out->len >= max)
        return 0;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    db_bind_text(stmt, 1, text, strlen(text));
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)(max - out->len));
    if (pattern)
        db_bind_text(stmt, 3, pattern, strlen(pattern));
    while ((rc = db_step(st, stmt, err)) > 0) {
        out->v = mem_regrow(out->v, out->len + 1, sizeof *out->v);
        out->v[out->len++] = (struct hit){
            .chat_id = sqlite3_column_int64(stmt, 0),
            .message_id = sqlite3_column_int64(stmt, 1),
            .title = db_text_or_empty(stmt, 2, NULL),
            .snippet = db_text_or_empty(stmt, 3, NULL),
        };
    }
    return rc;
}

static int search(struct store *st, const char *words, size_t max, struct hit_list *out,
                  struct err *err)
{
    static const char in_titles[] =
        "SELECT c.id, c.leaf_id, c.title, "
        "snippet(title_words, 0, char(2), char(3), '\xe2\x80\xa6', 24) "
        "FROM title_words w CROSS JOIN chats c ON c.id = w.rowid "
        "WHERE title_words MATCH ?1 ORDER BY w.rowid DESC LIMIT ?2";
    static const char in_texts[] =
        "SELECT m.chat_id, m.id, c.title, "
        "snippet(message_words, 0, char(2), char(3), '\xe2\x80\xa6', 24) "
        "FROM message_words w CROSS JOIN messages m ON m.id = w.rowid "
        "CROSS JOIN chats c ON c.id = m.chat_id "
        "WHERE message_words MATCH ?1 ORDER BY w.rowid DESC LIMIT ?2";
    /* Punctuation, parts of words, texts that are still being written. The case of
     * ASCII letters does not count, as with LIKE. */
    static const char anywhere[] =
        "WITH found AS (SELECT id, chat_id, "
        "  replace(replace(text, char(2), ' '), char(3), ' ') AS text FROM messages "
        "  WHERE text LIKE ?3 ESCAPE '\\' ORDER BY id DESC LIMIT ?2), "
        "placed AS (SELECT *, instr(lower(text), lower(?1)) AS at FROM found) "
        "SELECT f.chat_id, f.id, c.title, iif(at > 41, '\xe2\x80\xa6', '') || "
        "substr(f.text, max(at - 40, 1), at - max(at - 40, 1)) || char(2) || "
        "substr(f.text, at, length(?1)) || char(3) || substr(f.text, at + length(?1), "
        "80) "
        "FROM placed f CROSS JOIN chats c ON c.id = f.chat_id WHERE at > 0 "
        "ORDER BY f.id DESC";
    struct buf query = BUF_INIT, whole = BUF_INIT, pattern = BUF_INIT;
    int rc = 0;
    add_query(&query, words);
    if (query.len) {
        rc = add_hits(st, in_titles, query.v, NULL, max, out, err);
        if (rc == 0)
            rc = add_hits(st, in_texts, query.v, NULL, max, out, err);
        add_trimmed(&whole, words);
        add_pattern(&pattern, whole.v);
        if (rc == 0 && out->len == 0)
            rc = add_hits(st, anywhere, whole.v, pattern.v, max, out, err);
    }
    buf_release(&pattern);
    buf_release(&whole);
    buf_release(&query);
    return rc;
}

int store_search(struct store *st, const char *words, size_t max, struct hit_list *out,
                 struct err *err)
{
    struct hit_list found = { 0 };
    int rc = search(st, words, max, &found, err);
    if (rc < 0)
        hit_list_release(&found);
    *out = found;
    return rc;
}

void hit_list_release(struct hit_list *l)
{
    for (size_t i = 0; i < l->len; i++) {
        free(l->v[i].title);
        free(l->v[i].snippet);
    }
    free(l->v);
    *l = (struct hit_list){ 0 };
}
