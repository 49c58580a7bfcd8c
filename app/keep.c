/* keep.c - folders of kept timelines. Only regular files directly in a folder of
 * ours are ever removed, and only folders whose name is a number. */
#include "app/keep.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include "app/options.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry {
    char *name;
    uint64_t bytes;
    struct timespec written;
};

struct entries {
    struct entry *v;
    size_t n;
};

char *keep_root(void)
{
    return file_xdg(FILE_CACHE, "tern/snapshots", NULL);
}

char *keep_folder(const char *root, int64_t chat_id)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%lld", root, (long long)chat_id);
    return buf_detach(&b);
}

static void entries_release(struct entries *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->v[i].name);
    free(e->v);
    *e = (struct entries){ 0 };
}

static void entry_add(struct entries *e, const char *name, const struct stat *st)
{
    e->v = mem_regrow(e->v, e->n + 1, sizeof *e->v);
    e->v[e->n++] =
        (struct entry){ mem_strdup(name), (uint64_t)st->st_blocks * 512, st->st_mtim };
}

/* The entries of a folder that are of that type: S_IFDIR for the root, which the
 * user may have put elsewhere by a link, S_IFREG for a conversation's folder. */
static struct entries folder_list(const char *folder, mode_t type)
{
    struct entries e = { 0 };
    int nofollow = type == S_IFREG ? O_NOFOLLOW : 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | nofollow);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *d;
    struct stat st;
    while (dir && (d = readdir(dir)))
        if (d->d_name[0] != '.' &&
            fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (st.st_mode & S_IFMT) == type)
            entry_add(&e, d->d_name, &st);
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return e;
}

static int file_remove(const char *folder, const char *name, struct err *err)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", folder, name);
    int rc = 0;
    if (unlink(buf_cstr(&path)) < 0 && errno != ENOENT)
        rc = err_set(err, "cannot remove %s: %s", buf_cstr(&path), strerror(errno));
    buf_release(&path);
    return rc;
}

int keep_remove(const char *root, int64_t chat_id, struct err *err)
{
    char *folder = keep_folder(root, chat_id);
    struct entries files = folder_list(folder, S_IFREG);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < files.n; i++)
        rc = file_remove(folder, files.v[i].name, err);
    if (rc == 0 && rmdir(folder) < 0 && errno != ENOENT)
        rc = err_set(err, "cannot remove %s: %s", folder, strerror(errno));
    entries_release(&files);
    free(folder);
    return rc;
}

/* ---- trimming ------------------------------------------------------------- */

/* Newest first. */
static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->written.tv_sec != y->written.tv_sec)
        return x->written.tv_sec < y->written.tv_sec ? 1 : -1;
    return (x->written.tv_nsec < y->written.tv_nsec) -
           (x->written.tv_nsec > y->written.tv_nsec);
}

static void entries_sort(struct entries *e)
{
    if (e->n)
        qsort(e->v, e->n, sizeof *e->v, compare);
}

static bool is_state(const char *name)
{
    size_t n = strlen(name);
    return n > 6 && !strcmp(name + n - 6, ".state");
}

static void states_trim(const char *root, int64_t chat_id)
{
    char *folder = keep_folder(root, chat_id);
    struct entries files = folder_list(folder, S_IFREG);
    int kept = 0;
    entries_sort(&files);
    for (size_t i = 0; i < files.n; i++)
        if (is_state(files.v[i].name) && ++kept > KEEP_STATES)
            file_remove(folder, files.v[i].name, NULL);
    entries_release(&files);
    free(folder);
}

/* What the conversation's folder holds, and when it was last written to. */
static void folder_measure(const char *root, struct entry *folder)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", root, folder->name);
    struct entries files = folder_list(buf_cstr(&path), S_IFREG);
    entries_sort(&files);
    folder->bytes = 0;
    for (size_t i = 0; i < files.n; i++)
        folder->bytes += files.v[i].bytes;
    if (files.n)
        folder->written = files.v[0].written;
    entries_release(&files);
    buf_release(&path);
}

void keep_trim(const char *root, int64_t chat_id, uint64_t budget_bytes)
{
    uint64_t total = 0;
    states_trim(root, chat_id);
    struct entries folders = folder_list(root, S_IFDIR);
    for (size_t i = 0; i < folders.n; i++) {
        folder_measure(root, &folders.v[i]);
        total += folders.v[i].bytes;
    }
    entries_sort(&folders);
    for (size_t i = folders.n; total > budget_bytes && i-- > 0;) {
        int64_t id;
        if (!parse_int(folders.v[i].name, 1, INT64_MAX, &id) || id == chat_id ||
            keep_remove(root, id, NULL) < 0)
            continue;
        total -= folders.v[i].bytes;
    }
    entries_release(&folders);
}
