/* setup.c - layers of settings.
 * Invariant: c->settings is base, preset, own and forced lines, in this order. */
#include "app/setup.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define PRESET_KEY "preset"

static void layers_apply(struct conversation *c)
{
    const struct preset *p = c->preset ? preset_find(c->presets, c->preset) : NULL;
    settings_release(&c->settings);
    settings_copy(&c->settings, &c->base);
    if (p)
        settings_apply(&c->settings, p->lines);
    settings_apply(&c->settings, buf_cstr(&c->own));
    settings_apply(&c->settings, c->forced ? c->forced : "");
}

static void name_set(char **field, const char *name)
{
    char *copy = name && *name ? mem_strdup(name) : NULL;
    free(*field);
    *field = copy;
}

void setup_open(struct conversation *c, const struct setup_params *p)
{
    settings_release(&c->base);
    settings_copy(&c->base, p->base);
    c->presets = p->presets;
    name_set(&c->default_preset, p->preset);
    name_set(&c->forced, p->forced);
    setup_show(c);
}

void setup_release(struct conversation *c)
{
    settings_release(&c->base);
    settings_release(&c->settings);
    buf_release(&c->own);
    free(c->preset);
    free(c->default_preset);
    free(c->forced);
}

void setup_show(struct conversation *c)
{
    const char *stored = c->chat.id && c->chat.settings ? c->chat.settings : "";
    char *preset = setting_lines_get(stored, PRESET_KEY);
    buf_truncate(&c->own, 0);
    buf_str(&c->own, stored);
    setting_lines_set(&c->own, PRESET_KEY, NULL);
    name_set(&c->preset, c->chat.id ? preset : c->default_preset);
    free(preset);
    if (c->preset && !preset_find(c->presets, c->preset))
        conversation_notice(c, "there is no preset \"%s\" in the configuration",
                            c->preset);
    layers_apply(c);
}

int setup_save(struct conversation *c, struct err *err)
{
    struct buf b = BUF_INIT;
    int rc = 0;
    if (!c->chat.id)
        return 0;
    buf_str(&b, buf_cstr(&c->own));
    setting_lines_set(&b, "system", NULL); /* which is its first message by now */
    if (c->preset)
        setting_lines_set(&b, PRESET_KEY, c->preset);
    if (strcmp(c->chat.settings ? c->chat.settings : "", buf_cstr(&b)) != 0)
        rc = store_chat_set_settings(c->store, c->chat.id, buf_cstr(&b), err);
    if (rc == 0) {
        free(c->chat.settings);
        c->chat.settings = buf_detach(&b);
    }
    buf_release(&b);
    return rc;
}

/* The new layers, or the ones before if they cannot be kept. */
static int change(struct conversation *c, char *preset, struct buf *own, struct err *err)
{
    struct buf old_own = c->own;
    char *old_preset = c->preset;
    c->own = *own;
    c->preset = preset;
    if (setup_save(c, err) < 0) {
        buf_release(&c->own);
        free(c->preset);
        c->own = old_own;
        c->preset = old_preset;
        return -1;
    }
    buf_release(&old_own);
    free(old_preset);
    layers_apply(c);
    return 0;
}

int setup_set(struct conversation *c, const char *key, const char *value, struct err *err)
{
    struct chat_settings scratch;
    struct buf own = BUF_INIT;
    settings_init(&scratch);
    int rc = settings_set(&scratch, key, value ? value : "auto", err);
    settings_release(&scratch);
    if (rc < 0)
        return -1;
    buf_str(&own, buf_cstr(&c->own));
    setting_lines_set(&own, key, value);
    return change(c, c->preset ? mem_strdup(c->preset) : NULL, &own, err);
}

int setup_preset(struct conversation *c, const char *name, struct err *err)
{
    struct buf none = BUF_INIT;
    if (name && !preset_find(c->presets, name))
        return err_set(err,
                       "there is no preset \"%s\"; the configuration has them as "
                       "[preset NAME]",
                       name);
    return change(c, name ? mem_strdup(name) : NULL, &none, err);
}

void setup_describe(const struct conversation *c, struct buf *out)
{
    struct chat_settings own;
    struct buf b = BUF_INIT;
    settings_init(&own);
    settings_apply(&own, buf_cstr(&c->own));
    if (c->forced)
        settings_apply(&own, c->forced);
    settings_describe(&own, &b);
    buf_printf(out, "%s%s%s", c->preset ? c->preset : "", c->preset && b.len ? ": " : "",
               buf_cstr(&b));
    buf_release(&b);
    settings_release(&own);
}
