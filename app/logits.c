/* logits.c - `tern logits` and `tern tokenize`: the engine's numbers as text, for
 * comparing engines. */
#include "app/command.h"

#include "base/file.h"
#include "base/mem.h"

#include "app/open.h"
#include "app/out.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEW_TOKENS = 16, TOP = 8 };
#define TEXT_MAX_BYTES ((size_t)64 << 20)

/* ---- logits -------------------------------------------------------------- */

static int ids_parse(const char *text, struct tokens *out, struct err *err)
{
    const char *at = text;
    while (*at) {
        char word[16] = "";
        int64_t id;
        size_t n = strcspn(at, ", ");
        if (n < sizeof word)
            memcpy(word, at, n);
        if (!parse_int(word, 0, INT32_MAX, &id))
            return err_set(err, "--ids needs numbers with commas between, not \"%s\"",
                           text);
        tokens_push(out, (int32_t)id);
        at += n;
        at += *at == ',';
        at += strspn(at, " ");
    }
    return out->len ? 0 : err_set(err, "--ids needs at least one number");
}

struct place {
    float logit;
    int32_t id;
};

/* Highest first, and of equal ones the lowest id. */
static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static void top_print(const float *logits, uint32_t n_vocab, uint32_t top)
{
    struct place *places = mem_array(n_vocab, sizeof *places);
    for (uint32_t i = 0; i < n_vocab; i++)
        places[i] = (struct place){ logits[i], (int32_t)i };
    qsort(places, n_vocab, sizeof *places, compare);
    out_printf("top");
    for (uint32_t i = 0; i < top && i < n_vocab; i++)
        out_printf(" %d:%.6f", places[i].id, (double)places[i].logit);
    out_printf("\n");
    free(places);
}

static int row_write(struct file_writer *w, const float *logits, uint32_t n_vocab,
                     struct err *err)
{
    unsigned char *bytes = mem_array(n_vocab, 4);
    for (uint32_t i = 0; i < n_vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], 4);
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (unsigned)k] = (unsigned char)(bits >> 8 * k);
    }
    int rc = file_writer_add(w, bytes, 4 * (size_t)n_vocab, err);
    free(bytes);
    return rc;
}

struct logits {
    struct opened o;
    struct tokens prompt, greedy;
    struct file_writer *dump; /* or NULL */
    float *row;               /* [n_vocab] */
    uint32_t count, top;
};

static int greedy_run(struct logits *l, struct err *err)
{
    const struct sampler_params greedy = { 0 };
    const uint32_t n_vocab = model_info(l->o.model)->n_vocab;
    struct sync_result result;
    bool ended = false;
    if (session_sync(l->o.session, l->prompt.v, l->prompt.len, &(struct sync_params){ 0 },
                     &result, err) < 0)
        return -1;
    while (l->greedy.len < l->count && !ended) {
        int32_t id;
        size_t n;
        if (session_decode(l->o.session, 1, &greedy, &id, &n, err) < 0)
            return -1;
        bool first = l->greedy.len == 0;
        if ((first || l->dump) && session_logits(l->o.session, l->row, err) < 0)
            return -1;
        if (first)
            top_print(l->row, n_vocab, l->top);
        if (l->dump && row_write(l->dump, l->row, n_vocab, err) < 0)
            return -1;
        tokens_push(&l->greedy, id);
        ended = model_is_end(l->o.model, id);
    }
    return l->dump ? file_writer_commit(l->dump, err) : 0;
}

int cmd_logits(struct env *env, struct err *err)
{
    const struct options *o = &env->opt;
    struct logits l = { .count = o->count < 0 ? NEW_TOKENS : (uint32_t)o->count,
                        .top = o->top < 0 ? TOP : (uint32_t)o->top };
    int rc = -1;
    if (!o->ids)
        return err_set(err, "--ids is missing: the token ids of the prompt");
    if (!l.count)
        return err_set(err, "-n must be over 0");
    if (ids_parse(o->ids, &l.prompt, err) < 0 ||
        opened_open(&l.o, env, OPEN_SESSION, (uint32_t)l.prompt.len + l.count + 1, err) <
            0)
        goto out;
    if (o->dump && file_writer_open(&l.dump, o->dump, err) < 0)
        goto out;
    l.row = mem_array(model_info(l.o.model)->n_vocab, sizeof *l.row);
    if (greedy_run(&l, err) < 0)
        goto out;
    out_printf("greedy");
    for (size_t i = 0; i < l.greedy.len; i++)
        out_printf(" %d", l.greedy.v[i]);
    out_printf("\n");
    rc = EXIT_OK;
out:
    free(l.row);
    file_writer_close(l.dump);
    opened_close(&l.o);
    tokens_release(&l.prompt);
    tokens_release(&l.greedy);
    return rc;
}

/* ---- tokenize ------------------------------------------------------------ */

static int text_read(const struct options *o, struct buf *out, struct err *err)
{
    if (o->n_args == 0 || (o->n_args == 1 && !strcmp(o->args[0], "-")))
        return in_read_all(TEXT_MAX_BYTES, out, err);
    for (int i = 0; i < o->n_args; i++)
        buf_printf(out, "%s%s", i ? " " : "", o->args[i]);
    return 0;
}

int cmd_tokenize(struct env *env, struct err *err)
{
    struct opened o = { 0 };
    struct buf text = BUF_INIT;
    struct tokens ids = { 0 };
    int rc = -1;
    if (opened_open(&o, env, OPEN_MODEL, 0, err) < 0 ||
        text_read(&env->opt, &text, err) < 0)
        goto out;
    model_tokenize(o.model, buf_cstr(&text), text.len,
                   env->opt.special ? TOKENIZE_SPECIAL : 0, &ids);
    for (size_t i = 0; i < ids.len; i++)
        out_printf("%s%d", i ? " " : "", ids.v[i]);
    out_printf("\n");
    rc = EXIT_OK;
out:
    opened_close(&o);
    buf_release(&text);
    tokens_release(&ids);
    return rc;
}
