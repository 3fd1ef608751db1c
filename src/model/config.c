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

const char *config_key(const config *c, const char *hf, const char *gguf, char out[CONFIG_KEY_LEN])
{
    if (!c->gguf) return hf;
    if (!gguf) return NULL;
    (void)snprintf(out, CONFIG_KEY_LEN, "%s.%s", c->arch, gguf);
    return out;
}

void config_fail(config *c, const char *key, const char *found, const char *expected)
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
    const char *key = config_key(c, hf, gguf, b);
    int32_t v = otherwise;
    if (key) (void)read_int(c, key, lo, hi, false, &v);
    return v;
}

int32_t config_int_at(config *c, const char *hf, const char *gguf, int32_t i, int32_t lo,
                      int32_t hi, int32_t otherwise)
{
    char b[CONFIG_KEY_LEN], found[48];
    meta list, m;
    const char *key = config_key(c, hf, gguf, b);
    if (!key || !meta_get(&c->src->meta, key, &list) || list.type != META_ARR)
        return config_int(c, hf, gguf, lo, hi, otherwise);
    if (meta_at(&c->src->meta, &list, (size_t)i, &m) && m.type == META_INT && m.u.i >= lo &&
        m.u.i <= hi)
        return (int32_t)m.u.i;
    (void)snprintf(found, sizeof found, "a list without a fitting entry %d", (int)i);
    config_fail(c, key, found, "one whole number a layer");
    return otherwise;
}

int32_t config_need_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    int32_t v = lo;
    if (key) (void)read_int(c, key, lo, hi, true, &v);
    return v;
}

double config_num(config *c, const char *hf, const char *gguf, double lo, double hi,
                  double otherwise)
{
    char b[CONFIG_KEY_LEN], found[32], expected[64];
    const char *key = config_key(c, hf, gguf, b);
    double v = otherwise;
    if (!key || c->status != CAIRN_OK) return otherwise;
    c->status = meta_want_num(&c->src->meta, key, false, &v, c->dg);
    if (c->status != CAIRN_OK) {
        (void)diag_prefix(c->dg, c->status, "%s", c->src->path);
        return otherwise;
    }
    if ((v >= lo && v <= hi) || !config_has(c, hf, gguf)) return v;
    (void)snprintf(found, sizeof found, "%g", v);
    (void)snprintf(expected, sizeof expected, "%g to %g", lo, hi);
    config_fail(c, key, found, expected);
    return otherwise;
}

bool config_has(config *c, const char *hf, const char *gguf)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    meta m;
    return key && meta_get(&c->src->meta, key, &m);
}

bool config_null(config *c, const char *hf)
{
    meta m = {0};
    return !c->gguf && !meta_get(&c->src->meta, hf, &m) && m.type == META_NULL;
}

bool config_bool(config *c, const char *hf, bool otherwise)
{
    meta m;
    if (c->gguf || !meta_get(&c->src->meta, hf, &m)) return otherwise;
    if (m.type == META_BOOL) return m.u.b;
    config_fail(c, hf, "another type", "true or false");
    return otherwise;
}

cairn_str config_str(config *c, const char *hf, const char *gguf)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    meta m;
    if (!key || !meta_get(&c->src->meta, key, &m)) return STR_LIT("");
    if (m.type == META_STR) return m.u.s;
    config_fail(c, key, "another type", "a text");
    return STR_LIT("");
}

void config_only(config *c, const char *hf, const char *const *allowed)
{
    char found[80];
    if (c->gguf || !config_has(c, hf, NULL)) return;
    const cairn_str v = config_str(c, hf, NULL);
    for (size_t i = 0; allowed[i]; i++)
        if (str_is(v, allowed[i])) return;
    (void)snprintf(found, sizeof found, "\"%.*s\"", (int)(v.len > 60 ? 60 : v.len), v.ptr);
    config_fail(c, hf, found, allowed[0]);
}

/* GGUF writes no vocabulary size for most families: the embedding tells. */
static int32_t vocab_size(config *c, int32_t otherwise)
{
    enum { MOST = 1 << 24 };
    if (!c->gguf && otherwise) return config_int(c, "vocab_size", NULL, 1, MOST, otherwise);
    if (!c->gguf) return config_need_int(c, "vocab_size", NULL, 1, MOST);
    const tensor_desc *t = source_find(c->src, "token_embd.weight");
    if (t && t->n_dim == 2 && t->dim[0] > 0 && t->dim[0] <= MOST) return (int32_t)t->dim[0];
    config_fail(c, "tensor token_embd.weight", "missing or misshapen", "[vocabulary, hidden]");
    return 1;
}

static void read_heads(config *c, const config_defaults *d, model_shape *s)
{
    enum { MOST = 1 << 14 };
    static const char kv[] = "attention.head_count_kv";
    s->n_head = d->n_head && !c->gguf
                    ? config_int(c, "num_attention_heads", NULL, 1, MOST, d->n_head)
                    : config_need_int(c, "num_attention_heads", "attention.head_count", 1, MOST);
    const int32_t kv_heads = d->n_kv_head && !c->gguf ? d->n_kv_head : s->n_head;
    s->n_kv_head = d->by_layer ? config_int_at(c, "num_key_value_heads", kv, 0, 1, MOST, kv_heads)
                               : config_int(c, "num_key_value_heads", kv, 1, MOST, kv_heads);
    s->head_dim = config_int(c, "head_dim", "attention.key_length", 1, MOST,
                             d->head_dim && !c->gguf ? d->head_dim : s->hidden / s->n_head);
    const int32_t dv = config_int(c, NULL, "attention.value_length", 1, MOST, s->head_dim);
    if (dv != s->head_dim)
        config_fail(c, "attention.value_length", "another width", "attention.key_length");
    if (s->head_dim < 1 || s->n_head % s->n_kv_head)
        config_fail(c, "the number of heads", "uneven", "a multiple of the number of KV heads");
}

base_config config_base(config *c, const config_defaults *d)
{
    base_config b = {0};
    const int32_t wide = 1 << 20;
    b.s.hidden = config_need_int(c, "hidden_size", "embedding_length", 1, wide);
    b.s.n_layer = config_need_int(c, "num_hidden_layers", "block_count", 1, 1 << 12);
    read_heads(c, d, &b.s);
    b.s.ctx_train = config_int(c, "max_position_embeddings", "context_length", 1, 1 << 28, d->ctx);
    b.ffn = d->by_layer
                ? config_int_at(c, "intermediate_size", "feed_forward_length", 0, 1, wide, 1)
                : config_need_int(c, "intermediate_size", "feed_forward_length", 1, wide);
    b.eps = (float)config_num(c, "rms_norm_eps", "attention.layer_norm_rms_epsilon", 0, 1,
                              d->eps > 0 ? (double)d->eps : 1e-6);
    b.s.vocab = vocab_size(c, d->vocab);
    b.tied = c->gguf ? source_find(c->src, "output.weight") == NULL
                     : config_bool(c, "tie_word_embeddings", d->tied);
    if (!c->gguf && config_has(c, "quantization_config", NULL))
        config_fail(c, "quantization_config", "present", "unquantised weights (for now)");
    if (!c->gguf && config_has(c, "quantization", NULL))
        config_fail(c, "quantization", "present", "unquantised weights (for now)");
    return b;
}

static bool layer_is_windowed(config *c, const meta *types, int32_t i)
{
    meta m;
    char found[80];
    if (!meta_at(&c->src->meta, types, (size_t)i, &m) || m.type != META_STR) {
        config_fail(c, "layer_types", "a list with other things than texts",
                    "the name of a layer type");
        return false;
    }
    if (str_is(m.u.s, "sliding_attention")) return true;
    if (str_is(m.u.s, "full_attention")) return false;
    (void)snprintf(found, sizeof found, "\"%.*s\"", (int)(m.u.s.len > 60 ? 60 : m.u.s.len),
                   m.u.s.ptr);
    config_fail(c, "layer_types", found, "full_attention or sliding_attention");
    return false;
}

/* GGUF: a period, or one truth a layer. */
static bool gguf_windowed(config *c, const meta *pattern, int32_t i, int32_t period)
{
    meta m;
    if (pattern->type == META_INT) period = pattern->u.i > 0 ? (int32_t)pattern->u.i : 0;
    if (pattern->type != META_ARR) return !(period > 0 && (i + 1) % period == 0);
    if (!meta_at(&c->src->meta, pattern, (size_t)i, &m) || m.type != META_BOOL) {
        config_fail(c, "attention.sliding_window_pattern", "another list",
                    "one truth value a layer");
        return false;
    }
    return m.u.b;
}

const int32_t *config_windows(config *c, int32_t n_layer, int32_t window, int32_t period, arena *a)
{
    char key[CONFIG_KEY_LEN];
    meta types = {0};
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    if (!w) {
        if (c->status == CAIRN_OK) c->status = diag_set(c->dg, CAIRN_E_NOMEM, "layer windows");
        return NULL;
    }
    if (c->status != CAIRN_OK) return w;
    const char *named = config_key(c, "layer_types", "attention.sliding_window_pattern", key);
    const bool listed = meta_get(&c->src->meta, named, &types);
    if (listed && !c->gguf && (types.type != META_ARR || types.u.n < (size_t)n_layer)) {
        config_fail(c, "layer_types", "another thing", "a list with one entry a layer");
        return w;
    }
    for (int32_t i = 0; i < n_layer && c->status == CAIRN_OK; i++) {
        const bool windowed = c->gguf || !listed ? gguf_windowed(c, &types, i, period)
                                                 : layer_is_windowed(c, &types, i);
        if (windowed && listed && !c->gguf && window == 0)
            config_fail(c, "sliding_window", "missing", "the window of the sliding layers");
        w[i] = windowed ? window : 0;
    }
    return w;
}
