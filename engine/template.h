/* template.h - a conversation to token ids, in the chat format that the model
 * file asks for. The format is recognised by features of the template's text;
 * the text itself is never executed.
 * Thread-safety: read-only after opening, any thread. */
#ifndef ENGINE_TEMPLATE_H
#define ENGINE_TEMPLATE_H

#include "engine/engine.h"

struct gguf;
struct template;
struct vocab;

/* Reads tokenizer.chat_template. v must outlive the template. Opens with any
 * template text; template_refusal says whether the model can chat. */
int template_open(struct template **out, const struct gguf *g, const struct vocab *v,
                  struct err *err);
/* The same for the text of a template in memory; NULL: the file has none. It is
 * not needed after the call. */
void template_open_text(struct template **out, const char *text, size_t bytes,
                        const struct vocab *v);
void template_close(struct template *t);

/* "chatml", "qwen3", "qwen3.5", "qwen3.6", "qwen3.8". */
const char *template_family(const struct template *t);
/* NULL, or one line: what had to be assumed. */
const char *template_note(const struct template *t);
/* NULL, or one line: why this model cannot chat. */
const char *template_refusal(const struct template *t);
/* Whether the format has reasoning between <think> and </think>, and whether
 * an answer starts with it by default. */
bool template_has_thinking(const struct template *t);
bool template_thinking_default(const struct template *t);
/* The usual degree of thinking; EFFORT_DEFAULT where there is only one. */
enum effort template_effort(const struct template *t);

/* As model_render and model_sampling in engine.h; sampling of NULL is that of
 * plain ChatML. */
int template_render(const struct template *t, const struct turn *turns, size_t n_turns,
                    const struct render_params *p, struct tokens *out, size_t *starts,
                    struct err *err);
void template_sampling(const struct template *t, bool thinking,
                       struct sampler_params *out);

#endif
