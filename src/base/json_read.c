/* Getters over parsed JSON that need no knowledge of how a document is stored. */
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/json_priv.h"
#include "base/str.h"

const char *json_type_name(json_type t)
{
    static const char *const name[] = {"nothing",    "null",       "a boolean",
                                       "an integer", "an integer", "a number",
                                       "a string",   "an array",   "an object"};
    return name[t];
}

uint64_t json_uint(json_val v, uint64_t otherwise)
{
    if (json_typeof(v) == JSON_UINT) return json_uint_bits(v);
    return json_typeof(v) == JSON_INT && json_int(v, -1) >= 0 ? (uint64_t)json_int(v, 0)
                                                              : otherwise;
}

static json_val get(json_val obj, cairn_str name)
{
    json_iter it = json_each(obj);
    json_val v, found = {NULL, 0};
    cairn_str key;
    while (json_next_member(&it, &key, &v))
        if (str_eq(key, name)) found = v;
    return found;
}

json_val json_get(json_val obj, const char *key)
{
    return get(obj, str_of(key));
}

json_val json_path(json_val obj, const char *dotted)
{
    for (const char *p = dotted;;) {
        const char *dot = strchr(p, '.');
        obj = get(obj, dot ? (cairn_str){p, (size_t)(dot - p)} : str_of(p));
        if (!dot) return obj;
        p = dot + 1;
    }
}

size_t json_size(json_val v)
{
    json_iter it = json_each(v);
    json_val item;
    size_t n = 0;
    while (json_next(&it, &item)) n++;
    return n;
}

json_val json_at(json_val arr, size_t i)
{
    const json_val none = {NULL, 0};
    if (json_typeof(arr) != JSON_ARR) return none;
    json_iter it = json_each(arr);
    json_val v;
    for (size_t k = 0; json_next(&it, &v); k++)
        if (k == i) return v;
    return none;
}

/* The member, if it is there and not null. */
static bool present(json_val obj, const char *key, json_val *v)
{
    *v = json_get(obj, key);
    const json_type t = json_typeof(*v);
    return t != JSON_NONE && t != JSON_NULL;
}

static cairn_status wrong(const char *key, const char *want, json_val v, cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_ARG, "`%s` must be %s, found %s", key, want,
                    json_type_name(json_typeof(v)));
}

cairn_status json_want_bool(json_val obj, const char *key, bool *out, cairn_diag *dg)
{
    json_val v;
    if (!present(obj, key, &v)) return CAIRN_OK;
    if (json_typeof(v) != JSON_BOOL) return wrong(key, "a boolean", v, dg);
    *out = json_bool(v, false);
    return CAIRN_OK;
}

cairn_status json_want_int(json_val obj, const char *key, int64_t lo, int64_t hi, int64_t *out,
                           cairn_diag *dg)
{
    json_val v;
    if (!present(obj, key, &v)) return CAIRN_OK;
    const json_type t = json_typeof(v);
    if (t != JSON_INT && t != JSON_UINT && t != JSON_FLOAT) return wrong(key, "an integer", v, dg);
    const int64_t i = json_int(v, 0);
    const double x = json_num(v, 0);
    const bool whole = t == JSON_INT || (t == JSON_FLOAT && (double)i == x);
    if (t == JSON_FLOAT && !whole && x > -0x1p53 && x < 0x1p53)
        return diag_set(dg, CAIRN_E_ARG, "`%s` must be an integer, found %g", key, x);
    if (!whole || i < lo || i > hi)
        return diag_set(dg, CAIRN_E_ARG, "`%s` must be from %lld to %lld, found %.17g", key,
                        (long long)lo, (long long)hi, x);
    *out = i;
    return CAIRN_OK;
}

cairn_status json_want_num(json_val obj, const char *key, double lo, double hi, double *out,
                           cairn_diag *dg)
{
    json_val v;
    if (!present(obj, key, &v)) return CAIRN_OK;
    const json_type t = json_typeof(v);
    if (t != JSON_INT && t != JSON_UINT && t != JSON_FLOAT) return wrong(key, "a number", v, dg);
    const double x = json_num(v, 0);
    if (!(x >= lo && x <= hi))
        return diag_set(dg, CAIRN_E_ARG, "`%s` must be from %g to %g, found %g", key, lo, hi, x);
    *out = x;
    return CAIRN_OK;
}

cairn_status json_want_str(json_val obj, const char *key, cairn_str *out, cairn_diag *dg)
{
    json_val v;
    if (!present(obj, key, &v)) return CAIRN_OK;
    if (json_typeof(v) != JSON_STR) return wrong(key, "a string", v, dg);
    *out = json_str(v);
    return CAIRN_OK;
}
