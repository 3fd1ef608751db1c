/* What the elementwise AVX-512 kernels use beyond emulate_avx512.h. */
#ifndef TESTS_EMULATE_AVX512_VEC_H
#define TESTS_EMULATE_AVX512_VEC_H

#include "kern/emulate_avx512.h"

EMU_EACH(div_ps, 16, f32, a.f32[i] / b.f32[i])
EMU_EACH(max_ps, 16, f32, a.f32[i] > b.f32[i] ? a.f32[i] : b.f32[i])
EMU_EACH(andnot, 16, u32, ~a.u32[i] & b.u32[i])
EMU emu512 emu_fmsub_ps(emu512 a, emu512 b, emu512 c)
{
    FOR(16) c.f32[i] = __builtin_fmaf(a.f32[i], b.f32[i], -c.f32[i]);
    return c;
}
EMU emu512 emu_maskz_sub_ps(uint16_t m, emu512 a, emu512 b)
{
    FOR(16) a.f32[i] = m >> i & 1 ? a.f32[i] - b.f32[i] : 0.0f;
    return a;
}
EMU emu512 emu_mask_mov_ps(emu512 a, uint16_t m, emu512 b)
{
    FOR(16) a.u32[i] = m >> i & 1 ? b.u32[i] : a.u32[i];
    return a;
}
EMU void emu_storeu(float *p, emu512 a)
{
    FOR(16) p[i] = a.f32[i];
}
EMU void emu_mask_storeu_ps(float *p, uint16_t m, emu512 a)
{
    FOR(16) if (m >> i & 1) p[i] = a.f32[i];
}
EMU emu512 emu_cvtps_epi32(emu512 a)
{
    for (int h = 0; h < 2; h++) a.ps[h] = _mm256_castsi256_ps(_mm256_cvtps_epi32(a.ps[h]));
    return a;
}
/* Comparisons with NaN are false in both. */
EMU uint16_t emu_cmp_ps(emu512 a, emu512 b, int less)
{
    unsigned m = 0;
    FOR(16) m |= (unsigned)(less ? a.f32[i] < b.f32[i] : a.f32[i] > b.f32[i]) << i;
    return (uint16_t)m;
}

#undef _mm512_div_ps
#undef _mm512_max_ps
#undef _mm512_andnot_ps
#undef _mm512_and_ps
#undef _mm512_or_ps
#undef _mm512_xor_ps
#undef _mm512_fmsub_ps
#undef _mm512_maskz_sub_ps
#undef _mm512_mask_mov_ps
#undef _mm512_storeu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_cvtps_epi32
#undef _mm512_castps_si512
#undef _mm512_cmp_ps_mask

#define _mm512_div_ps               emu_div_ps
#define _mm512_max_ps               emu_max_ps
#define _mm512_andnot_ps            emu_andnot
#define _mm512_and_ps               emu_and
#define _mm512_or_ps                emu_or
#define _mm512_xor_ps               emu_xor
#define _mm512_fmsub_ps             emu_fmsub_ps
#define _mm512_maskz_sub_ps         emu_maskz_sub_ps
#define _mm512_mask_mov_ps          emu_mask_mov_ps
#define _mm512_storeu_ps            emu_storeu
#define _mm512_mask_storeu_ps       emu_mask_storeu_ps
#define _mm512_cvtps_epi32          emu_cvtps_epi32
#define _mm512_castps_si512(a)      (a)
#define _mm512_cmp_ps_mask(a, b, p) emu_cmp_ps(a, b, (p) == _CMP_LT_OQ)

#endif
