/* search.c - full-text search. What the user typed is never taken as the query
 * language of FTS5: each word becomes a quoted string, matched as a prefix. */
#include "storage/store.h"

#include "base/buf.h"
#include "base/mem.h"
#include "storage/db.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WORDS  32  /* more do not narrow a search any further */
#define WORD_BYTES 256 /* what is longer matches by its beginning */

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Cut to WORD_BYTES, but not within a character. */
static size_t word_bytes(const char *word, size_t n)
{
    if (n <= WORD_BYTES)
        return n;
    n = WORD_BYTES;
    while (n > 1 && ((unsigned char)word[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* "say \"hi" becomes "say"* """hi"*: words that must all occur. */
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
        for (size_t k = 0; k < word_bytes(words, n); k++) {
            if (words[k] == '"')
                buf_char(b, '"');
            buf_char(b, words[k]);
        }
        buf_str(b, "\"* ");
        words += n;
    }
}

static void add_trimmed(struct buf *b, const char *words)
{
    while (*words && is_blank(*words))
        words++;
    buf_str(b, words);
    while (b->len && is_blank(b->v[b->len - 1]))
        buf_truncate(b, b->len - 1);
}

/* Adds the rows of a query to out: chat, message, title, snippet. */
static int add_hits(struct store *st, const char *sql, const char *text, size_t max,
                    struct hit_list *out, struct err *err)
{
    sqlite3_stmt *stmt;
    int rc;
    if (out->len >= max)
        return 0;
    if (db_prepare(st, sql, &stmt, err) < 0)
        return -1;
    db_bind_text(stmt, 1, text, strlen(text));
    sqlite3_bind_int64(stmt, 2, (sqlite3_int64)(max - out->len));
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
        "WHERE title_words MATCH ?1 ORDER BY rank LIMIT ?2";
    static const char in_texts[] =
        "SELECT m.chat_id, m.id, c.title, "
        "snippet(message_words, 0, char(2), char(3), '\xe2\x80\xa6', 24) "
        "FROM message_words w CROSS JOIN messages m ON m.id = w.rowid "
        "CROSS JOIN chats c ON c.id = m.chat_id "
        "WHERE message_words MATCH ?1 ORDER BY rank LIMIT ?2";
    /* Punctuation, parts of words, texts that are still being written. */
    static const char anywhere[] =
        "WITH texts AS (SELECT id, chat_id, "
        "  replace(replace(text, char(2), ' '), char(3), ' ') AS text FROM messages), "
        "found AS (SELECT *, instr(text, ?1) AS at FROM texts WHERE at > 0 "
        "  ORDER BY id DESC LIMIT ?2) "
        "SELECT f.chat_id, f.id, c.title, iif(at > 41, '\xe2\x80\xa6', '') || "
        "substr(f.text, max(at - 40, 1), at - max(at - 40, 1)) || char(2) || ?1 || "
        "char(3) || substr(f.text, at + length(?1), 80) "
        "FROM found f CROSS JOIN chats c ON c.id = f.chat_id";
    struct buf query = BUF_INIT, whole = BUF_INIT;
    int rc = 0;
    add_query(&query, words);
    if (query.len) {
        rc = add_hits(st, in_titles, query.v, max, out, err);
        if (rc == 0)
            rc = add_hits(st, in_texts, query.v, max, out, err);
        add_trimmed(&whole, words);
        if (rc == 0 && out->len == 0)
            rc = add_hits(st, anywhere, whole.v, max, out, err);
    }
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
