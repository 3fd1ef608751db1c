/* Typed reads of metadata, over whatever file the view shows. */
#include "base/meta.h"

#include "base/diag.h"

static const char *type_name(meta_type t)
{
    static const char *const name[] = {
        [META_NONE] = "nothing",   [META_NULL] = "null",      [META_BOOL] = "a bool",
        [META_INT] = "an integer", [META_FLOAT] = "a number", [META_STR] = "a string",
        [META_ARR] = "an array",   [META_OBJ] = "an object"};
    return name[t];
}

static bool as_int(const meta *m, int64_t *out)
{
    if (m->type == META_INT) {
        *out = m->u.i;
        return true;
    }
    if (m->type != META_FLOAT || !(m->u.f >= -0x1p63 && m->u.f < 0x1p63)) return false;
    const int64_t i = (int64_t)m->u.f;
    if ((double)i != m->u.f) return false;
    *out = i;
    return true;
}

static bool as_num(const meta *m, double *out)
{
    if (m->type != META_INT && m->type != META_FLOAT) return false;
    *out = m->type == META_INT ? (double)m->u.i : m->u.f;
    return true;
}

int64_t meta_int(const meta_view *v, const char *key, int64_t otherwise)
{
    meta m;
    int64_t i;
    return meta_get(v, key, &m) && as_int(&m, &i) ? i : otherwise;
}

bool meta_bool(const meta_view *v, const char *key, bool otherwise)
{
    meta m;
    return meta_get(v, key, &m) && m.type == META_BOOL ? m.u.b : otherwise;
}

cairn_str meta_str(const meta_view *v, const char *key, cairn_str otherwise)
{
    meta m;
    return meta_get(v, key, &m) && m.type == META_STR ? m.u.s : otherwise;
}

cairn_status meta_want_int(const meta_view *v, const char *key, bool required, int64_t lo,
                           int64_t hi, int64_t *out, cairn_diag *dg)
{
    meta m;
    int64_t i;
    if (!meta_get(v, key, &m)) {
        if (!required) return CAIRN_OK;
        return diag_set(dg, CAIRN_E_CORRUPT, "`%s` is missing", key);
    }
    if (!as_int(&m, &i))
        return diag_set(dg, CAIRN_E_CORRUPT, "`%s` must be an integer, found %s", key,
                        type_name(m.type));
    if (i < lo || i > hi)
        return diag_set(dg, CAIRN_E_CORRUPT, "`%s` must be from %lld to %lld, found %lld", key,
                        (long long)lo, (long long)hi, (long long)i);
    *out = i;
    return CAIRN_OK;
}

cairn_status meta_want_num(const meta_view *v, const char *key, bool required, double *out,
                           cairn_diag *dg)
{
    meta m;
    double x;
    if (!meta_get(v, key, &m)) {
        if (!required) return CAIRN_OK;
        return diag_set(dg, CAIRN_E_CORRUPT, "`%s` is missing", key);
    }
    if (!as_num(&m, &x))
        return diag_set(dg, CAIRN_E_CORRUPT, "`%s` must be a number, found %s", key,
                        type_name(m.type));
    *out = x;
    return CAIRN_OK;
}
