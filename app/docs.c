/* docs.c - completions for shells and the tables of the manual page, printed from the
 * tables that the program itself goes by. */
#include "app/command.h"

#include "ui/ui.h"

#include "app/config.h"
#include "app/out.h"
#include "app/slash.h"

#include <string.h>

/* ---- shells ----------------------------------------------------------------- */

/* Whether an argument is a file, and whether it is one of some words. */
static bool takes_file(const char *argument)
{
    return argument && (!strcmp(argument, "FILE") || !strcmp(argument, "MODEL") ||
                        !strcmp(argument, "[MODEL]"));
}

static bool takes_words(const char *argument)
{
    return argument && strchr(argument, '|') && !strchr(argument, '-') &&
           strcmp(argument, "PROMPT|-") != 0;
}

static void words_add(struct buf *b, const char *argument)
{
    for (; *argument; argument++)
        buf_char(b, *argument == '|' ? ' ' : *argument);
}

/* Every option that a command takes, as --name. */
static void options_add(struct buf *b, uint64_t set, const char *before)
{
    struct option_row row;
    for (size_t i = 0; option_row(i, &row); i++)
        if ((set | OPTION_BIT(HELP)) >> i & 1)
            buf_printf(b, "%s--%s", before, row.name);
}

static void bash(struct buf *b)
{
    const struct command *c;
    struct option_row row;
    buf_str(b,
            "# bash completion for tern\n_tern() {\n"
            "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
            "    local command=${COMP_WORDS[1]} words=\n    COMPREPLY=()\n"
            "    case $prev in\n");
    for (size_t i = 0; option_row(i, &row); i++) {
        if (takes_file(row.argument))
            buf_printf(b, "    --%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
                       row.name);
        if (!takes_words(row.argument))
            continue;
        buf_printf(b, "    --%s) COMPREPLY=($(compgen -W '", row.name);
        words_add(b, row.argument);
        buf_str(b, "' -- \"$cur\")); return ;;\n");
    }
    buf_str(b, "    -m) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n    esac\n"
               "    if [ \"$COMP_CWORD\" -eq 1 ] && [ \"${cur#-}\" = \"$cur\" ]; then\n"
               "        words='");
    for (size_t i = 0; (c = command_row(i)); i++)
        if (*c->name && *c->help)
            buf_printf(b, "%s ", c->name);
    buf_str(b, "'\n    else case $command in\n");
    for (size_t i = 0; (c = command_row(i)); i++) {
        if (!*c->help)
            continue;
        buf_printf(b, "        %s) words='", *c->name ? c->name : "-*");
        options_add(b, c->options, " ");
        if (takes_words(c->arguments)) {
            buf_char(b, ' ');
            words_add(b, c->arguments);
        }
        buf_printf(b, "' %s;;\n",
                   takes_file(c->arguments) ? "; COMPREPLY=($(compgen -f -- \"$cur\")) "
                                            : "");
    }
    buf_str(b, "        esac\n    fi\n"
               "    COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
               "complete -o filenames -F _tern tern\n");
}

/* Text inside '...' of a shell. */
static void quoted(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '\'')
            buf_str(b, "'\\''");
        else
            buf_char(b, *s);
    }
}

static void zsh_spec(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (strchr("[]:\\", *s))
            buf_char(b, '\\');
        if (*s == '\'')
            buf_str(b, "'\\''");
        else
            buf_char(b, *s);
    }
}

static void zsh_option(struct buf *b, const struct option_row *row)
{
    buf_printf(b, " \\\n            '--%s[", row->name);
    zsh_spec(b, row->help);
    buf_char(b, ']');
    if (row->argument) {
        buf_char(b, ':');
        zsh_spec(b, row->argument);
        buf_char(b, ':');
        if (takes_file(row->argument))
            buf_str(b, "_files");
        if (takes_words(row->argument)) {
            buf_char(b, '(');
            words_add(b, row->argument);
            buf_char(b, ')');
        }
    }
    buf_char(b, '\'');
}

static void zsh_arguments(struct buf *b, const struct command *c)
{
    struct option_row row;
    buf_printf(b, "        %s) _arguments", *c->name ? c->name : "*");
    for (size_t i = 0; option_row(i, &row); i++)
        if ((c->options | OPTION_BIT(HELP)) >> i & 1)
            zsh_option(b, &row);
    if (takes_file(c->arguments))
        buf_str(b, " \\\n            '*:file:_files'");
    if (takes_words(c->arguments)) {
        buf_str(b, " \\\n            '1:word:(");
        words_add(b, c->arguments);
        buf_str(b, ")'");
    }
    buf_str(b, " ;;\n");
}

static void zsh(struct buf *b)
{
    const struct command *c;
    buf_str(b, "#compdef tern\n_tern() {\n    local -a commands=(\n");
    for (size_t i = 0; (c = command_row(i)); i++) {
        if (!*c->name || !*c->help)
            continue;
        buf_printf(b, "        '%s:", c->name);
        quoted(b, c->help);
        buf_str(b, "'\n");
    }
    buf_str(b, "    )\n    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
               "        _describe command commands\n        return\n    fi\n"
               "    local command=$words[2]\n"
               "    if [[ $command != -* ]]; then shift words; (( CURRENT-- )); fi\n"
               "    case $command in\n");
    for (size_t i = 1; (c = command_row(i)); i++)
        if (*c->help)
            zsh_arguments(b, c);
    zsh_arguments(b, command_row(0));
    buf_str(b, "    esac\n}\n"
               "if [ \"$funcstack[1]\" = _tern ]; then _tern \"$@\"; else compdef _tern "
               "tern; fi\n");
}

static void fish_option(struct buf *b, const char *condition,
                        const struct option_row *row)
{
    buf_printf(b, "complete -c tern -n '%s' -l %s", condition, row->name);
    if (row->letter)
        buf_printf(b, " -s %c", row->letter);
    if (row->argument)
        buf_str(b, takes_file(row->argument) ? " -rF" : " -x");
    if (takes_words(row->argument)) {
        buf_str(b, " -a '");
        words_add(b, row->argument);
        buf_char(b, '\'');
    }
    buf_str(b, " -d '");
    quoted(b, row->help);
    buf_str(b, "'\n");
}

static void fish(struct buf *b)
{
    const struct command *c;
    struct option_row row;
    buf_str(b, "# fish completion for tern\ncomplete -c tern -f\n");
    for (size_t i = 0; (c = command_row(i)); i++) {
        struct buf condition = BUF_INIT;
        if (!*c->help)
            continue;
        if (*c->name) {
            buf_printf(b, "complete -c tern -n __fish_use_subcommand -a %s -d '",
                       c->name);
            quoted(b, c->help);
            buf_str(b, "'\n");
            buf_printf(&condition, "__fish_seen_subcommand_from %s", c->name);
        } else {
            buf_str(&condition, "__fish_use_subcommand");
        }
        for (size_t k = 0; option_row(k, &row); k++)
            if ((c->options | OPTION_BIT(HELP)) >> k & 1)
                fish_option(b, condition.v, &row);
        if (takes_file(c->arguments))
            buf_printf(b, "complete -c tern -n '%s' -F\n", condition.v);
        if (takes_words(c->arguments)) {
            buf_printf(b, "complete -c tern -n '%s' -a '", condition.v);
            words_add(b, c->arguments);
            buf_str(b, "'\n");
        }
        buf_release(&condition);
    }
}

int cmd_completion(struct env *env, struct err *err)
{
    static const struct {
        const char *name;
        void (*print)(struct buf *b);
    } shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        struct buf b = BUF_INIT;
        if (strcmp(env->opt.args[0], shells[i].name) != 0)
            continue;
        shells[i].print(&b);
        out_text(b.v, b.len);
        buf_release(&b);
        return EXIT_OK;
    }
    return err_set(err, "there are completions for bash, zsh and fish, not for \"%s\"",
                   env->opt.args[0]);
}

/* ---- manual page ------------------------------------------------------------- */

/* Text of a roff line: nothing in it is a request or an escape. */
static void roff(struct buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\')
            buf_str(b, "\\e");
        else if (*s == '-')
            buf_str(b, "\\-");
        else
            buf_char(b, *s);
    }
}

/* A heading in bold, its argument in italics, and a line about it. */
static void entry(struct buf *b, const char *name, const char *argument, const char *help)
{
    buf_str(b, ".TP\n\\fB");
    roff(b, name);
    buf_str(b, "\\fR");
    if (argument && *argument) {
        buf_str(b, " \\fI");
        roff(b, argument);
        buf_str(b, "\\fR");
    }
    buf_str(b, "\n\\&");
    roff(b, help);
    buf_str(b, "\n");
}

static void manual_commands(struct buf *b)
{
    const struct command *c;
    for (size_t i = 1; (c = command_row(i)); i++)
        if (*c->help)
            entry(b, c->name, c->arguments, c->help);
}

static void manual_options(struct buf *b)
{
    struct option_row row;
    for (size_t i = 0; option_row(i, &row); i++) {
        struct buf name = BUF_INIT;
        if (row.letter)
            buf_printf(&name, "-%c, ", row.letter);
        buf_printf(&name, "--%s", row.name);
        entry(b, name.v, row.argument, row.help);
        buf_release(&name);
    }
}

static void manual_keys(struct buf *b)
{
    struct ui_key_row row;
    struct buf keys = BUF_INIT;
    for (size_t i = 0; ui_key_row(i, NULL, &row, &keys); i++)
        if (keys.len && *row.help)
            entry(b, keys.v, row.action, row.help);
    buf_release(&keys);
}

static void manual_chat(struct buf *b)
{
    struct slash_row row;
    for (size_t i = 0; slash_row(i, &row); i++) {
        struct buf name = BUF_INIT;
        buf_printf(&name, "/%s", row.name);
        entry(b, name.v, row.argument, row.help);
        buf_release(&name);
    }
}

static void manual_config(struct buf *b)
{
    struct config_row row;
    for (size_t i = 0; config_row(i, &row); i++)
        entry(b, row.name, row.argument, row.help);
}

int cmd_manual(struct env *env, struct err *err)
{
    static const struct {
        const char *name;
        void (*print)(struct buf *b);
    } sections[] = { { "commands", manual_commands },
                     { "options", manual_options },
                     { "keys", manual_keys },
                     { "chat", manual_chat },
                     { "config", manual_config } };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct buf b = BUF_INIT;
        if (strcmp(env->opt.args[0], sections[i].name) != 0)
            continue;
        sections[i].print(&b);
        out_text(b.v, b.len);
        buf_release(&b);
        return EXIT_OK;
    }
    return err_set(err, "the manual page has no section \"%s\"", env->opt.args[0]);
}
