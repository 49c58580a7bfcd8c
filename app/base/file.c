/* file.c - whole files and private directories over POSIX calls.
 * A file is replaced by writing a neighbour under a temporary name, syncing it,
 * renaming it over the target and syncing the directory; a process that dies
 * in between leaves at most a file NAME.tmp-XXXXXX behind. */
#include "base/file.h"

#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- directories ------------------------------------------------------- */

static int mkdir_one(const char *path, mode_t mode, struct err *err)
{
    struct stat st;
    if (mkdir(path, mode) == 0) {
        /* The umask may have taken bits away that the user needs. */
        if (chmod(path, mode) < 0)
            return err_set(err, "cannot set the mode of %s: %s", path, strerror(errno));
        return 0;
    }
    int reason = errno;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        reason = ENOTDIR;
    }
    return err_set(err, "cannot create the directory %s: %s", path, strerror(reason));
}

int file_mkdirs(const char *path, mode_t mode, struct err *err)
{
    if (!*path)
        return err_set(err, "cannot create a directory without a name");
    char *p = mem_strdup(path);
    int rc = 0;
    for (char *s = p + 1; rc == 0 && *s; s++) {
        if (*s != '/' || s[-1] == '/')
            continue;
        *s = 0;
        rc = mkdir_one(p, mode, err);
        *s = '/';
    }
    if (rc == 0)
        rc = mkdir_one(p, mode, err);
    free(p);
    return rc;
}

/* The directory that path is an entry of: "." for a bare name. malloced. */
static char *dir_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return mem_strdup(".");
    return mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int file_mkdirs_above(const char *path, mode_t mode, struct err *err)
{
    char *dir = dir_of(path);
    int rc = file_mkdirs(dir, mode, err);
    free(dir);
    return rc;
}

char *file_xdg(enum file_kind kind, const char *rel, struct err *err)
{
    static const struct {
        const char *variable, *below_home;
    } kinds[] = {
        [FILE_DATA] = { "XDG_DATA_HOME", ".local/share" },
        [FILE_CACHE] = { "XDG_CACHE_HOME", ".cache" },
        [FILE_CONFIG] = { "XDG_CONFIG_HOME", ".config" },
        [FILE_STATE] = { "XDG_STATE_HOME", ".local/state" },
    };
    const char *base = getenv(kinds[kind].variable);
    const char *home = getenv("HOME");
    struct buf b = BUF_INIT;
    if (base && base[0] == '/') {
        buf_printf(&b, "%s/%s", base, rel);
    } else if (home && home[0] == '/') {
        buf_printf(&b, "%s/%s/%s", home, kinds[kind].below_home, rel);
    } else {
        err_set(err, "no folder for %s: set HOME or %s to an absolute path", rel,
                kinds[kind].variable);
        return NULL;
    }
    return buf_detach(&b);
}

int file_sync_dir(const char *path, struct err *err)
{
    char *dir = dir_of(path);
    int rc = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems refuse to sync a directory (EINVAL); they order
     * renames by themselves. */
    if (fd < 0 || fault_hit(FAULT_FSYNC) || (fsync(fd) < 0 && errno != EINVAL))
        rc = err_set(err, "cannot sync the directory %s: %s", dir, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(dir);
    return rc;
}

/* ---- reading ----------------------------------------------------------- */

int file_read_all(const char *path, size_t limit_bytes, struct buf *out, struct err *err)
{
    const size_t before = out->len;
    int rc = -1;
    int fd = fault_hit(FAULT_OPEN) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, "cannot open %s: %s", path, strerror(errno));
    for (;;) {
        char piece[16384];
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_set(err, "cannot read %s: %s", path, strerror(errno));
            goto out;
        }
        if (n == 0)
            break;
        if ((size_t)n > limit_bytes - (out->len - before)) {
            err_set(err, "%s is larger than the %zu bytes allowed here", path,
                    limit_bytes);
            goto out;
        }
        buf_add(out, piece, (size_t)n);
    }
    rc = 0;
out:
    if (rc < 0)
        buf_truncate(out, before);
    close(fd);
    return rc;
}

/* ---- writing ----------------------------------------------------------- */

struct file_writer {
    int fd;        /* -1 once closed */
    char *path;    /* where the file goes */
    char *tmp;     /* where it is until then */
    bool tmp_here; /* tmp is an existing file of ours */
};

int file_writer_open(struct file_writer **out, const char *path, struct err *err)
{
    struct file_writer *w = mem_zalloc(sizeof *w);
    struct buf tmp = BUF_INIT;
    buf_printf(&tmp, "%s.tmp-XXXXXX", path);
    w->tmp = buf_detach(&tmp);
    w->path = mem_strdup(path);
    w->fd = fault_hit(FAULT_OPEN) ? -1 : mkstemp(w->tmp);
    if (w->fd < 0) {
        err_set(err, "cannot create %s: %s", path, strerror(errno));
        file_writer_close(w);
        *out = NULL;
        return -1;
    }
    w->tmp_here = true;
    fcntl(w->fd, F_SETFD, FD_CLOEXEC);
    *out = w;
    return 0;
}

int file_writer_add(struct file_writer *w, const void *bytes, size_t n, struct err *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t k = fault_hit(FAULT_WRITE) ? -1 : write(w->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_set(err, "cannot write %s: %s", w->path, strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

int file_writer_commit(struct file_writer *w, struct err *err)
{
    if (fault_hit(FAULT_FSYNC) || fsync(w->fd) < 0)
        return err_set(err, "cannot sync %s: %s", w->path, strerror(errno));
    int closed = close(w->fd);
    w->fd = -1;
    if (closed < 0)
        return err_set(err, "cannot write %s: %s", w->path, strerror(errno));
    if (fault_hit(FAULT_RENAME) || rename(w->tmp, w->path) < 0)
        return err_set(err, "cannot replace %s: %s", w->path, strerror(errno));
    w->tmp_here = false;
    return file_sync_dir(w->path, err);
}

void file_writer_close(struct file_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    if (w->tmp_here)
        unlink(w->tmp);
    free(w->tmp);
    free(w->path);
    free(w);
}

int file_write_atomic(const char *path, const void *bytes, size_t n, struct err *err)
{
    struct file_writer *w = NULL;
    int rc = -1;
    if (file_writer_open(&w, path, err) < 0 || file_writer_add(w, bytes, n, err) < 0)
        goto out;
    rc = file_writer_commit(w, err);
out:
    file_writer_close(w);
    return rc;
}
