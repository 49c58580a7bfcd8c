/* decode.h - bytes from a terminal to keys.
 *
 * Bytes come in any pieces. A lone ESC, a sequence that was cut and a paste
 * whose end mark is missing are settled by time: decode_timeout_ms says when to
 * ask again. A paste is one event and never contains key presses: an end mark
 * that is followed at once by more text belongs to the pasted text itself.
 * Thread-safety: none. */
#ifndef UI_DECODE_H
#define UI_DECODE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_code {
    K_NONE,
    K_CHAR, /* cp; with MOD_CTRL a lower-case letter or punctuation */
    K_ENTER,
    K_TAB,
    K_BACKSPACE,
    K_ESC,
    K_UP,
    K_DOWN,
    K_LEFT,
    K_RIGHT,
    K_HOME,
    K_END,
    K_PAGE_UP,
    K_PAGE_DOWN,
    K_INSERT,
    K_DELETE,
    K_F1,
    K_F2,
    K_F3,
    K_F4,
    K_F5,
    K_F6,
    K_F7,
    K_F8,
    K_F9,
    K_F10,
    K_F11,
    K_F12,
    K_WHEEL_UP,
    K_WHEEL_DOWN,
    K_CLICK, /* the left button, at row value[0], column value[1], from 1 */
    K_PASTE, /* the text is in decoder.paste until the next call */
    K_MODE,  /* the terminal's answer: mode value[0] has state value[1] */
    K_KITTY, /* the terminal knows the kitty keyboard protocol */
    K_PLACE, /* the cursor is at row value[0], column value[1], from 1 */
};

enum key_mods { MOD_SHIFT = 1, MOD_ALT = 2, MOD_CTRL = 4 };

struct key {
    enum key_code code;
    unsigned mods;
    uint32_t cp;
    int value[2];
};

#define PASTE_BYTES_MAX (4u << 20)
#define ESC_WAIT_MS     40   /* a lone ESC is a key after this */
#define PASTE_TAIL_MS   20   /* quiet time that makes an end mark final */
#define PASTE_WAIT_MS   2000 /* a paste that falls silent has ended */

enum decode_state { DECODE_KEYS, DECODE_PASTE, DECODE_PASTE_TAIL };

struct decoder {
    struct buf in;
    size_t at;       /* bytes of `in` that are done with */
    int64_t last_ms; /* when bytes came last */
    enum decode_state state;
    struct buf paste;
    bool paste_cut;   /* more than PASTE_BYTES_MAX came; the rest is dropped */
    bool paste_shown; /* paste was handed out and can go */
};

void decode_release(struct decoder *d);
void decode_feed(struct decoder *d, const char *bytes, size_t n, int64_t now_ms);
/* The next key; false when more bytes or time are needed. */
bool decode_next(struct decoder *d, int64_t now_ms, struct key *out);
/* Milliseconds until decode_next may succeed without new bytes; -1: never. */
int decode_timeout_ms(const struct decoder *d, int64_t now_ms);

#endif
