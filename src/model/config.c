/* Typed reads of config.json and GGUF metadata under one set of names.

   The first error sticks in c->status, with its message in the diag; later reads return their
   defaults, so that a family reads all its fields and checks once. */
#include "model/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

enum { MOST_HEADS = 1 << 14 }; /* heads, and the width of one */

/* The path of a checkpoint in several files is its folder's. */
static const char *file_in(const config *c)
{
    return c->gguf ? "" : "/config.json";
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
        c->status = diag_set(c->dg, CAIRN_E_CORRUPT, "%s%s: %s: found %s; expected %s",
                             c->src->path, file_in(c), key, found, expected);
}

void config_misfit(config *c, const char *hf, const char *gguf, int32_t found, const char *expected,
                   ...)
{
    char key[CONFIG_KEY_LEN], number[16], text[CONFIG_KEY_LEN];
    va_list args;
    (void)snprintf(number, sizeof number, "%d", (int)found);
    va_start(args, expected);
    (void)vsnprintf(text, sizeof text, expected, args);
    va_end(args);
    config_fail(c, config_key(c, hf, gguf, key), number, text);
}

/* The same, of a value as the file spells it. */
static void fail_meta(config *c, const char *key, const meta *m, const char *expected)
{
    char found[META_TEXT_LEN];
    meta_text(m, found);
    config_fail(c, key, found, expected);
}

config config_of(const source *src, cairn_diag *dg)
{
    config c = {.src = src, .gguf = src->format == SOURCE_GGUF, .dg = dg};
    const char *key = c.gguf ? "general.architecture" : "model_type";
    meta m = {0};
    const bool found = meta_get(&src->meta, key, &m) && m.type == META_STR;
    const cairn_str arch = found ? m.u.s : STR_LIT("");
    if (arch.len == 0 || arch.len >= sizeof c.arch || memchr(arch.ptr, 0, arch.len))
        fail_meta(&c, key, &m, "a model family");
    else
        memcpy(c.arch, arch.ptr, arch.len);
    return c;
}

static bool read_int(config *c, const char *key, int32_t lo, int32_t hi, bool required,
                     int32_t *out)
{
    int64_t v = *out;
    if (c->status != CAIRN_OK) return false;
    c->status = meta_want_int(&c->src->meta, key, required, lo, hi, &v, c->dg);
    if (c->status != CAIRN_OK) {
        (void)diag_prefix(c->dg, c->status, "%s%s", c->src->path, file_in(c));
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

int32_t config_class_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                         int32_t otherwise)
{
    return c->gguf ? config_need_int(c, NULL, gguf, lo, hi)
                   : config_int(c, hf, NULL, lo, hi, otherwise);
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
        (void)diag_prefix(c->dg, c->status, "%s%s", c->src->path, file_in(c));
        return otherwise;
    }
    if ((v >= lo && v <= hi) || !config_has(c, hf, gguf)) return v;
    (void)snprintf(found, sizeof found, "%g", v);
    (void)snprintf(expected, sizeof expected, "%g to %g", lo, hi);
    config_fail(c, key, found, expected);
    return otherwise;
}

double config_num_at(config *c, const char *hf, const char *gguf, int32_t i, int32_t n, double lo,
                     double hi, double otherwise)
{
    char b[CONFIG_KEY_LEN], item[CONFIG_KEY_LEN], found[META_TEXT_LEN], expected[META_TEXT_LEN];
    const char *key = config_key(c, hf, gguf, b);
    meta list, m = {0};
    if (!key || !meta_get(&c->src->meta, key, &list)) return otherwise;
    if (list.type != META_ARR || list.u.n != (size_t)n) {
        (void)snprintf(expected, sizeof expected, "one number for each of %d layers", (int)n);
        fail_meta(c, key, &list, expected);
        return otherwise;
    }
    (void)meta_at(&c->src->meta, &list, (size_t)i, &m);
    const double v = m.type == META_FLOAT ? m.u.f : m.type == META_INT ? (double)m.u.i : hi + 1;
    if (v >= lo && v <= hi) return v;
    (void)snprintf(item, sizeof item, "%.100s.%d", key, (int)i);
    meta_text(&m, found);
    (void)snprintf(expected, sizeof expected, "%g to %g", lo, hi);
    config_fail(c, item, found, expected);
    return otherwise;
}

double config_need_num(config *c, const char *hf, const char *gguf, double lo, double hi)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    if (key && !config_has(c, hf, gguf)) config_fail(c, key, "nothing", "a number");
    return config_num(c, hf, gguf, lo, hi, lo);
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
    fail_meta(c, hf, &m, "true or false");
    return otherwise;
}

void config_switch(config *c, const char *hf, bool want)
{
    static const char *const words[] = {"false", "true"};
    if (config_bool(c, hf, want) != want) config_fail(c, hf, words[!want], words[want]);
}

bool config_named(config *c, const char *hf, int32_t n, bool *mark)
{
    char key[CONFIG_KEY_LEN];
    meta list, m = {0};
    if (c->status != CAIRN_OK || c->gguf || !meta_get(&c->src->meta, hf, &list)) return false;
    if (list.type == META_NULL) return false;
    if (list.type != META_ARR) {
        fail_meta(c, hf, &list, "a list of numbers");
        return false;
    }
    for (size_t i = 0; i < list.u.n; i++) {
        if (!meta_at(&c->src->meta, &list, i, &m) || m.type != META_INT) {
            (void)snprintf(key, sizeof key, "%s.%zu", hf, i);
            fail_meta(c, key, &m, "a number");
            return false;
        }
        if (m.u.i >= 0 && m.u.i < n) mark[m.u.i] = true;
    }
    return true;
}

cairn_str config_str(config *c, const char *hf, const char *gguf)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    meta m;
    if (!key || !meta_get(&c->src->meta, key, &m)) return STR_LIT("");
    if (m.type == META_STR) return m.u.s;
    fail_meta(c, key, &m, "a text");
    return STR_LIT("");
}

void config_object(config *c, const char *hf)
{
    meta m;
    if (c->gguf || !meta_get(&c->src->meta, hf, &m) || m.type == META_OBJ) return;
    fail_meta(c, hf, &m, "an object");
}

void config_only(config *c, const char *hf, const char *const *allowed)
{
    char expected[CONFIG_KEY_LEN];
    size_t n = 0;
    meta m;
    if (c->gguf || !meta_get(&c->src->meta, hf, &m)) return;
    expected[0] = '\0';
    for (size_t i = 0; allowed[i]; i++) {
        if (m.type == META_STR && str_is(m.u.s, allowed[i])) return;
        if (n < sizeof expected)
            n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%s", i ? " or " : "",
                                  allowed[i]);
    }
    fail_meta(c, hf, &m, expected);
}

glu_act config_act(config *c, const char *hf, const char *gguf)
{
    static const struct {
        const char *name;
        glu_act act;
    } acts[] = {{"", GLU_GELU_ERF},
                {"gelu", GLU_GELU_ERF},
                {"gelu_python", GLU_GELU_ERF},
                {"gelu_new", GLU_GELU_TANH},
                {"gelu_pytorch_tanh", GLU_GELU_TANH},
                {"silu", GLU_SILU},
                {"swish", GLU_SILU},
                {"relu", GLU_RELU}};
    char b[CONFIG_KEY_LEN];
    const meta m = {.type = META_STR, .u.s = config_str(c, hf, gguf)};
    for (size_t i = 0; i < N_ROWS(acts); i++)
        if (str_is(m.u.s, acts[i].name)) return acts[i].act;
    fail_meta(c, config_key(c, hf, gguf, b), &m, "gelu, gelu_new, silu or relu");
    return GLU_GELU_ERF;
}

/* GGUF writes no vocabulary size for most families: the embedding tells. */
static int32_t vocab_size(config *c, int32_t otherwise)
{
    enum { MOST = 1 << 24 };
    if (!c->gguf && otherwise) return config_int(c, "vocab_size", NULL, 1, MOST, otherwise);
    if (!c->gguf) return config_need_int(c, "vocab_size", NULL, 1, MOST);
    const tensor_desc *t = source_find(c->src, "token_embd.weight");
    if (t && t->n_dim == 2 && t->dim[0] > 0 && t->dim[0] <= MOST) return (int32_t)t->dim[0];
    config_fail(c, "tensor token_embd.weight", "none of that shape", "[vocabulary, hidden]");
    return 1;
}

/* Without a width of its own a head has an equal share of the hidden state. */
static int32_t head_share(config *c, const model_shape *s)
{
    if (s->n_head > 0 && s->hidden % s->n_head == 0) return s->hidden / s->n_head;
    config_misfit(c, "hidden_size", "embedding_length", s->hidden, "a multiple of the %d heads",
                  (int)s->n_head);
    return 1;
}

static void check_heads(config *c, const model_shape *s)
{
    const int32_t dv = config_int(c, NULL, "attention.value_length", 1, MOST_HEADS, s->head_dim);
    if (dv != s->head_dim)
        config_misfit(c, NULL, "attention.value_length", dv, "%d as attention.key_length",
                      (int)s->head_dim);
    if (c->status == CAIRN_OK && s->n_head % s->n_kv_head != 0)
        config_misfit(c, "num_key_value_heads", "attention.head_count_kv", s->n_kv_head,
                      "a divisor of the %d heads", (int)s->n_head);
}

int32_t config_first_above_0(config *c, const char *key, int32_t most, int32_t otherwise)
{
    char b[CONFIG_KEY_LEN];
    meta list;
    if (!meta_get(&c->src->meta, config_key(c, NULL, key, b), &list) || list.type != META_ARR)
        return config_int(c, NULL, key, 1, most, otherwise);
    for (size_t i = 0; i < list.u.n && c->status == CAIRN_OK; i++) {
        const int32_t v = config_int_at(c, NULL, key, (int32_t)i, 0, most, 0);
        if (v > 0) return v;
    }
    return otherwise;
}

static void read_heads(config *c, const config_defaults *d, model_shape *s)
{
    static const char n[] = "num_attention_heads", gguf_n[] = "attention.head_count";
    static const char kv[] = "attention.head_count_kv", width[] = "attention.key_length";
    const bool defaults = !c->gguf;
    s->n_head = d->n_head && defaults ? config_int(c, n, NULL, 1, MOST_HEADS, d->n_head)
                                      : config_need_int(c, n, gguf_n, 1, MOST_HEADS);
    const int32_t n_kv = d->n_kv_head && defaults ? d->n_kv_head : s->n_head;
    s->n_kv_head = d->by_layer && c->gguf
                       ? config_first_above_0(c, kv, MOST_HEADS, n_kv)
                       : config_int(c, "num_key_value_heads", kv, 1, MOST_HEADS, n_kv);
    if (config_has(c, "head_dim", width))
        s->head_dim = config_need_int(c, "head_dim", width, 1, MOST_HEADS);
    else
        s->head_dim = d->head_dim && defaults ? d->head_dim : head_share(c, s);
    if (!d->latent) check_heads(c, s);
}

/* As many as `key` has entries, else as the file says. */
static int32_t count_layers(config *c, const char *key)
{
    enum { MOST = 1 << 12 };
    meta m;
    if (!c->gguf && key && meta_get(&c->src->meta, key, &m)) {
        const size_t n = m.type == META_ARR ? m.u.n : m.type == META_STR ? m.u.s.len : 0;
        if (n >= 1 && n <= MOST) return (int32_t)n;
        fail_meta(c, key, &m, "one entry for each layer");
    }
    return config_need_int(c, "num_hidden_layers", "block_count", 1, MOST);
}

base_config config_base(config *c, const config_defaults *d)
{
    base_config b = {.partial = d->partial, .bias = d->bias};
    const int32_t wide = 1 << 20;
    b.s.hidden = config_need_int(c, "hidden_size", "embedding_length", 1, wide);
    b.s.n_layer = count_layers(c, d->layers_key);
    if (!d->no_heads) read_heads(c, d, &b.s);
    b.s.ctx_train = config_int(c, "max_position_embeddings", "context_length", 1, 1 << 28, d->ctx);
    if (!d->no_mlp)
        b.ffn = d->by_layer && c->gguf ? config_first_above_0(c, "feed_forward_length", wide, 1)
                : d->by_layer && config_has(c, "intermediate_size.0", NULL)
                    ? config_int_at(c, "intermediate_size", NULL, 0, 1, wide, 1)
                : d->ffn
                    ? config_int(c, "intermediate_size", "feed_forward_length", 1, wide, d->ffn)
                    : config_need_int(c, "intermediate_size", "feed_forward_length", 1, wide);
    b.eps = (float)config_num(c, d->eps_key ? d->eps_key : "rms_norm_eps",
                              "attention.layer_norm_rms_epsilon", 0, 1,
                              d->eps > 0 ? (double)d->eps : 1e-6);
    b.s.vocab = vocab_size(c, d->vocab);
    b.tied = c->gguf ? source_find(c->src, "output.weight") == NULL
                     : config_bool(c, "tie_word_embeddings", d->tied);
    return b;
}

static bool layer_is_windowed(config *c, const meta *types, int32_t i)
{
    meta m = {0};
    char key[CONFIG_KEY_LEN];
    if (!meta_at(&c->src->meta, types, (size_t)i, &m)) m.type = META_NULL;
    if (m.type == META_STR && str_is(m.u.s, "sliding_attention")) return true;
    if (m.type == META_STR && str_is(m.u.s, "full_attention")) return false;
    (void)snprintf(key, sizeof key, "layer_types.%d", (int)i);
    fail_meta(c, key, &m, "full_attention or sliding_attention");
    return false;
}

/* GGUF: a period (0: all layers), or one truth a layer. */
static bool gguf_windowed(config *c, const char *key, const meta *pattern, int32_t i,
                          int32_t period)
{
    meta m = {0};
    if (pattern->type == META_INT) period = (int32_t)pattern->u.i;
    if (pattern->type != META_ARR) return !(period > 0 && (i + 1) % period == 0);
    if (meta_at(&c->src->meta, pattern, (size_t)i, &m) && m.type == META_BOOL) return m.u.b;
    fail_meta(c, key, &m, "a truth value for each layer");
    return false;
}

static void check_pattern(config *c, const char *key, const meta *m, int32_t n_layer)
{
    enum { LONGEST = 1 << 12 };
    char expected[META_TEXT_LEN];
    const bool listed = m->type == META_ARR && m->u.n == (size_t)n_layer;
    const bool period = c->gguf && m->type == META_INT && m->u.i >= 0 && m->u.i <= LONGEST;
    (void)snprintf(expected, sizeof expected, "%sone entry for each of %d layers",
                   c->gguf ? "a period, or " : "", (int)n_layer);
    if (!listed && !period) fail_meta(c, key, m, expected);
}

const int32_t *config_windows(config *c, int32_t n_layer, int32_t window, int32_t period, arena *a)
{
    char b[CONFIG_KEY_LEN];
    meta types = {0};
    int32_t *w = arena_calloc(a, (size_t)n_layer, sizeof *w);
    if (!w) {
        if (c->status == CAIRN_OK) c->status = diag_set(c->dg, CAIRN_E_NOMEM, "layer windows");
        return NULL;
    }
    if (c->status != CAIRN_OK) return w;
    const char *key = config_key(c, "layer_types", "attention.sliding_window_pattern", b);
    const bool listed = meta_get(&c->src->meta, key, &types);
    if (listed) check_pattern(c, key, &types, n_layer);
    for (int32_t i = 0; i < n_layer && c->status == CAIRN_OK; i++) {
        const bool windowed = c->gguf || !listed ? gguf_windowed(c, key, &types, i, period)
                                                 : layer_is_windowed(c, &types, i);
        if (windowed && listed && !c->gguf && window == 0)
            config_fail(c, "sliding_window", "nothing", "the window of the sliding layers");
        w[i] = windowed ? window : 0;
    }
    return w;
}

bool config_words(config *c, const char *hf, const char *gguf, const char *yes, const char *no,
                  int32_t n_layer, bool *is_yes)
{
    char b[CONFIG_KEY_LEN], at[CONFIG_KEY_LEN + 16], expected[META_TEXT_LEN];
    meta list = {0}, m;
    const char *key = config_key(c, hf, gguf, b);
    if (!key || !meta_get(&c->src->meta, key, &list)) return false;
    (void)snprintf(expected, sizeof expected, "%s or %s", yes, no);
    if (list.type != META_ARR || list.u.n < (size_t)n_layer)
        fail_meta(c, key, &list, "an entry for each layer");
    for (int32_t i = 0; i < n_layer && c->status == CAIRN_OK; i++) {
        if (!meta_at(&c->src->meta, &list, (size_t)i, &m)) m.type = META_NULL;
        const bool truth = c->gguf && (m.type == META_BOOL || m.type == META_INT);
        is_yes[i] = truth ? (m.type == META_BOOL ? m.u.b : m.u.i != 0)
                          : m.type == META_STR && str_is(m.u.s, yes);
        (void)snprintf(at, sizeof at, "%s.%d", key, (int)i);
        if (!truth && !is_yes[i] && !(m.type == META_STR && str_is(m.u.s, no)))
            fail_meta(c, at, &m, expected);
    }
    return true;
}
