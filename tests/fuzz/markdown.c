/* markdown.c - a message to cells: the same whatever way it came, and nothing
 * in a cell that a terminal would obey. Input: a width, how it is cut, the text. */
#include "tests/fuzz/fuzz.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/markdown.h"

const unsigned fuzz_rounds = 800;
const size_t fuzz_max_bytes = 1 << 13;

static void check_cells(const struct screen *s)
{
    for (int i = 0; i < s->rows * s->cols; i++) {
        const struct cell *c = &s->cells[i];
        uint32_t cp;
        MUST(c->len <= CELL_BYTES && c->width <= 2 && utf8_valid(c->bytes, c->len));
        for (size_t at = 0; at < c->len;) {
            at += utf8_decode(c->bytes + at, c->len - at, &cp);
            MUST(sanitize_allows(cp));
        }
    }
}

static void draw(struct markdown *md, int width, struct buf *out)
{
    struct screen s = { 0 };
    size_t n = text_wrap(&md->text, width);
    int rows = n < SCREEN_ROWS_MAX ? (int)n : SCREEN_ROWS_MAX;
    screen_resize(&s, rows, width);
    for (int i = 0; i < rows; i++)
        text_draw(&md->text, (size_t)i, &s, span(i, 0, width));
    check_cells(&s);
    for (size_t i = 0; i < n; i++) {
        size_t pos = text_line_pos(&md->text, i);
        MUST(text_line_pos(&md->text, text_line_at(&md->text, pos)) == pos);
    }
    screen_dump(&s, out);
    screen_dump_styles(&s, out);
    screen_release(&s);
}

static void feed_all(const char *text, size_t n, size_t step, bool plain, int width,
                     struct buf *out)
{
    struct markdown md = { .plain = plain };
    for (size_t at = step; at < n; at += step) {
        markdown_feed(&md, text, at, false);
        if (at % 7 == 0)
            text_wrap(&md.text, width);
    }
    markdown_feed(&md, text, n, true);
    draw(&md, width, out);
    markdown_release(&md);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input_bytes in = { data, size };
    int width = 1 + (int)(take(&in) % 100);
    unsigned how = take(&in);
    struct buf whole = BUF_INIT, pieces = BUF_INIT;
    const char *text = (const char *)in.v;
    feed_all(text, in.n, in.n + 1, how & 1, width, &whole);
    feed_all(text, in.n, 1 + (how >> 1) % 61, how & 1, width, &pieces);
    MUST(!strcmp(buf_cstr(&whole), buf_cstr(&pieces)));
    buf_release(&whole);
    buf_release(&pieces);
    return 0;
}
