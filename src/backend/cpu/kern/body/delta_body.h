/* The gated delta rule over sixteen lanes, once for every width: a lane is a column of the state.
   Included after lanes_LEVEL.h.

   Columns never mix, so any number of them beside one another gives the reference's bits.  The decayed
   state is computed again instead of stored: one product, the same bits, half the stores. */
#include "backend/cpu/kern/kern_vec.h"

enum { DELTA_WIDE = 4 }; /* sixteens of columns at once: eight chains of AVX2, four of AVX-512 */

INLINE v16 delta_load(const float *p, size_t left)
{
    return left < 16 ? loadf16_first(p, left) : loadf16(p);
}

INLINE void delta_store(float *p, v16 x, size_t left)
{
    if (left < 16)
        store16_first(p, x, left);
    else
        store16(p, x);
}

/* n sixteens of columns from j on, of the last only the first `left`. */
INLINE void delta_columns(const kern_delta *d, size_t j, const int n, const size_t left)
{
    const size_t n_key = (size_t)d->n_key, ld = (size_t)d->n_value;
    const v16 decay = set16(d->decay), beta = set16(d->beta);
    v16 sum[DELTA_WIDE], change[DELTA_WIDE];
    for (int c = 0; c < n; c++) sum[c] = set16(0.0f);
    for (size_t i = 0; i < n_key; i++)
        for (int c = 0; c < n; c++) {
            const v16 s = delta_load(d->s + i * ld + j + 16 * (size_t)c, left);
            sum[c] = fma16(mul16(s, decay), set16(d->k[i]), sum[c]);
        }
    for (int c = 0; c < n; c++) {
        const v16 v = delta_load(d->v + j + 16 * (size_t)c, left);
        change[c] = mul16(sub16(v, sum[c]), beta);
        sum[c] = set16(0.0f);
    }
    for (size_t i = 0; i < n_key; i++)
        for (int c = 0; c < n; c++) {
            float *s = d->s + i * ld + j + 16 * (size_t)c;
            const v16 old = mul16(delta_load(s, left), decay);
            const v16 now = fma16(set16(d->k[i]), change[c], old);
            delta_store(s, now, left);
            sum[c] = fma16(now, set16(d->q[i]), sum[c]);
        }
    for (int c = 0; c < n; c++) delta_store(d->y + j + 16 * (size_t)c, sum[c], left);
}

static void delta(const kern_delta *d)
{
    const size_t n = (size_t)d->n_value;
    size_t j = 0;
    for (; j + 16 * DELTA_WIDE <= n; j += 16 * DELTA_WIDE) delta_columns(d, j, DELTA_WIDE, 16);
    for (; j + 16 <= n; j += 16) delta_columns(d, j, 1, 16);
    if (j < n) delta_columns(d, j, 1, n - j);
}
