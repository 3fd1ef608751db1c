/* Attention over sixteen lanes: what the levels have in common.  Each includes it once, after it
   has defined

     the lanes of math_body.h, which it has included
     load16(codec, p)         of a cache or of floats
     TILE_SHAPES(X)           X(n_a, n_t): a tile of n_a vectors takes n_t strips, n_a = 1 … TILE_A
     TILE_A, TILE_FULL_T      the most vectors of a tile, and their strips
     tile(…)                  n_a vectors × n_t strips, both known where it is inlined
     MM_DIRECT                kern_vec.h's mm_direct
     EXP_EACH                 vectors of sixteen whose exp is taken together, 4 at most
     over16(x, d, inv)        x / d, where inv is 1 / d

   and holds the walk over tiles, the widening of a cache's values, and softmax.  Nothing here is seen
   outside the file that includes it. */
enum { TILE_T = 4, LINE = 64 };

INLINE size_t elem(kv_kind c)
{
    return c == KV_F32 ? 4 : 2;
}

/* Where the next lines to fetch are; a region that is not there stays at one address.  When two groups
   of vectors walk over b, each fetches in every other step, so that memory is asked evenly. */
typedef struct ahead {
    const char *p[2];
    size_t step[2];
    size_t rest; /* 0 or 1: steps left out between two */
} ahead;

/* To which cache.  The values of a whole split lie between fetching and use, 32 KB of 64 a head: too much for a first
   cache beside the keys.  Into the second one, a layer of decode took 0.83 to 0.93 of the time (Sapphire Rapids). */
#if defined(__AVX512F__)
enum { FETCH_TO = 2 };
#else
enum { FETCH_TO = 3 };
#endif

/* After step k of a tile: half a line of each region a strip, as much as was read of b. */
INLINE void fetch_ahead(ahead *f, const int n_t, size_t k)
{
    if (!f || (k & (n_t == 1 ? 2 * f->rest + 1 : f->rest)) != 0) return;
#pragma GCC unroll 2
    for (int h = 0; h < (n_t + 1) / 2; h++)
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) {
            __builtin_prefetch(f->p[g], 0, FETCH_TO);
            f->p[g] += f->step[g];
        }
}

INLINE void tile(const kern_mm *j, kv_kind codec, const int n_a, const int n_t, size_t i, size_t t,
                 ahead *f);

/* Strips [t, end) of n_a vectors, as many strips at once as the registers hold. */
INLINE void strips(const kern_mm *j, kv_kind codec, const int n_a, const int n_t, size_t i,
                   size_t t, size_t end, ahead *f)
{
    for (; t + (size_t)n_t <= end; t += (size_t)n_t) tile(j, codec, n_a, n_t, i, t, f);
    for (; t < end; t++) tile(j, codec, n_a, 1, i, t, f);
}

INLINE void group(const kern_mm *j, kv_kind codec, size_t n, size_t i, size_t t, size_t end,
                  ahead *f)
{
    switch (n) {
#define TILE_CASE(n_a, n_t)                                                                        \
    case n_a:                                                                                      \
        strips(j, codec, n_a, n_t, i, t, end, f);                                                  \
        break;
        TILE_SHAPES(TILE_CASE)
#undef TILE_CASE
    }
}

INLINE void mm(const kern_mm *j, kv_kind codec)
{
    const size_t n_a = (size_t)j->n_a, groups = (n_a + TILE_A - 1) / TILE_A;
    const size_t step = n_a > 2 * TILE_A ? TILE_FULL_T : TILE_T, n_strip = (size_t)j->n_strip;
    ahead f = {
        {j->ahead[0], j->ahead[1]}, {j->ahead[0] ? LINE : 0, j->ahead[1] ? LINE : 0}, groups == 2};
    const bool fetch = j->ahead[0] || j->ahead[1];
    for (size_t t = 0; t < n_strip; t += step) {
        const size_t end = t + step < n_strip ? t + step : n_strip;
        for (size_t g = 0; g < groups; g++) {
            size_t i = g * n_a / groups, n = (g + 1) * n_a / groups - i;
            if (fetch && g <= f.rest)
                group(j, codec, n, i, t, end, &f);
            else
                group(j, codec, n, i, t, end, NULL);
        }
    }
}

/* Strip by strip: rows of one strip lie together, those of several would share cache sets. */
INLINE void widen(float *dst, const uint8_t *src, int32_t n_rows, int32_t n_cols, kv_kind codec)
{
    const size_t e = elem(codec), rows = (size_t)n_rows, cols = (size_t)n_cols;
    size_t t = 0;
    for (; t + 16 <= cols; t += 16)
        for (size_t r = 0; r < rows; r++, dst += 16)
            store16(dst, load16(codec, src + (r * cols + t) * e));
    for (size_t r = 0; t < cols && r < rows; r++, dst += 16) {
        uint8_t rest[LINE] = {0};
        memcpy(rest, src + (r * cols + t) * e, (cols - t) * e);
        store16(dst, load16(codec, rest));
    }
}

#define DEFINE_CODEC(name, codec)                                                                  \
    static void mm_##name(const kern_mm *j)                                                        \
    {                                                                                              \
        mm(j, codec);                                                                              \
    }                                                                                              \
    static void widen_##name(float *dst, const void *src, int32_t n_rows, int32_t n_cols)          \
    {                                                                                              \
        widen(dst, src, n_rows, n_cols, codec);                                                    \
    }
DEFINE_CODEC(f16, KV_F16)
DEFINE_CODEC(bf16, KV_BF16)
DEFINE_CODEC(f32, KV_F32)
#undef DEFINE_CODEC

/* Queries whose scores, 8 KB, stay in L1 between the two passes of softmax. */
enum { SOFTMAX_ROWS = 8 };

/* Lanes before n: as many as there are, whatever n is, so that no branch depends on it. */
INLINE b16 before16(int32_t n)
{
    static const float lane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return less16(loadf16(lane), set16((float)n));
}

/* Which lanes of the first sixteen come before lo, and which of the last up to hi. */
typedef struct edges {
    b16 before, upto;
} edges;

INLINE edges edges_of(const kern_softmax *j)
{
    return (edges){before16(j->lo % 16), before16(j->hi % 16 + 1)};
}

/* x to the places outside [lo, hi] of the sixteens that both are in. */
INLINE void fill_outside(float *s, const kern_softmax *j, const edges *e, float x)
{
    float *first = s + j->lo / 16 * 16, *last = s + j->hi / 16 * 16;
    store16(first, pick16(e->before, set16(x), loadf16(first)));
    store16(last, pick16(e->upto, loadf16(last), set16(x)));
}

static void cap_scores(float *s, int32_t begin, int32_t end, float scale, float cap)
{
    const v16 vs = set16(scale), vc = set16(cap);
    for (int32_t j = begin; j < end; j += 16) {
        v16 x = mul16(loadf16(s + j), vs);
        if (cap > 0) x = mul16(vc, tanh16(div16(x, vc)));
        store16(s + j, x);
    }
}

/* s = exp(s·scale - max) of n times sixteen, and their sum on top of l. */
INLINE v16 exp_add(float *s, v16 scale, v16 max, v16 l, const int n)
{
    v16 p[4];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) p[i] = sub16(mul16(loadf16(s + 16 * i), scale), max);
    exp_low_each(p, n);
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        store16(s + 16 * i, p[i]);
        l = add16(l, p[i]);
    }
    return l;
}

/* In four chains, since each waits for the last; NaN never becomes the maximum. */
INLINE v16 scores_max(const float *s, int32_t j, int32_t end)
{
    v16 m[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) m[i] = set16(-__builtin_inff());
    for (; j + 64 <= end; j += 64)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) m[i] = max16(loadf16(s + j + 16 * i), m[i]);
    for (; j < end; j += 16) m[0] = max16(loadf16(s + j), m[0]);
    return max16(max16(m[0], m[1]), max16(m[2], m[3]));
}

/* A positive scale is applied on the way: rounding keeps order, so the maximum scaled is the maximum
   of the scaled. */
INLINE float row_max(float *s, const kern_softmax *j, const edges *e, bool capped, int32_t begin,
                     int32_t end)
{
    if (capped) cap_scores(s, begin, end, j->scale, j->cap);
    fill_outside(s, j, e, -__builtin_inff());
    return v16_max(scores_max(s, begin, end)) * (capped ? 1.0f : j->scale);
}

/* The rest at once, too: one after the other they would wait for each other. */
INLINE float row_exp(float *s, v16 scale, float max, int32_t i, int32_t end)
{
    const v16 m = set16(max);
    v16 l = set16(0.0f);
    for (; i + 16 * EXP_EACH <= end; i += 16 * EXP_EACH) l = exp_add(s + i, scale, m, l, EXP_EACH);
    switch ((end - i) / 16) {
    case 3:
        l = exp_add(s + i, scale, m, l, 3);
        break;
    case 2:
        l = exp_add(s + i, scale, m, l, 2);
        break;
    case 1:
        l = exp_add(s + i, scale, m, l, 1);
        break;
    }
    return v16_tree(l);
}

/* The maxima of some queries first, then their powers: nothing waits for the maximum just begun. */
static void softmax(const kern_softmax *j)
{
    const int32_t begin = j->lo / 16 * 16, end = (j->hi / 16 + 1) * 16;
    const bool capped = j->cap > 0 || !(j->scale > 0);
    const v16 scale = set16(capped ? 1.0f : j->scale);
    const edges e = edges_of(j);
    for (int32_t i0 = 0, i1; i0 < j->n; i0 = i1) {
        i1 = j->n - i0 < SOFTMAX_ROWS ? j->n : i0 + SOFTMAX_ROWS;
        for (int32_t i = i0; i < i1; i++)
            j->max[(size_t)i * j->step] =
                row_max(j->s + (size_t)i * j->pitch, j, &e, capped, begin, end);
        for (int32_t i = i0; i < i1; i++) {
            float *s = j->s + (size_t)i * j->pitch;
            j->sum[(size_t)i * j->step] =
                row_exp(s, scale, j->max[(size_t)i * j->step], begin, end);
            /* NaN there when all scores were -inf; else exp(-inf) */
            if (!(j->max[(size_t)i * j->step] > -__builtin_inff())) fill_outside(s, j, &e, 0.0f);
        }
    }
}

/* n strips from i on, the last of `last` columns. */
INLINE void merge_strips(const kern_merge *j, v16 sum, v16 inv, size_t i, const int n, size_t last)
{
    v16 acc[4];
#pragma GCC unroll 4
    for (int s = 0; s < n; s++) acc[s] = set16(0.0f);
    for (size_t c = 0; c < j->n_x; c++) {
        const v16 w = set16(j->w[c]);
        const float *x = j->x + c * j->step + i;
#pragma GCC unroll 4
        for (int s = 0; s < n; s++)
            acc[s] =
                fma16(w, s < n - 1 ? loadf16(x + 16 * s) : loadf16_first(x + 16 * s, last), acc[s]);
    }
#pragma GCC unroll 4
    for (int s = 0; s < n; s++) {
        const v16 y = over16(acc[s], sum, inv);
        if (s < n - 1)
            store16(j->y + i + 16 * s, y);
        else
            store16_first(j->y + i + 16 * s, y, last);
    }
}

static void merge(const kern_merge *j)
{
    float l = 0;
    for (size_t c = 0; c < j->n_x; c++) l = __builtin_fmaf(j->w[c], j->l[c], l);
    l += j->more;
    const v16 sum = set16(l), inv = set16(1.0f / l);
    size_t i = 0;
    for (; i + 64 <= j->n; i += 64) merge_strips(j, sum, inv, i, 4, 16);
    for (; i < j->n; i += 16) merge_strips(j, sum, inv, i, 1, j->n - i < 16 ? j->n - i : 16);
}

static void attend_install(kern_vec *v)
{
    v->merge = merge;
    v->widen[KV_F16] = widen_f16;
    v->widen[KV_BF16] = widen_bf16;
    v->widen[KV_F32] = widen_f32;
    v->mm[KV_F16] = mm_f16;
    v->mm[KV_BF16] = mm_bf16;
    v->mm[KV_F32] = mm_f32;
    v->mm_direct = MM_DIRECT;
    v->softmax = softmax;
}
