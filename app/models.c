/* models.c - folders to model files. The thread reads; what it finds goes through a
 * mailbox, and the list belongs to the caller's thread.
 * Invariant: each scan ends in a message without a path. */
#include "app/models.h"

#include "base/buf.h"
#include "base/mailbox.h"
#include "base/mem.h"

#include "engine/engine.h"

#include "app/info.h"
#include "app/out.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCANS = 4, FOUND = 64, DEPTH = 3 /* of folders in folders */ };

struct found {
    struct model_file file; /* path NULL: the scan is over */
};

struct models {
    char *folders;
    struct mailbox *scans, *found;
    pthread_t thread;
    bool started;
    atomic_bool quit;
    unsigned pending; /* scans that are not over */
    struct model_file *v;
    size_t n;
};

static void file_release(struct model_file *f)
{
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): it takes what list_put puts in place
     * for what was there before. */
    free(f->path);
    free(f->name);
    free(f->summary);
    free(f->info);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    *f = (struct model_file){ 0 };
}

/* ---- the thread ---------------------------------------------------------------- */

static void summary_add(struct buf *b, const struct model_info *info)
{
    bytes_format(b, info->file_bytes);
    if (info->n_params >= 1000000000)
        buf_printf(b, ", %.1f billion parameters", (double)info->n_params / 1e9);
    else if (info->n_params)
        buf_printf(b, ", %.0f million parameters", (double)info->n_params / 1e6);
    if (info->refusal)
        buf_printf(b, "; does not run: %s", info->refusal);
}

static void file_read(struct model_file *f, const char *path)
{
    struct model *m = NULL;
    struct err err;
    struct buf summary = BUF_INIT, info = BUF_INIT;
    const char *slash = strrchr(path, '/');
    *f = (struct model_file){ .path = mem_strdup(path) };
    if (model_open(&m, path, &err) < 0) {
        f->name = mem_strdup(slash ? slash + 1 : path);
        buf_str(&summary, "cannot be read");
        buf_str(&info, err.text);
    } else {
        const struct model_info *i = model_info(m);
        f->name = mem_strdup(i->name && *i->name ? i->name : slash ? slash + 1 : path);
        f->runs = !i->refusal;
        summary_add(&summary, i);
        info_lines(&info, m, 0);
    }
    f->summary = buf_detach(&summary);
    f->info = buf_detach(&info);
    model_close(m);
}

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);
    return n > k && !strcmp(name + n - k, ending);
}

/* Parts of a file after the first, and what only goes with another model. */
static bool is_part(const char *name)
{
    const char *of = strstr(name, "-of-");
    return (of && of - name >= 6 && strncmp(of - 6, "-00001", 6) != 0) ||
           strstr(name, "mmproj");
}

static void folder_read(struct models *m, const char *folder, int depth);

static void entry_read(struct models *m, const char *folder, const char *name, int depth)
{
    struct buf path = BUF_INIT;
    struct stat st;
    buf_printf(&path, "%s/%s", folder, name);
    if (name[0] == '.' || stat(path.v, &st) < 0) {
        buf_release(&path);
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        folder_read(m, path.v, depth + 1);
    } else if (S_ISREG(st.st_mode) && ends_in(name, ".gguf") && !is_part(name)) {
        struct found f;
        file_read(&f.file, path.v);
        if (!mailbox_post(m->found, &f))
            file_release(&f.file);
    }
    buf_release(&path);
}

static void folder_read(struct models *m, const char *folder, int depth)
{
    DIR *d = depth < DEPTH ? opendir(folder) : NULL;
    for (const struct dirent *e; d && !atomic_load(&m->quit) && (e = readdir(d));)
        entry_read(m, folder, e->d_name, depth);
    if (d)
        closedir(d);
}

static void *models_main(void *arg)
{
    struct models *m = arg;
    char scan;
    while (mailbox_take(m->scans, &scan)) {
        const char *s = m->folders;
        for (size_t n; *s && !atomic_load(&m->quit); s += n + (s[n] == '\n')) {
            n = strcspn(s, "\n");
            char *folder = mem_strndup(s, n);
            if (n)
                folder_read(m, folder, 0);
            free(folder);
        }
        const struct found end = { .file.path = NULL };
        mailbox_post(m->found, &end);
    }
    return NULL;
}

/* ---- the other side -------------------------------------------------------------- */

int models_open(struct models **out, const char *folders, struct err *err)
{
    struct models *m = mem_zalloc(sizeof *m);
    *out = NULL;
    m->folders = mem_strdup(folders);
    if (mailbox_open(&m->scans, 1, SCANS, err) < 0 ||
        mailbox_open(&m->found, sizeof(struct found), FOUND, err) < 0)
        goto fail;
    int rc = pthread_create(&m->thread, NULL, models_main, m);
    if (rc) {
        err_set(err, "cannot start a thread: %s", strerror(rc));
        goto fail;
    }
    m->started = true;
    *out = m;
    return 0;
fail:
    models_close(m);
    return -1;
}

void models_close(struct models *m)
{
    struct found f;
    if (!m)
        return;
    atomic_store(&m->quit, true);
    if (m->started) {
        mailbox_shut(m->scans);
        mailbox_shut(m->found);
        pthread_join(m->thread, NULL);
        while (mailbox_try_take(m->found, &f))
            file_release(&f.file);
    }
    for (size_t i = 0; i < m->n; i++)
        file_release(&m->v[i]);
    free(m->v);
    mailbox_close(m->scans);
    mailbox_close(m->found);
    free(m->folders);
    free(m);
}

void models_scan(struct models *m)
{
    char scan = 0;
    if (mailbox_try_post(m->scans, &scan))
        m->pending++;
}

int models_fd(const struct models *m)
{
    return mailbox_fd(m->found);
}

/* In its place, or instead of what was known of the same file. Takes it over. */
static void list_put(struct models *m, struct model_file *f)
{
    size_t i = 0;
    while (i < m->n && strcmp(m->v[i].path, f->path) < 0)
        i++;
    if (i < m->n && !strcmp(m->v[i].path, f->path)) {
        file_release(&m->v[i]);
    } else {
        m->v = mem_regrow(m->v, m->n + 1, sizeof *m->v);
        memmove(m->v + i + 1, m->v + i, (m->n++ - i) * sizeof *m->v);
    }
    m->v[i] = *f;
}

bool models_take(struct models *m)
{
    struct found f;
    bool any = false;
    for (; mailbox_try_take(m->found, &f); any = true) {
        if (f.file.path)
            list_put(m, &f.file);
        else if (m->pending)
            m->pending--;
    }
    return any;
}

const struct model_file *models_list(const struct models *m, size_t *n)
{
    *n = m->n;
    return m->v;
}

bool models_scanning(const struct models *m)
{
    return m->pending > 0;
}
