/* The ways of pooling, as sentence-transformers computes them, all at once: a row is read once. */
#include "engine/pooler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

cairn_status pooler_init(pooler *p, const pool_spec *spec, int32_t hidden, arena *a)
{
    const size_t n = (size_t)hidden;
    *p = (pooler){.spec = spec, .hidden = n};
    p->sum = arena_calloc(a, 2 * n, sizeof *p->sum);
    p->first = arena_calloc(a, 3 * n, sizeof *p->first);
    if (!p->sum || !p->first) return CAIRN_E_NOMEM;
    p->weighted = p->sum + n;
    p->last = p->first + n;
    p->max = p->last + n;
    return CAIRN_OK;
}

void pooler_begin(pooler *p)
{
    memset(p->sum, 0, 2 * p->hidden * sizeof *p->sum);
    p->n = p->weight = 0;
}

void pooler_row(pooler *p, const float *row, int32_t pos)
{
    const double w = (double)pos + 1.0;
    const size_t bytes = p->hidden * sizeof *row;
    if (p->n == 0) {
        memcpy(p->first, row, bytes);
        memcpy(p->max, row, bytes);
    }
    memcpy(p->last, row, bytes);
    for (size_t i = 0; i < p->hidden; i++) {
        p->sum[i] += (double)row[i];
        p->weighted[i] += w * (double)row[i];
        if (row[i] > p->max[i]) p->max[i] = row[i];
    }
    p->n += 1.0;
    p->weight += w;
}

static void divide(float *out, const double *sum, double by, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (float)(sum[i] / by);
}

void pooler_end(const pooler *p, float *out)
{
    const size_t bytes = p->hidden * sizeof *out;
    assert(p->n > 0);
    for (int32_t k = 0; k < p->spec->n_kind; k++, out += p->hidden) {
        switch (p->spec->kind[k]) {
        case POOL_CLS:
            memcpy(out, p->first, bytes);
            break;
        case POOL_MAX:
            memcpy(out, p->max, bytes);
            break;
        case POOL_MEAN:
            divide(out, p->sum, p->n, p->hidden);
            break;
        case POOL_MEAN_SQRT:
            divide(out, p->sum, (double)sqrtf((float)p->n), p->hidden);
            break;
        case POOL_WEIGHTED_MEAN:
            divide(out, p->weighted, p->weight, p->hidden);
            break;
        case POOL_LAST:
            memcpy(out, p->last, bytes);
            break;
        }
    }
}

void pool_normalise(float *v, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)v[i] * (double)v[i];
    const float len = sqrtf((float)sum), by = len > 1e-12f ? len : 1e-12f;
    for (int32_t i = 0; i < n; i++) v[i] /= by;
}
