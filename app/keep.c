/* keep.c - folders of kept timelines. Only regular files directly in a folder of
 * ours are ever removed, and only folders whose name is a number. */
#include "app/keep.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

void keep_files_release(struct keep_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->names[i]);
    free(f->names);
    *f = (struct keep_files){ 0 };
}

struct keep_files keep_files(const char *root, int64_t chat_id)
{
    struct keep_files f = { 0 };
    char *folder = keep_folder(root, chat_id);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *d;
    struct stat st;
    while (dir && (d = readdir(dir))) {
        if (d->d_name[0] == '.' ||
            fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        f.names = mem_regrow(f.names, f.n + 1, sizeof *f.names);
        f.names[f.n++] = mem_strdup(d->d_name);
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    free(folder);
    return f;
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
    struct keep_files files = keep_files(root, chat_id);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < files.n; i++)
        rc = file_remove(folder, files.names[i], err);
    if (rc == 0 && rmdir(folder) < 0 && errno != ENOENT)
        rc = err_set(err, "cannot remove %s: %s", folder, strerror(errno));
    keep_files_release(&files);
    free(folder);
    return rc;
}
