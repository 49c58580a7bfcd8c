/* split.c - sampled ids to answer and reasoning. Input: two bytes an id, the
 * upper values being <think>, </think> and the end of a submit. */
#include "tests/fuzz/fuzz.h"

#include "app/split.h"
#include "base/utf8.h"

const unsigned fuzz_rounds = 2500;
const size_t fuzz_max_bytes = 1 << 12;

enum { THINK = 0xfff0, END_THINK, SUBMIT };

static struct model *the_model(void)
{
    static struct model *m;
    struct err err;
    if (!m)
        MUST(model_open(&m, "assets/tern-mini.gguf", &err) == 0);
    return m;
}

static void check(const struct buf *b)
{
    MUST(utf8_valid(buf_cstr(b), b->len) && strlen(buf_cstr(b)) == b->len);
}

static void move(struct buf *from, struct buf *to)
{
    check(from);
    buf_add(to, buf_cstr(from), from->len);
    buf_truncate(from, 0);
}

/* The same ids, handed over after each submit or only at the end. */
static void split(struct input_bytes in, bool pieces, struct buf *text,
                  struct buf *thinking)
{
    const struct model *m = the_model();
    struct buf part = BUF_INIT, part_thinking = BUF_INIT;
    struct splitter s;
    const int32_t header[] = { 1, take(&in) & 1 ? model_think_begin(m) : 2 };
    splitter_init(&s, m, header, 2);
    while (in.n) {
        unsigned id = take16(&in);
        if (id == SUBMIT) {
            if (pieces) {
                move(&part, text);
                move(&part_thinking, thinking);
            }
            continue;
        }
        int32_t t = id == THINK       ? model_think_begin(m)
                    : id == END_THINK ? model_think_end(m)
                                      : (int32_t)(id % 8300);
        splitter_add(&s, t, &part, &part_thinking);
    }
    splitter_end(&s, &part, &part_thinking);
    move(&part, text);
    move(&part_thinking, thinking);
    splitter_release(&s);
    buf_release(&part);
    buf_release(&part_thinking);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text[2] = { BUF_INIT, BUF_INIT }, thinking[2] = { BUF_INIT, BUF_INIT };
    for (int i = 0; i < 2; i++)
        split((struct input_bytes){ data, size }, i, &text[i], &thinking[i]);
    MUST(!strcmp(buf_cstr(&text[0]), buf_cstr(&text[1])));
    MUST(!strcmp(buf_cstr(&thinking[0]), buf_cstr(&thinking[1])));
    for (int i = 0; i < 2; i++) {
        buf_release(&text[i]);
        buf_release(&thinking[i]);
    }
    return 0;
}
