/* test_setup.c - settings by name, lines of them, and their layers. */
#include "app/setup.h"
#include "base/fault.h"
#include "tests/app/chat_bench.h"

#include <math.h>

static void test_each(void)
{
    static const struct {
        const char *key, *good, *bad;
    } cases[] = {
        { "thinking", "on", "maybe" },
        { "preserve_thinking", "off", "" },
        { "effort", "low", "lots" },
        { "temperature", "0.5", "-1" },
        { "top_k", "20", "257" },
        { "top_p", "0.9", "1.5" },
        { "min_p", "0.05", "x" },
        { "repeat_penalty", "1.1", "0" },
        { "presence_penalty", "-0.5", "2.5" },
        { "frequency_penalty", "1", "1e9" },
        { "max_tokens", "100", "0" },
        { "seed", "7", "-7" },
        { "stop", "END", "" },
    };
    struct chat_settings s;
    struct err err;
    settings_init(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf before = BUF_INIT, after = BUF_INIT;
        settings_describe(&s, &before);
        CHECK(settings_set(&s, cases[i].key, cases[i].bad, &err) < 0);
        CHECK(strstr(err.text, cases[i].key));
        settings_describe(&s, &after);
        CHECK_STR(buf_cstr(&after), buf_cstr(&before));
        CHECK(settings_set(&s, cases[i].key, cases[i].good, &err) == 0);
        buf_truncate(&after, 0);
        settings_describe(&s, &after);
        if (strcmp(cases[i].key, "preserve_thinking") != 0)
            CHECK(strcmp(buf_cstr(&after), buf_cstr(&before)) != 0);
        buf_release(&before);
        buf_release(&after);
    }
    CHECK(s.thinking == 1 && s.effort == EFFORT_LOW && s.temperature == 0.5);
    CHECK(s.top_k == 20 && s.max_tokens == 100 && s.has_seed && s.stops.n == 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(settings_set(&s, cases[i].key, "auto", &err) == 0);
    struct buf nothing = BUF_INIT;
    settings_describe(&s, &nothing);
    CHECK(nothing.len == 0 && !s.has_seed && !s.stops.n && isnan(s.repeat_penalty));
    CHECK(settings_set(&s, "colour", "red", &err) < 0);
    CHECK(strstr(err.text, "there is no setting \"colour\"") &&
          strstr(err.text, "top_k"));
    settings_release(&s);
    buf_release(&nothing);
}

static void test_lines(void)
{
    struct buf l = BUF_INIT;
    struct chat_settings s;
    setting_lines_set(&l, "system", "two\nlines \\n and a = sign");
    setting_lines_set(&l, "temperature", "0.5");
    setting_lines_set(&l, "stop", "A");
    setting_lines_set(&l, "stop", "B");
    setting_lines_set(&l, "temperature", "0.7");
    setting_lines_set(&l, "top_k", "5");
    setting_lines_set(&l, "top_k", NULL);
    CHECK(strchr(l.v, '\n') && !strstr(l.v, "0.5") && !strstr(l.v, "top_k"));
    char *system = setting_lines_get(l.v, "system");
    CHECK_STR(system, "two\nlines \\n and a = sign");
    free(system);
    CHECK(!setting_lines_get(l.v, "top_k") && !setting_lines_get(l.v, "syst"));
    settings_init(&s);
    settings_apply(&s, l.v);
    CHECK_STR(s.system, "two\nlines \\n and a = sign");
    CHECK(s.temperature == 0.7 && s.stops.n == 2);
    /* Lines of a later version, and none at all, are left alone. */
    settings_apply(&s, "mirostat = 2\nnonsense\n = \n\ntop_k = 9");
    CHECK(s.top_k == 9);
    settings_release(&s);
    buf_release(&l);
}

static struct preset coder = { NULL, NULL };

static void setup(struct bench *b, const char *forced)
{
    static struct preset_list presets;
    static char name[] = "coder", lines[] = "system = Write code.\ntemperature = 0.1\n"
                                            "thinking = off\n";
    coder = (struct preset){ name, lines };
    presets = (struct preset_list){ &coder, 1 };
    struct chat_settings base;
    settings_init(&base);
    settings_set(&base, "temperature", "0.9", &b->err);
    settings_set(&base, "top_k", "30", &b->err);
    setup_open(&b->c, &(struct setup_params){
                          .base = &base, .presets = &presets, .forced = forced });
    settings_release(&base);
}

static void test_layers(void)
{
    struct bench b;
    struct buf words = BUF_INIT;
    fake.answers[0] = "</think>ok";
    bench_open(&b);
    setup(&b, NULL);
    CHECK(b.c.settings.temperature == 0.9 && b.c.settings.thinking == -1);
    CHECK(setup_preset(&b.c, "writer", &b.err) < 0 && strstr(b.err.text, "writer"));
    REQUIRE(setup_preset(&b.c, "coder", &b.err) == 0);
    CHECK(b.c.settings.temperature == 0.1 && b.c.settings.thinking == 0);
    CHECK(b.c.settings.top_k == 30);
    REQUIRE(setup_set(&b.c, "thinking", "on", &b.err) == 0);
    setup_describe(&b.c, &words);
    CHECK_STR(buf_cstr(&words), "coder: thinking on");
    say(&b, "one");
    CHECK_TEXTS(&b, "Write code.", "one", "ok");
    CHECK(fake.sampler.temperature == 0.1f);
    int64_t chat = b.c.chat.id;

    /* The next new one knows nothing of it; this one does when it is back. */
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    CHECK(b.c.settings.temperature == 0.9 && b.c.settings.thinking == -1 && !b.c.preset);
    say(&b, "two");
    CHECK_TEXTS(&b, "two", "ok");
    REQUIRE(conversation_show(&b.c, chat, &b.err) == 0);
    CHECK(b.c.settings.temperature == 0.1 && b.c.settings.thinking == 1);
    REQUIRE(setup_set(&b.c, "temperature", "2", &b.err) == 0);
    REQUIRE(setup_set(&b.c, "thinking", NULL, &b.err) == 0);
    CHECK(b.c.settings.temperature == 2 && b.c.settings.thinking == 0);
    CHECK(setup_set(&b.c, "temperature", "hot", &b.err) < 0);
    CHECK(b.c.settings.temperature == 2);
    fault_arm(FAULT_SQL, 3);
    CHECK(setup_set(&b.c, "temperature", "3", &b.err) < 0);
    fault_disarm(FAULT_SQL);
    CHECK(b.c.settings.temperature == 2);
    REQUIRE(setup_preset(&b.c, NULL, &b.err) == 0);
    CHECK(b.c.settings.temperature == 0.9);
    bench_close(&b);
    buf_release(&words);
}

/* The command line wins, and is not kept. */
static void test_forced(void)
{
    struct bench b;
    bench_open(&b);
    setup(&b, "temperature = 0\n");
    REQUIRE(setup_preset(&b.c, "coder", &b.err) == 0);
    CHECK(b.c.settings.temperature == 0);
    say(&b, "one");
    struct chat chat;
    REQUIRE(store_chat_get(b.store, b.c.chat.id, &chat, &b.err) == 0);
    CHECK_STR(chat.settings, "preset = coder\n");
    chat_release(&chat);
    /* A preset that the configuration has no more. */
    REQUIRE(store_chat_set_settings(b.store, b.c.chat.id, "preset = gone\ntop_k = 3\n",
                                    &b.err) == 0);
    int64_t id = b.c.chat.id;
    REQUIRE(conversation_show(&b.c, 0, &b.err) == 0);
    REQUIRE(conversation_show(&b.c, id, &b.err) == 0);
    CHECK(b.c.settings.top_k == 3 && b.c.notice && strstr(b.c.notice, "gone"));
    bench_close(&b);
}

TEST_MAIN(T(test_each), T(test_lines), T(test_layers), T(test_forced))
