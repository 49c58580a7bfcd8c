/* complete.h - what could stand where the cursor is: commands, their words, names of
 * files. Reads folders, changes nothing. Thread-safety: none. */
#ifndef UI_COMPLETE_H
#define UI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

struct completion {
    size_t start, end; /* the part of the text that candidates replace */
    char **v;          /* sorted */
    size_t n;
    size_t common; /* bytes that all candidates begin with */
};

/* text[0, cursor) is before the cursor. commands: lines "/name ARGUMENT  help"; words:
 * lines "/name word word". A command whose argument is FILE, PATH or [FILE] takes
 * names of files, and so does what begins with @. False if there is nothing to
 * complete. Release c. */
bool complete(struct completion *c, const char *text, size_t cursor, const char *commands,
              const char *words);
void complete_release(struct completion *c);
/* The file that an @ at s names, malloced: @path or @"path with blanks"; *bytes is
 * how long that is. NULL if no readable file has that name. */
char *complete_reference(const char *s, size_t n, size_t *bytes);

#endif
