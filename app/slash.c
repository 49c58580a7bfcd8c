/* slash.c - the commands of a chat. */
#include "app/slash.h"

#include "base/file.h"
#include "base/mem.h"

#include "app/options.h"
#include "app/transfer.h"

#include <stdlib.h>
#include <string.h>

static enum slash_result new_run(struct conversation *c, const char *arg, struct err *err)
{
    (void)arg;
    return conversation_show(c, 0, err) < 0 ? SLASH_FAILED : SLASH_DONE;
}

static enum slash_result open_run(struct conversation *c, const char *arg,
                                  struct err *err)
{
    int64_t id;
    if (!parse_int(arg, 1, INT64_MAX, &id)) {
        err_set(err, "/open needs the number of a conversation");
        return SLASH_FAILED;
    }
    return conversation_show(c, id, err) < 0 ? SLASH_FAILED : SLASH_DONE;
}

static enum slash_result retry_run(struct conversation *c, const char *arg,
                                   struct err *err)
{
    (void)arg;
    if (!c->path.len) {
        err_set(err, "there is nothing to answer");
        return SLASH_FAILED;
    }
    int64_t last = c->path.v[c->path.len - 1].id;
    return conversation_regenerate(c, last, err) < 0 ? SLASH_FAILED : SLASH_DONE;
}

static enum slash_result model_run(struct conversation *c, const char *arg,
                                   struct err *err)
{
    const char *path = *arg ? arg : c->model_path;
    if (!path) {
        err_set(err, "/model needs a file");
        return SLASH_FAILED;
    }
    conversation_load(c, path);
    return SLASH_DONE;
}

static enum slash_result temp_run(struct conversation *c, const char *arg,
                                  struct err *err)
{
    double v;
    if (!parse_real(arg, 0, 100, &v)) {
        err_set(err, "/temp needs a number from 0 to 100");
        return SLASH_FAILED;
    }
    c->settings.temperature = v;
    conversation_notice(c, "temperature %g from the next answer on", v);
    return SLASH_DONE;
}

static enum slash_result think_run(struct conversation *c, const char *arg,
                                   struct err *err)
{
    static const char *const words[] = { "off", "on", "auto" };
    for (int i = 0; i < 3; i++)
        if (!strcmp(arg, words[i])) {
            c->settings.thinking = i == 2 ? -1 : i;
            conversation_notice(c, "thinking: %s, from the next answer on", arg);
            return SLASH_DONE;
        }
    err_set(err, "/think needs on, off or auto");
    return SLASH_FAILED;
}

static enum slash_result system_run(struct conversation *c, const char *arg,
                                    struct err *err)
{
    (void)err;
    free(c->settings.system);
    c->settings.system = *arg ? mem_strdup(arg) : NULL;
    conversation_notice(c, *arg ? "system prompt set for new conversations"
                                : "no system prompt for new conversations");
    return SLASH_DONE;
}

static enum slash_result title_run(struct conversation *c, const char *arg,
                                   struct err *err)
{
    if (!*arg || !c->chat.id) {
        err_set(err, *arg ? "this conversation is still empty" : "/title needs a title");
        return SLASH_FAILED;
    }
    return conversation_rename(c, c->chat.id, arg, err) < 0 ? SLASH_FAILED : SLASH_DONE;
}

static enum slash_result export_run(struct conversation *c, const char *arg,
                                    struct err *err)
{
    struct buf b = BUF_INIT;
    size_t n = strlen(arg);
    bool json = n > 5 && !strcmp(arg + n - 5, ".json");
    int rc = -1;
    if (!*arg || !c->chat.id)
        err_set(err, *arg ? "this conversation is still empty"
                          : "/export needs a file, NAME.md or NAME.json");
    else
        rc = json ? transfer_json(c->store, c->chat.id, true, &b, err)
                  : transfer_markdown(c->store, c->chat.id, true, &b, err);
    if (rc == 0)
        rc = file_write_atomic(arg, buf_cstr(&b), b.len, err);
    if (rc == 0)
        conversation_notice(c, "written to %s", arg);
    buf_release(&b);
    return rc < 0 ? SLASH_FAILED : SLASH_DONE;
}

static enum slash_result quit_run(struct conversation *c, const char *arg,
                                  struct err *err)
{
    (void)c;
    (void)arg;
    (void)err;
    return SLASH_QUIT;
}

static enum slash_result help_run(struct conversation *c, const char *arg,
                                  struct err *err);

static const struct slash {
    const char *name, *argument, *help;
    enum slash_result (*run)(struct conversation *c, const char *arg, struct err *err);
} slashes[] = {
    { "new", "", "start a conversation", new_run },
    { "open", "ID", "open a conversation", open_run },
    { "retry", "", "answer the last message again, or for the first time", retry_run },
    { "title", "TEXT", "name this conversation", title_run },
    { "export", "FILE", "write this conversation to NAME.md or NAME.json", export_run },
    { "model", "FILE", "load another model; without FILE the same again", model_run },
    { "temp", "T", "temperature of the next answers", temp_run },
    { "think", "on|off|auto", "reasoning before the next answers", think_run },
    { "system", "TEXT", "system prompt of new conversations", system_run },
    { "help", "", "list these commands", help_run },
    { "quit", "", "leave", quit_run },
};

enum { SLASHES = sizeof slashes / sizeof *slashes };

static enum slash_result help_run(struct conversation *c, const char *arg,
                                  struct err *err)
{
    struct buf b = BUF_INIT;
    (void)arg;
    (void)err;
    for (size_t i = 0; i < SLASHES; i++)
        buf_printf(&b, "%s/%s%s%s", i ? "  " : "", slashes[i].name,
                   *slashes[i].argument ? " " : "", slashes[i].argument);
    conversation_notice(c, "%s", buf_cstr(&b));
    buf_release(&b);
    return SLASH_DONE;
}

void slash_help(struct buf *out)
{
    for (size_t i = 0; i < SLASHES; i++) {
        struct buf left = BUF_INIT;
        buf_printf(&left, "/%s %s", slashes[i].name, slashes[i].argument);
        buf_printf(out, "%-20s %s\n", buf_cstr(&left), slashes[i].help);
        buf_release(&left);
    }
}

bool slash_is(const char *text)
{
    size_t n = text[0] == '/' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    return n && (text[1 + n] == 0 || text[1 + n] == ' ');
}

enum slash_result slash_run(struct conversation *c, const char *text, struct err *err)
{
    const char *name = text + (text[0] == '/');
    size_t n = strcspn(name, " \t\n");
    const char *arg = name + n + strspn(name + n, " \t\n");
    struct buf clean = BUF_INIT;
    buf_str(&clean, arg);
    while (clean.len && strchr(" \t\r\n", clean.v[clean.len - 1]))
        buf_truncate(&clean, clean.len - 1);
    enum slash_result result = SLASH_FAILED;
    size_t i = 0;
    while (i < SLASHES &&
           (strlen(slashes[i].name) != n || memcmp(slashes[i].name, name, n) != 0))
        i++;
    if (i < SLASHES)
        result = slashes[i].run(c, buf_cstr(&clean), err);
    else
        err_set(err, "there is no command /%.*s; /help lists them", (int)n, name);
    buf_release(&clean);
    return result;
}
