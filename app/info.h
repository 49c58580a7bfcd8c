/* info.h - what a model file holds, as lines for people.
 * Thread-safety: pure. */
#ifndef APP_INFO_H
#define APP_INFO_H

#include "base/buf.h"

#include "engine/engine.h"

/* Lines "name value", without anything that a terminal would obey. ctx_tokens 0: as
 * a chat would have it. */
void info_lines(struct buf *out, const struct model *m, uint32_t ctx_tokens);

#endif
