/* test_ref_model.c - the plain C reference of whole models against results that
 * other programs computed in double precision. */
#include "engine/ref_model.h"
#include "tests/engine/whole.h"

#include <math.h>

/* Prompts of up to so many ids: the reference is slow. */
enum { MOST_IDS = 17 };

static void check_case(const struct model *m, const struct json *one)
{
    const struct json *ids = json_get(one, "ids"), *want = json_get(one, "last_logits");
    const struct json *each = json_get(one, "argmax_each");
    const uint32_t n_vocab = model_info(m)->n_vocab;
    float *logits = mem_array(n_vocab, sizeof *logits), worst = 0;
    struct ref_model *r = ref_model_open(m);
    REQUIRE(want->n == n_vocab && each->n == ids->n);
    for (size_t i = 0; i < ids->n; i++) {
        uint32_t best = 0;
        ref_model_step(r, (int32_t)json_number(json_at(ids, i)), logits);
        for (uint32_t k = 1; k < n_vocab; k++)
            best = logits[k] > logits[best] ? k : best;
        CHECK((int)best == (int)json_number(json_at(each, i)));
    }
    for (uint32_t k = 0; k < n_vocab; k++)
        worst = fmaxf(worst, fabsf(logits[k] - (float)json_number(json_at(want, k))));
    if (!(worst < 2e-4f))
        printf("# %zu ids: largest difference %g\n", ids->n, (double)worst);
    CHECK(worst < 2e-4f);
    ref_model_close(r);
    free(logits);
}

static void check_golden(const char *name)
{
    char path[256];
    struct model *m;
    struct err err = { "" };
    size_t checked = 0;
    snprintf(path, sizeof path, "tests/data/%s.gguf", name);
    OK(model_open(&m, path, &err), &err);
    snprintf(path, sizeof path, "tests/data/%s.json", name);
    struct json j = json_read(path);
    const struct json *cases = json_get(&j, "cases");
    for (size_t c = 0; c < cases->n; c++)
        if (json_get(json_at(cases, c), "ids")->n <= MOST_IDS) {
            check_case(m, json_at(cases, c));
            checked++;
        }
    CHECK(checked == 3);
    json_release(&j);
    model_close(m);
}

static void test_qwen35(void)
{
    check_golden("dense_qwen35");
}

static void test_qwen35moe(void)
{
    check_golden("moe_qwen35");
}

static void test_qwen3next(void)
{
    check_golden("next");
}

TEST_MAIN(T(test_qwen35), T(test_qwen35moe), T(test_qwen3next))
