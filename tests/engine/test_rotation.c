/* test_rotation.c - models whose weights were rotated against twins whose weights
 * were rotated back, and every description that is not understood. */
#include "engine/ref.h"
#include "tests/engine/random_model.h"
#include "tests/engine/rewrite.h"

enum { WIDE = 1024, N_IDS = 6, MORE = 2 };

/* ---- whole models -------------------------------------------------------- */

/* Two layers, of each kind one; 8 value heads share 2 key heads. The embedding, 7
 * matrices of the recurrent layer but for alpha and beta, and 7 of the other. */
static const char *const names[] = {
    "output.weight",         "blk.0.attn_qkv.weight",    "blk.0.attn_gate.weight",
    "blk.0.ssm_out.weight",  "blk.0.ffn_gate.weight",    "blk.0.ffn_up.weight",
    "blk.0.ffn_down.weight", "blk.1.attn_q.weight",      "blk.1.attn_k.weight",
    "blk.1.attn_v.weight",   "blk.1.attn_output.weight", "blk.1.ffn_gate.weight",
    "blk.1.ffn_up.weight",   "blk.1.ffn_down.weight",
};
enum { N_NAMES = sizeof names / sizeof *names, WIDTHS = 2 };

/* Signs of widths 1024 and 2048. */
static void make_signs(int32_t signs[3 * WIDE])
{
    uint32_t noise = 77;
    for (int i = 0; i < 3 * WIDE; i++)
        signs[i] = block_value(&noise) < 0 ? -1 : 1;
}

/* The description, and one thing about it that is different. */
enum different {
    NOTHING,
    TIED_HEAD,
    VERSION_3,
    NO_VERSION,
    OTHER_BLOCK,
    OTHER_TRANSFORM,
    OTHER_AXIS,
    OTHER_MODE,
    IDENTITY,
    IDENTITY_WITH_SIGNS,
    NO_SIGNS,
    SIGN_OF_2,
    SIGNS_LACK,
    WIDTH_LACKS,
    WIDTH_TWICE,
    NO_NAMES,
    NO_INVERSE,
    OTHER_INVERSE,
    FOREIGN_NAME,
    NORM_NAMED,
    BLOCK_9,
    EMBEDDING_NAMED,
    NO_GROUPED,
    UNKNOWN_KEY,
    TIED_IN_1,
    VERSION_2,
    UP_ALONE
};
static enum different different;

static void names_write(struct gguf_writer *w)
{
    const char *all[N_NAMES + 1];
    size_t n = 0;
    for (size_t i = 0; i < N_NAMES; i++)
        if (!(different == TIED_HEAD && i == 0) &&
            !(different == UP_ALONE && !strcmp(names[i], "blk.0.ffn_gate.weight")))
            all[n++] = names[i];
    const char *more = different == FOREIGN_NAME      ? "blk.0.attn_z.weight"
                       : different == NORM_NAMED      ? "blk.0.attn_norm.weight"
                       : different == BLOCK_9         ? "blk.9.attn_q.weight"
                       : different == EMBEDDING_NAMED ? "token_embd.weight"
                                                      : NULL;
    if (more)
        all[n++] = more;
    if (different != NO_NAMES)
        gw_strs(w, "prism.hadamard.weight_names", all, n);
    const char *const inverse[] = { different == OTHER_INVERSE ? "output.weight"
                                                               : "token_embd.weight" };
    if (different != NO_INVERSE)
        gw_strs(w, "prism.hadamard.inverse_weight_names", inverse, 1);
}

static void signs_write(struct gguf_writer *w)
{
    int32_t signs[3 * WIDE], widths[WIDTHS] = { WIDE, 2 * WIDE };
    size_t n = different == SIGNS_LACK ? 3 * WIDE - 1 : 3 * WIDE;
    bool identity = different == IDENTITY || different == IDENTITY_WITH_SIGNS;
    make_signs(signs);
    if (different == SIGN_OF_2)
        signs[100] = 2;
    if (different == WIDTH_TWICE)
        widths[1] = WIDE, n = 2 * WIDE;
    gw_str(w, "prism.hadamard.sign_mode",
           different == OTHER_MODE ? "random"
           : identity              ? "identity"
                                   : "explicit");
    if (different == NO_SIGNS || different == IDENTITY)
        return;
    if (different == WIDTH_LACKS)
        n = WIDE;
    gw_i32s(w, "prism.hadamard.sign_widths", widths,
            different == WIDTH_LACKS ? 1 : WIDTHS);
    gw_i32s(w, "prism.hadamard.sign_values", signs, n);
}

static void rotation_keys(struct gguf_writer *w)
{
    bool second = different == TIED_HEAD || different == VERSION_2;
    gw_u32(w, "qwen35.full_attention_interval", 2);
    if (different != NO_VERSION)
        gw_u32(w, "prism.hadamard.version", different == VERSION_3 ? 3 : second ? 2 : 1);
    if (second || different == TIED_IN_1)
        gw_bool(w, "prism.hadamard.tied_output", true);
    gw_u32(w, "prism.hadamard.block_size", different == OTHER_BLOCK ? 512 : WIDE);
    gw_str(w, "prism.hadamard.transform",
           different == OTHER_TRANSFORM ? "sylvester-walsh-hadamard"
                                        : "normalized-sylvester-walsh-hadamard");
    gw_str(w, "prism.hadamard.axis",
           different == OTHER_AXIS ? "output" : "input-last-dimension");
    if (different != NO_GROUPED)
        gw_bool(w, "prism.hadamard.gdn_v_grouped", true);
    if (different == UNKNOWN_KEY)
        gw_u32(w, "prism.hadamard.seed", 1);
    signs_write(w);
    names_write(w);
}

static void plain_keys(struct gguf_writer *w)
{
    gw_u32(w, "qwen35.full_attention_interval", 2);
}

static struct random_model model_of(enum quant type, bool tied)
{
    return (struct random_model){ .arch = "qwen35",
                                  .layers = 2,
                                  .interval = 2,
                                  .embd = WIDE,
                                  .ff = 2 * WIDE,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .dim = 256,
                                  .rope = 64,
                                  .k_heads = 2,
                                  .v_heads = 8,
                                  .type = type,
                                  .tied = tied,
                                  .keys = rotation_keys,
                                  .noise = 9 };
}

static struct random_question question(int32_t ids[N_IDS])
{
    for (int i = 0; i < N_IDS; i++)
        ids[i] = 17 * i % 251;
    return (struct random_question){ ids, N_IDS, MORE };
}

/* The transform by butterflies, which thousands of rows need; not scaled. */
static void butterflies(double *x)
{
    for (size_t h = 1; h < WIDE; h *= 2)
        for (size_t i = 0; i < WIDE; i++)
            if (!(i & h)) {
                double a = x[i], b = x[i | h];
                x[i] = a + b;
                x[i | h] = a - b;
            }
}

/* A row as it was before it was rotated: signs times its transform. */
static void row_back(const float *row, size_t n, const int32_t *signs, float *out)
{
    for (size_t first = 0; first < n; first += WIDE) {
        double made[WIDE];
        for (size_t i = 0; i < WIDE; i++)
            made[i] = row[first + i];
        butterflies(made);
        for (size_t i = 0; i < WIDE; i++)
            out[first + i] = (float)(made[i] / 32 * signs[first + i]);
    }
}

static void test_butterflies(void)
{
    double x[WIDE], want[WIDE];
    uint32_t noise = 3;
    for (int i = 0; i < WIDE; i++)
        x[i] = block_value(&noise);
    ref_hadamard(x, WIDE, want);
    butterflies(x);
    for (int i = 0; i < WIDE; i++)
        CHECK(fabs(x[i] / 32 - want[i]) < 1e-12);
}

/* From grouped to tiled order of 8 value heads over 2 key heads. */
static void columns_back(float *row)
{
    float grouped[8 * 128];
    memcpy(grouped, row, sizeof grouped);
    for (int k = 0; k < 2; k++)
        for (int j = 0; j < 4; j++)
            memcpy(row + (j * 2 + k) * 128, grouped + (k * 4 + j) * 128,
                   128 * sizeof *row);
}

static bool tensor_back(struct rewrite *r, const struct tensor *t)
{
    bool found = !strcmp(t->name, "token_embd.weight");
    int32_t signs[3 * WIDE];
    for (size_t i = 0; i < N_NAMES; i++)
        found = found || !strcmp(t->name, names[i]);
    if (!found)
        return false;
    make_signs(signs);
    float *made = (float *)(void *)rewrite_room(r, t->bytes);
    for (uint64_t i = 0; i < t->ne[1]; i++) {
        float *row = made + i * t->ne[0];
        row_back((const float *)(const void *)t->data + i * t->ne[0], t->ne[0],
                 t->ne[0] == WIDE ? signs : signs + WIDE, row);
        if (strstr(t->name, "ssm_out"))
            columns_back(row);
    }
    rewrite_tensor(r, t->name, t, t->ne[1], made);
    return true;
}

/* The rotated model, on the device, equals an ordinary one whose weights were
 * rotated back; with a head of its own and with the embedding for one. */
static void check_twins(bool tied)
{
    char with[256], without[256], twin[256];
    int32_t ids[N_IDS];
    const struct random_question q = question(ids);
    size_t n = random_answers(&q);
    float *want = mem_array(n, sizeof *want), *got = mem_array(n, sizeof *got);
    struct random_model m = model_of(QUANT_F32, tied);
    different = tied ? TIED_HEAD : NOTHING;
    random_write(&m, gw_path(with, "rotated.gguf"), NULL);
    m.keys = plain_keys;
    random_write(&m, gw_path(without, "stored.gguf"), NULL);
    rewrite_file(without, gw_path(twin, "twin.gguf"), tensor_back);
    random_reference(twin, &q, want);
    random_reference(with, &q, got);
    double reference = relative_distance(got, want, n);
    random_device(with, MATH_FLOAT, true, &q, got);
    double device = relative_distance(got, want, n);
    random_reference(without, &q, got);
    double ignored = relative_distance(got, want, n);
    printf("# reference %.2g apart, device %.2g, without rotation %.2g\n", reference,
           device, ignored);
    CHECK(reference < 1e-5 && device < 2e-5 && ignored > 0.5);
    free(want);
    free(got);
}

static void test_twins(void)
{
    check_twins(false);
}

static void test_twins_tied(void)
{
    check_twins(true);
}

/* Ternary weights, as the published files have, rounded activations. */
static void test_ternary(void)
{
    char path[256];
    int32_t ids[N_IDS];
    const struct random_question q = question(ids);
    struct random_model m = model_of(QUANT_PTQ1_0, false);
    different = NOTHING;
    random_write(&m, gw_path(path, "ternary.gguf"), NULL);
    CHECK(random_agrees(path, MATH_FLOAT, true, &q, 2e-5));
    CHECK(random_agrees(path, MATH_INT8, true, &q, 0.05));
    CHECK(random_agrees(path, MATH_INT8, false, &q, 0.05));
    different = IDENTITY;
    random_write(&m, gw_path(path, "identity.gguf"), NULL);
    CHECK(random_agrees(path, MATH_FLOAT, true, &q, 2e-5));
}

/* ---- refusals ------------------------------------------------------------ */

static void test_refused(void)
{
    static const struct {
        enum different what;
        const char *refusal, *error;
    } rows[] = {
        { NOTHING, NULL, NULL },
        { IDENTITY, NULL, NULL },
        { BLOCK_9, NULL, NULL }, /* of a block that predicts further tokens */
        { VERSION_3, "prism.hadamard.version 3", NULL },
        { NO_VERSION, "prism.hadamard.version is missing", NULL },
        { OTHER_BLOCK, "prism.hadamard.block_size 512", NULL },
        { OTHER_TRANSFORM, "prism.hadamard.transform sylvester-walsh-hadamard", NULL },
        { OTHER_AXIS, "prism.hadamard.axis output", NULL },
        { OTHER_MODE, "prism.hadamard.sign_mode random", NULL },
        { IDENTITY_WITH_SIGNS, "prism.hadamard.sign_mode identity", NULL },
        { NO_SIGNS, "prism.hadamard.sign_mode explicit, without signs", NULL },
        { SIGN_OF_2, NULL, "prism.hadamard.sign_values holds a number that is no sign" },
        { SIGNS_LACK, NULL, "prism.hadamard.sign_values has 3071 entries" },
        { WIDTH_LACKS, "ffn_down.weight has rows of 2048, which have no signs", NULL },
        { WIDTH_TWICE, "prism.hadamard.sign_widths has an entry twice", NULL },
        { NO_NAMES, "prism.hadamard.weight_names is missing", NULL },
        { NO_INVERSE, "prism.hadamard.inverse_weight_names is missing", NULL },
        { OTHER_INVERSE, "prism.hadamard.inverse_weight_names output.weight", NULL },
        { FOREIGN_NAME, "prism.hadamard.weight_names blk.0.attn_z.weight", NULL },
        { NORM_NAMED, "prism.hadamard.weight_names blk.0.attn_norm.weight", NULL },
        { EMBEDDING_NAMED, "prism.hadamard.weight_names token_embd.weight", NULL },
        { NO_GROUPED, "prism.hadamard.gdn_v_grouped is missing", NULL },
        { UNKNOWN_KEY, "prism.hadamard.seed", NULL },
        { TIED_IN_1, "version 1, tied_output on, with output.weight", NULL },
        { VERSION_2, "version 2, tied_output on, with output.weight", NULL },
        { UP_ALONE, "only one is rotated", NULL },
    };
    char path[256];
    const struct random_model m = model_of(QUANT_PTQ1_0, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model *opened;
        struct err err = { "" };
        different = rows[i].what;
        random_write(&m, gw_path(path, "refused.gguf"), NULL);
        int rc = model_open(&opened, path, &err);
        CHECK(rc == (rows[i].error ? -1 : 0));
        if (rows[i].error)
            check_text(err.text, rows[i].error, "malformed", (int)rows[i].what);
        if (rc == 0 && rows[i].refusal)
            check_text(opened->refusal, rows[i].refusal, "refused", (int)rows[i].what);
        if (rc == 0 && !rows[i].refusal && opened->refusal)
            printf("# %d: %s\n", (int)rows[i].what, opened->refusal);
        CHECK(rc < 0 || rows[i].refusal || !opened->refusal);
        if (rc == 0)
            model_close(opened);
    }
}

/* Rows that are no whole blocks; any model with one of the keys. */
static void small_keys(struct gguf_writer *w)
{
    rotation_keys(w);
}

static void test_small_rows(void)
{
    char path[256];
    struct model *opened;
    struct err err = { "" };
    struct random_model m = model_of(QUANT_F32, false);
    m.embd = 512;
    m.keys = small_keys;
    different = NOTHING;
    random_write(&m, gw_path(path, "small.gguf"), NULL);
    OK(model_open(&opened, path, &err), &err);
    check_text(opened->refusal, "has rows of 512, which are no whole blocks", "small",
               __LINE__);
    model_close(opened);
}

TEST_MAIN(T(test_butterflies), T(test_twins), T(test_twins_tied), T(test_ternary),
          T(test_refused), T(test_small_rows))
