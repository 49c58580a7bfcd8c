/* config.c - the file that the user edits, and what is typed on the command
 * line: lines of the input are arguments. */
#include "tests/fuzz/fuzz.h"

#include "app/config.h"
#include "app/options.h"

const unsigned fuzz_rounds = 3000;
const size_t fuzz_max_bytes = 1 << 12;

static void check_config(const struct config *c)
{
    MUST(c->ctx >= -1 && c->device >= -1 && c->top_k >= -1 && c->ctx <= INT32_MAX);
    MUST((c->temperature >= 0 && c->temperature <= 100) || c->temperature == -1);
    MUST((c->top_p >= 0 && c->top_p <= 1) || c->top_p == -1);
    MUST((c->min_p >= 0 && c->min_p <= 1) || c->min_p == -1);
    MUST(c->thinking >= -1 && c->thinking <= 1);
    MUST(c->math == MATH_AUTO || c->math == MATH_INT8 || c->math == MATH_FLOAT);
}

static void read_config(const uint8_t *data, size_t size)
{
    struct config c;
    struct buf notes = BUF_INIT;
    struct err err = { "" };
    if (config_load(&c, fuzz_file(data, size), &notes, &err) < 0)
        MUST(err.text[0] && one_line(err.text) && !c.model && !c.system);
    check_config(&c);
    MUST(notes.len == 0 || notes.v[notes.len - 1] == '\n');
    buf_release(&notes);
    config_release(&c);
}

static void read_options(const uint8_t *data, size_t size)
{
    char *args[17], *text = malloc(size + 1);
    int n = 0;
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    for (char *p = strtok(text, "\n"); p && n < 16; p = strtok(NULL, "\n"))
        args[n++] = p;
    args[n] = NULL;
    struct options o;
    struct err err = { "" };
    if (options_parse(&o, n, args, UINT64_MAX, &err) < 0)
        MUST(err.text[0]);
    else
        MUST(o.n_args >= 0 && o.n_args <= n);
    options_release(&o);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_config(data, size);
    if (size)
        read_options(data, size);
    return 0;
}
