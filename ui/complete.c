/* complete.c - candidates for the word before the cursor. */
#include "ui/complete.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sanitize.h"
#include "base/utf8.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CANDIDATES_MAX = 2000 };

static void add(struct completion *c, char *name)
{
    c->v = mem_regrow(c->v, c->n + 1, sizeof *c->v);
    c->v[c->n++] = name;
}

void complete_release(struct completion *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->v[i]);
    free(c->v);
    *c = (struct completion){ 0 };
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool finish(struct completion *c)
{
    if (!c->n)
        return false;
    qsort(c->v, c->n, sizeof *c->v, by_name);
    const char *first = c->v[0], *last = c->v[c->n - 1];
    while (first[c->common] && first[c->common] == last[c->common])
        c->common++;
    while (c->common && ((unsigned char)first[c->common] & 0xC0) == 0x80)
        c->common--; /* not within a character */
    return true;
}

/* ---- files ------------------------------------------------------------------ */

/* Names that could not be typed are no candidates. */
static bool typable(const char *name)
{
    if (!utf8_valid(name, strlen(name)))
        return false;
    for (size_t i = 0, n = strlen(name), len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(name + i, n - i, &cp);
        if (!sanitize_allows(cp) || cp == '"')
            return false;
    }
    return true;
}

static char *expanded(const char *path, size_t n)
{
    const char *home = getenv("HOME");
    struct buf b = BUF_INIT;
    bool tilde = n >= 2 && !memcmp(path, "~/", 2) && home && home[0] == '/';
    if (tilde)
        buf_str(&b, home);
    buf_add(&b, path + tilde, n - tilde);
    return buf_detach(&b);
}

static bool is_folder(const char *folder, const char *name)
{
    struct buf b = BUF_INIT;
    struct stat st;
    buf_printf(&b, "%s/%s", folder, name);
    bool is = stat(b.v, &st) == 0 && S_ISDIR(st.st_mode);
    buf_release(&b);
    return is;
}

/* The candidate for an entry: what was typed of the path, the name, a slash after
 * folders; with quotation marks where a blank would end the reference. */
static char *candidate(const char *typed, size_t folder, const char *name, bool slash,
                       bool reference)
{
    struct buf b = BUF_INIT;
    bool quote = reference && (memchr(typed, ' ', folder) || strchr(name, ' '));
    buf_printf(&b, "%s%s%.*s%s%s", reference ? "@" : "", quote ? "\"" : "", (int)folder,
               typed, name, slash ? "/" : "");
    if (quote && !slash)
        buf_char(&b, '"');
    return buf_detach(&b);
}

static void add_files(struct completion *c, const char *typed, size_t n, bool reference)
{
    size_t folder = n;
    while (folder && typed[folder - 1] != '/')
        folder--;
    char *path = folder ? expanded(typed, folder) : mem_strdup(".");
    const char *prefix = typed + folder;
    size_t bytes = n - folder;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d)) && c->n < CANDIDATES_MAX;) {
        bool hidden = e->d_name[0] == '.' && (!bytes || prefix[0] != '.');
        bool self = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
        if (hidden || self || strncmp(e->d_name, prefix, bytes) != 0 ||
            !typable(e->d_name))
            continue;
        add(c,
            candidate(typed, folder, e->d_name, is_folder(path, e->d_name), reference));
    }
    if (d)
        closedir(d);
    free(path);
}

/* ---- commands ---------------------------------------------------------------- */

static size_t word_bytes(const char *s)
{
    return strcspn(s, " \n");
}

static void add_commands(struct completion *c, const char *prefix, size_t n,
                         const char *commands)
{
    while (*commands) {
        size_t word = word_bytes(commands);
        if (word >= n && !memcmp(commands, prefix, n)) {
            struct buf b = BUF_INIT;
            buf_add(&b, commands, word);
            buf_char(&b, ' ');
            add(c, buf_detach(&b));
        }
        commands += strcspn(commands, "\n");
        commands += *commands == '\n';
    }
}

/* The line of a command in a list of lines, after its name; NULL: none. */
static const char *line_of(const char *lines, const char *name, size_t n)
{
    while (*lines) {
        if (word_bytes(lines) == n && !memcmp(lines, name, n))
            return lines + n + strspn(lines + n, " ");
        lines += strcspn(lines, "\n");
        lines += *lines == '\n';
    }
    return NULL;
}

static bool takes_files(const char *argument)
{
    static const char *const names[] = { "FILE", "[FILE]", "PATH" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (word_bytes(argument) == strlen(names[i]) &&
            !strncmp(argument, names[i], strlen(names[i])))
            return true;
    return false;
}

static void add_words(struct completion *c, const char *line, const char *prefix,
                      size_t n)
{
    while (*line && *line != '\n') {
        size_t word = word_bytes(line);
        if (word >= n && word && !memcmp(line, prefix, n))
            add(c, mem_strndup(line, word));
        line += word + strspn(line + word, " ");
    }
}

static bool complete_command(struct completion *c, const char *text, size_t cursor,
                             const char *commands, const char *words)
{
    size_t name = 0;
    while (name < cursor && text[name] != ' ')
        name++;
    c->end = cursor;
    if (name == cursor) {
        add_commands(c, text, cursor, commands);
        return finish(c);
    }
    size_t from = name;
    while (from < cursor && text[from] == ' ')
        from++;
    c->start = from;
    const char *argument = line_of(commands, text, name);
    const char *line = line_of(words, text, name);
    if (argument && takes_files(argument))
        add_files(c, text + from, cursor - from, false);
    else if (line && !memchr(text + from, ' ', cursor - from))
        add_words(c, line, text + from, cursor - from);
    return finish(c);
}

/* ---- all ----------------------------------------------------------------------- */

static bool before_word(const char *text, size_t at)
{
    return at == 0 || strchr(" \t\n(", text[at - 1]);
}

/* The @ whose reference the cursor is in; SIZE_MAX: none. */
static size_t reference_start(const char *text, size_t cursor)
{
    for (size_t at = cursor; at-- > 0;) {
        if (text[at] == '\n')
            break;
        bool quoted = at + 1 < cursor && text[at + 1] == '"';
        if (text[at] == '@' && before_word(text, at) &&
            (quoted ? !memchr(text + at + 2, '"', cursor - at - 2)
                    : !memchr(text + at, ' ', cursor - at)))
            return at;
    }
    return (size_t)-1;
}

bool complete(struct completion *c, const char *text, size_t cursor, const char *commands,
              const char *words)
{
    *c = (struct completion){ 0 };
    size_t at = reference_start(text, cursor);
    if (at != (size_t)-1) {
        size_t from = at + 1 + (at + 1 < cursor && text[at + 1] == '"');
        c->start = at;
        c->end = cursor;
        add_files(c, text + from, cursor - from, true);
        return finish(c);
    }
    return text[0] == '/' && !memchr(text, '\n', cursor) &&
           complete_command(c, text, cursor, commands, words);
}

char *complete_reference(const char *s, size_t n, size_t *bytes)
{
    bool quoted = n > 1 && s[1] == '"';
    size_t from = quoted ? 2 : 1, end = from;
    struct stat st;
    if (n < 2 || s[0] != '@')
        return NULL;
    while (end < n && (quoted ? s[end] != '"' : !strchr(" \t\n", s[end])))
        end++;
    *bytes = end + (quoted && end < n);
    /* A sentence may end after the name. */
    while (!quoted && end > from && strchr(".,;:!?)", s[end - 1])) {
        char *path = expanded(s + from, end - from);
        bool there = stat(path, &st) == 0;
        free(path);
        if (there)
            break;
        *bytes = --end;
    }
    char *path = end > from ? expanded(s + from, end - from) : NULL;
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}
