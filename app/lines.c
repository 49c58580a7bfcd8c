/* lines.c - line mode. Lines are read while an answer is written, and sent after
 * it. A line that ends in a backslash goes on in the next one; lines that begin
 * with a slash are commands. Prompts are printed only between two terminals, so
 * that a pipe gets the answers alone. */
#include "app/lines.h"

#include "base/clock.h"
#include "base/mem.h"

#include "app/command.h"
#include "app/out.h"
#include "app/signals.h"
#include "app/slash.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16 << 20 };

struct lines {
    struct desk *d;
    struct conversation *c;
    struct buf in;      /* read and not used yet */
    struct buf message; /* lines before this one, which ended in a backslash */
    struct buf files;   /* go before the next message */
    bool interactive;   /* prompts and hints are wanted */
    bool eof, quit;
    bool prompted;  /* the prompt stands there */
    bool answering; /* an answer was asked for and its end not printed */
    bool failed;    /* something was said on standard error */
    char last;      /* last byte of the answer printed */
    int signo;      /* that ends the program, 0: none */
};

static void say(struct lines *l, const char *text)
{
    note_printf("%s", text);
    l->prompted = false;
}

static void notice_print(struct lines *l)
{
    if (!l->c->notice)
        return;
    say(l, l->c->notice);
    conversation_notice(l->c, NULL);
}

static void fail(struct lines *l, const struct err *err)
{
    l->failed = true;
    say(l, err->text);
}

/* ---- input --------------------------------------------------------------- */

static void input_read(struct lines *l)
{
    char piece[4096];
    ssize_t n = read(STDIN_FILENO, piece, sizeof piece);
    if (n > 0)
        buf_add(&l->in, piece, (size_t)n);
    /* A last line without a line break is a line too. */
    if (n == 0 || l->in.len > LINE_MAX_BYTES) {
        if (l->in.len && l->in.v[l->in.len - 1] != '\n')
            buf_char(&l->in, '\n');
        l->eof = true;
    }
}

/* Where a command has text to type on, there is nothing to type it into: a file
 * goes before the next line. */
static void command(struct lines *l, const char *text)
{
    struct err err;
    struct slash_call call = { .c = l->c };
    enum slash_result result = slash_run(&call, text, &err);
    l->quit = result == SLASH_QUIT;
    if (result == SLASH_FAILED)
        fail(l, &err);
    if (result == SLASH_ATTACH) {
        buf_str(&l->files, call.input);
        note_printf("%s", call.label);
    }
    l->answering = l->answering || conversation_busy(l->c);
    free(call.input);
    free(call.label);
}

static void send(struct lines *l)
{
    struct err err;
    buf_add(&l->files, l->message.v, l->message.len);
    if (conversation_send(l->c, l->files.v, l->files.len, &err) < 0) {
        fail(l, &err);
    } else {
        l->answering = true;
        l->last = 0;
    }
    buf_truncate(&l->files, 0);
}

static void message_send(struct lines *l)
{
    const char *text = buf_cstr(&l->message);
    if (slash_is(text)) {
        command(l, text);
    } else {
        send(l);
    }
    buf_truncate(&l->message, 0);
    notice_print(l);
}

/* Uses one line. False if there is none. */
static bool line_take(struct lines *l)
{
    const char *newline = l->in.len ? memchr(l->in.v, '\n', l->in.len) : NULL;
    if (!newline)
        return false;
    size_t n = (size_t)(newline - l->in.v), used = n + 1;
    if (n && l->in.v[n - 1] == '\r')
        n--;
    bool goes_on = n && l->in.v[n - 1] == '\\';
    buf_add(&l->message, l->in.v, n - goes_on);
    memmove(l->in.v, l->in.v + used, l->in.len - used);
    buf_truncate(&l->in, l->in.len - used);
    l->prompted = false;
    if (goes_on)
        buf_char(&l->message, '\n');
    else if (l->message.len)
        message_send(l);
    return true;
}

/* ---- output -------------------------------------------------------------- */

static void prompt_print(struct lines *l)
{
    if (!l->interactive || l->prompted || l->eof)
        return;
    out_printf("%s", l->message.len ? "... " : "> ");
    out_flush(NULL);
    l->prompted = true;
}

static void tokens_print(struct lines *l, const struct worker_event *e)
{
    struct err err;
    if (!e->text_bytes || l->quit)
        return;
    out_text(e->text, e->text_bytes);
    l->last = e->text[e->text_bytes - 1];
    if (out_flush(&err) < 0) {
        fail(l, &err);
        conversation_stop(l->c);
        l->quit = true;
    }
}

static void answer_end(struct lines *l)
{
    const struct message *m = &l->c->answer.m;
    if (!l->answering || conversation_busy(l->c))
        return;
    l->answering = false;
    l->failed =
        l->failed || m->state == STATE_FAILED || !answer_has_message(&l->c->answer);
    if (l->last && l->last != '\n')
        out_printf("\n");
    if (l->interactive && m->stats.decode_tps > 0)
        out_printf("[%u tokens, %.1f tokens/s%s%s]\n", m->stats.generated_tokens,
                   m->stats.decode_tps, m->state == STATE_COMPLETE ? "" : ", ",
                   m->state == STATE_COMPLETE ? "" : state_name(m->state));
    out_flush(NULL);
    notice_print(l);
}

/* ---- loop ---------------------------------------------------------------- */

static void signals_handle(struct lines *l)
{
    int signo = signals_take(l->d->signal_fd);
    if (!signo)
        return;
    if (signo == SIGINT && conversation_busy(l->c)) {
        conversation_stop(l->c);
    } else if (signo == SIGINT && l->interactive) {
        buf_truncate(&l->message, 0);
        out_printf("\n");
        say(l, "Ctrl+D or /quit leaves");
    } else {
        l->signo = signo;
        l->quit = true;
    }
}

static void events_handle(struct lines *l)
{
    struct worker_event e;
    while (worker_next(l->d->worker, &e)) {
        if (e.kind == EVENT_TOKENS)
            tokens_print(l, &e);
        conversation_event(l->c, &e);
        if (e.kind == EVENT_UNUSABLE)
            notice_print(l);
        worker_event_release(&e);
    }
    answer_end(l);
}

/* Without a model nothing will answer what waits for one. */
static void give_up(struct lines *l)
{
    if (l->c->phase != MODEL_UNUSABLE || !l->c->waiting_leaf)
        return;
    conversation_stop(l->c);
    l->answering = false;
    l->failed = true;
}

static void wait_something(struct lines *l)
{
    struct pollfd fds[] = {
        { .fd = worker_fd(l->d->worker), .events = POLLIN },
        { .fd = l->d->signal_fd, .events = POLLIN },
        { .fd = l->eof ? -1 : STDIN_FILENO, .events = POLLIN },
    };
    int due = conversation_tick(l->c, clock_ns());
    if (poll(fds, 3, due) < 0)
        return;
    if (fds[2].revents)
        input_read(l);
    signals_handle(l);
    events_handle(l);
}

int lines_run(struct desk *d, struct err *err)
{
    struct lines l = { .d = d, .c = &d->c };
    l.interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    notice_print(&l);
    while (!l.quit) {
        give_up(&l);
        if (!conversation_busy(l.c) && line_take(&l))
            continue;
        if (l.eof && !conversation_busy(l.c))
            break;
        if (!conversation_busy(l.c))
            prompt_print(&l);
        wait_something(&l);
    }
    if (l.prompted)
        out_printf("\n");
    int rc = conversation_finish(l.c, 2000, err);
    buf_release(&l.in);
    buf_release(&l.message);
    buf_release(&l.files);
    if (rc < 0)
        return -1;
    if (l.signo)
        return 128 + l.signo;
    return l.failed && !l.interactive ? EXIT_FAILED : EXIT_OK;
}
