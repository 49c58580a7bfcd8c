/* model_weights.c - finds the tensors of the decoder by role and checks their
 * shapes. One table row a role; what a layer is made of is decided by the
 * tensors that are there and then compared with what the keys say. */
#include "engine/model.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extents of tensors; the names are those of model.h. */
enum dim {
    D_1, D_E, D_V, D_CONV, D_QKV, D_QKVZ, D_VD, D_NV, D_2NV, D_STATE,
    D_Q, D_KV, D_FUSED, D_O, D_HEAD, D_FF, D_X, D_M, D_2M, D_S, D_COUNT
};

enum kind {
    RECURRENT = 1, ATTENTION = 2, DENSE = 4, MOE = 8, HYBRID = 16, PLAIN = 32, ANY = 63,
    LACK = 64
};

/* Roles with LACK may be missing where another form stands for them;
 * check_forms sees to it that one is there. floats: never quantised. */
struct tensor_role {
    const char *name; /* after "blk.N." */
    size_t at;        /* in struct layer */
    unsigned kinds;
    bool floats;
    enum dim shape[3];
};

#define ROLE(name, member, kinds, floats, ...)                                 \
    { name, offsetof(struct layer, member), kinds, floats, { __VA_ARGS__ } }

static const struct tensor_role roles[] = {
    ROLE("attn_norm.weight", attn_norm, ANY, true, D_E),
    ROLE("post_attention_norm.weight", post_norm, HYBRID, true, D_E),
    ROLE("ffn_norm.weight", post_norm, PLAIN, true, D_E),
    ROLE("attn_qkv.weight", qkv, RECURRENT | LACK, false, D_E, D_QKV),
    ROLE("attn_gate.weight", gate, RECURRENT | LACK, false, D_E, D_VD),
    ROLE("ssm_in.weight", ssm_in, RECURRENT | LACK, false, D_E, D_QKVZ),
    ROLE("ssm_conv1d.weight", conv1d, RECURRENT, true, D_CONV, D_QKV),
    ROLE("ssm_dt.bias", dt, RECURRENT | LACK, true, D_NV),
    ROLE("ssm_dt", dt, RECURRENT | LACK, true, D_NV),
    ROLE("ssm_a", a, RECURRENT, true, D_NV),
    ROLE("ssm_alpha.weight", alpha, RECURRENT | LACK, false, D_E, D_NV),
    ROLE("ssm_beta.weight", beta, RECURRENT | LACK, false, D_E, D_NV),
    ROLE("ssm_ba.weight", ba, RECURRENT | LACK, false, D_E, D_2NV),
    ROLE("ssm_norm.weight", ssm_norm, RECURRENT, true, D_STATE),
    ROLE("ssm_out.weight", ssm_out, RECURRENT, false, D_VD, D_E),
    ROLE("attn_q.weight", q, ATTENTION | LACK, false, D_E, D_Q),
    ROLE("attn_k.weight", k, ATTENTION | LACK, false, D_E, D_KV),
    ROLE("attn_v.weight", v, ATTENTION | LACK, false, D_E, D_KV),
    ROLE("attn_qkv.weight", qkv, ATTENTION | LACK, false, D_E, D_FUSED),
    ROLE("attn_output.weight", o, ATTENTION, false, D_O, D_E),
    ROLE("attn_q_norm.weight", q_norm, ATTENTION, true, D_HEAD),
    ROLE("attn_k_norm.weight", k_norm, ATTENTION, true, D_HEAD),
    ROLE("ffn_gate.weight", ffn_gate, DENSE, false, D_E, D_FF),
    ROLE("ffn_up.weight", ffn_up, DENSE, false, D_E, D_FF),
    ROLE("ffn_down.weight", ffn_down, DENSE, false, D_FF, D_E),
    ROLE("ffn_gate_inp.weight", router, MOE, true, D_E, D_X),
    ROLE("ffn_gate_exps.weight", gate_exps, MOE | LACK, false, D_E, D_M, D_X),
    ROLE("ffn_up_exps.weight", up_exps, MOE | LACK, false, D_E, D_M, D_X),
    ROLE("ffn_gate_up_exps.weight", gate_up_exps, MOE | LACK, false, D_E, D_2M, D_X),
    ROLE("ffn_down_exps.weight", down_exps, MOE, false, D_M, D_E, D_X),
    ROLE("ffn_gate_inp_shexp.weight", shared_router, MOE, true, D_E),
    ROLE("ffn_gate_shexp.weight", gate_shexp, MOE, false, D_E, D_S),
    ROLE("ffn_up_shexp.weight", up_shexp, MOE, false, D_E, D_S),
    ROLE("ffn_down_shexp.weight", down_shexp, MOE, false, D_S, D_E),
};

enum { N_ROLES = sizeof roles / sizeof *roles };

struct finder {
    const struct gguf *g;
    struct hparams *hp;
    struct weights *w;
    uint64_t dims[D_COUNT];
    bool *known; /* by tensor index: has a role */
    struct err *err;
};

static void fill_dims(uint64_t d[D_COUNT], const struct hparams *hp)
{
    uint64_t q = (uint64_t)hp->q_width * hp->n_head;
    uint64_t kv = (uint64_t)hp->head_dim * hp->n_head_kv;
    const uint64_t dims[D_COUNT] = {
        [D_1] = 1, [D_E] = hp->n_embd, [D_V] = hp->n_vocab, [D_CONV] = hp->conv_kernel,
        [D_QKV] = hp->conv_dim, [D_QKVZ] = hp->conv_dim + hp->value_dim,
        [D_VD] = hp->value_dim, [D_NV] = hp->n_v_heads, [D_2NV] = 2ull * hp->n_v_heads,
        [D_STATE] = hp->state_dim, [D_Q] = q, [D_KV] = kv, [D_FUSED] = q + 2 * kv,
        [D_O] = (uint64_t)hp->head_dim * hp->n_head, [D_HEAD] = hp->head_dim, [D_FF] = hp->n_ff,
        [D_X] = hp->n_expert, [D_M] = hp->n_ff_expert, [D_2M] = 2ull * hp->n_ff_expert,
        [D_S] = hp->n_ff_shared,
    };
    memcpy(d, dims, sizeof dims);
}

/* ---- one tensor --------------------------------------------------------- */

static void shape_text(char *dst, size_t bytes, const uint64_t *ne, int n)
{
    while (n > 1 && ne[n - 1] == 1)
        n--;
    size_t at = 0;
    for (int i = 0; i < n && at < bytes; i++)
        at += (size_t)snprintf(dst + at, bytes - at, i ? ", %" PRIu64 : "{%" PRIu64,
                               ne[i]);
    if (at < bytes)
        snprintf(dst + at, bytes - at, "}");
}

static int check_shape(struct finder *f, const struct tensor *t, const enum dim shape[3])
{
    uint64_t want[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < 3; i++)
        want[i] = f->dims[shape[i]];
    if (!memcmp(want, t->ne, sizeof want))
        return 0;
    char expected[96], found[96];
    shape_text(expected, sizeof expected, want, 4);
    shape_text(found, sizeof found, t->ne, 4);
    return err_set(f->err, "tensor %s has the shape %s, not %s; the file is damaged or "
                   "does not match its own metadata", t->name, found, expected);
}

static bool is_float_type(enum quant q)
{
    return q == QUANT_F32 || q == QUANT_F16 || q == QUANT_BF16;
}

/* A tensor like another one, which lives as long as the weights. */
static struct tensor *new_view(struct weights *w, const struct tensor *like)
{
    struct tensor *view = mem_alloc(sizeof *view);
    *view = *like;
    w->views = mem_regrow(w->views, w->n_views + 1, sizeof *w->views);
    w->views[w->n_views++] = view;
    return view;
}

static bool ends_with(const char *name, const char *tail)
{
    size_t n = strlen(name), m = strlen(tail);
    return n > m && !strcmp(name + n - m, tail);
}

static int check_factor(struct finder *f, const struct tensor *t,
                        const struct tensor *factor)
{
    if (!is_float_type(factor->type) || factor->n_elements != factor->ne[0] ||
        (factor->ne[0] != 1 && factor->ne[0] != t->ne[2]))
        return err_set(f->err, "tensor %s holds no factors for %s; the file is damaged",
                       factor->name, t->name);
    float *values = mem_array(factor->ne[0], sizeof *values);
    bool finite = true;
    quant_dequantize(factor->type, factor->data, factor->ne[0], values);
    for (uint64_t i = 0; i < factor->ne[0]; i++)
        finite = finite && isfinite(values[i]);
    free(values);
    return finite ? 0 : err_set(f->err, "tensor %s holds a number that is not finite; the "
                                "file is damaged", factor->name);
}

/* NVFP4 matrices "x.weight" may have the factor of their values in "x.scale". */
static int find_factor(struct finder *f, const struct tensor **t)
{
    char name[GGUF_NAME_BYTES + 8];
    size_t base = strlen((*t)->name) - strlen(".weight");
    if ((*t)->type != QUANT_NVFP4 || !ends_with((*t)->name, ".weight"))
        return 0;
    snprintf(name, sizeof name, "%.*s.scale", (int)base, (*t)->name);
    const struct tensor *factor = gguf_tensor_find(f->g, name);
    if (!factor)
        return 0;
    if (check_factor(f, *t, factor) < 0)
        return -1;
    f->known[factor - gguf_tensor(f->g, 0)] = true;
    struct tensor *view = new_view(f->w, *t);
    view->factor = factor;
    *t = view;
    return 0;
}

/* What the file says is rotated gets a mark. The embedding is rotated by itself,
 * and is named as a matrix too only where it is the head. */
static void mark_rotated(struct finder *f, const struct tensor **t)
{
    struct rotation *r = &f->w->rotation;
    bool embedding = !strcmp((*t)->name, "token_embd.weight");
    bool named = !(embedding && !r->tied) && rotation_take(r, (*t)->name);
    if (!named && !(embedding && r->embedding))
        return;
    struct tensor *view = new_view(f->w, *t);
    view->rotated = true;
    *t = view;
}

/* Looks a tensor up and checks it: 0 found or absent (*out NULL), -1 wrong. */
static int find_tensor(struct finder *f, const char *name, bool floats,
                       const enum dim shape[3], const struct tensor **out)
{
    const struct tensor *t = gguf_tensor_find(f->g, name);
    *out = t;
    if (!t)
        return 0;
    if (check_shape(f, t, shape) < 0)
        return -1;
    if (floats && !is_float_type(t->type))
        return err_set(f->err, "tensor %s is of type %s, not a float type; the file was "
                       "made by an unknown converter", name, quant_format(t->type)->name);
    f->known[t - gguf_tensor(f->g, 0)] = true;
    if (find_factor(f, out) < 0)
        return -1;
    if (f->w->rotation.on && !floats)
        mark_rotated(f, out);
    return 0;
}

static int missing(struct finder *f, const char *name)
{
    return err_set(f->err, "tensor %s is missing; the file is incomplete, download it "
                   "again", name);
}

static void block_name(char dst[GGUF_NAME_BYTES], uint32_t layer, const char *name)
{
    snprintf(dst, GGUF_NAME_BYTES, "blk.%u.%s", layer, name);
}

static bool has_block(const struct finder *f, uint32_t layer, const char *name)
{
    char full[GGUF_NAME_BYTES];
    block_name(full, layer, name);
    return gguf_tensor_find(f->g, full) != NULL;
}

/* ---- layers ------------------------------------------------------------- */

/* For attention layers with one fused product: its rows are the query and gate
 * rows, then keys, then values; each part is a tensor of its own from here on. */
static void split_fused(struct finder *f, uint32_t i, struct layer *l)
{
    static const char *const names[3] = { "attn_q.weight", "attn_k.weight",
                                          "attn_v.weight" };
    const enum dim rows[3] = { D_Q, D_KV, D_KV };
    const struct tensor **role[3] = { &l->q, &l->k, &l->v };
    const struct tensor *fused = l->qkv;
    uint64_t row_bytes = fused->bytes / fused->ne[1], row = 0;
    for (int part = 0; part < 3; part++) {
        struct tensor *view = new_view(f->w, fused);
        block_name(view->name, i, names[part]);
        view->ne[1] = f->dims[rows[part]];
        view->n_elements = view->ne[0] * view->ne[1];
        view->offset += row * row_bytes;
        view->data += row * row_bytes;
        view->bytes = view->ne[1] * row_bytes;
        row += view->ne[1];
        *role[part] = view;
    }
    l->qkv = NULL;
}

/* Of roles that stand for each other, one form must be complete. */
static int check_forms(struct finder *f, uint32_t i, struct layer *l)
{
    const char *name = NULL;
    if (l->recurrent) {
        if (!l->dt)
            name = "ssm_dt.bias";
        else if (!l->ssm_in && !(l->qkv && l->gate))
            name = l->qkv ? "attn_gate.weight" : "attn_qkv.weight";
        else if (!l->ba && !(l->alpha && l->beta))
            name = f->hp->arch->fused_ba ? "ssm_ba.weight"
                   : l->alpha            ? "ssm_beta.weight"
                                         : "ssm_alpha.weight";
    } else if (!l->qkv) {
        name = !l->q ? "attn_q.weight" : !l->k ? "attn_k.weight"
               : !l->v ? "attn_v.weight" : NULL;
    }
    if (!name && f->hp->arch->moe && !l->gate_up_exps && !(l->gate_exps && l->up_exps))
        name = l->gate_exps ? "ffn_up_exps.weight" : "ffn_gate_exps.weight";
    char full[GGUF_NAME_BYTES];
    if (name) {
        block_name(full, i, name);
        return missing(f, full);
    }
    if (!l->recurrent && l->qkv)
        split_fused(f, i, l);
    return 0;
}

static int find_layer(struct finder *f, uint32_t i)
{
    struct layer *l = &f->w->layers[i];
    char name[GGUF_NAME_BYTES];
    const struct arch *arch = f->hp->arch;
    l->recurrent = !arch->plain && (has_block(f, i, "ssm_conv1d.weight") ||
                                    has_block(f, i, "ssm_a"));
    unsigned kinds = (l->recurrent ? RECURRENT : ATTENTION) | (arch->moe ? MOE : DENSE) |
                     (arch->plain ? PLAIN : HYBRID);
    for (int k = 0; k < N_ROLES; k++) {
        const struct tensor_role *r = &roles[k];
        const struct tensor *t;
        if (!(r->kinds & kinds))
            continue;
        block_name(name, i, r->name);
        if (find_tensor(f, name, r->floats, r->shape, &t) < 0)
            return -1;
        if (!t && !(r->kinds & LACK))
            return missing(f, name);
        if (t)
            memcpy((char *)l + r->at, &t, sizeof(struct tensor *));
    }
    return check_forms(f, i, l);
}

/* ---- the keys' opinion -------------------------------------------------- */

/* Which layers the keys call recurrent. Without keys there is no opinion:
 * some converters leave the interval out. */
static int check_kinds(struct finder *f)
{
    char key[128];
    struct gguf_array listed = { 0 };
    uint32_t interval = 0;
    snprintf(key, sizeof key, "%s.attention.recurrent_layers", f->hp->arch->name);
    int has_list = gguf_array(f->g, key, GGUF_INTS, &listed, f->err);
    if (has_list < 0)
        return -1;
    if (has_list && listed.n < f->hp->n_layer)
        return err_set(f->err, "%s has %" PRIu64 " entries for %u layers; the file is "
                       "damaged", key, listed.n, f->hp->n_layer);
    snprintf(key, sizeof key, "%s.full_attention_interval", f->hp->arch->name);
    int has_interval = gguf_u32(f->g, key, &interval, f->err);
    if (has_interval < 0)
        return -1;
    if (has_interval && interval == 0)
        return err_set(f->err, "%s is 0; the file is damaged", key);
    for (uint32_t i = 0; i < f->hp->n_layer && (has_list || has_interval); i++) {
        bool said = has_list ? gguf_array_int(&listed, i) != 0 : (i + 1) % interval != 0;
        if (said != f->w->layers[i].recurrent)
            return err_set(f->err, "layer %u has the tensors of %s layer, but the "
                           "metadata calls it %s; the file is damaged", i,
                           said ? "an attention" : "a recurrent",
                           said ? "recurrent" : "attention");
    }
    return 0;
}

/* ---- the whole decoder -------------------------------------------------- */

bool tensor_is_decoder(const struct tensor *t, uint32_t n_layer)
{
    static const char *const others[] = { "v.", "a.", "mm.", "mtp." };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strncmp(t->name, others[i], strlen(others[i])))
            return false;
    if (strncmp(t->name, "blk.", 4) != 0 || t->name[4] < '0' || t->name[4] > '9')
        return true;
    return strtoul(t->name + 4, NULL, 10) < n_layer;
}

/* A tensor without a role stands for mathematics that would be left out. The
 * scale of quantised activations is the exception: they are not quantised so. */
static int check_unknown(struct finder *f)
{
    for (size_t i = 0; i < gguf_n_tensors(f->g); i++) {
        const struct tensor *t = gguf_tensor(f->g, i);
        char text[GGUF_TEXT_BYTES];
        if (f->known[i] || !tensor_is_decoder(t, f->hp->n_layer) ||
            ends_with(t->name, ".input_scale"))
            continue;
        gguf_text(text, t->name, strlen(t->name));
        if (ends_with(t->name, ".scale"))
            err_set(f->err, "factors beside weights are supported with type NVFP4 only "
                    "(tensor %s)", text);
        else
            err_set(f->err, "the tensor %s is not known, so the model would give wrong "
                    "results", text);
        return 0;
    }
    return 1;
}

static int find_global(struct finder *f)
{
    static const enum dim vector[3] = { D_E }, matrix[3] = { D_E, D_V };
    struct weights *w = f->w;
    const struct tensor *embd = gguf_tensor_find(f->g, "token_embd.weight");
    if (!embd)
        return missing(f, "token_embd.weight");
    f->hp->n_vocab = (uint32_t)embd->ne[1];
    f->dims[D_V] = f->hp->n_vocab;
    if (find_tensor(f, "token_embd.weight", false, matrix, &w->token_embd) < 0 ||
        find_tensor(f, "output_norm.weight", true, vector, &w->output_norm) < 0 ||
        find_tensor(f, "output.weight", false, matrix, &w->output) < 0)
        return -1;
    if (!w->output_norm)
        return missing(f, "output_norm.weight");
    if (!w->output)
        w->output = w->token_embd;
    return 0;
}

static int find_all(struct finder *f)
{
    if (find_global(f) < 0)
        return -1;
    for (uint32_t i = 0; i < f->hp->n_layer; i++) {
        if (find_layer(f, i) < 0)
            return -1;
        if (f->w->layers[i].recurrent)
            f->hp->n_recurrent++;
        else
            f->hp->n_attention++;
    }
    if (check_kinds(f) < 0)
        return -1;
    return check_unknown(f);
}

int weights_find(struct weights *w, struct hparams *hp, const struct gguf *g,
                 struct err *err)
{
    struct finder f = { .g = g, .hp = hp, .w = w, .err = err };
    *w = (struct weights){ 0 };
    int rc = rotation_read(&w->rotation, g, err);
    if (rc != 1)
        return rc;
    w->layers = mem_zalloc(hp->n_layer * sizeof *w->layers);
    f.known = mem_zalloc(gguf_n_tensors(g) * sizeof *f.known);
    fill_dims(f.dims, hp);
    rc = find_all(&f);
    free(f.known);
    return rc;
}

void weights_release(struct weights *w)
{
    for (size_t i = 0; i < w->n_views; i++)
        free(w->views[i]);
    rotation_release(&w->rotation);
    free(w->layers);
    free(w->views);
    *w = (struct weights){ 0 };
}

/* ---- what the device can run -------------------------------------------- */

static int check_formats(const struct hparams *hp, const struct gguf *g, struct err *err)
{
    const struct tensor *first = NULL;
    size_t others = 0;
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct tensor *t = gguf_tensor(g, i);
        if (!tensor_is_decoder(t, hp->n_layer) || quant_format(t->type)->runs)
            continue;
        others += first != NULL;
        first = first ? first : t;
    }
    if (!first)
        return 1;
    const char *type = quant_format(first->type)->name;
    char text[GGUF_TEXT_BYTES];
    gguf_text(text, first->name, strlen(first->name));
    if (others)
        err_set(err, "type %s is not supported (tensor %s, and %zu more that cannot be "
                "used)", type, text, others);
    else
        err_set(err, "type %s is not supported (tensor %s)", type, text);
    return 0;
}

/* Which of two tensors that go into one matrix is rotated and which is not. */
static bool differ(const struct tensor *a, const struct tensor *b)
{
    return a && b && a->rotated != b->rotated;
}

static int check_layer_rotation(const struct layer *l, struct err *err)
{
    const struct tensor *const experts[] = { l->gate_exps, l->up_exps, l->gate_up_exps,
                                             l->down_exps, l->gate_shexp, l->up_shexp,
                                             l->down_shexp };
    for (size_t i = 0; i < sizeof experts / sizeof *experts; i++)
        if (experts[i] && experts[i]->rotated) {
            err_set(err, "rotated experts (tensor %s) are not supported", experts[i]->name);
            return 0;
        }
    if (differ(l->ffn_gate, l->ffn_up)) {
        err_set(err, "of %s and %s only one is rotated, which is not supported",
                l->ffn_gate->name, l->ffn_up->name);
        return 0;
    }
    return 1;
}

/* Rotated inputs of a layer, and the order of heads that ssm_out is in. */
static int check_rotation(const struct weights *w, const struct hparams *hp,
                          struct err *err)
{
    const struct rotation *r = &w->rotation;
    bool regrouped = false;
    int rc = rotation_check_used(r, hp->n_layer, err);
    for (uint32_t i = 0; rc == 1 && i < hp->n_layer; i++) {
        const struct layer *l = &w->layers[i];
        regrouped = regrouped || (l->ssm_out && l->ssm_out->rotated);
        rc = check_layer_rotation(l, err);
    }
    for (size_t i = 0; rc == 1 && i < w->n_views; i++)
        if (w->views[i]->rotated)
            rc = rotation_check_width(r, w->views[i], err);
    if (rc != 1 || !regrouped || hp->n_v_heads == hp->n_k_heads)
        return rc;
    if (r->says_v && !(r->v_grouped && hp->grouped_heads))
        return 1;
    err_set(err, "its weights are rotated in a way that is not known "
            "(prism.hadamard.gdn_v_grouped %s)", r->says_v ? "on, as all else is"
                                                           : "is missing");
    return 0;
}

int weights_runnable(const struct weights *w, const struct hparams *hp,
                     const struct gguf *g, struct err *err)
{
    for (uint32_t i = 0; i < hp->n_layer; i++)
        if (w->layers[i].ssm_in && !hp->grouped_heads) {
            err_set(err, "fused ssm_in tensors with value heads in tiled order are not "
                    "supported");
            return 0;
        }
    int rc = w->rotation.on ? check_rotation(w, hp, err) : 1;
    return rc == 1 ? check_formats(hp, g, err) : rc;
}
