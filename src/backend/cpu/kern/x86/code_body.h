/* Reading of coded kinds over sixteen lanes.  Each level includes it once, after its lanes and

     codes16(c)       sixteen bytes to floats
     numbers16(p)     sixteen f16 numbers

   Products open each code once for all vectors of a tile, in registers. */
enum { CODE_A = 6, MM_CODED = 2 * CODE_A };
/* Vectors and strips of a tile: 12 registers of sums at most where a strip takes two. */
#define CODE_SHAPES(X) X(1, 4) X(2, 2) X(3, 2) X(4, 1) X(5, 1) X(6, 1)

INLINE __m128i bytes16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
INLINE __m128i low4(__m128i c)
{
    return _mm_and_si128(c, _mm_set1_epi8(15));
}
INLINE __m128i high4(__m128i c)
{
    return low4(_mm_srli_epi16(c, 4));
}

/* What is added to a turbo key's code is ready in `b`. */
INLINE v16 ready16(kv_kind k, v16 b)
{
    return k == KV_TURBO_K8 ? sub16(b, set16(127.0f)) : b;
}
INLINE v16 value16(kv_kind k, v16 code, v16 a, v16 b)
{
    return k <= KV_Q4 ? fma16(code, a, b) : mul16(add16(code, b), a);
}

/* Element d of a tile's group, codes at p: sixteen positions. */
INLINE __m128i tile_codes(kv_kind k, const uint8_t *p, size_t d)
{
    if (kv_bits(k) == 8) return bytes16(p + d * KV_TILE);
    const __m128i two = bytes16(p + d / 2 * KV_TILE);
    return d % 2 ? high4(two) : low4(two);
}
/* Elements i … i + 15 of a row's group. */
INLINE __m128i row_codes(kv_kind k, const uint8_t *p, size_t i)
{
    if (kv_bits(k) == 8) return bytes16(p + i);
    const __m128i two = _mm_loadl_epi64((const __m128i *)(const void *)(p + i / 2));
    return _mm_unpacklo_epi8(low4(two), high4(two));
}

/* Where the next lines to fetch are; a region that is not there stays at one address. */
typedef struct fetch {
    const char *p[2];
    size_t step[2];
} fetch;

INLINE fetch fetch_of(const kern_mm *j)
{
    const void *other = j->ahead[1] ? j->ahead[1] : j->ahead[0];
    return (fetch){{j->ahead[0], other}, {j->ahead[0] ? 64 : 0, j->ahead[1] ? 64 : 0}};
}

/* After step k of a tile of n_t strips: as much of each region as was read of b. */
INLINE void fetch_next(fetch *f, kv_kind kind, const int n_t, size_t k)
{
    const size_t read = 2 * kv_bits(kind) * (size_t)n_t, each = read < 64 ? 64 / read : 1;
    if (!f || k % each != 0) return;
#pragma GCC unroll 2
    for (int g = 0; g < 2; g++) {
        _mm_prefetch(f->p[g], _MM_HINT_T0);
        f->p[g] += f->step[g];
    }
}

INLINE void sums_load(const kern_mm *j, const int n_a, const int n_t, const float *c,
                      v16 acc[CODE_A][4])
{
#pragma GCC unroll 6
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++)
            acc[r][s] = j->add ? loadf16(c + (size_t)r * j->ldc + 16 * s) : set16(0.0f);
}

INLINE void sums_store(const kern_mm *j, const int n_a, const int n_t, float *c, v16 acc[CODE_A][4])
{
#pragma GCC unroll 6
    for (int r = 0; r < n_a; r++)
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) store16(c + (size_t)r * j->ldc + 16 * s, acc[r][s]);
}

/* acc += x[r·ldx] of each vector times w, strip s. */
INLINE void sums_add(v16 acc[CODE_A][4], const int n_a, const int s, const float *x, size_t ldx,
                     v16 w)
{
#pragma GCC unroll 6
    for (int r = 0; r < n_a; r++) acc[r][s] = fma16(set16(x[(size_t)r * ldx]), w, acc[r][s]);
}

/* Strips are tiles of keys, at b. */
INLINE void tile_keys(const kern_mm *j, kv_codec c, const int n_a, const int n_t, const float *a,
                      const uint8_t *b, float *out, fetch *f)
{
    const size_t n = (size_t)j->n, g = (size_t)c.group, one = KV_TILE * kv_group_bytes(c);
    const size_t tile = n / g * one;
    v16 acc[CODE_A][4];
    sums_load(j, n_a, n_t, out, acc);
    for (size_t k = 0; k < n; k += g, b += one) {
        v16 scale[4], bias[4];
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) {
            scale[s] = numbers16(b + (size_t)s * tile);
            bias[s] = ready16(c.kind, numbers16(b + (size_t)s * tile + 2 * KV_TILE));
        }
        for (size_t d = 0; d < g; d += 2)
#pragma GCC unroll 2
            for (size_t h = 0; h < 2; h++) {
                fetch_next(f, c.kind, n_t, d + h);
#pragma GCC unroll 4
                for (int s = 0; s < n_t; s++) {
                    const uint8_t *p = b + (size_t)s * tile + 4 * KV_TILE;
                    const v16 w =
                        value16(c.kind, codes16(tile_codes(c.kind, p, d + h)), scale[s], bias[s]);
                    sums_add(acc, n_a, s, a + k + d + h, j->lda, w);
                }
            }
    }
    sums_store(j, n_a, n_t, out, acc);
}

/* The numbers of one group of every row. */
typedef struct row_numbers {
    float scale[KV_BLOCK], bias[KV_BLOCK];
} row_numbers;

/* Strips of one group of rows; codes of the first strip and row at p. */
INLINE void tile_values(const kern_mm *j, kv_codec c, const int n_a, const int n_t, const float *a,
                        const uint8_t *p, const row_numbers *num, float *out, fetch *f)
{
    v16 acc[CODE_A][4];
    sums_load(j, n_a, n_t, out, acc);
    for (size_t k = 0; k < (size_t)j->n; k++, p += j->row) {
        const v16 scale = set16(num->scale[k]), bias = set16(num->bias[k]);
#pragma GCC unroll 4
        for (int s = 0; s < n_t; s++) {
            const v16 w =
                value16(c.kind, codes16(row_codes(c.kind, p, 16 * (size_t)s)), scale, bias);
            sums_add(acc, n_a, s, a + k, j->lda, w);
        }
        fetch_next(f, c.kind, n_t, k);
    }
    sums_store(j, n_a, n_t, out, acc);
}

INLINE void keys_of(const kern_mm *j, kv_codec c, const int n_a, const int n_t, size_t i, fetch *f)
{
    const size_t tile = KV_TILE * kv_row_bytes(c, j->n), n = (size_t)j->n_strip;
    const float *a = j->a + i * j->lda;
    const uint8_t *b = j->b;
    float *out = j->c + i * j->ldc;
    size_t t = 0;
    for (; t + (size_t)n_t <= n; t += (size_t)n_t)
        tile_keys(j, c, n_a, n_t, a, b + t * tile, out + 16 * t, f);
    for (; t < n; t++) tile_keys(j, c, n_a, 1, a, b + t * tile, out + 16 * t, f);
}

/* Strips [0, n) of one group, whose codes begin at p. */
INLINE void values_of(const kern_mm *j, kv_codec c, const int n_a, const int n_t, size_t i,
                      const uint8_t *p, size_t n, const row_numbers *num, float *out, fetch *f)
{
    const float *a = j->a + i * j->lda;
    const size_t strip = 2 * kv_bits(c.kind);
    size_t t = 0;
    out += i * j->ldc;
    for (; t + (size_t)n_t <= n; t += (size_t)n_t)
        tile_values(j, c, n_a, n_t, a, p + t * strip, num, out + 16 * t, f);
    for (; t < n; t++) tile_values(j, c, n_a, 1, a, p + t * strip, num, out + 16 * t, f);
}

INLINE void mm_tiles(const kern_mm *j, kv_kind kind)
{
    const kv_codec c = {kind, j->group};
    const size_t n_a = (size_t)j->n_a, parts = (n_a + CODE_A - 1) / CODE_A;
    fetch f = fetch_of(j);
    for (size_t g = 0; g < parts; g++) {
        const size_t i = g * n_a / parts;
        switch ((g + 1) * n_a / parts - i) {
#define KEYS_CASE(n_a, n_t)                                                                        \
    case n_a:                                                                                      \
        keys_of(j, c, n_a, n_t, i, g || !f.p[0] ? NULL : &f);                                      \
        break;
            CODE_SHAPES(KEYS_CASE)
#undef KEYS_CASE
        }
    }
}

INLINE void rows_group(const kern_mm *j, kv_codec c, const uint8_t *b, size_t n, float *out,
                       fetch *f)
{
    const size_t n_a = (size_t)j->n_a, parts = (n_a + CODE_A - 1) / CODE_A;
    row_numbers num;
    for (size_t k = 0; k < (size_t)j->n; k++) {
        float two[4];
        uint32_t h;
        memcpy(&h, b + k * j->row, sizeof h);
        _mm_storeu_ps(two, _mm_cvtph_ps(_mm_cvtsi32_si128((int)h)));
        num.scale[k] = two[0];
        num.bias[k] = c.kind == KV_TURBO_K8 ? two[1] - 127.0f : two[1];
    }
    for (size_t g = 0; g < parts; g++) {
        const size_t i = g * n_a / parts;
        switch ((g + 1) * n_a / parts - i) {
#define VALUES_CASE(n_a, n_t)                                                                      \
    case n_a:                                                                                      \
        values_of(j, c, n_a, n_t, i, b + 4, n, &num, out, g ? NULL : f);                           \
        break;
            CODE_SHAPES(VALUES_CASE)
#undef VALUES_CASE
        }
    }
}

INLINE void mm_rows(const kern_mm *j, kv_kind kind)
{
    const kv_codec c = {kind, j->group};
    const size_t each = (size_t)c.group / 16, n = (size_t)j->n_strip;
    const uint8_t *b = j->b;
    fetch f = fetch_of(j);
    for (size_t t = 0; t < n; t += each, b += kv_group_bytes(c))
        rows_group(j, c, b, n - t < each ? n - t : each, j->c + 16 * t, f.p[0] ? &f : NULL);
}

#define DEFINE_PRODUCTS(name, kind)                                                                \
    static void mm_tiles_##name(const kern_mm *j)                                                  \
    {                                                                                              \
        mm_tiles(j, kind);                                                                         \
    }                                                                                              \
    static void mm_rows_##name(const kern_mm *j)                                                   \
    {                                                                                              \
        mm_rows(j, kind);                                                                          \
    }
DEFINE_PRODUCTS(q8, KV_Q8)
DEFINE_PRODUCTS(q4, KV_Q4)
DEFINE_PRODUCTS(k8, KV_TURBO_K8)
DEFINE_PRODUCTS(k4, KV_TURBO_K4)
#undef DEFINE_PRODUCTS

static void install_products(kern_vec *v)
{
    v->mm_tiles[KV_Q8] = mm_tiles_q8;
    v->mm_tiles[KV_Q4] = mm_tiles_q4;
    v->mm_tiles[KV_TURBO_K8] = mm_tiles_k8;
    v->mm_tiles[KV_TURBO_K4] = mm_tiles_k4;
    v->mm_rows[KV_Q8] = mm_rows_q8;
    v->mm_rows[KV_Q4] = mm_rows_q4;
    v->mm_rows[KV_TURBO_K8] = mm_rows_k8;
    v->mm_rows[KV_TURBO_K4] = mm_rows_k4;
    v->mm_coded = MM_CODED;
}
