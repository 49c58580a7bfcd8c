/* command.c - the table of commands and the help made from it. */
#include "app/command.h"

#include "ui/ui.h"

#include "app/out.h"
#include "app/slash.h"

#include <string.h>

#define B(id)          OPTION_BIT(id)
#define ENGINE_OPTIONS (B(MODEL) | B(CTX) | B(DEVICE) | B(MATH) | B(VALIDATE))
#define SAMPLING_OPTIONS                                                           \
    (B(SYSTEM) | B(COUNT) | B(TEMP) | B(TOP_K) | B(TOP_P) | B(MIN_P) | B(SEED) |   \
     B(REPEAT) | B(PRESENCE) | B(FREQUENCY) | B(THINK) | B(EFFORT) | B(PRESERVE) | \
     B(STOP) | B(INCOGNITO))

static const struct command commands[] = {
    { "", "", 0, 0, ENGINE_OPTIONS | SAMPLING_OPTIONS | B(CHAT) | B(NEW),
      "chat on the full screen", cmd_chat },
    { "run", "PROMPT|-", 0, -1,
      ENGINE_OPTIONS | SAMPLING_OPTIONS | B(CHAT) | B(JSON) | B(QUIET),
      "print one answer; - reads the prompt from standard input", cmd_run },
    { "ls", "", 0, 0, B(JSON), "list the conversations, newest first", cmd_ls },
    { "show", "ID", 1, 1, 0, "print a conversation", cmd_show },
    { "search", "WORDS", 1, -1, B(JSON), "find messages that contain all the words",
      cmd_search },
    { "export", "ID", 1, 1, B(FORMAT) | B(NO_THINKING),
      "print a conversation as Markdown, text or, with all its branches, JSON",
      cmd_export },
    { "import", "FILE", 1, 1, 0,
      "add conversations from JSON of Tern or other programs, or chat text", cmd_import },
    { "rm", "ID...", 1, -1, 0, "remove conversations for good", cmd_rm },
    { "bench", "", 0, 0,
      ENGINE_OPTIONS | B(PROMPT) | B(COUNT) | B(DEPTH) | B(RUNS) | B(PROFILE) | B(JSON),
      "measure prefill and decode rates", cmd_bench },
    { "logits", "", 0, 0, ENGINE_OPTIONS | B(IDS) | B(COUNT) | B(TOP) | B(DUMP),
      "print greedy ids and the top logits of the first", cmd_logits },
    { "tokenize", "[TEXT]", 0, -1, B(MODEL) | B(SPECIAL),
      "print the token ids of a text or of standard input", cmd_tokenize },
    { "info", "[MODEL]", 0, 1, B(MODEL) | B(CTX),
      "print what a model file holds and whether Tern runs it", cmd_info },
    { "devices", "", 0, 0, B(DEVICE) | B(TEST) | B(BANDWIDTH),
      "list the Vulkan devices", cmd_devices },
    { "completion", "bash|zsh|fish", 1, 1, 0, "print completions for a shell",
      cmd_completion },
    { "manual", "SECTION", 1, 1, 0, "", cmd_manual }, /* for the manual page */
    { "help", "[COMMAND]", 0, 1, 0, "print help; also on keys, chat and config",
      cmd_help },
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

const struct command *command_row(size_t i)
{
    return i < COMMANDS ? &commands[i] : NULL;
}

static void usage(struct buf *out, const struct command *c)
{
    buf_printf(out, "tern%s%s", *c->name ? " " : "", c->name);
    buf_str(out, c->options ? " [OPTIONS]" : "");
    buf_printf(out, "%s%s", *c->arguments ? " " : "", c->arguments);
}

void command_help_all(struct buf *out)
{
    buf_str(out,
            "Tern " TERN_VERSION " - chats with language models on this machine\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        struct buf left = BUF_INIT;
        if (!*commands[i].help)
            continue;
        usage(&left, &commands[i]);
        buf_printf(out, "  %-34s %s\n", buf_cstr(&left), commands[i].help);
        buf_release(&left);
    }
    buf_str(out, "\nOptions of the full-screen program:\n");
    options_help(out, commands[0].options | B(HELP) | B(VERSION));
    buf_str(out, "\ntern help COMMAND prints the options of a command; tern help keys,\n"
                 "chat and config what can be done in a chat and set up for it.\n");
}

void command_help(struct buf *out, const struct command *c)
{
    usage(out, c);
    buf_printf(out, "\n  %s\n", c->help);
    if (c->options) {
        buf_char(out, '\n');
        options_help(out, c->options);
    }
}

static void keys_help(struct buf *out, const char *lines)
{
    struct ui_key_row row;
    struct buf keys = BUF_INIT;
    for (size_t i = 0; ui_key_row(i, lines, &row, &keys); i++)
        buf_printf(out, "  %-18s %-24s %s\n", row.action, buf_cstr(&keys), row.help);
    buf_str(out, "\nOther keys stand in the configuration below [keys], as in\n"
                 "  edit = Alt+E, F4\n  mouse = none\n");
    buf_release(&keys);
}

/* What is no command, but worth a page. */
static bool topic(const struct env *env, const char *name, struct buf *out)
{
    if (!strcmp(name, "keys"))
        keys_help(out, env->conf.keys);
    else if (!strcmp(name, "chat"))
        slash_help(out);
    else if (!strcmp(name, "config"))
        config_help(out);
    else
        return false;
    return true;
}

int cmd_help(struct env *env, struct err *err)
{
    struct buf b = BUF_INIT;
    const char *name = env->opt.n_args ? env->opt.args[0] : NULL;
    const struct command *c = name && *name ? command_find(name) : NULL;
    bool found = name && topic(env, name, &b);
    if (name && !c && !found)
        return err_set(err, "there is no command \"%s\"; see tern --help", name);
    if (c)
        command_help(&b, c);
    else if (!found)
        command_help_all(&b);
    out_text(buf_cstr(&b), b.len);
    buf_release(&b);
    return EXIT_OK;
}
