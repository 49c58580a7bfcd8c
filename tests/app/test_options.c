/* test_options.c - the option parser: forms, bounds, refusals. */
#include "app/options.h"

#include "tests/test.h"

#define ALL (~UINT64_C(0))

/* Parses a space-separated command line ("_" stands for an empty word). */
static int parse(struct options *o, const char *line, uint64_t allowed, struct err *err)
{
    static char copy[512];
    static char *argv[64];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "_") ? word : word + 1;
    argv[argc] = NULL;
    return options_parse(o, argc, argv, allowed, err);
}

static void test_forms(void)
{
    struct options o;
    struct err err;
    REQUIRE(parse(&o,
                  "-m a.gguf -n7 --temp=0.5 hello --seed 18446744073709551615 -c last "
                  "--json --math int8 --think off - world",
                  ALL, &err) == 0);
    CHECK_STR(o.model, "a.gguf");
    CHECK(o.count == 7 && o.temperature == 0.5 && o.json && o.has_seed);
    CHECK(o.seed == UINT64_MAX && o.math == MATH_INT8 && o.thinking == 0);
    CHECK_STR(o.chat, "last");
    REQUIRE(o.n_args == 3);
    CHECK_STR(o.args[0], "hello");
    CHECK_STR(o.args[1], "-");
    CHECK_STR(o.args[2], "world");
    CHECK(o.args[3] == NULL);
    options_release(&o);
}

static void test_not_given(void)
{
    struct options o;
    struct err err;
    REQUIRE(parse(&o, "", ALL, &err) == 0);
    CHECK(!o.model && !o.chat && !o.json && !o.has_seed && o.n_args == 0);
    CHECK(o.count == -1 && o.temperature == -1 && o.top_p == -1 && o.thinking == -1);
    CHECK(o.math == MATH_AUTO && o.top_k == -1 && o.ctx == -1 && o.device == -1);
    options_release(&o);
}

static void test_sampling(void)
{
    struct options o;
    struct err err;
    REQUIRE(parse(&o,
                  "--repeat-penalty 1.1 --presence-penalty -1.5 --frequency-penalty=.25 "
                  "--effort high --preserve-thinking off",
                  ALL, &err) == 0);
    CHECK(o.repeat_penalty == 1.1 && o.presence_penalty == -1.5);
    CHECK(o.frequency_penalty == 0.25 && o.effort == EFFORT_XHIGH);
    CHECK(o.preserve_thinking == 0);
    options_release(&o);
    REQUIRE(parse(&o, "--effort low --top-k 20 --min-p 0.5", ALL, &err) == 0);
    CHECK(isnan(o.repeat_penalty) && isnan(o.presence_penalty));
    CHECK(isnan(o.frequency_penalty) && o.preserve_thinking == -1);
    CHECK(o.effort == EFFORT_LOW && o.top_k == 20 && o.min_p == 0.5);
    options_release(&o);
}

static void test_stop_texts(void)
{
    struct options o;
    struct err err;
    REQUIRE(parse(&o, "--stop END --stop=a\\nb", ALL, &err) == 0);
    REQUIRE(o.stops.n == 2);
    CHECK_STR(o.stops.v[0], "END");
    CHECK_STR(o.stops.v[1], "a\nb");
    options_release(&o);
    CHECK(o.stops.n == 0);
}

static void test_values_that_look_like_options(void)
{
    struct options o;
    struct err err;
    REQUIRE(parse(&o, "-s -x --system=--y -- -m --json", ALL, &err) == 0);
    CHECK_STR(o.system, "--y");
    REQUIRE(o.n_args == 2);
    CHECK_STR(o.args[0], "-m");
    CHECK(!o.json && !o.model);
    options_release(&o);
    REQUIRE(parse(&o, "--system= _", ALL, &err) == 0);
    CHECK_STR(o.system, "");
    REQUIRE(o.n_args == 1);
    CHECK_STR(o.args[0], "");
    options_release(&o);
}

static void test_refusals(void)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        { "--nonsense", "--nonsense" },
        { "-z", "-z" },
        { "-m", "-m needs a value" },
        { "--seed", "--seed needs" },
        { "--seed -1", "--seed needs" },
        { "--seed 18446744073709551616", "--seed needs" },
        { "-n x", "-n needs" },
        { "-n 1.5", "-n needs" },
        { "-n -1", "-n needs" },
        { "-n 99999999999999999999", "-n needs" },
        { "-n 4294967296", "-n needs" },
        { "-n 0x10", "-n needs" },
        { "--temp nan", "--temp needs" },
        { "--temp inf", "--temp needs" },
        { "--temp -1", "--temp needs" },
        { "--temp 101", "--temp needs" },
        { "--temp 1,5", "--temp needs" },
        { "--temp 0x1", "--temp needs" },
        { "--temp _", "--temp needs" },
        { "--top-p 1.01", "--top-p needs" },
        { "--math double", "int8 or float" },
        { "--think maybe", "on or off" },
        { "--stop _", "--stop: a stop text has" },
        { "--top-k -1", "--top-k needs" },
        { "--top-k 257", "--top-k needs a whole number from 0 to 256" },
        { "--min-p 1.5", "--min-p needs" },
        { "--repeat-penalty 0", "--repeat-penalty needs a number from 0.1 to 10" },
        { "--repeat-penalty -1", "--repeat-penalty needs" },
        { "--repeat-penalty nan", "--repeat-penalty needs" },
        { "--presence-penalty 2.1", "--presence-penalty needs a number from -2 to 2" },
        { "--presence-penalty --1", "--presence-penalty needs" },
        { "--frequency-penalty -3", "--frequency-penalty needs" },
        { "--effort max", "low, medium or high" },
        { "--preserve-thinking maybe", "on or off" },
        { "--json=1", "takes no value" },
        { "--jso", "unknown option --jso" },
        { "--modelx=a", "unknown option --modelx" },
        { "--=a", "unknown option" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct err err = { "" };
        CHECK(parse(&o, cases[i].line, ALL, &err) == -1);
        if (!strstr(err.text, cases[i].says))
            printf("# %s: %s\n", cases[i].line, err.text);
        CHECK(strstr(err.text, cases[i].says));
        options_release(&o);
    }
}

static void test_only_allowed(void)
{
    struct options o;
    struct err err = { "" };
    CHECK(parse(&o, "-m x", OPTION_BIT(MODEL), &err) == 0);
    options_release(&o);
    CHECK(parse(&o, "--json", OPTION_BIT(MODEL), &err) == -1);
    CHECK_STR(err.text, "unknown option --json");
    options_release(&o);
}

static void test_help_names_each_option(void)
{
    struct buf b = BUF_INIT;
    options_help(&b, OPTION_BIT(MODEL) | OPTION_BIT(SEED));
    CHECK(strstr(buf_cstr(&b), "-m, --model FILE"));
    CHECK(strstr(buf_cstr(&b), "--seed N"));
    CHECK(!strstr(buf_cstr(&b), "--temp"));
    buf_release(&b);
}

TEST_MAIN(T(test_forms), T(test_not_given), T(test_sampling), T(test_stop_texts),
          T(test_values_that_look_like_options), T(test_refusals), T(test_only_allowed),
          T(test_help_names_each_option))
