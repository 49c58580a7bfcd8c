/* prompt.c - from messages to ids; titles. Decides nothing but which form of a
 * turn is used. */
#include "app/prompt.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Whether the ids of a message are what the model is to read now. */
static bool ids_hold(const struct message *m, const struct model_info *info, bool strip)
{
    if (!m->n_ids || !m->ids_model || !info->tokenizer_id ||
        strcmp(m->ids_model, info->tokenizer_id) != 0)
        return false;
    /* The degree of thinking is part of the system turn, and may have changed. */
    if (m->role == ROLE_SYSTEM && info->effort != EFFORT_DEFAULT)
        return false;
    return !(strip && m->role == ROLE_ASSISTANT && m->thinking_bytes);
}

static struct turn turn_from_message(const struct message *m,
                                     const struct model_info *info, bool strip)
{
    struct turn t = { .role = m->role, .text = m->text, .text_bytes = m->text_bytes };
    if (ids_hold(m, info, strip)) {
        t.ids = m->ids;
        t.n_ids = m->n_ids;
    } else if (!strip) {
        t.thinking = m->thinking;
        t.thinking_bytes = m->thinking_bytes;
    }
    return t;
}

int prompt_compose(struct prompt *p, const struct model *m, const struct message *path,
                   size_t n, const struct prompt_style *style, struct err *err)
{
    const struct render_params params = { .thinking = style->thinking,
                                          .effort = style->effort,
                                          .generate = true };
    struct turn *turns = mem_array(n, sizeof *turns);
    *p = (struct prompt){ .n_turns = n };
    p->starts = mem_array(n + 1, sizeof *p->starts);
    for (size_t i = 0; i < n; i++)
        turns[i] = turn_from_message(&path[i], model_info(m), style->strip_thinking);
    int rc = model_render(m, turns, n, &params, &p->ids, p->starts, err);
    free(turns);
    return rc;
}

const int32_t *prompt_turn(const struct prompt *p, size_t i, size_t *n)
{
    *n = p->starts[i + 1] - p->starts[i];
    return p->ids.v + p->starts[i];
}

size_t *prompt_marks(const struct prompt *p, size_t *n)
{
    size_t *marks = mem_array(p->n_turns + 1, sizeof *marks);
    *n = 0;
    for (size_t i = 0; i <= p->n_turns; i++)
        if (p->starts[i] > (*n ? marks[*n - 1] : 0))
            marks[(*n)++] = p->starts[i];
    return marks;
}

void prompt_release(struct prompt *p)
{
    tokens_release(&p->ids);
    free(p->starts);
    *p = (struct prompt){ 0 };
}
