/* Typed reads of metadata, over whatever file the view shows. */
#include "base/meta.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/diag.h"

void meta_text(const meta *m, char out[META_TEXT_LEN])
{
    enum { SHOWN = 60 };
    switch (m->type) {
    case META_NONE:
    case META_NULL:
        (void)snprintf(out, META_TEXT_LEN, m->type == META_NULL ? "null" : "nothing");
        return;
    case META_BOOL:
        (void)snprintf(out, META_TEXT_LEN, m->u.b ? "true" : "false");
        return;
    case META_INT:
        (void)snprintf(out, META_TEXT_LEN, "%" PRId64, m->u.i);
        return;
    case META_FLOAT:
        if (isfinite(m->u.f))
            (void)snprintf(out, META_TEXT_LEN, "%.9g", m->u.f);
        else
            (void)snprintf(out, META_TEXT_LEN, "%s",
                           isnan(m->u.f) ? "NaN"
                           : m->u.f > 0  ? "Infinity"
                                         : "-Infinity");
        return;
    case META_STR:
        (void)snprintf(out, META_TEXT_LEN, "\"%.*s%s\"",
                       (int)(m->u.s.len > SHOWN ? SHOWN : m->u.s.len), m->u.s.ptr,
                       m->u.s.len > SHOWN ? "..." : "");
        return;
    case META_ARR:
        (void)snprintf(out, META_TEXT_LEN, "an array of %zu", m->u.n);
        return;
    case META_OBJ:
        (void)snprintf(out, META_TEXT_LEN, "an object");
        return;
    }
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

static cairn_status wrong(const char *key, const meta *m, const char *want, cairn_diag *dg)
{
    char found[META_TEXT_LEN];
    meta_text(m, found);
    return diag_set(dg, CAIRN_E_CORRUPT, "%s: found %s; expected %s", key, found, want);
}

cairn_status meta_want_int(const meta_view *v, const char *key, bool required, int64_t lo,
                           int64_t hi, int64_t *out, cairn_diag *dg)
{
    meta m = {.type = META_NONE};
    int64_t i;
    char want[META_TEXT_LEN];
    (void)snprintf(want, sizeof want, "an integer from %" PRId64 " to %" PRId64, lo, hi);
    if (!meta_get(v, key, &m)) return required ? wrong(key, &m, want, dg) : CAIRN_OK;
    if (!as_int(&m, &i) || i < lo || i > hi) return wrong(key, &m, want, dg);
    *out = i;
    return CAIRN_OK;
}

cairn_status meta_want_num(const meta_view *v, const char *key, bool required, double *out,
                           cairn_diag *dg)
{
    meta m = {.type = META_NONE};
    double x;
    if (!meta_get(v, key, &m)) return required ? wrong(key, &m, "a number", dg) : CAIRN_OK;
    if (!as_num(&m, &x)) return wrong(key, &m, "a number", dg);
    if (!isfinite(x)) return wrong(key, &m, "a finite number", dg);
    *out = x;
    return CAIRN_OK;
}
