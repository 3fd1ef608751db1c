/* Protobuf's wire format, as much as SentencePiece's models need: fields one after the other. */
#ifndef TEXT_PB_H
#define TEXT_PB_H

#include "base/str.h"

typedef struct pb_reader {
    cairn_str rest;
} pb_reader;

typedef struct pb_field {
    uint32_t number;
    int64_t value;   /* varint, fixed 32 or 64 */
    cairn_str bytes; /* strings and messages */
    bool bad;        /* cut short, or of a type that nobody writes any more */
} pb_field;

static inline bool pb_varint(cairn_str *s, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && s->len; shift += 7) {
        uint8_t b = (uint8_t)s->ptr[0];
        *s = str_sub(*s, 1, s->len - 1);
        *out |= (uint64_t)(b & 0x7F) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

/* The next field; false at the end.  A bad one is the last. */
static inline bool pb_next(pb_reader *r, pb_field *f)
{
    uint64_t key, v = 0;
    size_t n = 0;

    *f = (pb_field){0};
    if (r->rest.len == 0) return false;
    f->bad = true;
    if (!pb_varint(&r->rest, &key) || key >> 3 > UINT32_MAX) goto last;
    f->number = (uint32_t)(key >> 3);
    if ((key & 7) == 0) {
        if (!pb_varint(&r->rest, &v)) goto last;
    } else if ((key & 7) == 2) {
        if (!pb_varint(&r->rest, &v) || v > r->rest.len) goto last;
        n = (size_t)v;
        f->bytes = str_sub(r->rest, 0, n);
    } else {
        n = (key & 7) == 5 ? 4 : 8;
        if (((key & 7) != 5 && (key & 7) != 1) || n > r->rest.len) goto last;
        memcpy(&v, r->rest.ptr, n);
    }
    f->value = (int64_t)v;
    f->bad = false;
    r->rest = str_sub(r->rest, n, r->rest.len - n);
    return true;
last:
    r->rest.len = 0;
    return true;
}

static inline float pb_float(const pb_field *f)
{
    uint32_t bits = (uint32_t)f->value;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
