/* test.h - checks, and a main that runs each test in a child process, so that
 * a crash or a hang fails one test. Prints "ok NAME", "not ok NAME" or
 * "skip NAME: why"; tests/run.sh adds them up.
 *     static void test_x(void) { CHECK(1 + 1 == 2); }
 *     TEST_MAIN(T(test_x), T(test_y)) */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include "base/fault.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_SKIPPED 77
#ifndef TEST_SECONDS
#define TEST_SECONDS 240 /* a test that takes longer has failed */
#endif

static int test_failures;

#define CHECK(cond)                                                            \
    do {                                                                       \
        if (!(cond)) {                                                         \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);                \
            test_failures++;                                                   \
        }                                                                      \
    } while (0)

/* A check whose failure makes the rest of the test pointless. */
#define REQUIRE(cond)                                                          \
    do {                                                                       \
        if (!(cond)) {                                                         \
            printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);                \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

#define CHECK_STR(got, want)                                                   \
    do {                                                                       \
        const char *g_ = (got), *w_ = (want);                                  \
        if (strcmp(g_, w_)) {                                                  \
            printf("# %s:%d: got \"%s\", want \"%s\"\n", __FILE__, __LINE__,   \
                   g_, w_);                                                    \
            test_failures++;                                                   \
        }                                                                      \
    } while (0)

/* A figure for the end of the whole run, see tests/run.sh. */
#define COUNT(what, n) printf("# count %s %llu\n", what, (unsigned long long)(n))

#define SKIP(why)                                                              \
    do {                                                                       \
        printf("# skipped: %s\n", why);                                        \
        exit(TEST_SKIPPED);                                                    \
    } while (0)

struct test_case {
    const char *name;
    void (*run)(void);
};

#define T(f) { #f, f }

static inline int test_child(const struct test_case *t)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(TEST_SECONDS);
        t->run();
        if (fault_count())
            COUNT("faults", fault_count());
        exit(test_failures ? 1 : 0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 1;
    if (WIFSIGNALED(status)) {
        printf("# killed by signal %d\n", WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status);
}

static inline int test_run(const struct test_case *tests, size_t n, int argc, char **argv)
{
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (argc > 1 && !strstr(tests[i].name, argv[1]))
            continue;
        int rc = test_child(&tests[i]);
        printf("%s %s\n", rc == 0 ? "ok" : rc == TEST_SKIPPED ? "skip" : "not ok",
               tests[i].name);
        failed += rc != 0 && rc != TEST_SKIPPED;
    }
    return failed ? 1 : 0;
}

#define TEST_MAIN(...)                                                         \
    int main(int argc, char **argv)                                            \
    {                                                                          \
        static const struct test_case tests[] = { __VA_ARGS__ };               \
        return test_run(tests, sizeof tests / sizeof *tests, argc, argv);      \
    }

#endif
