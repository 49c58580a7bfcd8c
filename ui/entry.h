/* entry.h - one message laid out as lines: gap, label, thinking, text, mark.
 *
 * An entry caches what it drew: text that only grew is not read again, and a
 * width that did not change is not wrapped again. Thread-safety: none. */
#ifndef UI_ENTRY_H
#define UI_ENTRY_H

#include "base/record.h"
#include "ui/markdown.h"
#include "ui/screen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum entry_part {
    PART_GAP, /* an empty line, not above the first message */
    PART_LABEL,
    PART_FOLD, /* one line that stands for the thinking text */
    PART_THINKING,
    PART_BODY,
    PART_MARK, /* stopped, failed, ... */
    PART_COUNT,
};

/* A line of an entry that survives a change of width. */
struct place {
    enum entry_part part;
    size_t pos; /* byte in the part's text */
};

/* How a message is to be shown now. */
struct entry_look {
    int width;
    bool thinking, first, selected;
    bool figures;             /* of every message, not only of the selected one */
    bool live, queued;        /* being written, not sent yet */
    bool unanswered, waiting; /* the last one, with nobody at it or for a model */
    const char *fold_key;     /* what shows thinking text */
};

struct entry {
    bool used;
    int64_t id, created_ms;
    enum role role;
    struct markdown thinking, body;
    size_t thinking_counted, thinking_chars;
    size_t lines[PART_COUNT]; /* of each part */
};

void entry_release(struct entry *e);
/* Brings the entry up to date with the message; returns its number of lines. */
size_t entry_sync(struct entry *e, const struct message *m,
                  const struct entry_look *look);
void entry_draw(const struct entry *e, const struct message *m,
                const struct entry_look *look, size_t line, struct screen *s,
                struct span at);
struct place entry_place(const struct entry *e, size_t line);
size_t entry_line(const struct entry *e, struct place p);
/* The place of the last character that is there now. */
struct place entry_end(const struct entry *e);

#endif
