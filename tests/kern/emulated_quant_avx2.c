/* Activations to 8 bits of AVX-512 over emulated intrinsics, and those that only they use. */
#if defined(__x86_64__)
#include "kern/emulate_avx512_vec.h"

EMU_EACH(max_epu32, 16, u32, a.u32[i] > b.u32[i] ? a.u32[i] : b.u32[i])
EMU_EACH(permutexvar, 16, u32, b.u32[a.u32[i] & 15])

EMU_ALU emu512 emu_setr(const int32_t *v)
{
    emu512 r;
    FOR(16) r.i32[i] = v[i];
    return r;
}
EMU_ALU emu512 emu_shuffle_i64x2(emu512 a, emu512 b, unsigned imm)
{
    emu512 r;
    FOR(16) r.u32[i] = (i < 8 ? a : b).u32[4 * (imm >> i / 4 * 2 & 3) + (unsigned)i % 4];
    return r;
}
EMU_ALU emu512 emu_shuffle_epi32(emu512 a, unsigned imm)
{
    emu512 r;
    FOR(16) r.u32[i] = a.u32[(unsigned)i / 4 * 4 + (imm >> i % 4 * 2 & 3)];
    return r;
}
EMU_ALU emu512 emu_packs_epi32(emu512 a, emu512 b)
{
    for (int h = 0; h < 2; h++)
        a.ps[h] = _mm256_castsi256_ps(
            _mm256_packs_epi32(_mm256_castps_si256(a.ps[h]), _mm256_castps_si256(b.ps[h])));
    return a;
}
EMU_ALU emu512 emu_packs_epi16(emu512 a, emu512 b)
{
    for (int h = 0; h < 2; h++)
        a.ps[h] = _mm256_castsi256_ps(
            _mm256_packs_epi16(_mm256_castps_si256(a.ps[h]), _mm256_castps_si256(b.ps[h])));
    return a;
}
EMU_ALU emu512 emu_blend_epi16(uint32_t m, emu512 no, emu512 yes)
{
    FOR(32) if (m >> i & 1) no.u16[i] = yes.u16[i];
    return no;
}
EMU_ALU emu512 emu_mask_mul_ps(emu512 no, uint16_t m, emu512 a, emu512 b)
{
    FOR(16) if (m >> i & 1) no.f32[i] = a.f32[i] * b.f32[i];
    return no;
}
EMU void emu_storeu_line(void *p, emu512 a)
{
    memcpy(p, &a, sizeof a);
}
EMU_ALU __m128 emu_maskz_div(uint8_t m, __m128 a, __m128 b)
{
    float x[4], y[4];
    _mm_storeu_ps(x, a), _mm_storeu_ps(y, b);
    FOR(4) x[i] = m >> i & 1 ? x[i] / y[i] : 0.0f;
    return _mm_loadu_ps(x);
}

#undef _mm512_max_epu32
#undef _mm512_permutexvar_epi32
#undef _mm512_setr_epi32
#undef _mm512_shuffle_i64x2
#undef _mm512_shuffle_epi32
#undef _mm512_packs_epi32
#undef _mm512_packs_epi16
#undef _mm512_madd_epi16
#undef _mm512_mask_blend_epi16
#undef _mm512_mask_mul_ps
#undef _mm512_storeu_si512
#undef _mm512_castsi512_si128
#undef _mm_maskz_div_ps
#undef _mm_cmp_ps_mask

#define _mm512_max_epu32          emu_max_epu32
#define _mm512_permutexvar_epi32  emu_permutexvar
#define _mm512_setr_epi32(...)    emu_setr((const int32_t[16]){__VA_ARGS__})
#define _mm512_shuffle_i64x2      emu_shuffle_i64x2
#define _mm512_shuffle_epi32      emu_shuffle_epi32
#define _mm512_packs_epi32        emu_packs_epi32
#define _mm512_packs_epi16        emu_packs_epi16
#define _mm512_madd_epi16(a, b)   emu_dpwssd(emu_zero(), a, b)
#define _mm512_mask_blend_epi16   emu_blend_epi16
#define _mm512_mask_mul_ps        emu_mask_mul_ps
#define _mm512_storeu_si512       emu_storeu_line
#define _mm512_castsi512_si128(a) _mm256_castsi256_si128(_mm256_castps_si256((a).ps[0]))
#define _mm_maskz_div_ps          emu_maskz_div
#define _mm_cmp_ps_mask(a, b, p)  ((uint8_t)_mm_movemask_ps(_mm_cmp_ps(a, b, p)))

#define avx512_quant32 emulated_quant32
#include "backend/cpu/kern/x86/linear_quant_avx512.c"
#else
typedef int nothing_here;
#endif
