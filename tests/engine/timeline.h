/* timeline.h - what the tests of timelines on disk share: a folder, prompts,
 * and conversations of random ids. */
#ifndef TESTS_ENGINE_TIMELINE_H
#define TESTS_ENGINE_TIMELINE_H

#include "base/buf.h"
#include "base/tokens.h"
#include "tests/engine/whole.h"

#include <dirent.h>
#include <sys/stat.h>

#define MODEL "tests/data/dense_qwen35.gguf"

struct folder {
    char base[64], dir[96]; /* dir does not exist at first */
};

static inline struct folder folder_make(void)
{
    struct folder f;
    snprintf(f.base, sizeof f.base, "/tmp/test-timeline-XXXXXX");
    REQUIRE(mkdtemp(f.base));
    snprintf(f.dir, sizeof f.dir, "%s/snapshots/7", f.base);
    return f;
}

static inline void folder_remove(const struct folder *f)
{
    struct buf cmd = BUF_INIT;
    buf_printf(&cmd, "rm -rf %s", f->base);
    REQUIRE(system(cmd.v) == 0);
    buf_release(&cmd);
}

/* Files whose names end like this; *path gets the first in order. */
static inline size_t folder_count(const char *dir, const char *ending, char path[256])
{
    size_t n = 0, k = strlen(ending);
    struct dirent **names;
    int found = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        size_t len = strlen(names[i]->d_name);
        if (len >= k && !strcmp(names[i]->d_name + len - k, ending) &&
            names[i]->d_name[0] != '.' && !n++ && path)
            snprintf(path, 256, "%s/%.100s", dir, names[i]->d_name);
        free(names[i]);
    }
    if (found >= 0)
        free(names);
    return n;
}

static inline void ids_add(struct tokens *t, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        tokens_push(t, (int32_t)(5 + (seed >> 10) % 500));
    }
}

static inline struct sync_result sync_ids(struct session *s, const struct tokens *t,
                                          size_t mark)
{
    struct err err = { "" };
    struct sync_result r;
    struct sync_params p = { .marks = &mark, .n_marks = mark ? 1 : 0 };
    OK(session_sync(s, t->v, t->len, &p, &r, &err), &err);
    return r;
}

/* Brings the prompt to the session, lets it answer n ids, appends them to t. */
static inline void turn(struct session *s, struct tokens *t, size_t n)
{
    int32_t ids[256];
    size_t made = whole_greedy(s, t->v, t->len, n, 8, ids);
    tokens_add(t, ids, made);
}

static inline struct session_write_result write_dir(struct session *s, const char *dir)
{
    struct err err = { "" };
    struct session_write_result r;
    OK(session_write(s, &(struct session_write_params){ .dir = dir }, &r, &err), &err);
    return r;
}

static inline struct session_read_result read_dir(struct session *s, const char *dir,
                                                  const struct tokens *t)
{
    struct err err = { "" };
    struct session_read_result r;
    struct session_read_params p = { .dir = dir, .ids = t->v, .n = t->len };
    OK(session_read(s, &p, &r, &err), &err);
    return r;
}

/* Greedy ids after a prompt on a session that knows nothing. */
static inline size_t fresh_greedy(const struct whole *w, const struct session_params *p,
                                  const struct tokens *t, size_t n, int32_t *ids)
{
    struct session *s = whole_session(w, p);
    size_t made = whole_greedy(s, t->v, t->len, n, 8, ids);
    session_close(s);
    return made;
}

#endif
