/* settings.c - the table of settings, and lines of them. */
#include "app/settings.h"

#include "base/mem.h"

#include "app/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    TEXT,
    CHOICE,
    EFFORT,
    REAL,
    SHARE,
    FACTOR,
    PENALTY,
    TOP_K,
    SEED,
    STOP,
    COUNT
};

static const struct row {
    const char *key;
    enum kind kind;
    size_t field;
    const char *needs;
} rows[] = {
#define ROW(key, kind, needs)                                  \
    {                                                          \
#key, kind, offsetof(struct chat_settings, key), needs \
    }
    ROW(system, TEXT, "a text"),
    ROW(thinking, CHOICE, "on, off or auto"),
    ROW(preserve_thinking, CHOICE, "on, off or auto"),
    ROW(effort, EFFORT, "low, medium, high or auto"),
    ROW(temperature, REAL, "a number from 0 to 100"),
    ROW(top_k, TOP_K, "a number from 0 to 256"),
    ROW(top_p, SHARE, "a number from 0 to 1"),
    ROW(min_p, SHARE, "a number from 0 to 1"),
    ROW(repeat_penalty, FACTOR, "a number from 0.1 to 10"),
    ROW(presence_penalty, PENALTY, "a number from -2 to 2"),
    ROW(frequency_penalty, PENALTY, "a number from -2 to 2"),
    ROW(max_tokens, COUNT, "a whole number of tokens"),
    ROW(seed, SEED, "a whole number"),
    { "stop", STOP, offsetof(struct chat_settings, stops), "a text of 1 to 256 bytes" },
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

void settings_init(struct chat_settings *s)
{
    *s = (struct chat_settings){ .thinking = -1,
                                 .preserve_thinking = -1,
                                 .temperature = -1,
                                 .top_p = -1,
                                 .min_p = -1,
                                 .top_k = -1,
                                 .repeat_penalty = NAN,
                                 .presence_penalty = NAN,
                                 .frequency_penalty = NAN };
}

void settings_copy(struct chat_settings *dst, const struct chat_settings *src)
{
    *dst = *src;
    dst->system = src->system ? mem_strdup(src->system) : NULL;
    dst->stops = (struct stop_list){ 0 };
    stop_list_copy(&dst->stops, &src->stops);
}

void settings_release(struct chat_settings *s)
{
    free(s->system);
    stop_list_release(&s->stops);
    settings_init(s);
}

/* ---- one setting ---------------------------------------------------------- */

static bool choice_set(int64_t *field, const char *value, bool leave)
{
    if (leave)
        *field = -1;
    else if (!strcmp(value, "on"))
        *field = 1;
    else if (!strcmp(value, "off"))
        *field = 0;
    else
        return false;
    return true;
}

static bool real_set(double *field, const char *value, double min, double max)
{
    return parse_real(value, min, max, field);
}

static bool seed_set(struct chat_settings *s, const char *value, bool leave)
{
    int64_t seed = 0;
    if (!leave && !parse_int(value, 0, INT64_MAX, &seed))
        return false;
    s->has_seed = !leave;
    s->seed = (uint64_t)seed;
    return true;
}

static bool count_set(uint32_t *field, const char *value, bool leave)
{
    int64_t n = 0;
    if (!leave && !parse_int(value, 1, INT32_MAX, &n))
        return false;
    *field = (uint32_t)n;
    return true;
}

static void text_set(char **field, const char *value, bool leave)
{
    free(*field);
    *field = leave || !*value ? NULL : mem_strdup(value);
}

static bool row_set(struct chat_settings *s, const struct row *row, const char *value)
{
    void *field = (char *)s + row->field;
    bool leave = !strcmp(value, "auto");
    struct err why;
    switch (row->kind) {
    case TEXT:
        text_set(field, value, leave);
        return true;
    case CHOICE:
        return choice_set(field, value, leave);
    case EFFORT:
        if (leave)
            *(enum effort *)field = EFFORT_DEFAULT;
        return leave || parse_effort(value, field);
    case REAL:
    case SHARE:
        if (leave)
            *(double *)field = -1;
        return leave || real_set(field, value, 0, row->kind == REAL ? 100 : 1);
    case FACTOR:
        if (leave)
            *(double *)field = NAN;
        return leave || real_set(field, value, 0.1, 10);
    case PENALTY:
        if (leave)
            *(double *)field = NAN;
        return leave || parse_penalty(value, field);
    case TOP_K:
        if (leave)
            *(int64_t *)field = -1;
        return leave || parse_int(value, 0, SAMPLER_MAX_K, field);
    case COUNT:
        return count_set(field, value, leave);
    case SEED:
        return seed_set(s, value, leave);
    case STOP:
        if (leave)
            stop_list_release(&s->stops);
        return leave || stop_list_add(&s->stops, value, &why) == 0;
    }
    return false;
}

static const struct row *row_find(const char *key)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].key, key))
            return &rows[i];
    return NULL;
}

int settings_set(struct chat_settings *s, const char *key, const char *value,
                 struct err *err)
{
    const struct row *row = row_find(key);
    if (!row) {
        struct buf names = BUF_INIT;
        settings_keys(&names);
        err_set(err, "there is no setting \"%s\"; there are %s", key, buf_cstr(&names));
        buf_release(&names);
        return -1;
    }
    if (!row_set(s, row, value))
        return err_set(err, "%s needs %s, not \"%s\"", key, row->needs, value);
    return 0;
}

void settings_keys(struct buf *out)
{
    for (size_t i = 0; i < ROWS; i++)
        buf_printf(out, "%s%s", i ? " " : "", rows[i].key);
}

/* ---- in words -------------------------------------------------------------- */

static void number_add(struct buf *b, const char *name, double v, bool given)
{
    if (given)
        buf_printf(b, "%s%s %g", b->len ? ", " : "", name, v);
}

static void word_add(struct buf *b, const char *name, const char *word)
{
    buf_printf(b, "%s%s %s", b->len ? ", " : "", name, word);
}

void settings_describe(const struct chat_settings *s, struct buf *out)
{
    static const char *const efforts[] = {
        [EFFORT_LOW] = "low", [EFFORT_MEDIUM] = "medium", [EFFORT_XHIGH] = "high"
    };
    struct buf b = BUF_INIT;
    if (s->thinking >= 0)
        word_add(&b, "thinking", s->thinking ? "on" : "off");
    if (s->preserve_thinking == 0)
        word_add(&b, "preserve_thinking", "off");
    if (s->effort != EFFORT_DEFAULT && s->effort < sizeof efforts / sizeof *efforts)
        word_add(&b, "effort", efforts[s->effort]);
    number_add(&b, "temperature", s->temperature, s->temperature >= 0);
    number_add(&b, "top_k", (double)s->top_k, s->top_k >= 0);
    number_add(&b, "top_p", s->top_p, s->top_p >= 0);
    number_add(&b, "min_p", s->min_p, s->min_p >= 0);
    number_add(&b, "repeat_penalty", s->repeat_penalty, !isnan(s->repeat_penalty));
    number_add(&b, "presence_penalty", s->presence_penalty, !isnan(s->presence_penalty));
    number_add(&b, "frequency_penalty", s->frequency_penalty,
               !isnan(s->frequency_penalty));
    number_add(&b, "max_tokens", s->max_tokens, s->max_tokens > 0);
    number_add(&b, "seed", (double)s->seed, s->has_seed);
    if (s->stops.n)
        buf_printf(&b, "%s%zu stop text%s", b.len ? ", " : "", s->stops.n,
                   s->stops.n == 1 ? "" : "s");
    buf_str(out, buf_cstr(&b));
    buf_release(&b);
}

/* ---- lines ----------------------------------------------------------------- */

struct line {
    const char *key, *value;
    size_t key_bytes, value_bytes;
    const char *next; /* after its line break */
};

/* The line at s; false for none. One without " = " has an empty key. */
static bool line_read(const char *s, struct line *l)
{
    if (!*s)
        return false;
    size_t n = strcspn(s, "\n");
    size_t key = 0;
    while (key + 3 <= n && memcmp(s + key, " = ", 3) != 0)
        key++;
    bool whole = key + 3 <= n;
    *l = (struct line){ .key = s,
                        .key_bytes = whole ? key : 0,
                        .value = whole ? s + key + 3 : s + n,
                        .value_bytes = whole ? n - key - 3 : 0,
                        .next = s + n + (s[n] == '\n') };
    return true;
}

/* Only line breaks and backslashes before an n are written otherwise. */
static char *value_read(const struct line *l)
{
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < l->value_bytes; i++) {
        bool mark = l->value[i] == '\\' && i + 1 < l->value_bytes;
        if (mark && l->value[i + 1] == 'n')
            buf_char(&b, '\n');
        else if (mark && l->value[i + 1] == '\\')
            buf_char(&b, '\\');
        else
            buf_char(&b, l->value[i]);
        i += mark && (l->value[i + 1] == 'n' || l->value[i + 1] == '\\');
    }
    return buf_detach(&b);
}

static void value_write(struct buf *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            buf_str(out, "\\n");
        else if (*value == '\\')
            buf_str(out, "\\\\");
        else
            buf_char(out, *value);
    }
}

static bool has_key(const struct line *l, const char *key)
{
    return l->key_bytes == strlen(key) && !memcmp(l->key, key, l->key_bytes);
}

void settings_apply(struct chat_settings *s, const char *lines)
{
    for (struct line l; line_read(lines, &l); lines = l.next) {
        char *key = mem_strndup(l.key, l.key_bytes), *value = value_read(&l);
        settings_set(s, key, value, NULL);
        free(key);
        free(value);
    }
}

void setting_lines_set(struct buf *lines, const char *key, const char *value)
{
    struct buf b = BUF_INIT;
    const char *at = buf_cstr(lines);
    bool adds = value && !strcmp(key, "stop") && strcmp(value, "auto") != 0;
    for (struct line l; line_read(at, &l); at = l.next)
        if (adds || !has_key(&l, key))
            buf_add(&b, at, (size_t)(l.next - at));
    if (value) {
        buf_printf(&b, "%s = ", key);
        value_write(&b, value);
        buf_char(&b, '\n');
    }
    buf_release(lines);
    *lines = b;
}

char *setting_lines_get(const char *lines, const char *key)
{
    char *value = NULL;
    for (struct line l; line_read(lines, &l); lines = l.next) {
        if (!has_key(&l, key))
            continue;
        free(value);
        value = value_read(&l);
    }
    return value;
}

/* ---- presets ---------------------------------------------------------------- */

const struct preset *preset_find(const struct preset_list *l, const char *name)
{
    for (size_t i = 0; l && i < l->len; i++)
        if (!strcmp(l->v[i].name, name))
            return &l->v[i];
    return NULL;
}

void preset_list_release(struct preset_list *l)
{
    for (size_t i = 0; i < l->len; i++) {
        free(l->v[i].name);
        free(l->v[i].lines);
    }
    free(l->v);
    *l = (struct preset_list){ 0 };
}
