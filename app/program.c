/* program.c - from the command line to a command and an exit status. */
#include "app/program.h"

#include "base/buf.h"
#include "base/err.h"

#include "app/command.h"
#include "app/env.h"
#include "app/out.h"
#include "app/signals.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Only the character set: numbers keep their point in every language. */
static void locale_set(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

static int usage_error(const struct err *err, const struct command *c)
{
    note_printf("tern%s%s: %s; see tern help%s%s", *c->name ? " " : "", c->name,
                err->text, *c->name ? " " : "", c->name);
    return EXIT_USAGE;
}

static int command_run(const struct command *c, struct env *env)
{
    struct err err = { "" };
    struct buf help = BUF_INIT;
    int rc = EXIT_OK;
    if (env->opt.help) {
        if (*c->name)
            command_help(&help, c);
        else
            command_help_all(&help);
        out_text(buf_cstr(&help), help.len);
        buf_release(&help);
    } else if (env->opt.version) {
        out_line("Tern " TERN_VERSION);
    } else {
        rc = c->run(env, &err);
    }
    if (rc >= 0 && out_flush(&err) < 0)
        rc = -1;
    if (rc < 0)
        note_printf("tern: %s", err.text);
    return rc < 0 ? EXIT_FAILED : rc;
}

int program_run(int argc, char **argv)
{
    struct err err;
    struct env env;
    locale_set();
    signals_crash_handlers();
    bool named = argc > 1 && argv[1][0] != '-' && argv[1][0];
    const struct command *c = command_find(named ? argv[1] : "");
    if (!c) {
        note_printf("tern: there is no command \"%s\"; see tern --help", argv[1]);
        return EXIT_USAGE;
    }
    int first = 1 + named;
    if (first > argc)
        first = argc;
    int rc =
        env_open(&env, argc - first, argv + first,
                 c->options | OPTION_BIT(HELP) | (named ? 0 : OPTION_BIT(VERSION)), &err);
    if (rc == 0 && !env.opt.help &&
        (env.opt.n_args < c->min_args ||
         (c->max_args >= 0 && env.opt.n_args > c->max_args)))
        rc = err_set(&err,
                     env.opt.n_args < c->min_args ? "%s is missing"
                                                  : "too many arguments; it takes %s",
                     *c->arguments ? c->arguments : "none");
    rc = rc < 0 ? usage_error(&err, c) : command_run(c, &env);
    bool exit_now = env.exit_now;
    env_close(&env);
    if (exit_now)
        _exit(rc);
    return rc;
}
