/* The first half of ATTEND and PICK: a step's keys and values go into the cache through its codec, in
   the layout of tensor/kvview.h.  Nothing is read here but the step's own rows. */
#include "backend/cpu/cpu_attend.h"

#include "backend/cpu/kern/kern.h"
#include "backend/cpu/kern/kern_vec.h"
#include "tensor/backend.h"
#include "tensor/batch.h"
#include "tensor/kvview.h"
#include "tensor/op.h"

enum { ENCODE_GRAIN = 4096 };

typedef struct encode_job {
    attend_job at; /* run, layer and kernels: what keys_at and values_at ask for */
    val keys, values;
} encode_job;

/* Keys lie position fastest: element d of a position is KV_TILE elements after element d - 1. */
static void scatter_key(const attend_job *j, const segment *g, int32_t pos, const void *row)
{
    const size_t dk = (size_t)j->kv->dk, lane = (size_t)(pos % KV_TILE);
    for (int32_t h = 0; h < j->kv->n_kv_head; h++) {
        void *tile = keys_at(j, g, h, pos);
        if (j->kv->codec == KV_F32) {
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
    const kv_layer *kv = j->kv;
    const int32_t pos = g->pos0 + (row - g->row0);
    const size_t n = (size_t)kv->n_kv_head, dk = (size_t)kv->dk, dv = (size_t)kv->dv;
    const float *key = cpu_val(j->r, e->keys) + (size_t)row * n * dk;
    if (kv->latent) {
        for (int32_t h = 0; h < kv->n_kv_head; h++)
            j->k->encode[kv->codec](values_at(j, g, h, pos), key + (size_t)h * dk, dk);
        return;
    }
    j->k->encode[kv->codec](tmp, key, n * dk);
    scatter_key(j, g, pos, tmp);
    if (e->values == VAL_NONE) return;
    const float *vals = cpu_val(j->r, e->values) + (size_t)row * n * dv;
    for (int32_t h = 0; h < kv->n_kv_head; h++)
        j->k->encode[kv->codec](values_at(j, g, h, pos), vals + (size_t)h * dv, dv);
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
