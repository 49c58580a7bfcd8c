/* fake_tern.c - the whole program with the scripted engine, for sessions in a real
 * terminal with exact timing. The script is in the environment:
 *   FAKE_ANSWERS   answers separated by '|', with \n and the like as in C
 *   FAKE_STEP_MS, FAKE_PREFILL_US, FAKE_LOAD_MS   a token, a token read, a model
 *   FAKE_CTX, FAKE_CHUNK   tokens
 *   FAKE_NAME, FAKE_REFUSAL   of the model
 *   FAKE_BY_FILE   models have the names of their files
 *   FAKE_FAILS_AT  the number of the decode step that fails */
#include "app/program.h"
#include "tests/app/fake_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* \n, \t, \e and \\ in place. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (*s == '\\' && s[1]) {
            s++;
            *to++ = *s == 'n' ? '\n' : *s == 't' ? '\t' : *s == 'e' ? '\033' : *s;
        } else {
            *to++ = *s;
        }
    }
    *to = 0;
}

static double number(const char *name)
{
    const char *v = getenv(name);
    return v ? atof(v) : 0;
}

static void answers_set(void)
{
    static char text[1 << 16];
    const char *given = getenv("FAKE_ANSWERS");
    char *at = text, *next;
    if (!given || strlen(given) >= sizeof text)
        return;
    strcpy(text, given);
    for (size_t i = 0; i < sizeof fake.answers / sizeof *fake.answers && at; i++) {
        next = strchr(at, '|');
        if (next)
            *next++ = 0;
        unescape(at);
        fake.answers[i] = at;
        at = next;
    }
}

int main(int argc, char **argv)
{
    answers_set();
    fake.step_s = number("FAKE_STEP_MS") / 1e3;
    fake.prefill_s = number("FAKE_PREFILL_US") / 1e6;
    fake.load_s = number("FAKE_LOAD_MS") / 1e3;
    fake.ctx_tokens = (uint32_t)number("FAKE_CTX");
    fake.chunk_tokens = (uint32_t)number("FAKE_CHUNK");
    fake.decode_fails_at = (unsigned)number("FAKE_FAILS_AT");
    fake.named_by_file = getenv("FAKE_BY_FILE") != NULL;
    fake.model_name = getenv("FAKE_NAME");
    fake.refusal = getenv("FAKE_REFUSAL");
    return program_run(argc, argv);
}
