/* gguf_writer.h - makes GGUF files for tests, right and wrong ones: keys, then
 * tensors, then gw_finish. Positions of all counts, lengths, types and offsets
 * are kept, so that a test can replace each of them. Data that is not given is
 * zero and takes no space on the disk. */
#ifndef TESTS_ENGINE_GGUF_WRITER_H
#define TESTS_ENGINE_GGUF_WRITER_H

#include "base/buf.h"
#include "base/mem.h"
#include "engine/gguf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gw_mark {
    size_t at, bytes;
};

struct gw_piece {
    uint64_t offset;
    const void *v;
    size_t bytes;
};

struct gguf_writer {
    struct buf head;
    uint32_t alignment;
    uint64_t data_bytes, n_keys, n_tensors;
    struct gw_mark marks[1024];
    size_t n_marks;
    struct gw_piece pieces[256];
    size_t n_pieces;
};

static inline void gw_number(struct gguf_writer *w, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        buf_char(&w->head, (char)(v >> 8 * i));
}

/* A number that decides how the rest is read. */
static inline void gw_field(struct gguf_writer *w, uint64_t v, size_t bytes)
{
    if (w->n_marks < sizeof w->marks / sizeof *w->marks)
        w->marks[w->n_marks++] = (struct gw_mark){ w->head.len, bytes };
    gw_number(w, v, bytes);
}

static inline void gw_patch(struct gguf_writer *w, size_t at, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        w->head.v[at + i] = (char)(v >> 8 * i);
}

static inline void gw_begin(struct gguf_writer *w)
{
    *w = (struct gguf_writer){ .alignment = 32 };
    buf_add(&w->head, "GGUF", 4);
    gw_field(w, 3, 4);
    gw_field(w, 0, 8);
    gw_field(w, 0, 8);
}

static inline void gw_bytes(struct gguf_writer *w, const char *s, size_t bytes)
{
    gw_field(w, bytes, 8);
    buf_add(&w->head, s, bytes);
}

static inline void gw_text(struct gguf_writer *w, const char *s)
{
    gw_bytes(w, s, strlen(s));
}

static inline void gw_key(struct gguf_writer *w, const char *key, uint32_t type)
{
    gw_text(w, key);
    gw_field(w, type, 4);
    w->n_keys++;
}

static inline void gw_scalar(struct gguf_writer *w, const char *key, uint32_t type,
                             uint64_t bits)
{
    gw_key(w, key, type);
    gw_number(w, bits, gguf_type_bytes(type));
}

static inline void gw_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
    gw_scalar(w, key, GGUF_U32, v);
}

static inline void gw_bool(struct gguf_writer *w, const char *key, bool v)
{
    gw_scalar(w, key, GGUF_BOOL, v);
}

static inline void gw_f32(struct gguf_writer *w, const char *key, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    gw_scalar(w, key, GGUF_F32, bits);
}

static inline void gw_str(struct gguf_writer *w, const char *key, const char *v)
{
    gw_key(w, key, GGUF_STRING);
    gw_text(w, v);
}

static inline void gw_array(struct gguf_writer *w, const char *key, uint32_t element,
                            uint64_t n)
{
    gw_key(w, key, GGUF_ARRAY);
    gw_field(w, element, 4);
    gw_field(w, n, 8);
}

static inline void gw_i32s(struct gguf_writer *w, const char *key, const int32_t *v,
                           size_t n)
{
    gw_array(w, key, GGUF_I32, n);
    for (size_t i = 0; i < n; i++)
        gw_number(w, (uint32_t)v[i], 4);
}

static inline void gw_strs(struct gguf_writer *w, const char *key, const char *const *v,
                           size_t n)
{
    gw_array(w, key, GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        gw_text(w, v[i]);
}

/* A tensor info with any numbers in it; takes no room in the data section. */
static inline void gw_info(struct gguf_writer *w, const char *name, uint32_t type,
                           const uint64_t *ne, uint32_t n_dims, uint64_t offset)
{
    gw_text(w, name);
    gw_field(w, n_dims, 4);
    for (uint32_t d = 0; d < n_dims; d++)
        gw_field(w, ne[d], 8);
    gw_field(w, type, 4);
    gw_field(w, offset, 8);
    w->n_tensors++;
}

static inline uint64_t gw_round(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* A tensor of a known type, behind the ones before it; v NULL: zeros. */
static inline void gw_tensor(struct gguf_writer *w, const char *name, enum quant q,
                             uint64_t ne0, uint64_t ne1, const void *v)
{
    const uint64_t ne[2] = { ne0, ne1 };
    size_t bytes = quant_bytes(q, ne0 * ne1);
    gw_info(w, name, quant_format(q)->file_id, ne, ne1 > 1 ? 2 : 1, w->data_bytes);
    if (v && w->n_pieces < sizeof w->pieces / sizeof *w->pieces)
        w->pieces[w->n_pieces++] = (struct gw_piece){ w->data_bytes, v, bytes };
    w->data_bytes += gw_round(bytes, w->alignment);
}

/* Counts and padding; the header is then all of w->head. */
static inline void gw_finish(struct gguf_writer *w)
{
    gw_patch(w, 8, w->n_tensors, 8);
    gw_patch(w, 16, w->n_keys, 8);
    while (w->head.len % w->alignment)
        buf_char(&w->head, 0);
}

static inline uint64_t gw_file_bytes(const struct gguf_writer *w)
{
    return w->head.len + w->data_bytes;
}

/* Writes the file, cut or lengthened to `bytes`. */
static inline void gw_save_cut(const struct gguf_writer *w, const char *path,
                               uint64_t bytes)
{
    /* A new file each time: truncating one makes some file systems flush it. */
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && pwrite(fd, w->head.v, w->head.len, 0) == (ssize_t)w->head.len;
    for (size_t i = 0; ok && i < w->n_pieces; i++)
        ok = pwrite(fd, w->pieces[i].v, w->pieces[i].bytes,
                    (off_t)(w->head.len + w->pieces[i].offset)) ==
             (ssize_t)w->pieces[i].bytes;
    if (!ok || ftruncate(fd, (off_t)bytes) < 0) {
        perror(path);
        exit(1);
    }
    close(fd);
}

static inline void gw_save(const struct gguf_writer *w, const char *path)
{
    gw_save_cut(w, path, gw_file_bytes(w));
}

static inline void gw_release(struct gguf_writer *w)
{
    buf_release(&w->head);
}

/* A fresh folder for a test's files; the process removes it as it ends. */
static char gw_dir[64];

static inline void gw_remove_dir(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", gw_dir);
    if (system(command) != 0)
        perror(gw_dir);
}

static inline char *gw_path(char dst[256], const char *name)
{
    if (!gw_dir[0]) {
        snprintf(gw_dir, sizeof gw_dir, "/tmp/tern-gguf-XXXXXX");
        if (!mkdtemp(gw_dir) || atexit(gw_remove_dir) != 0) {
            perror(gw_dir);
            exit(1);
        }
    }
    snprintf(dst, 256, "%s/%s", gw_dir, name);
    return dst;
}

/* Deterministic noise (xorshift64*). */
static inline uint64_t gw_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

#endif
