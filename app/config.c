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

/* clang-format off */
enum kind {
    PATH, TEXT, COUNT, TOP_K, REAL, SHARE, FACTOR, PENALTY, BOOL, CHOICE, EFFORT, MATH, START,
    GIGABYTES, STOP, THEME, FOLDER, TITLES,
};

static const struct key {
    const char *name;
    enum kind kind;
    size_t field;
    const char *argument, *help;
} keys[] = {
#define KEY(name, kind, field, argument, help) \
    { name, kind, offsetof(struct config, field), argument, help }
    KEY("model", PATH, model, "FILE", "the model file (GGUF)"),
    KEY("models", FOLDER, folders, "FOLDER",
        "where models are looked for; may stand several times"),
    KEY("system", TEXT, system, "TEXT", "system prompt of new conversations"),
    KEY("preset", TEXT, preset, "NAME", "preset of new conversations"),
    KEY("ctx", COUNT, ctx, "N", "context size in tokens"),
    KEY("device", COUNT, device, "N", "Vulkan device, as numbered by tern devices"),
    KEY("temperature", REAL, temperature, "T", "0 always takes the likeliest token"),
    KEY("top_k", TOP_K, top_k, "K", "sample among the K likeliest tokens"),
    KEY("top_p", SHARE, top_p, "P", "sample among the likeliest that add up to P"),
    KEY("min_p", SHARE, min_p, "P", "drop tokens below P times the likeliest"),
    KEY("repeat_penalty", FACTOR, repeat_penalty, "F", "1 is none"),
    KEY("presence_penalty", PENALTY, presence_penalty, "F", "0 is none"),
    KEY("frequency_penalty", PENALTY, frequency_penalty, "F", "0 is none"),
    KEY("thinking", CHOICE, thinking, "on|off", "reason before answering"),
    KEY("effort", EFFORT, effort, "low|medium|high", "how much, where a model has degrees"),
    KEY("preserve_thinking", CHOICE, preserve_thinking, "on|off",
        "keep the reasoning of earlier answers in the context"),
    KEY("stop", STOP, stops, "TEXT", "ends an answer; may stand several times"),
    KEY("math", MATH, math, "auto|int8|float", "arithmetic of the matrix products"),
    KEY("titles", TITLES, titles, "auto|first|model",
        "made from the first message, or by the model while it is idle"),
    KEY("mouse", BOOL, mouse, "on|off", "wheel and clicks"),
    KEY("theme", THEME, theme, "16|dark|light|none", "colours"),
    KEY("colours", BOOL, colours, "on|off", "off is as theme none"),
    KEY("snapshots_gb", GIGABYTES, keep_bytes, "N", "disk space for what was read"),
    KEY("start", START, start_last, "new|last", "conversation to start with"),
#undef KEY
};
/* clang-format on */

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

static void folder_add(char **list, const char *value)
{
    struct buf b = BUF_INIT;
    char *path = home_expand(value);
    buf_printf(&b, "%s%s\n", *list ? *list : "", path);
    free(path);
    free(*list);
    *list = buf_detach(&b);
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
    case FOLDER:
        folder_add(field, value);
        return NULL;
    case TITLES:
        choice = !strcmp(value, "auto")    ? TITLES_AUTO
                 : !strcmp(value, "first") ? TITLES_FIRST
                 : !strcmp(value, "model") ? TITLES_MODEL
                                           : -1;
        if (choice < 0)
            return "auto, first or model";
        *(enum titles *)field = (enum titles)choice;
        return NULL;
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

/* A line of [keys]. */
static void binding_line(struct reading *r, const char *action, const char *value)
{
    struct buf b = BUF_INIT;
    struct err err;
    if (ui_keys_check(action, value, &err) < 0) {
        buf_printf(r->notes, "config: keys: %s\n", err.text);
        return;
    }
    buf_printf(&b, "%s%s = %s\n", r->c->keys ? r->c->keys : "", action, value);
    free(r->c->keys);
    r->c->keys = buf_detach(&b);
}

void config_help(struct buf *out)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct buf left = BUF_INIT;
        buf_printf(&left, "%s = %s", keys[i].name, keys[i].argument);
        buf_printf(out, "  %-34s %s\n", left.v, keys[i].help);
        buf_release(&left);
    }
}

bool config_row(size_t i, struct config_row *row)
{
    if (i >= sizeof keys / sizeof *keys)
        return false;
    *row = (struct config_row){ keys[i].name, keys[i].argument, keys[i].help };
    return true;
}

static int line_take(void *arg, const char *section, const char *name, const char *value)
{
    struct reading *r = arg;
    const size_t n = sizeof preset_section - 1;
    if (!strncmp(section, preset_section, n) && section[n]) {
        preset_line(r, preset_take(r->c, section + n), name, value);
    } else if (!strcmp(section, "keys")) {
        binding_line(r, name, value);
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
    free(c->folders);
    free(c->keys);
    preset_list_release(&c->presets);
    stop_list_release(&c->stops);
    *c = (struct config){ 0 };
}
