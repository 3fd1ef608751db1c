/* Rotary parameters from either file format, into what nn/rope.c computes with.

   HF writes them flat (rope_theta, rope_scaling), or as rope_parameters, flat or by the kind of layer;
   GGUF as rope.* keys, read as llama.cpp reads them. */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/config.h"

static const float *num_list(config *c, const char *key, int32_t n, arena *a)
{
    meta arr, m;
    if (c->status != CAIRN_OK || !meta_get(&c->src->meta, key, &arr)) return NULL;
    float *f = arena_alloc(a, (size_t)n * sizeof *f);
    if (!f) {
        c->status = diag_set(c->dg, CAIRN_E_NOMEM, "%s", key);
        return NULL;
    }
    bool good = arr.type == META_ARR && arr.u.n == (size_t)n;
    for (int32_t i = 0; good && i < n; i++) {
        good = meta_at(&c->src->meta, &arr, (size_t)i, &m) &&
               (m.type == META_FLOAT || m.type == META_INT);
        if (good) f[i] = m.type == META_FLOAT ? (float)m.u.f : (float)m.u.i;
        good = good && f[i] > 0;
    }
    if (good) return f;
    config_fail(c, key, "another list", "positive numbers, half as many as a head's rotated width");
    return NULL;
}

static rope_kind kind_of(config *c, const char *key, cairn_str name)
{
    static const struct {
        const char *name;
        rope_kind kind;
    } kinds[] = {{"", ROPE_DEFAULT},      {"default", ROPE_DEFAULT}, {"none", ROPE_DEFAULT},
                 {"linear", ROPE_LINEAR}, {"dynamic", ROPE_DYNAMIC}, {"yarn", ROPE_YARN},
                 {"llama3", ROPE_LLAMA3}, {"longrope", ROPE_LONG},   {"su", ROPE_LONG}};
    char found[80];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_is(name, kinds[i].name)) return kinds[i].kind;
    (void)snprintf(found, sizeof found, "\"%.*s\"", (int)(name.len > 60 ? 60 : name.len), name.ptr);
    config_fail(c, key, found, "default, linear, dynamic, yarn, llama3 or longrope");
    return ROPE_DEFAULT;
}

/* "BLOCK.field" in the caller's buffer. */
static const char *in_block(const char *block, const char *field, char out[CONFIG_KEY_LEN])
{
    (void)snprintf(out, CONFIG_KEY_LEN, "%.80s.%.40s", block, field);
    return out;
}

/* Numbers of a rope block; their sound ranges are rope_make's to check, so any finite one passes. */
static double block_num(config *c, const char *block, const char *field, double otherwise)
{
    char k[CONFIG_KEY_LEN];
    return config_num(c, in_block(block, field, k), NULL, -1e30, 1e30, otherwise);
}

static void read_hf_block(config *c, const char *block, rope_params *p, arena *a)
{
    static const char orig[] = "original_max_position_embeddings";
    char k[CONFIG_KEY_LEN];
    cairn_str name = config_str(c, in_block(block, "rope_type", k), NULL);
    if (name.len == 0) name = config_str(c, in_block(block, "type", k), NULL);
    p->kind = kind_of(c, in_block(block, "rope_type", k), name);
    p->theta = block_num(c, block, "rope_theta", p->theta);
    p->factor = block_num(c, block, "factor", 0);
    p->ctx_orig = config_int(c, in_block(block, orig, k), NULL, 1, 1 << 28, p->ctx);
    p->ctx_orig = config_int(c, orig, NULL, 1, 1 << 28, p->ctx_orig);
    p->beta_fast = block_num(c, block, "beta_fast", 32);
    p->beta_slow = block_num(c, block, "beta_slow", 1);
    p->mscale = block_num(c, block, "mscale", 0);
    p->mscale_all_dim = block_num(c, block, "mscale_all_dim", 0);
    p->attention_factor = block_num(c, block, "attention_factor", 0);
    p->no_truncate = !config_bool(c, in_block(block, "truncate", k), true);
    p->low_freq = block_num(c, block, "low_freq_factor", 1);
    p->high_freq = block_num(c, block, "high_freq_factor", 4);
    if (p->kind == ROPE_LONG) {
        p->short_div = num_list(c, in_block(block, "short_factor", k), p->dim / 2, a);
        p->long_div = num_list(c, in_block(block, "long_factor", k), p->dim / 2, a);
    }
    /* A yarn or longrope block without a factor means the ratio of the two contexts. */
    if (p->factor == 0 && (p->kind == ROPE_YARN || p->kind == ROPE_LONG) && p->ctx_orig > 0)
        p->factor = (double)p->ctx / p->ctx_orig;
}

static double gguf_num(config *c, const char *field, double otherwise)
{
    return config_num(c, NULL, field, -1e30, 1e30, otherwise);
}

/* As llama.cpp reads them: no type means linear, whose factor an older key may hold; yarn's attention
   factors multiply what its own formula gives. */
static void read_gguf(config *c, rope_params *p)
{
    const cairn_str type = config_str(c, NULL, "rope.scaling.type");
    p->dim = config_int(c, NULL, "rope.dimension_count", 2, 1 << 14, p->dim);
    p->kind = kind_of(c, "rope.scaling.type", type.len ? type : STR_LIT("linear"));
    p->factor = gguf_num(c, "rope.scaling.factor", gguf_num(c, "rope.scale_linear", 0));
    if (p->factor == 0) p->factor = 1;
    p->ctx_orig = config_int(c, NULL, "rope.scaling.original_context_length", 1, 1 << 28, p->ctx);
    p->attention_scale = gguf_num(c, "rope.scaling.attn_factor", 1) *
                         gguf_num(c, "rope.scaling.yarn_attn_factor", 1);
    p->beta_fast = gguf_num(c, "rope.scaling.yarn_beta_fast", 32);
    p->beta_slow = gguf_num(c, "rope.scaling.yarn_beta_slow", 1);
    if (p->kind == ROPE_LLAMA3 || p->kind == ROPE_DYNAMIC)
        config_fail(c, "rope.scaling.type", "a type without its tables",
                    "none, linear, yarn or longrope");
    if (gguf_num(c, "rope.scaling.yarn_log_multiplier", 0) != 0)
        config_fail(c, "rope.scaling.yarn_log_multiplier", "present", "a family that uses it");
}

/* The block of config.json that holds them: rope_scaling if it is there, as the reference prefers;
   else rope_parameters, or its part for one kind of layer. */
static void find_block(config *c, const char *kind, char block[CONFIG_KEY_LEN])
{
    char nested[CONFIG_KEY_LEN];
    (void)snprintf(block, CONFIG_KEY_LEN, "rope_parameters");
    if (kind && config_has(c, in_block(block, kind, nested), NULL))
        memcpy(block, nested, CONFIG_KEY_LEN);
    else if (config_has(c, "rope_scaling", NULL))
        (void)snprintf(block, CONFIG_KEY_LEN, "rope_scaling");
}

rope_params config_rope(config *c, const base_config *b, const char *kind, double theta, arena *a)
{
    char block[CONFIG_KEY_LEN];
    rope_params p = {.dim = b->s.head_dim, .ctx = b->s.ctx_train, .ctx_orig = b->s.ctx_train};
    p.theta = config_num(c, "rope_theta", "rope.freq_base", -1e30, 1e30, theta);
    if (c->gguf) {
        read_gguf(c, &p);
        return p;
    }
    find_block(c, kind, block);
    const double whole = config_num(c, "partial_rotary_factor", NULL, 1e-6, 1, 1);
    const double partial = block_num(c, block, "partial_rotary_factor", whole);
    if (!(partial > 0 && partial <= 1))
        config_fail(c, "partial_rotary_factor", "out of range", "more than 0, at most 1");
    else
        p.dim = (int32_t)(partial * p.dim);
    meta m;
    if (!meta_get(&c->src->meta, block, &m)) return p;
    if (m.type == META_OBJ)
        read_hf_block(c, block, &p, a);
    else
        config_fail(c, block, "another type", "an object");
    return p;
}
