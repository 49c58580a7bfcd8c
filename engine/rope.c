/* rope.c - rotation of positions, and its scaling as files describe it. Scaling
 * that is not described in full is refused: it would go wrong slowly. */
#include "engine/rope.h"

#include "engine/model.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* The pair, counted with fractions, that turns so many times in the trained
 * context. */
static double pair_of_turns(const struct rope_scaling *s, double turns, double base,
                            uint32_t pairs)
{
    const double two_pi = 6.283185307179586;
    return pairs * log(s->trained / (turns * two_pi)) / log(base);
}

void rope_frequencies(const struct rope_scaling *s, double base, uint32_t pairs,
                      double *out)
{
    const double last = 2.0 * pairs - 1;
    double low = 0, high = 0;
    if (s->factor > 0) {
        low = clamp(floor(pair_of_turns(s, s->beta_fast, base, pairs)), 0, last);
        high = clamp(ceil(pair_of_turns(s, s->beta_slow, base, pairs)), 0, last);
    }
    const double width = fmax(high - low, 0.001);
    for (uint32_t i = 0; i < pairs; i++) {
        double f = pow(base, -(double)i / pairs);
        double slowed = s->factor > 0 ? clamp((i - low) / width, 0, 1) : 0;
        out[i] = slowed > 0 ? f * (1 - slowed) + f / s->factor * slowed : f;
    }
}

void rope_turns(const struct rope_scaling *s, const double *frequencies, uint32_t pairs,
                uint32_t position, float *out)
{
    double size = s->factor > 0 ? s->magnitude * (1 + 0.1 * log((double)s->factor)) : 1;
    for (uint32_t i = 0; i < pairs; i++) {
        double angle = position * frequencies[i];
        out[2 * i] = (float)(size * cos(angle));
        out[2 * i + 1] = (float)(size * sin(angle));
    }
}

/* ---- keys ---------------------------------------------------------------- */

struct reader {
    const struct gguf *g;
    const struct arch *arch;
    struct err *err;
};

/* A number within (0, max] where the file has it; *out is left alone else. */
static int number(const struct reader *r, const char *suffix, float max, float *out)
{
    char key[MODEL_KEY_BYTES];
    float value = *out;
    model_key(key, r->arch, suffix);
    if (gguf_f32(r->g, key, &value, r->err) < 0)
        return -1;
    if (!(value >= 0 && value <= max))
        return err_set(r->err, "%s is %g, not 0 to %g; the file is damaged", key,
                       (double)value, (double)max);
    *out = value;
    return 0;
}

/* Keys that change the method; only their usual value is known. 1, 0 or -1. */
static int check_method(const struct reader *r)
{
    static const struct {
        const char *key;
        float usual;
    } rows[] = {
        { "rope.scaling.yarn_ext_factor", 1 },
        { "rope.scaling.yarn_log_multiplier", 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[MODEL_KEY_BYTES];
        float value = rows[i].usual;
        model_key(key, r->arch, rows[i].key);
        if (gguf_f32(r->g, key, &value, r->err) < 0)
            return -1;
        if (value != rows[i].usual) {
            err_set(r->err, "%s %g is not supported, only %g", key, (double)value,
                    (double)rows[i].usual);
            return 0;
        }
    }
    return 1;
}

static int yarn_read(struct rope_scaling *s, const struct reader *r)
{
    char key[MODEL_KEY_BYTES];
    float more = 1;
    *s = (struct rope_scaling){ .beta_fast = 32, .beta_slow = 1, .magnitude = 1 };
    if (number(r, "rope.scaling.factor", 1e4f, &s->factor) < 0 ||
        number(r, "rope.scaling.yarn_beta_fast", 1e4f, &s->beta_fast) < 0 ||
        number(r, "rope.scaling.yarn_beta_slow", 1e4f, &s->beta_slow) < 0 ||
        number(r, "rope.scaling.attn_factor", 1e2f, &s->magnitude) < 0 ||
        number(r, "rope.scaling.yarn_attn_factor", 1e2f, &more) < 0)
        return -1;
    s->magnitude *= more;
    model_key(key, r->arch, "rope.scaling.original_context_length");
    if (gguf_u32(r->g, key, &s->trained, r->err) < 0)
        return -1;
    if (s->factor == 1) {
        s->factor = 0;
        return 1;
    }
    if (!s->trained || s->factor < 1 || s->beta_slow <= 0 ||
        s->beta_fast <= s->beta_slow || s->magnitude <= 0) {
        err_set(r->err,
                "its rope scaling is not described in full (%s and the keys "
                "beside it), so the model would give wrong results",
                key);
        return 0;
    }
    return check_method(r);
}

static bool is_text(const struct gguf_str *s, const char *text)
{
    return s->bytes == strlen(text) && !memcmp(s->v, text, s->bytes);
}

int rope_scaling_read(struct rope_scaling *s, const struct gguf *g,
                      const struct arch *arch, struct err *err)
{
    const struct reader r = { g, arch, err };
    char key[MODEL_KEY_BYTES], text[GGUF_TEXT_BYTES];
    struct gguf_str type = { "none", 4 };
    float factor = 1;
    model_key(key, arch, "rope.scaling.factor");
    if (gguf_f32(g, key, &factor, err) < 0)
        return -1;
    if (factor != 0 && factor != 1) /* which is meant unless a type is named */
        type = (struct gguf_str){ "linear", 6 };
    model_key(key, arch, "rope.scaling.type");
    if (gguf_string(g, key, &type, err) < 0)
        return -1;
    if (is_text(&type, "none"))
        return 1;
    if (is_text(&type, "yarn"))
        return yarn_read(s, &r);
    err_set(err, "rope scaling \"%s\" is not supported",
            gguf_text(text, type.v, type.bytes));
    return 0;
}
