/* options.h - what stands on the command line, for all commands alike. One
 * table holds names, kinds, bounds and help; a command names those it takes.
 * Thread-safety: one thread. */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include "base/buf.h"
#include "base/err.h"

#include "engine/engine.h"

#include "app/stop.h"

#include <stdbool.h>
#include <stdint.h>

/* Constant, long name, letter, kind, field, argument, help. */
#define OPTIONS(X)                                                                      \
    X(MODEL, "model", 'm', TEXT, model, "FILE", "the model file (GGUF)")                \
    X(CHAT, "chat", 'c', TEXT, chat, "ID", "a conversation: its number, or last")       \
    X(NEW, "new", 0, FLAG, new_chat, NULL, "start a new conversation")                  \
    X(SYSTEM, "system", 's', TEXT, system, "TEXT",                                      \
      "system prompt of a new conversation")                                            \
    X(COUNT, "count", 'n', COUNT, count, "N", "tokens to generate at most")             \
    X(TEMP, "temp", 0, REAL, temperature, "T",                                          \
      "temperature; 0 always takes the likeliest")                                      \
    X(TOP_K, "top-k", 0, TOP_K, top_k, "K", "sample among the K likeliest tokens")      \
    X(TOP_P, "top-p", 0, SHARE, top_p, "P",                                             \
      "sample among the likeliest that add up to P")                                    \
    X(MIN_P, "min-p", 0, SHARE, min_p, "P", "drop tokens below P times the likeliest")  \
    X(REPEAT, "repeat-penalty", 0, FACTOR, repeat_penalty, "R",                         \
      "divide the scores of tokens that came before by R; 1: off")                      \
    X(PRESENCE, "presence-penalty", 0, PENALTY, presence_penalty, "P",                  \
      "take P off the scores of tokens that came before")                               \
    X(FREQUENCY, "frequency-penalty", 0, PENALTY, frequency_penalty, "P",               \
      "take P off for each time that a token came")                                     \
    X(SEED, "seed", 0, SEED, seed, "N", "the same seed gives the same answer")          \
    X(THINK, "think", 0, ONOFF, thinking, "on|off",                                     \
      "reason before answering, where the model can choose")                            \
    X(EFFORT, "effort", 0, EFFORT, effort, "low|medium|high",                           \
      "how much to reason, where the model knows degrees")                              \
    X(PRESERVE, "preserve-thinking", 0, ONOFF, preserve_thinking, "on|off",             \
      "keep the reasoning of earlier answers in the context")                           \
    X(STOP, "stop", 0, STOP, stops, "TEXT",                                             \
      "end the answer before TEXT (\\n: a line break); may be repeated")                \
    X(JSON, "json", 0, FLAG, json, NULL, "print JSON")                                  \
    X(QUIET, "quiet", 'q', FLAG, quiet, NULL, "no figures on standard error")           \
    X(INCOGNITO, "incognito", 0, FLAG, incognito, NULL, "keep nothing of this on disk") \
    X(CTX, "ctx", 0, COUNT, ctx, "N", "context size in tokens")                         \
    X(DEVICE, "device", 0, COUNT, device, "N",                                          \
      "Vulkan device, as numbered by tern devices")                                     \
    X(MATH, "math", 0, MATH, math, "int8|float", "arithmetic of the matrix products")   \
    X(VALIDATE, "validate", 0, FLAG, validate, NULL,                                    \
      "load the Vulkan validation layers")                                              \
    X(FORMAT, "format", 0, TEXT, format, "md|json|text", "form of the export")          \
    X(NO_THINKING, "no-thinking", 0, FLAG, no_thinking, NULL, "leave reasoning out")    \
    X(PROMPT, "prompt", 'p', COUNT, prompt, "N", "prompt tokens to measure with")       \
    X(DEPTH, "depth", 'd', COUNT, depth, "N", "tokens already in the context")          \
    X(RUNS, "runs", 'r', COUNT, runs, "N", "measured runs")                             \
    X(PROFILE, "profile", 0, FLAG, profile, NULL,                                       \
      "show where the device time goes, by kind of step")                               \
    X(IDS, "ids", 0, TEXT, ids, "1,2,3", "token ids of the prompt")                     \
    X(TOP, "top", 0, COUNT, top, "K", "how many of the likeliest tokens to show")       \
    X(DUMP, "dump", 0, TEXT, dump, "FILE",                                              \
      "write the logits, little-endian f32, a row a token")                             \
    X(SPECIAL, "special", 0, FLAG, special, NULL,                                       \
      "control-token text becomes control tokens")                                      \
    X(TEST, "test", 0, FLAG, test, NULL, "test every kernel on the device")             \
    X(BANDWIDTH, "bandwidth", 0, FLAG, bandwidth, NULL,                                 \
      "measure how fast the device reads its memory")                                   \
    X(HELP, "help", 'h', FLAG, help, NULL, "this help")                                 \
    X(VERSION, "version", 0, FLAG, version, NULL, "the program's version")

#define OPTION_ROW(id, ...) OPTION_##id,
enum option_id { OPTIONS(OPTION_ROW) OPTIONS_N };
#undef OPTION_ROW
#define OPTION_BIT(id) (UINT64_C(1) << OPTION_##id)

struct options {
    const char *model, *chat, *system, *format, *ids, *dump;
    bool bandwidth, new_chat, json, quiet, incognito, validate, no_thinking, special,
        profile, test, help, version;
    int64_t count, top_k, ctx, device, prompt, depth, runs, top; /* -1: not given */
    double temperature, top_p, min_p;                            /* -1: not given */
    double repeat_penalty, presence_penalty, frequency_penalty;  /* NAN: not given */
    int64_t thinking, preserve_thinking;                         /* -1, 0, 1 */
    enum effort effort;
    uint64_t seed;
    bool has_seed;
    enum math_path math;
    struct stop_list stops;
    char **args; /* what is no option, in order; strings of argv */
    int n_args;
};

/* Reads argv[0..argc). allowed is a set of OPTION_BITs. Texts stay argv's.
 * Release whatever it returns. */
int options_parse(struct options *o, int argc, char **argv, uint64_t allowed,
                  struct err *err);
void options_release(struct options *o);
/* A line of help for each option in the set. */
void options_help(struct buf *out, uint64_t set);
/* One option after the other; false at the end. */
struct option_row {
    const char *name, *argument, *help; /* argument NULL: none */
    char letter;                        /* or 0 */
};
bool option_row(size_t i, struct option_row *row);

/* Whole decimal numbers within [min, max]; false for anything else. */
bool parse_int(const char *text, int64_t min, int64_t max, int64_t *out);
bool parse_real(const char *text, double min, double max, double *out);
/* A penalty that is taken off or, below 0, added: from -2 to 2. */
bool parse_penalty(const char *text, double *out);
/* low, medium, high or xhigh (which are the same). */
bool parse_effort(const char *text, enum effort *out);

#endif
