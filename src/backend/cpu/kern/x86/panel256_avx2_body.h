/* The panel of 256-tiles of unsigned weights in AVX2's registers: a sub-block's lines add up in as many parts as its
   bits ask for before they meet its scale, which lies there as add_scaled takes it. */
struct panel256 {
    uint8_t w[N_HALF][N_LINE][32];
    int16_t sc[N_HALF][16][16];
    int16_t pair[N_HALF][8]
                [16]; /* what meets sums of q: minima, or the scales of centred weights */
    float d[TILE_ROWS], dmin[TILE_ROWS];
};
_Static_assert(sizeof(panel256) <= TILE_PANEL, "panel");

INLINE int panel_step(const int bits)
{
    return BYTE_DOTS || sum_lines(bits) == 8 ? MAX_STEP : 2;
}

/* Halves 2g and 2g+1 of the panel times n vectors. */
INLINE void panel_group(const int bits, const panel256 *u, const int g, const a8_256 *a,
                        const int n, int32_t v, int32_t shift, float *y)
{
    const int lines = sum_lines(bits);
    const uint8_t *w0 = u->w[2 * g][0], *w1 = u->w[2 * g + 1][0];
    __m256i i0[MAX_STEP], i1[MAX_STEP];
    for (int t = 0; t < n; t++) i0[t] = i1[t] = _mm256_setzero_si256();
    for (int s = 0; s < N_LINE; s += lines) {
        const __m256i c0 = load(u->sc[2 * g][s / scale_lines(bits)]);
        const __m256i c1 = load(u->sc[2 * g + 1][s / scale_lines(bits)]);
        __m256i s0[MAX_STEP], s1[MAX_STEP];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = 0; k < lines; k++) {
            const __m256i a0 = load(w0 + 32 * (s + k)), a1 = load(w1 + 32 * (s + k));
            for (int t = 0; t < n; t++) {
                const __m256i q = word(a[t].q + 4 * (s + k));
                s0[t] = part_add(s0[t], a0, q);
                s1[t] = part_add(s1[t], a1, q);
                KEEP(s0[t]);
                KEEP(s1[t]);
            }
        }
        for (int t = 0; t < n; t++) {
            i0[t] = add_part(bits, i0[t], s0[t], c0);
            KEEP(i0[t]);
            i1[t] = add_part(bits, i1[t], s1[t], c1);
            KEEP(i1[t]);
        }
    }
    for (int t = 0; t < n; t++) {
        float *out = y + ((v + t) >> shift) * TILE_ROWS + 16 * g;
        const float *d = u->d + 16 * g, *dmin = u->dmin + 16 * g;
        for (int h = 0; h < 2; h++)
            accumulate(bits, h ? i1[t] : i0[t], (const __m256i *)(const void *)u->pair[2 * g + h],
                       _mm256_load_ps(d + 8 * h), _mm256_load_ps(dmin + 8 * h), &a[t], out + 8 * h);
    }
}

INLINE void panel_vecs(const int bits, const panel256 *u, const a8_256 *a, const int n, int32_t v,
                       int32_t shift, float *y)
{
    panel_group(bits, u, 0, a, n, v, shift, y);
    panel_group(bits, u, 1, a, n, v, shift, y);
}
