/* The gated delta rule over columns of the state: what AVX2 and AVX-512 have in common.  Each includes it
   once, after it has defined

     vf, LANES                a register of f32 and how many
     vf_load, vf_store, vf_set, vf_mul, vf_sub, vf_fma (a·b + c)

   Columns never mix, so any number of them beside one another gives the reference's bits. */
enum { DELTA_WIDE = 4 }; /* registers of columns at once: enough chains to fill both FMA pipes */

/* n registers of columns from j on. */
INLINE void delta_columns(const kern_delta *d, size_t j, const int n)
{
    const size_t n_key = (size_t)d->n_key, ld = (size_t)d->n_value;
    const vf decay = vf_set(d->decay), beta = vf_set(d->beta);
    vf sum[DELTA_WIDE], change[DELTA_WIDE];
    for (int c = 0; c < n; c++) sum[c] = vf_set(0.0f);
    for (size_t i = 0; i < n_key; i++)
        for (int c = 0; c < n; c++) {
            float *s = d->s + i * ld + j + (size_t)c * LANES;
            const vf left = vf_mul(vf_load(s), decay);
            vf_store(s, left);
            sum[c] = vf_fma(left, vf_set(d->k[i]), sum[c]);
        }
    for (int c = 0; c < n; c++) {
        change[c] = vf_mul(vf_sub(vf_load(d->v + j + (size_t)c * LANES), sum[c]), beta);
        sum[c] = vf_set(0.0f);
    }
    for (size_t i = 0; i < n_key; i++)
        for (int c = 0; c < n; c++) {
            float *s = d->s + i * ld + j + (size_t)c * LANES;
            const vf now = vf_fma(vf_set(d->k[i]), change[c], vf_load(s));
            vf_store(s, now);
            sum[c] = vf_fma(now, vf_set(d->q[i]), sum[c]);
        }
    for (int c = 0; c < n; c++) vf_store(d->y + j + (size_t)c * LANES, sum[c]);
}

static void delta_all(const kern_delta *d)
{
    const size_t n = (size_t)d->n_value;
    size_t j = 0;
    for (; j + DELTA_WIDE * LANES <= n; j += DELTA_WIDE * LANES) delta_columns(d, j, DELTA_WIDE);
    for (; j + LANES <= n; j += LANES) delta_columns(d, j, 1);
    if (j < n) kern_delta_columns(d, (int32_t)j);
}
