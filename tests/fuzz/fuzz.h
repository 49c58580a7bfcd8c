/* fuzz.h - what the fuzz targets share. A target is one file with one function,
 * fuzz_one; built with libFuzzer it is searched for crashes (make fuzz), built
 * with runner.c it gets its corpus and a fixed number of mutations (make test). */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Tries one input; returns 0. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Mutations of each corpus file that the runner tries, and the largest input
 * that it makes: each target defines both. */
extern const unsigned fuzz_rounds;
extern const size_t fuzz_max_bytes;

/* What holds for every input. */
#define MUST(cond)                                                     \
    do {                                                               \
        if (!(cond)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                   \
        }                                                              \
    } while (0)

/* ---- input as numbers and texts ------------------------------------------ */

struct input_bytes {
    const uint8_t *v;
    size_t n;
};

/* The next byte; 0 once all is used up. */
static inline unsigned take(struct input_bytes *in)
{
    if (!in->n)
        return 0;
    in->n--;
    return *in->v++;
}

static inline unsigned take16(struct input_bytes *in)
{
    unsigned low = take(in);
    return low | take(in) << 8;
}

/* The next bytes, n or as many as are left; not terminated. */
static inline const char *take_text(struct input_bytes *in, size_t n, size_t *got)
{
    const char *s = (const char *)in->v;
    *got = n < in->n ? n : in->n;
    in->v += *got;
    in->n -= *got;
    return *got ? s : "";
}

/* ---- input as a file ------------------------------------------------------ */

/* A file of this process, in memory where there is such a place. It is written
 * anew by each call and has no name that could be left behind. */
static inline const char *fuzz_file(const void *bytes, size_t n)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        char name[] = "/dev/shm/tern-fuzz-XXXXXX", other[] = "/tmp/tern-fuzz-XXXXXX";
        char *made = name;
        if ((fd = mkstemp(made)) < 0)
            fd = mkstemp(made = other);
        MUST(fd >= 0 && unlink(made) == 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    MUST(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    return path;
}

/* Lengthens it by zeros that take no room. */
static inline void fuzz_file_grow(const char *path, size_t n)
{
    MUST(truncate(path, (off_t)n) == 0);
}

/* ---- what many targets check ----------------------------------------------- */

/* One line that can be shown: printable, or whole UTF-8. */
static inline bool one_line(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false;
    return true;
}

#endif
