/* test_delta_ref.c - the delta rule for many tokens at once against the same
 * rule token by token, both in double. */
#include "base/mem.h"
#include "engine/ref.h"
#include "engine/ref_delta.h"
#include "tests/test.h"

enum { DIM = 16, MOST = 300 };

struct tokens_of_head {
    double q[MOST * DIM], k[MOST * DIM], v[MOST * DIM], gate[MOST], beta[MOST];
};

static uint32_t random_state = 3;

static double random_value(double low, double high)
{
    random_state = random_state * 1664525u + 1013904223u;
    return low + (high - low) * (double)(random_state >> 8) / (1 << 24);
}

static void unit_vector(double *x)
{
    double sum = 0;
    for (int i = 0; i < DIM; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < DIM; i++)
        x[i] /= sqrt(sum);
}

enum kind { ORDINARY, SAME_KEY, HARD, KINDS };

/* HARD: tokens that forget all or nothing, write all or nothing. */
static struct tokens_of_head *make_tokens(enum kind kind)
{
    struct tokens_of_head *t = mem_zalloc(sizeof *t);
    for (size_t i = 0; i < MOST; i++) {
        for (size_t j = i * DIM; j < (i + 1) * DIM; j++) {
            t->q[j] = random_value(-1, 1);
            t->k[j] = random_value(-1, 1);
            t->v[j] = random_value(-1, 1);
            if (kind == SAME_KEY && i)
                t->k[j] = t->k[j - DIM];
        }
        unit_vector(t->q + i * DIM);
        unit_vector(t->k + i * DIM);
        t->gate[i] = random_value(-1, 0);
        t->beta[i] = random_value(0, 1);
        if (kind == HARD) {
            t->gate[i] = i % 5 == 1 ? -300 : i % 3 == 0 ? 0 : t->gate[i];
            t->beta[i] = (double)(i % 4 / 2);
        }
    }
    return t;
}

static void random_state_of_head(double *a, double *b)
{
    for (int i = 0; i < DIM * DIM; i++)
        a[i] = b[i] = random_value(-1, 1);
}

static void steps(const struct tokens_of_head *t, size_t first, size_t n, double *state,
                  double *o)
{
    for (size_t i = first; i < first + n; i++)
        ref_delta_step(&(struct ref_step){ .dim = DIM,
                                           .q = t->q + i * DIM,
                                           .k = t->k + i * DIM,
                                           .v = t->v + i * DIM,
                                           .decay = exp(t->gate[i]),
                                           .beta = t->beta[i] },
                       state, o + i * DIM);
}

static void chunk(const struct tokens_of_head *t, size_t first, size_t n, double *state,
                  double *o)
{
    ref_delta_chunk(&(struct ref_chunk){ .n = n,
                                         .dim = DIM,
                                         .q = t->q + first * DIM,
                                         .k = t->k + first * DIM,
                                         .v = t->v + first * DIM,
                                         .gate = t->gate + first,
                                         .beta = t->beta + first },
                    state, o + first * DIM);
}

static double apart(const double *a, const double *b, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= worst))
            worst = fabs(a[i] - b[i]);
    return worst;
}

static void test_every_length(void)
{
    static double want[MOST * DIM], got[MOST * DIM], a[DIM * DIM], b[DIM * DIM];
    for (int kind = 0; kind < KINDS; kind++) {
        struct tokens_of_head *t = make_tokens(kind);
        for (size_t n = 1; n <= MOST; n += n < 70 ? 1 : 23) {
            random_state_of_head(a, b);
            steps(t, 0, n, a, want);
            chunk(t, 0, n, b, got);
            double worst = fmax(apart(want, got, n * DIM), apart(a, b, DIM * DIM));
            if (!(worst < 1e-12))
                printf("# kind %d, %zu tokens: %g apart\n", kind, n, worst);
            CHECK(worst < 1e-12);
        }
        free(t);
    }
}

/* Chunks of every length one after the other, the last one shorter. */
static void test_every_boundary(void)
{
    static double want[MOST * DIM], got[MOST * DIM], a[DIM * DIM], b[DIM * DIM];
    for (int kind = 0; kind < KINDS; kind++) {
        struct tokens_of_head *t = make_tokens(kind);
        for (size_t length = 1; length < 90; length++) {
            random_state_of_head(a, b);
            steps(t, 0, 100, a, want);
            for (size_t at = 0; at < 100; at += length)
                chunk(t, at, at + length < 100 ? length : 100 - at, b, got);
            CHECK(apart(want, got, 100 * DIM) < 1e-12);
            CHECK(apart(a, b, DIM * DIM) < 1e-12);
        }
        free(t);
    }
}

/* No token: nothing moves. */
static void test_nothing(void)
{
    double state[4] = { 1, 2, 3, 4 }, o = 5;
    ref_delta_chunk(&(struct ref_chunk){ .dim = 2 }, state, &o);
    CHECK(state[0] == 1 && state[3] == 4 && o == 5);
}

TEST_MAIN(T(test_every_length), T(test_every_boundary), T(test_nothing))
