/* The first half of ATTEND and PICK: a step's keys and values go into the cache through its codec, in
   the layout of tensor/kvview.h.  Nothing is read here but the step's own rows. */
#include "backend/cpu/cpu_attend.h"

#include <assert.h>
#include <string.h>

#include "backend/cpu/kern/kern.h"
#include "backend/cpu/kern/kern_code.h"
#include "backend/cpu/kern/kern_vec.h"
#include "tensor/backend.h"
#include "tensor/batch.h"
#include "tensor/kvview.h"
#include "tensor/op.h"

enum { ENCODE_GRAIN = 4096, KV_TURN_MAX = 512 };

typedef struct encode_job {
    attend_job at; /* run, layer and kernels: what keys_at and values_at ask for */
    val keys, values;
} encode_job;

/* The codes of a group: a row's, or one lane of a tile's, whose codes are KV_TILE bytes apart. */
static void place_codes(uint8_t *dst, size_t apart, const uint8_t *code, size_t n, size_t bits)
{
    if (bits == 8)
        for (size_t i = 0; i < n; i++) dst[i * apart] = code[i];
    if (bits == 4)
        for (size_t i = 0; i < n; i += 2)
            dst[i / 2 * apart] = (uint8_t)(code[i] | code[i + 1] << 4);
}

/* Streams of 2 and 3 bits: eight codes are whole bytes. */
static void stream_codes(uint8_t *dst, const uint8_t *code, size_t n, size_t bits)
{
    for (size_t i = 0; i < n; i += 8, dst += bits) {
        uint32_t w = 0;
        for (size_t k = 0; k < 8; k++) w |= (uint32_t)code[i + k] << k * bits;
        for (size_t k = 0; k < bits; k++) dst[k] = (uint8_t)(w >> 8 * k);
    }
}

/* One head's key to its lane of a tile of a coded kind. */
static void code_key(const kern_vec *k, kv_codec c, uint8_t *tile, size_t lane, const float *x,
                     size_t n)
{
    const size_t g = (size_t)c.group;
    for (size_t at = 0; at < n; at += g, tile += KV_TILE * kv_group_bytes(c)) {
        uint8_t code[KV_GROUP_MAX];
        uint16_t num[2];
        k->code[c.kind](code, num, x + at, c.group);
        memcpy(tile + 2 * lane, &num[0], sizeof num[0]);
        memcpy(tile + 2 * (KV_TILE + lane), &num[1], sizeof num[1]);
        place_codes(tile + 4 * KV_TILE + lane, KV_TILE, code, g, kv_bits(c.kind));
    }
}

/* A row of a value, or of a latent key, in any codec. */
static void encode_vector(const kern_vec *k, kv_codec c, uint8_t *row, const float *x, size_t n)
{
    float turned[KV_TURN_MAX];
    if (kv_is_plain(c.kind)) {
        k->encode[c.kind](row, x, n);
        return;
    }
    if (kv_is_rotated(c.kind)) {
        assert(n <= KV_TURN_MAX);
        for (size_t i = 0; i < n; i++) turned[i] = kv_clamp(x[i]);
        kv_turn(turned, n);
        x = turned;
    }
    const size_t g = (size_t)c.group, bits = kv_bits(c.kind), n_num = kv_numbers(c.kind);
    for (size_t at = 0; at < n; at += g, row += kv_group_bytes(c)) {
        uint8_t code[KV_GROUP_MAX];
        uint16_t num[2];
        k->code[c.kind](code, num, x + at, c.group);
        memcpy(row, num, 2 * n_num);
        if (bits < 4)
            stream_codes(row + 2 * n_num, code, g, bits);
        else
            place_codes(row + 2 * n_num, 1, code, g, bits);
    }
}

/* Keys lie position fastest: element d of a position is KV_TILE elements after element d - 1. */
static void scatter_key(const attend_job *j, const segment *g, int32_t pos, const void *row)
{
    const size_t dk = (size_t)j->kv->dk, lane = (size_t)(pos % KV_TILE);
    for (int32_t h = 0; h < j->kv->n_kv_head; h++) {
        void *tile = keys_at(j, g, h, pos);
        if (kv_at(j->kv, pos)->k.kind == KV_F32) {
            const uint32_t *src = (const uint32_t *)row + (size_t)h * dk;
            uint32_t *dst = (uint32_t *)tile + lane;
            for (size_t d = 0; d < dk; d++) dst[d * KV_TILE] = src[d];
        } else {
            const uint16_t *src = (const uint16_t *)row + (size_t)h * dk;
            uint16_t *dst = (uint16_t *)tile + lane;
            for (size_t d = 0; d < dk; d++) dst[d * KV_TILE] = src[d];
        }
    }
}

static void encode_row(const encode_job *e, const segment *g, int32_t row, void *tmp)
{
    const attend_job *j = &e->at;
    const int32_t pos = g->pos0 + (row - g->row0);
    const kv_layer *kv = kv_at(j->kv, pos);
    const size_t n = (size_t)kv->n_kv_head, dk = (size_t)kv->dk, dv = (size_t)kv->dv;
    const float *key = cpu_val(j->r, e->keys) + (size_t)row * n * dk;
    if (kv->latent) {
        for (int32_t h = 0; h < kv->n_kv_head; h++)
            encode_vector(j->k, kv->k, values_at(j, g, h, pos), key + (size_t)h * dk, dk);
        return;
    }
    if (kv_is_plain(kv->k.kind)) {
        j->k->encode[kv->k.kind](tmp, key, n * dk);
        scatter_key(j, g, pos, tmp);
    } else {
        for (int32_t h = 0; h < kv->n_kv_head; h++)
            code_key(j->k, kv->k, keys_at(j, g, h, pos), (size_t)(pos % KV_TILE),
                     key + (size_t)h * dk, dk);
    }
    if (e->values == VAL_NONE) return;
    const float *vals = cpu_val(j->r, e->values) + (size_t)row * n * dv;
    for (int32_t h = 0; h < kv->n_kv_head; h++)
        encode_vector(j->k, kv->v, values_at(j, g, h, pos), vals + (size_t)h * dv, dv);
}

static int32_t key_tiles(const segment *g)
{
    return (g->pos0 + g->n_rows - 1) / KV_TILE - g->pos0 / KV_TILE + 1;
}

/* A task takes whole key tiles, so that no two write one cache line. */
static void encode_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const encode_job *e = ctx;
    const step *s = e->at.r->s;
    void *tmp = cpu_thread_scratch(e->at.r, i_thread);
    int32_t first = 0;
    for (int32_t i = 0; i < s->n_seg; i++) {
        const segment *g = &s->seg[i];
        const int32_t n = key_tiles(g), base = g->pos0 / KV_TILE;
        int32_t t0 = max_i32((int32_t)begin - first, 0), t1 = min_i32((int32_t)end - first, n);
        if (t0 < t1) {
            int32_t p0 = max_i32((base + t0) * KV_TILE, g->pos0);
            int32_t p1 = min_i32((base + t1) * KV_TILE, g->pos0 + g->n_rows);
            for (int32_t p = p0; p < p1; p++) encode_row(e, g, g->row0 + (p - g->pos0), tmp);
        }
        first += n;
    }
}

void kv_encode(const cpu_run *r, const kv_layer *kv, val keys, val values)
{
    encode_job e = {{.r = r, .kv = kv, .k = &r->x->d->k.vec}, keys, values};
    const step *s = r->s;
    const int32_t cols = kv->n_kv_head * (kv->dk + kv->dv) * KV_TILE;
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_seg; i++) n += key_tiles(&s->seg[i]);
    cpu_row_spans(r, n, cols, ENCODE_GRAIN, encode_span, &e);
}
