/* term.c - ncurses for output and terminfo, our own reading and modes.
 *
 * Input is read as bytes (decode.c), because ncurses knows neither pastes nor
 * the newer key encodings. Signals only set flags and wake the poll loop.
 * `shared` is the module's one piece of file-scope state: signal handlers and
 * the emergency path have no other way to it. */
#include "ui/term.h"

#include "base/buf.h"
#include "base/mem.h"
#include "ui/copy.h"
#include "ui/paint.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define SYNC_BEGIN "\x1b[?2026h"
#define SYNC_END   "\x1b[?2026l"
#define MOUSE_ON   "\x1b[?1000h\x1b[?1006h"
#define MOUSE_OFF  "\x1b[?1006l\x1b[?1000l"
#define PASTE_ON   "\x1b[?2004h"
#define PASTE_OFF  "\x1b[?2004l"
#define KEYS_ON    "\x1b[>4;1m" /* xterm: tell Shift+Enter and the like apart */
#define KEYS_OFF   "\x1b[>4m"
#define KITTY_ON   "\x1b[>1u"
#define KITTY_OFF  "\x1b[<u"
#define FAMILY     "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"

static struct {
    volatile sig_atomic_t armed, resized, continued;
    int wake; /* write end of the pipe */
    struct termios saved;
    char undo[256];  /* turns off what we turn on */
    char leave[256]; /* cursor on, attributes off, back to the main screen */
} shared = { .wake = -1 };

struct terminal {
    SCREEN *screen;
    struct paint paint;
    struct screen shown; /* what the terminal shows */
    bool mouse, sync, linux_console, repaint;
    enum { PROBE_NONE, PROBE_BYTES, PROBE_CLUSTERS } probe; /* asked and not answered */
    int rows, cols;
    int wake, poll; /* read end of the pipe; epoll */
    struct sigaction old_winch, old_cont;
};

/* ---- signals and the emergency path ------------------------------------- */

static void send_bytes(const char *s, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, s, n);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return;
        if (done > 0) {
            s += done;
            n -= (size_t)done;
        }
    }
}

static void send_text(const char *s)
{
    send_bytes(s, strlen(s));
}

void term_emergency_restore(void)
{
    if (!shared.armed)
        return;
    shared.armed = 0;
    send_text(shared.undo);
    send_text(shared.leave);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &shared.saved);
}

static void on_signal(int sig)
{
    int keep = errno;
    if (sig == SIGWINCH)
        shared.resized = 1;
    else
        shared.continued = 1;
    if (write(shared.wake, "", 1) < 0) {
        /* the pipe is full: the loop is going to wake up anyway */
    }
    errno = keep;
}

static void take_signals(struct terminal *t)
{
    struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigemptyset(&sa.sa_mask);
    sigaction(SIGWINCH, &sa, &t->old_winch);
    sigaction(SIGCONT, &sa, &t->old_cont);
}

/* ---- opening ------------------------------------------------------------ */

/* A terminfo string without its padding marks, appended to out. */
static void add_capability(char *out, size_t size, const char *name)
{
    const char *s = tigetstr(name);
    size_t n = strlen(out);
    if (!s || (intptr_t)s == -1) /* no such string, or none of that kind */
        return;
    while (*s && n + 1 < size) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end)
            s = end + 1;
        else
            out[n++] = *s++;
    }
    out[n] = 0;
}

static void prepare_undo(const struct terminal *t)
{
    const char *keys = t->linux_console ? "" : KEYS_OFF;
    snprintf(shared.undo, sizeof shared.undo, "%s%s%s%s", SYNC_END, PASTE_OFF, MOUSE_OFF,
             keys);
    shared.leave[0] = 0;
    add_capability(shared.leave, sizeof shared.leave, "sgr0");
    add_capability(shared.leave, sizeof shared.leave, "cnorm");
    add_capability(shared.leave, sizeof shared.leave, "rmcup");
}

static int check_terminal(const char *name, struct err *err)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return err_set(err, "standard input and output are not a terminal");
    if (!name || !*name || !strcmp(name, "dumb"))
        return err_set(err, "TERM is \"%s\": no full-screen display there",
                       name ? name : "");
    return 0;
}

/* newterm puts handlers for these where none are; the program's own stay. */
static SCREEN *new_screen(struct err *err)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGTSTP, SIGWINCH };
    struct sigaction old[4];
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], NULL, &old[i]);
    use_tioctl(TRUE); /* the terminal knows its size better than LINES does */
    SCREEN *s = newterm(NULL, stdout, stdin);
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &old[i], NULL);
    const char *cup = s ? tigetstr("cup") : NULL;
    if (s && cup && (intptr_t)cup != -1)
        return s;
    err_set(err, "TERM is \"%.40s\": %s", getenv("TERM"),
            s ? "it cannot place the cursor" : "terminfo has no usable entry");
    if (s) {
        endwin();
        delscreen(s);
    }
    return NULL;
}

static int open_wake(struct terminal *t, struct err *err)
{
    int ends[2];
    struct epoll_event in = { .events = EPOLLIN };
    if (pipe(ends) < 0)
        return err_set(err, "pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    t->wake = ends[0];
    shared.wake = ends[1];
    t->poll = epoll_create1(EPOLL_CLOEXEC);
    if (t->poll < 0 || epoll_ctl(t->poll, EPOLL_CTL_ADD, t->wake, &in) < 0 ||
        epoll_ctl(t->poll, EPOLL_CTL_ADD, STDIN_FILENO, &in) < 0)
        return err_set(err, "epoll: %s", strerror(errno));
    return 0;
}

static void modes_on(const struct terminal *t)
{
    send_text(PASTE_ON);
    if (t->mouse)
        send_text(MOUSE_ON);
    if (!t->linux_console)
        send_text(KEYS_ON);
}

/* Whether the environment says that the terminal takes UTF-8. Where it says nothing
 * of the kind (LANG=C, over ssh), the terminal most often does; it is asked. */
static bool says_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *v = NULL;
    for (size_t i = 0; i < 3 && !(v && *v); i++)
        v = getenv(names[i]);
    v = v ? strchr(v, '.') : NULL;
    return v && (!strncasecmp(v, ".utf-8", 6) || !strncasecmp(v, ".utf8", 5));
}

/* Asks where the cursor stands after a letter of two bytes, neither of which is a
 * control in any character set; or after a family of emoji, which takes two columns
 * where clusters are known. */
static void probe(struct terminal *t, int what)
{
    t->probe = PROBE_NONE;
    if (what == PROBE_CLUSTERS && t->linux_console)
        return;
    send_text("\x1b[1;1H");
    send_text(what == PROBE_BYTES ? "\xC3\xA9" : FAMILY);
    send_text("\x1b[6n");
    t->probe = what;
}

/* Asks what only the terminal knows. The answers come as input: whether it bundles
 * updates (2026), the kitty keyboard protocol, and what it makes of text. */
static void ask(struct terminal *t)
{
    if (!t->linux_console) /* old ones print what they do not know */
        send_text("\x1b[?2026$p\x1b[?u");
    if (!strcmp(nl_langinfo(CODESET), "UTF-8"))
        probe(t, t->paint.utf8 ? PROBE_CLUSTERS : PROBE_BYTES);
}

static void start_ncurses(struct terminal *t, enum theme theme)
{
    raw();
    noecho();
    nonl();
    const char *no_color = getenv("NO_COLOR");
    t->paint.can_colour = !(no_color && *no_color) && has_colors() &&
                          start_color() == OK && use_default_colors() == OK;
    t->paint.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") && says_utf8();
    paint_theme(&t->paint, theme);
}

int term_open(struct terminal **out, bool mouse, enum theme theme, struct err *err)
{
    const char *name = getenv("TERM");
    if (!name)
        name = "";
    if (check_terminal(name, err) < 0)
        return -1;
    struct terminal *t = mem_zalloc(sizeof *t);
    *t = (struct terminal){ .mouse = mouse, .repaint = true, .wake = -1, .poll = -1 };
    t->linux_console = !strncmp(name, "linux", 5);
    if (tcgetattr(STDIN_FILENO, &shared.saved) < 0) {
        err_set(err, "terminal: %s", strerror(errno));
        goto out;
    }
    if (open_wake(t, err) < 0)
        goto out;
    t->screen = new_screen(err);
    if (!t->screen)
        goto out;
    prepare_undo(t);
    shared.armed = 1;
    take_signals(t);
    start_ncurses(t, theme);
    refresh(); /* enters the alternate screen */
    modes_on(t);
    ask(t);
    *out = t;
    return 0;
out:
    term_close(t);
    return -1;
}

void term_close(struct terminal *t)
{
    if (!t)
        return;
    if (t->screen) {
        send_text(shared.undo);
        endwin();
        delscreen(t->screen);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &shared.saved); /* late answers go */
        sigaction(SIGWINCH, &t->old_winch, NULL);
        sigaction(SIGCONT, &t->old_cont, NULL);
    }
    shared.armed = 0;
    if (t->poll >= 0)
        close(t->poll);
    if (t->wake >= 0)
        close(t->wake);
    if (shared.wake >= 0)
        close(shared.wake);
    shared.wake = -1;
    screen_release(&t->shown);
    free(t);
}

/* ---- input -------------------------------------------------------------- */

int term_fd(const struct terminal *t)
{
    return t->poll;
}

long term_read(struct terminal *t, char *bytes, size_t n)
{
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
    char drain[64];
    while (read(t->wake, drain, sizeof drain) > 0) {
    }
    if (poll(&p, 1, 0) <= 0)
        return 0;
    ssize_t got = read(STDIN_FILENO, bytes, n);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -1;
    return got > 0 ? (long)got : -1;
}

static int clamp_size(int v, const char *variable, int usual, int max)
{
    const char *env = getenv(variable);
    if (v <= 0 && env)
        v = atoi(env);
    if (v <= 0)
        v = usual;
    return v > max ? max : v;
}

bool term_check(struct terminal *t, int *rows, int *cols)
{
    struct winsize ws = { 0 };
    bool continued = shared.continued;
    shared.resized = shared.continued = 0;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws);
    *rows = clamp_size(ws.ws_row, "LINES", 24, SCREEN_ROWS_MAX);
    *cols = clamp_size(ws.ws_col, "COLUMNS", 80, SCREEN_COLS_MAX);
    bool changed = *rows != t->rows || *cols != t->cols;
    if (changed) {
        t->rows = *rows;
        t->cols = *cols;
        resizeterm(*rows, *cols);
        t->repaint = true;
    }
    if (continued) { /* stopped from outside: who knows what was done to it */
        reset_prog_mode();
        modes_on(t);
        t->repaint = true;
    }
    return changed || continued;
}

static void use_kitty(struct terminal *t)
{
    size_t n = strlen(shared.undo);
    if (strstr(shared.undo, KITTY_OFF) || n + sizeof KITTY_OFF > sizeof shared.undo)
        return;
    memcpy(shared.undo + n, KITTY_OFF, sizeof KITTY_OFF);
    send_text(KITTY_ON);
    t->repaint = true;
}

void term_answer(struct terminal *t, const struct key *k)
{
    if (k->code == K_MODE && k->value[0] == 2026) {
        t->sync = k->value[1] == 1 || k->value[1] == 2;
    } else if (k->code == K_KITTY) {
        use_kitty(t);
    } else if (k->code == K_PLACE && t->probe == PROBE_BYTES) {
        t->probe = PROBE_NONE;
        t->paint.utf8 = k->value[1] == 2;
        if (t->paint.utf8)
            probe(t, PROBE_CLUSTERS);
        t->repaint = true;
    } else if (k->code == K_PLACE && t->probe == PROBE_CLUSTERS) {
        t->probe = PROBE_NONE;
        t->paint.clusters = k->value[1] == 3;
        t->repaint = true;
    }
}

/* ---- output ------------------------------------------------------------- */

static bool row_changed(const struct terminal *t, const struct screen *s, int row)
{
    const struct cell *a = screen_cell(s, row, 0), *b = screen_cell(&t->shown, row, 0);
    return memcmp(a, b, (size_t)s->cols * sizeof *a) != 0;
}

static void keep_shown(struct terminal *t, const struct screen *s)
{
    screen_resize(&t->shown, s->rows, s->cols);
    memcpy(t->shown.cells, s->cells,
           (size_t)s->rows * (size_t)s->cols * sizeof *s->cells);
}

void term_draw(struct terminal *t, const struct screen *s)
{
    bool all = t->repaint || s->rows != t->shown.rows || s->cols != t->shown.cols;
    if (s->rows < 1 || s->cols < 1)
        return;
    if (all)
        clearok(curscr, TRUE);
    for (int row = 0; row < s->rows; row++)
        if (all || row_changed(t, s, row))
            paint_row(&t->paint, s, row);
    keep_shown(t, s);
    t->repaint = false;
    curs_set(s->cursor_shown);
    move(s->cursor_row, s->cursor_col);
    /* The cursor moves inside the bundle, so that an input method never sees it
     * elsewhere than at the caret. */
    if (t->sync)
        send_text(SYNC_BEGIN);
    refresh();
    if (t->sync)
        send_text(SYNC_END);
}

bool term_can_copy(const struct terminal *t)
{
    return !t->linux_console; /* which would print the sequence */
}

/* tmux by default ignores programs that set the clipboard, but not its own command. */
static void tmux_copy(const char *text, size_t n)
{
    const char *tmux = getenv("TMUX");
    FILE *f = tmux && *tmux ? popen("tmux load-buffer -w - 2>/dev/null", "w") : NULL;
    if (!f)
        return;
    fwrite(text, 1, n, f);
    pclose(f);
}

void term_copy(struct terminal *t, const char *text, size_t n)
{
    struct buf b = BUF_INIT;
    const char *screen = getenv("STY");
    if (!term_can_copy(t))
        return;
    if (screen && *screen)
        copy_sequence_screen(&b, text, n);
    else
        copy_sequence(&b, text, n);
    send_bytes(b.v, b.len);
    tmux_copy(text, n);
    buf_release(&b);
}

void term_repaint(struct terminal *t)
{
    t->repaint = true;
}

void term_theme(struct terminal *t, enum theme theme)
{
    paint_theme(&t->paint, theme);
    t->repaint = true;
}

void term_toggle_mouse(struct terminal *t)
{
    t->mouse = !t->mouse;
    send_text(t->mouse ? MOUSE_ON : MOUSE_OFF);
}

void term_suspend(struct terminal *t)
{
    (void)t;
    send_text(shared.undo);
    endwin();
    tcsetattr(STDIN_FILENO, TCSANOW, &shared.saved);
    shared.armed = 0;
}

void term_resume(struct terminal *t)
{
    shared.armed = 1;
    reset_prog_mode();
    refresh();
    modes_on(t);
    if (strstr(shared.undo, KITTY_OFF))
        send_text(KITTY_ON);
    t->repaint = true;
}

void term_stop(struct terminal *t)
{
    enum { WAIT_MS = 10, WAITS = 30 };
    term_suspend(t);
    shared.continued = 0;
    kill(0, SIGTSTP);
    /* Another thread may take the signal, a little later than kill returns: the
     * terminal must not be taken back before. A job that cannot be stopped (it
     * has no shell to continue it) goes on after the wait. */
    for (int i = 0; i < WAITS && !shared.continued; i++)
        poll(NULL, 0, WAIT_MS);
    term_resume(t);
}
