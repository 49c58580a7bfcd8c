/* ui.c - the public face: the views of core.c on the terminal of term.c. */
#include "ui/ui.h"

#include "base/mem.h"
#include "ui/term.h"
#include "ui/theme.h"
#include "ui/view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct ui {
    struct terminal *term;
    struct core core;
    bool gone; /* the terminal hung up */
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void on_answer(void *user, const struct key *k)
{
    struct ui *ui = user;
    term_answer(ui->term, k);
    ui->core.dirty = true;
}

int ui_open(struct ui **out, const struct ui_params *p, struct err *err)
{
    struct ui *ui = mem_zalloc(sizeof *ui);
    int theme = p->theme ? theme_find(p->theme) : THEME_16;
    if (term_open(&ui->term, p->mouse, theme < 0 ? THEME_16 : (enum theme)theme, err) <
        0) {
        free(ui);
        return -1;
    }
    core_init(&ui->core, p);
    ui->core.answer = on_answer;
    ui->core.no_clipboard = !term_can_copy(ui->term);
    ui->core.answer_user = ui;
    *out = ui;
    return 0;
}

const char *ui_themes(void)
{
    return "16, dark, light, none";
}

bool ui_is_theme(const char *name)
{
    return theme_find(name) >= 0;
}

int ui_keys_check(const char *action, const char *keys, struct err *err)
{
    struct keymap m;
    keymap_init(&m);
    int rc = keymap_bind(&m, action, keys, err);
    keymap_release(&m);
    return rc;
}

bool ui_key_row(size_t i, const char *lines, struct ui_key_row *row, struct buf *keys)
{
    struct core c;
    if (i + 1 >= ACT_COUNT)
        return false;
    enum action a = (enum action)(i + 1);
    core_init(&c, &(struct ui_params){ .keys = lines });
    *row = (struct ui_key_row){ action_name(a), action_help(a) };
    buf_truncate(keys, 0);
    keymap_keys(&c.keymap, a, SIZE_MAX, keys);
    core_release(&c);
    return true;
}

void ui_close(struct ui *ui)
{
    if (!ui)
        return;
    term_close(ui->term);
    core_release(&ui->core);
    free(ui);
}

void ui_emergency_restore(void)
{
    term_emergency_restore();
}

void ui_draw(struct ui *ui, const struct ui_model *m)
{
    int rows, cols;
    if (ui->gone)
        return;
    term_check(ui->term, &rows, &cols);
    ui->core.now_ms = now_ms();
    core_draw(&ui->core, m, rows, cols);
    term_draw(ui->term, &ui->core.screen);
    if (ui->core.clipboard.len > 0 && !ui->core.saving) {
        term_copy(ui->term, ui->core.clipboard.v, ui->core.clipboard.len);
        buf_truncate(&ui->core.clipboard, 0);
    }
}

int ui_fd(const struct ui *ui)
{
    return term_fd(ui->term);
}

int ui_timeout_ms(const struct ui *ui)
{
    return core_timeout_ms(&ui->core, now_ms());
}

static void read_input(struct ui *ui)
{
    char bytes[16384];
    long n = term_read(ui->term, bytes, sizeof bytes);
    if (n > 0)
        decode_feed(&ui->core.keys, bytes, (size_t)n, now_ms());
    else if (n < 0)
        ui->gone = true;
}

/* What keys asked of the terminal itself. */
static void serve(struct ui *ui)
{
    unsigned wants = ui->core.wants;
    ui->core.wants = 0;
    if (wants & WANT_REPAINT)
        term_repaint(ui->term);
    if (wants & WANT_THEME)
        term_theme(ui->term, ui->core.theme);
    if (wants & WANT_MOUSE)
        term_toggle_mouse(ui->term);
    if (wants & WANT_SUSPEND) {
        term_stop(ui->term);
        ui->core.dirty = true;
    }
}

bool ui_next(struct ui *ui, struct ui_intent *intent)
{
    int rows, cols;
    bool was_gone = ui->gone;
    *intent = (struct ui_intent){ .kind = UI_NONE };
    if (!was_gone)
        read_input(ui);
    if (ui->gone) {
        intent->kind = UI_QUIT;
        return !was_gone;
    }
    if (term_check(ui->term, &rows, &cols))
        ui->core.dirty = true;
    bool told = core_next(&ui->core, now_ms(), intent);
    serve(ui);
    return told;
}

void ui_set_input(struct ui *ui, const char *text)
{
    input_set(&ui->core, text);
}

void ui_attach(struct ui *ui, const char *label, const char *text)
{
    input_attach(&ui->core, label, text);
    ui->core.dirty = true;
}

void ui_label(struct ui *ui, int64_t id, const char *label)
{
    pills_label(&ui->core.pills, (size_t)id, label);
    ui->core.dirty = true;
}

char *ui_input(const struct ui *ui)
{
    return input_text(&ui->core);
}

void ui_set_hits(struct ui *ui, const struct ui_hit *hits, size_t n)
{
    search_set(&ui->core.search, hits, n);
}

void ui_suspend(struct ui *ui)
{
    term_suspend(ui->term);
}

void ui_resume(struct ui *ui)
{
    term_resume(ui->term);
    ui->core.dirty = true;
}
