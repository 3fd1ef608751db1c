/* Activations to 8 bits in groups of 32, AVX-512: four groups a step, whose maxima and divisions share registers;
   what is left for the next term stays there, and a struct, one line, is stored at once.  Values as
   linear_quant_body.h has them; groups with NaN or infinity go to AVX2. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"

#define INLINE static inline __attribute__((always_inline))

enum { GROUPS = 4 };

INLINE __m512i magnitudes(const __m512 *x)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    return _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(x[0]), mask),
                            _mm512_and_si512(_mm512_castps_si512(x[1]), mask));
}

/* The halves of a and of b against each other: a's in the low half. */
INLINE __m512i max_halves(__m512i a, __m512i b)
{
    return _mm512_max_epu32(_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee));
}

/* The largest bits of magnitudes of each group, as a float: NaN and infinity come out on top. */
INLINE __m128 maxima(const __m512 (*x)[2])
{
    const __m512i a = max_halves(magnitudes(x[0]), magnitudes(x[1]));
    const __m512i b = max_halves(magnitudes(x[2]), magnitudes(x[3]));
    __m512i m =
        _mm512_max_epu32(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
    m = _mm512_max_epu32(m, _mm512_shuffle_epi32(m, 0x4e));
    m = _mm512_max_epu32(m, _mm512_shuffle_epi32(m, 0xb1)); /* 128 bits a group */
    const __m512i at = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm_castsi128_ps(_mm512_castsi512_si128(_mm512_permutexvar_epi32(at, m)));
}

/* 64 bytes of four registers of integers. */
INLINE __m512i pack(const __m512i (*r)[2])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = _mm512_packs_epi32(r[0][0], r[0][1]),
                  b = _mm512_packs_epi32(r[1][0], r[1][1]);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(a, b));
}

/* What follows q in the structs of two groups: d, and the sums of q times powers of two. */
INLINE __m512i rests(__m512i q, __m512 d)
{
    const __m512i one = _mm512_set1_epi8(1);
    const __m512i shift = _mm512_setr_epi32(0, 0, 3, 4, 7, 5, 5, 0, 0, 0, 3, 4, 7, 5, 5, 0);
    __m512i v = _mm512_madd_epi16(_mm512_maddubs_epi16(one, q), _mm512_set1_epi16(1));
    v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, 0x4e));
    v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, 0xb1)); /* the sum of each 16, four times */
    const __m512i swapped = _mm512_shuffle_i64x2(v, v, 0xb1), sum = _mm512_add_epi32(v, swapped);
    const __m512i pair = _mm512_mask_blend_epi16(0xaaaaaaaa, swapped, _mm512_slli_epi32(v, 16));
    v = _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(sum, 0x2020, swapped), 0x4040, v);
    v = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_sllv_epi32(v, shift));
    v = _mm512_mask_mov_epi32(v, 0x8080, pair);
    v = _mm512_mask_mov_epi32(v, 0x0101, _mm512_castps_si512(d));
    return _mm512_castps_si512(
        _mm512_mask_mul_ps(_mm512_castsi512_ps(v), 0x0202, d, _mm512_cvtepi32_ps(sum)));
}

INLINE __m512 halves(float low, float high)
{
    return _mm512_mask_mov_ps(_mm512_set1_ps(low), 0xff00, _mm512_set1_ps(high));
}

/* Writes the first n of four structs, and leaves in x what is left of it; false: something is not finite. */
INLINE bool quant_groups(__m512 (*x)[2], uint8_t *out, int32_t n, size_t stride, const bool more)
{
    const __m128 amax = maxima((const __m512(*)[2])x), most = _mm_set1_ps(127.0f);
    const __mmask8 counts = _mm_cmp_ps_mask(amax, _mm_set1_ps(0x1p-120f), _CMP_GE_OQ);
    _Alignas(16) float d[GROUPS], inv[GROUPS];
    __m512i r[GROUPS][2];
    if (_mm_cmp_ps_mask(amax, _mm_set1_ps(__builtin_inff()), _CMP_NLT_UQ)) return false;
    _mm_store_ps(d, _mm_maskz_div_ps(counts, amax, most));
    _mm_store_ps(inv, _mm_maskz_div_ps(counts, most, amax));
    /* Broadcasts out of memory cost no port of the vector units; compilers prefer two shuffles. */
    __asm__("" : "+m"(d), "+m"(inv));
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++)
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            r[g][i] = _mm512_cvtps_epi32(_mm512_mul_ps(x[g][i], _mm512_set1_ps(inv[g])));
            if (more)
                x[g][i] =
                    _mm512_fnmadd_ps(_mm512_cvtepi32_ps(r[g][i]), _mm512_set1_ps(d[g]), x[g][i]);
        }
#pragma GCC unroll 2
    for (int g = 0; g < GROUPS; g += 2, out += 2 * stride) {
        const __m512i q = pack((const __m512i(*)[2])r + g), rest = rests(q, halves(d[g], d[g + 1]));
        if (g < n) _mm512_storeu_si512(out, _mm512_shuffle_i64x2(q, rest, 0x44));
        if (g + 1 < n) _mm512_storeu_si512(out + stride, _mm512_shuffle_i64x2(q, rest, 0xee));
    }
    return true;
}

void avx512_quant32(const float *x, int32_t n_block, int32_t terms, a8_32 *out, size_t stride)
{
    for (int32_t b = 0, n; b < n_block; b += n, x += 32 * n) {
        uint8_t *to = (uint8_t *)out + (size_t)b * stride, *at = to;
        __m512 v[GROUPS][2];
        bool finite = true;
        n = n_block - b < GROUPS ? n_block - b : GROUPS;
#pragma GCC unroll 4
        for (int g = 0; g < GROUPS; g++)
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++)
                v[g][i] = g < n ? _mm512_loadu_ps(x + 32 * g + 16 * i) : _mm512_setzero_ps();
        for (int32_t i = 0; finite && i < terms - 1; i++, at += sizeof *out)
            finite = quant_groups(v, at, n, stride, true);
        finite = finite && quant_groups(v, at, n, stride, false);
        if (!finite) avx2_quant32(x, n, terms, (a8_32 *)(void *)to, stride);
    }
}
