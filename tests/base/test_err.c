/* test_err.c - reasons stay whole when names are long, and on one line. */
#include "base/err.h"

#include "tests/test.h"

static void test_set(void)
{
    struct err err;
    CHECK(err_set(&err, "%s: %d of %d", "name", 1, 2) == -1);
    CHECK_STR(err.text, "name: 1 of 2");
    CHECK(err_set(NULL, "nobody asks") == -1 && err_prefix(NULL, "nobody") == -1);
    err_set(&err, "%s, again", err.text);
    CHECK_STR(err.text, "name: 1 of 2, again");
    err_prefix(&err, "file %d", 7);
    CHECK_STR(err.text, "file 7: name: 1 of 2, again");
    err_prefix(&err, "%s", "");
    CHECK_STR(err.text, "file 7: name: 1 of 2, again");
}

/* Every length about that of the text: whole, or begun and ended as it was. */
static void test_long_names(void)
{
    char name[20000];
    struct err err, other;
    for (size_t n = 1; n < sizeof name; n += n < 1200 ? 1 : 997) {
        memset(name, 'x', n);
        name[0] = '/';
        name[n - 1] = n > 1 ? 'y' : '/';
        name[n] = 0;
        err_set(&err, "%s: cannot be opened: No such file", name);
        err_set(&other, "cannot be opened: No such file");
        err_prefix(&other, "%s", name);
        size_t len = strlen(err.text);
        CHECK(len < sizeof err.text && err.text[0] == '/');
        if (n < 8000) {
            const char *end = strstr(err.text, "y: cannot be opened: No such file");
            CHECK(n < 2 || (end && strlen(end) == 33));
            CHECK_STR(other.text, err.text);
        }
        CHECK(strstr(other.text, ": cannot be opened: No such file"));
        if (n + 32 < sizeof err.text)
            CHECK(len == n + 32 && !strstr(err.text, "..."));
        else
            CHECK(len == sizeof err.text - 1 && strstr(err.text, "x..."));
    }
}

static void test_one_line(void)
{
    struct err err;
    err_set(&err, "%s: is a directory", "a\nb\r\nc");
    CHECK_STR(err.text, "a b  c: is a directory");
    err_prefix(&err, "%s", "\n");
    CHECK(!strchr(err.text, '\n'));
}

TEST_MAIN(T(test_set), T(test_long_names), T(test_one_line))
