/* config.c - the configuration file, read by inih. Owns the table of keys. */
#include "app/config.h"

#include "base/file.h"
#include "base/mem.h"

#include "ui/ui.h"

#include "app/options.h"

#include <errno.h>
#include <ini.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP_BYTES       UINT64_C(8000000000)
#define CONFIG_MAX_BYTES ((size_t)1 << 20)

enum kind {
    PATH,
    TEXT,
    COUNT,
    TOP_K,
    REAL,
    SHARE,
    FACTOR,
    PENALTY,
    BOOL,
    CHOICE,
    EFFORT,
    MATH,
    START,
    GIGABYTES,
    STOP,
    THEME
};

static const struct key {
    const char *name;
    enum kind kind;
    size_t field;
} keys[] = {
    { "model", PATH, offsetof(struct config, model) },
    { "system", TEXT, offsetof(struct config, system) },
    { "preset", TEXT, offsetof(struct config, preset) },
    { "ctx", COUNT, offsetof(struct config, ctx) },
    { "device", COUNT, offsetof(struct config, device) },
    { "temperature", REAL, offsetof(struct config, temperature) },
    { "top_k", TOP_K, offsetof(struct config, top_k) },
    { "top_p", SHARE, offsetof(struct config, top_p) },
    { "min_p", SHARE, offsetof(struct config, min_p) },
    { "repeat_penalty", FACTOR, offsetof(struct config, repeat_penalty) },
    { "presence_penalty", PENALTY, offsetof(struct config, presence_penalty) },
    { "frequency_penalty", PENALTY, offsetof(struct config, frequency_penalty) },
    { "thinking", CHOICE, offsetof(struct config, thinking) },
    { "effort", EFFORT, offsetof(struct config, effort) },
    { "preserve_thinking", CHOICE, offsetof(struct config, preserve_thinking) },
    { "math", MATH, offsetof(struct config, math) },
    { "stop", STOP, offsetof(struct config, stops) },
    { "mouse", BOOL, offsetof(struct config, mouse) },
    { "colours", BOOL, offsetof(struct config, colours) },
    { "theme", THEME, offsetof(struct config, theme) },
    { "snapshots_gb", GIGABYTES, offsetof(struct config, keep_bytes) },
    { "start", START, offsetof(struct config, start_last) },
};

struct reading {
    struct config *c;
    struct buf *notes;
    const struct key *last; /* of the line before: a text may go on */
    bool system_last;       /* that was the system prompt of a preset */
};

/* 1, 0, or -1 for neither. */
static int on_off(const char *v)
{
    if (!strcmp(v, "on") || !strcmp(v, "yes") || !strcmp(v, "true") || !strcmp(v, "1"))
        return 1;
    if (!strcmp(v, "off") || !strcmp(v, "no") || !strcmp(v, "false") || !strcmp(v, "0"))
        return 0;
    return -1;
}

static char *home_expand(const char *path)
{
    const char *home = getenv("HOME");
    struct buf b = BUF_INIT;
    if (!strncmp(path, "~/", 2) && home && home[0] == '/')
        buf_printf(&b, "%s%s", home, path + 1);
    else
        buf_str(&b, path);
    return buf_detach(&b);
}

static void text_set(char **field, const char *value, bool goes_on)
{
    struct buf b = BUF_INIT;
    if (goes_on && *field)
        buf_printf(&b, "%s\n", *field);
    buf_str(&b, value);
    free(*field);
    *field = buf_detach(&b);
}

/* NULL, or what the value should have been. */
static const char *value_set(struct reading *r, const struct key *key, const char *value)
{
    void *field = (char *)r->c + key->field;
    struct err why;
    double gigabytes;
    int choice;
    switch (key->kind) {
    case PATH:
        free(*(char **)field);
        *(char **)field = home_expand(value);
        return NULL;
    case TEXT:
        text_set(field, value, r->last == key);
        return NULL;
    case COUNT:
        return parse_int(value, 0, INT32_MAX, field) ? NULL : "a whole number";
    case TOP_K:
        return parse_int(value, 0, SAMPLER_MAX_K, field) ? NULL
                                                         : "a number from 0 to 256";
    case REAL:
        return parse_real(value, 0, 100, field) ? NULL : "a number from 0 to 100";
    case SHARE:
        return parse_real(value, 0, 1, field) ? NULL : "a number from 0 to 1";
    case FACTOR:
        return parse_real(value, 0.1, 10, field) ? NULL : "a number from 0.1 to 10";
    case PENALTY:
        return parse_penalty(value, field) ? NULL : "a number from -2 to 2";
    case EFFORT:
        return parse_effort(value, field) ? NULL : "low, medium or high";
    case BOOL:
    case CHOICE:
        choice = on_off(value);
        if (choice < 0)
            return "on or off";
        if (key->kind == BOOL)
            *(bool *)field = choice;
        else
            *(int64_t *)field = choice;
        return NULL;
    case GIGABYTES:
        if (!parse_real(value, 0, 1e6, &gigabytes))
            return "a number of gigabytes";
        *(uint64_t *)field = (uint64_t)(gigabytes * 1e9);
        return NULL;
    case MATH:
        if (strcmp(value, "int8") != 0 && strcmp(value, "float") != 0 &&
            strcmp(value, "auto") != 0)
            return "auto, int8 or float";
        *(enum math_path *)field = !strcmp(value, "int8")    ? MATH_INT8
                                   : !strcmp(value, "float") ? MATH_FLOAT
                                                             : MATH_AUTO;
        return NULL;
    case STOP:
        return stop_list_add(field, value, &why) < 0 ? "up to 16 texts, of 1 to 256 bytes"
                                                     : NULL;
    case THEME:
        if (!ui_is_theme(value))
            return "16, dark, light or none";
        text_set(field, value, false);
        return NULL;
    case START:
        if (strcmp(value, "new") != 0 && strcmp(value, "last") != 0)
            return "new or last";
        *(bool *)field = !strcmp(value, "last");
        return NULL;
    }
    return NULL;
}

static const char preset_section[] = "preset ";

static struct preset *preset_take(struct config *c, const char *name)
{
    struct preset_list *l = &c->presets;
    for (size_t i = 0; i < l->len; i++)
        if (!strcmp(l->v[i].name, name))
            return &l->v[i];
    l->v = mem_regrow(l->v, l->len + 1, sizeof *l->v);
    l->v[l->len] = (struct preset){ mem_strdup(name), mem_strdup("") };
    return &l->v[l->len++];
}

static void preset_line(struct reading *r, struct preset *p, const char *name,
                        const char *value)
{
    struct chat_settings scratch;
    struct buf lines = BUF_INIT, whole = BUF_INIT;
    struct err err;
    bool system = !strcmp(name, "system");
    char *before = system && r->system_last ? setting_lines_get(p->lines, name) : NULL;
    buf_printf(&whole, "%s%s%s", before ? before : "", before ? "\n" : "", value);
    settings_init(&scratch);
    buf_str(&lines, p->lines);
    if (settings_set(&scratch, name, buf_cstr(&whole), &err) < 0) {
        buf_printf(r->notes, "config: preset %s: %s\n", p->name, err.text);
    } else {
        setting_lines_set(&lines, name, buf_cstr(&whole));
        free(p->lines);
        p->lines = buf_detach(&lines);
    }
    r->system_last = system;
    settings_release(&scratch);
    free(before);
    buf_release(&lines);
    buf_release(&whole);
}

static void key_line(struct reading *r, const char *section, const char *name,
                     const char *value)
{
    const struct key *key = NULL;
    for (size_t i = 0; !*section && i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i].name, name))
            key = &keys[i];
    const char *wanted = key ? value_set(r, key, value) : NULL;
    r->last = key;
    if (!key)
        buf_printf(r->notes, "config: unknown key \"%s%s%s\"\n", section,
                   *section ? "." : "", name);
    else if (wanted)
        buf_printf(r->notes, "config: %s needs %s, not \"%s\"\n", name, wanted, value);
}

static int line_take(void *arg, const char *section, const char *name, const char *value)
{
    struct reading *r = arg;
    const size_t n = sizeof preset_section - 1;
    if (!strncmp(section, preset_section, n) && section[n]) {
        preset_line(r, preset_take(r->c, section + n), name, value);
    } else {
        r->system_last = false;
        key_line(r, section, name, value);
    }
    return 1;
}

int config_load(struct config *c, const char *path, struct buf *notes, struct err *err)
{
    struct buf text = BUF_INIT;
    *c = (struct config){
        .ctx = -1,
        .device = -1,
        .top_k = -1,
        .temperature = -1,
        .top_p = -1,
        .min_p = -1,
        .repeat_penalty = NAN,
        .presence_penalty = NAN,
        .frequency_penalty = NAN,
        .thinking = -1,
        .preserve_thinking = -1,
        .keep_bytes = KEEP_BYTES,
        .mouse = true,
        .colours = true,
    };
    if (!path || (access(path, F_OK) < 0 && errno == ENOENT))
        return 0;
    int rc = file_read_all(path, CONFIG_MAX_BYTES, &text, err);
    if (rc == 0 && strlen(buf_cstr(&text)) != text.len)
        rc = err_set(err, "%s holds NUL bytes and is no text file", path);
    if (rc < 0)
        goto out;
    ini_use_stack = false;
    ini_allow_realloc = true;
    ini_max_line = (int)CONFIG_MAX_BYTES;
    ini_allow_inline_comments = false;
    struct reading r = { .c = c, .notes = notes };
    int line = ini_parse_string(buf_cstr(&text), line_take, &r);
    if (c->preset && !preset_find(&c->presets, c->preset))
        buf_printf(notes, "config: there is no [preset %s]\n", c->preset);
    if (line > 0)
        buf_printf(notes, "config: line %d is no \"key = value\"\n", line);
out:
    buf_release(&text);
    return rc;
}

void config_release(struct config *c)
{
    free(c->model);
    free(c->system);
    free(c->theme);
    free(c->preset);
    preset_list_release(&c->presets);
    stop_list_release(&c->stops);
    *c = (struct config){ 0 };
}
