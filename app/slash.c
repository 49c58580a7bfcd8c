/* slash.c - the commands of a chat. */
#include "app/slash.h"

#include "base/file.h"
#include "base/mem.h"

#include "app/attach.h"
#include "app/json.h"
#include "app/options.h"
#include "app/setup.h"
#include "app/transfer.h"

#include <stdlib.h>
#include <string.h>

static enum slash_result done(int rc)
{
    return rc < 0 ? SLASH_FAILED : SLASH_DONE;
}

/* ---- conversations --------------------------------------------------------- */

static enum slash_result new_run(struct slash_call *s, struct err *err)
{
    return done(conversation_show(s->c, 0, err));
}

static enum slash_result open_run(struct slash_call *s, struct err *err)
{
    int64_t id;
    if (!parse_int(s->arg, 1, INT64_MAX, &id))
        return done(err_set(err, "/open needs the number of a conversation"));
    return done(conversation_show(s->c, id, err));
}

static int check_stored(const struct conversation *c, struct err *err)
{
    return c->chat.id ? 0 : err_set(err, "this conversation is still empty");
}

static enum slash_result title_run(struct slash_call *s, struct err *err)
{
    if (!*s->arg)
        return done(err_set(err, "/title needs a title"));
    if (check_stored(s->c, err) < 0)
        return SLASH_FAILED;
    return done(conversation_rename(s->c, s->c->chat.id, s->arg, err));
}

static enum slash_result pin_run(struct slash_call *s, struct err *err)
{
    struct conversation *c = s->c;
    if (check_stored(c, err) < 0)
        return SLASH_FAILED;
    bool pinned = !c->chat.pinned;
    if (store_chat_set_pinned(c->store, c->chat.id, pinned, err) < 0)
        return SLASH_FAILED;
    c->chat.pinned = pinned;
    conversation_notice(c,
                        pinned ? "pinned to the top of the list" : "not pinned any more");
    return SLASH_DONE;
}

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);
    return n > k && !strcmp(name + n - k, ending);
}

static int export_text(struct slash_call *s, struct buf *b, struct err *err)
{
    struct store *st = s->c->store;
    int64_t id = s->c->chat.id;
    if (ends_in(s->arg, ".json"))
        return transfer_json(st, id, true, b, err);
    if (ends_in(s->arg, ".txt"))
        return transfer_text(st, id, true, b, err);
    return transfer_markdown(st, id, true, b, err);
}

static enum slash_result export_run(struct slash_call *s, struct err *err)
{
    struct buf b = BUF_INIT;
    if (!*s->arg)
        return done(err_set(err, "/export needs a file: NAME.md, NAME.json or NAME.txt"));
    if (check_stored(s->c, err) < 0)
        return SLASH_FAILED;
    char *path = path_expand(s->arg);
    int rc = export_text(s, &b, err);
    if (rc == 0)
        rc = file_write_atomic(path, buf_cstr(&b), b.len, err);
    if (rc == 0)
        conversation_notice(s->c, "written to %s", path);
    free(path);
    buf_release(&b);
    return done(rc);
}

static enum slash_result import_run(struct slash_call *s, struct err *err)
{
    struct buf b = BUF_INIT;
    struct import_result result = { 0 };
    if (!*s->arg)
        return done(err_set(err, "/import needs a file"));
    char *path = path_expand(s->arg);
    int rc = file_read_all(path, JSON_MAX_BYTES, &b, err);
    if (rc == 0)
        rc = transfer_import_any(s->c->store, buf_cstr(&b), b.len, &result, err);
    if (rc == 0)
        rc = conversation_show(s->c, result.last, err);
    if (rc == 0)
        conversation_notice(s->c, "%zu conversation%s added", result.n,
                            result.n == 1 ? "" : "s");
    free(path);
    buf_release(&b);
    return done(rc);
}

/* ---- answers ---------------------------------------------------------------- */

static enum slash_result retry_run(struct slash_call *s, struct err *err)
{
    struct conversation *c = s->c;
    if (!c->path.len)
        return done(err_set(err, "there is nothing to answer"));
    return done(conversation_regenerate(c, c->path.v[c->path.len - 1].id, err));
}

static enum slash_result continue_run(struct slash_call *s, struct err *err)
{
    return done(conversation_continue(s->c, err));
}

static enum slash_result undo_run(struct slash_call *s, struct err *err)
{
    return conversation_undo(s->c, &s->input, err) < 0 ? SLASH_FAILED : SLASH_INPUT;
}

static enum slash_result redo_run(struct slash_call *s, struct err *err)
{
    return done(conversation_redo(s->c, err));
}

static enum slash_result fork_run(struct slash_call *s, struct err *err)
{
    return done(conversation_fork(s->c, 0, err));
}

/* ---- settings ----------------------------------------------------------------- */

static enum slash_result model_run(struct slash_call *s, struct err *err)
{
    const char *path = *s->arg ? s->arg : s->c->model_path;
    if (!path)
        return done(err_set(err, "/model needs a file"));
    char *expanded = path_expand(path);
    conversation_load(s->c, expanded);
    free(expanded);
    return SLASH_DONE;
}

static void settings_notice(struct conversation *c)
{
    struct buf b = BUF_INIT;
    settings_describe(&c->settings, &b);
    conversation_notice(c, "%s%s%s", c->preset ? c->preset : "", c->preset ? ": " : "",
                        b.len ? buf_cstr(&b) : "all as the model recommends");
    buf_release(&b);
}

static enum slash_result set_run(struct slash_call *s, struct err *err)
{
    size_t n = strcspn(s->arg, " =");
    const char *value = s->arg + n + strspn(s->arg + n, " =");
    if (!*s->arg) {
        settings_notice(s->c);
        return SLASH_DONE;
    }
    char *key = mem_strndup(s->arg, n);
    int rc = *value ? setup_set(s->c, key, value, err) : setup_set(s->c, key, NULL, err);
    free(key);
    if (rc == 0)
        settings_notice(s->c);
    return done(rc);
}

static enum slash_result temp_run(struct slash_call *s, struct err *err)
{
    int rc = setup_set(s->c, "temperature", s->arg, err);
    if (rc == 0)
        settings_notice(s->c);
    return done(rc);
}

static enum slash_result think_run(struct slash_call *s, struct err *err)
{
    int rc = setup_set(s->c, "thinking", s->arg, err);
    if (rc == 0)
        settings_notice(s->c);
    return done(rc);
}

/* Whether what comes costs so much that the user is asked first. */
static bool asks_first(struct slash_call *s)
{
    struct reading r = conversation_reading(s->c, 0);
    if (s->again || !s->c->chat.id || r.seconds < 1)
        return false;
    conversation_notice(s->c,
                        "the next message then reads %zu tokens again, some %.0f s; "
                        "Enter once more does it",
                        r.tokens, r.seconds);
    return true;
}

static const char *system_now(const struct conversation *c)
{
    if (!c->chat.id)
        return c->settings.system ? c->settings.system : "";
    return c->path.len && c->path.v[0].role == ROLE_SYSTEM ? c->path.v[0].text : "";
}

static enum slash_result system_run(struct slash_call *s, struct err *err)
{
    struct buf b = BUF_INIT;
    if (!*s->arg) {
        buf_printf(&b, "/system %s", system_now(s->c));
        s->input = buf_detach(&b);
        return SLASH_INPUT;
    }
    const char *text = strcmp(s->arg, "none") != 0 ? s->arg : "";
    if (!strcmp(text, system_now(s->c)))
        return SLASH_DONE;
    if (asks_first(s))
        return SLASH_AGAIN;
    if (conversation_set_system(s->c, text, err) < 0)
        return SLASH_FAILED;
    conversation_notice(s->c, *text ? "the system prompt is another one from now on"
                                    : "no system prompt from now on");
    return SLASH_DONE;
}

static void presets_notice(const struct slash_call *s)
{
    const struct preset_list *l = s->c->presets;
    struct buf b = BUF_INIT;
    for (size_t i = 0; l && i < l->len; i++)
        buf_printf(&b, "%s%s", b.len ? ", " : "", l->v[i].name);
    if (b.len)
        conversation_notice(s->c, "presets: %s, none", buf_cstr(&b));
    else
        conversation_notice(s->c, "the configuration has no [preset NAME]");
    buf_release(&b);
}

/* A conversation that has begun takes the preset's system prompt, too. */
static enum slash_result preset_run(struct slash_call *s, struct err *err)
{
    if (!*s->arg) {
        presets_notice(s);
        return SLASH_DONE;
    }
    const char *name = strcmp(s->arg, "none") != 0 ? s->arg : NULL;
    const struct preset *p = name ? preset_find(s->c->presets, name) : NULL;
    char *system = p ? setting_lines_get(p->lines, "system") : NULL;
    bool other = s->c->chat.id && system && strcmp(system, system_now(s->c)) != 0;
    enum slash_result result = SLASH_FAILED;
    if (p && other && asks_first(s))
        result = SLASH_AGAIN;
    else if (setup_preset(s->c, name, err) == 0)
        result = done(other ? conversation_set_system(s->c, system, err) : 0);
    if (result == SLASH_DONE)
        settings_notice(s->c);
    free(system);
    return result;
}

/* ---- texts ------------------------------------------------------------------- */

static enum slash_result file_run(struct slash_call *s, struct err *err)
{
    struct buf text = BUF_INIT, label = BUF_INIT;
    if (!*s->arg)
        return done(err_set(err, "/file needs the name of a text file"));
    if (attach_file(s->c->model, s->arg, &text, &label, err) < 0)
        return SLASH_FAILED;
    s->input = buf_detach(&text);
    s->label = buf_detach(&label);
    return SLASH_ATTACH;
}

static enum slash_result help_run(struct slash_call *s, struct err *err);

static enum slash_result quit_run(struct slash_call *s, struct err *err)
{
    (void)s;
    (void)err;
    return SLASH_QUIT;
}

static enum slash_result screen_run(struct slash_call *s, struct err *err)
{
    (void)s;
    return done(err_set(err, "that is for the full screen"));
}

static const struct slash {
    struct slash_row row;
    enum slash_result (*run)(struct slash_call *s, struct err *err);
} slashes[] = {
    { { "new", "", "start a conversation" }, new_run },
    { { "list", "", "the conversations" }, screen_run },
    { { "search", "[WORDS]", "search all conversations" }, screen_run },
    { { "open", "ID", "open a conversation by its number" }, open_run },
    { { "title", "TEXT", "name this conversation" }, title_run },
    { { "pin", "", "keep this conversation at the top of the list, or not any more" },
      pin_run },
    { { "retry", "", "answer the last message again, or for the first time" },
      retry_run },
    { { "continue", "", "let the last answer go on where it ends" }, continue_run },
    { { "undo", "", "take the last message back into the input" }, undo_run },
    { { "redo", "", "show again what was taken back" }, redo_run },
    { { "fork", "", "go on in a conversation of its own" }, fork_run },
    { { "find", "[WORDS]", "search in this conversation" }, screen_run },
    { { "file", "PATH", "insert a text file; @PATH in a message does the same" },
      file_run },
    { { "copy", "[FILE]", "the last or selected message to the clipboard or a file" },
      screen_run },
    { { "export", "FILE", "write this conversation to NAME.md, .json or .txt" },
      export_run },
    { { "import", "FILE", "add conversations from JSON or chat text" }, import_run },
    { { "model", "[FILE]", "choose another model" }, model_run },
    { { "preset", "[NAME]", "settings of the configuration by name, or none" },
      preset_run },
    { { "system", "[TEXT]", "edit or set the system prompt, or none" }, system_run },
    { { "set", "[KEY [VALUE]]", "a setting of this conversation; all of them" },
      set_run },
    { { "temp", "T", "temperature of the next answers, or auto" }, temp_run },
    { { "think", "on|off|auto", "reasoning before the next answers" }, think_run },
    { { "theme", "NAME", "colours: 16, dark, light or none" }, screen_run },
    { { "help", "", "keys and commands" }, help_run },
    { { "quit", "", "leave" }, quit_run },
};

enum { SLASHES = sizeof slashes / sizeof *slashes };

bool slash_row(size_t i, struct slash_row *out)
{
    if (i >= SLASHES)
        return false;
    *out = slashes[i].row;
    return true;
}

static enum slash_result help_run(struct slash_call *s, struct err *err)
{
    struct buf b = BUF_INIT;
    (void)err;
    for (size_t i = 0; i < SLASHES; i++)
        if (slashes[i].run != screen_run)
            buf_printf(&b, "%s/%s%s%s", b.len ? "  " : "", slashes[i].row.name,
                       *slashes[i].row.argument ? " " : "", slashes[i].row.argument);
    conversation_notice(s->c, "%s", buf_cstr(&b));
    buf_release(&b);
    return SLASH_DONE;
}

void slash_help(struct buf *out)
{
    for (size_t i = 0; i < SLASHES; i++) {
        const struct slash_row *row = &slashes[i].row;
        struct buf left = BUF_INIT;
        buf_printf(&left, "/%s %s", row->name, row->argument);
        buf_printf(out, "%-20s %s\n", buf_cstr(&left), row->help);
        buf_release(&left);
    }
}

void slash_words(const struct conversation *c, struct buf *out)
{
    buf_str(out, "/preset none");
    for (size_t i = 0; c->presets && i < c->presets->len; i++)
        buf_printf(out, " %s", c->presets->v[i].name);
    buf_str(out, "\n/set ");
    settings_keys(out);
    buf_str(out, "\n/think on off auto\n/temp auto\n/system none\n"
                 "/theme 16 dark light none\n");
}

bool slash_is(const char *text)
{
    size_t n = text[0] == '/' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    return n && (text[1 + n] == 0 || text[1 + n] == ' ');
}

static const struct slash *slash_find(const char *name, size_t n)
{
    for (size_t i = 0; i < SLASHES; i++)
        if (strlen(slashes[i].row.name) == n && !memcmp(slashes[i].row.name, name, n))
            return &slashes[i];
    return NULL;
}

/* Whether the last command was this very one; from now on it is the last one. */
static bool given_before(struct conversation *c, const char *text)
{
    bool same = c->last_command && !strcmp(c->last_command, text);
    free(c->last_command);
    c->last_command = same ? NULL : mem_strdup(text);
    return same;
}

enum slash_result slash_run(struct slash_call *call, const char *text, struct err *err)
{
    const char *name = text + (text[0] == '/');
    size_t n = strcspn(name, " \t\n");
    struct buf clean = BUF_INIT;
    buf_str(&clean, name + n + strspn(name + n, " \t\n"));
    while (clean.len && strchr(" \t\r\n", clean.v[clean.len - 1]))
        buf_truncate(&clean, clean.len - 1);
    enum slash_result result = SLASH_FAILED;
    const struct slash *s = slash_find(name, n);
    call->arg = buf_cstr(&clean);
    call->again = given_before(call->c, text);
    if (s)
        result = s->run(call, err);
    else
        err_set(err, "there is no command /%.*s; /help lists them", (int)n, name);
    call->arg = "";
    buf_release(&clean);
    return result;
}
