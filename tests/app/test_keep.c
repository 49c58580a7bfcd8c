/* test_keep.c - folders of kept timelines: what goes, what never goes. */
#include "app/keep.h"
#include "base/buf.h"
#include "base/file.h"

#include "tests/test.h"

#include <sys/stat.h>

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

static void put(const char *name)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct err err;
    buf_printf(&path, "%s/%s", root, name);
    buf_str(&text, "rows");
    REQUIRE(file_mkdirs_above(buf_cstr(&path), 0700, &err) == 0);
    REQUIRE(file_write_atomic(buf_cstr(&path), text.v, text.len, &err) == 0);
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
    put("7/a.kv");
    put("7/a-1.state");
    put("8/a.kv");
    CHECK(keep_remove(root, 7, &err) == 0);
    CHECK(!there("7") && there("8/a.kv"));
    CHECK(keep_remove(root, 7, &err) == 0);
    /* A folder with something that is not ours stays, and says so. */
    put("9/sub/file");
    put("9/a.kv");
    struct keep_files files = keep_files(root, 9);
    CHECK(files.n == 1 && !strcmp(files.names[0], "a.kv"));
    keep_files_release(&files);
    CHECK(keep_remove(root, 9, &err) < 0 && strstr(err.text, "/9"));
    CHECK(there("9/sub/file"));
    CHECK(keep_remove("/nonexistent", 7, &err) == 0);
    root_remove();
}

static void test_links(void)
{
    char target[128], link[128];
    struct err err;
    root_make();
    put("outside/precious");
    snprintf(target, sizeof target, "%s/outside", root);
    snprintf(link, sizeof link, "%s/6", root);
    REQUIRE(symlink(target, link) == 0);
    CHECK(keep_remove(root, 6, &err) < 0);
    CHECK(there("outside/precious"));
    put("7/a.kv");
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

TEST_MAIN(T(test_remove), T(test_links), T(test_names))
