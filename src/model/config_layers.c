/* Fields with an entry for each layer: numbers, words, truths.  A list that is too short for the layers, or
   has an entry that does not fit, is an error that names the entry. */
#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "model/config.h"

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

double config_num_at(config *c, const char *hf, const char *gguf, int32_t i, int32_t n, double lo,
                     double hi, double otherwise)
{
    char b[CONFIG_KEY_LEN], item[CONFIG_KEY_LEN], found[META_TEXT_LEN], expected[META_TEXT_LEN];
    const char *key = config_key(c, hf, gguf, b);
    meta list, m = {0};
    if (!key || !meta_get(&c->src->meta, key, &list)) return otherwise;
    if (list.type != META_ARR || list.u.n != (size_t)n) {
        (void)snprintf(expected, sizeof expected, "one number for each of %d layers", (int)n);
        config_fail_meta(c, key, &list, expected);
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

bool config_named(config *c, const char *hf, int32_t n, bool *mark)
{
    char key[CONFIG_KEY_LEN];
    meta list, m = {0};
    if (c->status != CAIRN_OK || c->gguf || !meta_get(&c->src->meta, hf, &list)) return false;
    if (list.type == META_NULL) return false;
    if (list.type != META_ARR) {
        config_fail_meta(c, hf, &list, "a list of numbers");
        return false;
    }
    for (size_t i = 0; i < list.u.n; i++) {
        if (!meta_at(&c->src->meta, &list, i, &m) || m.type != META_INT) {
            (void)snprintf(key, sizeof key, "%s.%zu", hf, i);
            config_fail_meta(c, key, &m, "a number");
            return false;
        }
        if (m.u.i >= 0 && m.u.i < n) mark[m.u.i] = true;
    }
    return true;
}

static bool layer_is_windowed(config *c, const meta *types, int32_t i)
{
    meta m = {0};
    char key[CONFIG_KEY_LEN];
    if (!meta_at(&c->src->meta, types, (size_t)i, &m)) m.type = META_NULL;
    if (m.type == META_STR && str_is(m.u.s, "sliding_attention")) return true;
    if (m.type == META_STR && str_is(m.u.s, "full_attention")) return false;
    (void)snprintf(key, sizeof key, "layer_types.%d", (int)i);
    config_fail_meta(c, key, &m, "full_attention or sliding_attention");
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
    config_fail_meta(c, key, &m, "a truth value for each layer");
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
    if (!listed && !period) config_fail_meta(c, key, m, expected);
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
        config_fail_meta(c, key, &list, "an entry for each layer");
    for (int32_t i = 0; i < n_layer && c->status == CAIRN_OK; i++) {
        if (!meta_at(&c->src->meta, &list, (size_t)i, &m)) m.type = META_NULL;
        const bool truth = c->gguf && (m.type == META_BOOL || m.type == META_INT);
        is_yes[i] = truth ? (m.type == META_BOOL ? m.u.b : m.u.i != 0)
                          : m.type == META_STR && str_is(m.u.s, yes);
        (void)snprintf(at, sizeof at, "%s.%d", key, (int)i);
        if (!truth && !is_yes[i] && !(m.type == META_STR && str_is(m.u.s, no)))
            config_fail_meta(c, at, &m, expected);
    }
    return true;
}
