/* Dots of a panel, word by word: for levels whose parts are all that they have. */
INLINE void panel_order(int8_t *w, int n)
{
    (void)w, (void)n;
}
INLINE int panel_n(const int n)
{
    return n;
}
INLINE int32x4_t panel_start(const int32x4_t *s, const int n, const int t)
{
    (void)n;
    return s[t];
}
INLINE int32x4_t panel_scale(int32x4_t v, const int t)
{
    (void)t;
    return v;
}
INLINE int32x4_t panel_out(const int32x4_t (*dot)[QUADS], const int t, const int i)
{
    return dot[t][i];
}
INLINE void panel_dots(const int8_t *w, const int n_line, const int n_quad, const int8_t *q,
                       const size_t apart, const int n, const int most, int32x4_t (*dot)[QUADS])
{
    const int step = part_words(most) < n_line ? part_words(most) : n_line;
#pragma GCC unroll 4
    for (int from = 0; from < n_line; from += step) {
        part x[PANEL_VEC][QUADS];
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int i = 0; i < n_quad; i++) x[t][i] = part_begin(dot[t][i]);
#pragma GCC unroll 8
        for (int s = from; s < from + step; s++)
#pragma GCC unroll 4
            for (int i = 0; i < n_quad; i++) {
                const words v = load(w + TILE_LINE * s + QUAD_BYTES * i);
#pragma GCC unroll 4
                for (int t = 0; t < n; t++)
                    x[t][i] = part_add(x[t][i], v, q + apart * (size_t)t, s);
            }
#pragma GCC unroll 4
        for (int t = 0; t < n; t++)
#pragma GCC unroll 4
            for (int i = 0; i < n_quad; i++) dot[t][i] = part_end(x[t][i], dot[t][i]);
    }
}
