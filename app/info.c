/* info.c - `tern info`, and the same lines for the list of models. */
#include "app/info.h"

#include "base/sanitize.h"

#include "app/command.h"
#include "app/out.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CTX_DEFAULT = 32768 };

/* One "name: value" line; the value may be foreign text. */
static void line(struct buf *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void line(struct buf *out, const char *name, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    buf_printf(out, "%-13s ", name);
    sanitize_line(out, buf_cstr(&b), b.len);
    buf_char(out, '\n');
    buf_release(&b);
}

static void bytes_line(struct buf *out, const char *name, uint64_t bytes,
                       const char *more)
{
    struct buf b = BUF_INIT;
    bytes_format(&b, bytes);
    line(out, name, "%s%s", buf_cstr(&b), more);
    buf_release(&b);
}

static void params_line(struct buf *out, uint64_t n)
{
    if (n >= 1000000000)
        line(out, "parameters", "%.2f billion", (double)n / 1e9);
    else
        line(out, "parameters", "%.1f million", (double)n / 1e6);
}

static void memory_line(struct buf *out, const struct model *model, uint32_t ctx)
{
    struct model_memory m;
    struct buf b = BUF_INIT;
    model_memory(model, ctx, &m);
    buf_str(&b, " on the device: weights ");
    bytes_format(&b, m.weights);
    if (m.scratch) {
        buf_printf(&b, ", %u tokens of context ", ctx);
        bytes_format(&b, m.kv);
        if (model_info(model)->n_recurrent) {
            buf_str(&b, ", recurrent state ");
            bytes_format(&b, m.state);
        }
        buf_str(&b, ", working memory ");
        bytes_format(&b, m.scratch);
    }
    bytes_line(out, "memory", m.weights + m.kv + m.state + m.scratch, buf_cstr(&b));
    buf_release(&b);
}

static void thinking_line(struct buf *out, const struct model_info *m)
{
    static const char *const usual[EFFORT_COUNT] = {
        [EFFORT_DEFAULT] = "",
        [EFFORT_LOW] = "; effort low (usual), medium, high",
        [EFFORT_MEDIUM] = "; effort low, medium (usual), high",
        [EFFORT_XHIGH] = "; effort low, medium, high (usual)",
    };
    line(out, "thinking", "%s%s",
         !m->has_thinking      ? "no"
         : m->thinking_default ? "yes, unless switched off"
                               : "possible, off by default",
         usual[m->effort]);
}

void info_lines(struct buf *out, const struct model *model, uint32_t ctx)
{
    const struct model_info *m = model_info(model);
    if (!ctx)
        ctx = m->ctx_tokens < CTX_DEFAULT ? m->ctx_tokens : CTX_DEFAULT;
    line(out, "file", "%s", m->path);
    line(out, "name", "%s", m->name);
    line(out, "architecture", "%s", m->architecture);
    bytes_line(out, "size", m->file_bytes, "");
    line(out, "content", "%u tensors, %u metadata entries", m->n_tensors, m->n_metadata);
    line(out, "vocabulary", "%u tokens", m->n_vocab);
    if (m->n_tensors) {
        params_line(out, m->n_params);
        line(out, "quantisation", "%s", m->quantisation);
        line(out, "layers", "%u: %u recurrent, %u attention; width %u", m->n_layers,
             m->n_recurrent, m->n_attention, m->n_embd);
        if (m->n_expert)
            line(out, "experts", "%u, of which %u are used for a token", m->n_expert,
                 m->n_expert_used);
        line(out, "context", "%u tokens", m->ctx_tokens);
        line(out, "chat format", "%s", m->family ? m->family : "none");
        thinking_line(out, m);
        memory_line(out, model, ctx);
    }
    if (m->n_tensors && m->assumed)
        line(out, "note", "%s", m->assumed);
    if (m->aside)
        line(out, "note", "%s", m->aside);
    line(out, "runs", "%s%s", m->refusal ? "no: " : "yes", m->refusal ? m->refusal : "");
}

int cmd_info(struct env *env, struct err *err)
{
    struct model *m = NULL;
    if (env->opt.n_args && env->opt.model)
        return err_set(err, "the model is named twice");
    if (env->opt.n_args)
        env->opt.model = env->opt.args[0];
    char *path = env_model_path(env, err);
    if (!path || model_open(&m, path, err) < 0) {
        free(path);
        return -1;
    }
    const struct model_info *info = model_info(m);
    struct buf lines = BUF_INIT;
    info_lines(&lines, m, env_ctx_tokens(env));
    out_text(lines.v, lines.len);
    buf_release(&lines);
    int rc = info->refusal ? EXIT_FAILED : EXIT_OK;
    model_close(m);
    free(path);
    return rc;
}
