/* The tile of attend_body.h for levels with 32 registers: all strips of a step are loaded once and meet every
   vector.  Included after it. */

/* n_a ≤ TILE_A vectors × n_t ≤ TILE_T strips, both known where it is inlined. */
INLINE void tile(const kern_mm *j, kv_kind codec, const int n_a, const int n_t, size_t i, size_t t,
                 ahead *f)
{
    const size_t e = elem(codec), row = j->row * e, strip = j->strip * e;
    const uint8_t *b = (const uint8_t *)j->b + t * strip;
    const float *a = j->a + i * j->lda;
    const size_t n = (size_t)j->n;
    float *c = j->c + i * j->ldc + t * 16;
    v16 acc[TILE_A][TILE_T];
#pragma GCC unroll 8
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
            acc[r][s] = j->add ? loadf16(c + (size_t)r * j->ldc + 16 * s) : set16(0.0f);
    for (size_t k = 0; k < n; k++, b += row) {
        v16 v[TILE_T];
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) v[s] = load16(codec, b + (size_t)s * strip);
#pragma GCC unroll 8
        for (int r = 0; r < n_a; r++) {
            const v16 x = set16(a[(size_t)r * j->lda + k]);
#pragma GCC unroll 4
            for (int s = 0; s < n_t; s++) acc[r][s] = fma16(x, v[s], acc[r][s]);
        }
        fetch_ahead(f, n_t, k);
    }
#pragma GCC unroll 8
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) store16(c + (size_t)r * j->ldc + 16 * s, acc[r][s]);
}
