/* view_help.c - the keys, printed from the key table, and the commands. */
#include "ui/view.h"

#include "base/utf8.h"
#include "ui/theme.h"

#include <string.h>

#define KEY_COLS 22

static const char *const notes[] = {
    "",
    "/help /list /search /new /quit do the same as their keys.",
    "Suspended, the program keeps the model in memory.",
};

/* Draws line i of the help, if it exists; false past the end. */
static bool draw_line(struct core *c, size_t i, int row, struct rect r)
{
    size_t n, shown = 0;
    const struct binding *b = keys_table(&n);
    int end = r.col + r.cols;
    for (; n > 0; n--, b++) {
        if (!b->help)
            continue;
        if (shown++ == i) {
            int col = screen_str(&c->screen, row, r.col, end, b->name, STYLE_PROMPT);
            if (col < r.col + KEY_COLS)
                col = r.col + KEY_COLS;
            screen_str(&c->screen, row, col + 1, end, b->help, STYLE_TEXT);
            return true;
        }
    }
    if (i - shown >= sizeof notes / sizeof *notes)
        return false;
    screen_str(&c->screen, row, r.col, end, notes[i - shown], STYLE_DIM);
    return true;
}

static int line_count(void)
{
    size_t n;
    const struct binding *b = keys_table(&n);
    int lines = (int)(sizeof notes / sizeof *notes);
    for (; n > 0; n--, b++)
        lines += b->help != NULL;
    return lines;
}

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    (void)m;
    int most = line_count() - r.rows;
    if (c->help_top > most)
        c->help_top = most;
    if (c->help_top < 0)
        c->help_top = 0;
    for (int row = 0; row < r.rows; row++)
        if (!draw_line(c, (size_t)(c->help_top + row), r.row + row, r))
            break;
    screen_str(&c->screen, c->layout.input.row, 0, c->screen.cols, "Esc goes back",
               STYLE_DIM);
}

static void act(struct core *c, enum action a, struct ui_intent *out)
{
    int page = c->layout.body.rows > 1 ? c->layout.body.rows - 1 : 1;
    (void)out;
    switch (a) {
    case ACT_ESCAPE:
    case ACT_ENTER:
        core_show(c, &chat_view);
        break;
    case ACT_UP:
    case ACT_LINE_UP:
        c->help_top--;
        break;
    case ACT_DOWN:
    case ACT_LINE_DOWN:
        c->help_top++;
        break;
    case ACT_PAGE_UP:
        c->help_top -= page;
        break;
    case ACT_PAGE_DOWN:
        c->help_top += page;
        break;
    case ACT_HOME:
    case ACT_TOP:
        c->help_top = 0;
        break;
    case ACT_END:
    case ACT_BOTTOM:
        c->help_top = line_count();
        break;
    default:
        break;
    }
}

const struct view_ops help_view = {
    .place = IN_HELP,
    .title = "Keys",
    .draw = draw,
    .act = act,
};
