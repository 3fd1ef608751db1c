/* Plain C: the gated delta rule, a row of one head. */
#include <math.h>

#include "backend/cpu/kern/kern_vec.h"

void kern_delta_columns(const kern_delta *d, int32_t first)
{
    for (int32_t j = first; j < d->n_value; j++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < d->n_key; i++) {
            float *s = d->s + (size_t)i * (size_t)d->n_value + j;
            *s *= d->decay;
            sum = fmaf(*s, d->k[i], sum);
        }
        const float change = (d->v[j] - sum) * d->beta;
        sum = 0.0f;
        for (int32_t i = 0; i < d->n_key; i++) {
            float *s = d->s + (size_t)i * (size_t)d->n_value + j;
            *s = fmaf(d->k[i], change, *s);
            sum = fmaf(*s, d->q[i], sum);
        }
        d->y[j] = sum;
    }
}

static void delta(const kern_delta *d)
{
    kern_delta_columns(d, 0);
}

void kern_delta_ref(kern_vec *v)
{
    v->delta = delta;
}
