/* file.h - whole files and private directories. Everything that Tern writes is
 * for its user alone: files 0600, directories 0700, whatever the umask. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Creates a directory and those above it that are missing, each with this
 * mode. What exists already stays as it is; an existing non-directory is an
 * error. */
int file_mkdirs(const char *path, mode_t mode, struct err *err);
/* The same for the directory that path is an entry of. */
int file_mkdirs_above(const char *path, mode_t mode, struct err *err);

enum file_kind { FILE_DATA, FILE_CACHE, FILE_CONFIG, FILE_STATE };

/* rel below the user's folder for this kind of file: $XDG_DATA_HOME, else
 * ~/.local/share, and so on (XDG base directory specification; a relative path
 * in a variable counts as unset). Creates nothing. malloced; NULL with the
 * reason in err when neither the variable nor HOME names a folder. */
char *file_xdg(enum file_kind kind, const char *rel, struct err *err);

/* Appends the whole content of a file to out. A file of more than limit_bytes
 * is an error, and then out is as before. */
int file_read_all(const char *path, size_t limit_bytes, struct buf *out, struct err *err);

/* Replaces a file as a whole: after a failure or a crash at any moment, path
 * holds either what it held before or all n bytes. */
int file_write_atomic(const char *path, const void *bytes, size_t n, struct err *err);

/* The same in pieces. open, add any number of times, then commit; close
 * releases it and, if it was not committed, removes what was written. After a
 * failure only close may follow. Thread-safety: one thread each. */
struct file_writer;
int file_writer_open(struct file_writer **out, const char *path, struct err *err);
int file_writer_add(struct file_writer *w, const void *bytes, size_t n, struct err *err);
int file_writer_commit(struct file_writer *w, struct err *err);
void file_writer_close(struct file_writer *w);

/* Makes a new, renamed or removed entry of the directory holding path last
 * through a power cut. */
int file_sync_dir(const char *path, struct err *err);

#endif
