/* template.c - renders turns as ids. Every literal of the format is encoded
 * once at opening; text of turns is encoded as plain text, so that control
 * tokens come from here alone. */
#include "engine/template.h"

#include "base/mem.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "engine/chat_format.h"
#include "engine/gguf.h"
#include "engine/vocab.h"

#include <stdlib.h>
#include <string.h>

struct template
{
    const struct vocab *v;
    struct chat_format format;
    int32_t im_start, im_end, newline;
    struct tokens header[ROLE_COUNT]; /* "ROLE\n" */
    struct tokens open, close, skip;  /* <think>\n; </think>\n\n; the empty block */
    const char *note, *refusal;
};

static void encode(const struct vocab *v, const char *text, unsigned flags,
                   struct tokens *out)
{
    vocab_encode(v, text, strlen(text), flags, out);
}

static void tokens_encode(struct template *t)
{
    struct tokens newline = { 0 };
    for (int r = 0; r < ROLE_COUNT; r++) {
        encode(t->v, role_name((enum role)r), 0, &t->header[r]);
        encode(t->v, "\n", 0, &t->header[r]);
    }
    encode(t->v, "\n", 0, &newline);
    t->newline = newline.v[0]; /* one byte is one token */
    tokens_release(&newline);
    encode(t->v, "<think>\n", TOKENIZE_SPECIAL, &t->open);
    encode(t->v, "</think>\n\n", TOKENIZE_SPECIAL, &t->close);
    encode(t->v, "<think>\n\n</think>\n\n", TOKENIZE_SPECIAL, &t->skip);
    t->im_start = vocab_find(t->v, "<|im_start|>");
    t->im_end = vocab_find(t->v, "<|im_end|>");
}

void template_open_text(struct template **out, const char *text, size_t bytes,
                        const struct vocab *v)
{
    struct template *t = mem_zalloc(sizeof *t);
    t->v = v;
    chat_format_read(&t->format, text, text ? bytes : 0);
    tokens_encode(t);
    if (!text)
        t->note = "the file has no chat template; ChatML is assumed";
    else if (!t->format.recognised)
        t->note = "the file's chat template is of an unknown kind; ChatML is assumed";
    if (vocab_find(v, "<think>") < 0 || vocab_find(v, "</think>") < 0) {
        if (t->format.thinks)
            t->note = "the chat template has thinking, but the vocabulary has no <think> "
                      "and </think>; answers start without it";
        t->format.thinks = t->format.default_on = t->format.history_block = false;
    }
    if (t->im_start < 0 || t->im_end < 0)
        t->refusal = "the vocabulary has no <|im_start|> and <|im_end|>, the only marks "
                     "of turns that Tern knows; the model cannot chat";
    *out = t;
}

int template_open(struct template **out, const struct gguf *g, const struct vocab *v,
                  struct err *err)
{
    struct gguf_str text = { NULL, 0 };
    *out = NULL;
    if (gguf_string(g, "tokenizer.chat_template", &text, err) < 0)
        return -1;
    template_open_text(out, text.v, text.bytes, v);
    return 0;
}

void template_close(struct template *t)
{
    if (!t)
        return;
    chat_format_release(&t->format);
    for (int r = 0; r < ROLE_COUNT; r++)
        tokens_release(&t->header[r]);
    tokens_release(&t->open);
    tokens_release(&t->close);
    tokens_release(&t->skip);
    free(t);
}

const char *template_family(const struct template *t)
{
    return t->format.family;
}

const char *template_note(const struct template *t)
{
    return t->note;
}

const char *template_refusal(const struct template *t)
{
    return t->refusal;
}

bool template_has_thinking(const struct template *t)
{
    return t->format.thinks;
}

bool template_thinking_default(const struct template *t)
{
    return t->format.default_on;
}

enum effort template_effort(const struct template *t)
{
    return t->format.thinks ? t->format.effort : EFFORT_DEFAULT;
}

/* Whether an answer thinks, when thinking is wished or not. */
static bool thinks(const struct template *t, bool wished)
{
    return t->format.thinks && (wished || !t->format.can_choose);
}

void template_sampling(const struct template *t, bool thinking,
                       struct sampler_params *out)
{
    /* recommended by the model cards, first with thinking, then without */
    static const struct {
        const char *family;
        float temperature[2], top_p[2], presence[2];
    } rows[] = {
        { "qwen3", { 0.6f, 0.7f }, { 0.95f, 0.8f }, { 0, 0 } },
        { "qwen3.5", { 1.0f, 0.7f }, { 0.95f, 0.8f }, { 1.5f, 1.5f } },
        { "qwen3.6", { 1.0f, 0.7f }, { 0.95f, 0.8f }, { 0, 1.5f } },
        { "qwen3.8", { 1.0f, 0.7f }, { 0.95f, 0.8f }, { 0, 1.5f } },
    };
    /* plain ChatML is what the small shipped model has: it rambles when hot */
    *out = (struct sampler_params){ .temperature = 0.3f, .top_k = 20, .top_p = 0.9f };
    for (size_t i = 0; t && i < sizeof rows / sizeof *rows; i++) {
        int k = thinks(t, thinking) ? 0 : 1;
        if (strcmp(rows[i].family, t->format.family) != 0)
            continue;
        out->temperature = rows[i].temperature[k];
        out->top_p = rows[i].top_p[k];
        out->presence_penalty = rows[i].presence[k];
    }
}

struct text {
    const char *v;
    size_t n;
};

/* What the templates' trim removes: White_Space and the separators 1C to 1F. */
static bool is_blank(uint32_t cp)
{
    return (cp >= 0x1C && cp <= 0x1F) || unicode_class(cp) == UNICODE_SPACE;
}

static struct text trim(struct text s)
{
    size_t first = s.n, last = 0; /* bytes that stay */
    for (size_t pos = 0; pos < s.n;) {
        uint32_t cp;
        size_t used = utf8_decode(s.v + pos, s.n - pos, &cp);
        if (!is_blank(cp)) {
            first = pos < first ? pos : first;
            last = pos + used;
        }
        pos += used;
    }
    return first < last ? (struct text){ s.v + first, last - first }
                        : (struct text){ "", 0 };
}

/* What follows the last </think>, if there is one. */
static struct text drop_thinking(struct text s)
{
    static const char end[] = "</think>";
    const size_t len = sizeof end - 1;
    for (size_t pos = s.n; pos >= len; pos--)
        if (!memcmp(s.v + pos - len, end, len))
            return (struct text){ s.v + pos, s.n - pos };
    return s;
}

static bool has_ids(const struct turn *turn)
{
    return turn->ids && turn->n_ids;
}

struct renderer {
    const struct template *t;
    struct tokens *out;
    size_t begin; /* length of out before the call */
    bool thinking;
    const char *effort; /* sentence that begins the system turn, or NULL */
};

static void turn_begin(struct renderer *r, enum role role)
{
    tokens_push(r->out, r->t->im_start);
    tokens_add(r->out, r->t->header[role].v, r->t->header[role].len);
}

/* Completes the turn that ends here, whatever of its end is there already. */
static void turn_end(struct renderer *r)
{
    const struct tokens *out = r->out;
    size_t n = out->len - r->begin;
    if (n == 0)
        return;
    bool closed = out->v[out->len - 1] == r->t->im_end;
    if (n > 1 && out->v[out->len - 1] == r->t->newline &&
        out->v[out->len - 2] == r->t->im_end)
        return;
    if (!closed)
        tokens_push(r->out, r->t->im_end);
    tokens_push(r->out, r->t->newline);
}

static void system_text(struct renderer *r, struct text content)
{
    struct buf joined = BUF_INIT;
    if (r->effort) {
        buf_str(&joined, r->effort);
        buf_str(&joined, content.n ? "\n\n" : "");
    }
    buf_add(&joined, content.v, content.n);
    vocab_encode(r->t->v, joined.v, joined.len, 0, r->out);
    buf_release(&joined);
}

/* What stands between the header of an earlier answer and its text. */
static void reasoning(struct renderer *r, const struct turn *turn)
{
    const struct template *t = r->t;
    struct text thought = trim((struct text){ turn->thinking ? turn->thinking : "",
                                              turn->thinking ? turn->thinking_bytes : 0 });
    if (t->format.thinks && thought.n) {
        struct buf line = BUF_INIT; /* its end may be of one token with the text's */
        buf_add(&line, thought.v, thought.n);
        buf_char(&line, '\n');
        tokens_add(r->out, t->open.v, t->open.len);
        vocab_encode(t->v, line.v, line.len, 0, r->out);
        tokens_add(r->out, t->close.v, t->close.len);
        buf_release(&line);
    } else if (t->format.history_block) {
        tokens_add(r->out, t->skip.v, t->skip.len);
    }
}

static void turn_text(struct renderer *r, const struct turn *turn)
{
    const struct template *t = r->t;
    struct text content = { turn->text ? turn->text : "",
                            turn->text ? turn->text_bytes : 0 };
    turn_begin(r, turn->role);
    if (turn->role == ROLE_ASSISTANT && t->format.thinks)
        content = drop_thinking(content);
    content = trim(content);
    if (turn->role == ROLE_ASSISTANT)
        reasoning(r, turn);
    if (turn->role == ROLE_SYSTEM)
        system_text(r, content);
    else
        vocab_encode(t->v, content.v, content.n, 0, r->out);
    turn_end(r);
}

static void answer_begin(struct renderer *r)
{
    const struct template *t = r->t;
    turn_begin(r, ROLE_ASSISTANT);
    if (!t->format.thinks)
        return;
    const struct tokens *block = r->thinking ? &t->open : &t->skip;
    if (!r->thinking || t->format.opens)
        tokens_add(r->out, block->v, block->len);
}

static int turns_check(const struct template *t, const struct turn *turns, size_t n_turns,
                       bool generate, struct err *err)
{
    bool user = false;
    if (t->refusal)
        return err_set(err, "%s", t->refusal);
    for (size_t i = 0; i < n_turns; i++) {
        const struct turn *turn = &turns[i];
        if ((unsigned)turn->role >= ROLE_COUNT)
            return err_set(err, "message %zu has an unknown role (%d)", i + 1,
                           (int)turn->role);
        if (turn->role == ROLE_SYSTEM && i > 0)
            return err_set(err,
                           "message %zu is a system message; only the first message "
                           "can be one",
                           i + 1);
        user = user || turn->role == ROLE_USER;
        for (size_t k = 0; turn->ids && k < turn->n_ids; k++)
            if (turn->ids[k] < 0 || (uint32_t)turn->ids[k] >= vocab_size(t->v))
                return err_set(err,
                               "message %zu holds token %d, which this model's "
                               "vocabulary does not have",
                               i + 1, (int)turn->ids[k]);
    }
    if (generate && !user)
        return err_set(err, "there is no user message to answer");
    return 0;
}

int template_render(const struct template *t, const struct turn *turns, size_t n_turns,
                    const struct render_params *p, struct tokens *out, size_t *starts,
                    struct err *err)
{
    struct renderer r = { t, out, out->len, thinks(t, p->thinking), NULL };
    enum effort effort = p->effort > EFFORT_DEFAULT && p->effort < EFFORT_COUNT
                             ? p->effort
                             : t->format.effort;
    if (r.thinking)
        r.effort = t->format.sentences[effort];
    if (turns_check(t, turns, n_turns, p->generate, err))
        return -1;
    if (n_turns && turns[0].role != ROLE_SYSTEM && r.effort)
        turn_text(&r, &(struct turn){ .role = ROLE_SYSTEM });
    for (size_t i = 0; i < n_turns; i++) {
        turn_end(&r);
        if (starts)
            starts[i] = out->len;
        if (has_ids(&turns[i]))
            tokens_add(out, turns[i].ids, turns[i].n_ids);
        else
            turn_text(&r, &turns[i]);
    }
    if (p->generate)
        turn_end(&r);
    if (starts)
        starts[n_turns] = out->len;
    if (p->generate)
        answer_begin(&r);
    return 0;
}
