/* demo.c - the real front end with a scripted engine, for tests/ui/screens.sh.
 *
 * Usage: demo [--rate WORDS_PER_S] [--delay MS] [--words N] [--mouse] [--long N]
 *             [--show FILE] [--abort MS] [--theme NAME]
 * Answers stream numbered words ("w1 w2 ...", ten a line), or the bytes of FILE
 * one by one. Conversations live in memory. Slash commands become notices. */
#include "base/buf.h"
#include "base/mem.h"
#include "ui/ui.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct demo {
    double rate;
    int64_t delay_ms, abort_ms, started_ms;
    int words, long_n, done;
    bool mouse;
    const char *theme;
    struct buf script; /* bytes to stream instead of words */
    struct chat_list chats;
    struct message_list messages; /* of the shown conversation */
    int64_t chat, next_id;
    struct buf answer, thinking;
    bool writing;
    char notice[160];
    struct ui *ui;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct chat *chat_add(struct demo *d, const char *title)
{
    struct chat_list *l = &d->chats;
    l->v = mem_regrow(l->v, l->len + 1, sizeof *l->v);
    l->v[l->len] = (struct chat){ .id = ++d->next_id,
                                  .title = mem_strdup(title),
                                  .model = mem_strdup("demo"),
                                  .updated_ms = 1790000000000 + (int64_t)l->len * 60000 };
    return &l->v[l->len++];
}

static struct chat *chat_find(struct demo *d, int64_t id)
{
    for (size_t i = 0; i < d->chats.len; i++)
        if (d->chats.v[i].id == id)
            return &d->chats.v[i];
    return NULL;
}

static struct message *message_add(struct demo *d, enum role role, const char *text)
{
    struct message_list *l = &d->messages;
    l->v = mem_regrow(l->v, l->len + 1, sizeof *l->v);
    l->v[l->len] = (struct message){ .id = ++d->next_id,
                                     .chat_id = d->chat,
                                     .role = role,
                                     .text = mem_strdup(text),
                                     .text_bytes = strlen(text),
                                     .siblings = 1 };
    return &l->v[l->len++];
}

static void answer_start(struct demo *d)
{
    message_add(d, ROLE_ASSISTANT, "")->state = STATE_PARTIAL;
    buf_truncate(&d->answer, 0);
    buf_truncate(&d->thinking, 0);
    d->writing = true;
    d->done = 0;
    d->started_ms = now_ms();
}

static void answer_end(struct demo *d, enum message_state state)
{
    if (d->writing)
        d->messages.v[d->messages.len - 1].state = state;
    d->writing = false;
}

static void send_text(struct demo *d, const char *text)
{
    if (!d->chat)
        d->chat = chat_add(d, text)->id;
    message_add(d, ROLE_USER, text);
    answer_start(d);
}

static void add_step(struct demo *d)
{
    if (d->script.len) {
        buf_char(&d->answer, d->script.v[d->done]);
    } else if (d->done < 5) {
        buf_printf(&d->thinking, "thought%d ", d->done + 1);
    } else {
        buf_printf(&d->answer, "w%d%s", d->done - 4, (d->done - 4) % 10 ? " " : "\n\n");
    }
    d->done++;
}

/* Adds what is due by now. */
static void answer_step(struct demo *d)
{
    int64_t elapsed = now_ms() - d->started_ms - d->delay_ms;
    int total = d->script.len ? (int)d->script.len : d->words + 5;
    int due = elapsed < 0 ? 0 : (int)((double)elapsed * d->rate / 1000);
    while (d->writing && d->done < due && d->done < total)
        add_step(d);
    struct message *m = &d->messages.v[d->messages.len - 1];
    free(m->text);
    free(m->thinking);
    m->text = mem_strdup(buf_cstr(&d->answer));
    m->text_bytes = d->answer.len;
    m->thinking = mem_strdup(buf_cstr(&d->thinking));
    m->thinking_bytes = d->thinking.len;
    if (d->done >= total)
        answer_end(d, STATE_COMPLETE);
}

static void draw(struct demo *d)
{
    struct ui_model m = {
        .chat = chat_find(d, d->chat),
        .messages = d->messages.v,
        .n_messages = d->messages.len,
        .chats = d->chats.v,
        .n_chats = d->chats.len,
        .notice = d->notice,
        .status = { .model = "demo-model",
                    .device = "fake",
                    .ctx_used = 1204,
                    .ctx_tokens = 4096,
                    .generated = (uint32_t)d->done,
                    .phase = !d->writing   ? PHASE_IDLE
                             : d->done > 0 ? PHASE_DECODE
                                           : PHASE_PREFILL,
                    .prefill_done = 120,
                    .prefill_total = 480,
                    .reused = 360,
                    .ttft_ms = d->done > 0 ? (double)d->delay_ms : 0,
                    .decode_tps = d->done > 0 ? d->rate : 0 },
    };
    ui_draw(d->ui, &m);
}

static void open_chat(struct demo *d, int64_t id)
{
    answer_end(d, STATE_STOPPED);
    message_list_release(&d->messages);
    d->chat = id;
    for (int i = 0; id && i < d->long_n; i++) {
        char text[64];
        snprintf(text, sizeof text, "chat %lld message %d", (long long)id, i + 1);
        message_add(d, i % 2 ? ROLE_ASSISTANT : ROLE_USER, text);
    }
}

static void remove_chat(struct demo *d, int64_t id)
{
    struct chat *c = chat_find(d, id);
    if (!c)
        return;
    chat_release(c);
    *c = d->chats.v[--d->chats.len];
    if (id == d->chat)
        open_chat(d, 0);
}

static void rename_chat(struct demo *d, int64_t id, const char *title)
{
    struct chat *c = chat_find(d, id);
    if (!c)
        return;
    free(c->title);
    c->title = mem_strdup(title);
}

static void search(struct demo *d, const char *words)
{
    struct ui_hit hits[8];
    size_t n = 0;
    for (size_t i = 0; i < d->chats.len && n < 8; i++)
        if (strstr(d->chats.v[i].title, words))
            hits[n++] = (struct ui_hit){ d->chats.v[i].id, 0, d->chats.v[i].title,
                                         "found \x02here\x03 in it" };
    ui_set_hits(d->ui, hits, n);
}

/* False when the program is to end. */
static bool obey(struct demo *d, const struct ui_intent *in)
{
    d->notice[0] = 0;
    switch (in->kind) {
    case UI_QUIT:
        return false;
    case UI_SEND:
        send_text(d, in->text);
        break;
    case UI_STOP:
        answer_end(d, STATE_STOPPED);
        break;
    case UI_NEW:
        open_chat(d, 0);
        break;
    case UI_OPEN:
        open_chat(d, in->id);
        break;
    case UI_RENAME:
        rename_chat(d, in->id, in->text);
        break;
    case UI_DELETE:
        remove_chat(d, in->id);
        break;
    case UI_SEARCH:
        search(d, in->text);
        break;
    case UI_REGENERATE:
    case UI_EDIT:
    case UI_SIBLING:
        snprintf(d->notice, sizeof d->notice, "intent %d id %s delta %d: %.60s",
                 (int)in->kind, in->id ? "set" : "none", in->delta,
                 in->text ? in->text : "");
        break;
    case UI_SAVE:
        snprintf(d->notice, sizeof d->notice, "save %s: %.60s", in->path ? in->path : "-",
                 in->text);
        break;
    case UI_COMMAND:
        snprintf(d->notice, sizeof d->notice, "command %.100s", in->text);
        break;
    default:
        break;
    }
    return true;
}

static void on_crash(int sig)
{
    ui_emergency_restore();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void run(struct demo *d)
{
    struct ui_intent in;
    int64_t began = now_ms();
    draw(d);
    for (;;) {
        struct pollfd p = { .fd = ui_fd(d->ui), .events = POLLIN };
        int wait = ui_timeout_ms(d->ui);
        if (d->writing && (wait < 0 || wait > 16))
            wait = 16;
        if (d->abort_ms && (wait < 0 || wait > 20))
            wait = 20;
        if (poll(&p, 1, wait) < 0 && errno != EINTR)
            return;
        if (d->abort_ms && now_ms() - began > d->abort_ms)
            abort();
        bool changed = d->writing;
        while (ui_next(d->ui, &in)) {
            bool go_on = obey(d, &in);
            free(in.text);
            free(in.path);
            if (!go_on)
                return;
            changed = true;
        }
        if (d->writing)
            answer_step(d);
        if (changed)
            draw(d);
    }
}

static void read_script(struct demo *d, const char *path)
{
    char part[4096];
    FILE *f = fopen(path, "rb");
    for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
        buf_add(&d->script, part, n);
    if (f)
        fclose(f);
}

static void options(struct demo *d, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "0";
        if (!strcmp(argv[i], "--mouse"))
            d->mouse = true;
        else if (!strcmp(argv[i], "--theme"))
            d->theme = value;
        else if (!strcmp(argv[i], "--rate"))
            d->rate = atof(value);
        else if (!strcmp(argv[i], "--delay"))
            d->delay_ms = atoi(value);
        else if (!strcmp(argv[i], "--words"))
            d->words = atoi(value);
        else if (!strcmp(argv[i], "--long"))
            d->long_n = atoi(value);
        else if (!strcmp(argv[i], "--abort"))
            d->abort_ms = atoi(value);
        else if (!strcmp(argv[i], "--show"))
            read_script(d, value);
    }
}

int main(int argc, char **argv)
{
    struct demo d = { .rate = 100, .words = 50, .long_n = 4 };
    struct err err;
    setlocale(LC_ALL, "");
    signal(SIGABRT, on_crash);
    options(&d, argc, argv);
    chat_add(&d, "alpha notes");
    chat_add(&d, "beta recipes");
    chat_add(&d, "gamma \x1b]0;title\x07 tests");
    struct ui_params params = { .mouse = d.mouse,
                                .theme = d.theme,
                                .history = "earlier one\nearlier two" };
    int rc = ui_open(&d.ui, &params, &err);
    if (rc < 0)
        fprintf(stderr, "demo: %s\n", err.text);
    else
        run(&d);
    ui_close(d.ui);
    message_list_release(&d.messages);
    chat_list_release(&d.chats);
    buf_release(&d.answer);
    buf_release(&d.thinking);
    buf_release(&d.script);
    return rc < 0;
}
