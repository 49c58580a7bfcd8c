/* setup.h - the settings of the shown conversation: the configuration's, a preset
 * over them, its own over that, and what the command line said over all. Preset and
 * own ones are stored with it. A part of chat.h.
 * Thread-safety: one thread, that of the conversation. */
#ifndef APP_SETUP_H
#define APP_SETUP_H

#include "app/chat.h"

struct setup_params {
    const struct chat_settings *base;  /* copied */
    const struct preset_list *presets; /* lent */
    const char *preset;                /* of new conversations, or NULL */
    const char *forced;                /* lines that win over all others, or NULL */
};
void setup_open(struct conversation *c, const struct setup_params *p);
void setup_release(struct conversation *c);
/* Takes over what is stored with the conversation that is shown now. */
void setup_show(struct conversation *c);
/* Keeps them with a conversation that was stored just now. */
int setup_save(struct conversation *c, struct err *err);

/* Changes one setting of the shown conversation; value NULL: back to what it would
 * be without. */
int setup_set(struct conversation *c, const char *key, const char *value,
              struct err *err);
/* Another preset in place of the one before and of its own settings; NULL: none.
 * The system prompt of a conversation that has begun stays. */
int setup_preset(struct conversation *c, const char *name, struct err *err);
/* On one line: the preset and what differs from it; empty where nothing does. */
void setup_describe(const struct conversation *c, struct buf *out);

#endif
