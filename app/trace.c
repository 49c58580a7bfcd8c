/* trace.c - ids beside the bytes that they made. */
#include "app/trace.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>

void trace_add(struct trace *t, int32_t id, const char *text, size_t bytes, bool whole)
{
    buf_add(&t->text, text, bytes);
    t->ends = mem_regrow(t->ends, t->ids.len + 1, sizeof *t->ends);
    t->ends[t->ids.len] = whole ? t->text.len : SIZE_MAX;
    tokens_push(&t->ids, id);
}

void trace_cut(const struct trace *t, const struct model *m, size_t n, struct tokens *out)
{
    size_t keep = t->ids.len;
    while (keep && t->ends[keep - 1] > n)
        keep--;
    size_t from = keep ? t->ends[keep - 1] : 0;
    tokens_add(out, t->ids.v, keep);
    model_tokenize(m, buf_cstr(&t->text) + from, n - from, 0, out);
}

void trace_release(struct trace *t)
{
    tokens_release(&t->ids);
    free(t->ends);
    buf_release(&t->text);
}
