/* Reads and binds Mamba-2's mixer.  HF's config classes have four spellings of each number; GGUF has one
   (ssm.time_step_rank is the number of heads). */
#include "model/mamba.h"

#include <math.h>
#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/rows.h"

enum { MOST_HEADS = 1 << 14, WIDE = 1 << 20 };

const mamba_keys mamba_own_keys = {.n_head = "num_heads",
                                   .dim = "head_dim",
                                   .n_state = "state_size",
                                   .n_group = "n_groups",
                                   .kernel = "conv_kernel",
                                   .expand = "expand",
                                   .conv_bias = "use_conv_bias",
                                   .in_bias = "use_bias",
                                   .out_bias = "use_bias",
                                   .n_head_otherwise = 128,
                                   .dim_otherwise = 64,
                                   .n_state_otherwise = 128,
                                   .n_group_otherwise = 8};
const mamba_keys mamba_bamba_keys = {.n_head = "mamba_n_heads",
                                     .dim = "mamba_d_head",
                                     .n_state = "mamba_d_state",
                                     .n_group = "mamba_n_groups",
                                     .kernel = "mamba_d_conv",
                                     .expand = "mamba_expand",
                                     .conv_bias = "mamba_conv_bias",
                                     .in_bias = "mamba_proj_bias",
                                     .out_bias = "mamba_proj_bias",
                                     .n_head_otherwise = 128,
                                     .n_state_otherwise = 256,
                                     .n_group_otherwise = 1};

/* What stands before the names of `rows` in HF's files. */
static const char *const places[] = {[MAMBA_BACKBONE_MIXER] = "backbone.layers.%d.mixer.",
                                     [MAMBA_MODEL_MAMBA] = "model.layers.%d.mamba."};
#define M(f) offsetof(mamba_weights, f)
static const weight_row rows[] = {
    {M(w_in), "in_proj", GG("ssm_in"), DIM_IN, DIM_HIDDEN, W_BIAS_SSM_IN},
    {M(conv), "conv1d", GG("ssm_conv1d"), DIM_KERNEL, DIM_CONV, W_CONV | W_BIAS_CONV},
    {M(a), "A_log", GG("ssm_a"), DIM_ONE, DIM_SSM_HEADS, W_BARE | W_NEG_EXP | W_FLAT},
    {M(d), "D", GG("ssm_d"), DIM_ONE, DIM_SSM_HEADS, W_BARE | W_FLAT},
    {M(dt_bias), "dt_bias", GG("ssm_dt.bias"), DIM_ONE, DIM_SSM_HEADS, W_BARE},
    {M(w_out), "out_proj", GG("ssm_out"), DIM_HIDDEN, DIM_INNER, W_BIAS_SSM_OUT},
    {M(norm), "norm", GG("ssm_norm"), DIM_ONE, DIM_INNER, W_FLAT}, /* last: some have none */
};
#undef M

/* A number, or infinity as Python's json and transformers write it. */
static float limit(config *c, int32_t i, float otherwise)
{
    char key[CONFIG_KEY_LEN], wrapped[CONFIG_KEY_LEN];
    meta m;
    (void)snprintf(key, sizeof key, "time_step_limit.%d", (int)i);
    (void)snprintf(wrapped, sizeof wrapped, "time_step_limit.%d.__float__", (int)i);
    if (c->gguf || config_null(c, "time_step_limit")) return otherwise;
    if (str_is(meta_str(&c->src->meta, wrapped, STR_LIT("")), "Infinity")) return INFINITY;
    if (meta_get(&c->src->meta, key, &m) && m.type == META_FLOAT && isinf(m.u.f) && m.u.f > 0)
        return INFINITY;
    return (float)config_num(c, key, NULL, 0, 1e30, (double)otherwise);
}

static int32_t width(config *c, const mamba_keys *k, int32_t hidden)
{
    if (c->gguf) return config_need_int(c, NULL, "ssm.inner_size", 1, WIDE);
    if (k->inner && !config_null(c, k->inner) &&
        (k->inner_otherwise || config_has(c, k->inner, NULL)))
        return config_int(c, k->inner, NULL, 1, WIDE, k->inner_otherwise);
    return k->expand ? hidden * config_int(c, k->expand, NULL, 1, 64, 2) : 0;
}

static void read_heads(config *c, const mamba_keys *k, int32_t hidden, ssm_spec *s)
{
    int32_t inner = width(c, k, hidden);
    meta m;
    s->n_head =
        config_class_int(c, k->n_head, "ssm.time_step_rank", 1, MOST_HEADS, k->n_head_otherwise);
    s->dim = k->dim_otherwise && !c->gguf ? k->dim_otherwise : inner / s->n_head;
    const bool said = !c->gguf && meta_get(&c->src->meta, k->dim, &m) && m.type != META_STR;
    if (said) s->dim = config_int(c, k->dim, NULL, 1, MOST_HEADS, s->dim);
    if (!inner) inner = (int32_t)((int64_t)s->n_head * s->dim & INT32_MAX);
    if (s->dim < 1 || inner > WIDE || inner != (int64_t)s->n_head * s->dim)
        config_misfit(c, k->n_head, "ssm.time_step_rank", s->n_head,
                      "as many heads of %d as fill the width of %d", (int)s->dim, (int)inner);
}

/* GGUF's are used where they lie. */
static void read_biases(config *c, const mamba_keys *k, weights *w)
{
    if (c->gguf) {
        w->may_bias |= W_BIAS_CONV | W_BIAS_SSM_IN | W_BIAS_SSM_OUT;
        return;
    }
    if (config_bool(c, k->conv_bias, true)) w->need_bias |= W_BIAS_CONV;
    if (config_bool(c, k->in_bias, false)) w->need_bias |= W_BIAS_SSM_IN;
    if (config_bool(c, k->out_bias, false)) w->need_bias |= W_BIAS_SSM_OUT;
}

void mamba_config(config *c, const mamba_keys *k, int32_t hidden, weights *w, mamba_spec *out)
{
    ssm_spec *s = &out->s;
    read_heads(c, k, hidden, s);
    s->n_state =
        config_class_int(c, k->n_state, "ssm.state_size", 1, 1 << 12, k->n_state_otherwise);
    s->n_group =
        config_class_int(c, k->n_group, "ssm.group_count", 1, MOST_HEADS, k->n_group_otherwise);
    s->dt_min = limit(c, 0, 0.0f);
    s->dt_max = limit(c, 1, INFINITY);
    w->dim[DIM_KERNEL] = config_class_int(c, k->kernel, "ssm.conv_kernel", 2, CONV_MAX_ROWS, 4);
    if (c->status == CAIRN_OK && s->n_head % s->n_group)
        config_misfit(c, k->n_group, "ssm.group_count", s->n_group, "a divisor of the %d heads",
                      (int)s->n_head);
    const int64_t inner = (int64_t)s->n_head * s->dim;
    const int64_t conv = inner + 2LL * s->n_group * s->n_state;
    if (c->status == CAIRN_OK && (inner * s->n_state > 1 << 28 || conv > 1 << 22))
        config_misfit(c, k->n_state, "ssm.state_size", s->n_state,
                      "a state of at most 2^28 floats a layer");
    if (c->status != CAIRN_OK) return;
    w->dim[DIM_SSM_HEADS] = s->n_head;
    w->dim[DIM_INNER] = (int32_t)inner;
    w->dim[DIM_CONV] = (int32_t)conv;
    w->dim[DIM_IN] = (int32_t)(inner + conv + s->n_head);
    read_biases(c, k, w);
}

int32_t mamba_n_state(const mamba_spec *m, const weights *w)
{
    return w->dim[DIM_INNER] * m->s.n_state + (w->dim[DIM_KERNEL] - 1) * w->dim[DIM_CONV];
}

static cairn_status bind_row(weights *w, weight_row r, mamba_names names, int32_t layer,
                             mamba_weights *into, cairn_diag *dg)
{
    char hf[64]; /* both parts are ours, and fit */
    (void)snprintf(hf, sizeof hf, "%s%s", places[names], r.hf);
    r.hf = hf;
    return weights_bind(w, &r, 1, layer, into, dg);
}

cairn_status mamba_bind(model *m, mamba_weights *w, int32_t layer, mamba_names names, bool normed,
                        cairn_diag *dg)
{
    const bool gguf = m->src->format == SOURCE_GGUF;
    const size_t all = N_ROWS(rows);
    normed |= gguf && weights_has(&m->w, NULL, rows[all - 1].gguf, layer);
    for (size_t i = 0; i < (normed ? all : all - 1); i++)
        TRY(bind_row(&m->w, rows[i], names, layer, w, dg));
    return CAIRN_OK;
}

cairn_status mamba_bind_head(model *m, decoder *d, bool tied, cairn_diag *dg)
{
    static const weight_row embed = {offsetof(decoder, tok_embed),
                                     "backbone.embeddings",
                                     "token_embd",
                                     DIM_VOCAB,
                                     DIM_HIDDEN,
                                     W_GATHER};
    static const weight_row norm = {
        offsetof(decoder, out_norm), "backbone.norm_f", "output_norm", DIM_ONE, DIM_HIDDEN, 0};
    return decoder_bind_head_as(m, d, tied, &embed, &norm, dg);
}
