/* The AVX-512 kernels of floats of 8 bits over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avx512_vec.h"

EMU __m256i emu_ternary256(__m256i a, __m256i b, __m256i c, int imm)
{
    emu512 v[3] = {{.ps = {_mm256_castsi256_ps(a)}},
                   {.ps = {_mm256_castsi256_ps(b)}},
                   {.ps = {_mm256_castsi256_ps(c)}}};
    return _mm256_castps_si256(emu_ternarylogic(v[0], v[1], v[2], imm).ps[0]);
}
#undef _mm256_ternarylogic_epi32
#define _mm256_ternarylogic_epi32 emu_ternary256

#define avx512_widen_e4m3 emulated_widen_e4m3
#define avx512_widen_e5m2 emulated_widen_e5m2
#include "backend/cpu/kern/x86/linear_f8_avx512.c"
#else
typedef int nothing_here;
#endif
