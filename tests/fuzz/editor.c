/* editor.c - any keystrokes in the input box: the text stays whole, and undo
 * leads back. Input: operations of one byte, text where one needs it. */
#include "tests/fuzz/fuzz.h"

#include "base/sanitize.h"
#include "base/utf8.h"
#include "ui/input.h"

const unsigned fuzz_rounds = 4000;
const size_t fuzz_max_bytes = 1 << 11;

static void check(const struct editor *e)
{
    const char *s = buf_cstr(&e->text);
    MUST(strlen(s) == e->text.len && utf8_valid(s, e->text.len));
    MUST(e->cursor <= e->text.len);
    MUST(e->cursor == e->text.len || ((unsigned char)s[e->cursor] & 0xc0) != 0x80);
    MUST(e->n_done <= e->n_edits && e->n_edits <= EDITOR_UNDO_MAX);
    MUST(e->history_at <= e->n_history);
}

/* Text as a paste or a key brings it: sanitised elsewhere, but whole UTF-8. */
static void insert(struct editor *e, struct input_bytes *in, size_t most)
{
    struct buf clean = BUF_INIT;
    size_t n;
    const char *s = take_text(in, take(in) % most, &n);
    sanitize(&clean, s, n);
    editor_insert(e, buf_cstr(&clean), clean.len);
    buf_release(&clean);
}

static void draw(struct input *box, const struct editor *e, int rows, int cols)
{
    struct screen s = { 0 };
    screen_resize(&s, rows, cols);
    MUST(input_rows(e, "> ", cols, 50) <= 50);
    input_draw(box, e, "> ", &s, (struct rect){ 0, 0, rows, cols });
    MUST(!s.cursor_shown || (s.cursor_row < rows && s.cursor_col <= cols));
    screen_release(&s);
}

static void step(struct editor *e, struct input *box, struct input_bytes *in)
{
    unsigned op = take(in), motion = op >> 5;
    int cols = 1 + (int)(op % 40);
    switch (op & 15) {
    case 0:
    case 1:
    case 2:
        insert(e, in, 5);
        break;
    case 3:
        insert(e, in, 120);
        break;
    case 4:
        editor_move(e, (enum motion)motion);
        break;
    case 5:
        editor_erase(e, (enum motion)motion);
        break;
    case 6:
        editor_kill(e, (enum motion)motion);
        break;
    case 7:
        editor_yank(e);
        break;
    case 8:
        editor_undo(e);
        break;
    case 9:
        editor_redo(e);
        break;
    case 10:
        editor_remember(e, buf_cstr(&e->text));
        break;
    case 11:
        editor_history(e, op & 16 ? 1 : -1);
        break;
    case 12:
        input_move_row(e, "> ", cols, op & 16 ? 1 : -1);
        break;
    case 13:
        editor_set(e, op & 16 ? "" : "set by the program\nof two lines");
        break;
    default:
        draw(box, e, (int)motion, cols);
    }
    check(e);
}

/* All the way back, and forth again. */
static void undo_and_redo(struct editor *e)
{
    struct buf before = BUF_INIT;
    size_t n = 0;
    buf_str(&before, buf_cstr(&e->text));
    for (; editor_undo(e); n++)
        check(e);
    for (; n && editor_redo(e); n--)
        check(e);
    MUST(n == 0 && !strcmp(buf_cstr(&before), buf_cstr(&e->text)));
    buf_release(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input_bytes in = { data, size };
    struct input box = { 0 };
    struct editor e;
    editor_init(&e);
    while (in.n)
        step(&e, &box, &in);
    undo_and_redo(&e);
    editor_release(&e);
    return 0;
}
