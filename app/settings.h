/* settings.h - how answers are made: system prompt, thinking, sampling. What is
 * set by hand is kept as lines "key = value", in which a line break of the value
 * is \n: a preset of the configuration and a conversation's own settings alike.
 * Thread-safety: pure. */
#ifndef APP_SETTINGS_H
#define APP_SETTINGS_H

#include "base/buf.h"
#include "base/err.h"

#include "engine/engine.h"

#include "app/stop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -1 (NAN for penalties) leaves it to the model. */
struct chat_settings {
    char *system;                     /* malloced or NULL: of new conversations */
    int64_t thinking;                 /* -1, 0, 1 */
    int64_t preserve_thinking;        /* of earlier answers in the context: 0: no */
    enum effort effort;               /* EFFORT_DEFAULT */
    double temperature, top_p, min_p; /* -1 */
    double repeat_penalty, presence_penalty, frequency_penalty; /* NAN */
    int64_t top_k;                                              /* -1 */
    uint64_t seed;
    bool has_seed;
    struct stop_list stops; /* texts that end an answer */
    uint32_t max_tokens;    /* of an answer; 0: what fits */
    uint32_t ctx_tokens;    /* that were asked for; 0: none were */
};

void settings_init(struct chat_settings *s);
/* dst must be empty. */
void settings_copy(struct chat_settings *dst, const struct chat_settings *src);
void settings_release(struct chat_settings *s);

/* One setting by its name; "auto" leaves it to the model. A stop text is added to
 * those there are. Fails where there is no such setting, or says what the value
 * should have been. */
int settings_set(struct chat_settings *s, const char *key, const char *value,
                 struct err *err);
/* All lines, the later ones last; those that cannot be used are left out. */
void settings_apply(struct chat_settings *s, const char *lines);
/* The names, separated by spaces. */
void settings_keys(struct buf *out);
/* The settings that differ from what the model does by itself, on one line:
 * "temperature 0.5, thinking on". Without the system prompt. */
void settings_describe(const struct chat_settings *s, struct buf *out);

/* Adds a line, in place of one with the same key unless that is "stop"; value NULL:
 * only removes. */
void setting_lines_set(struct buf *lines, const char *key, const char *value);
/* The value of a key, malloced; NULL where it is not set. */
char *setting_lines_get(const char *lines, const char *key);

/* Named lines of the configuration. */
struct preset {
    char *name, *lines; /* malloced */
};
struct preset_list {
    struct preset *v;
    size_t len;
};
const struct preset *preset_find(const struct preset_list *l, const char *name);
void preset_list_release(struct preset_list *l);

#endif
