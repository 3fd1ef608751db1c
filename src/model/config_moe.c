/* Reads what a mixture of experts is made of.  Config classes have three names for the number of
   experts; each is tried, since files of one family are written with any. */
#include "model/config_moe.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"

enum { MOST_EXPERTS = 1 << 12, MOST_WIDTH = 1 << 20 };

static const char *count_key(config *c)
{
    static const char *const names[] = {"num_experts", "num_local_experts", "n_routed_experts"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (config_has(c, names[i], NULL)) return names[i];
    return names[0];
}

/* llama.cpp numbers the functions: 1 softmax, 2 sigmoid, 3 softmax over the chosen. */
static route_score gguf_score(config *c, route_score otherwise)
{
    static const route_score of[] = {ROUTE_SOFTMAX, ROUTE_SIGMOID, ROUTE_CHOSEN};
    const int32_t n = config_int(c, NULL, "expert_gating_func", 0, 3, 0);
    return n ? of[n - 1] : otherwise;
}

static bool gguf_normalise(config *c)
{
    char key[CONFIG_KEY_LEN];
    return meta_bool(&c->src->meta, config_key(c, NULL, "expert_weights_norm", key), false);
}

static void check_groups(config *c, const route_spec *s, const char *k_key, int32_t n_expert)
{
    const int32_t each = n_expert / s->n_group, most = each * s->n_group_used;
    if (n_expert % s->n_group || (s->n_group > 1 && each < 2))
        config_misfit(c, "n_group", "expert_group_count", s->n_group,
                      "a divisor of the %d experts that leaves two or more in a group",
                      (int)n_expert);
    else if (s->n_group_used > s->n_group)
        config_misfit(c, "topk_group", "expert_group_used_count", s->n_group_used,
                      "at most the %d groups", (int)s->n_group);
    else if (s->k > most)
        config_misfit(c, k_key, "expert_used_count", s->k, "at most %d%s", (int)most,
                      s->n_group > 1 ? ", the experts of the groups that take part" : " experts");
}

/* A count that the class has no value for, k_key's too, must be there. */
static int32_t count(config *c, const char *hf, const char *gguf, int32_t most, int32_t otherwise)
{
    return otherwise ? config_int(c, hf, gguf, 1, most, otherwise)
                     : config_need_int(c, hf, gguf, 1, most);
}

void config_moe(config *c, const moe_defaults *d, weights *w, route_spec *out)
{
    const char *k = d->k_key ? d->k_key : "num_experts_per_tok";
    const char *ffn = d->ffn_key ? d->ffn_key : "moe_intermediate_size";
    w->dim[DIM_EXPERTS] = count(c, count_key(c), "expert_count", MOST_EXPERTS, d->n_expert);
    w->dim[DIM_EXPERT_FFN] = count(c, ffn, "expert_feed_forward_length", MOST_WIDTH, d->ffn);
    w->dim[DIM_SHARED_FFN] =
        config_int(c, "shared_expert_intermediate_size", "expert_shared_feed_forward_length", 1,
                   MOST_WIDTH, d->shared_ffn ? d->shared_ffn : 1);
    *out = (route_spec){
        .score = c->gguf ? gguf_score(c, d->score) : d->score,
        .k = count(c, k, "expert_used_count", MOST_EXPERTS, d->k),
        .n_group = config_int(c, d->n_group ? "n_group" : NULL, "expert_group_count", 1,
                              MOST_EXPERTS, !c->gguf && d->n_group ? d->n_group : 1),
        .n_group_used = config_int(c, d->n_group ? "topk_group" : NULL, "expert_group_used_count",
                                   1, MOST_EXPERTS, !c->gguf && d->n_group ? d->n_group_used : 1),
        .normalise = d->normalise,
        .eps = d->eps,
        .scale = (float)config_num(c, d->scale > 0 ? "routed_scaling_factor" : NULL,
                                   "expert_weights_scale", 0, 1e6,
                                   !c->gguf && d->scale > 0 ? (double)d->scale : 1),
    };
    if (!c->gguf && d->normalise_key)
        out->normalise = config_bool(c, d->normalise_key, d->normalise);
    if (c->gguf && d->gguf_normalises) out->normalise = gguf_normalise(c);
    if (c->gguf && out->scale == 0.0f) out->scale = 1.0f; /* GGUF writes 0 for none */
    w->n_expert_used = out->k;
    check_groups(c, out, k, w->dim[DIM_EXPERTS]);
}

bool *config_sparse_from(config *c, int32_t n_layer, const char *first_key, int32_t otherwise,
                         arena *a)
{
    const int32_t first =
        config_int(c, first_key, "leading_dense_block_count", 0, 1 << 12, c->gguf ? 0 : otherwise);
    bool *sparse = arena_calloc(a, (size_t)n_layer, sizeof *sparse);
    if (!sparse && c->status == CAIRN_OK) c->status = diag_set(c->dg, CAIRN_E_NOMEM, "layers");
    for (int32_t i = first; sparse && i < n_layer; i++) sparse[i] = true;
    return sparse;
}

bool *config_sparse_step(config *c, int32_t n_layer, arena *a)
{
    const int32_t every = config_int(c, "decoder_sparse_step", NULL, 1, 1 << 12, 1);
    bool *sparse = arena_calloc(a, (size_t)n_layer, sizeof *sparse);
    bool *dense = arena_calloc(a, (size_t)n_layer, sizeof *dense);
    if (!sparse || !dense) {
        if (c->status == CAIRN_OK) c->status = diag_set(c->dg, CAIRN_E_NOMEM, "layers");
        return NULL;
    }
    (void)config_named(c, "mlp_only_layers", n_layer, dense);
    for (int32_t i = 0; i < n_layer; i++)
        sparse[i] = c->gguf || ((i + 1) % every == 0 && !dense[i]);
    return sparse;
}

int32_t config_skip_mtp(config *c, base_config *b)
{
    const int32_t n = config_int(c, "num_nextn_predict_layers", "nextn_predict_layers", 0, 64, 0);
    if (c->gguf && n >= b->s.n_layer)
        config_fail(c, "nextn_predict_layers", "as many as there are blocks",
                    "fewer than block_count");
    else if (c->gguf)
        b->s.n_layer -= n;
    return n;
}

void weights_skip_mtp(weights *w, int32_t first, int32_t n)
{
    const bool gguf = w->src->format == SOURCE_GGUF;
    char part[48];
    for (int32_t i = first; i < first + n; i++) {
        /* A layer without it is one of the model's own, which the config left out. */
        if (!weights_has(w, "model.layers.%d.eh_proj", "blk.%d.nextn.eh_proj", i)) continue;
        (void)snprintf(part, sizeof part, gguf ? "blk.%d." : ".layers.%d.", (int)i);
        weights_skip(w, part);
    }
}
