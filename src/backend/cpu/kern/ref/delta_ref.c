/* Plain C: the gated delta rule, a row of one head. */
#include <math.h>

#include "backend/cpu/kern/kern_vec.h"

static void delta(const kern_delta *d)
{
    for (int32_t j = 0; j < d->n_value; j++) {
        float *s = d->s + j, sum = 0.0f;
        const size_t ld = (size_t)d->n_value;
        for (size_t i = 0; i < (size_t)d->n_key; i++) {
            s[i * ld] *= d->decay;
            sum = fmaf(s[i * ld], d->k[i], sum);
        }
        const float change = (d->v[j] - sum) * d->beta;
        sum = 0.0f;
        for (size_t i = 0; i < (size_t)d->n_key; i++) {
            s[i * ld] = fmaf(d->k[i], change, s[i * ld]);
            sum = fmaf(s[i * ld], d->q[i], sum);
        }
        d->y[j] = sum;
    }
}

void kern_delta_ref(kern_vec *v)
{
    v->delta = delta;
}
