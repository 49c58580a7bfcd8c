/* config.h - the one file that the user edits: $XDG_CONFIG_HOME/tern/config,
 * lines of "key = value", text after # or ; at a line's start is a comment, an
 * indented line goes on with the value above it. "[preset NAME]" starts settings
 * (settings.h) that go by a name, "[keys]" keys of actions. The program never
 * writes it.
 * Thread-safety: one thread. */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include "base/buf.h"
#include "base/err.h"

#include "engine/engine.h"

#include "app/settings.h"
#include "app/title.h"

#include <stdbool.h>
#include <stdint.h>

struct config {
    char *model;                      /* path, or NULL; ~/ is replaced */
    char *system;                     /* system prompt of new conversations, or NULL */
    int64_t ctx, device, top_k;       /* -1: not set */
    uint64_t keep_bytes;              /* of kept timelines on disk */
    double temperature, top_p, min_p; /* -1: not set */
    double repeat_penalty, presence_penalty, frequency_penalty; /* NAN: not set */
    int64_t thinking, preserve_thinking; /* -1: the model's way; 0, 1 */
    enum effort effort;
    enum math_path math;
    struct stop_list stops; /* a line each */
    char *folders;          /* of models, a line each, or NULL */
    char *keys;             /* lines "action = keys" of [keys], or NULL */
    enum titles titles;
    struct preset_list presets;
    char *preset;        /* of new conversations, or NULL */
    char *theme;         /* of ui_themes, or NULL */
    bool mouse, colours; /* true unless set */
    bool start_last;     /* open the last conversation, not a new one */
};

/* Defaults, then what the file says. A missing file (or a path of NULL) is
 * fine. Every line that cannot be used adds one line to notes and changes
 * nothing; only a file that cannot be read at all is an error, and then c holds
 * the defaults. Release c in any case. */
int config_load(struct config *c, const char *path, struct buf *notes, struct err *err);
void config_release(struct config *c);

/* What can stand in the file, one key after the other; false at the end. */
struct config_row {
    const char *name, *argument, *help;
};
bool config_row(size_t i, struct config_row *row);
/* The same as lines of help. */
void config_help(struct buf *out);

#endif
