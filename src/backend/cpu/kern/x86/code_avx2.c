/* AVX2, FMA and F16C: the coded kinds of a cache.  Sixteen elements or sixteen positions are two registers; a
   group's numbers are opened once. */
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kern/kern_code.h"
#include "backend/cpu/kern/kern_vec.h"
#include "backend/cpu/kern/x86/lanes_avx2.h"

INLINE v16 clamp16(const float *p)
{
    const v16 x = loadf16(p);
    const __m256 most = _mm256_set1_ps(KV_MOST), least = _mm256_set1_ps(-KV_MOST);
    /* NaN passes: both keep the second operand when either is NaN */
    return (v16){_mm256_max_ps(least, _mm256_min_ps(most, x.lo)),
                 _mm256_max_ps(least, _mm256_min_ps(most, x.hi))};
}

INLINE float least8(__m256 x)
{
    __m128 v = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    v = _mm_min_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_min_ss(v, _mm_movehdup_ps(v)));
}

static bool span(const float *x, int32_t n, float *lo, float *hi)
{
    v16 least = set16(INFINITY), most = set16(-INFINITY);
    __m256 nan = _mm256_setzero_ps();
    for (int32_t i = 0; i < n; i += 16) {
        const v16 v = clamp16(x + i);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps(v.lo, v.hi, _CMP_UNORD_Q));
        least = (v16){_mm256_min_ps(v.lo, least.lo), _mm256_min_ps(v.hi, least.hi)};
        most = max16(v, most);
    }
    *lo = least8(_mm256_min_ps(least.lo, least.hi));
    *hi = v16_max(most);
    return _mm256_testz_si256(_mm256_castps_si256(nan), _mm256_castps_si256(nan));
}

/* Sixteen whole numbers of 0 … 255 to bytes. */
INLINE void store_bytes(uint8_t *p, v16 x)
{
    const i16 n = to_int16(x);
    __m256i w = _mm256_packus_epi32(n.lo, n.hi);
    w = _mm256_permute4x64_epi64(w, 0xd8);
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_packus_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
}

INLINE v16 round16(v16 x)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return (v16){_mm256_round_ps(x.lo, NEAREST), _mm256_round_ps(x.hi, NEAREST)};
}

INLINE void make_codes(uint8_t *codes, const float *x, int32_t n, const kv_law *l,
                       const bool affine)
{
    const v16 a = set16(l->a), b = set16(l->b), lo = set16(l->lo), hi = set16(l->hi);
    for (int32_t i = 0; i < n; i += 16) {
        const v16 v = clamp16(x + i);
        v16 y = round16(affine ? div16(sub16(v, b), a) : sub16(div16(v, a), b));
        y = max16(y, lo);
        y = (v16){_mm256_min_ps(y.lo, hi.lo), _mm256_min_ps(y.hi, hi.hi)};
        store_bytes(codes + i, add16(y, set16(l->off)));
    }
}

static void none(uint8_t *codes, uint16_t num[2], int32_t n)
{
    memset(codes, 0, (size_t)n);
    num[0] = num[1] = KV_NAN;
}

#define DEFINE_CODE(name, law, arg, affine)                                                        \
    static void code_##name(uint8_t *codes, uint16_t num[2], const float *x, int32_t n)            \
    {                                                                                              \
        float lo, hi;                                                                              \
        if (!span(x, n, &lo, &hi)) {                                                               \
            none(codes, num, n);                                                                   \
            return;                                                                                \
        }                                                                                          \
        const kv_law l = law(lo, hi, arg, num);                                                    \
        make_codes(codes, x, n, &l, affine);                                                       \
    }
DEFINE_CODE(q8, kv_affine_law, 255.0f, true)
DEFINE_CODE(q4, kv_affine_law, 15.0f, true)
DEFINE_CODE(k8, kv_turbo_key_law, true, false)
DEFINE_CODE(k4, kv_turbo_key_law, false, false)

INLINE v16 codes16(__m128i c)
{
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(c)),
                 _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(c, c)))};
}

INLINE v16 numbers16(const uint8_t *p)
{
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 16)))};
}

#include "backend/cpu/kern/x86/code_body.h"

INLINE void open_tile(float *dst, const uint8_t *tile, int32_t n, kv_codec c)
{
    const size_t g = (size_t)c.group;
    for (size_t at = 0; at < (size_t)n; at += g, tile += KV_TILE * kv_group_bytes(c)) {
        const v16 a = numbers16(tile), b = ready16(c.kind, numbers16(tile + 2 * KV_TILE));
        const uint8_t *p = tile + 4 * KV_TILE;
        for (size_t d = 0; d < g; d += 2, dst += 2 * KV_TILE) {
            store16(dst, value16(c.kind, codes16(tile_codes(c.kind, p, d)), a, b));
            store16(dst + KV_TILE, value16(c.kind, codes16(tile_codes(c.kind, p, d + 1)), a, b));
        }
    }
}

INLINE v16 number16(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    const __m256 x = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
    return (v16){x, x};
}

INLINE void open_row(float *dst, const uint8_t *row, int32_t n, kv_codec c)
{
    const size_t g = (size_t)c.group;
    for (size_t at = 0; at < (size_t)n; at += g, row += kv_group_bytes(c)) {
        const v16 a = number16(row), b = ready16(c.kind, number16(row + 2));
        const size_t rest = (size_t)n - at, end = rest < g ? rest : g;
        for (size_t i = 0; i < end; i += 16, dst += 16)
            store16(dst, value16(c.kind, codes16(row_codes(c.kind, row + 4, i)), a, b));
    }
}

#define DEFINE_OPEN(name, kind)                                                                    \
    static void open_tile_##name(float *dst, const void *tile, int32_t n, int32_t group)           \
    {                                                                                              \
        open_tile(dst, tile, n, (kv_codec){kind, group});                                          \
    }                                                                                              \
    static void open_row_##name(float *dst, const void *row, int32_t n, int32_t group)             \
    {                                                                                              \
        open_row(dst, row, n, (kv_codec){kind, group});                                            \
    }
DEFINE_OPEN(q8, KV_Q8)
DEFINE_OPEN(q4, KV_Q4)
DEFINE_OPEN(k8, KV_TURBO_K8)
DEFINE_OPEN(k4, KV_TURBO_K4)

void kern_code_avx2(kern_vec *v)
{
#define INSTALL(kind, name)                                                                        \
    v->code[kind] = code_##name;                                                                   \
    v->open_tile[kind] = open_tile_##name;                                                         \
    v->open_row[kind] = open_row_##name;
    INSTALL(KV_Q8, q8)
    INSTALL(KV_Q4, q4)
    INSTALL(KV_TURBO_K8, k8)
    INSTALL(KV_TURBO_K4, k4)
#undef INSTALL
    install_products(v);
}
