/* edit.c - runs an editor. */
#include "app/edit.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TEXT_MAX_BYTES = 8 << 20 };

static bool is_folder(const char *path)
{
    struct stat st;
    return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           access(path, W_OK) == 0;
}

/* What is written here reaches no disk, if there is a choice. */
static const char *folder(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    if (is_folder(runtime))
        return runtime;
    if (is_folder("/dev/shm"))
        return "/dev/shm";
    return is_folder(temporary) ? temporary : "/tmp";
}

static int file_make(struct edit_run *e, const char *text, struct err *err)
{
    struct buf b = BUF_INIT;
    size_t n = strlen(text), done = 0;
    buf_printf(&b, "%s/tern-XXXXXX.md", folder());
    e->path = buf_detach(&b);
    int fd = mkstemps(e->path, 3);
    if (fd < 0) {
        err_set(err, "cannot make %s: %s", e->path, strerror(errno));
        free(e->path);
        e->path = NULL;
        return -1;
    }
    while (done < n) {
        ssize_t k = write(fd, text + done, n - done);
        if (k < 0 && errno != EINTR)
            break;
        done += k > 0 ? (size_t)k : 0;
    }
    close(fd);
    return done == n ? 0 : err_set(err, "cannot write %s: %s", e->path, strerror(errno));
}

static const char *editor(void)
{
    const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");
    return visual && *visual ? visual : plain && *plain ? plain : "vi";
}

/* With the signals that this program waits for as they were before. */
static int spawn(struct edit_run *e, struct err *err)
{
    struct buf command = BUF_INIT;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    char sh[] = "sh", option[] = "-c";
    buf_printf(&command, "%s \"$1\"", editor());
    char *argv[] = { sh, option, command.v, sh, e->path, NULL };
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    sigaddset(&usual, SIGHUP);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGTSTP);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = posix_spawn(&e->pid, "/bin/sh", &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    buf_release(&command);
    return rc == 0 ? 0 : err_set(err, "cannot start %s: %s", editor(), strerror(rc));
}

int edit_start(struct edit_run *e, const char *text, struct err *err)
{
    *e = (struct edit_run){ 0 };
    if (file_make(e, text, err) == 0 && spawn(e, err) == 0)
        return 0;
    edit_end(e);
    return -1;
}

int edit_poll(struct edit_run *e, bool *running, struct buf *out, struct err *err)
{
    int status;
    pid_t pid = waitpid(e->pid, &status, WNOHANG);
    *running = pid == 0 || (pid < 0 && errno == EINTR);
    if (*running)
        return 0;
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return err_set(err, "the editor (%s) failed; the text is as it was", editor());
    if (file_read_all(e->path, TEXT_MAX_BYTES, out, err) < 0)
        return -1;
    /* Editors end the last line. */
    if (out->len && out->v[out->len - 1] == '\n')
        buf_truncate(out, out->len - 1);
    if (strlen(buf_cstr(out)) != out->len)
        return err_set(err, "what the editor left is no text");
    return 0;
}

void edit_end(struct edit_run *e)
{
    if (e->path)
        unlink(e->path);
    free(e->path);
    *e = (struct edit_run){ 0 };
}
