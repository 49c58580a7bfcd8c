/* ref_delta.c - the recurrent mixer, step by step as the formulas are written:
 * slow and easy to check; and the rule for many tokens at once. */
#include "engine/ref.h"
#include "engine/ref_delta.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double softplus(double x)
{
    return x > 20.0 ? x : log1p(exp(x));
}

void ref_delta_step(const struct ref_step *s, double *state, double *o)
{
    for (size_t j = 0; j < s->dim; j++) {
        double *row = state + j * s->dim, read = 0, out = 0;
        for (size_t i = 0; i < s->dim; i++) {
            row[i] *= s->decay;
            read += row[i] * s->k[i];
        }
        double delta = s->beta * (s->v[j] - read);
        for (size_t i = 0; i < s->dim; i++) {
            row[i] += s->k[i] * delta;
            out += row[i] * s->q[i];
        }
        o[j] = out / sqrt((double)s->dim);
    }
}

/* Convolution and SiLU of one token; history and row are its inputs. */
static void convolve(const struct ref_delta *d, const float *row, double *out)
{
    size_t dim = d->p.conv_dim;
    for (size_t c = 0; c < dim; c++) {
        const float *w = d->conv + c * 4;
        double sum = (double)w[3] * row[c];
        for (size_t j = 0; j < 3; j++)
            sum += (double)w[j] * d->history[j * dim + c];
        out[c] = silu(sum);
    }
    memmove(d->history, d->history + dim, 2 * dim * sizeof(float));
    memcpy(d->history + 2 * dim, row, dim * sizeof(float));
}

static void l2_normalise(double *x, double eps)
{
    double sum = 0;
    for (size_t i = 0; i < STATE_DIM; i++)
        sum += x[i] * x[i];
    double norm = sqrt(sum) > eps ? sqrt(sum) : eps;
    for (size_t i = 0; i < STATE_DIM; i++)
        x[i] /= norm;
}

static void head_step(struct ref_delta *d, const float *row, const double *conv,
                      size_t head, double *o)
{
    const struct push_delta *p = &d->p;
    size_t rep = p->n_v / p->n_k;
    size_t k_head = p->grouped_heads ? head / rep : head % p->n_k;
    double q[STATE_DIM], k[STATE_DIM];
    memcpy(q, conv + k_head * STATE_DIM, sizeof q);
    memcpy(k, conv + (p->n_k + k_head) * STATE_DIM, sizeof k);
    l2_normalise(q, p->eps);
    l2_normalise(k, p->eps);
    double b = row[p->beta_offset + head], a = row[p->alpha_offset + head];
    if (p->ba_grouped) {
        /* Per k head: the betas of its v heads, then their alphas. */
        const float *group = row + p->beta_offset + head / rep * 2 * rep;
        b = group[head % rep];
        a = group[rep + head % rep];
    }
    struct ref_step s = { .dim = STATE_DIM,
                          .q = q,
                          .k = k,
                          .v = conv + (2 * p->n_k + head) * STATE_DIM,
                          .decay = exp(d->a[head] * softplus(a + d->dt[head])),
                          .beta = sigmoid(b) };
    ref_delta_step(&s, d->state + head * STATE_DIM * STATE_DIM, o);
}

void ref_delta(struct ref_delta *d, const float *proj, size_t n_tokens, float *o,
               float *w)
{
    double *conv = mem_array(d->p.conv_dim, sizeof *conv);
    size_t width = (size_t)d->p.n_v * STATE_DIM;
    for (size_t t = 0; t < n_tokens; t++) {
        const float *row = proj + t * d->p.proj_stride;
        convolve(d, row, conv);
        for (size_t j = 0; j < d->p.n_v; j++) {
            double made[STATE_DIM];
            head_step(d, row, conv, j, made);
            for (size_t i = 0; i < STATE_DIM; i++) {
                size_t at = j * STATE_DIM + i;
                o[t * width + at] = (float)made[i];
                w[t * width + at] = (float)(d->norm[i] * silu(row[d->p.z_offset + at]));
            }
        }
    }
    free(conv);
}

/* ---- many tokens at once ------------------------------------------------- */

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* What does not depend on the state. */
struct chunk_plan {
    double *total;  /* [n] G */
    double *solved; /* [n][n] T */
    double *read;   /* [n][n] P T */
};

/* Rows of T by forward substitution. */
static void solve(const struct ref_chunk *c, const struct chunk_plan *p)
{
    for (size_t i = 0; i < c->n; i++) {
        double *row = p->solved + i * c->n;
        row[i] = c->beta[i];
        for (size_t j = 0; j < i; j++) {
            double a = c->beta[i] * dot(c->k + i * c->dim, c->k + j * c->dim, c->dim) *
                       exp(p->total[i] - p->total[j]);
            for (size_t l = 0; l <= j; l++)
                row[l] -= a * p->solved[j * c->n + l];
        }
    }
}

static void plan_chunk(const struct ref_chunk *c, struct chunk_plan *p)
{
    size_t n = c->n;
    p->total = mem_array(n, sizeof(double));
    p->solved = mem_zalloc(n * n * sizeof(double));
    p->read = mem_zalloc(n * n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        p->total[i] = c->gate[i] + (i ? p->total[i - 1] : 0);
    solve(c, p);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double attention = dot(c->q + i * c->dim, c->k + j * c->dim, c->dim) *
                               exp(p->total[i] - p->total[j]) / sqrt((double)c->dim);
            for (size_t l = 0; l <= j; l++)
                p->read[i * n + l] += attention * p->solved[j * n + l];
        }
}

/* One value column; row is its part of the state. */
static void chunk_column(const struct ref_chunk *c, const struct chunk_plan *p,
                         size_t value, double *row, double *o)
{
    size_t n = c->n, dim = c->dim;
    double *rest = mem_array(n, sizeof *rest), last = p->total[n - 1];
    for (size_t i = 0; i < n; i++)
        rest[i] =
            c->v[i * dim + value] - exp(p->total[i]) * dot(c->k + i * dim, row, dim);
    for (size_t i = 0; i < n; i++)
        o[i * dim + value] =
            exp(p->total[i]) * dot(c->q + i * dim, row, dim) / sqrt((double)dim) +
            dot(p->read + i * n, rest, n);
    for (size_t j = 0; j < dim; j++)
        row[j] *= exp(last);
    for (size_t i = 0; i < n; i++) {
        double made = exp(last - p->total[i]) * dot(p->solved + i * n, rest, n);
        for (size_t j = 0; j < dim; j++)
            row[j] += c->k[i * dim + j] * made;
    }
    free(rest);
}

void ref_delta_chunk(const struct ref_chunk *c, double *state, double *o)
{
    if (!c->n)
        return;
    struct chunk_plan p;
    plan_chunk(c, &p);
    for (size_t value = 0; value < c->dim; value++)
        chunk_column(c, &p, value, state + value * c->dim, o);
    free(p.total);
    free(p.solved);
    free(p.read);
}
