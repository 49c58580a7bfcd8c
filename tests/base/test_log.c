/* test_log.c - the log file: form of a line, hostile text, size bound, several
 * writers, and that trouble with the file never reaches the caller. */
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "tests/test.h"

#include <pthread.h>
#include <sys/stat.h>

static char dir[64];

static void scratch_enter(void)
{
    snprintf(dir, sizeof dir, "/tmp/test-log-XXXXXX");
    REQUIRE(mkdtemp(dir) && chdir(dir) == 0);
    umask(022);
}

static void scratch_leave(void)
{
    char cmd[96];
    REQUIRE(chdir("/") == 0);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    REQUIRE(system(cmd) == 0);
}

static struct log *open_log(const char *path)
{
    struct log *log = NULL;
    struct err err = { "" };
    REQUIRE(log_open(&log, path, &err) == 0);
    return log;
}

static char *content(const char *path)
{
    struct buf b = BUF_INIT;
    struct err err;
    REQUIRE(file_read_all(path, 64 << 20, &b, &err) == 0);
    return buf_detach(&b);
}

static void test_line(void)
{
    scratch_enter();
    struct log *log = open_log("state/tern/log");
    log_line(log, LOG_NOTE, "started with %d files", 3);
    log_line(log, LOG_ERROR, "caf\xc3\xa9 \xe6\x97\xa5");
    log_close(log);
    log = open_log("state/tern/log"); /* appends */
    log_line(log, LOG_WARN, "%s", "");
    log_close(log);

    char *text = content("state/tern/log");
    int y, mo, d, h, mi, s, ms, end = 0;
    CHECK(sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &y, &mo, &d, &h, &mi, &s, &ms,
                 &end) == 7);
    CHECK(end == 24 && y >= 2024 && mo >= 1 && mo <= 12 && h < 24);
    CHECK(!strncmp(text + 24, " note  started with 3 files\n", 28));
    CHECK(strstr(text, "Z error caf\xc3\xa9 \xe6\x97\xa5\n"));
    CHECK(strstr(text, "Z warn  \n"));
    free(text);

    struct stat st;
    CHECK(stat("state/tern/log", &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK(stat("state/tern", &st) == 0 && (st.st_mode & 07777) == 0700);
    scratch_leave();
}

/* A file that was there with other modes is closed to others. */
static void test_mode_tightened(void)
{
    struct stat st;
    scratch_enter();
    REQUIRE(system("echo before > log; chmod 644 log") == 0);
    log_close(open_log("log"));
    CHECK(stat("log", &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_size == 7);
    scratch_leave();
}

static void test_hostile_text(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "a\nb\rc\td", "a\\x0ab\\x0dc\\x09d" },
        { "\033]52;c;AAAA\007", "\\x1b]52;c;AAAA\\x07" },
        { "\xc2\x9b[6n", "\\xc2\\x9b[6n" },          /* C1 CSI */
        { "\x9b[6n\xff\xc3", "\\x9b[6n\\xff\\xc3" }, /* not UTF-8 */
        { "\xe2\x80\xaexyz", "\\xe2\\x80\\xaexyz" }, /* direction override */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },       /* a surrogate */
        { "\xe2\x80\xa8x", "\\xe2\\x80\\xa8x" },     /* line separator */
        { "C:\\x0a", "C:\\x5cx0a" },                 /* no forged escapes */
        { "\x7f\x01", "\\x7f\\x01" },
    };
    scratch_enter();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log *log = open_log("log");
        log_line(log, LOG_NOTE, "%s", cases[i].in);
        log_close(log);
        char *text = content("log");
        size_t len = strlen(text);
        REQUIRE(len > 32 && text[len - 1] == '\n');
        text[len - 1] = 0;
        CHECK_STR(text + 31, cases[i].out);
        free(text);
        REQUIRE(unlink("log") == 0);
    }
    scratch_leave();
}

/* Lines of 1 MB are cut; the file stays under its bound and moves once. */
static void test_bounds(void)
{
    struct stat now, old;
    scratch_enter();
    struct log *log = open_log("log");
    char *big = mem_alloc(1 << 20);
    memset(big, '\1', 1 << 20);
    big[(1 << 20) - 1] = 0;
    for (int i = 0; i < 400; i++) { /* 13 MB when written out */
        log_line(log, LOG_NOTE, "%d %s", i, big);
        REQUIRE(stat("log", &now) == 0);
        CHECK(now.st_size <= LOG_FILE_BYTES);
    }
    log_line(log, LOG_NOTE, "the last line");
    log_close(log);
    REQUIRE(stat("log", &now) == 0 && stat("log.old", &old) == 0);
    CHECK(old.st_size <= LOG_FILE_BYTES && old.st_size > LOG_FILE_BYTES - 40000);
    CHECK((old.st_mode & 07777) == 0600 && (now.st_mode & 07777) == 0600);
    char *text = content("log");
    CHECK(strstr(text, "the last line\n"));
    CHECK(system("test $(ls | wc -l) = 2") == 0);
    free(text);
    free(big);
    scratch_leave();
}

static void *writer(void *arg)
{
    struct log *log = arg;
    for (int i = 0; i < 500; i++)
        log_line(log, LOG_NOTE, "begin %0200d end", i);
    return NULL;
}

/* Threads of two processes share a file that rotates: no line is mixed. */
static void test_many_writers(void)
{
    scratch_enter();
    REQUIRE(system("head -c 4100000 /dev/zero | tr '\\0' '\\n' > log") == 0);
    pid_t pid = fork();
    struct log *log = open_log("log");
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&t[i], NULL, writer, log) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    log_close(log);
    if (pid == 0)
        _exit(0);
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
    /* Every line that is not a filler has the whole form; none was lost. */
    CHECK(system("test $(cat log.old log | grep -c .) = 3000") == 0);
    CHECK(system("test $(cat log.old log | grep -c ' begin 0[0-9]* end$') = 3000") == 0);
    scratch_leave();
}

static void test_trouble_is_quiet(void)
{
    struct err err = { "" };
    struct log *log = NULL;
    scratch_enter();
    log_line(NULL, LOG_NOTE, "nowhere");
    log_close(NULL);
    log = open_log(NULL);
    log_line(log, LOG_NOTE, "nowhere");
    log_close(log);
    CHECK(system("test $(ls -A | wc -l) = 0") == 0);

    REQUIRE(system("touch plain") == 0);
    CHECK(log_open(&log, "plain/log", &err) < 0 && !log && strstr(err.text, "plain"));
    fault_arm(FAULT_OPEN, 1);
    CHECK(log_open(&log, "log", &err) < 0 && !log && strstr(err.text, "log"));
    CHECK(fault_disarm(FAULT_OPEN));

    log = open_log("log");
    fault_arm(FAULT_WRITE, 1);
    log_line(log, LOG_NOTE, "lost");
    CHECK(fault_disarm(FAULT_WRITE));
    REQUIRE(unlink("log") == 0); /* somebody tidies up meanwhile */
    log_line(log, LOG_NOTE, "written again");
    log_close(log);
    char *text = content("log");
    CHECK(!strstr(text, "lost") && strstr(text, "written again"));
    free(text);
    scratch_leave();
}

TEST_MAIN(T(test_line), T(test_mode_tightened), T(test_hostile_text), T(test_bounds),
          T(test_many_writers), T(test_trouble_is_quiet))
