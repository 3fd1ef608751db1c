/* The AVX-512 instructions that the kernels of LINEAR use, in plain C over AVX2: so that machines without
   them test these kernels too, bit for bit.  Include before the kernel's source. */
#ifndef TESTS_EMULATE_AVX512_H
#define TESTS_EMULATE_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef union emu512 {
    int8_t i8[64];
    uint8_t u8[64];
    int16_t i16[32];
    uint16_t u16[32];
    int32_t i32[16];
    uint32_t u32[16];
    float f32[16];
    __m256 ps[2];
} emu512;

#define DOTS_INTRINSICS /* in the kernels' dots_avx512vnni.h */

#define EMU    static inline __attribute__((unused))
#define FOR(n) for (int i = 0; i < (n); i++)
/* What works on registers alone: nothing to sanitize, and optimised where kernels over it are not, which would take
   the compiler minutes. */
#if defined(__clang__)
#define EMU_ALU EMU __attribute__((no_sanitize("address", "undefined")))
#else
#define EMU_ALU EMU __attribute__((no_sanitize("address", "undefined"), optimize("O2")))
#endif

EMU emu512 emu_load(const void *p)
{
    emu512 r;
    memcpy(&r, p, sizeof r);
    return r;
}
EMU void emu_store(void *p, emu512 a)
{
    if ((uintptr_t)p % 64) __builtin_trap(); /* aligned stores alone are used */
    memcpy(p, &a, sizeof a);
}
EMU emu512 emu_load_aligned(const void *p)
{
    if ((uintptr_t)p % 64) __builtin_trap();
    return emu_load(p);
}
EMU_ALU emu512 emu_set1_epi32(int32_t v)
{
    emu512 r;
    FOR(16) r.i32[i] = v;
    return r;
}
EMU_ALU emu512 emu_set1_epi16(int16_t v)
{
    emu512 r;
    FOR(32) r.i16[i] = v;
    return r;
}
EMU_ALU emu512 emu_set1_epi8(int8_t v)
{
    emu512 r;
    FOR(64) r.i8[i] = v;
    return r;
}
EMU_ALU emu512 emu_set1_ps(float v)
{
    emu512 r;
    FOR(16) r.f32[i] = v;
    return r;
}
EMU_ALU emu512 emu_zero(void)
{
    return emu_set1_epi32(0);
}
EMU_ALU emu512 emu_cvtph_ps(__m256i h)
{
    emu512 r;
    __m128i half[2];
    memcpy(half, &h, sizeof h);
    r.ps[0] = _mm256_cvtph_ps(half[0]);
    r.ps[1] = _mm256_cvtph_ps(half[1]);
    return r;
}
EMU_ALU emu512 emu_broadcast_i32x4(__m128i v)
{
    emu512 r;
    FOR(4) memcpy(&r.u8[16 * i], &v, sizeof v);
    return r;
}
EMU_ALU emu512 emu_shuffle_epi8(emu512 a, emu512 b)
{
    emu512 r;
    FOR(64) r.u8[i] = b.u8[i] & 0x80 ? 0 : a.u8[i / 16 * 16 + (b.u8[i] & 15)];
    return r;
}
EMU_ALU emu512 emu_ternarylogic(emu512 a, emu512 b, emu512 c, int imm)
{
    emu512 r = {{0}};
    for (int at = 0; at < 8; at++) { /* a bit of each is one of eight cases */
        const uint32_t m = imm >> at & 1 ? UINT32_MAX : 0;
        const uint32_t not_a = at & 4 ? 0 : UINT32_MAX, not_b = at & 2 ? 0 : UINT32_MAX,
                       not_c = at & 1 ? 0 : UINT32_MAX;
        FOR(16) r.u32[i] |= m & (a.u32[i] ^ not_a) & (b.u32[i] ^ not_b) & (c.u32[i] ^ not_c);
    }
    return r;
}
#define EMU_EACH(name, n, field, expr)                                                             \
    EMU_ALU emu512 emu_##name(emu512 a, emu512 b)                                                  \
    {                                                                                              \
        FOR(n) a.field[i] = expr;                                                                  \
        return a;                                                                                  \
    }
EMU_EACH(and, 16, u32, a.u32[i] & b.u32[i])
EMU_EACH(xor, 16, u32, a.u32[i] ^ b.u32[i])
EMU_EACH(sub_epi32, 16, u32, a.u32[i] - b.u32[i])
EMU_EACH(sllv_epi32, 16, u32, b.u32[i] < 32 ? a.u32[i] << b.u32[i] : 0)
EMU_EACH(or, 16, u32, a.u32[i] | b.u32[i])
EMU_EACH(sub_epi16, 32, u16, (uint16_t)(a.u16[i] - b.u16[i]))
EMU_EACH(mullo_epi16, 32, u16, (uint16_t)((uint32_t)a.u16[i] * b.u16[i]))
EMU_EACH(add_epi32, 16, u32, a.u32[i] + b.u32[i])
EMU_EACH(add_ps, 16, f32, a.f32[i] + b.f32[i])
EMU_EACH(sub_ps, 16, f32, a.f32[i] - b.f32[i])
EMU_EACH(sub_epi8, 64, u8, (uint8_t)(a.u8[i] - b.u8[i]))
EMU_EACH(mullo_epi32, 16, u32, a.u32[i] * b.u32[i])
EMU_EACH(mul_ps, 16, f32, a.f32[i] * b.f32[i])
#define EMU_SHIFT(name, n, field, type, expr)                                                      \
    EMU_ALU emu512 emu_##name(emu512 a, unsigned s)                                                \
    {                                                                                              \
        FOR(n) a.field[i] = (type)(expr);                                                          \
        return a;                                                                                  \
    }
EMU_SHIFT(srli_epi16, 32, u16, uint16_t, a.u16[i] >> s)
EMU_SHIFT(slli_epi16, 32, u16, uint16_t, a.u16[i] << s)
EMU_SHIFT(srli_epi32, 16, u32, uint32_t, a.u32[i] >> s)
EMU_SHIFT(slli_epi32, 16, u32, uint32_t, a.u32[i] << s)
EMU_SHIFT(srai_epi32, 16, i32, int32_t, a.i32[i] >> s)
EMU_ALU emu512 emu_cvtepi32_ps(emu512 a)
{
    FOR(16) a.f32[i] = (float)a.i32[i];
    return a;
}
EMU_ALU emu512 emu_fmadd_ps(emu512 a, emu512 b, emu512 c)
{
    FOR(16) c.f32[i] = __builtin_fmaf(a.f32[i], b.f32[i], c.f32[i]);
    return c;
}
EMU_ALU emu512 emu_fnmadd_ps(emu512 a, emu512 b, emu512 c)
{
    FOR(16) c.f32[i] = __builtin_fmaf(-a.f32[i], b.f32[i], c.f32[i]);
    return c;
}
EMU_ALU emu512 emu_mask3_fmadd_ps(emu512 a, emu512 b, emu512 c, uint16_t m)
{
    FOR(16) if (m >> i & 1) c.f32[i] = __builtin_fmaf(a.f32[i], b.f32[i], c.f32[i]);
    return c;
}
/* c += unsigned bytes of a times signed bytes of b, four a lane. */
EMU_ALU emu512 emu_dpbusd(emu512 c, emu512 a, emu512 b)
{
    FOR(64) c.i32[i / 4] += a.u8[i] * b.i8[i];
    return c;
}
/* Unsigned bytes of a times signed bytes of b, sums of two cut to 16 bits. */
EMU_ALU emu512 emu_maddubs(emu512 a, emu512 b)
{
    emu512 r;
    FOR(32)
    {
        const int s = a.u8[2 * i] * b.i8[2 * i] + a.u8[2 * i + 1] * b.i8[2 * i + 1];
        r.i16[i] = (int16_t)(s > INT16_MAX ? INT16_MAX : s < INT16_MIN ? INT16_MIN : s);
    }
    return r;
}
EMU_ALU emu512 emu_dpwssd(emu512 c, emu512 a, emu512 b)
{
    FOR(32) c.i32[i / 2] += a.i16[i] * b.i16[i];
    return c;
}
EMU emu512 emu_maskz_loadu_ps(uint16_t m, const void *p)
{
    emu512 r = emu_zero();
    FOR(16) if (m >> i & 1) memcpy(&r.f32[i], (const uint8_t *)p + 4 * i, 4);
    return r;
}
EMU __m256i emu_maskz_loadu_epi16(uint16_t m, const void *p)
{
    uint16_t r[16] = {0};
    FOR(16) if (m >> i & 1) memcpy(&r[i], (const uint8_t *)p + 2 * i, 2);
    return _mm256_loadu_si256((const __m256i *)(const void *)r);
}
EMU_ALU emu512 emu_cvtepu16_epi32(__m256i h)
{
    uint16_t v[16];
    emu512 r;
    _mm256_storeu_si256((__m256i *)(void *)v, h);
    FOR(16) r.u32[i] = v[i];
    return r;
}

EMU_ALU emu512 emu_cvtepu8_epi32(__m128i b)
{
    uint8_t v[16];
    emu512 r;
    memcpy(v, &b, sizeof v);
    FOR(16) r.u32[i] = v[i];
    return r;
}
EMU_ALU uint16_t emu_cmplt_epi32_mask(emu512 a, emu512 b)
{
    unsigned m = 0;
    FOR(16) m |= (unsigned)(a.i32[i] < b.i32[i]) << i;
    return (uint16_t)m;
}
EMU_ALU emu512 emu_mask_mov_epi32(emu512 no, uint16_t m, emu512 yes)
{
    FOR(16) if (m >> i & 1) no.u32[i] = yes.u32[i];
    return no;
}

EMU_ALU __m256 emu_half(emu512 a, int n)
{
    return a.ps[n];
}
EMU_ALU __m128 emu_quarter(__m256 a, int n)
{
    __m128 r;
    memcpy(&r, (const uint8_t *)&a + 16 * n, sizeof r);
    return r;
}
EMU_ALU __m128 emu_lane_1(__m128 a)
{
    float v[4];
    memcpy(v, &a, sizeof v);
    return _mm_set_ss(v[1]);
}

/* Without optimisation some are macros. */
#undef _mm512_loadu_si512
#undef _mm512_load_ps
#undef _mm512_loadu_ps
#undef _mm512_store_ps
#undef _mm512_store_si512
#undef _mm512_set1_epi32
#undef _mm512_set1_epi16
#undef _mm512_set1_epi8
#undef _mm512_set1_ps
#undef _mm512_setzero_si512
#undef _mm512_setzero_ps
#undef _mm512_cvtph_ps
#undef _mm512_ternarylogic_epi32
#undef _mm512_and_si512
#undef _mm512_xor_si512
#undef _mm512_sub_epi32
#undef _mm512_sllv_epi32
#undef _mm512_cvtepu8_epi32
#undef _mm512_cmplt_epi32_mask
#undef _mm512_mask_mov_epi32
#undef _mm512_or_si512
#undef _mm512_sub_epi16
#undef _mm512_mullo_epi16
#undef _mm512_maddubs_epi16
#undef _mm512_add_epi32
#undef _mm512_sub_epi8
#undef _mm512_mullo_epi32
#undef _mm512_mul_ps
#undef _mm512_srli_epi16
#undef _mm512_slli_epi16
#undef _mm512_srli_epi32
#undef _mm512_slli_epi32
#undef _mm512_srai_epi32
#undef _mm512_cvtepi32_ps
#undef _mm512_add_ps
#undef _mm512_sub_ps
#undef _mm512_fmadd_ps
#undef _mm512_fnmadd_ps
#undef _mm512_mask3_fmadd_ps
#undef _mm512_broadcast_i32x4
#undef _mm512_shuffle_epi8
#undef _mm512_dpbusd_epi32
#undef _mm512_dpwssd_epi32
#undef _mm512_maskz_loadu_ps
#undef _mm256_maskz_loadu_epi16
#undef _mm512_cvtepu16_epi32
#undef _mm512_castsi512_ps
#undef _mm512_castps512_ps256
#undef _mm512_extractf32x8_ps
#undef _mm256_extractf128_ps
#undef _mm_shuffle_ps
#undef _mm_prefetch

#define __m512                       emu512
#define __m512i                      emu512
#define __mmask16                    uint16_t
#define _mm512_loadu_si512           emu_load
#define _mm512_load_ps               emu_load_aligned
#define _mm512_loadu_ps              emu_load
#define _mm512_store_ps              emu_store
#define _mm512_store_si512           emu_store
#define _mm512_set1_epi32            emu_set1_epi32
#define _mm512_set1_epi16            emu_set1_epi16
#define _mm512_set1_epi8             emu_set1_epi8
#define _mm512_set1_ps               emu_set1_ps
#define _mm512_setzero_si512         emu_zero
#define _mm512_setzero_ps            emu_zero
#define _mm512_cvtph_ps              emu_cvtph_ps
#define _mm512_ternarylogic_epi32    emu_ternarylogic
#define _mm512_and_si512             emu_and
#define _mm512_xor_si512             emu_xor
#define _mm512_sub_epi32             emu_sub_epi32
#define _mm512_sllv_epi32            emu_sllv_epi32
#define _mm512_cvtepu8_epi32         emu_cvtepu8_epi32
#define _mm512_cmplt_epi32_mask      emu_cmplt_epi32_mask
#define _mm512_mask_mov_epi32        emu_mask_mov_epi32
#define _mm512_or_si512              emu_or
#define _mm512_sub_epi16             emu_sub_epi16
#define _mm512_mullo_epi16           emu_mullo_epi16
#define _mm512_maddubs_epi16         emu_maddubs
#define _mm512_add_epi32             emu_add_epi32
#define _mm512_sub_epi8              emu_sub_epi8
#define _mm512_mullo_epi32           emu_mullo_epi32
#define _mm512_mul_ps                emu_mul_ps
#define _mm512_srli_epi16            emu_srli_epi16
#define _mm512_slli_epi16            emu_slli_epi16
#define _mm512_srli_epi32            emu_srli_epi32
#define _mm512_slli_epi32            emu_slli_epi32
#define _mm512_srai_epi32            emu_srai_epi32
#define _mm512_cvtepi32_ps           emu_cvtepi32_ps
#define _mm512_add_ps                emu_add_ps
#define _mm512_sub_ps                emu_sub_ps
#define _mm512_fmadd_ps              emu_fmadd_ps
#define _mm512_fnmadd_ps             emu_fnmadd_ps
#define _mm512_mask3_fmadd_ps        emu_mask3_fmadd_ps
#define _mm512_broadcast_i32x4       emu_broadcast_i32x4
#define _mm512_shuffle_epi8          emu_shuffle_epi8
#define _mm512_dpbusd_epi32          emu_dpbusd
#define _mm512_dpwssd_epi32          emu_dpwssd
#define _mm512_maskz_loadu_ps        emu_maskz_loadu_ps
#define _mm256_maskz_loadu_epi16     emu_maskz_loadu_epi16
#define _mm512_cvtepu16_epi32        emu_cvtepu16_epi32
#define _mm512_castsi512_ps(a)       (a)
#define _mm512_castps512_ps256(a)    emu_half(a, 0)
#define _mm512_extractf32x8_ps(a, n) emu_half(a, n)
#define _mm256_extractf128_ps(a, n)  emu_quarter(a, n)
#define _mm_shuffle_ps(a, b, n)      emu_lane_1(a)
#define _mm_prefetch(p, hint)        ((void)(p))

#endif
