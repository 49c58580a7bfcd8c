/* gguf.c - opens a model: maps its file or, if it is split, all of them, and
 * indexes the tensors of all parts by name. */
#include "engine/gguf_file.h"

#include "base/fault.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map_fd(struct gguf_part *p, int fd, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(err, "cannot be examined: %s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(err, "is a directory; give the path of a .gguf file");
    if (!S_ISREG(st.st_mode))
        return err_set(err, "is not a regular file; give the path of a .gguf file");
    if (st.st_size <= 0)
        return err_set(err, "is empty; download the model again");
    if ((uint64_t)st.st_size > SIZE_MAX)
        return err_set(err, "is too large for the address space");
    void *map = fault_hit(FAULT_MAP)
                    ? MAP_FAILED
                    : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_set(err, "cannot be mapped (%" PRIu64 " bytes): %s",
                       (uint64_t)st.st_size, strerror(errno));
    p->map = map;
    p->bytes = (uint64_t)st.st_size;
    p->fd = fd;
    p->changed = st.st_mtim;
    p->guard = guard_begin(map, p->bytes);
    return 0;
}

static int part_map(struct gguf_part *p, const char *path, struct err *err)
{
    /* O_NONBLOCK: a FIFO must be refused, not waited for. */
    int fd = fault_hit(FAULT_OPEN)
                 ? -1
                 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, "cannot be opened: %s", strerror(errno));
    if (map_fd(p, fd, err) == 0)
        return 0;
    close(fd);
    return -1;
}

static int part_open(struct gguf *g, uint32_t part, const char *path, struct err *err)
{
    if (part_map(&g->parts[part], path, err) < 0 ||
        gguf_part_parse(g, part, err) < 0 || gguf_part_place(g, part, err) < 0)
        return err_prefix(err, "%s", path);
    return 0;
}

/* ---- split models ------------------------------------------------------- */

enum { SPLIT_SUFFIX_BYTES = 20 }; /* "-00001-of-00003.gguf" */

static void split_suffix(char dst[SPLIT_SUFFIX_BYTES + 1], uint32_t part, uint32_t count)
{
    snprintf(dst, SPLIT_SUFFIX_BYTES + 1, "-%05u-of-%05u.gguf", (part + 1) % 100000,
             count % 100000);
}

static int split_check(const struct gguf_part *p, uint32_t part, uint32_t count,
                       struct err *err)
{
    uint32_t no = UINT32_MAX, found = 0;
    if (gguf_part_u32(p, "split.no", &no, err) < 0 ||
        gguf_part_u32(p, "split.count", &found, err) < 0)
        return -1;
    if (no != part || found != count)
        return err_set(err, "is not part %u of %u of this model (its split.no and "
                       "split.count disagree); download all parts again", part + 1,
                       count);
    return 0;
}

static int split_check_total(const struct gguf *g, struct err *err)
{
    uint32_t total = (uint32_t)g->n_tensors;
    if (gguf_part_u32(&g->parts[0], "split.tensors.count", &total, err) < 0)
        return -1;
    if (total != g->n_tensors)
        return err_set(err, "%s: the parts hold %zu tensors together, not %u; download "
                       "all parts again", g->path, g->n_tensors, total);
    return 0;
}

static int split_open_rest(struct gguf *g, uint32_t count, struct err *err)
{
    char suffix[SPLIT_SUFFIX_BYTES + 1];
    size_t len = strlen(g->path);
    split_suffix(suffix, 0, count);
    if (len < SPLIT_SUFFIX_BYTES ||
        strcmp(g->path + len - SPLIT_SUFFIX_BYTES, suffix) != 0)
        return err_set(err, "%s: is the first of %u parts, so its name must end in %s; "
                       "rename it and put the other parts beside it", g->path, count,
                       suffix);
    g->parts = mem_regrow(g->parts, count, sizeof *g->parts);
    memset(g->parts + 1, 0, (count - 1) * sizeof *g->parts);
    g->n_parts = count;
    char *path = mem_strdup(g->path);
    int rc = 0;
    for (uint32_t i = 1; rc == 0 && i < count; i++) {
        split_suffix(suffix, i, count);
        memcpy(path + len - SPLIT_SUFFIX_BYTES, suffix, SPLIT_SUFFIX_BYTES);
        rc = part_open(g, i, path, err);
        if (rc < 0)
            err_prefix(err, "part %u of %u", i + 1, count);
        else if (split_check(&g->parts[i], i, count, err) < 0)
            rc = err_prefix(err, "%s", path);
    }
    free(path);
    return rc < 0 ? rc : split_check_total(g, err);
}

static int split_open(struct gguf *g, struct err *err)
{
    uint32_t count = 0, no = 0;
    if (gguf_part_u32(&g->parts[0], "split.count", &count, err) < 0 ||
        gguf_part_u32(&g->parts[0], "split.no", &no, err) < 0)
        return err_prefix(err, "%s", g->path);
    if (count <= 1)
        return 0;
    if (count > GGUF_MAX_PARTS)
        return err_set(err, "%s: says that it is split into %u parts, more than %d",
                       g->path, count, GGUF_MAX_PARTS);
    if (no != 0) {
        char suffix[SPLIT_SUFFIX_BYTES + 1];
        split_suffix(suffix, 0, count);
        return err_set(err, "%s: is part %u of %u of a model; open the first part, whose "
                       "name ends in %s", g->path, no + 1, count, suffix);
    }
    return split_open_rest(g, count, err);
}

/* ---- tensors by name ---------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    const struct tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int index_names(struct gguf *g, struct err *err)
{
    g->by_name = mem_array(g->n_tensors, sizeof(struct tensor *));
    for (size_t i = 0; i < g->n_tensors; i++)
        g->by_name[i] = &g->tensors[i];
    qsort(g->by_name, g->n_tensors, sizeof(struct tensor *), compare_names);
    for (size_t i = 1; i < g->n_tensors; i++) {
        const char *name = g->by_name[i]->name;
        char text[GGUF_TEXT_BYTES];
        if (!strcmp(g->by_name[i - 1]->name, name))
            return err_set(err, "%s: has two tensors of the name %s; the file is "
                           "damaged, download it again", g->path,
                           gguf_text(text, name, strlen(name)));
    }
    return 0;
}

const struct tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
    size_t low = 0, high = g->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, g->by_name[middle]->name);
        if (order == 0)
            return g->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- public ------------------------------------------------------------- */

int gguf_open(struct gguf **out, const char *path, struct err *err)
{
    *out = NULL;
    struct gguf *g = mem_zalloc(sizeof *g);
    g->path = mem_strdup(path);
    g->parts = mem_zalloc(sizeof *g->parts);
    g->n_parts = 1;
    if (part_open(g, 0, path, err) < 0 || split_open(g, err) < 0 ||
        index_names(g, err) < 0) {
        gguf_close(g);
        return -1;
    }
    *out = g;
    return 0;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        struct gguf_part *p = &g->parts[i];
        for (size_t k = 0; k < p->n_values; k++)
            free(p->values[k].at);
        free(p->values);
        if (!p->map)
            continue;
        guard_end(p->guard);
        munmap(p->map, (size_t)p->bytes);
        close(p->fd);
    }
    free(g->parts);
    free(g->tensors);
    free(g->by_name);
    free(g->path);
    free(g);
}

/* A file that another program writes to keeps its inode, and so our descriptor. */
static int part_check(const struct gguf *g, uint32_t part, bool unchanged, struct err *err)
{
    const struct gguf_part *p = &g->parts[part];
    struct stat st;
    bool same = !guard_torn(p->guard) && fstat(p->fd, &st) == 0 &&
                (uint64_t)st.st_size >= p->bytes;
    if (same && unchanged)
        same = (uint64_t)st.st_size == p->bytes &&
               st.st_mtim.tv_sec == p->changed.tv_sec &&
               st.st_mtim.tv_nsec == p->changed.tv_nsec;
    if (same)
        return 0;
    return err_set(err, "%s: part %u of the model was %s by another program; load the "
                   "model again once the file is whole", g->path, part + 1,
                   unchanged ? "changed" : "cut short");
}

int gguf_check(const struct gguf *g, bool unchanged, struct err *err)
{
    for (uint32_t i = 0; i < g->n_parts; i++)
        if (part_check(g, i, unchanged, err) < 0)
            return -1;
    return 0;
}

const char *gguf_path(const struct gguf *g)
{
    return g->path;
}

uint64_t gguf_file_bytes(const struct gguf *g)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->n_parts; i++)
        bytes += g->parts[i].bytes;
    return bytes;
}

size_t gguf_n_keys(const struct gguf *g)
{
    return g->parts[0].n_values;
}

struct gguf_str gguf_key(const struct gguf *g, size_t i)
{
    return g->parts[0].values[i].key;
}

size_t gguf_n_tensors(const struct gguf *g)
{
    return g->n_tensors;
}

const struct tensor *gguf_tensor(const struct gguf *g, size_t i)
{
    return &g->tensors[i];
}
