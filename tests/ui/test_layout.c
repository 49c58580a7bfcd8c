/* test_layout.c - every small size: parts inside the screen, none overlapping. */
#include "ui/layout.h"

#include "tests/test.h"

static void mark(char *map, int rows, int cols, struct rect r)
{
    REQUIRE(r.rows >= 0 && r.cols >= 0 && r.row >= 0 && r.col >= 0);
    REQUIRE(r.rows == 0 || (r.row + r.rows <= rows && r.col + r.cols <= cols));
    for (int y = r.row; y < r.row + r.rows; y++)
        for (int x = r.col; x < r.col + r.cols; x++)
            REQUIRE(map[y * cols + x]++ == 0);
}

static void test_every_size(void)
{
    for (int rows = 0; rows <= 30; rows++) {
        for (int cols = 0; cols <= 90; cols++) {
            for (int want = 0; want < 12; want += 3) {
                struct layout l = layout_compute(rows, cols, want);
                char *map = calloc((size_t)rows * (size_t)cols + 1, 1);
                mark(map, rows, cols, l.title);
                mark(map, rows, cols, l.body);
                mark(map, rows, cols, l.rule);
                mark(map, rows, cols, l.input);
                mark(map, rows, cols, l.status);
                CHECK(l.tiny == (rows < 5 || cols < 20));
                if (l.tiny) {
                    CHECK(l.body.rows == 0 && l.status.rows == (rows > 0));
                } else {
                    CHECK(l.body.rows >= 1 && l.input.rows >= 1 && l.status.rows == 1);
                    CHECK(l.input.rows <= rows / 3);
                    for (int i = 0; i < rows * cols; i++)
                        REQUIRE(map[i] == 1); /* nothing left over */
                }
                free(map);
            }
        }
    }
}

static void test_usual_size(void)
{
    struct layout l = layout_compute(24, 80, 1);
    CHECK(l.title.rows == 1 && l.body.row == 1 && l.body.rows == 20);
    CHECK(l.rule.row == 21 && l.input.row == 22 && l.status.row == 23);
    l = layout_compute(24, 80, 100);
    CHECK(l.input.rows == 8 && l.body.rows == 13);
    l = layout_compute(-3, -1, 1);
    CHECK(l.tiny && l.status.rows == 0);
}

TEST_MAIN(T(test_every_size), T(test_usual_size))
