/* snapshot_id.c - what a snapshot on disk belongs to: fingerprints and names. */
#include "engine/snapshot_file.h"

#include "base/buf.h"
#include "engine/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const char snapshot_magic_kv[8] = "TERNKV\n";
const char snapshot_magic_state[8] = "TERNRS\n";

enum { PIECES = 4, PIECE_BYTES = 64 };

static void hash_tensor(XXH3_state_t *x, const struct tensor *t)
{
    const uint64_t shape[6] = { t->ne[0], t->ne[1],          t->ne[2],
                                t->ne[3], (uint64_t)t->type, t->bytes };
    XXH3_64bits_update(x, t->name, strlen(t->name) + 1);
    XXH3_64bits_update(x, shape, sizeof shape);
    uint64_t piece = t->bytes < PIECE_BYTES ? t->bytes : PIECE_BYTES;
    for (uint64_t i = 0; i < PIECES; i++) {
        uint64_t at = (t->bytes - piece) / (PIECES - 1) * i;
        XXH3_64bits_update(x, t->data + at, piece);
    }
}

static void hash_hparams(XXH3_state_t *x, const struct hparams *hp)
{
    const uint32_t ints[] = { (uint32_t)hp->arch->id,
                              hp->n_layer,
                              hp->n_embd,
                              hp->n_vocab,
                              hp->n_head,
                              hp->n_head_kv,
                              hp->head_dim,
                              hp->rope_dims,
                              hp->n_k_heads,
                              hp->n_v_heads,
                              hp->grouped_heads,
                              hp->n_expert,
                              hp->n_expert_used };
    const float reals[] = { hp->rms_eps, hp->rope_base, hp->attn_scale,
                            hp->expert_scale };
    XXH3_64bits_update(x, ints, sizeof ints);
    XXH3_64bits_update(x, reals, sizeof reals);
    if (hp->scaling.factor > 0)
        XXH3_64bits_update(x, &hp->scaling, sizeof hp->scaling);
}

/* What the file says beside its tensors about those that are rotated. */
static void hash_rotation(XXH3_state_t *x, const struct weights *w)
{
    const struct rotation *r = &w->rotation;
    if (!r->on)
        return;
    XXH3_64bits_update(x, &r->v_grouped, sizeof r->v_grouped);
    for (size_t i = 0; i < w->n_views; i++)
        if (w->views[i]->rotated)
            XXH3_64bits_update(x, w->views[i]->name, strlen(w->views[i]->name) + 1);
    for (uint32_t i = 0, first = 0; r->signs && i < r->n_widths; first += r->widths[i++])
        XXH3_64bits_update(x, r->signs + first, r->widths[i]);
}

uint64_t snapshot_weights_hash(const struct model *m)
{
    XXH3_state_t *x = XXH3_createState();
    if (!x)
        abort(); /* as base/mem.h does */
    XXH3_64bits_reset(x);
    hash_hparams(x, &m->hp);
    hash_rotation(x, &m->w);
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++)
        hash_tensor(x, gguf_tensor(m->file, i));
    uint64_t hash = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    return hash;
}

void snapshot_identify(struct snapshot_identity *id, struct session *s)
{
    const struct model *m = s->engine->model;
    const struct hparams *hp = &m->hp;
    const char *tokenizer = m->info.tokenizer_id;
    const uint32_t row = hp->n_head_kv * hp->head_dim * (s->params.kv == KV_F32 ? 4 : 2);
    if (!s->weights_hash)
        s->weights_hash = snapshot_weights_hash(m);
    *id = (struct snapshot_identity){
        .version = SNAPSHOT_VERSION,
        .endian = SNAPSHOT_ENDIAN,
        .kv_type = s->params.kv,
        .math = s->engine->int8,
        .n_recurrent = hp->n_recurrent,
        .n_attention = hp->n_attention,
        .row_bytes = row ? row : 1,
        .history_bytes = 3 * hp->conv_dim * 4,
        .matrix_bytes = (uint64_t)hp->n_v_heads * STATE_DIM * STATE_DIM * 4,
        .weights = s->weights_hash,
        .tokenizer = XXH3_64bits(tokenizer, strlen(tokenizer)),
    };
}

uint64_t snapshot_key(const struct snapshot_identity *id)
{
    return XXH3_64bits(id, sizeof *id);
}

uint64_t snapshot_prefix(const int32_t *ids, size_t n)
{
    return XXH3_64bits(ids, n * sizeof *ids);
}

char *snapshot_kv_path(const char *dir, const struct snapshot_identity *id)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%016" PRIx64 ".kv", dir, snapshot_key(id));
    return buf_detach(&b);
}

char *snapshot_state_path(const char *dir, const struct snapshot_identity *id, size_t pos,
                          uint64_t prefix)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%016" PRIx64 "-%zu-%016" PRIx64 ".state", dir, snapshot_key(id),
               pos, prefix);
    return buf_detach(&b);
}

uint64_t snapshot_checksum(const struct snapshot_header *h, const int32_t *ids, size_t n)
{
    uint64_t of_ids = XXH3_64bits(ids, n * sizeof *ids);
    return XXH3_64bits_withSeed(h, offsetof(struct snapshot_header, checksum), of_ids);
}
