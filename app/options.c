/* options.c - the option parser: short and long names, "-x VALUE", "-xVALUE",
 * "--name VALUE", "--name=VALUE", "--" before what is no option, and "-" alone
 * as an argument. Options and arguments may be mixed. */
#include "app/options.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    TEXT,
    FLAG,
    COUNT,
    TOP_K,
    REAL,
    SHARE,
    FACTOR,
    PENALTY,
    SEED,
    ONOFF,
    EFFORT,
    MATH,
    STOP
};

struct row {
    const char *name;
    char letter;
    enum kind kind;
    size_t field; /* offset in struct options */
    const char *argument, *help;
};

#define ROW(id, name, letter, kind, field, argument, help) \
    { name, letter, kind, offsetof(struct options, field), argument, help },
static const struct row rows[] = { OPTIONS(ROW) };
#undef ROW

bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) &&
        !(text[0] == '-' && isdigit((unsigned char)text[1])))
        return false;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*end || errno || v < min || v > max)
        return false;
    *out = v;
    return true;
}

bool parse_real(const char *text, double min, double max, double *out)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    double v = strtod(text, &end);
    if (end == text || *end || !(v >= min && v <= max) || strpbrk(text, "xXpP"))
        return false;
    *out = v;
    return true;
}

bool parse_penalty(const char *text, double *out)
{
    bool below = text[0] == '-';
    if (!parse_real(text + below, 0, 2, out))
        return false;
    *out = below ? -*out : *out;
    return true;
}

bool parse_effort(const char *text, enum effort *out)
{
    static const struct {
        const char *name;
        enum effort effort;
    } efforts[] = { { "low", EFFORT_LOW },
                    { "medium", EFFORT_MEDIUM },
                    { "high", EFFORT_XHIGH },
                    { "xhigh", EFFORT_XHIGH } };
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++)
        if (!strcmp(text, efforts[i].name)) {
            *out = efforts[i].effort;
            return true;
        }
    return false;
}

static bool parse_seed(const char *text, struct options *o)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    o->seed = strtoull(text, &end, 10);
    o->has_seed = !*end && !errno;
    return o->has_seed;
}

/* name: as it was typed. */
static int value_set(struct options *o, const struct row *row, const char *name,
                     const char *value, struct err *err)
{
    void *field = (char *)o + row->field;
    const char *wanted = NULL;
    switch (row->kind) {
    case TEXT:
        *(const char **)field = value;
        break;
    case FLAG:
        *(bool *)field = true;
        break;
    case COUNT:
        if (!parse_int(value, 0, INT32_MAX, field))
            wanted = "a whole number from 0 on";
        break;
    case TOP_K:
        if (!parse_int(value, 0, SAMPLER_MAX_K, field))
            wanted = "a whole number from 0 to 256";
        break;
    case REAL:
        if (!parse_real(value, 0, 100, field))
            wanted = "a number from 0 to 100";
        break;
    case SHARE:
        if (!parse_real(value, 0, 1, field))
            wanted = "a number from 0 to 1";
        break;
    case FACTOR:
        if (!parse_real(value, 0.1, 10, field))
            wanted = "a number from 0.1 to 10";
        break;
    case PENALTY:
        if (!parse_penalty(value, field))
            wanted = "a number from -2 to 2";
        break;
    case EFFORT:
        if (!parse_effort(value, field))
            wanted = "low, medium or high";
        break;
    case SEED:
        if (!parse_seed(value, o))
            wanted = "a whole number from 0 on";
        break;
    case ONOFF:
        *(int64_t *)field = !strcmp(value, "on");
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
            wanted = "on or off";
        break;
    case MATH:
        *(enum math_path *)field = !strcmp(value, "int8") ? MATH_INT8 : MATH_FLOAT;
        if (strcmp(value, "int8") != 0 && strcmp(value, "float") != 0)
            wanted = "int8 or float";
        break;
    case STOP:
        return stop_list_add(field, value, err) < 0 ? err_prefix(err, "%s", name) : 0;
    }
    if (wanted)
        return err_set(err, "%s needs %s, not \"%s\"", name, wanted, value);
    return 0;
}

static const struct row *row_by_name(const char *name, size_t bytes)
{
    for (size_t i = 0; i < OPTIONS_N; i++)
        if (strlen(rows[i].name) == bytes && !memcmp(rows[i].name, name, bytes))
            return &rows[i];
    return NULL;
}

static const struct row *row_by_letter(char letter)
{
    for (size_t i = 0; i < OPTIONS_N; i++)
        if (rows[i].letter && rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

/* Takes the option at argv[*at] and, where it has one, its value. */
static int option_take(struct options *o, char **argv, int *at, uint64_t allowed,
                       struct err *err)
{
    const char *text = argv[(*at)++];
    bool is_long = text[1] == '-';
    const char *equals = is_long ? strchr(text, '=') : NULL;
    size_t bytes = !is_long ? 2 : equals ? (size_t)(equals - text) : strlen(text);
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(bytes < 31 ? bytes : 31), text);
    const struct row *row =
        is_long ? row_by_name(text + 2, bytes - 2) : row_by_letter(text[1]);
    if (!row || !(allowed >> (row - rows) & 1))
        return err_set(err, "unknown option %s", name);
    const char *value = equals ? equals + 1 : !is_long && text[2] ? text + 2 : NULL;
    if (row->kind == FLAG && value)
        return err_set(err, "%s takes no value", name);
    if (row->kind != FLAG && !value) {
        if (!argv[*at])
            return err_set(err, "%s needs a value: %s", name, row->argument);
        value = argv[(*at)++];
    }
    return value_set(o, row, name, value, err);
}

int options_parse(struct options *o, int argc, char **argv, uint64_t allowed,
                  struct err *err)
{
    *o = (struct options){
        .count = -1,
        .top_k = -1,
        .ctx = -1,
        .device = -1,
        .prompt = -1,
        .depth = -1,
        .runs = -1,
        .top = -1,
        .temperature = -1,
        .top_p = -1,
        .min_p = -1,
        .repeat_penalty = NAN,
        .presence_penalty = NAN,
        .frequency_penalty = NAN,
        .thinking = -1,
        .preserve_thinking = -1,
    };
    o->args = mem_array((size_t)argc + 1, sizeof *o->args);
    bool only_args = false;
    for (int at = 0; at < argc;) {
        if (only_args || argv[at][0] != '-' || !argv[at][1])
            o->args[o->n_args++] = argv[at++];
        else if (!strcmp(argv[at], "--"))
            only_args = ++at;
        else if (option_take(o, argv, &at, allowed, err) < 0)
            return -1;
    }
    o->args[o->n_args] = NULL;
    return 0;
}

void options_release(struct options *o)
{
    free(o->args);
    stop_list_release(&o->stops);
    o->args = NULL;
    o->n_args = 0;
}

void options_help(struct buf *out, uint64_t set)
{
    for (size_t i = 0; i < OPTIONS_N; i++) {
        const struct row *row = &rows[i];
        if (!(set >> i & 1))
            continue;
        struct buf left = BUF_INIT;
        if (row->letter)
            buf_printf(&left, "-%c, ", row->letter);
        buf_printf(&left, "--%s%s%s", row->name, row->argument ? " " : "",
                   row->argument ? row->argument : "");
        buf_printf(out, "  %-24s %s\n", buf_cstr(&left), row->help);
        buf_release(&left);
    }
}

bool option_row(size_t i, struct option_row *row)
{
    if (i >= OPTIONS_N)
        return false;
    *row = (struct option_row){ rows[i].name, rows[i].argument, rows[i].help,
                                rows[i].letter };
    return true;
}
