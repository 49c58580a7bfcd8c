/* foreign.h - conversations as other programs write them. For transfer_in.c.
 * Thread-safety: pure. */
#ifndef APP_FOREIGN_H
#define APP_FOREIGN_H

#include "base/err.h"
#include "base/record.h"

#include "app/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One that was found; texts are malloced. */
struct foreign {
    char *title, *model;          /* NULL: not said */
    int64_t created_ms;           /* 0: not said */
    struct message_list messages; /* one after the other */
    size_t skipped;
};

/* Whether the value looks like a conversation of a form that is known. */
bool foreign_is(const struct json_doc *d, uint32_t v);
/* Reads it; fails for what is no proper text. Release f in any case. */
int foreign_read(struct foreign *f, const struct json_doc *d, uint32_t v,
                 struct err *err);
/* The same from text with <|im_start|> marks. */
bool foreign_is_text(const char *text, size_t n);
int foreign_read_text(struct foreign *f, const char *text, size_t n, struct err *err);
void foreign_release(struct foreign *f);

#endif
