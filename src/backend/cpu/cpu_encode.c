/* The first half of ATTEND: a step's keys and values go into the cache through its codec, in the
   layout of tensor/kvview.h.  Nothing is read here but the step's own rows. */
#include "backend/cpu/cpu_attend.h"

#include "backend/cpu/kern/kern_vec.h"
#include "tensor/batch.h"
#include "tensor/kvview.h"
#include "tensor/op.h"

enum { ENCODE_GRAIN = 4096 };

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

static void encode_row(const attend_job *j, const segment *g, int32_t row, void *tmp)
{
    const kv_layer *kv = j->kv;
    const int32_t pos = g->pos0 + (row - g->row0);
    const size_t nk = (size_t)kv->n_kv_head * (size_t)kv->dk, dv = (size_t)kv->dv;
    const float *key = cpu_val(j->r, j->o->in[1]) + (size_t)row * nk;
    const float *val_row = cpu_val(j->r, j->o->in[2]) + (size_t)row * (size_t)kv->n_kv_head * dv;
    j->k->encode[kv->codec](tmp, key, nk);
    scatter_key(j, g, pos, tmp);
    for (int32_t h = 0; h < kv->n_kv_head; h++)
        j->k->encode[kv->codec](values_at(j, g, h, pos), val_row + (size_t)h * dv, dv);
}

static int32_t key_tiles(const segment *g)
{
    return (g->pos0 + g->n_rows - 1) / KV_TILE - g->pos0 / KV_TILE + 1;
}

/* A task takes whole key tiles, so that no two write one cache line. */
static void encode_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const attend_job *j = ctx;
    const step *s = j->r->s;
    void *tmp = attend_thread_scratch(j, i_thread).encode;
    int32_t first = 0;
    for (int32_t i = 0; i < s->n_seg; i++) {
        const segment *g = &s->seg[i];
        const int32_t n = key_tiles(g), base = g->pos0 / KV_TILE;
        int32_t t0 = max_i32((int32_t)begin - first, 0), t1 = min_i32((int32_t)end - first, n);
        if (t0 < t1) {
            int32_t p0 = max_i32((base + t0) * KV_TILE, g->pos0);
            int32_t p1 = min_i32((base + t1) * KV_TILE, g->pos0 + g->n_rows);
            for (int32_t p = p0; p < p1; p++) encode_row(j, g, g->row0 + (p - g->pos0), tmp);
        }
        first += n;
    }
}

void attend_encode(attend_job *j)
{
    const step *s = j->r->s;
    const int32_t cols = j->kv->n_kv_head * (j->kv->dk + j->kv->dv) * KV_TILE;
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_seg; i++) n += key_tiles(&s->seg[i]);
    cpu_row_spans(j->r, n, cols, ENCODE_GRAIN, encode_span, j);
}
