/* markdown.h - a message's text as styled paragraphs, while it streams.
 *
 * Text is appended as it comes. Blocks that later text cannot change are parsed
 * once; only the open end is parsed again. The result is the same however the
 * text was cut on its way. Thread-safety: none. */
#ifndef UI_MARKDOWN_H
#define UI_MARKDOWN_H

#include "base/buf.h"
#include "ui/highlight.h"
#include "ui/split.h"
#include "ui/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct markdown {
    struct text text;        /* what is drawn; wrap it with text_wrap */
    bool plain;              /* no markup: lines are paragraphs; set before use */
    uint16_t style;          /* base style; set before use */
    size_t fed;              /* bytes of the message taken so far */
    struct buf open;         /* sanitised source of the unfinished end */
    struct text_mark closed; /* end of the finished part of text */
    struct split split;
    struct highlight code; /* of the fenced block that is open at its end */
    bool blank;            /* an empty line stands before what comes next */
};

void markdown_release(struct markdown *md);
/* Takes what is new in a message of n bytes; s[0, fed) is as it was. An
 * incomplete code point at the end waits, unless the text is final. */
void markdown_feed(struct markdown *md, const char *s, size_t n, bool final);

#endif
