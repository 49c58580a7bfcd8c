/* csi.c - xterm, rxvt, linux and kitty forms of the keys that the key table
 * knows. Grammar (ECMA-48): ESC [, parameters 0x30-0x3F, intermediates
 * 0x20-0x2F, one final byte 0x40-0x7E. */
#include "ui/csi.h"

#include <string.h>

#define PARAMS_MAX 4
#define BYTES_MAX  64 /* longer: not a key; the bytes are dropped */

struct csi {
    char private; /* one of < = > ? before the parameters, or 0 */
    char intermediate, final;
    int param[PARAMS_MAX], sub[PARAMS_MAX]; /* 0: absent; sub: after a colon */
};

static const enum key_code function_keys[] = {
    [1] = K_HOME,      [2] = K_INSERT, [3] = K_DELETE, [4] = K_END,  [5] = K_PAGE_UP,
    [6] = K_PAGE_DOWN, [7] = K_HOME,   [8] = K_END,    [11] = K_F1,  [12] = K_F2,
    [13] = K_F3,       [14] = K_F4,    [15] = K_F5,    [17] = K_F6,  [18] = K_F7,
    [19] = K_F8,       [20] = K_F9,    [21] = K_F10,   [23] = K_F11, [24] = K_F12,
};

static enum key_code letter_key(char c)
{
    switch (c) {
    case 'A':
        return K_UP;
    case 'B':
        return K_DOWN;
    case 'C':
        return K_RIGHT;
    case 'D':
        return K_LEFT;
    case 'F':
        return K_END;
    case 'H':
        return K_HOME;
    case 'M':
        return K_ENTER; /* keypad */
    case 'P':
    case 'Q':
    case 'R':
    case 'S':
        return (enum key_code)(K_F1 + (c - 'P'));
    case 'Z':
        return K_TAB;
    default:
        return K_NONE;
    }
}

static unsigned mods_of(int param)
{
    unsigned bits = param > 0 ? (unsigned)param - 1 : 0;
    return (bits & 1 ? MOD_SHIFT : 0) | (bits & 2 ? MOD_ALT : 0) |
           (bits & 4 ? MOD_CTRL : 0);
}

/* A key given by its code point, as modifyOtherKeys and kitty report it. */
static struct key code_key(int cp, unsigned mods)
{
    struct key k = { .code = K_CHAR, .mods = mods, .cp = (uint32_t)cp };
    switch (cp) {
    case 13:
    case 57414: /* kitty: keypad Enter */
        k.code = K_ENTER;
        break;
    case 9:
        k.code = K_TAB;
        break;
    case 27:
        k.code = K_ESC;
        break;
    case 8:
    case 127:
        k.code = K_BACKSPACE;
        break;
    default:
        if (cp < 32 || cp > 0x10FFFF || (cp >= 0x7F && cp < 0xA0) ||
            (cp >= 57344 && cp <= 63743)) /* kitty's private range */
            k.code = K_NONE;
        if (mods & MOD_CTRL && cp >= 'A' && cp <= 'Z')
            k.cp += 32;
        else if (mods == MOD_SHIFT && cp >= 'a' && cp <= 'z')
            k.cp -= 32;
        break;
    }
    return k;
}

static struct key mouse_key(const struct csi *c)
{
    struct key k = { .code = K_NONE };
    if (c->final == 'M' && (c->param[0] & ~0x1C) == 64) /* less the modifier bits */
        k.code = K_WHEEL_UP;
    else if (c->final == 'M' && (c->param[0] & ~0x1C) == 65)
        k.code = K_WHEEL_DOWN;
    else if (c->final == 'M' && c->param[0] == 0 && c->param[1] > 0 && c->param[2] > 0)
        k = (struct key){ .code = K_CLICK, .value = { c->param[2], c->param[1] } };
    return k;
}

static struct key answer_key(const struct csi *c)
{
    struct key k = { .code = K_NONE, .value = { c->param[0], c->param[1] } };
    if (c->intermediate == '$' && c->final == 'y')
        k.code = K_MODE;
    else if (c->intermediate == 0 && c->final == 'u')
        k.code = K_KITTY;
    return k;
}

static struct key tilde_key(const struct csi *c)
{
    int p = c->param[0];
    struct key k = { .code = K_NONE, .mods = mods_of(c->param[1]) };
    if (p == 27 && c->param[2] > 0)
        return code_key(c->param[2], k.mods);
    if (p == 13 && k.mods & MOD_SHIFT) { /* Shift+Enter of some terminals, not F3 */
        k.code = K_ENTER;
        return k;
    }
    if (p > 0 && p < (int)(sizeof function_keys / sizeof *function_keys))
        k.code = function_keys[p];
    return k;
}

static struct key meaning(const struct csi *c)
{
    struct key none = { .code = K_NONE };
    if (c->private == '<')
        return mouse_key(c);
    if (c->private == '?')
        return answer_key(c);
    if (c->private || c->intermediate || c->sub[1] == 3) /* 3: a key release */
        return none;
    if (c->final == '~')
        return tilde_key(c);
    if (c->final == 'u')
        return code_key(c->param[0], mods_of(c->param[1]));
    if (c->final == 'R' && c->param[0] > 0 && c->param[1] > 0)
        return (struct key){ .code = K_PLACE,
                             .mods = mods_of(c->param[1]),
                             .value = { c->param[0], c->param[1] } };
    struct key k = { .code = letter_key(c->final), .mods = mods_of(c->param[1]) };
    if (c->final == 'Z')
        k.mods |= MOD_SHIFT;
    return k;
}

/* Parameters and intermediates; returns the index of the final byte, or n. */
static size_t parse_params(const char *s, size_t n, struct csi *c)
{
    size_t i = 2;
    int field = 0, *value = &c->param[0];
    if (i < n && s[i] >= '<' && s[i] <= '?')
        c->private = s[i++];
    for (; i < n && s[i] >= 0x20 && s[i] <= 0x3F; i++) {
        if (s[i] >= '0' && s[i] <= '9') {
            if (*value < 1000000)
                *value = *value * 10 + (s[i] - '0');
        } else if (s[i] == ';' && field + 1 < PARAMS_MAX) {
            value = &c->param[++field];
        } else if (s[i] == ':') {
            value = &c->sub[field];
        } else if (s[i] < 0x30) {
            c->intermediate = s[i];
        }
    }
    return i;
}

size_t csi_parse(const char *s, size_t n, struct key *out)
{
    struct csi c = { 0 };
    *out = (struct key){ .code = K_NONE };
    if (s[1] == 'O' || (n > 2 && s[2] == '[')) { /* ESC O x; linux: ESC [ [ x */
        size_t at = s[1] == 'O' ? 2 : 3;
        if (n <= at)
            return 0;
        if (s[1] != 'O')
            out->code =
                s[3] >= 'A' && s[3] <= 'E' ? (enum key_code)(K_F1 + s[3] - 'A') : K_NONE;
        else
            out->code = letter_key(s[2]);
        return at + 1;
    }
    size_t i = parse_params(s, n, &c);
    if (i == n)
        return n > BYTES_MAX ? n : 0;
    if (s[i] < 0x40 || s[i] == 0x7F) /* a control or a stray byte cuts it off */
        return i;
    if (s[i] == 'M' && i == 2) /* mouse report of old: three raw bytes follow */
        return n >= 6 ? 6 : 0;
    c.final = s[i];
    if (c.final == '^') { /* rxvt: Ctrl with a function key */
        c.final = '~';
        c.param[1] = 5;
    }
    *out = meaning(&c);
    return i + 1;
}
