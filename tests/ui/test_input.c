/* test_input.c - the input box: wrapping, scrolling, the cursor's place. */
#include "ui/input.h"

#include "tests/test.h"

#define NI     "\xE4\xBD\xA0"
#define FAMILY "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"

struct box {
    struct editor e;
    struct input in;
    struct screen s;
    int rows, cols;
};

static void begin(struct box *b, int rows, int cols, const char *text)
{
    *b = (struct box){ .rows = rows, .cols = cols };
    editor_init(&b->e);
    editor_set(&b->e, text);
}

static void end(struct box *b)
{
    editor_release(&b->e);
    screen_release(&b->s);
}

static void check(struct box *b, const char *want, int row, int col)
{
    struct buf got = BUF_INIT;
    screen_resize(&b->s, b->rows, b->cols);
    input_draw(&b->in, &b->e, "> ", &b->s, (struct rect){ 0, 0, b->rows, b->cols });
    screen_dump(&b->s, &got);
    CHECK_STR(buf_cstr(&got), want);
    CHECK(b->s.cursor_shown && b->s.cursor_row == row && b->s.cursor_col == col);
    buf_release(&got);
}

static void test_rows(void)
{
    struct box b;
    begin(&b, 4, 10, "abcdefghij\n\nx");
    CHECK(input_rows(&b.e, "> ", 10, 99) == 4);
    CHECK(input_rows(&b.e, "> ", 10, 3) == 3);
    check(&b, "> abcdefg\n  hij\n\n  x\n", 3, 3);
    b.e.cursor = 7; /* where the row is full, the cursor is on the next one */
    check(&b, "> abcdefg\n  hij\n\n  x\n", 1, 2);
    b.e.cursor = 10;
    check(&b, "> abcdefg\n  hij\n\n  x\n", 1, 5);
    b.e.cursor = 11;
    check(&b, "> abcdefg\n  hij\n\n  x\n", 2, 2);
    end(&b);
    begin(&b, 2, 10, "abcdefg"); /* a full row leaves room for the cursor */
    check(&b, "> abcdefg\n\n", 0, 9);
    end(&b);
}

static void test_wide_and_hidden(void)
{
    struct box b;
    begin(&b, 3, 8, "ab" NI FAMILY NI);
    check(&b, "> ab" NI "\n  " FAMILY NI "\n\n", 1, 6);
    end(&b);
    begin(&b, 2, 20, "a\x1b[2J\xE2\x80\xAE\tb\xFF");
    check(&b, "> a\\x1b[2J\\u{202e}\n      b\\xff\n", 1, 11);
    end(&b);
    begin(&b, 1, 20, "\tx\ty");
    check(&b, ">     x   y\n", 0, 11);
    end(&b);
}

static void test_scrolling(void)
{
    struct box b;
    begin(&b, 3, 10, "1\n2\n3\n4\n5\n6");
    check(&b, "> 4\n  5\n  6\n", 2, 3);
    for (int i = 0; i < 2; i++)
        CHECK(input_move_row(&b.e, "> ", 10, -1));
    check(&b, "> 4\n  5\n  6\n", 0, 3); /* no need to scroll yet */
    input_move_row(&b.e, "> ", 10, -1);
    check(&b, "> 3\n  4\n  5\n", 0, 3);
    input_move_row(&b.e, "> ", 10, 1);
    check(&b, "> 3\n  4\n  5\n", 1, 3);
    editor_set(&b.e, "");
    check(&b, ">\n\n\n", 0, 2);
    end(&b);
}

static void test_vertical_moves(void)
{
    struct box b;
    begin(&b, 9, 20, "a long line\nb\n" NI NI NI NI NI);
    b.e.cursor = 6;
    CHECK(!input_move_row(&b.e, "> ", 20, -1));
    CHECK(input_move_row(&b.e, "> ", 20, 1) && b.e.cursor == 13); /* short: its end */
    CHECK(input_move_row(&b.e, "> ", 20, 1) && b.e.cursor == 14 + 3 * 3);
    CHECK(!input_move_row(&b.e, "> ", 20, 1));
    CHECK(input_move_row(&b.e, "> ", 20, -1) && input_move_row(&b.e, "> ", 20, -1));
    CHECK(b.e.cursor == 6); /* the column is remembered */
    end(&b);
    begin(&b, 9, 10, "abcdefghijklmnop"); /* rows of one wrapped line */
    b.e.cursor = 3;
    CHECK(input_move_row(&b.e, "> ", 10, 1) && b.e.cursor == 10);
    CHECK(input_move_row(&b.e, "> ", 10, 1) && b.e.cursor == 16);
    CHECK(input_move_row(&b.e, "> ", 10, -1) && b.e.cursor == 10);
    end(&b);
}

/* Whatever is typed at whatever size: the cursor is drawn, inside the box. */
static void test_random(void)
{
    static const char *const bits[] = {
        "a", " ", "\n", NI, FAMILY, "\t", "\x1b", "word"
    };
    uint32_t seed = 23;
    for (int round = 0; round < 500; round++) {
        struct box b;
        begin(&b, 1 + round % 5, 1 + round % 23, "");
        for (int i = 0; i < 60; i++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t r = seed >> 8;
            if (r % 4 == 0)
                input_move_row(&b.e, "> ", b.cols, r & 64 ? 1 : -1);
            else if (r % 4 == 1)
                editor_move(&b.e, (enum motion)(r / 64 % 8));
            else
                editor_insert(&b.e, bits[r / 64 % 8], strlen(bits[r / 64 % 8]));
            screen_resize(&b.s, b.rows, b.cols);
            input_draw(&b.in, &b.e, "> ", &b.s, (struct rect){ 0, 0, b.rows, b.cols });
            REQUIRE(b.s.cursor_shown && b.s.cursor_row < b.rows);
            if (b.cols > 12)
                REQUIRE(b.s.cursor_col < b.cols);
        }
        end(&b);
    }
}

TEST_MAIN(T(test_rows), T(test_wide_and_hidden), T(test_scrolling),
          T(test_vertical_moves), T(test_random))
