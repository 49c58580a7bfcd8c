/* runner.c - tries a fuzz target on its corpus and on seeded mutations of it.
 *     NAME [FILE...]       FUZZ_ROUNDS=N mutations of each file, else fuzz_rounds
 * The inputs are the same each time. The target runs in a child process; where
 * that dies, the input is kept in $BUILD/fuzz-NAME-crash for a second look. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { FILES_MAX = 256, HANG_SECONDS = 20 };
#define MEMORY_BYTES ((rlim_t)2 << 30)

struct file {
    char name[512];
    uint8_t *v;
    size_t n;
};

struct corpus {
    struct file files[FILES_MAX];
    size_t n;
};

/* Shared with the child: the input at hand. */
struct shared {
    size_t tried, n;
    char of[512];
    uint8_t v[];
};

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

static size_t below(uint64_t *state, size_t n)
{
    return n ? (size_t)(random_next(state) >> 16) % n : 0;
}

/* ---- corpus ----------------------------------------------------------------- */

static void file_load(struct corpus *c, const char *path)
{
    MUST(c->n < FILES_MAX);
    struct file *f = &c->files[c->n++];
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        exit(1);
    }
    snprintf(f->name, sizeof f->name, "%s", path);
    f->v = malloc(fuzz_max_bytes);
    MUST(f->v);
    f->n = fread(f->v, 1, fuzz_max_bytes, in);
    MUST(fgetc(in) == EOF); /* else fuzz_max_bytes is too small */
    fclose(in);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void corpus_load(struct corpus *c, const char *dir)
{
    struct dirent **names;
    int n = scandir(dir, &names, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char path[512];
        int bytes = snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
        MUST(bytes > 0 && (size_t)bytes < sizeof path);
        if (names[i]->d_name[0] != '.')
            file_load(c, path);
        free(names[i]);
    }
    free(names);
    if (!c->n) {
        fprintf(stderr, "no corpus in %s\n", dir);
        exit(1);
    }
}

/* ---- mutations -------------------------------------------------------------- */

static void remove_range(struct shared *s, size_t at, size_t n)
{
    memmove(s->v + at, s->v + at + n, s->n - at - n);
    s->n -= n;
}

/* Room for n bytes at a place, or as many as fit. */
static size_t make_room(struct shared *s, size_t at, size_t n)
{
    if (n > fuzz_max_bytes - s->n)
        n = fuzz_max_bytes - s->n;
    memmove(s->v + at + n, s->v + at, s->n - at);
    s->n += n;
    return n;
}

/* A number of 1, 2, 4 or 8 bytes becomes one that often hurts. */
static void set_number(struct shared *s, uint64_t *state)
{
    static const uint64_t values[] = {
        0,     1,     2,         3,          7,          8,         16,        31,   32,
        33,    63,    64,        127,        128,        255,       256,       1000, 4096,
        65535, 65536, INT32_MAX, UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX
    };
    size_t bytes = (size_t)1 << below(state, 4);
    uint64_t v = values[below(state, sizeof values / sizeof *values)];
    if (s->n < bytes)
        return;
    size_t at = below(state, s->n - bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        s->v[at + i] = (uint8_t)(v >> 8 * i);
}

static void copy_from(struct shared *s, uint64_t *state, const struct file *f)
{
    if (!f->n)
        return;
    size_t from = below(state, f->n), at = below(state, s->n + 1);
    size_t n = make_room(s, at, 1 + below(state, f->n - from < 256 ? f->n - from : 256));
    memcpy(s->v + at, f->v + from, n);
}

static void mutate_once(struct shared *s, uint64_t *state, const struct corpus *c)
{
    size_t at = below(state, s->n), n;
    switch (below(state, 8)) {
    case 0: /* a bit */
    case 1:
        if (s->n)
            s->v[at] ^= (uint8_t)(1 << below(state, 8));
        break;
    case 2: /* a byte */
        if (s->n)
            s->v[at] = (uint8_t)random_next(state);
        break;
    case 3:
        set_number(s, state);
        break;
    case 4: /* bytes go */
        if (s->n)
            remove_range(s, at, 1 + below(state, s->n - at < 64 ? s->n - at : 64));
        break;
    case 5: /* noise comes */
        n = make_room(s, at, 1 + below(state, 8));
        for (size_t i = 0; i < n; i++)
            s->v[at + i] = (uint8_t)random_next(state);
        break;
    case 6: /* a piece of any file comes */
        copy_from(s, state, &c->files[below(state, c->n)]);
        break;
    default: /* the end goes */
        if (below(state, 4) == 0)
            s->n = at;
    }
}

/* ---- running ----------------------------------------------------------------- */

static void try_one(struct shared *s)
{
    alarm(HANG_SECONDS);
    s->tried++;
    LLVMFuzzerTestOneInput(s->v, s->n);
}

/* Every file as it is first, then mutated. */
static void try_all(struct shared *s, const struct corpus *c, unsigned rounds)
{
    for (unsigned round = 0; round <= rounds; round++)
        for (size_t i = 0; i < c->n; i++) {
            const struct file *f = &c->files[i];
            uint64_t state = 88172645463325252ull + round * 1000003ull + i * 7919;
            snprintf(s->of, sizeof s->of, "%s, round %u", f->name, round);
            memcpy(s->v, f->v, f->n);
            s->n = f->n;
            for (size_t k = round ? 1 + below(&state, 6) : 0; k; k--)
                mutate_once(s, &state, c);
            try_one(s);
        }
}

static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit limit = { MEMORY_BYTES, MEMORY_BYTES };
    setrlimit(RLIMIT_AS, &limit);
#endif
}

static void keep_crash(const struct shared *s, const char *name, int status)
{
    char path[512];
    const char *build = getenv("BUILD");
    snprintf(path, sizeof path, "%s/fuzz-%s-crash", build ? build : ".", name);
    FILE *out = fopen(path, "wb");
    if (out) {
        fwrite(s->v, 1, s->n, out);
        fclose(out);
    }
    printf("# %s after %zu inputs: %s %d; it is kept in %s\n", s->of, s->tried,
           WIFSIGNALED(status) ? "signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), path);
}

static struct shared *shared_make(void)
{
    void *p = mmap(NULL, sizeof(struct shared) + fuzz_max_bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED);
    return p;
}

int main(int argc, char **argv)
{
    static struct corpus c;
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    const char *env = getenv("FUZZ_ROUNDS");
    unsigned rounds = env ? (unsigned)strtoul(env, NULL, 10) : fuzz_rounds;
    char dir[512];
    int status;
    snprintf(dir, sizeof dir, "tests/fuzz/corpus/%s", name);
    for (int i = 1; i < argc; i++)
        file_load(&c, argv[i]);
    if (argc == 1)
        corpus_load(&c, dir);
    struct shared *s = shared_make();
    fflush(stdout);
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        limit_memory();
        try_all(s, &c, argc > 1 && !env ? 0 : rounds);
        exit(0);
    }
    MUST(waitpid(pid, &status, 0) == pid);
    if (status)
        keep_crash(s, name, status);
    printf("# count inputs %zu\n%s fuzz_%s\n", s->tried, status ? "not ok" : "ok", name);
    for (size_t i = 0; i < c.n; i++)
        free(c.files[i].v);
    return status != 0;
}
