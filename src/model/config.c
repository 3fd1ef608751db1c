/* Typed reads of config.json and GGUF metadata under one set of names.

   The first error sticks in c->status, with its message in the diag; later reads return their
   defaults, so that a family reads all its fields and checks once. */
#include "model/config.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

config config_of(const source *src, cairn_diag *dg)
{
    config c = {.src = src, .gguf = src->format == SOURCE_GGUF, .dg = dg};
    const char *key = c.gguf ? "general.architecture" : "model_type";
    const cairn_str arch = meta_str(&src->meta, key, STR_LIT(""));
    if (arch.len == 0 || arch.len >= sizeof c.arch)
        c.status = diag_set(dg, CAIRN_E_CORRUPT, "%s: %s is \"%.*s\"; expected a model family",
                            src->path, key, STR_ARG(arch));
    else
        memcpy(c.arch, arch.ptr, arch.len);
    return c;
}

/* The key of this format, or NULL when it has none. */
static const char *key_of(const config *c, const char *hf, const char *gguf,
                          char out[CONFIG_KEY_LEN])
{
    if (!c->gguf) return hf;
    if (!gguf) return NULL;
    (void)snprintf(out, CONFIG_KEY_LEN, "%s.%s", c->arch, gguf);
    return out;
}

static void fail(config *c, const char *key, const char *found, const char *expected)
{
    if (c->status == CAIRN_OK)
        c->status = diag_set(c->dg, CAIRN_E_CORRUPT, "%s: %s is %s; expected %s", c->src->path, key,
                             found, expected);
}

static bool read_int(config *c, const char *key, int32_t lo, int32_t hi, bool required,
                     int32_t *out)
{
    int64_t v = *out;
    if (c->status != CAIRN_OK) return false;
    c->status = meta_want_int(&c->src->meta, key, required, lo, hi, &v, c->dg);
    if (c->status != CAIRN_OK) {
        (void)diag_prefix(c->dg, c->status, "%s", c->src->path);
        return false;
    }
    *out = (int32_t)v;
    return true;
}

int32_t config_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                   int32_t otherwise)
{
    char b[CONFIG_KEY_LEN];
    const char *key = key_of(c, hf, gguf, b);
    int32_t v = otherwise;
    if (key) (void)read_int(c, key, lo, hi, false, &v);
    return v;
}

int32_t config_need_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi)
{
    char b[CONFIG_KEY_LEN];
    const char *key = key_of(c, hf, gguf, b);
    int32_t v = lo;
    if (key) (void)read_int(c, key, lo, hi, true, &v);
    return v;
}

double config_num(config *c, const char *hf, const char *gguf, double otherwise)
{
    char b[CONFIG_KEY_LEN];
    const char *key = key_of(c, hf, gguf, b);
    double v = otherwise;
    if (!key || c->status != CAIRN_OK) return v;
    c->status = meta_want_num(&c->src->meta, key, false, &v, c->dg);
    if (c->status != CAIRN_OK) (void)diag_prefix(c->dg, c->status, "%s", c->src->path);
    return c->status == CAIRN_OK ? v : otherwise;
}

bool config_has(config *c, const char *hf, const char *gguf)
{
    char b[CONFIG_KEY_LEN];
    const char *key = key_of(c, hf, gguf, b);
    meta m;
    return key && meta_get(&c->src->meta, key, &m);
}

bool config_bool(config *c, const char *hf, bool otherwise)
{
    meta m;
    if (c->gguf || !meta_get(&c->src->meta, hf, &m)) return otherwise;
    if (m.type == META_BOOL) return m.u.b;
    fail(c, hf, "another type", "true or false");
    return otherwise;
}

cairn_str config_str(config *c, const char *hf, const char *gguf)
{
    char b[CONFIG_KEY_LEN];
    const char *key = key_of(c, hf, gguf, b);
    return key ? meta_str(&c->src->meta, key, STR_LIT("")) : STR_LIT("");
}

void config_only(config *c, const char *hf, const char *const *allowed)
{
    char found[80];
    if (c->gguf || !config_has(c, hf, NULL)) return;
    const cairn_str v = config_str(c, hf, NULL);
    for (size_t i = 0; allowed[i]; i++)
        if (str_is(v, allowed[i])) return;
    (void)snprintf(found, sizeof found, "\"%.*s\"", (int)(v.len > 60 ? 60 : v.len), v.ptr);
    fail(c, hf, found, allowed[0]);
}

/* GGUF writes no vocabulary size for most families: the embedding tells. */
static int32_t vocab_size(config *c)
{
    if (!c->gguf) return config_need_int(c, "vocab_size", NULL, 1, 1 << 24);
    const tensor_desc *t = source_find(c->src, "token_embd.weight");
    if (t && t->n_dim == 2 && t->dim[0] > 0 && t->dim[0] <= 1 << 24) return (int32_t)t->dim[0];
    fail(c, "tensor token_embd.weight", "missing or misshapen", "[vocabulary, hidden]");
    return 1;
}

base_config config_base(config *c, bool tied_by_default)
{
    base_config b = {0};
    const int32_t wide = 1 << 20;
    b.s.hidden = config_need_int(c, "hidden_size", "embedding_length", 1, wide);
    b.s.n_layer = config_need_int(c, "num_hidden_layers", "block_count", 1, 1 << 12);
    b.s.n_head = config_need_int(c, "num_attention_heads", "attention.head_count", 1, 1 << 14);
    b.s.n_kv_head =
        config_int(c, "num_key_value_heads", "attention.head_count_kv", 1, 1 << 14, b.s.n_head);
    b.s.head_dim = config_int(c, "head_dim", "attention.key_length", 1, 1 << 14,
                              b.s.n_head ? b.s.hidden / b.s.n_head : 0);
    b.s.ctx_train = config_int(c, "max_position_embeddings", "context_length", 1, 1 << 28, 2048);
    b.ffn = config_need_int(c, "intermediate_size", "feed_forward_length", 1, wide);
    b.eps = (float)config_num(c, "rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-6);
    b.s.vocab = vocab_size(c);
    b.tied = c->gguf ? source_find(c->src, "output.weight") == NULL
                     : config_bool(c, "tie_word_embeddings", tied_by_default);
    const int32_t dv = config_int(c, NULL, "attention.value_length", 1, 1 << 14, b.s.head_dim);
    if (c->status == CAIRN_OK && dv != b.s.head_dim)
        fail(c, "attention.value_length", "another width", "attention.key_length");
    if (c->status == CAIRN_OK && (b.s.head_dim < 1 || b.s.n_head % b.s.n_kv_head))
        fail(c, "the number of heads", "uneven", "a multiple of the number of KV heads");
    if (!c->gguf && config_has(c, "quantization_config", NULL))
        fail(c, "quantization_config", "present", "unquantised weights (for now)");
    if (!c->gguf && config_has(c, "quantization", NULL))
        fail(c, "quantization", "present", "unquantised weights (for now)");
    return b;
}

/* --- rotary --- */

static const float *num_list(config *c, const char *key, int32_t n, arena *a)
{
    meta arr, m;
    if (c->status != CAIRN_OK || !meta_get(&c->src->meta, key, &arr)) return NULL;
    float *f = arena_alloc(a, (size_t)n * sizeof *f);
    bool good = arr.type == META_ARR && arr.u.n == (size_t)n && f;
    for (int32_t i = 0; good && i < n; i++) {
        good = meta_at(&c->src->meta, &arr, (size_t)i, &m) &&
               (m.type == META_FLOAT || m.type == META_INT);
        if (good) f[i] = m.type == META_FLOAT ? (float)m.u.f : (float)m.u.i;
        good = good && f[i] > 0;
    }
    if (good) return f;
    fail(c, key, "another list", "positive numbers, half as many as a head's rotated width");
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
    fail(c, key, found, "default, linear, dynamic, yarn, llama3 or longrope");
    return ROPE_DEFAULT;
}

/* "BLOCK.field" in one of four static places of a caller's buffer. */
static const char *in_block(const char *block, const char *field, char out[CONFIG_KEY_LEN])
{
    (void)snprintf(out, CONFIG_KEY_LEN, "%s.%s", block, field);
    return out;
}

static void read_hf_block(config *c, const char *block, rope_params *p, arena *a)
{
    char k[CONFIG_KEY_LEN];
    cairn_str name = config_str(c, in_block(block, "rope_type", k), NULL);
    if (name.len == 0) name = config_str(c, in_block(block, "type", k), NULL);
    p->kind = kind_of(c, in_block(block, "rope_type", k), name);
    p->theta = config_num(c, in_block(block, "rope_theta", k), NULL, p->theta);
    p->factor = config_num(c, in_block(block, "factor", k), NULL, 0);
    p->ctx_orig = config_int(c, in_block(block, "original_max_position_embeddings", k), NULL, 1,
                             1 << 28, p->ctx_orig);
    p->beta_fast = config_num(c, in_block(block, "beta_fast", k), NULL, 32);
    p->beta_slow = config_num(c, in_block(block, "beta_slow", k), NULL, 1);
    p->mscale = config_num(c, in_block(block, "mscale", k), NULL, 0);
    p->mscale_all_dim = config_num(c, in_block(block, "mscale_all_dim", k), NULL, 0);
    p->attention_factor = config_num(c, in_block(block, "attention_factor", k), NULL, 0);
    p->no_truncate = !config_bool(c, in_block(block, "truncate", k), true);
    p->low_freq = config_num(c, in_block(block, "low_freq_factor", k), NULL, 1);
    p->high_freq = config_num(c, in_block(block, "high_freq_factor", k), NULL, 4);
    if (p->kind == ROPE_LONG) {
        p->short_div = num_list(c, in_block(block, "short_factor", k), p->dim / 2, a);
        p->long_div = num_list(c, in_block(block, "long_factor", k), p->dim / 2, a);
    }
    /* A yarn or longrope block without a factor means the ratio of the two contexts. */
    if (p->factor == 0 && (p->kind == ROPE_YARN || p->kind == ROPE_LONG) && p->ctx_orig > 0)
        p->factor = (double)p->ctx / p->ctx_orig;
}

static void read_gguf(config *c, rope_params *p)
{
    char k[CONFIG_KEY_LEN];
    p->dim = config_int(c, NULL, "rope.dimension_count", 2, 1 << 14, p->dim);
    p->kind = kind_of(c, "rope.scaling.type", config_str(c, NULL, "rope.scaling.type"));
    p->factor = config_num(c, NULL, "rope.scaling.factor", 1);
    p->ctx_orig = config_int(c, NULL, "rope.scaling.original_context_length", 1, 1 << 28, p->ctx);
    p->attention_factor = config_num(c, NULL, "rope.scaling.attn_factor", 0);
    p->beta_fast = config_num(c, NULL, "rope.scaling.yarn_beta_fast", 32);
    p->beta_slow = config_num(c, NULL, "rope.scaling.yarn_beta_slow", 1);
    if (p->kind == ROPE_LONG)
        fail(c, key_of(c, NULL, "rope.scaling.type", k), "longrope",
             "a type that this family has in GGUF");
}

rope_params config_rope(config *c, const base_config *b, const char *kind, double theta, arena *a)
{
    char block[CONFIG_KEY_LEN] = "rope_parameters", nested[CONFIG_KEY_LEN];
    rope_params p = {.dim = b->s.head_dim, .ctx = b->s.ctx_train, .ctx_orig = b->s.ctx_train};
    p.theta = config_num(c, "rope_theta", "rope.freq_base", theta);
    if (c->gguf) {
        read_gguf(c, &p);
        return p;
    }
    p.ctx_orig = config_int(c, "original_max_position_embeddings", NULL, 1, 1 << 28, p.ctx_orig);
    if (kind && config_has(c, in_block(block, kind, nested), NULL))
        memcpy(block, nested, sizeof block);
    else if (!config_has(c, block, NULL))
        (void)snprintf(block, sizeof block, "rope_scaling");
    const double partial = config_num(c, in_block(block, "partial_rotary_factor", nested), NULL,
                                      config_num(c, "partial_rotary_factor", NULL, 1.0));
    if (!(partial > 0 && partial <= 1))
        fail(c, "partial_rotary_factor", "out of range", "more than 0, at most 1");
    else
        p.dim = (int32_t)(partial * p.dim);
    if (config_has(c, block, NULL)) read_hf_block(c, block, &p, a);
    return p;
}

/* --- windows --- */

static bool layer_is_windowed(config *c, const meta *types, int32_t i)
{
    meta m;
    char found[80];
    if (!meta_at(&c->src->meta, types, (size_t)i, &m) || m.type != META_STR) {
        fail(c, "layer_types", "a list with other things than texts", "the name of a layer type");
        return false;
    }
    if (str_is(m.u.s, "sliding_attention")) return true;
    if (str_is(m.u.s, "full_attention")) return false;
    (void)snprintf(found, sizeof found, "\"%.*s\"", (int)(m.u.s.len > 60 ? 60 : m.u.s.len),
                   m.u.s.ptr);
    fail(c, "layer_types", found, "full_attention or sliding_attention");
    return false;
}

const int32_t *config_windows(config *c, int32_t n_layer, int32_t window, int32_t period, arena *a)
{
    meta types;
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    if (!w) {
        if (c->status == CAIRN_OK) c->status = diag_set(c->dg, CAIRN_E_NOMEM, "layer windows");
        return NULL;
    }
    if (c->status != CAIRN_OK) return w;
    const bool listed = !c->gguf && meta_get(&c->src->meta, "layer_types", &types);
    if (listed && (types.type != META_ARR || types.u.n < (size_t)n_layer)) {
        fail(c, "layer_types", "another thing", "a list with one entry a layer");
        return w;
    }
    for (int32_t i = 0; i < n_layer; i++) {
        const bool windowed =
            listed ? layer_is_windowed(c, &types, i) : !(period > 0 && (i + 1) % period == 0);
        if (windowed && listed && window == 0)
            fail(c, "sliding_window", "missing", "the window of the sliding layers");
        w[i] = windowed ? window : 0;
    }
    return w;
}
