/* Words for cache codecs.  A request for codecs is one for all layers (`ask`), or a file's for some; each layer
   then gets what its heads allow, or an error that names it. */
#include "cache/scheme.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"

enum {
    FILE_MAX = 1 << 20, /* a line for each of a thousand layers is less */
    LEAST_GROUP = 16,   /* a tile's lanes */
    TURBO_GROUP = 32
};

/* group 0: the one that suits the head. */
typedef struct ask {
    kv_codec k, v;
    bool turbo;
    int32_t start; /* a multiple of KV_BLOCK */
} ask;

static const char *const kind_name[KV_KINDS] = {
    "f16", "bf16", "f32", "q8", "q4", "turbo-k8", "turbo-k4", "turbo-v4", "turbo-v3", "turbo-v2"};

static const struct {
    const char *word;
    kv_kind k, v;
    bool turbo;
} words[] = {{"q8", KV_Q8, KV_Q8, false},
             {"q4", KV_Q4, KV_Q4, false},
             {"k8v4", KV_Q8, KV_Q4, false},
             {"k4v8", KV_Q4, KV_Q8, false},
             {"turbo", KV_TURBO_K8, KV_TURBO_V3, true},
             {"turbo:k8v4", KV_TURBO_K8, KV_TURBO_V4, true},
             {"turbo:k8v3", KV_TURBO_K8, KV_TURBO_V3, true},
             {"turbo:k8v2", KV_TURBO_K8, KV_TURBO_V2, true},
             {"turbo:k4v3", KV_TURBO_K4, KV_TURBO_V3, true}};

static const char expected[] =
    "expected f16, bf16, f32, q8, q4, k8v4, k4v8 (with a group as "
    "q8:32 or a start as q8@1024), turbo, turbo:k8v4, k8v3, k8v2 or k4v3, or the path of a "
    "kv_config.json";

enum { MAX_START = 1 << 24 }; /* beyond the context of any model known */

static int32_t whole_blocks(int64_t n)
{
    return (int32_t)((n + KV_BLOCK - 1) / KV_BLOCK * KV_BLOCK);
}

static bool good_group(int64_t g)
{
    return g == 32 || g == 64 || g == KV_GROUP_MAX;
}

/* "@START", digits alone, at the end of a word; none is 0. */
static bool read_start(const char *at, int32_t *out)
{
    int64_t n = 0;
    *out = 0;
    if (*at == '\0') return true;
    if (*at++ != '@' || *at == '\0') return false;
    for (; *at >= '0' && *at <= '9' && n <= MAX_START; at++) n = n * 10 + (*at - '0');
    *out = whole_blocks(n);
    return *at == '\0' && n <= MAX_START;
}

/* A word of the table, with or without ":GROUP" and "@START". */
static bool read_word(const char *spec, ask *out)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].word);
        if (strncmp(spec, words[i].word, n) != 0) continue;
        const char *rest = spec + n;
        ask a = {.k = {words[i].k, 0}, .v = {words[i].v, 0}, .turbo = words[i].turbo};
        if (a.turbo) {
            if (*rest != '\0') continue; /* a longer word, or none */
            a.k.group = a.v.group = TURBO_GROUP;
        }
        for (int32_t g = 32; *rest == ':' && g <= KV_GROUP_MAX; g *= 2) {
            char text[8];
            const int len = snprintf(text, sizeof text, ":%d", g);
            const char after = strncmp(rest, text, (size_t)len) == 0 ? rest[len] : ':';
            if (after != '\0' && after != '@') continue;
            a.k.group = a.v.group = g;
            rest += len;
        }
        if (!read_start(rest, &a.start)) continue;
        *out = a;
        return true;
    }
    for (kv_kind k = KV_F16; k < (kv_kind)KV_PLAIN_KINDS; k++)
        if (strcmp(spec, kind_name[k]) == 0) {
            *out = (ask){.k = {k, 0}, .v = {k, 0}};
            return true;
        }
    return false;
}

/* A group of its own choice is the largest of 64, 32 and 16 that divides the head. */
static cairn_status fit_codec(kv_codec c, int32_t dim, int32_t layer, kv_codec *out, cairn_diag *dg)
{
    if (!kv_is_plain(c.kind)) {
        const int32_t asked = c.group;
        if (!asked) c.group = dim % 64 == 0 ? 64 : dim % 32 == 0 ? 32 : LEAST_GROUP;
        if (dim % c.group != 0)
            return diag_set(dg, CAIRN_E_ARG,
                            "cache codec %s: layer %d has heads of %d; expected a multiple of %d",
                            kind_name[c.kind], layer, dim, asked ? asked : LEAST_GROUP);
    }
    *out = c;
    return CAIRN_OK;
}

static bool turbo_dim(int32_t n)
{
    return n == 64 || n == 128 || n == 256 || n == 512;
}

/* TurboQuant is for layers of full attention; others stay plain. */
static cairn_status fit_turbo(const ask *a, const cache_layer_spec *l, int32_t layer, kv_pair *out,
                              cairn_diag *dg)
{
    if (l->window > 0 || l->dv == 0) return CAIRN_OK;
    if (l->latent)
        return diag_set(dg, CAIRN_E_ARG,
                        "cache codec turbo: layer %d keeps latents; expected keys and values apart",
                        layer);
    if (!turbo_dim(l->dk) || !turbo_dim(l->dv))
        return diag_set(dg, CAIRN_E_ARG,
                        "cache codec turbo: layer %d has heads of %d and %d; expected 64, 128, 256 "
                        "or 512",
                        layer, l->dk, l->dv);
    *out = (kv_pair){a->k, a->v};
    return CAIRN_OK;
}

static cairn_status fit_layer(const ask *a, const cachespec *s, int32_t layer, scheme *out,
                              cairn_diag *dg)
{
    const cache_layer_spec *l = &s->layer[layer];
    kv_pair p = out->layer[layer];
    if (l->n_kv_head == 0) return CAIRN_OK;
    if (a->turbo) return fit_turbo(a, l, layer, &out->layer[layer], dg);
    TRY(fit_codec(a->k, l->dk, layer, &p.k, dg));
    p.v = p.k;
    if (!l->latent && l->dv > 0) TRY(fit_codec(a->v, l->dv, layer, &p.v, dg));
    out->layer[layer] = p;
    out->start[layer] = a->start;
    return CAIRN_OK;
}

static cairn_status fit_all(const ask *a, const cachespec *s, scheme *out, cairn_diag *dg)
{
    int32_t n_window = 0;
    for (int32_t i = 0; i < s->n_layer; i++) {
        TRY(fit_layer(a, s, i, out, dg));
        n_window += s->layer[i].n_kv_head > 0 && s->layer[i].window > 0;
    }
    if (a->turbo && n_window)
        log_event(LOG_WARN, "cache_codec", "codec=turbo layers=%d stay=%s why=\"sliding window\"",
                  n_window, kind_name[out->kv.all.k.kind]);
    return CAIRN_OK;
}

/* One element of the file: {"layer_idx": 3, "bits": 8, "group_size": 64, "start": 0}. */
static cairn_status read_entry(json_val v, const char *path, size_t index, const cachespec *s,
                               scheme *out, bool *seen, cairn_diag *dg)
{
    int64_t layer = -1, bits = 0, group = 0, start = 0;
    json_iter it = json_each(v);
    cairn_str key;
    json_val field;
    cairn_diag d = {0};
    if (json_typeof(v) != JSON_OBJ)
        return diag_set(dg, CAIRN_E_ARG, "%.200s: entry %zu is %s; expected an object", path, index,
                        json_type_name(json_typeof(v)));
    while (json_next_member(&it, &key, &field))
        if (!str_eq(key, STR_LIT("layer_idx")) && !str_eq(key, STR_LIT("bits")) &&
            !str_eq(key, STR_LIT("group_size")) && !str_eq(key, STR_LIT("start")))
            return diag_set(dg, CAIRN_E_ARG,
                            "%.200s: entry %zu: field \"%.*s\"; expected layer_idx, bits, "
                            "group_size and start",
                            path, index, (int)(key.len < 60 ? key.len : 60), key.ptr);
    if (json_want_int(v, "layer_idx", 0, s->n_layer - 1, &layer, &d) != CAIRN_OK ||
        json_want_int(v, "bits", 4, 8, &bits, &d) != CAIRN_OK ||
        json_want_int(v, "group_size", 32, KV_GROUP_MAX, &group, &d) != CAIRN_OK ||
        json_want_int(v, "start", 0, MAX_START, &start, &d) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_ARG, "%.200s: entry %zu: %.200s", path, index, d.message);
    if (layer < 0 || s->layer[layer].n_kv_head == 0)
        return diag_set(dg, CAIRN_E_ARG,
                        "%.200s: entry %zu: layer_idx %lld; expected a layer that keeps keys", path,
                        index, (long long)layer);
    if (seen[layer])
        return diag_set(dg, CAIRN_E_ARG, "%.200s: entry %zu: layer_idx %lld is there twice", path,
                        index, (long long)layer);
    if ((bits != 4 && bits != 8) || (group && !good_group(group)))
        return diag_set(dg, CAIRN_E_ARG,
                        "%.200s: entry %zu: bits %lld, group_size %lld; expected 4 or 8, and 32, "
                        "64 or 128",
                        path, index, (long long)bits, (long long)group);
    seen[layer] = true;
    const kv_codec c = {bits == 8 ? KV_Q8 : KV_Q4, (int32_t)group};
    const ask a = {.k = c, .v = c, .start = whole_blocks(start)};
    return fit_layer(&a, s, (int32_t)layer, out, dg);
}

static cairn_status read_file(const char *path, const cachespec *s, scheme *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    buf b;
    json_doc *doc = NULL;
    buf_init(&b, MEM_CACHE);
    bool *seen = mem_calloc((size_t)s->n_layer, sizeof *seen, MEM_CACHE);
    if (!seen) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for %d layers", s->n_layer);
        goto out;
    }
    TRY_GOTO(file_read_input(path, FILE_MAX, &b, dg), out);
    cairn_diag d = {0};
    st = json_parse(buf_view(&b), &doc, &d);
    if (st != CAIRN_OK) {
        if (st != CAIRN_E_NOMEM) st = CAIRN_E_ARG;
        (void)diag_set(dg, st, "%.200s: %.200s", path, d.message);
        goto out;
    }
    const json_val root = json_root(doc);
    if (json_typeof(root) != JSON_ARR) {
        st = diag_set(dg, CAIRN_E_ARG, "%.200s: %s; expected an array of layers", path,
                      json_type_name(json_typeof(root)));
        goto out;
    }
    json_iter it = json_each(root);
    json_val v;
    for (size_t i = 0; json_next(&it, &v); i++)
        TRY_GOTO(read_entry(v, path, i, s, out, seen, dg), out);
out:
    json_free(doc);
    mem_free(seen);
    buf_deinit(&b);
    return st;
}

static void put_codec(buf *b, kv_codec c)
{
    buf_puts(b, kind_name[c.kind]);
    if (c.group) buf_printf(b, ":%d", c.group);
}

static bool same_codec(kv_codec a, kv_codec b)
{
    return a.kind == b.kind && a.group == b.group;
}

static void put_layer(buf *b, const scheme *s, int32_t layer)
{
    const kv_pair *p = &s->layer[layer];
    put_codec(b, p->k);
    if (!same_codec(p->k, p->v)) {
        buf_byte(b, '/');
        put_codec(b, p->v);
    }
    if (s->start[layer]) buf_printf(b, "@%d", s->start[layer]);
}

static bool same_layer(const scheme *s, int32_t a, int32_t b)
{
    return same_codec(s->layer[a].k, s->layer[b].k) && same_codec(s->layer[a].v, s->layer[b].v) &&
           s->start[a] == s->start[b];
}

/* Runs of layers that keep the same, as "0-3 q8:64, 4 f16"; of one that all layers keep, itself. */
static cairn_status tell(const cachespec *s, scheme *out, cairn_diag *dg)
{
    buf *b = &out->text;
    int32_t begin = -1, end = -1; /* of the run; layers without keys end none */
    size_t n_run = 0;
    for (int32_t i = 0; i <= s->n_layer; i++) {
        if (i < s->n_layer && s->layer[i].n_kv_head == 0) continue;
        const bool more = i < s->n_layer && begin >= 0 && same_layer(out, begin, i);
        if (more) {
            end = i;
            continue;
        }
        if (begin >= 0 && (i < s->n_layer || n_run)) {
            if (n_run++) buf_puts(b, ", ");
            buf_printf(b, end > begin ? "%d-%d " : "%d ", begin, end);
            put_layer(b, out, begin);
        }
        if (i == s->n_layer) break;
        begin = end = i;
    }
    if (!n_run) put_layer(b, out, begin < 0 ? 0 : begin);
    return buf_status(b) == CAIRN_OK ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "no memory for text");
}

cairn_status scheme_read(const char *spec, const cachespec *s, kv_kind plain, scheme *out,
                         cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    ask a = {.k = {plain, 0}, .v = {plain, 0}};
    scheme r = {.kv = kv_plain(plain)};
    const size_t n = spec ? strlen(spec) : 0;
    const bool file = spec && (strchr(spec, '/') || (n > 5 && strcmp(spec + n - 5, ".json") == 0));
    if (spec && !file && !read_word(spec, &a))
        return diag_set(dg, CAIRN_E_ARG, "cache codec \"%.40s\"; %s", spec, expected);
    buf_init(&r.text, MEM_CACHE);
    r.layer = mem_calloc((size_t)s->n_layer, sizeof *r.layer, MEM_CACHE);
    r.start = mem_calloc((size_t)s->n_layer, sizeof *r.start, MEM_CACHE);
    if (!r.layer || !r.start) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for %d layers", s->n_layer);
        goto out;
    }
    for (int32_t i = 0; i < s->n_layer; i++) r.layer[i] = r.kv.all;
    r.kv.layer = r.layer;
    r.kv.start = r.start;
    TRY_GOTO(file ? read_file(spec, s, &r, dg) : fit_all(&a, s, &r, dg), out);
    TRY_GOTO(tell(s, &r, dg), out);
    bool delayed = false;
    for (int32_t i = 0; i < s->n_layer; i++) delayed |= r.start[i] > 0;
    if (!delayed) r.kv.start = NULL;
    *out = r;
    return CAIRN_OK;
out:
    scheme_free(&r);
    return st;
}

void scheme_free(scheme *s)
{
    buf_deinit(&s->text);
    mem_free(s->start);
    mem_free(s->layer);
}
