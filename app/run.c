/* run.c - `tern run`: one answer on standard output, figures on standard error.
 * The conversation is stored like any other. */
#include "app/command.h"

#include "base/clock.h"

#include "app/desk.h"
#include "app/json.h"
#include "app/out.h"
#include "app/signals.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROMPT_MAX_BYTES ((size_t)16 << 20)

struct run {
    struct env *env;
    struct desk desk;
    struct conversation *c;  /* the desk's */
    bool streams;            /* the answer goes out as it comes */
    bool interrupted, leave; /* by the first and the second signal */
    bool shows_loading;
    bool output_lost; /* standard output takes no more */
    char last;        /* last byte printed */
};

/* ---- the prompt ----------------------------------------------------------- */

static int prompt_read(const struct options *o, struct buf *out, struct err *err)
{
    bool from_stdin = o->n_args == 0 || (o->n_args == 1 && !strcmp(o->args[0], "-"));
    for (int i = 0; !from_stdin && i < o->n_args; i++)
        buf_printf(out, "%s%s", i ? " " : "", o->args[i]);
    if (from_stdin && o->n_args == 0 && isatty(STDIN_FILENO))
        return err_set(err, "no prompt: give one as an argument, or - to read standard "
                            "input");
    if (from_stdin && in_read_all(PROMPT_MAX_BYTES, out, err) < 0)
        return -1;
    while (from_stdin && out->len && strchr("\r\n", out->v[out->len - 1]))
        buf_truncate(out, out->len - 1);
    return out->len ? 0 : err_set(err, "the prompt is empty");
}

/* ---- waiting -------------------------------------------------------------- */

static void print_piece(struct run *r, const struct worker_event *e)
{
    struct err err;
    if (!r->streams || !e->text_bytes || r->output_lost)
        return;
    out_text(e->text, e->text_bytes);
    r->last = e->text[e->text_bytes - 1];
    if (out_flush(&err) < 0) {
        r->output_lost = true;
        conversation_stop(r->c);
    }
}

static void print_loading(struct run *r, const struct worker_event *e)
{
    if (e->kind == EVENT_LOADING && e->total && isatty(STDERR_FILENO) &&
        !r->env->opt.quiet) {
        fprintf(stderr, "\rloading the model: %3d %%",
                (int)(100 * (double)e->done / (double)e->total));
        r->shows_loading = true;
    } else if (e->kind != EVENT_LOADING && r->shows_loading) {
        fprintf(stderr, "\r%24s\r", "");
        r->shows_loading = false;
    }
}

static void take_signals(struct run *r)
{
    while (signals_take(r->desk.signal_fd)) {
        /* The first one ends the answer, the second one the waiting for it. */
        r->leave = r->interrupted;
        r->interrupted = true;
        conversation_stop(r->c);
    }
}

/* Takes events for up to a second, or until something has happened. */
static void wait_events(struct run *r)
{
    struct pollfd fds[] = { { .fd = worker_fd(r->desk.worker), .events = POLLIN },
                            { .fd = r->desk.signal_fd, .events = POLLIN } };
    struct worker_event e;
    int due = conversation_tick(r->c, clock_ns());
    poll(fds, 2, due >= 0 && due < 1000 ? due : 1000);
    take_signals(r);
    while (worker_next(r->desk.worker, &e)) {
        print_loading(r, &e);
        if (e.kind == EVENT_TOKENS)
            print_piece(r, &e);
        conversation_event(r->c, &e);
        worker_event_release(&e);
    }
}

static int model_wait(struct run *r, struct err *err)
{
    desk_load(&r->desk);
    while (r->c->phase == MODEL_LOADING && !r->interrupted)
        wait_events(r);
    if (r->interrupted)
        return err_set(err, "interrupted while the model was loading");
    return r->c->phase == MODEL_READY ? 0 : err_set(err, "%s", r->c->problem);
}

/* ---- results -------------------------------------------------------------- */

static const char *stop_name(const struct answer *a)
{
    const enum message_state s = a->m.state;
    return a->at_stop            ? "stop"
           : s == STATE_COMPLETE ? "eos"
           : s == STATE_LENGTH   ? "length"
                                 : "interrupted";
}

static void print_json(const struct run *r)
{
    const struct message *m = &r->c->answer.m;
    const struct message_stats *s = &m->stats;
    struct buf b = BUF_INIT;
    struct json_writer w = { .out = &b };
    json_open(&w, '{');
    json_key(&w, "text");
    json_text(&w, m->text ? m->text : "", m->text_bytes);
    json_key(&w, "thinking");
    json_text(&w, m->thinking ? m->thinking : "", m->thinking_bytes);
    json_key(&w, "conversation");
    if (r->desk.kept)
        json_int(&w, m->chat_id);
    else
        json_str(&w, NULL);
    json_key(&w, "stop");
    json_str(&w, stop_name(&r->c->answer));
    json_key(&w, "prompt_tokens");
    json_int(&w, s->prompt_tokens);
    json_key(&w, "reused_tokens");
    json_int(&w, s->reused_tokens);
    json_key(&w, "evaluated_tokens");
    json_int(&w, s->evaluated_tokens);
    json_key(&w, "generated_tokens");
    json_int(&w, s->generated_tokens);
    json_key(&w, "ttft_ms");
    json_fixed(&w, s->ttft_ms, 3);
    json_key(&w, "prefill_tps");
    json_fixed(&w, s->prefill_tps, 2);
    json_key(&w, "decode_tps");
    json_fixed(&w, s->decode_tps, 2);
    json_close(&w, '}');
    out_printf("%s\n", buf_cstr(&b));
    buf_release(&b);
}

static void print_figures(const struct run *r)
{
    const struct message_stats *s = &r->c->answer.m.stats;
    struct buf b = BUF_INIT;
    buf_printf(&b, "%u prompt tokens, %u reused; %u generated", s->prompt_tokens,
               s->reused_tokens, s->generated_tokens);
    if (s->generated_tokens)
        buf_printf(&b, "; first token %.0f ms", s->ttft_ms);
    if (s->prefill_tps > 0)
        buf_printf(&b, "; prefill %.1f tokens/s", s->prefill_tps);
    if (s->decode_tps > 0)
        buf_printf(&b, "; decode %.1f tokens/s", s->decode_tps);
    if (r->desk.kept)
        buf_printf(&b, "; conversation %lld", (long long)r->c->answer.m.chat_id);
    note_printf("%s", buf_cstr(&b));
    buf_release(&b);
}

static int finish(struct run *r, struct err *err)
{
    const struct message *m = &r->c->answer.m;
    if (r->streams && r->last && r->last != '\n' && !r->output_lost)
        out_text("\n", 1);
    if (conversation_finish(r->c, r->leave ? 0 : 1000, err) < 0)
        return -1;
    if (m->state == STATE_FAILED)
        return err_set(err, "%s", r->c->notice ? r->c->notice : "the answer failed");
    if (r->output_lost)
        return err_set(err, "cannot write the answer; what there is of it is kept");
    if (r->env->opt.json)
        print_json(r);
    else if (!r->env->opt.quiet)
        print_figures(r);
    if (r->c->notice && !r->env->opt.quiet)
        note_printf("tern: %s", r->c->notice);
    /* A signal that came after the answer's end took nothing away. */
    bool whole = m->state == STATE_COMPLETE && m->stats.generated_tokens;
    return r->interrupted && !whole ? EXIT_INTERRUPTED : EXIT_OK;
}

static void print_notices(const struct env *env)
{
    const char *line = buf_cstr(&env->notices);
    while (*line && !env->opt.quiet) {
        const char *end = strchr(line, '\n');
        note_printf("tern: %.*s", (int)(end - line), line);
        line = end + 1;
    }
}

static int answer(struct run *r, const struct buf *prompt, struct err *err)
{
    if (desk_show(&r->desk, err) < 0 || model_wait(r, err) < 0 ||
        conversation_send(r->c, prompt->v, prompt->len, err) < 0)
        return -1;
    while (r->c->answer.running && !r->leave)
        wait_events(r);
    return finish(r, err);
}

int cmd_run(struct env *env, struct err *err)
{
    struct run r = { .env = env, .streams = !env->opt.json, .c = &r.desk.c };
    struct buf prompt = BUF_INIT;
    int rc = -1;
    if (!env->opt.chat)
        env->opt.new_chat = true;
    if (prompt_read(&env->opt, &prompt, err) == 0 && desk_open(&r.desk, env, err) == 0) {
        print_notices(env);
        rc = answer(&r, &prompt, err);
        desk_close(&r.desk);
    }
    buf_release(&prompt);
    return rc;
}
