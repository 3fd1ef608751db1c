/* Rotary parameters from either file format, into what nn/rope.c computes with.

   HF writes them flat (rope_theta, rope_scaling), or as rope_parameters, flat or by the kind of layer;
   GGUF as rope.* keys, read as llama.cpp reads them. */
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/meta.h"
#include "base/str.h"
#include "model/config.h"
#include "nn/nn.h"

/* Ranges in which the arithmetic of nn/rope.c is sound. */
static const double least = 1e-3, most = 1e6, theta_lo = 1.01, theta_hi = 1e12, scale_hi = 1e3;

static const float *num_list(config *c, const char *key, int32_t n, arena *a)
{
    char item[CONFIG_KEY_LEN], want[META_TEXT_LEN];
    meta arr = {0}, m = {0};
    if (c->status != CAIRN_OK) return NULL;
    if (!meta_get(&c->src->meta, key, &arr) || arr.type != META_ARR || arr.u.n != (size_t)n) {
        (void)snprintf(want, sizeof want, "%d numbers, one for each rotated pair", (int)n);
        config_fail_meta(c, key, &arr, want);
        return NULL;
    }
    float *f = arena_alloc(a, (size_t)n * sizeof *f);
    if (!f) {
        c->status = diag_set(c->dg, CAIRN_E_NOMEM, "%s", key);
        return NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        m = (meta){.type = META_NULL};
        (void)meta_at(&c->src->meta, &arr, (size_t)i, &m);
        f[i] = m.type == META_FLOAT ? (float)m.u.f : m.type == META_INT ? (float)m.u.i : 0;
        if (f[i] > 0 && (double)f[i] < most) continue;
        (void)snprintf(item, sizeof item, "%.100s.%d", key, (int)i);
        config_fail_meta(c, item, &m, "a number of more than 0, less than 1e6");
        return NULL;
    }
    return f;
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

static double block_num(config *c, const char *block, const char *field, double lo, double hi,
                        double otherwise)
{
    char k[CONFIG_KEY_LEN];
    return config_num(c, in_block(block, field, k), NULL, lo, hi, otherwise);
}

static double need_block_num(config *c, const char *block, const char *field, double lo, double hi)
{
    char k[CONFIG_KEY_LEN];
    return config_need_num(c, in_block(block, field, k), NULL, lo, hi);
}

/* Positions before scaling: beside the block too, as some configs have it. */
static int32_t original_context(config *c, const char *block, int32_t otherwise)
{
    static const char orig[] = "original_max_position_embeddings";
    char k[CONFIG_KEY_LEN];
    const int32_t inside = config_int(c, in_block(block, orig, k), NULL, 2, 1 << 28, otherwise);
    return config_int(c, orig, NULL, 2, 1 << 28, inside);
}

static void read_llama3(config *c, const char *block, rope_params *p)
{
    static const char orig[] = "original_max_position_embeddings";
    char k[CONFIG_KEY_LEN];
    p->factor = need_block_num(c, block, "factor", least, most);
    p->low_freq = need_block_num(c, block, "low_freq_factor", least, most);
    p->high_freq = need_block_num(c, block, "high_freq_factor", p->low_freq * 1.001, most);
    p->ctx_orig = config_need_int(c, in_block(block, orig, k), NULL, 2, 1 << 28);
}

/* A yarn block with a null for its factor, or a longrope block without one, means the ratio of the two
   contexts. */
static double ratio(config *c, const char *block, const rope_params *p)
{
    const double otherwise = (double)p->ctx / (p->ctx_orig > 0 ? p->ctx_orig : 1);
    return block_num(c, block, "factor", least, most, otherwise);
}

static void read_yarn(config *c, const char *block, rope_params *p)
{
    char k[CONFIG_KEY_LEN];
    meta m = {0};
    if (!meta_get(&c->src->meta, in_block(block, "factor", k), &m) && m.type == META_NONE)
        config_fail(c, k, "nothing", "a number, or null for the ratio of the contexts");
    p->ctx_orig = original_context(c, block, p->ctx);
    p->factor = ratio(c, block, p);
    p->beta_fast = block_num(c, block, "beta_fast", least, most, 32);
    p->beta_slow = block_num(c, block, "beta_slow", least, most, 1);
    p->mscale = block_num(c, block, "mscale", 0, scale_hi, 0);
    p->mscale_all_dim = block_num(c, block, "mscale_all_dim", 0, scale_hi, 0);
    p->attention_factor = block_num(c, block, "attention_factor", least, scale_hi, 0);
    /* The reference looks for it beside the blocks of the kinds of layers, not in them. */
    if (!strchr(block, '.')) p->no_truncate = !config_bool(c, in_block(block, "truncate", k), true);
}

static void read_long(config *c, const char *block, rope_params *p, arena *a)
{
    char k[CONFIG_KEY_LEN];
    p->ctx_orig = original_context(c, block, p->ctx);
    p->factor = ratio(c, block, p);
    p->attention_factor = block_num(c, block, "attention_factor", least, scale_hi, 0);
    p->short_div = num_list(c, in_block(block, "short_factor", k), p->dim / 2, a);
    p->long_div = num_list(c, in_block(block, "long_factor", k), p->dim / 2, a);
}

/* Only the fields that the kind uses: what lies beside them means nothing. */
static void read_hf_block(config *c, const char *block, rope_params *p, arena *a)
{
    char k[CONFIG_KEY_LEN];
    cairn_str name = config_str(c, in_block(block, "rope_type", k), NULL);
    if (name.len == 0) name = config_str(c, in_block(block, "type", k), NULL);
    p->kind = kind_of(c, in_block(block, "rope_type", k), name);
    p->theta = block_num(c, block, "rope_theta", theta_lo, theta_hi, p->theta);
    switch (p->kind) {
    case ROPE_DEFAULT:
        return;
    case ROPE_LINEAR:
    case ROPE_DYNAMIC:
        p->factor = need_block_num(c, block, "factor", least, most);
        return;
    case ROPE_LLAMA3:
        read_llama3(c, block, p);
        return;
    case ROPE_YARN:
        read_yarn(c, block, p);
        return;
    case ROPE_LONG:
        read_long(c, block, p, a);
        return;
    }
}

static double gguf_num(config *c, const char *field, double lo, double hi, double otherwise)
{
    return config_num(c, NULL, field, lo, hi, otherwise);
}

/* As llama.cpp reads them: no type means linear, whose factor an older key may hold and 0 means none;
   yarn's attention factors multiply what its own formula gives. */
static void read_gguf(config *c, rope_params *p)
{
    char k[CONFIG_KEY_LEN];
    const char *type_key = config_key(c, NULL, "rope.scaling.type", k);
    const cairn_str type = config_str(c, NULL, "rope.scaling.type");
    p->dim = config_int(c, NULL, "rope.dimension_count", 2, p->dim > 2 ? p->dim : 2, p->dim);
    p->kind = kind_of(c, type_key, type.len ? type : STR_LIT("linear"));
    p->factor =
        gguf_num(c, "rope.scaling.factor", 0, most, gguf_num(c, "rope.scale_linear", 0, most, 0));
    if (p->factor < least) p->factor = 1;
    p->ctx_orig = config_int(c, NULL, "rope.scaling.original_context_length", 2, 1 << 28, p->ctx);
    p->attention_scale = gguf_num(c, "rope.scaling.attn_factor", least, scale_hi, 1) *
                         gguf_num(c, "rope.scaling.yarn_attn_factor", least, scale_hi, 1);
    p->beta_fast = gguf_num(c, "rope.scaling.yarn_beta_fast", least, most, 32);
    p->beta_slow = gguf_num(c, "rope.scaling.yarn_beta_slow", least, most, 1);
    if (p->kind == ROPE_LLAMA3 || p->kind == ROPE_DYNAMIC)
        config_fail(c, type_key, "a type without its tables", "none, linear, yarn or longrope");
    if (str_is(str_of(c->arch), "deepseek2") ||
        str_is(str_of(c->arch), "mistral4")) { /* llama.cpp stores a tenth of it */
        p->mscale_all_dim = 10 * gguf_num(c, "rope.scaling.yarn_log_multiplier", 0, scale_hi, 0);
        p->mscale = p->mscale_all_dim;
    } else if (str_is(str_of(c->arch), "mistral3")) {
        p->mscale_all_dim = gguf_num(c, "rope.scaling.yarn_log_multiplier", 0, scale_hi, 0);
        p->mscale = p->mscale_all_dim > 0 ? 1 : 0;
    } else if (gguf_num(c, "rope.scaling.yarn_log_multiplier", -most, most, 0) != 0)
        config_fail(c, config_key(c, NULL, "rope.scaling.yarn_log_multiplier", k), "a number",
                    "none in this family");
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

/* Pairs rotate: their elements are of an even number. */
static void check_dim(config *c, const rope_params *p)
{
    char k[CONFIG_KEY_LEN], found[META_TEXT_LEN];
    const char *key = c->gguf ? "rope.dimension_count" : NULL;
    if (p->dim > 0 && p->dim % 2 == 0) return;
    (void)snprintf(found, sizeof found, "%d rotated elements of a head", (int)p->dim);
    config_fail(c, config_key(c, "head_dim", key, k), found, "a positive even number");
}

/* In families whose heads rotate whole the reference takes no notice of the factor, but that its scalings
   make too few frequencies: with those it fails. */
static void read_hf(config *c, const char *kind, float partial, rope_params *p, arena *a)
{
    static const char key[] = "partial_rotary_factor";
    char block[CONFIG_KEY_LEN];
    meta m = {0};
    find_block(c, kind, block);
    const double top = config_num(c, key, NULL, 1e-6, 1, partial > 0 ? (double)partial : 1);
    const double part = block_num(c, block, key, 1e-6, 1, top);
    if (partial > 0) p->dim = (int32_t)(part * p->dim);
    check_dim(c, p);
    if (!meta_get(&c->src->meta, block, &m)) return;
    if (m.type == META_OBJ) {
        read_hf_block(c, block, p, a);
        if (!(partial > 0) && part < 1 && p->kind != ROPE_DEFAULT)
            config_fail(c, key, "a part", "heads that rotate whole in this family");
        return;
    }
    config_fail_meta(c, block, &m, "an object");
}

rope_params config_rope(config *c, const base_config *b, const char *kind, double theta, arena *a)
{
    rope_params p = {.dim = b->s.head_dim, .ctx = b->s.ctx_train, .ctx_orig = b->s.ctx_train};
    p.theta = config_num(c, "rope_theta", "rope.freq_base", theta_lo, theta_hi, theta);
    if (c->gguf) {
        read_gguf(c, &p);
        check_dim(c, &p);
    } else {
        read_hf(c, kind, b->partial, &p, a);
    }
    return p;
}

void config_temper(config *c, const rope_params *p, rope_spec *q)
{
    static const char key[] = "rope_parameters.llama_4_scaling_beta";
    if (!c->gguf && !config_has(c, key, NULL)) config_fail(c, key, "nothing", "a number");
    q->temper = (float)config_num(c, key, "attention.temperature_scale", 0, 1e3, 0);
    q->temper_len = config_int(c, "rope_parameters.original_max_position_embeddings",
                               "rope.scaling.original_context_length", 1, 1 << 28, p->ctx_orig);
}
