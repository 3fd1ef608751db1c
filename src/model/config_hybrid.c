/* Reads the kinds of layers; a word that nobody knows is an error that names it and its place. */
#include "model/config_hybrid.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

static uint8_t *new_kinds(config *c, int32_t n_layer, arena *a)
{
    uint8_t *kind = arena_calloc(a, (size_t)n_layer, sizeof *kind);
    if (!kind && c->status == CAIRN_OK)
        c->status = diag_set(c->dg, CAIRN_E_NOMEM, "kinds of layers");
    return kind;
}

static void fail_at(config *c, const char *key, int32_t i, const meta *m, const kind_word *words)
{
    char name[CONFIG_KEY_LEN], expected[CONFIG_KEY_LEN] = "";
    size_t n = 0;
    for (size_t k = 0; words[k].word && n < sizeof expected; k++)
        n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%s", k ? " or " : "",
                              words[k].word);
    (void)snprintf(name, sizeof name, "%s.%d", key, (int)i);
    config_fail_meta(c, name, m, expected);
}

const uint8_t *config_kinds(config *c, const char *key, const kind_word *words, int32_t n_layer,
                            arena *a)
{
    meta list, m;
    if (c->status != CAIRN_OK || !meta_get(&c->src->meta, key, &list)) return NULL;
    if (list.type == META_NULL) return NULL;
    if (list.type != META_ARR || list.u.n != (size_t)n_layer) {
        char expected[META_TEXT_LEN];
        (void)snprintf(expected, sizeof expected, "one entry for each of %d layers", (int)n_layer);
        config_fail_meta(c, key, &list, expected);
        return NULL;
    }
    uint8_t *kind = new_kinds(c, n_layer, a);
    for (int32_t i = 0; kind && i < n_layer; i++) {
        size_t k = 0;
        if (!meta_at(&c->src->meta, &list, (size_t)i, &m)) m = (meta){.type = META_NULL};
        while (words[k].word && !(m.type == META_STR && str_is(m.u.s, words[k].word))) k++;
        if (c->gguf && m.type == META_BOOL)
            kind[i] = m.u.b;
        else if (words[k].word)
            kind[i] = words[k].kind;
        else
            fail_at(c, key, i, &m, words);
    }
    return c->status == CAIRN_OK ? kind : NULL;
}

const uint8_t *config_kinds_by_heads(config *c, int32_t n_layer, arena *a)
{
    uint8_t *kind = new_kinds(c, n_layer, a);
    for (int32_t i = 0; kind && i < n_layer; i++) {
        const int32_t n = config_int_at(c, NULL, "attention.head_count_kv", i, 0, 1 << 14, 1);
        kind[i] = n > 0 ? LAYER_KEYS : LAYER_STATE;
    }
    return kind;
}

const uint8_t *config_kinds_all(config *c, uint8_t kind, int32_t n_layer, arena *a)
{
    uint8_t *all = new_kinds(c, n_layer, a);
    if (all) memset(all, kind, (size_t)n_layer);
    return all;
}
