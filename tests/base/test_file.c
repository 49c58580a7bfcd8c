/* test_file.c - directories, XDG places, bounded reading and atomic replacing,
 * with every system call of a replacement made to fail in turn. */
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* A fresh directory that becomes the current one. */
static void scratch_enter(char dir[static 64])
{
    snprintf(dir, 64, "/tmp/test-file-XXXXXX");
    REQUIRE(mkdtemp(dir) && chdir(dir) == 0);
}

static void scratch_leave(const char *dir)
{
    char cmd[96];
    REQUIRE(chdir("/") == 0);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    REQUIRE(system(cmd) == 0);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    REQUIRE(stat(path, &st) == 0);
    return st.st_mode & 07777;
}

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(".");
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

static void check_content(const char *path, const char *want)
{
    struct buf b = BUF_INIT;
    struct err err;
    CHECK(file_read_all(path, 1 << 20, &b, &err) == 0);
    CHECK_STR(buf_cstr(&b), want);
    buf_release(&b);
}

static void test_mkdirs(void)
{
    char dir[64];
    struct err err;
    scratch_enter(dir);
    umask(022);
    CHECK(file_mkdirs("a/b//c/", 0700, &err) == 0);
    CHECK(mode_of("a") == 0700 && mode_of("a/b") == 0700 && mode_of("a/b/c") == 0700);
    CHECK(mkdir("open", 0755) == 0);
    CHECK(file_mkdirs("open/in", 0700, &err) == 0);
    CHECK(mode_of("open") == 0755); /* not ours to change */
    CHECK(mode_of("open/in") == 0700);
    CHECK(file_mkdirs("a/b/c", 0700, &err) == 0);

    umask(0777); /* would leave nothing */
    CHECK(file_mkdirs("u/v", 0700, &err) == 0);
    CHECK(mode_of("u") == 0700 && mode_of("u/v") == 0700);
    umask(022);

    CHECK(file_mkdirs_above("x/y/file", 0700, &err) == 0);
    CHECK(mode_of("x/y") == 0700 && access("x/y/file", F_OK) < 0);
    CHECK(file_mkdirs_above("file", 0700, &err) == 0);
    CHECK(file_mkdirs_above("/file", 0700, &err) == 0);
    scratch_leave(dir);
}

static void test_mkdirs_fails(void)
{
    char dir[64];
    struct err err;
    scratch_enter(dir);
    CHECK(file_write_atomic("plain", "", 0, &err) == 0);
    err.text[0] = 0;
    CHECK(file_mkdirs("plain/below", 0700, &err) < 0);
    CHECK(strstr(err.text, "plain"));
    err.text[0] = 0;
    CHECK(file_mkdirs("plain", 0700, &err) < 0);
    CHECK(strstr(err.text, strerror(ENOTDIR)));
    CHECK(file_mkdirs("", 0700, &err) < 0);
    CHECK(file_mkdirs("/proc/nowhere/x", 0700, &err) < 0);
    CHECK(strstr(err.text, "/proc/nowhere"));
    CHECK(entries() == 1);
    scratch_leave(dir);
}

static void check_xdg(enum file_kind kind, const char *rel, const char *want)
{
    struct err err = { "" };
    char *p = file_xdg(kind, rel, &err);
    CHECK_STR(p ? p : "NULL", want);
    free(p);
}

static void test_xdg(void)
{
    struct err err = { "" };
    const char *all[] = { "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
                          "XDG_STATE_HOME" };
    for (int i = 0; i < 4; i++)
        unsetenv(all[i]);
    setenv("HOME", "/h o", 1);
    check_xdg(FILE_DATA, "tern/tern.db", "/h o/.local/share/tern/tern.db");
    check_xdg(FILE_CACHE, "tern/snapshots", "/h o/.cache/tern/snapshots");
    check_xdg(FILE_CONFIG, "tern/config", "/h o/.config/tern/config");
    check_xdg(FILE_STATE, "tern/log", "/h o/.local/state/tern/log");

    setenv("XDG_STATE_HOME", "/state", 1);
    check_xdg(FILE_STATE, "tern/log", "/state/tern/log");
    setenv("XDG_STATE_HOME", "relative", 1); /* the specification: ignore it */
    check_xdg(FILE_STATE, "tern/log", "/h o/.local/state/tern/log");
    setenv("XDG_STATE_HOME", "", 1);
    check_xdg(FILE_STATE, "tern/log", "/h o/.local/state/tern/log");

    unsetenv("HOME");
    CHECK(!file_xdg(FILE_DATA, "tern/tern.db", &err));
    CHECK(strstr(err.text, "HOME") && strstr(err.text, "XDG_DATA_HOME") &&
          strstr(err.text, "tern/tern.db"));
    setenv("HOME", "not/absolute", 1);
    CHECK(!file_xdg(FILE_CONFIG, "tern/config", NULL));
    setenv("XDG_CONFIG_HOME", "/c", 1);
    check_xdg(FILE_CONFIG, "tern/config", "/c/tern/config");
}

static void test_read_limit(void)
{
    char dir[64];
    struct err err;
    struct buf b = BUF_INIT;
    scratch_enter(dir);
    char *big = mem_zalloc(100000);
    for (int i = 0; i < 100000; i++)
        big[i] = (char)(i * 7);
    CHECK(file_write_atomic("big", big, 100000, &err) == 0);

    buf_str(&b, "kept");
    CHECK(file_read_all("big", 100000, &b, &err) == 0);
    CHECK(b.len == 100004 && !memcmp(b.v, "kept", 4) && !memcmp(b.v + 4, big, 100000));
    buf_truncate(&b, 4);
    CHECK(file_read_all("big", 99999, &b, &err) < 0);
    CHECK(strstr(err.text, "big") && strstr(err.text, "99999"));
    CHECK_STR(buf_cstr(&b), "kept");
    CHECK(file_read_all("/dev/zero", 1000000, &b, &err) < 0); /* no end */
    CHECK(file_read_all("big", 0, &b, &err) < 0);
    CHECK(file_read_all(".", 1000, &b, &err) < 0); /* a directory */
    CHECK(file_read_all("absent", 1000, &b, &err) < 0);
    CHECK(strstr(err.text, "absent") && strstr(err.text, strerror(ENOENT)));
    CHECK_STR(buf_cstr(&b), "kept");

    CHECK(file_write_atomic("empty", NULL, 0, &err) == 0);
    CHECK(file_read_all("empty", 0, &b, &err) == 0 && b.len == 4);
    buf_release(&b);
    free(big);
    scratch_leave(dir);
}

static void test_write_atomic(void)
{
    char dir[64];
    struct err err;
    scratch_enter(dir);
    umask(0);
    CHECK(file_write_atomic("f", "one", 3, &err) == 0);
    CHECK(mode_of("f") == 0600);
    check_content("f", "one");
    CHECK(chmod("f", 0644) == 0);
    CHECK(file_write_atomic("f", "second", 6, &err) == 0);
    CHECK(mode_of("f") == 0600);
    check_content("f", "second");
    CHECK(entries() == 1);
    CHECK(file_write_atomic("no/such/dir", "x", 1, &err) < 0);
    CHECK(strstr(err.text, "no/such/dir"));
    CHECK(mkdir("d", 0700) == 0);
    CHECK(file_write_atomic("d", "x", 1, &err) < 0); /* rename onto a directory */
    CHECK(entries() == 2);                           /* and no temporary file */
    scratch_leave(dir);
}

/* Every call that can fail fails once; the old content must survive, except
 * when the very last step, the sync of the directory, is what failed. */
static void test_write_faults(void)
{
    static const enum fault_kind kinds[] = { FAULT_OPEN, FAULT_WRITE, FAULT_FSYNC,
                                             FAULT_RENAME };
    static const unsigned expect_fired[] = { 1, 1, 2, 1 };
    char dir[64];
    struct err err;
    scratch_enter(dir);
    for (size_t k = 0; k < 4; k++) {
        unsigned n = 1;
        for (;; n++) {
            CHECK(file_write_atomic("f", "old", 3, &err) == 0);
            fault_arm(kinds[k], n);
            err.text[0] = 0;
            int rc = file_write_atomic("f", "new text", 8, &err);
            if (!fault_disarm(kinds[k])) {
                CHECK(rc == 0);
                break;
            }
            CHECK(rc < 0 && strchr(err.text, ':'));
            check_content("f", kinds[k] == FAULT_FSYNC && n == 2 ? "new text" : "old");
            CHECK(entries() == 1);
        }
        CHECK(n - 1 == expect_fired[k]);
        check_content("f", "new text");
    }
    scratch_leave(dir);
}

static void test_writer_pieces(void)
{
    char dir[64];
    struct err err;
    struct file_writer *w = NULL;
    scratch_enter(dir);
    CHECK(file_write_atomic("f", "old", 3, &err) == 0);
    REQUIRE(file_writer_open(&w, "f", &err) == 0);
    CHECK(file_writer_add(w, "ab", 2, &err) == 0);
    CHECK(file_writer_add(w, "cd", 2, &err) == 0);
    check_content("f", "old"); /* until it is committed */
    CHECK(file_writer_commit(w, &err) == 0);
    file_writer_close(w);
    check_content("f", "abcd");

    REQUIRE(file_writer_open(&w, "f", &err) == 0);
    CHECK(file_writer_add(w, "gone", 4, &err) == 0);
    CHECK(entries() == 2);
    file_writer_close(w); /* given up */
    check_content("f", "abcd");
    CHECK(entries() == 1);
    file_writer_close(NULL);
    CHECK(file_writer_open(&w, "no/dir", &err) < 0 && !w);
    scratch_leave(dir);
}

/* A reader beside a writer that replaces the file all the time sees whole
 * contents only. */
static void test_readers_see_whole_files(void)
{
    char dir[64], text[4096];
    struct err err;
    scratch_enter(dir);
    memset(text, 'a', sizeof text);
    REQUIRE(file_write_atomic("f", text, sizeof text, &err) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < 60; i++) {
            memset(text, 'a' + i % 26, sizeof text);
            if (file_write_atomic("f", text, sizeof text, NULL) < 0)
                _exit(1);
        }
        _exit(0);
    }
    int status = 0, reads = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct buf b = BUF_INIT;
        CHECK(file_read_all("f", sizeof text, &b, &err) == 0);
        memset(text, b.v[0], sizeof text);
        CHECK(b.len == sizeof text && !memcmp(b.v, text, sizeof text));
        buf_release(&b);
        reads++;
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && reads > 0);
    scratch_leave(dir);
}

TEST_MAIN(T(test_mkdirs), T(test_mkdirs_fails), T(test_xdg), T(test_read_limit),
          T(test_write_atomic), T(test_write_faults), T(test_writer_pieces),
          T(test_readers_see_whole_files))
