/* term.h - the terminal: taken over, drawn to, read from, given back.
 *
 * Every mode that is set here is undone by term_close, term_suspend and
 * term_emergency_restore alike. Thread-safety: one thread, but for
 * term_emergency_restore, which is async-signal-safe. */
#ifndef UI_TERM_H
#define UI_TERM_H

#include "base/err.h"
#include "ui/decode.h"
#include "ui/screen.h"
#include "ui/theme.h"

#include <stdbool.h>
#include <stddef.h>

struct terminal;

/* Only one can be open at a time. */
int term_open(struct terminal **out, bool mouse, enum theme theme, struct err *err);
void term_close(struct terminal *t);
void term_emergency_restore(void);

/* Readable when there is input, the size changed or the program was continued. */
int term_fd(const struct terminal *t);
/* Reads without waiting: bytes, 0 for none, -1 when the terminal is gone. */
long term_read(struct terminal *t, char *bytes, size_t n);
/* The size now, at least 1x1 and at most SCREEN_*_MAX. True if it changed since
 * the last call, or if the program was stopped meanwhile. */
bool term_check(struct terminal *t, int *rows, int *cols);
/* An answer of the terminal to what term_open asked (K_MODE, K_KITTY, K_PLACE). */
void term_answer(struct terminal *t, const struct key *k);

void term_draw(struct terminal *t, const struct screen *s);
/* False: this kind of terminal has no clipboard that programs can set. */
bool term_can_copy(const struct terminal *t);
/* Hands text to the terminal's clipboard, if it lets programs set that; through
 * tmux and screen, too. */
void term_copy(struct terminal *t, const char *text, size_t n);
/* Makes the next term_draw send everything. */
void term_repaint(struct terminal *t);
void term_theme(struct terminal *t, enum theme theme);
void term_toggle_mouse(struct terminal *t);
/* Gives the terminal back, stops the whole job and takes the terminal again when
 * it is continued. */
void term_stop(struct terminal *t);
void term_suspend(struct terminal *t);
void term_resume(struct terminal *t);

#endif
