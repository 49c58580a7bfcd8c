/* screen.c - `tern` without a command: the full-screen program where the terminal
 * can carry it, else line mode. While the screen is up, what libraries print to
 * standard error goes to the log. */
#include "app/command.h"

#include "base/mem.h"

#include "ui/ui.h"

#include "app/app.h"
#include "app/desk.h"
#include "app/lines.h"
#include "app/out.h"
#include "app/slash.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Earlier messages of the newest conversations, for the input history. */
static char *history_load(struct store *st)
{
    enum { CHATS = 8 };
    struct chat_list chats = { 0 };
    struct buf b = BUF_INIT;
    if (store_chat_list(st, &chats, NULL) < 0)
        return NULL;
    for (size_t i = chats.len < CHATS ? chats.len : CHATS; i-- > 0;) {
        struct message_list path = { 0 };
        store_path(st, chats.v[i].leaf_id, &path, NULL);
        for (size_t k = 0; k < path.len; k++)
            if (path.v[k].role == ROLE_USER && !strchr(path.v[k].text, '\n'))
                buf_printf(&b, "%s\n", path.v[k].text);
        message_list_release(&path);
    }
    chat_list_release(&chats);
    return buf_detach(&b);
}

/* Returns a copy of standard error, which goes to the log from now on. */
static int stderr_divert(const char *log_path)
{
    int copy = dup(STDERR_FILENO);
    int fd = log_path ? open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (fd < 0)
        fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (copy >= 0 && fd >= 0) {
        fcntl(copy, F_SETFD, FD_CLOEXEC);
        dup2(fd, STDERR_FILENO);
    }
    if (fd >= 0)
        close(fd);
    return copy;
}

static void stderr_restore(int copy)
{
    if (copy < 0)
        return;
    dup2(copy, STDERR_FILENO);
    close(copy);
}

static void notices_print(const struct env *env)
{
    const char *line = buf_cstr(&env->notices);
    for (size_t n; *line; line += n + 1) {
        n = strcspn(line, "\n");
        note_printf("tern: %.*s", (int)n, line);
    }
}

static int screen_run(struct desk *d, struct ui *ui, struct err *err)
{
    int copy = stderr_divert(d->env->log_path);
    desk_load(d);
    int rc = app_run(d, ui, err);
    ui_close(ui);
    stderr_restore(copy);
    return rc;
}

int cmd_chat(struct env *env, struct err *err)
{
    struct desk d;
    struct ui *ui = NULL;
    struct err reason;
    int rc = -1;
    if (desk_open(&d, env, err) < 0)
        return -1;
    if (desk_show(&d, err) < 0)
        goto out;
    char *history = history_load(d.store);
    struct buf commands = BUF_INIT, words = BUF_INIT;
    slash_help(&commands);
    slash_words(&d.c, &words);
    const struct ui_params params = { .mouse = env->conf.mouse,
                                      .theme =
                                          env->conf.colours ? env->conf.theme : "none",
                                      .history = history,
                                      .commands = buf_cstr(&commands),
                                      .words = buf_cstr(&words),
                                      .keys = env->conf.keys };
    if (ui_open(&ui, &params, &reason) == 0) {
        rc = screen_run(&d, ui, err);
    } else {
        log_line(env->log, LOG_NOTE, "line mode: %s", reason.text);
        notices_print(env);
        desk_load(&d);
        rc = lines_run(&d, err);
    }
    free(history);
    buf_release(&commands);
    buf_release(&words);
out:
    desk_close(&d);
    return rc;
}
