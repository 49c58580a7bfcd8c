/* template.c - chat templates of files from strangers, filled with the messages
 * of strangers. Input: the template's length, how to render, the template, then
 * messages of a role, a length and a text each. */
#include "tests/fuzz/fuzz.h"

#include "engine/gguf.h"
#include "engine/template.h"
#include "engine/vocab.h"

const unsigned fuzz_rounds = 2000;
const size_t fuzz_max_bytes = 1 << 14;

enum { TURNS_MAX = 16 };

static const struct vocab *the_vocab(void)
{
    static struct gguf *file;
    static struct vocab *vocab;
    struct err err;
    if (!vocab) {
        MUST(gguf_open(&file, "assets/tern-mini.gguf", &err) == 0);
        MUST(vocab_open(&vocab, file, &err) == 0);
    }
    return vocab;
}

static size_t controls(const struct vocab *v, const struct tokens *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < ids->len; i++) {
        MUST(ids->v[i] >= 0 && (uint32_t)ids->v[i] < vocab_size(v));
        n += vocab_type(v, ids->v[i]) == TOKEN_CONTROL;
    }
    return n;
}

static size_t take_turns(struct input_bytes *in, struct turn turns[TURNS_MAX])
{
    size_t n = 0;
    while (in->n && n < TURNS_MAX) {
        unsigned head = take(in);
        turns[n] = (struct turn){ .role = (enum role)(head % (ROLE_COUNT + 1)) };
        turns[n].text = take_text(in, take16(in) % 1024, &turns[n].text_bytes);
        n++;
    }
    return n;
}

/* What a message says never changes how the conversation is built. */
static void render(const struct template *t, struct turn *turns, size_t n, unsigned how)
{
    const struct vocab *v = the_vocab();
    const struct render_params p = { .thinking = how & 1, .generate = how & 2 };
    struct tokens ids = { 0 }, plain = { 0 };
    size_t starts[TURNS_MAX + 1];
    struct err err = { "" };
    if (template_render(t, turns, n, &p, &ids, starts, &err) < 0) {
        MUST(err.text[0] && one_line(err.text));
        tokens_release(&ids);
        return;
    }
    for (size_t i = 0; i <= n; i++)
        MUST(starts[i] <= ids.len && (i == 0 || starts[i - 1] <= starts[i]));
    for (size_t i = 0; i < n; i++) {
        turns[i].text = "x";
        turns[i].text_bytes = 1;
    }
    MUST(template_render(t, turns, n, &p, &plain, NULL, &err) == 0);
    MUST(controls(v, &ids) == controls(v, &plain));
    tokens_release(&ids);
    tokens_release(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input_bytes in = { data, size };
    struct turn turns[TURNS_MAX];
    struct template *t;
    struct sampler_params sampling;
    size_t bytes;
    unsigned length = take16(&in), how = take(&in);
    const char *text = take_text(&in, length, &bytes);
    template_open_text(&t, how & 4 ? NULL : text, how & 4 ? 0 : bytes, the_vocab());
    MUST(template_family(t));
    MUST(!template_refusal(t) || one_line(template_refusal(t)));
    MUST(!template_note(t) || one_line(template_note(t)));
    template_sampling(t, how & 1, &sampling);
    MUST(sampling.temperature >= 0 && sampling.top_p >= 0 && sampling.top_p <= 1);
    render(t, turns, take_turns(&in, turns), how);
    template_close(t);
    return 0;
}
