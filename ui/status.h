/* status.h - the status line as text. */
#ifndef UI_STATUS_H
#define UI_STATUS_H

#include "base/buf.h"
#include "ui/ui.h"

/* Writes one line of at most width columns: names on the left, figures on the
 * right. What does not fit goes, the least important first. */
void status_format(struct buf *out, const struct ui_status *s, int width);
/* "12 MB": three figures at most. */
void status_size(struct buf *out, uint64_t bytes);
/* "340 ms", "12 s", "3 min". */
void status_time(struct buf *out, double ms);
/* 1234567 as "1,234,567". */
void status_number(struct buf *out, uint64_t v);

#endif
