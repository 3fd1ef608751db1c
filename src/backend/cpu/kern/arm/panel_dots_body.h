/* Dots of a panel, word by word: for levels whose parts are all that they have. */
INLINE void panel_order(int8_t (*w)[TILE_LINE], int n)
{
    (void)w, (void)n;
}
INLINE void panel_dots(const int8_t (*w)[TILE_LINE], const int n_line, const int at,
                       const int8_t *q, const size_t apart, const int n, const int most,
                       int32x4_t (*dot)[QUADS])
{
    const int step = part_words(most) < n_line ? part_words(most) : n_line;
#pragma GCC unroll 4
    for (int from = 0; from < n_line; from += step) {
        part x[PANEL_VEC][QUADS];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) x[t][i] = part_begin(dot[t][i]);
#pragma GCC unroll 8
        for (int s = from; s < from + step; s++)
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) {
                const words v = load(w[s] + QUAD_BYTES * (at + i));
#pragma GCC unroll 4
                for (int t = 0; t < n; t++)
                    x[t][i] = part_add(x[t][i], v, q + apart * (size_t)t, s);
            }
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int i = 0; i < QUADS; i++) dot[t][i] = part_end(x[t][i], dot[t][i]);
    }
}
