/* view_rig.h - whole screens as text, driven by key bytes, without a terminal. */
#ifndef TESTS_UI_VIEW_RIG_H
#define TESTS_UI_VIEW_RIG_H

#include "ui/view.h"

#include "base/mem.h"
#include "tests/test.h"
#include "ui/copy.h"
#include "ui/theme.h"

#include <time.h>

struct fixture {
    struct core core;
    struct ui_model model;
    struct chat chat;
    struct message messages[64];
    struct buf texts[64];
    int rows, cols;
    int64_t now;
    struct ui_intent intent; /* the last one that was no REDRAW */
    int intents;
};

static char view_empty[] = "";

static inline void begin(struct fixture *f, int rows, int cols)
{
    *f = (struct fixture){ .rows = rows, .cols = cols, .now = 100000 };
    f->chat = (struct chat){ .id = 7, .title = view_empty, .model = view_empty };
    f->model.chat = &f->chat;
    f->model.messages = f->messages;
    f->model.status = (struct ui_status){ .phase = PHASE_IDLE, .model = "m" };
    core_init(&f->core, &(struct ui_params){ .commands = "/export FILE  writes it\n" });
}

static inline void end(struct fixture *f)
{
    free(f->intent.text);
    free(f->intent.path);
    for (size_t i = 0; i < 64; i++)
        buf_release(&f->texts[i]);
    core_release(&f->core);
}

static inline struct message *say(struct fixture *f, enum role role, const char *text)
{
    size_t i = f->model.n_messages++;
    buf_str(&f->texts[i], text);
    f->messages[i] = (struct message){ .id = (int64_t)i + 100,
                                       .chat_id = 7,
                                       .role = role,
                                       .text = f->texts[i].v,
                                       .text_bytes = f->texts[i].len,
                                       .siblings = 1 };
    return &f->messages[i];
}

static inline void stream(struct fixture *f, const char *more)
{
    size_t i = f->model.n_messages - 1;
    buf_str(&f->texts[i], more);
    f->messages[i].text = f->texts[i].v;
    f->messages[i].text_bytes = f->texts[i].len;
}

static inline void draw(struct fixture *f)
{
    core_draw(&f->core, &f->model, f->rows, f->cols);
}

/* Feeds bytes as a terminal would, draws when asked to, lets time pass. */
static inline void keys_n(struct fixture *f, const char *bytes, size_t n)
{
    decode_feed(&f->core.keys, bytes, n, f->now);
    for (int pass = 0; pass < 2 || core_timeout_ms(&f->core, f->now) >= 0; pass++) {
        struct ui_intent in;
        while (core_next(&f->core, f->now, &in)) {
            if (in.kind == UI_REDRAW)
                continue;
            free(f->intent.text);
            free(f->intent.path);
            f->intent = in;
            f->intents++;
        }
        draw(f);
        f->now += 25;
    }
}

static inline void keys(struct fixture *f, const char *bytes)
{
    keys_n(f, bytes, strlen(bytes));
}

static inline char *screen_text(struct fixture *f)
{
    struct buf b = BUF_INIT;
    draw(f);
    screen_dump(&f->core.screen, &b);
    return buf_detach(&b);
}

static inline void check_screen(struct fixture *f, const char *want)
{
    char *got = screen_text(f);
    CHECK_STR(got, want);
    free(got);
}

static inline bool shows(struct fixture *f, const char *s)
{
    char *got = screen_text(f);
    bool found = strstr(got, s) != NULL;
    free(got);
    return found;
}

/* One row as text. */
static inline char *row_text(struct fixture *f, int row)
{
    struct buf b = BUF_INIT;
    for (int c = 0; c < f->core.screen.cols; c++) {
        const struct cell *cell = screen_cell(&f->core.screen, row, c);
        buf_add(&b, cell->bytes, cell->len);
    }
    return buf_detach(&b);
}

#define RULE20                                                     \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80" \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80" \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80" \
    "\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80\xE2\x94\x80"

#endif
