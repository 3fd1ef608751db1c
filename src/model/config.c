/* Typed reads of config.json and GGUF metadata under one set of names: one field at a time.  What families
   have in common is in config_base.c, lists by layer in config_layers.c.

   The first error sticks in c->status, with its message in the diag; later reads return their
   defaults, so that a family reads all its fields and checks once. */
#include "model/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

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

void config_fail_meta(config *c, const char *key, const meta *m, const char *expected)
{
    char found[META_TEXT_LEN];
    meta_text(m, found);
    config_fail(c, key, found, expected);
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

config config_of(const source *src, cairn_diag *dg)
{
    config c = {.src = src, .gguf = src->format == SOURCE_GGUF, .dg = dg};
    const char *key = c.gguf ? "general.architecture" : "model_type";
    meta m = {0};
    const bool found = meta_get(&src->meta, key, &m) && m.type == META_STR;
    const cairn_str arch = found ? m.u.s : STR_LIT("");
    if (arch.len == 0 || arch.len >= sizeof c.arch || memchr(arch.ptr, 0, arch.len))
        config_fail_meta(&c, key, &m, "a model family");
    else
        memcpy(c.arch, arch.ptr, arch.len);
    return c;
}

static int32_t int_of(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                      bool required, int32_t otherwise)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    int64_t v = otherwise;
    if (!key || c->status != CAIRN_OK) return otherwise;
    c->status = meta_want_int(&c->src->meta, key, required, lo, hi, &v, c->dg);
    if (c->status == CAIRN_OK) return (int32_t)v;
    (void)diag_prefix(c->dg, c->status, "%s%s", c->src->path, file_in(c));
    return otherwise;
}

int32_t config_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                   int32_t otherwise)
{
    return int_of(c, hf, gguf, lo, hi, false, otherwise);
}

int32_t config_need_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi)
{
    return int_of(c, hf, gguf, lo, hi, true, lo);
}

int32_t config_class_int(config *c, const char *hf, const char *gguf, int32_t lo, int32_t hi,
                         int32_t otherwise)
{
    return c->gguf ? config_need_int(c, NULL, gguf, lo, hi)
                   : config_int(c, hf, NULL, lo, hi, otherwise);
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
    config_fail_meta(c, hf, &m, "true or false");
    return otherwise;
}

void config_switch(config *c, const char *hf, bool want)
{
    static const char *const words[] = {"false", "true"};
    if (config_bool(c, hf, want) != want) config_fail(c, hf, words[!want], words[want]);
}

cairn_str config_str(config *c, const char *hf, const char *gguf)
{
    char b[CONFIG_KEY_LEN];
    const char *key = config_key(c, hf, gguf, b);
    meta m;
    if (!key || !meta_get(&c->src->meta, key, &m)) return STR_LIT("");
    if (m.type == META_STR) return m.u.s;
    config_fail_meta(c, key, &m, "a text");
    return STR_LIT("");
}

void config_object(config *c, const char *hf)
{
    meta m;
    if (c->gguf || !meta_get(&c->src->meta, hf, &m) || m.type == META_OBJ) return;
    config_fail_meta(c, hf, &m, "an object");
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
    config_fail_meta(c, hf, &m, expected);
}

void config_only_one(config *c, const char *hf, const char *allowed)
{
    const char *const list[] = {allowed, NULL};
    config_only(c, hf, list);
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
    config_fail_meta(c, config_key(c, hf, gguf, b), &m, "gelu, gelu_new, silu or relu");
    return GLU_GELU_ERF;
}
