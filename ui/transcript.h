/* transcript.h - the shown branch as one scrollable column of lines.
 *
 * Only messages near the visible rows are ever laid out. The view either
 * follows the end, or is held by an anchor (message, line) that text arriving
 * below, a change of width or of folding does not move. Scrolling is asked for
 * at any time and done at the next draw, when the messages are at hand. */
#ifndef UI_TRANSCRIPT_H
#define UI_TRANSCRIPT_H

#include "base/record.h"
#include "ui/entry.h"
#include "ui/screen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct anchor {
    size_t message, line; /* the line at the top of the view */
    struct place place;   /* the same, whatever the width */
};

struct transcript {
    struct entry *entries; /* [n] */
    size_t n, cap;
    int64_t chat_id;
    bool follow;
    bool thinking; /* thinking text unfolded */
    bool figures;  /* of each message shown */
    int rows;      /* of the last draw */
    struct row_shows {
        int64_t message; /* id, 0: none */
        enum entry_part part;
    } * shows; /* [rows] of the last draw */
    struct anchor top;
    size_t seen_message; /* the end when following ended: what is after it is new */
    struct place seen;
    size_t new_lines;                /* after `seen`; 0 while following */
    int64_t selected;                /* id of a message, 0: none */
    char *words;                     /* that are looked for and marked, or NULL */
    size_t found_message, found_pos; /* the match shown last; pos SIZE_MAX: none */
    bool nothing_found;              /* the last time */
    /* asked for, done at the next draw */
    int scroll; /* lines, down is positive */
    int jump;   /* messages */
    bool to_top;
    int find;                /* matches: -1 the one before, 1 the next */
    int64_t show_chat, show; /* message to bring to the top, 0: none */
};

/* What is drawn; live: the last message before those that are queued is being
 * written. */
struct transcript_model {
    int64_t chat_id;
    const struct message *messages;
    size_t n, n_queued;
    bool live, waiting;   /* ... or is to be, once there is a model */
    const char *fold_key; /* what shows thinking text */
};

void transcript_init(struct transcript *t);
void transcript_release(struct transcript *t);
void transcript_draw(struct transcript *t, const struct transcript_model *m,
                     struct screen *s, struct rect r);
void transcript_scroll(struct transcript *t, int lines);
void transcript_page(struct transcript *t, int pages);
void transcript_to_top(struct transcript *t);
void transcript_to_end(struct transcript *t);
/* Selects the message before (-1) or after (+1) the selected one. */
void transcript_jump(struct transcript *t, int delta);
/* Marks words from now on, and forgets what was found; NULL: none. */
void transcript_words(struct transcript *t, const char *words);
/* Goes to the match before (-1) or after (+1) the one shown. */
void transcript_find(struct transcript *t, int delta);
/* Brings a message to the top as soon as its conversation is drawn. */
void transcript_show(struct transcript *t, int64_t chat_id, int64_t message_id);

#endif
