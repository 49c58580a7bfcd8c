/* forward_rotate.c - inputs of matrices whose columns were rotated. What comes
 * before them is rotated in f32: a mixer that would round its result to int8
 * does not, and the feed-forward part leaves the product of gate and up to the
 * rotation. */
#include "engine/forward.h"

bool forward_mixed_int8(const struct recorder *r, const struct device_layer *ly)
{
    return r->e->int8 && !ly->out.rotated;
}

static int record(struct recorder *r, struct gpu_dispatch *d, enum kernel_id id,
                  const struct planes *to, uint32_t source)
{
    forward_bind_planes(d, 4, to);
    d->groups[1] = r->pass->tokens;
    d->groups[2] = 1;
    uint32_t spec[] = { r->e->tune.embed_size, r->e->int8, source };
    return forward_dispatch(r, d, kernel_module(id), spec, 3);
}

int forward_rotate(struct recorder *r, const struct matrix *m, uint32_t source,
                   struct gpu_span norm)
{
    struct scratch *x = &r->s->scratch;
    const struct hparams *hp = r->hp;
    bool stream = source == ROTATE_STREAM;
    bool regroup = source == ROTATE_HEADS && r->e->model->w.rotation.v_grouped &&
                   hp->n_v_heads != hp->n_k_heads;
    struct push_rotate push = { .cols = m->cols, .eps = hp->rms_eps };
    if (regroup) {
        push.n_k = hp->n_k_heads;
        push.n_v = hp->n_v_heads;
    }
    const struct gpu_buffer *from = stream                    ? &x->residual
                                    : source == ROTATE_SWIGLU ? &x->proj
                                                              : &x->mixed.x;
    struct gpu_dispatch d = { .bind = { [1] = gpu_span_all(from),
                                        [2] = stream ? norm : m->signs,
                                        [3] = m->signs,
                                        [7] = gpu_span_all(stream ? &x->input.ss
                                                                  : &x->mixed.ss) },
                              .push = &push,
                              .groups = { m->cols / ROTATION_BLOCK },
                              .label = "rotation" };
    return record(r, &d, KERNEL_ROTATE, &x->rotated, source);
}

int forward_unrotate(struct recorder *r, const struct matrix *m, struct gpu_span norm)
{
    struct scratch *x = &r->s->scratch;
    struct push_rotate push = { .cols = m->cols, .eps = r->hp->rms_eps };
    struct gpu_dispatch d = { .bind = { [1] = gpu_span_all(&x->residual),
                                        [2] = norm,
                                        [3] = m->signs,
                                        [7] = m->signs },
                              .push = &push,
                              .groups = { m->cols / ROTATION_BLOCK },
                              .label = "embedding, rotated back" };
    return record(r, &d, KERNEL_UNROTATE, &x->input, ROTATE_STREAM);
}
