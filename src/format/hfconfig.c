/* config.json as metadata.  Owns the parsed document and what a dotted path means; which keys a
   family needs is the model files' business.  Invariant: lookups never fail, they only find nothing. */
#include "format/hfconfig.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "format/pyjson.h"

enum {
    /* The largest public config.json, with a quantisation entry a module, is under 1 MiB. */
    MAX_CONFIG_BYTES = 4 << 20,
    MAX_KEY_BYTES = 256,
};

struct hfconfig {
    json_doc *doc;
};

static bool is_index(const char *key, size_t len, size_t *i)
{
    *i = 0;
    if (len == 0 || len > 6) return false;
    for (size_t k = 0; k < len; k++) {
        if (!isdigit((unsigned char)key[k])) return false;
        *i = *i * 10 + (size_t)(key[k] - '0');
    }
    return true;
}

static json_val member(json_val v, const char *key, size_t len)
{
    char name[MAX_KEY_BYTES];
    size_t i;

    if (json_typeof(v) == JSON_ARR && is_index(key, len, &i)) return json_at(v, i);
    memcpy(name, key, len);
    name[len] = 0;
    return json_get(v, name);
}

static bool is_there(json_val v)
{
    const json_type t = json_typeof(v);
    return t != JSON_NONE && t != JSON_NULL;
}

/* The longest member name that leads to a value wins; each level shortens the path, so that the
   depth is bounded by the dots of our own key. */
static json_val lookup(json_val v, const char *path, size_t len)
{
    json_val null = {0};
    for (size_t cut = len; cut > 0; cut--) {
        if (cut < len && path[cut] != '.') continue;
        json_val m = member(v, path, cut);
        if (cut < len) m = is_there(m) ? lookup(m, path + cut + 1, len - cut - 1) : (json_val){0};
        if (is_there(m)) return m;
        if (json_typeof(m) == JSON_NULL) null = m;
    }
    return null;
}

/* False for null and absent values; the type tells which. */
static bool convert(json_val v, meta *out)
{
    double number;
    *out = (meta){.type = META_NONE};
    switch (json_typeof(v)) {
    case JSON_NONE:
        return false;
    case JSON_NULL:
        out->type = META_NULL;
        return false;
    case JSON_BOOL:
        out->type = META_BOOL;
        out->u.b = json_bool(v, false);
        return true;
    case JSON_INT:
        out->type = META_INT;
        out->u.i = json_int(v, 0);
        return true;
    case JSON_UINT:
    case JSON_FLOAT:
        out->type = META_FLOAT;
        out->u.f = json_num(v, 0.0);
        return true;
    case JSON_STR:
        out->type = META_STR;
        out->u.s = json_str(v);
        if (pyjson_nonfinite(out->u.s, &number)) *out = (meta){.type = META_FLOAT, .u.f = number};
        return true;
    case JSON_ARR:
        out->type = META_ARR;
        out->u.n = json_size(v);
        break;
    case JSON_OBJ:
        out->type = META_OBJ;
        break;
    }
    out->impl[0] = v.doc;
    out->impl[1] = (const void *)(uintptr_t)v.at;
    return true;
}

static bool get(const void *self, const char *key, meta *out)
{
    const hfconfig *c = self;
    const json_val root = json_root(c->doc);
    const size_t len = strlen(key);
    json_val v;

    if (len == 0 || len >= MAX_KEY_BYTES) return false;
    v = lookup(root, key, len);
    if (!is_there(v)) {
        const json_val nested = lookup(json_get(root, "text_config"), key, len);
        if (json_typeof(nested) != JSON_NONE) v = nested;
    }
    return convert(v, out);
}

static json_val value_of(const meta *m)
{
    return (json_val){m->impl[0], (uint64_t)(uintptr_t)m->impl[1]};
}

static bool at(const void *self, const meta *arr, size_t i, meta *out)
{
    (void)self;
    if (arr->type != META_ARR) return false;
    return convert(json_at(value_of(arr), i), out);
}

cairn_status hfconfig_parse(const char *path, cairn_str text, hfconfig **out, cairn_diag *dg)
{
    hfconfig *c = mem_calloc(1, sizeof *c, MEM_MODEL);
    cairn_status st = CAIRN_OK;
    buf json;

    buf_init(&json, MEM_SCRATCH);
    pyjson_to_json(text, &json);
    if (!c || buf_status(&json) != CAIRN_OK) {
        st = diag_set(dg, CAIRN_E_NOMEM, "%s: no memory to read it", path);
        goto out;
    }
    st = json_parse(buf_view(&json), &c->doc, dg);
    if (st != CAIRN_OK) {
        (void)diag_prefix(dg, st, "%s", path);
        goto out;
    }
    if (json_typeof(json_root(c->doc)) != JSON_OBJ) {
        st = diag_set(dg, CAIRN_E_CORRUPT, "%s: expected an object, found %s", path,
                      json_type_name(json_typeof(json_root(c->doc))));
        goto out;
    }
    *out = c;
    c = NULL;
out:
    buf_deinit(&json);
    hfconfig_close(c);
    return st;
}

cairn_status hfconfig_open(const char *path, hfconfig **out, cairn_diag *dg)
{
    cairn_status st;
    buf text;

    buf_init(&text, MEM_MODEL);
    TRY_GOTO(file_read(path, MAX_CONFIG_BYTES, &text, dg), out);
    st = hfconfig_parse(path, buf_view(&text), out, dg);
out:
    buf_deinit(&text);
    return st;
}

void hfconfig_close(hfconfig *c)
{
    if (!c) return;
    if (c->doc) json_free(c->doc);
    mem_free(c);
}

meta_view hfconfig_meta(const hfconfig *c)
{
    return (meta_view){c, get, at};
}

json_iter hfconfig_each(const meta *arr)
{
    return json_each(arr->type == META_ARR ? value_of(arr) : (json_val){0});
}

bool hfconfig_next(json_iter *it, meta *out)
{
    json_val v;
    if (!json_next(it, &v)) return false;
    (void)convert(v, out);
    return true;
}
