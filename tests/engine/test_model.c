/* test_model.c - opening models: right files, variants that converters make, and
 * what is refused with a reason. */
#define TEST_SECONDS 60
#include "tests/engine/tiny_model.h"

/* ---- right files --------------------------------------------------------- */

static struct model *need_model(const char *path)
{
    struct model *m;
    struct err e;
    if (model_open(&m, path, &e) < 0) {
        printf("# %s\n", e.text);
        exit(1);
    }
    return m;
}

static void test_mini_info(void)
{
    struct model *m = need_model(MINI);
    const struct model_info *i = model_info(m);
    CHECK_STR(i->path, MINI);
    CHECK_STR(i->architecture, "qwen35");
    CHECK_STR(i->name, "Tern Mini 38M");
    CHECK(i->refusal == NULL && i->computes && !i->has_thinking);
    CHECK(i->aside == NULL && i->assumed == NULL && i->effort == EFFORT_DEFAULT);
    CHECK_STR(i->quantisation, "Q2_0 67%, Q8_0 32%, F32 1%");
    CHECK(i->file_bytes == 14493408 && i->n_tensors == 161 && i->n_metadata == 32);
    CHECK(i->n_layers == 12 && i->n_recurrent == 9 && i->n_attention == 3);
    CHECK(i->n_embd == 512 && i->n_vocab == 8192 && i->ctx_tokens == 4096);
    CHECK(i->n_expert == 0 && i->n_expert_used == 0);
    CHECK(i->kv_bytes_per_token == 3 * 1 * 256 * 2 * 2);
    CHECK(i->state_bytes == 9 * (3 * 1024 + 4 * 128 * 128) * 4);
    CHECK(i->n_params == 38100168 && i->weight_bytes == 14216224);
    CHECK(strlen(i->tokenizer_id) == 32);
    model_close(m);
}

static void test_mini_hparams(void)
{
    struct model *m = need_model(MINI);
    const struct hparams *h = &m->hp;
    CHECK(m->complete && h->arch->id == ARCH_QWEN35 && !h->arch->moe);
    CHECK(h->n_layer == 12 && h->n_embd == 512 && h->n_ff == 1152 && h->n_vocab == 8192);
    CHECK(h->n_head == 2 && h->n_head_kv == 1 && h->head_dim == 256);
    CHECK(h->rope_dims == 64 && h->rope_base == 1e7f && h->attn_scale == 1 / 16.0f);
    CHECK(h->rms_eps == 1e-6f && h->conv_kernel == 4 && h->state_dim == 128);
    CHECK(h->n_k_heads == 2 && h->n_v_heads == 4 && !h->grouped_heads);
    CHECK(h->key_dim == 256 && h->value_dim == 512 && h->conv_dim == 1024);
    CHECK(m->w.output == m->w.token_embd && m->w.token_embd->type == QUANT_Q8_0);
    for (uint32_t i = 0; i < 12; i++) {
        const struct layer *l = &m->w.layers[i];
        CHECK(l->recurrent == (i % 4 != 3));
        CHECK(l->attn_norm && l->post_norm && l->ffn_gate && l->ffn_up && l->ffn_down);
        CHECK(l->recurrent == (l->qkv && l->gate && l->conv1d && l->dt && l->a &&
                               l->alpha && l->beta && l->ssm_norm && l->ssm_out));
        CHECK(l->recurrent ==
              !(l->q && l->k && l->v && l->o && l->q_norm && l->k_norm));
        CHECK(!l->ba && !l->ssm_in && !l->router && !l->gate_up_exps);
    }
    CHECK_STR(m->w.layers[7].o->name, "blk.7.attn_output.weight");
    model_close(m);
}

/* Values and sums from an independent decoder. */
static void test_mini_values(void)
{
    static const struct {
        const char *name;
        float first[4], last;
        double sum;
    } rows[] = {
        { "token_embd.weight", { -0.06583642959594727f, -0.018161773681640625f,
          0.030269622802734375f, -0.07567405700683594f }, 0.07648468017578125f,
          -1444.3801171779633 },
        { "blk.0.attn_qkv.weight", { 0, -0.0672607421875f, 0.0672607421875f, 0 },
          0.0797119140625f, 54.360107421875 },
        { "blk.0.ssm_a", { -16.600910186767578f, -19.967182159423828f,
          -20.771160125732422f, -5.471512794494629f }, -5.471512794494629f,
          -62.81076526641846 },
        { "blk.11.ffn_down.weight", { 0, 0.065185546875f, 0, 0 }, 0,
          -20.33599853515625 },
        { "blk.5.ssm_conv1d.weight", { 0.10101509839296341f, 0.1315479278564453f,
          0.39263495802879333f, -0.4599784016609192f }, 0.2183990776538849f,
          5.535249540906079 },
    };
    struct model *m = need_model(MINI);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tensor *t = gguf_tensor_find(m->file, rows[i].name);
        REQUIRE(t);
        float *v = mem_array(t->n_elements, sizeof *v);
        quant_dequantize(t->type, t->data, t->n_elements, v);
        double sum = 0;
        for (uint64_t e = 0; e < t->n_elements; e++)
            sum += v[e];
        CHECK(!memcmp(v, rows[i].first, sizeof rows[i].first));
        CHECK(v[t->n_elements - 1] == rows[i].last);
        CHECK(fabs(sum - rows[i].sum) < 1e-6);
        free(v);
    }
    model_close(m);
}

static void test_dense_golden(void)
{
    struct model *m = need_model("tests/data/dense_qwen35.gguf");
    CHECK(m->info.refusal == NULL && m->complete && m->hp.n_layer == 4);
    CHECK(m->info.n_recurrent == 3 && m->info.n_attention == 1);
    CHECK(m->hp.n_vocab == 512 && m->w.output == m->w.token_embd);
    CHECK_STR(m->info.quantisation, "F16 98%, F32 2%");
    model_close(m);
}

static void test_moe_golden(void)
{
    static const char *const paths[] = { "tests/data/moe_qwen35.gguf",
                                         "tests/data/next.gguf" };
    for (int i = 0; i < 2; i++) {
        struct model *m = need_model(paths[i]);
        const struct layer *l = &m->w.layers[0];
        CHECK(!m->info.refusal && m->complete);
        CHECK( m->hp.n_expert == 8 && m->hp.n_expert_used == 3);
        CHECK(m->info.n_expert == 8 && m->info.n_expert_used == 3);
        CHECK(m->hp.n_ff_expert == 64 && m->hp.n_ff_shared == 64 && m->hp.n_ff == 0);
        CHECK(m->hp.expert_scale == 1 && m->hp.grouped_heads == (i == 1));
        CHECK(m->w.output != m->w.token_embd);
        CHECK(l->router && l->gate_exps->ne[2] == 8 && l->up_exps && l->down_exps);
        CHECK(l->shared_router && l->gate_shexp && l->up_shexp && l->down_shexp);
        CHECK(i == 0 ? l->alpha && l->beta && !l->ba : !l->alpha && !l->beta && l->ba);
        model_close(m);
    }
}

static void test_vocabulary_only(void)
{
    struct model *m = need_model("tests/data/qwen3-vocab.gguf");
    CHECK(m->vocab && m->info.n_vocab == 151669 && !m->complete);
    CHECK_STR(m->info.refusal, "the file holds no weights; it can only tokenise");
    CHECK_STR(m->info.quantisation, "");
    CHECK_STR(m->info.architecture, "qwen3");
    CHECK(m->info.n_params == 0 && m->info.n_layers == 1 && m->info.n_embd == 32);
    model_close(m);
}

/* ---- variants that must be accepted --------------------------------------- */

static void test_tiny(void)
{
    struct model *m = need_tiny(&(struct tiny){ 0 });
    CHECK(m->info.refusal == NULL);
    CHECK(m->hp.n_head == HEADS && m->hp.head_dim == HEAD_DIM && m->hp.rope_dims == 16);
    CHECK(m->hp.attn_scale == 1 / sqrtf(HEAD_DIM));
    CHECK(m->info.kv_bytes_per_token == 1 * KV_HEADS * HEAD_DIM * 4);
    CHECK(m->info.state_bytes == 3 * 4 * (3 * CONV_DIM + N_V * 128 * 128));
    CHECK_STR(m->info.name, "tiny.gguf"); /* it has no name of its own */
    CHECK_STR(m->info.quantisation, "F32 100%");
    model_close(m);
    model_close(NULL);
}

static void keys_lists(struct gguf_writer *w)
{
    static const int32_t kv[LAYERS] = { 0, 0, 0, KV_HEADS }, sections[3] = { 3, 3, 2 };
    gw_i32s(w, "qwen35.attention.head_count_kv", kv, LAYERS);
    gw_i32s(w, "qwen35.rope.dimension_sections", sections, 3);
    gw_bool(w, "qwen35.rope.mrope_interleaved", true);
}

static void keys_recurrent(struct gguf_writer *w)
{
    gw_array(w, "qwen35.attention.recurrent_layers", GGUF_BOOL, LAYERS);
    gw_number(w, 0x00010101, 4);
}

static void keys_scales(struct gguf_writer *w)
{
    gw_f32(w, "qwen35.attention.scale", 0.125f);
    gw_str(w, "qwen35.rope.scaling.type", "none");
}

static void tensors_others(struct gguf_writer *w)
{
    put_as(w, "v.blk.0.attn_q.weight", QUANT_IQ2_XXS, 256, 2, 1);
    put_as(w, "mm.0.weight", QUANT_F32, 8, 1, 1);
    put_as(w, "mtp.layers.0.weight", QUANT_F32, 8, 1, 1);
    put_as(w, "blk.0.ffn_up.input_scale", QUANT_F32, 1, 1, 1);
}

static void test_variants(void)
{
    RUNS(.rename = "blk.1.ssm_dt.bias", .to = "blk.1.ssm_dt");
    RUNS(.drop_key = "attention.head_count_kv", .keys = keys_lists);
    RUNS(.drop_key = "full_attention_interval");
    RUNS(.drop_key = "full_attention_interval", .keys = keys_recurrent);
    RUNS(.set_key = "full_attention_interval", .value = 2, .keys = keys_recurrent);
    RUNS(.drop_key = "attention.value_length");
    RUNS(.set_key = "block_count", .value = 4, .value_type = GGUF_U16);
    RUNS(.set_key = "block_count", .value = 4, .value_type = GGUF_I64);
    RUNS(.set_key = "rope.freq_base", .value = 10000, .value_type = GGUF_U32);
    RUNS(.retype = "blk.0.ssm_a", .type = QUANT_BF16);
    RUNS(.arch = "qwen35moe");
    RUNS(.arch = "qwen3next");
    RUNS(.arch = "qwen35moe", .retype = "blk.0.ffn_gate_inp_shexp.weight",
         .type = QUANT_F16);
    RUNS(.retype = "blk.0.ssm_conv1d.weight", .type = QUANT_F16);
    RUNS(.retype = "output_norm.weight", .type = QUANT_F16);
    RUNS(.retype = "blk.0.ffn_gate.weight", .type = QUANT_Q2_0);
    RUNS(.retype = "blk.0.ssm_alpha.weight", .type = QUANT_Q8_0);
    RUNS(.retype = "token_embd.weight", .type = QUANT_Q4_0);
    RUNS(.tensors = tensors_others);

    struct model *m = need_tiny(&(struct tiny){ .tensors = tensors_others });
    CHECK_STR(m->info.aside, "tensors for images or sound (2) and for predicting further "
                             "tokens (1) are not used");
    CHECK_STR(m->info.assumed, "the file has no chat template; ChatML is assumed");
    struct model *plain = need_tiny(&(struct tiny){ 0 });
    CHECK(m->info.n_params == plain->info.n_params + 1); /* the ignored scale */
    model_close(plain);
    model_close(m);
    m = need_tiny(&(struct tiny){ .keys = keys_scales });
    CHECK(m->hp.attn_scale == 0.125f && m->info.refusal == NULL);
    model_close(m);
}

static void keys_grouped(struct gguf_writer *w)
{
    gw_bool(w, "qwen35.ssm.v_head_reordered", false);
}

static void keys_tiled(struct gguf_writer *w)
{
    gw_bool(w, "qwen35.ssm.v_head_reordered", true);
}

static void keys_tiled_next(struct gguf_writer *w)
{
    gw_bool(w, "qwen3next.ssm.v_head_reordered", true);
}

static void test_head_order(void)
{
    const struct { struct tiny t; bool grouped; } rows[] = {
        { { 0 }, false },
        { { .keys = keys_grouped }, true },
        { { .keys = keys_tiled }, false },
        { { .arch = "qwen35moe" }, false },
        { { .arch = "qwen3next" }, true },
        { { .arch = "qwen3next", .keys = keys_tiled_next }, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct model *m = need_tiny(&rows[i].t);
        CHECK(m->complete && m->hp.grouped_heads == rows[i].grouped);
        model_close(m);
    }
}

static void tensors_nextn(struct gguf_writer *w)
{
    put_as(w, "blk.4.attn_norm.weight", QUANT_F32, E, 1, 1);
    put_as(w, "blk.4.nextn.enorm.weight", QUANT_F32, E, 1, 1);
    put_as(w, "blk.4.ffn_up.weight", QUANT_IQ3_XXS, 256, 2, 1);
}

static void tensors_nextn_first(struct gguf_writer *w)
{
    put_as(w, "blk.0.nextn.enorm.weight", QUANT_F32, E, 1, 1);
}

static void keys_nextn(struct gguf_writer *w)
{
    gw_u32(w, "qwen35.nextn_predict_layers", 1);
}

/* Blocks beyond the decoder, with and without their key or their tensors. */
static void test_nextn(void)
{
    struct model *m = need_tiny(&(struct tiny){ .blocks = 5, .tensors = tensors_nextn,
                                                .keys = keys_nextn });
    CHECK(m->hp.n_layer == 4 && m->info.n_layers == 4 && m->refusal == NULL);
    CHECK(m->info.aside && strstr(m->info.aside, "tensors for predicting further tokens ("));
    CHECK(!strstr(m->info.quantisation, "IQ3"));
    model_close(m);
    RUNS(.blocks = 5, .tensors = tensors_nextn);
    RUNS(.blocks = 5, .keys = keys_nextn);
    MALFORMED("tensor blk.4.attn_norm.weight is missing", .blocks = 5);
    MALFORMED("tensor blk.3.attn_norm.weight is missing", .blocks = 5, .layers = 3,
              .tensors = tensors_nextn, .keys = keys_nextn);
    MALFORMED("no decoder layer before its blk.0.nextn",
              .tensors = tensors_nextn_first);
    MALFORMED("has 1 blocks, of which 1", .blocks = 1, .keys = keys_nextn);
}

static float fused[192][E];

static void tensors_fused(struct gguf_writer *w)
{
    for (int r = 0; r < 192; r++)
        for (int c = 0; c < E; c++)
            fused[r][c] = (float)(r * E + c);
    gw_tensor(w, "output.weight", QUANT_F32, E, TOKENS, NULL);
    gw_tensor(w, "blk.7.attn_qkv.weight", QUANT_F32, E, 192, fused);
}

static void test_fused_attention(void)
{
    struct model *m;
    struct err e;
    struct gguf_writer w;
    char path[256];
    write_tiny(&w, &(struct tiny){ .drop = "blk.7.attn_q.weight", .blocks = 8,
                                   .layers = 8, .tensors = tensors_fused });
    gw_save(&w, gw_path(path, "fused.gguf"));
    gw_release(&w);
    REQUIRE(model_open(&m, path, &e) == 0);
    /* The separate keys and values are still there, the fused form wins. */
    const struct layer *l = &m->w.layers[7];
    const struct { const struct tensor *t; uint64_t row, rows; } parts[] = {
        { l->q, 0, 128 }, { l->k, 128, 32 }, { l->v, 160, 32 },
    };
    CHECK(m->refusal == NULL && !l->qkv && m->w.output != m->w.token_embd);
    for (int i = 0; i < 3; i++) {
        const struct tensor *t = parts[i].t;
        REQUIRE(t && t->ne[0] == E && t->ne[1] == parts[i].rows);
        CHECK(t->bytes == parts[i].rows * E * sizeof(float));
        CHECK(!memcmp(t->data, fused[parts[i].row], t->bytes));
    }
    CHECK_STR(l->v->name, "blk.7.attn_v.weight");
    CHECK(m->w.layers[3].q && m->w.layers[3].q->ne[1] == 128);
    model_close(m);
}

/* ---- refused with a reason ------------------------------------------------ */

static void keys_hadamard(struct gguf_writer *w)
{
    gw_u32(w, "prism.hadamard.version", 1);
}

static void keys_yarn(struct gguf_writer *w)
{
    gw_str(w, "qwen35.rope.scaling.type", "yarn\n");
}

static void keys_raw_experts(struct gguf_writer *w)
{
    gw_bool(w, "qwen35moe.norm_top_k_prob", false);
}

static void keys_many_experts(struct gguf_writer *w)
{
    gw_u32(w, "qwen35moe.expert_count", 32);
}

static void tensors_unknown(struct gguf_writer *w)
{
    put_as(w, "blk.2.attn_qkv.bi\x1b""as", QUANT_F32, CONV_DIM, 1, 1);
}

static void tensors_factor(struct gguf_writer *w)
{
    put_as(w, "blk.2.attn_qkv.scale", QUANT_F32, 1, 1, 1);
}

static void tensors_two_factors(struct gguf_writer *w)
{
    put_as(w, "blk.2.attn_qkv.scale", QUANT_F32, 2, 1, 1);
}

static void tensors_expert_factors(struct gguf_writer *w)
{
    put_as(w, "blk.1.ffn_down_exps.scale", QUANT_F32, EXPERTS, 1, 1);
}

/* Factors beside NVFP4: one, or one for each expert. */
static void test_factors(void)
{
    struct model *m = need_tiny(&(struct tiny){ .retype = "blk.2.attn_qkv.weight",
                                                .type = QUANT_NVFP4,
                                                .tensors = tensors_factor });
    CHECK(!m->refusal && m->w.layers[2].qkv->factor && !m->w.layers[1].qkv->factor);
    CHECK_STR(m->w.layers[2].qkv->factor->name, "blk.2.attn_qkv.scale");
    model_close(m);
    RUNS(.retype = "blk.2.attn_qkv.weight", .type = QUANT_NVFP4);
    MALFORMED("blk.2.attn_qkv.scale holds no factors for blk.2.attn_qkv.weight",
              .retype = "blk.2.attn_qkv.weight", .type = QUANT_NVFP4,
              .tensors = tensors_two_factors);
    REFUSED("NVFP4 only (tensor blk.1.ffn_down_exps.scale)", .arch = "qwen35moe",
            .tensors = tensors_expert_factors);
}

static void tensors_ssm_in(struct gguf_writer *w)
{
    put_as(w, "blk.0.ssm_in.weight", QUANT_F32, E, CONV_DIM + V_DIM, 1);
}

static void test_refused(void)
{
    REFUSED("architecture llama is not supported", .arch = "llama");
    REFUSED("does not name its architecture", .drop_key = "general.architecture");
    REFUSED("513 experts are not supported, only up to 512", .arch = "qwen35moe",
            .set_key = "expert_count", .value = 513);
    REFUSED("17 experts a token are not supported, only up to 16", .arch = "qwen35moe",
            .set_key = "expert_used_count", .value = 17, .drop_key = "expert_count",
            .keys = keys_many_experts);
    REFUSED("expert_feed_forward_length 48", .arch = "qwen35moe",
            .set_key = "expert_feed_forward_length", .value = 48);
    REFUSED("weights are not normalised", .arch = "qwen35moe", .keys = keys_raw_experts);
    REFUSED("rotated in a way that is not known (version 1", .keys = keys_hadamard);
    REFUSED("rope scaling \"yarn?\"", .keys = keys_yarn);
    REFUSED("attn_qkv.bi?as is not known", .tensors = tensors_unknown);
    REFUSED("supported with type NVFP4 only (tensor blk.2.attn_qkv.scale)",
            .tensors = tensors_factor);
    REFUSED("ssm_in tensors with value heads in tiled order", .tensors = tensors_ssm_in);
    REFUSED("type Q8_1 is not supported (tensor blk.0.ffn_gate.weight)",
            .retype = "blk.0.ffn_gate.weight", .type = QUANT_Q8_1);
    REFUSED("embedding_length 48", .set_key = "embedding_length", .value = 48);
    REFUSED("feed_forward_length 80", .set_key = "feed_forward_length", .value = 80);
    REFUSED("heads of 512", .set_key = "attention.key_length", .value = 512,
            .drop_key = "attention.value_length");
    REFUSED("attention.key_length 48", .set_key = "attention.key_length", .value = 48,
            .drop_key = "attention.value_length");
    REFUSED("keys of 32 and values of 64", .set_key = "attention.value_length",
            .value = 64);
    REFUSED("convolution over 3", .set_key = "ssm.conv_kernel", .value = 3);
}

/* A size of heads that fits the other numbers but not the kernels. */
static void keys_state_64(struct gguf_writer *w)
{
    gw_u32(w, "qwen35.ssm.state_size", 64);
}

static void test_refused_state(void)
{
    REFUSED("recurrent heads of 64", .drop_key = "ssm.state_size", .keys = keys_state_64,
            .set_key = "ssm.inner_size", .value = 128);
}

/* Every format that the container knows is either run or named. */
static void test_every_format(void)
{
    for (int q = 0; q < QUANT_COUNT; q++) {
        const struct quant_format *f = quant_format((enum quant)q);
        struct tiny t = { .retype = "token_embd.weight", .type = (enum quant)q };
        struct gguf_writer w;
        struct model *m;
        struct err e;
        char path[256], want[64];
        if (f->elements > E)
            continue; /* rows of 64: see below */
        write_tiny(&w, &t);
        gw_save(&w, gw_path(path, "format.gguf"));
        gw_release(&w);
        REQUIRE(model_open(&m, path, &e) == 0);
        snprintf(want, sizeof want, "type %s is not supported", f->name);
        CHECK(f->runs ? m->refusal == NULL : m->refusal && strstr(m->refusal, want));
        model_close(m);
    }
}

static void tensors_iq3(struct gguf_writer *w)
{
    put_as(w, "output.weight", QUANT_IQ3_XXS, 256, 1, 1);
}

static void test_codebook_format(void)
{
    /* In a model of another architecture nothing but the name is known. */
    struct model *m = need_tiny(&(struct tiny){ .arch = "other",
                                                .tensors = tensors_iq3 });
    CHECK(m->vocab != NULL && m->info.n_layers == LAYERS && m->info.n_embd == E);
    model_close(m);
    /* A row of 256 is wrong for this model, which is said first. */
    MALFORMED("tensor output.weight has the shape {256}, not {64, 260}",
              .tensors = tensors_iq3);
}

static void test_accessories(void)
{
    struct gguf_writer w;
    struct model *m;
    struct err e;
    char path[256];
    gw_begin(&w);
    gw_str(&w, "general.architecture", "qwen35");
    gw_tensor(&w, "blk.64.nextn.eh_proj.weight", QUANT_F32, 64, 1, NULL);
    gw_finish(&w);
    gw_save(&w, gw_path(path, "mtp.gguf"));
    gw_release(&w);
    REQUIRE(model_open(&m, path, &e) == 0);
    check_text(m->info.refusal, "holds no decoder layers", "accessory", __LINE__);
    CHECK(!m->vocab && !m->tmpl && !strcmp(m->info.tokenizer_id, "") &&
          !strcmp(m->info.family, ""));
    model_close(m);
    gw_begin(&w);
    gw_finish(&w);
    gw_save(&w, path);
    gw_release(&w);
    REQUIRE(model_open(&m, path, &e) == 0);
    CHECK(m->info.refusal && m->info.n_tensors == 0 && m->info.n_metadata == 0);
    model_close(m);
}

TEST_MAIN(T(test_mini_info), T(test_mini_hparams), T(test_mini_values),
          T(test_dense_golden), T(test_moe_golden), T(test_vocabulary_only),
          T(test_tiny), T(test_variants), T(test_head_order), T(test_nextn),
          T(test_fused_attention), T(test_factors), T(test_refused), T(test_refused_state),
          T(test_every_format), T(test_codebook_format), T(test_accessories))
