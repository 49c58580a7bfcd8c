/* test_parallel.c - every item of a parallel loop is visited once. */
#include "engine/parallel.h"
#include "tests/test.h"

#include <stdatomic.h>

enum { MOST = 1000 };

struct visits {
    atomic_uint n[MOST];
    atomic_uint calls;
};

static void visit(void *arg, uint32_t first, uint32_t end)
{
    struct visits *v = arg;
    atomic_fetch_add(&v->calls, 1);
    for (uint32_t i = first; i < end; i++)
        atomic_fetch_add(&v->n[i], 1);
}

static void test_each_item_once(void)
{
    static const uint32_t sizes[] = { 0, 1, 2, 3, 31, 33, 100, 999, MOST };
    static const uint32_t leasts[] = { 0, 1, 7, 500, 5000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t l = 0; l < sizeof leasts / sizeof *leasts; l++) {
            struct visits v = { .calls = 0 };
            parallel_for(sizes[s], leasts[l], visit, &v);
            for (uint32_t i = 0; i < MOST; i++)
                CHECK(v.n[i] == (i < sizes[s]));
            CHECK(v.calls >= 1 && (leasts[l] <= sizes[s] || v.calls == 1));
        }
}

TEST_MAIN(T(test_each_item_once))
