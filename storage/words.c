/* words.c - the tokenizer of the search index: SQLite's unicode61 (folds case
 * and diacritics), whose tokens are cut further, one a character, in scripts
 * that are written without spaces and in symbols such as emoji. A query is cut
 * the same way and its pieces must follow each other, so any part of a Chinese
 * or Thai sentence is found, at no more cost than words of other scripts.
 * Invariant: changing what is cut where makes existing indexes wrong; it needs
 * a migration that rebuilds them. */
#include "storage/words.h"

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct words {
    fts5_tokenizer unicode61;
    Fts5Tokenizer *inner;
};

typedef int words_out(void *ctx, int flags, const char *token, int bytes, int start,
                      int end);

/* What the callback of one run over a text needs. */
struct run {
    const char *text;
    words_out *out;
    void *ctx;
};

static bool stands_alone(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0xa6, 0xb0 },       /* copyright, degree and the like */
        { 0xe00, 0xeff },     /* Thai, Lao */
        { 0x1000, 0x109f },   /* Myanmar */
        { 0x1780, 0x17ff },   /* Khmer */
        { 0x2100, 0x24ff },   /* letter-like signs, arrows, enclosed characters */
        { 0x25a0, 0x2bff },   /* shapes, dingbats; not the lines of tables before */
        { 0x2e80, 0x9fff },   /* kana, bopomofo, Han */
        { 0xf900, 0xfaff },   /* Han, compatibility */
        { 0xff66, 0xff9f },   /* kana, half width */
        { 0x1f000, 0x1faff }, /* emoji */
        { 0x20000, 0x3ffff }, /* Han, extensions */
    };
    for (size_t i = 0; c >= ranges[0].first && i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* The character at s (n > 0 bytes); *bytes is its length. Any bytes are taken:
 * what is no character is one byte long and stands for itself. */
static uint32_t character(const char *s, int n, int *bytes)
{
    unsigned char b = (unsigned char)s[0];
    int len = b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    uint32_t c = len == 1 ? b : b & (0x7fu >> len);
    *bytes = 1;
    if (len > n)
        return 0;
    for (int i = 1; i < len; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    }
    *bytes = len;
    return c;
}

/* The length of the piece that begins at s: one character that stands alone,
 * or all up to the next one. */
static int piece(const char *s, int n, bool *alone)
{
    int at = 0;
    *alone = false;
    while (at < n) {
        int bytes;
        bool single = stands_alone(character(s + at, n - at, &bytes));
        if (single && at > 0)
            break;
        at += bytes;
        if (single) {
            *alone = true;
            break;
        }
    }
    return at;
}

/* Folding changes how long a token is, but not the order of its pieces: those
 * of the token and of the text that it comes from are walked side by side, to
 * say where in the text each one is. */
static int cut(void *ctx, int flags, const char *token, int bytes, int start, int end)
{
    struct run *run = ctx;
    bool alone;
    if (piece(token, bytes, &alone) == bytes)
        return run->out(run->ctx, flags, token, bytes, start, end);
    int rc = SQLITE_OK, from = start;
    for (int at = 0; rc == SQLITE_OK && at < bytes;) {
        bool text_alone = false;
        int n = piece(token + at, bytes - at, &alone);
        int text_n = from < end ? piece(run->text + from, end - from, &text_alone) : 0;
        if (text_n && text_alone == alone)
            rc = run->out(run->ctx, flags, token + at, n, from, from + text_n);
        else
            rc = run->out(run->ctx, flags, token + at, n, start, end);
        at += n;
        from += text_n;
    }
    return rc;
}

static int words_create(void *api, const char **args, int n_args, Fts5Tokenizer **out)
{
    static const char *unicode61_args[] = { "remove_diacritics", "2", "categories",
                                            "L* N* Co So" };
    fts5_api *fts = api;
    void *ctx = NULL;
    struct words *w = mem_zalloc(sizeof *w);
    (void)args;
    (void)n_args;
    int rc = fts->xFindTokenizer(fts, "unicode61", &ctx, &w->unicode61);
    if (rc == SQLITE_OK)
        rc = w->unicode61.xCreate(ctx, unicode61_args, 4, &w->inner);
    if (rc != SQLITE_OK) {
        free(w);
        return rc;
    }
    *out = (Fts5Tokenizer *)w;
    return SQLITE_OK;
}

static void words_delete(Fts5Tokenizer *tokenizer)
{
    struct words *w = (struct words *)tokenizer;
    w->unicode61.xDelete(w->inner);
    free(w);
}

static int words_tokenize(Fts5Tokenizer *tokenizer, void *ctx, int reason,
                          const char *text, int bytes, words_out *out)
{
    struct words *w = (struct words *)tokenizer;
    struct run run = { .text = text, .out = out, .ctx = ctx };
    return w->unicode61.xTokenize(w->inner, &run, reason, text, bytes, cut);
}

int words_register(sqlite3 *db)
{
    fts5_api *api = NULL;
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
    sqlite3_step(stmt);
    sqlite3_finalize(stmt);
    if (!api)
        return SQLITE_ERROR;
    fts5_tokenizer tokenizer = { .xCreate = words_create,
                                 .xDelete = words_delete,
                                 .xTokenize = words_tokenize };
    return api->xCreateTokenizer(api, "tern_words", api, &tokenizer, NULL);
}
