/* attach.c - from a file to a part of a message. */
#include "app/attach.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FILE_MAX_BYTES = 4 << 20,
    COUNT_MAX_BYTES = 256 << 10, /* of more, tokens are estimated: it takes time */
    BYTES_A_TOKEN = 4,
};

char *path_expand(const char *path)
{
    const char *home = getenv("HOME");
    struct buf b = BUF_INIT;
    if (!strncmp(path, "~/", 2) && home && home[0] == '/')
        buf_printf(&b, "%s%s", home, path + 1);
    else
        buf_str(&b, path);
    return buf_detach(&b);
}

static void number_add(struct buf *b, uint64_t v)
{
    if (v >= 1000) {
        number_add(b, v / 1000);
        buf_printf(b, ",%03" PRIu64, v % 1000);
    } else {
        buf_printf(b, "%" PRIu64, v);
    }
}

static void counted_add(struct buf *b, uint64_t n, const char *what)
{
    number_add(b, n);
    buf_printf(b, " %s%s", what, n == 1 ? "" : "s");
}

void attach_label(const struct model *m, const char *name, const char *text, size_t n,
                  struct buf *label)
{
    size_t lines = n > 0 && text[n - 1] != '\n';
    bool exact = m && n <= COUNT_MAX_BYTES;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    buf_printf(label, "%s: ", name);
    counted_add(label, lines, "line");
    buf_str(label, ", ");
    counted_add(label, n, "byte");
    if (exact) {
        struct tokens ids = { 0 };
        model_tokenize(m, text, n, 0, &ids);
        buf_str(label, ", ");
        counted_add(label, ids.len, "token");
        tokens_release(&ids);
    } else {
        buf_str(label, ", some ");
        counted_add(label, (n + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN, "token");
    }
}

static int check_regular(const char *path, struct err *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(err, "%s is no file", path);
    return 0; /* what is not there at all is told by who opens it */
}

/* A fence that is longer than any in the text. */
static void fence_add(struct buf *b, const char *text, size_t n)
{
    size_t longest = 2, run = 0;
    for (size_t i = 0; i < n; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        buf_char(b, '`');
}

static const char *ending_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name && !strpbrk(dot, "` \n") ? dot + 1 : "";
}

static void block_add(struct buf *out, const char *name, const struct buf *content)
{
    const char *text = buf_cstr(content);
    buf_printf(out, "%s:\n", name);
    fence_add(out, text, content->len);
    buf_printf(out, "%s\n", ending_of(name));
    buf_add(out, text, content->len);
    if (content->len && text[content->len - 1] != '\n')
        buf_char(out, '\n');
    fence_add(out, text, content->len);
    buf_char(out, '\n');
}

int attach_file(const struct model *m, const char *path, struct buf *text,
                struct buf *label, struct err *err)
{
    char *expanded = path_expand(path);
    const char *slash = strrchr(expanded, '/'), *name = slash ? slash + 1 : expanded;
    struct buf content = BUF_INIT;
    int rc = check_regular(expanded, err);
    if (rc == 0)
        rc = file_read_all(expanded, FILE_MAX_BYTES, &content, err);
    if (rc == 0 && (memchr(buf_cstr(&content), 0, content.len) ||
                    !utf8_valid(buf_cstr(&content), content.len)))
        rc = err_set(err, "%s is no text in UTF-8", expanded);
    if (rc == 0) {
        attach_label(m, name, buf_cstr(&content), content.len, label);
        block_add(text, name, &content);
    }
    buf_release(&content);
    free(expanded);
    return rc;
}
