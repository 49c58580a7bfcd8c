/* view_help.c - the keys, printed from the key table, and the commands that the
 * caller knows. */
#include "ui/view.h"

#include "base/sanitize.h"
#include "ui/theme.h"

#include <string.h>

#define KEY_COLS 22

static const char note[] = "A stopped program (Ctrl+Z) keeps the model in memory.";

/* One line of the screen: an action and its keys, or text alone. */
struct help_line {
    enum action action; /* ACT_NONE: text alone */
    const char *text;
    size_t bytes; /* of text */
};

static bool worth_a_line(const struct core *c, enum action a)
{
    struct buf keys = BUF_INIT;
    keymap_keys(&c->keymap, a, 1, &keys);
    bool has = keys.len > 0 && *action_help(a);
    buf_release(&keys);
    return has;
}

static size_t key_lines(const struct core *c)
{
    size_t lines = 0;
    for (int a = ACT_NONE + 1; a < ACT_COUNT; a++)
        lines += worth_a_line(c, (enum action)a);
    return lines;
}

static struct help_line key_line(const struct core *c, size_t i)
{
    int a = ACT_NONE + 1;
    while (!worth_a_line(c, (enum action)a) || i-- > 0)
        a++;
    const char *help = action_help((enum action)a);
    return (struct help_line){ (enum action)a, help, strlen(help) };
}

static size_t command_lines(const struct core *c)
{
    size_t lines = 0;
    for (const char *s = c->commands; *s; s++)
        lines += *s == '\n';
    return lines;
}

static struct help_line command_line(const struct core *c, size_t i)
{
    const char *s = c->commands;
    while (i-- > 0)
        s = strchr(s, '\n') + 1;
    return (struct help_line){ ACT_NONE, s, strcspn(s, "\n") };
}

/* Keys, an empty line, the caller's commands, an empty line, the note. */
static size_t line_count(const struct core *c)
{
    return key_lines(c) + command_lines(c) + 3;
}

static struct help_line line_at(const struct core *c, size_t i)
{
    size_t keys = key_lines(c), commands = command_lines(c);
    if (i < keys)
        return key_line(c, i);
    if (i > keys && i <= keys + commands)
        return command_line(c, i - keys - 1);
    if (i + 1 == line_count(c))
        return (struct help_line){ ACT_NONE, note, sizeof note - 1 };
    return (struct help_line){ ACT_NONE, "", 0 };
}

static void draw_line(struct core *c, size_t i, struct span at)
{
    struct help_line l = line_at(c, i);
    struct buf b = BUF_INIT;
    if (l.action != ACT_NONE) {
        int text = at.col + KEY_COLS;
        keymap_keys(&c->keymap, l.action, 2, &b);
        int col = screen_put(&c->screen, at, b.v, b.len, STYLE_PROMPT);
        at.col = 1 + (col > text ? col : text);
        buf_truncate(&b, 0);
    }
    sanitize_line(&b, l.text, l.bytes);
    screen_put(&c->screen, at, buf_cstr(&b), b.len, STYLE_TEXT);
    buf_release(&b);
}

static void draw(struct core *c, const struct ui_model *m, struct rect r)
{
    (void)m;
    int lines = (int)line_count(c), most = lines - r.rows;
    if (c->help_top > most)
        c->help_top = most;
    if (c->help_top < 0)
        c->help_top = 0;
    for (int row = 0; row < r.rows && c->help_top + row < lines; row++)
        draw_line(c, (size_t)c->help_top + (size_t)row,
                  span(r.row + row, r.col, r.col + r.cols));
    screen_str(&c->screen, span(c->layout.input.row, 0, c->screen.cols), "Esc goes back",
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
        c->help_top = (int)line_count(c);
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
