/* The layers of a Gemma 4 config: which are windowed, their heads and widths, whose keys and values they
   read, how they rotate.  Configs come in three forms (per_layer_config, the older global_* fields,
   GGUF's lists); each becomes the same numbers a layer. */
#include <stdio.h>

#include "base/diag.h"
#include "model/gemma4.h"

/* A field of layer i in per_layer_config, the form that newer files have. */
static int32_t override(config *c, int32_t i, const char *field, int32_t hi, int32_t otherwise)
{
    char key[CONFIG_KEY_LEN];
    (void)snprintf(key, sizeof key, "per_layer_config.%d.%s", (int)i, field);
    return config_int(c, key, NULL, 1, hi, otherwise);
}

/* Heads of a full layer.  HF: per_layer_config, or the older global_* fields, whose KV heads count only
   where keys are values; GGUF: key_length is theirs. */
static void full_layer(config *c, const base_config *b, int32_t i, bool k_eq_v, gemma_attn *a)
{
    enum { MOST = 1 << 14 };
    const int32_t kv =
        k_eq_v ? config_int(c, "num_global_key_value_heads", NULL, 1, MOST, b->s.n_kv_head)
               : b->s.n_kv_head;
    const bool listed = config_has(c, "per_layer_config", NULL);
    const int32_t dim = config_int(c, "global_head_dim", "attention.key_length", 1, MOST,
                                   listed ? b->s.head_dim : 512);
    a->head_dim = override(c, i, "head_dim", MOST, dim);
    a->n_kv_head = override(c, i, "num_key_value_heads", MOST, kv);
}

/* Other fields of layer i in per_layer_config would change what it computes. */
static void check_override(config *c, int32_t i)
{
    static const char *const fields[] = {"intermediate_size", "sliding_window",
                                         "num_attention_heads", "hidden_size", "rms_norm_eps"};
    char key[CONFIG_KEY_LEN];
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
        (void)snprintf(key, sizeof key, "per_layer_config.%d.%s", (int)i, fields[k]);
        if (config_has(c, key, NULL))
            config_fail(c, key, "an override", "head_dim and num_key_value_heads alone");
    }
}

static void read_layer(config *c, const base_config *b, int32_t i, gemma4 *g)
{
    enum { MOST = 1 << 14 };
    const bool k_eq_v = config_bool(c, "attention_k_eq_v", false);
    gemma_attn *a = &g->attn[i];
    gemma4_layer *l = &g->layer[i];
    a->n_head = b->s.n_head;
    a->head_dim = config_int(c, NULL, "attention.key_length_swa", 1, MOST, b->s.head_dim);
    a->n_kv_head = b->s.n_kv_head;
    a->rope = a->window ? &g->rope_windowed : &g->rope;
    l->out_scale = 1.0f;
    check_override(c, i);
    if (a->window == 0) full_layer(c, b, i, k_eq_v, a);
    if (c->gguf)
        a->n_kv_head = config_int_at(c, NULL, "attention.head_count_kv", i, 1, MOST, a->n_kv_head);
    l->ffn = config_int_at(c, NULL, "feed_forward_length", i, 1, 1 << 20, b->ffn);
    if (a->n_head % a->n_kv_head)
        config_fail(c, "num_key_value_heads", "uneven", "a divisor of the number of heads");
}

cairn_status gemma4_read_layers(model *m, config *c, const base_config *b, gemma4 *g,
                                cairn_diag *dg)
{
    const int32_t n = b->s.n_layer;
    const int32_t window =
        config_int(c, "sliding_window", "attention.sliding_window", 1, 1 << 28, 512);
    const int32_t *windows = config_windows(c, n, window, 6, &m->a);
    TRY(c->status);
    g->layer = arena_calloc(&m->a, (size_t)n, sizeof *g->layer);
    g->attn = arena_calloc(&m->a, (size_t)n, sizeof *g->attn);
    if (!g->layer || !g->attn) return diag_set(dg, CAIRN_E_NOMEM, "%d layers", (int)n);
    for (int32_t i = 0; i < n; i++) {
        g->attn[i].window = i == n - 1 && !c->gguf ? 0 : windows[i]; /* the last is always full */
        read_layer(c, b, i, g);
    }
    const int32_t shared =
        config_int(c, "num_kv_shared_layers", "attention.shared_kv_layers", 0, n - 1, 0);
    TRY(c->status);
    /* Layers without keys of their own have an MLP twice as wide where the config says so. */
    if (config_bool(c, "use_double_wide_mlp", false))
        for (int32_t i = n - shared; i < n; i++) g->layer[i].ffn *= 2;
    return gemma_share_caches(m, c, shared, g->attn, dg);
}

/* Full layers: pairs i, i + width/2 of the whole head, of which the first share turn. */
static cairn_status full_rope(model *m, config *c, int32_t dim, rope_spec *out, cairn_diag *dg)
{
    config_object(c, "rope_parameters");
    config_object(c, "rope_parameters.full_attention");
    config_object(c, "rope_parameters.sliding_attention");
    const rope_params p = {.dim = dim,
                           .ctx = m->shape.ctx_train,
                           .theta = config_num(c, "rope_parameters.full_attention.rope_theta",
                                               "rope.freq_base", 1.01, 1e12, 1e6)};
    const double part =
        config_num(c, "rope_parameters.full_attention.partial_rotary_factor", NULL, 1e-3, 1, 0.25);
    const double factor =
        config_num(c, "rope_parameters.full_attention.factor", NULL, 1e-3, 1e6, 1);
    config_only_one(c, "rope_parameters.full_attention.rope_type", "proportional");
    TRY(c->status);
    TRY(family_rope(m, &p, out, dg));
    float *f = arena_calloc(&m->a, (size_t)dim / 2, sizeof *f);
    if (!f) return diag_set(dg, CAIRN_E_NOMEM, "rotary frequencies");
    const int32_t n = (int32_t)(part * dim / 2);
    for (int32_t i = 0; i < n; i++) f[i] = out->inv_freq[i] / (float)factor;
    out->inv_freq = f;
    return CAIRN_OK;
}

cairn_status gemma4_read_ropes(model *m, config *c, const base_config *b, gemma4 *g, cairn_diag *dg)
{
    rope_params p = {.dim = b->s.head_dim, .ctx = b->s.ctx_train, .theta = 1e4};
    int32_t dim[2] = {0, 0}; /* of full layers, of windowed ones */
    if (c->gguf) p.theta = config_num(c, NULL, "rope.freq_base_swa", 1.01, 1e12, 1e4);
    if (config_has(c, "rope_parameters.sliding_attention", NULL))
        p = config_rope(c, b, "sliding_attention", 1e4, &m->a);
    for (int32_t i = 0; i < b->s.n_layer; i++) {
        const gemma_attn *a = &g->attn[i];
        int32_t *d = &dim[a->window > 0];
        if (*d && *d != a->head_dim)
            config_fail(c, "head_dim", "several in layers of one kind", "one a kind of layer");
        *d = a->head_dim;
    }
    if (dim[1]) p.dim = dim[1];
    TRY(c->status);
    TRY(family_rope(m, &p, &g->rope_windowed, dg));
    return full_rope(m, c, dim[0] ? dim[0] : b->s.head_dim, &g->rope, dg);
}
