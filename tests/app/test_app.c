/* test_app.c - the whole program but for the engine, on a terminal of its own and
 * in pipes: `tern` as a user meets it, with scripted answers. */
#include "app/program.h"
#include "base/clock.h"
#include "tests/app/fake_engine.h"

#include "tests/test.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <termios.h>
#include <time.h>

static char home[64];

static void home_make(void)
{
    snprintf(home, sizeof home, "/tmp/tern-app-XXXXXX");
    REQUIRE(mkdtemp(home));
    setenv("HOME", home, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_CONFIG_HOME");
    setenv("TERN_MODEL", "fake.gguf", 1);
}

static void home_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    CHECK(system(command) == 0);
}

/* The program without its process. Words are separated by spaces. */
static int tern(const char *line)
{
    static char copy[256], name[] = "tern";
    static char *argv[32] = { name };
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    int rc = program_run(argc, argv);
    fflush(stdout);
    return rc;
}

/* ---- pipes --------------------------------------------------------------- */

/* Runs a command with that input; out and err get what it printed. */
static int piped(const char *line, const char *input, struct buf *out, struct buf *errors)
{
    int in[2], o[2], e[2];
    REQUIRE(pipe(in) == 0 && pipe(o) == 0 && pipe(e) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(o[1], 1);
        dup2(e[1], 2);
        close(in[1]);
        close(o[0]);
        close(e[0]);
        alarm(60);
        exit(tern(line));
    }
    close(in[0]);
    close(o[1]);
    close(e[1]);
    CHECK(write(in[1], input, strlen(input)) == (ssize_t)strlen(input));
    close(in[1]);
    const int fds[] = { o[0], e[0] };
    struct buf *bufs[] = { out, errors };
    for (int i = 0; i < 2; i++) {
        char piece[4096];
        ssize_t n;
        buf_truncate(bufs[i], 0);
        while ((n = read(fds[i], piece, sizeof piece)) > 0)
            buf_add(bufs[i], piece, (size_t)n);
        close(fds[i]);
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static struct buf out, errors;

#define ANSWER "Paris \u6f22 \x1b]52;c;eA==\x07."

static void test_run_to_pipe(void)
{
    home_make();
    fake.answers[0] = "<think>hm</think>\n\n" ANSWER;
    CHECK(piped("run capital of France?", "", &out, &errors) == 0);
    CHECK_STR(buf_cstr(&out), ANSWER "\n");
    CHECK(strstr(buf_cstr(&errors), "conversation 1"));
    CHECK(piped("run -q -", "two\nlines\n\n", &out, &errors) == 0);
    CHECK_STR(buf_cstr(&out), ANSWER "\n");
    CHECK_STR(buf_cstr(&errors), "");
    CHECK(piped("export 2", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out), "## User\n\ntwo\nlines\n\n## Assistant"));
    CHECK(piped("run -c last --json more", "", &out, &errors) == 0);
    CHECK(!strncmp(buf_cstr(&out),
                   "{\"text\":\"Paris \u6f22 \\u001b]52;c;eA==\\u0007.\","
                   "\"thinking\":\"hm\",\"conversation\":2,"
                   "\"stop\":\"eos\",\"prompt_tokens\":",
                   90));
    CHECK(strchr(buf_cstr(&out), '\n') == out.v + out.len - 1);
    CHECK(piped("ls", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out), "    2  ") == out.v && strstr(out.v, "two\n    1  "));
    CHECK(piped("run --incognito -q secret", "", &out, &errors) == 0);
    CHECK(piped("search secret", "", &out, &errors) == 1);
    home_remove();
}

static void test_run_fails(void)
{
    home_make();
    CHECK(piped("run -c last x", "", &out, &errors) == 1);
    CHECK(strstr(buf_cstr(&errors), "no conversation yet"));
    CHECK(piped("run -c 7 x", "", &out, &errors) == 1);
    CHECK(strstr(buf_cstr(&errors), "no conversation 7"));
    CHECK(piped("run -c 1 -s x y", "", &out, &errors) == 1);
    CHECK(piped("run", "", &out, &errors) == 1);
    CHECK(strstr(buf_cstr(&errors), "empty"));
    fake.decode_fails_at = 2;
    fake.answers[0] = "0123456789";
    CHECK(piped("run x", "", &out, &errors) == 1);
    CHECK_STR(buf_cstr(&out), "0\n");
    CHECK(strstr(buf_cstr(&errors), "device lost"));
    fake.decode_fails_at = 0;
    fake.engine_fails = "no Vulkan driver";
    CHECK(piped("run x", "", &out, &errors) == 1);
    CHECK(out.len == 0);
    CHECK_STR(buf_cstr(&errors), "tern: no Vulkan driver\n");
    fake.engine_fails = NULL;
    CHECK(piped("rm 1", "", &out, &errors) == 0);
    CHECK(piped("ls", "", &out, &errors) == 0 && out.len == 0);
    home_remove();
}

static void test_run_limits(void)
{
    home_make();
    fake.answers[0] = "0123456789";
    fake.ctx_tokens = 64;
    CHECK(piped("run -n 4 -q --json x", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out), "\"text\":\"0123\"") &&
          strstr(out.v, "\"stop\":\"length\"") &&
          strstr(out.v, "\"generated_tokens\":4"));
    CHECK(piped("run -q 01234567890123456789012345678901234567890123456789", "", &out,
                &errors) == 1);
    CHECK(strstr(buf_cstr(&errors), "context full") && out.len == 0);
    CHECK(piped("ls", "", &out, &errors) == 0);
    CHECK(!strchr(buf_cstr(&out), '\n') || strchr(out.v, '\n') == out.v + out.len - 1);
    home_remove();
}

static void test_readonly_home(void)
{
    home_make();
    setenv("HOME", "/proc/nowhere", 1);
    CHECK(piped("run x", "", &out, &errors) == 0);
    CHECK_STR(buf_cstr(&out), "ok\n");
    CHECK(strstr(buf_cstr(&errors), "not saved: "));
    CHECK(piped("ls", "", &out, &errors) == 1 && errors.len > 10);
    unsetenv("HOME");
    CHECK(piped("run x", "", &out, &errors) == 0);
    CHECK(piped("ls", "", &out, &errors) == 1 && strstr(buf_cstr(&errors), "HOME"));
    setenv("HOME", home, 1);
    home_remove();
}

static void test_lines_from_pipe(void)
{
    home_make();
    fake.answers[0] = "one";
    fake.answers[1] = "two\n";
    fake.answers[2] = "three";
    CHECK(piped("", "first\nsec\\\nond\n/title A name\n/usr/bin", &out, &errors) == 0);
    CHECK_STR(buf_cstr(&out), "one\ntwo\nthree\n");
    CHECK(piped("show 1", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out), "1  A name\n"));
    CHECK(strstr(buf_cstr(&out), "sec\nond") && strstr(out.v, "You:\n/usr/bin\n"));
    CHECK(piped("", "/nonsense\n", &out, &errors) == 1);
    CHECK(strstr(buf_cstr(&errors), "no command /nonsense"));
    CHECK(piped("", "a\n/quit\nb\n", &out, &errors) == 0);
    CHECK_STR(buf_cstr(&out), "one\n");
    fake.model_fails = "not a GGUF file";
    CHECK(piped("", "hello\n", &out, &errors) == 1);
    CHECK(out.len == 0 && strstr(buf_cstr(&errors), "not a GGUF file"));
    /* Both messages are kept, and asking did not wait for ever. */
    CHECK(piped("", "hello\nagain\n", &out, &errors) == 1);
    CHECK(piped("show last", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out), "You:\nhello\n\nYou:\nagain\n"));
    home_remove();
}

/* ---- terminal ------------------------------------------------------------ */

struct terminal {
    int fd;
    pid_t pid;
    struct buf screen; /* everything that was written */
    struct buf text;   /* the same without escape sequences */
};

static void terminal_start(struct terminal *t, const char *line, unsigned short rows,
                           unsigned short cols)
{
    struct winsize size = { .ws_row = rows, .ws_col = cols };
    *t = (struct terminal){ 0 };
    fflush(stdout);
    t->pid = forkpty(&t->fd, NULL, NULL, &size);
    REQUIRE(t->pid >= 0);
    if (t->pid == 0) {
        alarm(60);
        exit(tern(line));
    }
}

static void terminal_release(struct terminal *t)
{
    buf_release(&t->screen);
    buf_release(&t->text);
}

static void text_update(struct terminal *t)
{
    const char *s = buf_cstr(&t->screen);
    buf_truncate(&t->text, 0);
    while (*s) {
        if (*s != '\033') {
            buf_char(&t->text, *s++);
        } else if (*++s == '[') {
            s += 1 +
                 strcspn(s + 1, "@ABCDEFGHIJKLMNOPQRSTUVWXYZ`abcdefghijklmnopqrstuvwxyz");
            s += *s != 0;
        } else if (*s) {
            s += *s == '(' && s[1] ? 2 : 1;
        }
    }
}

static bool terminal_read(struct terminal *t, int timeout_ms)
{
    struct pollfd p = { .fd = t->fd, .events = POLLIN };
    char piece[4096];
    if (poll(&p, 1, timeout_ms) != 1)
        return true;
    ssize_t n = read(t->fd, piece, sizeof piece);
    if (n > 0)
        buf_add(&t->screen, piece, (size_t)n);
    return n > 0;
}

/* Waits for a text that is drawn at one go. What streams is looked for in the
 * store: on the screen it may come letter by letter. */
static void terminal_wait(struct terminal *t, const char *text)
{
    uint64_t until = clock_ns() + UINT64_C(20000000000);
    do
        text_update(t);
    while (!strstr(buf_cstr(&t->text), text) && clock_ns() < until &&
           terminal_read(t, 100));
    if (!strstr(buf_cstr(&t->text), text)) {
        printf("# waited for \"%s\" in:\n# ", text);
        for (size_t i = 0; i < t->text.len; i++)
            printf(t->text.v[i] < ' ' ? "\\x%02x" : "%c", t->text.v[i]);
        printf("\n");
        exit(1);
    }
}

static void store_wait(struct terminal *t, const char *text)
{
    uint64_t until = clock_ns() + UINT64_C(20000000000);
    do {
        terminal_read(t, 50);
        piped("show last", "", &out, &errors);
    } while (!strstr(buf_cstr(&out), text) && clock_ns() < until);
    REQUIRE(strstr(buf_cstr(&out), text));
}

static void terminal_type(struct terminal *t, const char *text)
{
    CHECK(write(t->fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Reads to the end and returns the exit status, or 1000 + the signal. */
static int terminal_end(struct terminal *t)
{
    uint64_t until = clock_ns() + UINT64_C(10000000000);
    while (clock_ns() < until && terminal_read(t, 100))
        ;
    int status;
    waitpid(t->pid, &status, 0);
    close(t->fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void check_restored(const struct terminal *t)
{
    const char *s = buf_cstr(&t->screen);
    const char *up = strstr(s, "\033[?1049h");
    REQUIRE(up);
    CHECK(strstr(up, "\033[?1049l"));
    CHECK(!strstr(s, "\033[?2004h") || strstr(s, "\033[?2004l"));
}

static void screen_home(void)
{
    home_make();
    setenv("TERM", "xterm-256color", 1);
    unsetenv("NO_COLOR");
    fake.answers[0] = "Paris-it-is";
    fake.answers[1] = "Seine-it-is";
}

static void test_screen_two_turns(void)
{
    struct terminal t;
    screen_home();
    terminal_start(&t, "", 24, 80);
    terminal_wait(&t, "ready");
    terminal_type(&t, "capital?\r");
    store_wait(&t, "Paris-it-is");
    terminal_type(&t, "river?\r");
    store_wait(&t, "Seine-it-is");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    check_restored(&t);
    terminal_release(&t);
    CHECK(piped("show last", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out),
                 "You:\ncapital?\n\nAnswer:\nParis-it-is\n\nYou:\nriver?\n\n"
                 "Answer:\nSeine-it-is\n"));
    /* And again from the store. */
    terminal_start(&t, "-c last", 24, 80);
    terminal_wait(&t, "Seine-it-is");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    home_remove();
}

/* Keys count from the start, while the model loads behind. */
static void test_screen_type_ahead(void)
{
    struct terminal t;
    screen_home();
    fake.load_s = 4;
    uint64_t from = clock_ns();
    terminal_start(&t, "", 24, 80);
    terminal_wait(&t, "loading");
    terminal_type(&t, "early bird");
    terminal_wait(&t, "early bird");
    CHECK(clock_ns() - from < UINT64_C(3000000000));
    terminal_type(&t, "\r");
    store_wait(&t, "Paris-it-is");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    home_remove();
}

static void test_screen_signals(void)
{
    static const int signals[] = { SIGTERM, SIGHUP };
    for (int i = 0; i < 2; i++) {
        struct terminal t;
        screen_home();
        fake.answers[0] = "a-slow-answer-that-goes-on-and-on-and-on-and-on-and-on-and-on";
        fake.step_s = 0.05;
        terminal_start(&t, "", 24, 80);
        terminal_wait(&t, "ready");
        terminal_type(&t, "go\r");
        store_wait(&t, "a-");
        kill(t.pid, signals[i]);
        CHECK(terminal_end(&t) == 128 + signals[i]);
        check_restored(&t);
        terminal_release(&t);
        CHECK(piped("show last", "", &out, &errors) == 0);
        CHECK(strstr(buf_cstr(&out), "Answer [stopped]:\na-slow"));
        home_remove();
    }
}

static void test_screen_crash(void)
{
    struct terminal t;
    screen_home();
    terminal_start(&t, "", 24, 80);
    terminal_wait(&t, "ready");
    kill(t.pid, SIGSEGV);
    CHECK(terminal_end(&t) == 1000 + SIGSEGV);
    check_restored(&t);
    terminal_release(&t);
    home_remove();
}

static void test_screen_stop_and_queue(void)
{
    struct terminal t;
    screen_home();
    fake.answers[0] = "a-slow-answer-that-goes-on-and-on-and-on-and-on-and-on-and-on";
    fake.step_s = 0.1;
    terminal_start(&t, "", 24, 80);
    terminal_wait(&t, "ready");
    terminal_type(&t, "go\r");
    store_wait(&t, "a-");
    terminal_type(&t, "second\r");
    terminal_wait(&t, "queued");
    terminal_type(&t, "\003");
    store_wait(&t, "Answer [stopped]:\na-");
    /* The queued text is in the input box again: sent now, it goes. */
    terminal_type(&t, "\r");
    store_wait(&t, "You:\nsecond\n");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    home_remove();
}

static void test_screen_without_model(void)
{
    struct terminal t;
    screen_home();
    CHECK(piped("run -q x", "", &out, &errors) == 0);
    fake.model_fails = "too-short-a-file";
    terminal_start(&t, "-c 1", 24, 80);
    terminal_wait(&t, "too-short-a-file");
    terminal_wait(&t, "Paris-it-is");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    setenv("HOME", "/proc/nowhere", 1);
    fake.model_fails = NULL;
    terminal_start(&t, "", 24, 80);
    terminal_wait(&t, "not saved");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    setenv("HOME", home, 1);
    home_remove();
}

static void test_two_programs(void)
{
    struct terminal a, b;
    screen_home();
    CHECK(piped("run -q x", "", &out, &errors) == 0);
    terminal_start(&a, "-c 1", 24, 80);
    terminal_wait(&a, "ready");
    terminal_start(&b, "-c 1", 24, 100);
    terminal_wait(&b, "open in another program");
    terminal_type(&a, "from-a\r");
    store_wait(&a, "You:\nfrom-a\n\nAnswer:\n");
    /* The other one does not know of it: its message is a version of that one. */
    terminal_type(&b, "from-b\r");
    store_wait(&b, "You (version 2 of 2):\nfrom-b\n\nAnswer:\n");
    terminal_type(&a, "\004");
    terminal_type(&b, "\004");
    CHECK(terminal_end(&a) == 0 && terminal_end(&b) == 0);
    CHECK(piped("export 1 --format json", "", &out, &errors) == 0);
    CHECK(strstr(buf_cstr(&out), "from-a") && strstr(out.v, "from-b"));
    terminal_release(&a);
    terminal_release(&b);
    home_remove();
}

static void test_screen_tiny_and_dumb(void)
{
    struct terminal t;
    screen_home();
    terminal_start(&t, "", 5, 20);
    terminal_wait(&t, ">");
    terminal_type(&t, "hi\r");
    store_wait(&t, "Paris-it-is");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    setenv("TERM", "dumb", 1);
    fake.answers[0] = "Pa\033[31mris";
    terminal_start(&t, "", 24, 80);
    terminal_wait(&t, "> ");
    terminal_type(&t, "capital?\n");
    terminal_wait(&t, "tokens/s]");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    CHECK(strstr(buf_cstr(&t.screen), "Pa\\x1b[31mris"));
    CHECK(!strchr(buf_cstr(&t.screen), '\033'));
    terminal_release(&t);
    home_remove();
}

/* Bytes of the screen that are no ASCII. */
static size_t high_bytes(const struct terminal *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->screen.len; i++)
        n += (unsigned char)t->screen.v[i] >= 0x80;
    return n;
}

/* Until it asks where the cursor is. */
static void asked_wait(struct terminal *t)
{
    uint64_t until = clock_ns() + UINT64_C(20000000000);
    while (!strstr(buf_cstr(&t->screen), "\033[6n") && clock_ns() < until)
        terminal_read(t, 100);
    REQUIRE(strstr(buf_cstr(&t->screen), "\033[6n"));
}

/* Where the locale says nothing, the terminal is asked what it takes. */
static void test_screen_of_other_terminals(void)
{
    struct terminal t;
    screen_home();
    setenv("LC_ALL", "de_DE.ISO-8859-1", 1);
    fake.answers[0] = "Stra\u00dfe-it-is";
    terminal_start(&t, "", 24, 80);
    asked_wait(&t);
    size_t asked = high_bytes(&t);
    terminal_type(&t, "\033[1;3R"); /* two letters */
    terminal_type(&t, "hi\r");
    store_wait(&t, "it-is");
    terminal_type(&t, "\f"); /* all of it at one go */
    terminal_wait(&t, "Stra?e-it-is");
    CHECK(asked == 2 && high_bytes(&t) == 2);
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    setenv("LC_ALL", "C", 1);
    terminal_start(&t, "", 24, 80);
    asked_wait(&t);
    terminal_type(&t, "\033[1;2R"); /* one */
    terminal_wait(&t, "\u2500\u2500\u2500");
    terminal_type(&t, "hi\r");
    store_wait(&t, "it-is");
    terminal_type(&t, "\f");
    terminal_wait(&t, "Stra\u00dfe-it-is");
    terminal_type(&t, "\004");
    CHECK(terminal_end(&t) == 0);
    terminal_release(&t);
    home_remove();
}

TEST_MAIN(T(test_run_to_pipe), T(test_run_fails), T(test_run_limits),
          T(test_readonly_home), T(test_lines_from_pipe), T(test_screen_two_turns),
          T(test_screen_type_ahead), T(test_screen_signals), T(test_screen_crash),
          T(test_screen_stop_and_queue), T(test_screen_without_model),
          T(test_two_programs), T(test_screen_of_other_terminals),
          T(test_screen_tiny_and_dumb))
