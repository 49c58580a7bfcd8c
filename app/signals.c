/* signals.c - a descriptor instead of handlers for the signals that end the
 * program politely; handlers for those that do not. */
#include "app/signals.h"

#include "ui/ui.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t polite_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

int signals_open(struct err *err)
{
    sigset_t set = polite_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, "cannot wait for signals: %s", strerror(errno));
    return fd;
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void signals_close(int fd)
{
    sigset_t set = polite_signals();
    if (fd >= 0)
        close(fd);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void on_crash(int signo)
{
    ui_emergency_restore();
    /* SA_RESETHAND has put the default action back; it follows on return from
     * this handler, or here if the signal was sent and not caused. */
    raise(signo);
}

void signals_crash_handlers(void)
{
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    static char stack[64 * 1024]; /* of its own: the usual one may be used up */
    const stack_t own = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction sa = { .sa_handler = on_crash,
                            .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK) };
    sigemptyset(&sa.sa_mask);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigaction(crashes[i], &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file may grow no more: the write fails instead */
}
