/* view_find.c - words looked for in the shown conversation: from its end upwards,
 * marked wherever they stand on the screen. */
#include "ui/view.h"

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    chat_view.draw(c, m, r);
    if (c->transcript.nothing_found)
        core_notice(c, "not in this conversation");
    else if (!c->notice[0])
        core_notice(c, "Enter or Up: the one before, Down: the next, Esc: done");
}

static void typed(struct core *c, struct ui_intent *out)
{
    (void)out;
    transcript_words(&c->transcript, buf_cstr(&c->line.text));
    transcript_find(&c->transcript, -1);
    c->stale = true;
}

static void act(struct core *c, enum action a, struct ui_intent *out)
{
    switch (a) {
    case ACT_ESCAPE:
        core_show(c, &chat_view);
        break;
    case ACT_ENTER:
    case ACT_UP:
    case ACT_FIND:
        transcript_find(&c->transcript, -1);
        break;
    case ACT_DOWN:
        transcript_find(&c->transcript, 1);
        break;
    default:
        chat_view.act(c, a, out);
        break;
    }
    c->stale = true;
}

const struct view_ops find_view = {
    .place = IN_FIND,
    .title = NULL, /* the conversation's */
    .draw = draw,
    .act = act,
    .typed = typed,
};
