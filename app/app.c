/* app.c - the loop of the full-screen program. It waits for keyboard, worker,
 * signals and timers alike, turns intents of the UI into actions on the
 * conversation, and draws at most every FRAME_NS.
 * Does not decide what an action means (chat.h) or how anything looks (ui.h). */
#include "app/app.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include "app/attach.h"
#include "app/command.h"
#include "app/edit.h"
#include "app/models.h"
#include "app/queue.h"
#include "app/setup.h"
#include "app/signals.h"
#include "app/slash.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_NS  UINT64_C(16666667)  /* 60 frames a second */
#define STATUS_NS UINT64_C(250000000) /* between frames in which only figures move */
#define TIDY_NS   UINT64_C(20000000)  /* between steps, while nothing else is done */
#define LATER_NS  UINT64_C(1000000000)
enum { FINISH_MS = 2000, SEARCH_HITS = 100, EDIT_POLL_MS = 50 };

struct app {
    struct desk *d;
    struct conversation *c;
    struct ui *ui;
    struct chat_list chats;
    struct models *models;       /* NULL: not asked for yet */
    struct ui_model_file *files; /* as the UI wants them */
    char *permanent;             /* notice while there is no other, or NULL */
    bool changed;                /* the screen is not up to date */
    bool chats_changed;
    bool quit;
    bool quit_failed; /* leaving was tried and the answer could not be saved */
    bool untidy;      /* deleted chats may have left something in the store */
    uint64_t tidy_ns; /* when the next step of tidying is due */
    uint64_t drawn_ns;
    int signo; /* that ends the program, 0: none */
};

/* ---- drawing ------------------------------------------------------------- */

static enum ui_phase phase(const struct conversation *c)
{
    if (c->phase == MODEL_LOADING)
        return PHASE_LOADING;
    if (c->answer.running)
        return c->answer.generated ? PHASE_DECODE : PHASE_PREFILL;
    return c->phase == MODEL_READY ? PHASE_IDLE : PHASE_ERROR;
}

static struct ui_status status(const struct conversation *c, uint64_t now_ns)
{
    const struct answer *a = &c->answer;
    const bool ready = c->phase == MODEL_READY;
    struct ui_status s = {
        .phase = phase(c),
        .model = *c->model_name ? c->model_name : c->model_path,
        .device = ready ? c->engine.device.name : NULL,
        .note = ready ? c->engine.note : c->problem,
        .load_done = c->load_done,
        .load_total = c->load_total,
        .prefill_done = (uint32_t)a->prefill_done,
        .prefill_total = (uint32_t)a->prefill_total,
        .reused = (uint32_t)a->reused,
        .generated = a->generated,
        .ctx_used = c->ctx_used,
        .ctx_tokens = c->ctx_tokens,
        .snapshot_bytes = c->snapshot_bytes,
        .device_bytes = ready ? c->engine.device_bytes : 0,
        .rates = a->graph.v,
        .n_rates = a->graph.n,
    };
    if (a->running) {
        s.decode_tps = rate_get(&a->rate, now_ns);
        s.prefill_tps = a->generated ? a->m.stats.prefill_tps : answer_reading_tps(a);
    } else {
        s.reused = a->m.stats.reused_tokens;
        s.ttft_ms = a->m.stats.ttft_ms;
        s.prefill_tps = a->m.stats.prefill_tps;
        s.decode_tps = a->m.stats.decode_tps;
    }
    return s;
}

static void chats_load(struct app *a)
{
    struct chat_list list;
    struct err err;
    a->chats_changed = false;
    if (store_chat_list(a->d->store, &list, &err) < 0) {
        conversation_notice(a->c, "%s", err.text);
        return;
    }
    chat_list_release(&a->chats);
    a->chats = list;
}

/* The model files for the UI. */
static void files_set(struct app *a, struct ui_model *m)
{
    size_t n = 0;
    const struct model_file *list = a->models ? models_list(a->models, &n) : NULL;
    a->files = mem_regrow(a->files, n + 1, sizeof *a->files);
    for (size_t i = 0; i < n; i++)
        a->files[i] = (struct ui_model_file){
            .path = list[i].path,
            .name = list[i].name,
            .summary = list[i].summary,
            .info = list[i].info,
            .runs = list[i].runs,
            .current = a->c->model_path && !strcmp(a->c->model_path, list[i].path),
        };
    m->files = a->files;
    m->n_files = n;
    m->scanning_files = a->models && models_scanning(a->models);
}

static void draw(struct app *a, uint64_t now_ns)
{
    if (a->chats_changed)
        chats_load(a);
    struct ui_model m = {
        .chat = a->c->chat.id ? &a->c->chat : NULL,
        .chats = a->chats.v,
        .n_chats = a->chats.len,
        .status = status(a->c, now_ns),
        .n_queued = a->c->n_queue,
        .notice = a->c->notice ? a->c->notice : a->permanent,
    };
    struct buf setup = BUF_INIT;
    files_set(a, &m);
    setup_describe(a->c, &setup);
    m.setup = buf_cstr(&setup);
    m.messages = conversation_messages(a->c, &m.n_messages);
    m.waiting = a->c->path.len && a->c->waiting_leaf &&
                a->c->path.v[a->c->path.len - 1].id == a->c->waiting_leaf;
    ui_draw(a->ui, &m);
    buf_release(&setup);
    a->drawn_ns = now_ns;
    a->changed = false;
}

/* Draws if it is time. Milliseconds until it is, -1: there is nothing to draw. */
static int draw_due(struct app *a)
{
    uint64_t now = clock_ns();
    uint64_t wait = a->changed                ? FRAME_NS
                    : conversation_busy(a->c) ? STATUS_NS
                                              : UINT64_MAX;
    if (wait == UINT64_MAX)
        return -1;
    if (now - a->drawn_ns < wait)
        return (int)((a->drawn_ns + wait - now) / 1000000) + 1;
    draw(a, now);
    return conversation_busy(a->c) ? (int)(STATUS_NS / 1000000) : -1;
}

/* ---- events ---------------------------------------------------------------- */

/* Text that comes back goes before what was typed since. Takes it over. */
static void input_add(struct app *a, char *text)
{
    struct buf b = BUF_INIT;
    char *typed = ui_input(a->ui);
    if (text) {
        buf_printf(&b, "%s%s%s", text, *text && *typed ? "\n\n" : "", typed);
        ui_set_input(a->ui, buf_cstr(&b));
    }
    buf_release(&b);
    free(typed);
    free(text);
}

/* interrupts: Ctrl+C is for this program, and not for one that has the terminal. */
static void signals_handle(struct app *a, bool interrupts)
{
    int signo;
    while ((signo = signals_take(a->d->signal_fd))) {
        if (signo == SIGINT) {
            if (interrupts)
                conversation_stop(a->c);
        } else {
            a->signo = signo;
            a->quit = true;
        }
    }
}

static void events_handle(struct app *a)
{
    struct worker_event e;
    while (worker_next(a->d->worker, &e)) {
        a->changed = conversation_event(a->c, &e) || a->changed;
        a->chats_changed =
            a->chats_changed || e.kind == EVENT_DONE || e.kind == EVENT_SAID;
        worker_event_release(&e);
    }
    /* The answer was stopped or failed: what was to come after it is not sent. */
    if (a->c->n_queue && !queue_wanted(a->c))
        input_add(a, queue_take(a->c, true));
}

/* ---- intents ------------------------------------------------------------- */

static int search(struct app *a, const char *words, struct err *err)
{
    struct hit_list hits = { 0 };
    if (store_search(a->d->store, words, SEARCH_HITS, &hits, err) < 0)
        return -1;
    struct ui_hit *shown = mem_array(hits.len, sizeof *shown);
    for (size_t i = 0; i < hits.len; i++)
        shown[i] = (struct ui_hit){ hits.v[i].chat_id, hits.v[i].message_id,
                                    hits.v[i].title, hits.v[i].snippet };
    ui_set_hits(a->ui, shown, hits.len);
    free(shown);
    hit_list_release(&hits);
    return 0;
}

static int pin(struct app *a, int64_t id, struct err *err)
{
    struct chat chat;
    if (store_chat_get(a->d->store, id, &chat, err) < 0)
        return -1;
    int rc = store_chat_set_pinned(a->d->store, id, !chat.pinned, err);
    chat_release(&chat);
    return rc;
}

static void quit_try(struct app *a)
{
    struct err err;
    /* Asked a second time, it leaves: the disk may stay full. */
    if (conversation_finish(a->c, FINISH_MS, &err) == 0 || a->quit_failed) {
        a->quit = true;
        return;
    }
    a->quit_failed = true;
    conversation_notice(a->c, "the answer cannot be saved: %s; leave again to lose it",
                        err.text);
}

static int command(struct app *a, const char *text, struct err *err)
{
    struct slash_call call = { .c = a->c };
    enum slash_result result = slash_run(&call, text, err);
    if (result == SLASH_QUIT)
        quit_try(a);
    else if (result == SLASH_INPUT)
        ui_set_input(a->ui, call.input);
    else if (result == SLASH_AGAIN)
        ui_set_input(a->ui, text);
    else if (result == SLASH_ATTACH)
        ui_attach(a->ui, call.label, call.input);
    free(call.input);
    free(call.label);
    return result == SLASH_FAILED ? -1 : 0;
}

/* What was typed and could not be used goes back to where it was typed. */
static int keep_text(struct app *a, const char *text, int rc)
{
    if (rc < 0)
        ui_set_input(a->ui, text);
    return rc;
}

static int send(struct app *a, const char *text, struct err *err)
{
    if (!queue_wanted(a->c))
        return keep_text(a, text, conversation_send(a->c, text, strlen(text), err));
    queue_add(a->c, text, strlen(text));
    return 0;
}

/* What the clipboard cannot take goes to a file of the user's alone. */
static int save_copy(struct app *a, const char *path, const char *text, struct err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct buf usual = BUF_INIT;
    buf_printf(&usual, "%s/tern-copy-%ld.txt", runtime && *runtime ? runtime : "/tmp",
               (long)getuid());
    char *to = path ? path_expand(path) : mem_strdup(usual.v);
    int rc = file_write_atomic(to, text, strlen(text), err);
    if (rc == 0)
        conversation_notice(a->c, "written to %s", to);
    free(to);
    buf_release(&usual);
    return rc;
}

/* A file that the message names with an @. */
static int attach(struct app *a, const char *path, struct err *err)
{
    struct buf text = BUF_INIT, label = BUF_INIT;
    int rc = attach_file(a->c->model, path, &text, &label, err);
    ui_attach(a->ui, rc == 0 ? buf_cstr(&label) : NULL, buf_cstr(&text));
    buf_release(&text);
    buf_release(&label);
    return rc;
}

static void label(struct app *a, int64_t id, const char *text)
{
    struct buf b = BUF_INIT;
    attach_label(a->c->model, "pasted", text, strlen(text), &b);
    ui_label(a->ui, id, buf_cstr(&b));
    buf_release(&b);
}

/* Everything else goes on while the editor has the terminal. */
static void edit_wait(struct app *a, struct edit_run *e, struct buf *text)
{
    struct err err;
    bool running = true;
    while (running && !a->quit) {
        struct pollfd fds[] = { { .fd = worker_fd(a->d->worker), .events = POLLIN },
                                { .fd = a->d->signal_fd, .events = POLLIN } };
        poll(fds, 2, EDIT_POLL_MS);
        signals_handle(a, false);
        events_handle(a);
        conversation_tick(a->c, clock_ns());
        if (edit_poll(e, &running, text, &err) < 0)
            conversation_notice(a->c, "%s", err.text);
    }
}

static int edit(struct app *a, const char *typed, struct err *err)
{
    struct edit_run e;
    struct buf text = BUF_INIT;
    ui_suspend(a->ui);
    int rc = edit_start(&e, typed, err);
    if (rc == 0)
        edit_wait(a, &e, &text);
    ui_resume(a->ui);
    edit_end(&e);
    if (text.len)
        ui_set_input(a->ui, text.v);
    buf_release(&text);
    return rc;
}

/* Another conversation is shown: what was typed there comes back. */
static void draft_load(struct app *a)
{
    char *typed = ui_input(a->ui);
    if (!*typed)
        input_add(a, draft_take(a->c));
    free(typed);
}

static int show(struct app *a, int64_t chat, int64_t message, struct err *err)
{
    if (conversation_show_message(a->c, chat, message, err) < 0)
        return -1;
    draft_load(a);
    return 0;
}

/* The folders of the configuration, of the model in use, and the usual ones. */
static void folders_add(const struct app *a, struct buf *b)
{
    const char *path = a->c->model_path, *home = getenv("HOME");
    const char *slash = path ? strrchr(path, '/') : NULL;
    buf_str(b, a->d->env->conf.folders ? a->d->env->conf.folders : "");
    if (slash)
        buf_printf(b, "%.*s\n", (int)(slash - path), path);
    if (home)
        buf_printf(b, "%s/models\n%s/.local/share/tern/models\n", home, home);
}

static int models_look(struct app *a, struct err *err)
{
    struct buf folders = BUF_INIT;
    int rc = 0;
    folders_add(a, &folders);
    if (!a->models)
        rc = models_open(&a->models, buf_cstr(&folders), err);
    if (rc == 0)
        models_scan(a->models);
    buf_release(&folders);
    return rc;
}

static int intent_do(struct app *a, const struct ui_intent *in, struct err *err)
{
    struct conversation *c = a->c;
    const char *text = in->text ? in->text : "";
    switch (in->kind) {
    case UI_SEND:
        return send(a, text, err);
    case UI_UNQUEUE:
        input_add(a, queue_take(c, false));
        return 0;
    case UI_EDIT:
        return keep_text(a, text, conversation_edit(c, in->id, text, strlen(text), err));
    case UI_EDITING:
        conversation_editing(c, in->id);
        return 0;
    case UI_COMMAND:
        return keep_text(a, text, command(a, text, err));
    case UI_MODELS:
        return models_look(a, err);
    case UI_MODEL:
        conversation_load(c, text);
        return 0;
    case UI_SAVE:
        return save_copy(a, in->path, text, err);
    case UI_ATTACH:
        return attach(a, text, err);
    case UI_LABEL:
        label(a, in->id, text);
        return 0;
    case UI_EDITOR:
        return edit(a, text, err);
    case UI_STOP:
        conversation_stop(c);
        return 0;
    case UI_QUIT:
        quit_try(a);
        return 0;
    case UI_NEW:
        return show(a, 0, 0, err);
    case UI_OPEN:
        return show(a, in->id, in->message_id, err);
    case UI_RENAME:
        return conversation_rename(c, in->id, text, err);
    case UI_DELETE:
        a->untidy = true;
        return conversation_delete(c, in->id, err);
    case UI_PIN:
        return pin(a, in->id, err);
    case UI_REGENERATE:
        return conversation_regenerate(c, in->id, err);
    case UI_SIBLING:
        return conversation_sibling(c, in->id, in->delta, err);
    case UI_SEARCH:
        return search(a, text, err);
    case UI_NONE:
    case UI_REDRAW:
        return 0;
    }
    return 0;
}

static void intent_handle(struct app *a, struct ui_intent *in)
{
    struct err err;
    bool acts = in->kind != UI_NONE && in->kind != UI_REDRAW;
    if (acts) {
        conversation_notice(a->c, NULL);
        a->chats_changed =
            a->chats_changed || (in->kind != UI_SEARCH && in->kind != UI_EDITING);
    }
    if (intent_do(a, in, &err) < 0)
        conversation_notice(a->c, "%s", err.text);
    a->changed = true;
    free(in->text);
    free(in->path);
}

/* ---- loop ---------------------------------------------------------------- */

/* Takes a step of tidying if it is time. Milliseconds until the next, -1: none. */
static int tidy_due(struct app *a)
{
    struct err err;
    bool blocked = false;
    uint64_t now = clock_ns();
    if (!a->untidy)
        return -1;
    if (now >= a->tidy_ns) {
        if (store_tidy(a->d->store, &a->untidy, &blocked, &err) < 0) {
            log_line(a->d->env->log, LOG_WARN, "tidying: %s", err.text);
            a->untidy = blocked = true;
        }
        a->tidy_ns = now + (blocked || conversation_busy(a->c) ? LATER_NS : TIDY_NS);
    }
    return a->untidy ? (int)((a->tidy_ns - now) / 1000000) + 1 : -1;
}

/* The sooner of two timeouts, of which -1 is none. */
static int sooner(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

static void step(struct app *a, int timeout_ms)
{
    struct pollfd fds[] = {
        { .fd = ui_fd(a->ui), .events = POLLIN },
        { .fd = worker_fd(a->d->worker), .events = POLLIN },
        { .fd = a->d->signal_fd, .events = POLLIN },
        { .fd = a->models ? models_fd(a->models) : -1, .events = POLLIN },
    };
    struct ui_intent in;
    poll(fds, 4, timeout_ms);
    while (!a->quit && ui_next(a->ui, &in))
        intent_handle(a, &in);
    signals_handle(a, true);
    events_handle(a);
    if (a->models && models_take(a->models))
        a->changed = true;
}

int app_run(struct desk *d, struct ui *ui, struct err *err)
{
    struct app a = { .d = d,
                     .c = &d->c,
                     .ui = ui,
                     .changed = true,
                     .chats_changed = true,
                     .untidy = true };
    const struct buf *notices = &d->env->notices;
    if (notices->len)
        a.permanent = mem_strndup(notices->v, strcspn(notices->v, "\n"));
    d->c.titles = d->env->conf.titles;
    draft_load(&a);
    while (!a.quit) {
        int timeout = draw_due(&a);
        timeout = sooner(timeout, ui_timeout_ms(ui));
        timeout = sooner(timeout, conversation_tick(a.c, clock_ns()));
        timeout = sooner(timeout, tidy_due(&a));
        step(&a, timeout);
    }
    char *typed = ui_input(ui);
    draft_save(a.c, typed);
    free(typed);
    int rc = a.quit_failed ? EXIT_FAILED : conversation_finish(a.c, FINISH_MS, err);
    if (rc == 0 && a.signo)
        rc = 128 + a.signo;
    models_close(a.models);
    free(a.files);
    chat_list_release(&a.chats);
    free(a.permanent);
    return rc;
}
