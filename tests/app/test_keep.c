/* test_keep.c - folders of kept timelines: what goes first, what never goes. */
#include "app/keep.h"
#include "base/buf.h"
#include "base/file.h"

#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

static char root[64];

static void root_make(void)
{
    snprintf(root, sizeof root, "/tmp/tern-keep-XXXXXX");
    REQUIRE(mkdtemp(root));
}

static void root_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    CHECK(system(command) == 0);
}

/* A file of 64 KiB whose time of writing is `age` seconds ago. */
static void put(const char *name, int age)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct err err;
    buf_printf(&path, "%s/%s", root, name);
    for (int i = 0; i < 65536; i++)
        buf_char(&text, 'x');
    REQUIRE(file_mkdirs_above(buf_cstr(&path), 0700, &err) == 0);
    REQUIRE(file_write_atomic(buf_cstr(&path), text.v, text.len, &err) == 0);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct timespec times[] = { { now.tv_sec - age, 0 }, { now.tv_sec - age, 0 } };
    REQUIRE(utimensat(AT_FDCWD, buf_cstr(&path), times, 0) == 0);
    buf_release(&path);
    buf_release(&text);
}

static bool there(const char *name)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", root, name);
    return lstat(path, &st) == 0;
}

static void test_remove(void)
{
    struct err err;
    root_make();
    put("7/a.kv", 0);
    put("7/a-1.state", 0);
    put("8/a.kv", 0);
    CHECK(keep_remove(root, 7, &err) == 0);
    CHECK(!there("7") && there("8/a.kv"));
    CHECK(keep_remove(root, 7, &err) == 0);
    /* A folder with something that is not ours stays, and says so. */
    put("9/sub/file", 0);
    CHECK(keep_remove(root, 9, &err) < 0 && strstr(err.text, "/9"));
    CHECK(there("9/sub/file"));
    CHECK(keep_remove("/nonexistent", 7, &err) == 0);
    root_remove();
}

static void test_states(void)
{
    char name[32];
    root_make();
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "5/a-%d.state", i);
        put(name, 100 - i);
    }
    put("5/a.kv", 1000);
    keep_trim(root, 5, UINT64_MAX);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "5/a-%d.state", i);
        CHECK(there(name) == (i >= 10 - KEEP_STATES));
    }
    CHECK(there("5/a.kv"));
    root_remove();
}

static void test_budget(void)
{
    root_make();
    put("1/a.kv", 500);
    put("2/a.kv", 900); /* oldest, but its state is new */
    put("2/a-1.state", 10);
    put("3/a.kv", 400);
    put("4/a.kv", 5000);
    put("notes/a.kv", 9000);
    keep_trim(root, 4, UINT64_C(6) << 16);
    CHECK(there("1") && there("2") && there("3") && there("4"));
    keep_trim(root, 4, UINT64_C(5) << 16);
    CHECK(!there("1") && there("2") && there("3") && there("4"));
    keep_trim(root, 4, 0);
    CHECK(!there("2") && !there("3"));
    CHECK(there("4/a.kv") && there("notes/a.kv"));
    keep_trim("/nonexistent", 4, 0);
    root_remove();
}

static void test_links(void)
{
    char target[128], link[128];
    struct err err;
    root_make();
    put("outside/precious", 0);
    snprintf(target, sizeof target, "%s/outside", root);
    snprintf(link, sizeof link, "%s/6", root);
    REQUIRE(symlink(target, link) == 0);
    keep_trim(root, 1, 0);
    CHECK(there("outside/precious") && there("6"));
    CHECK(keep_remove(root, 6, &err) < 0);
    CHECK(there("outside/precious"));
    put("7/a.kv", 0);
    snprintf(target, sizeof target, "%s/outside/precious", root);
    snprintf(link, sizeof link, "%s/7/b.kv", root);
    REQUIRE(symlink(target, link) == 0);
    CHECK(keep_remove(root, 7, &err) < 0);
    CHECK(there("outside/precious"));
    root_remove();
}

static void test_names(void)
{
    setenv("XDG_CACHE_HOME", "/cache", 1);
    char *r = keep_root(), *f = keep_folder(r, 12);
    CHECK_STR(f, "/cache/tern/snapshots/12");
    free(f);
    free(r);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK(!keep_root());
}

TEST_MAIN(T(test_remove), T(test_states), T(test_budget), T(test_links), T(test_names))
