/* test_decode.c - keys from bytes in any pieces, and pastes that must not turn
 * into key presses. */
#include "ui/decode.h"

#include "base/utf8.h"
#include "tests/test.h"

/* Decodes s, given `step` bytes at a time; names the keys in a string. */
static void name_key(struct buf *out, const struct key *k, const struct decoder *d)
{
    static const char *const names[] = {
        "none",    "char",      "Enter", "Tab",  "BS",    "Esc",   "Up",
        "Down",    "Left",      "Right", "Home", "End",   "PgUp",  "PgDn",
        "Ins",     "Del",       "F1",    "F2",   "F3",    "F4",    "F5",
        "F6",      "F7",        "F8",    "F9",   "F10",   "F11",   "F12",
        "WheelUp", "WheelDown", "Click", "Paste", "Mode",  "Kitty", "Place",
    };
    buf_printf(out, "%s%s%s%s", out->len ? " " : "", k->mods & MOD_CTRL ? "C-" : "",
               k->mods & MOD_ALT ? "A-" : "", k->mods & MOD_SHIFT ? "S-" : "");
    if (k->code == K_CHAR) {
        char s[4];
        buf_add(out, s, utf8_encode(k->cp, s));
    } else if (k->code == K_PASTE) {
        buf_printf(out, "Paste(%s)", buf_cstr(&d->paste));
    } else {
        buf_str(out, names[k->code]);
    }
}

static void drain(struct decoder *d, int64_t now, struct buf *out)
{
    struct key k;
    while (decode_next(d, now, &k))
        name_key(out, &k, d);
}

static void decode_in_steps(const char *s, size_t step, const char *want)
{
    struct decoder d = { 0 };
    struct buf got = BUF_INIT;
    int64_t now = 1000;
    for (size_t i = 0, n = strlen(s); i < n; i += step) {
        decode_feed(&d, s + i, n - i < step ? n - i : step, now);
        drain(&d, now, &got);
    }
    for (int i = 0; i < 3; i++) { /* time passes: what waits is settled */
        now += PASTE_WAIT_MS;
        drain(&d, now, &got);
    }
    CHECK(decode_timeout_ms(&d, now) == -1);
    CHECK_STR(buf_cstr(&got), want);
    buf_release(&got);
    decode_release(&d);
}

static void decode(const char *s, const char *want)
{
    decode_in_steps(s, strlen(s), want);
    decode_in_steps(s, 1, want);
    decode_in_steps(s, 2, want);
    decode_in_steps(s, 3, want);
}

static void test_text(void)
{
    decode("aB1", "a B 1");
    decode("\xC3\xA4\xE4\xBD\xA0\xF0\x9F\x98\x80",
           "\xC3\xA4 \xE4\xBD\xA0 \xF0\x9F\x98\x80");
    decode("a\xFF\xC3z", "a z"); /* bytes that are no text are dropped */
    decode("\xC2\x9B"
           "A",
           "A");
}

static void test_controls(void)
{
    decode("\r\n\t\x7f\x08", "Enter C-j Tab BS BS");
    decode("\x01\x03\x1a\x1f\x1d", "C-a C-c C-z C-_ C-]");
}

static void test_newlines(void)
{
    decode("\x0a", "C-j");
    decode("\x1b\r", "A-Enter");
    decode("\x1b[13;2u", "S-Enter");
    decode("\x1b[13;2~", "S-Enter");
    decode("\x1b[27;2;13~", "S-Enter");
    decode("\x1b[27;5;13~", "C-Enter");
    decode("\x1b[13u", "Enter");
    decode("\x1bOM", "Enter");
}

static void test_keys(void)
{
    decode("\x1b[A\x1bOB\x1b[1;5C\x1b[1;3D", "Up Down C-Right A-Left");
    decode("\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[7~\x1b[8~", "Home End Home End Home End");
    decode("\x1b[5~\x1b[6~\x1b[3~\x1b[2~\x1b[3;5~", "PgUp PgDn Del Ins C-Del");
    decode("\x1bOP\x1b[11~\x1b[[A\x1b[15~\x1b[24~\x1b[1;2P", "F1 F1 F1 F5 F12 S-F1");
    decode("\x1b[13~", "F3");
    decode("\x1b[Z", "S-Tab");
    decode("\x1b[5^", "C-PgUp");
    decode("\x1b"
           "b\x1b\x7f\x1b\xC3\xA4",
           "A-b A-BS A-\xC3\xA4");
    decode("\x1b[99;5u\x1b[27u\x1b[97;3u\x1b[67;5u", "C-c Esc A-a C-c");
    decode("\x1b[97;1:3u\x1b[97;1:1u", "a"); /* a release is no key */
    decode("\x1b[57441u", "");
}

static void test_escape(void)
{
    decode_in_steps("\x1b", 1, "Esc");
    decode("\x1b\x1b", "Esc Esc");
    decode("\x1b\x13", "Esc C-s");
    decode("\x1b\x1b[A", "Esc Up");
    decode("\x1b[", "A-[");
    decode("\x1b[12;", "");      /* cut off: nothing of it is typed */
    decode("\x1b[1\x03", "C-c"); /* a control ends a sequence */
    decode("\x1b[99999999999999999999A", "Up");
    struct decoder d = { 0 };
    struct key k;
    decode_feed(&d, "\x1b", 1, 100);
    CHECK(!decode_next(&d, 100, &k));
    CHECK(decode_timeout_ms(&d, 100) == ESC_WAIT_MS);
    CHECK(!decode_next(&d, 100 + ESC_WAIT_MS - 1, &k));
    decode_feed(&d, "[A", 2, 120); /* the rest came in time */
    CHECK(decode_next(&d, 120, &k) && k.code == K_UP);
    decode_release(&d);
}

static void test_mouse_and_answers(void)
{
    decode("\x1b[<64;10;5M\x1b[<65;1;1M\x1b[<0;1;1M\x1b[<0;1;1m", "WheelUp WheelDown Click");
    decode("\x1b[M !!x", "x");
    decode("\x1b[?2026;2$y\x1b[?1u\x1b[1;3R", "Mode Kitty A-Place");
    decode("\x1b[?62;22c\x1b[I\x1b[O", "");
    struct decoder d = { 0 };
    struct key k;
    decode_feed(&d, "\x1b[?2026;2$y", 11, 0);
    CHECK(decode_next(&d, 0, &k) && k.value[0] == 2026 && k.value[1] == 2);
    decode_release(&d);
}

static void test_paste(void)
{
    decode("\x1b[200~a\nb\r\nc\rd\te\x1b[201~", "Paste(a\nb\nc\nd\te)");
    decode("x\x1b[200~\x1b[201~y", "x Paste() y");
    decode("\x1b[200~\x1b]52;c;x\x07\x1b[31m\x9b\xC2\x9b\x7f!\x1b[201~",
           "Paste(]52;c;x[31m!)");
    decode("\x1b[200~one\x1b[201~\x1b[200~two\x1b[201~", "Paste(one) Paste(two)");
    decode("\x1b[200~never ends", "Paste(never ends)");
    decode("\x1b[200~x\x1b[20", "Paste(x)"); /* half a mark is no text */
    decode("\x1b[201~a", "a");               /* a stray end mark */
    decode("\x1b[200~\xE4\xBD\xA0\xFF\x1b[201~", "Paste(\xE4\xBD\xA0)");
}

/* Pasted text that holds an end mark must not press Enter with what follows. */
static void test_nested_end_mark(void)
{
    decode("\x1b[200~a\x1b[201~\rrm -rf\r\x1b[201~", "Paste(a\nrm -rf\n)");
    decode("\x1b[200~a\x1b[201~\r", "Paste(a) Enter"); /* typed after a paste */
    struct decoder d = { 0 };
    struct buf got = BUF_INIT, in = BUF_INIT;
    int64_t now = 0;
    buf_str(&in, "\x1b[200~");
    for (int i = 0; i < 3000; i++)
        buf_printf(&in, "line %d\x1b[201~ more \x1b]52;c;eA==\x07\t\r", i);
    buf_str(&in, "\x1b[201~");
    for (size_t i = 0; i < in.len; i += 4095) {
        decode_feed(&d, in.v + i, in.len - i < 4095 ? in.len - i : 4095, now);
        struct key k;
        REQUIRE(!decode_next(&d, now, &k));
        now += 2;
    }
    now += PASTE_TAIL_MS;
    struct key k;
    REQUIRE(decode_next(&d, now, &k) && k.code == K_PASTE);
    size_t lines = 0;
    for (size_t i = 0; i < d.paste.len; i++)
        lines += d.paste.v[i] == '\n';
    CHECK(lines == 3000);
    CHECK(!memchr(d.paste.v, 0x1b, d.paste.len));
    CHECK(!decode_next(&d, now, &k));
    buf_release(&in);
    buf_release(&got);
    decode_release(&d);
}

static void test_paste_limit(void)
{
    struct decoder d = { 0 };
    struct key k;
    size_t n = PASTE_BYTES_MAX + 1000;
    char *big = malloc(n);
    memset(big, 'x', n);
    decode_feed(&d, "\x1b[200~", 6, 0);
    decode_feed(&d, big, n, 0);
    decode_feed(&d, "\x1b[201~", 6, 0);
    REQUIRE(!decode_next(&d, 0, &k));
    REQUIRE(decode_next(&d, PASTE_TAIL_MS, &k) && k.code == K_PASTE);
    CHECK(d.paste_cut && d.paste.len == PASTE_BYTES_MAX);
    decode_feed(&d, "\x1b[200~ok\x1b[201~", 14, 100);
    CHECK(!decode_next(&d, 100, &k));
    CHECK(decode_next(&d, 200, &k) && !d.paste_cut && d.paste.len == 2);
    free(big);
    decode_release(&d);
}

/* Random bytes never yield a control character as text, and never hang. */
static void test_random(void)
{
    static const char spice[] = "\x1b[]O~;2013u?<$yRM\x1b\x1b\r\n\xC2\xE4";
    uint32_t seed = 9;
    for (int round = 0; round < 20000; round++) {
        struct decoder d = { 0 };
        struct key k;
        char s[40];
        for (size_t i = 0; i < sizeof s; i++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t r = seed >> 8;
            s[i] = r & 3 ? spice[(r >> 4) % (sizeof spice - 1)] : (char)(r >> 4);
        }
        for (size_t i = 0; i < sizeof s; i += 8) {
            decode_feed(&d, s + i, 8, (int64_t)i);
            while (decode_next(&d, (int64_t)i, &k))
                REQUIRE(k.code != K_CHAR ||
                        (k.cp >= 0x20 && !(k.cp >= 0x7F && k.cp < 0xA0)));
        }
        for (int i = 1; i < 4; i++)
            while (decode_next(&d, i * 10000, &k))
                REQUIRE(k.code != K_NONE);
        REQUIRE(decode_timeout_ms(&d, 50000) == -1);
        decode_release(&d);
    }
}

TEST_MAIN(T(test_text), T(test_controls), T(test_newlines), T(test_keys), T(test_escape),
          T(test_mouse_and_answers), T(test_paste), T(test_nested_end_mark),
          T(test_paste_limit), T(test_random))
