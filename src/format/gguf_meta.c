/* GGUF metadata as a meta_view: values are decoded from the mapped file when asked for. */
#include "format/gguf_priv.h"

#include <string.h>

static uint64_t bytes_le(const uint8_t *p, int n)
{
    uint64_t u = 0;
    for (int i = 0; i < n; i++) u |= (uint64_t)p[i] << 8 * i;
    return u;
}

static void put_int(meta *m, int64_t i)
{
    m->type = META_INT;
    m->u.i = i;
}

static void put_float(meta *m, double f)
{
    m->type = META_FLOAT;
    m->u.f = f;
}

static float f32_of(uint64_t u)
{
    const uint32_t w = (uint32_t)u;
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

static double f64_of(uint64_t u)
{
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* A scalar or string at p. */
static void decode(gguf_type t, const uint8_t *p, meta *m)
{
    switch (t) {
    case GGUF_U8:
        put_int(m, p[0]);
        return;
    case GGUF_I8:
        put_int(m, (int8_t)p[0]);
        return;
    case GGUF_U16:
        put_int(m, (int64_t)bytes_le(p, 2));
        return;
    case GGUF_I16:
        put_int(m, (int16_t)bytes_le(p, 2));
        return;
    case GGUF_U32:
        put_int(m, (int64_t)bytes_le(p, 4));
        return;
    case GGUF_I32:
        put_int(m, (int32_t)bytes_le(p, 4));
        return;
    case GGUF_I64:
        put_int(m, (int64_t)bytes_le(p, 8));
        return;
    case GGUF_F32:
        put_float(m, (double)f32_of(bytes_le(p, 4)));
        return;
    case GGUF_F64:
        put_float(m, f64_of(bytes_le(p, 8)));
        return;
    case GGUF_U64: {
        const uint64_t u = bytes_le(p, 8);
        if (u > INT64_MAX)
            put_float(m, (double)u);
        else
            put_int(m, (int64_t)u);
        return;
    }
    case GGUF_BOOL:
        m->type = META_BOOL;
        m->u.b = p[0] != 0;
        return;
    case GGUF_STR:
        m->type = META_STR;
        m->u.s = (cairn_str){(const char *)p + 8, (size_t)bytes_le(p, 8)};
        return;
    case GGUF_ARR:
        return; /* never decoded from bytes */
    }
}

static void put_array(meta *m, const gguf_array *a)
{
    m->type = META_ARR;
    m->u.n = a->n;
    m->impl[0] = a;
}

static bool get(const void *self, const char *key, meta *out)
{
    const gguf_file *f = self;
    const cairn_str k = {key, strlen(key)};
    uint32_t i;

    if (!map_get(&f->kv_index, k, &i)) return false;
    *out = (meta){.type = META_NONE};
    if (f->kv[i].type == GGUF_ARR)
        put_array(out, &f->kv[i].array);
    else
        decode(f->kv[i].type, f->kv[i].value, out);
    return true;
}

static bool at(const void *self, const meta *arr, size_t i, meta *out)
{
    const gguf_array *a = arr->impl[0];
    (void)self;
    if (arr->type != META_ARR || i >= a->n) return false;
    *out = (meta){.type = META_NONE};
    if (a->elem == GGUF_ARR)
        put_array(out, &a->sub[i]);
    else
        decode(a->elem, a->data + (a->elem == GGUF_STR ? a->at[i] : i * gguf_type_bytes(a->elem)),
               out);
    return true;
}

meta_view gguf_meta(const gguf_file *f)
{
    return (meta_view){f, get, at};
}
