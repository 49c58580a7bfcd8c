/* test_config.c - the configuration file: values, refusals, missing and
 * damaged files. */
#include "app/config.h"
#include "base/file.h"

#include "tests/test.h"

#include <sys/stat.h>

static char *write_config(const void *text, size_t n)
{
    static char path[32];
    snprintf(path, sizeof path, "/tmp/tern-config-XXXXXX");
    int fd = mkstemp(path);
    REQUIRE(fd >= 0 && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
    return path;
}

static int load(struct config *c, const char *text, struct buf *notes)
{
    struct err err = { "" };
    char *path = write_config(text, strlen(text));
    int rc = config_load(c, path, notes, &err);
    unlink(path);
    if (rc < 0)
        printf("# %s\n", err.text);
    return rc;
}

static void test_missing_is_fine(void)
{
    struct config c;
    struct buf notes = BUF_INIT;
    struct err err;
    CHECK(config_load(&c, "/nonexistent/tern/config", &notes, &err) == 0);
    CHECK(c.mouse && c.colours && !c.model && c.ctx == -1 && c.temperature == -1);
    CHECK(config_load(&c, NULL, &notes, &err) == 0);
    CHECK(notes.len == 0);
}

static void test_values(void)
{
    struct config c;
    struct buf notes = BUF_INIT;
    setenv("HOME", "/srv/x", 1);
    REQUIRE(load(&c,
                 "# comment\n; another\nmodel = ~/m.gguf\nctx=8192\ntemperature = 0.7\n"
                 "top_k=20\ntop_p=0.8\nmin_p = 0.05\nmouse = off\ncolours=no\n"
                 "thinking = on\nmath=float\nstart = last\nsnapshots_gb = 0.5\ndevice=2\n"
                 "stop = END\nstop = a\\nb\nrepeat_penalty = 1.1\n"
                 "presence_penalty = -0.5\ntheme = dark\neffort = "
                 "medium\npreserve_thinking = off\n"
                 "system = You are terse ; and # exact.\n   Answer in one line.\n",
                 &notes) == 0);
    CHECK_STR(buf_cstr(&notes), "");
    CHECK_STR(c.model, "/srv/x/m.gguf");
    CHECK_STR(c.system, "You are terse ; and # exact.\nAnswer in one line.");
    CHECK(c.ctx == 8192 && c.temperature == 0.7 && c.top_k == 20 && c.device == 2);
    CHECK(c.top_p == 0.8 && c.min_p == 0.05 && !c.mouse && !c.colours);
    CHECK(c.keep_bytes == 500000000 && c.stops.n == 2);
    CHECK_STR(c.stops.v[1], "a\nb");
    CHECK(c.repeat_penalty == 1.1 && c.presence_penalty == -0.5);
    CHECK(isnan(c.frequency_penalty) && c.effort == EFFORT_MEDIUM);
    CHECK(c.preserve_thinking == 0);
    CHECK_STR(c.theme ? c.theme : "NULL", "dark");
    CHECK(c.thinking == 1 && c.math == MATH_FLOAT && c.start_last);
    config_release(&c);
    buf_release(&notes);
}

static void test_presets(void)
{
    struct config c;
    struct buf notes = BUF_INIT;
    REQUIRE(load(&c,
                 "preset = coder\ntemperature = 0.9\n"
                 "[preset coder]\nsystem = You write C.\n  No other language.\n"
                 "temperature = 0.2\nstop = END\nstop = FIN\n"
                 "[preset two words]\nthinking = on\ntop_p = 2\ncolour = red\n",
                 &notes) == 0);
    REQUIRE(c.presets.len == 2);
    CHECK_STR(c.preset, "coder");
    CHECK(c.temperature == 0.9);
    const struct preset *p = preset_find(&c.presets, "coder");
    REQUIRE(p);
    char *system = setting_lines_get(p->lines, "system");
    CHECK_STR(system, "You write C.\nNo other language.");
    free(system);
    struct chat_settings s;
    settings_init(&s);
    settings_apply(&s, p->lines);
    CHECK(s.temperature == 0.2 && s.stops.n == 2);
    settings_release(&s);
    CHECK_STR(preset_find(&c.presets, "two words")->lines, "thinking = on\n");
    CHECK(strstr(buf_cstr(&notes),
                 "config: preset two words: top_p needs a number from 0 "
                 "to 1, not \"2\"\n"));
    CHECK(strstr(notes.v, "there is no setting \"colour\""));
    config_release(&c);
    buf_truncate(&notes, 0);
    REQUIRE(load(&c, "preset = coder\n", &notes) == 0);
    CHECK_STR(buf_cstr(&notes), "config: there is no [preset coder]\n");
    config_release(&c);
    buf_release(&notes);
}

static void test_keys_and_folders(void)
{
    struct config c;
    struct buf notes = BUF_INIT;
    setenv("HOME", "/srv/x", 1);
    REQUIRE(load(&c,
                 "models = ~/models\nmodels = /srv/more models\ntitles = model\n"
                 "[keys]\nedit = F4, Alt+E\nfly = F5\nfind = x\nmouse = none\n",
                 &notes) == 0);
    CHECK_STR(c.folders, "/srv/x/models\n/srv/more models\n");
    CHECK_STR(c.keys, "edit = F4, Alt+E\nmouse = none\n");
    CHECK(c.titles == TITLES_MODEL);
    CHECK_STR(buf_cstr(&notes),
              "config: keys: there is no action \"fly\"; tern help keys lists them\n"
              "config: keys: \"x\" is no key that can be told from typing\n");
    config_release(&c);
    buf_truncate(&notes, 0);
    REQUIRE(load(&c, "titles = always\n", &notes) == 0);
    CHECK_STR(buf_cstr(&notes),
              "config: titles needs auto, first or model, not \"always\"\n");
    CHECK(c.titles == TITLES_AUTO && !c.keys && !c.folders);
    config_release(&c);
    buf_release(&notes);
}

static void test_notes(void)
{
    struct config c;
    struct buf notes = BUF_INIT;
    REQUIRE(load(&c, "top_k = 300\ntheme = pink\neffort = most\npresence_penalty = 3\n",
                 &notes) == 0);
    CHECK_STR(buf_cstr(&notes),
              "config: top_k needs a number from 0 to 256, not \"300\"\n"
              "config: theme needs 16, dark, light or none, not \"pink\"\n"
              "config: effort needs low, medium or high, not \"most\"\n"
              "config: presence_penalty needs a number from -2 to 2, not \"3\"\n");
    config_release(&c);
    buf_truncate(&notes, 0);
    REQUIRE(load(&c, "colour = red\nctx = many\nmouse = maybe\n[net]\nctx = 5\n",
                 &notes) == 0);
    CHECK_STR(buf_cstr(&notes), "config: unknown key \"colour\"\n"
                                "config: ctx needs a whole number, not \"many\"\n"
                                "config: mouse needs on or off, not \"maybe\"\n"
                                "config: unknown key \"net.ctx\"\n");
    CHECK(c.ctx == -1 && c.mouse);
    config_release(&c);
    buf_truncate(&notes, 0);
    REQUIRE(load(&c, "ctx = 5\nrubbish\nmouse = off\n", &notes) == 0);
    CHECK_STR(buf_cstr(&notes), "config: line 2 is no \"key = value\"\n");
    CHECK(c.ctx == 5 && !c.mouse);
    config_release(&c);
    buf_release(&notes);
}

static void test_long_line(void)
{
    struct buf text = BUF_INIT, notes = BUF_INIT;
    struct config c;
    buf_str(&text, "system = ");
    for (int i = 0; i < 20000; i++)
        buf_str(&text, "word ");
    buf_str(&text, "end\nctx = 9\n");
    REQUIRE(load(&c, text.v, &notes) == 0);
    CHECK_STR(buf_cstr(&notes), "");
    CHECK(c.system && strlen(c.system) == 100003 && c.ctx == 9);
    config_release(&c);
    buf_release(&text);
}

static void test_unreadable(void)
{
    struct config c;
    struct buf notes = BUF_INIT;
    struct err err = { "" };
    CHECK(config_load(&c, "/tmp", &notes, &err) == -1 && err.text[0]);
    CHECK(c.mouse && c.ctx == -1);
    char *path = write_config("ctx = 5\n\0\n", 10);
    CHECK(config_load(&c, path, &notes, &err) == -1);
    CHECK(strstr(err.text, "NUL") && c.ctx == -1);
    unlink(path);
}

TEST_MAIN(T(test_missing_is_fine), T(test_values), T(test_presets),
          T(test_keys_and_folders), T(test_notes), T(test_long_line), T(test_unreadable))
