/* keys.c - bytes from a terminal, in any pieces and with any pauses. Input: for
 * each piece its length, the pause after it, the bytes. */
#include "tests/fuzz/fuzz.h"

#include "base/utf8.h"
#include "ui/decode.h"
#include "ui/keys.h"

const unsigned fuzz_rounds = 4000;
const size_t fuzz_max_bytes = 1 << 11;

static const struct keymap *the_keys(void)
{
    static struct keymap m;
    if (!m.n)
        keymap_init(&m);
    return &m;
}

static void check_key(const struct key *k, const struct decoder *d)
{
    MUST(k->code >= K_NONE && k->code <= K_PLACE);
    MUST((k->mods & ~(unsigned)(MOD_SHIFT | MOD_ALT | MOD_CTRL)) == 0);
    if (k->code == K_CHAR)
        MUST(k->cp >= 0x20 && k->cp <= 0x10ffff && (k->cp < 0x7f || k->cp >= 0xa0));
    if (k->code == K_PASTE) {
        const char *s = buf_cstr(&d->paste);
        MUST(d->paste.len <= PASTE_BYTES_MAX && strlen(s) == d->paste.len);
        MUST(utf8_valid(s, d->paste.len));
        for (; *s; s++)
            MUST((unsigned char)*s >= ' ' || *s == '\n' || *s == '\t');
    }
    for (unsigned place = IN_CHAT; place <= IN_FIND; place <<= 1)
        MUST(keymap_action(the_keys(), k, (enum key_place)place) < ACT_COUNT);
}

static size_t drain(struct decoder *d, int64_t now)
{
    struct key k;
    size_t n = 0;
    for (; decode_next(d, now, &k); n++)
        check_key(&k, d);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int pauses[] = { 0,
                                  0,
                                  1,
                                  PASTE_TAIL_MS,
                                  ESC_WAIT_MS,
                                  ESC_WAIT_MS + 1,
                                  PASTE_WAIT_MS,
                                  PASTE_WAIT_MS + 1 };
    struct input_bytes in = { data, size };
    struct decoder d = { 0 };
    int64_t now = 1000;
    size_t keys = 0;
    while (in.n) {
        size_t n, length = 1 + take(&in) % 64;
        int pause = pauses[take(&in) % 8];
        const char *s = take_text(&in, length, &n);
        decode_feed(&d, s, n, now);
        keys += drain(&d, now);
        MUST(decode_timeout_ms(&d, now) >= -1);
        now += pause;
        keys += drain(&d, now);
    }
    for (int i = 0; i < 4; i++) /* silence settles everything */
        keys += drain(&d, now += PASTE_WAIT_MS);
    MUST(decode_timeout_ms(&d, now) == -1 && keys <= size);
    decode_release(&d);
    return 0;
}
