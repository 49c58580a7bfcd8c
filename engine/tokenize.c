/* tokenize.c - the functions of engine.h that turn text and conversations into
 * ids and back, by way of the model's vocabulary and chat template. */
#include "engine/engine.h"
#include "engine/model.h"
#include "engine/template.h"
#include "engine/vocab.h"

void model_tokenize(const struct model *m, const char *text, size_t bytes, unsigned flags,
                    struct tokens *out)
{
    if (m->vocab)
        vocab_encode(m->vocab, text, bytes, flags, out);
}

void model_detokenize(const struct model *m, int32_t id, unsigned flags, struct buf *out)
{
    if (m->vocab)
        vocab_decode(m->vocab, id, flags, out);
}

bool model_is_end(const struct model *m, int32_t id)
{
    return m->vocab && vocab_is_end(m->vocab, id);
}

int32_t model_think_begin(const struct model *m)
{
    return m->vocab ? vocab_find(m->vocab, "<think>") : -1;
}

int32_t model_think_end(const struct model *m)
{
    return m->vocab ? vocab_find(m->vocab, "</think>") : -1;
}

int model_render(const struct model *m, const struct turn *turns, size_t n_turns,
                 const struct render_params *p, struct tokens *out, size_t *starts,
                 struct err *err)
{
    if (!m->tmpl)
        return err_set(err, "%s: the file has no vocabulary that Tern can use",
                       m->info.path);
    return template_render(m->tmpl, turns, n_turns, p, out, starts, err);
}

void model_sampling(const struct model *m, bool thinking, struct sampler_params *out)
{
    template_sampling(m->tmpl, thinking, out);
}
