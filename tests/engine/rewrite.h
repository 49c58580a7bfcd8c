/* rewrite.h - a model file with some of its tensors written in another form:
 * keys are copied as they are, tensors go through a function of the test. */
#ifndef TESTS_ENGINE_REWRITE_H
#define TESTS_ENGINE_REWRITE_H

#include "engine/gguf.h"
#include "tests/engine/gguf_writer.h"
#include "tests/test.h"

struct rewrite {
    const struct gguf *from;
    struct gguf_writer w;
    void *made[64];   /* data of new tensors, freed at the end */
    size_t n_made;
};

/* Adds a tensor of the shape and type of `like`, but with ne[1] rows a matrix. */
static inline void rewrite_tensor(struct rewrite *r, const char *name,
                                  const struct tensor *like, uint64_t rows, const void *data)
{
    struct gguf_writer *w = &r->w;
    const uint64_t ne[3] = { like->ne[0], rows, like->ne[2] };
    size_t bytes = like->bytes / like->ne[1] * rows;
    REQUIRE(w->n_pieces < sizeof w->pieces / sizeof *w->pieces);
    gw_info(w, name, quant_format(like->type)->file_id, ne,
            like->n_dims, w->data_bytes);
    w->pieces[w->n_pieces++] = (struct gw_piece){ w->data_bytes, data, bytes };
    w->data_bytes += gw_round(bytes, w->alignment);
}

/* Room for a new tensor's data. */
static inline uint8_t *rewrite_room(struct rewrite *r, size_t bytes)
{
    REQUIRE(r->n_made < sizeof r->made / sizeof *r->made);
    return r->made[r->n_made++] = mem_alloc(bytes);
}

/* Copies tensors for which `change` does nothing and returns false. */
static inline void rewrite_file(const char *from, const char *to,
                                bool (*change)(struct rewrite *r, const struct tensor *t))
{
    struct err err = { "" };
    struct gguf *g;
    struct rewrite r = { 0 };
    struct stat st;
    REQUIRE(gguf_open(&g, from, &err) == 0 && stat(from, &st) == 0);
    r.from = g;
    uint8_t *file = mem_alloc((size_t)st.st_size);
    FILE *f = fopen(from, "rb");
    REQUIRE(f && fread(file, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
    fclose(f);
    /* The keys end where the first tensor's name begins. */
    const char *first = gguf_tensor(g, 0)->name;
    uint64_t n = strlen(first);
    size_t at = 24;
    while (memcmp(file + at, &n, 8) != 0 || memcmp(file + at + 8, first, n) != 0)
        at++;
    gw_begin(&r.w);
    buf_add(&r.w.head, (char *)file + 24, at - 24);
    r.w.n_keys = gguf_n_keys(g);
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct tensor *t = gguf_tensor(g, i);
        if (!change(&r, t))
            rewrite_tensor(&r, t->name, t, t->ne[1], t->data);
    }
    gw_finish(&r.w);
    gw_save(&r.w, to);
    gw_release(&r.w);
    gguf_close(g);
    for (size_t i = 0; i < r.n_made; i++)
        free(r.made[i]);
    free(file);
}

#endif
