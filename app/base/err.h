/* err.h - the reason why a call failed, in a struct that the caller owns. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
    char text[512]; /* one line, no newline: what, where, what to do */
};

/* Formats the reason into err and returns -1, so that a failing function can
 * end with `return err_set(err, ...)`. What is too long loses its middle; line
 * breaks in it become spaces. err may be NULL; its own text may be an argument.
 * Never allocates. */
int err_set(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " in front of the text that is already there; returns -1. */
int err_prefix(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
