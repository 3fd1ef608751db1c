/* LINEAR at the level of AVX2: the table, and the two loops that measure the machine. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/peak_fma.h"

/* Four streams a page keep several lines in flight; software prefetch gains nothing here. */
static uint64_t read_sum(const void *p, size_t n)
{
    const uint8_t *at = p;
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
    for (size_t i = 0; i + 128 <= n; i += 128) {
        const __m256i *v = (const void *)(at + i);
        _mm_prefetch((const char *)at + i + 4096, _MM_HINT_T0);
        _mm_prefetch((const char *)at + i + 4160, _MM_HINT_T0);
        s0 = _mm256_add_epi64(s0, _mm256_loadu_si256(v));
        s1 = _mm256_add_epi64(s1, _mm256_loadu_si256(v + 1));
        s2 = _mm256_add_epi64(s2, _mm256_loadu_si256(v + 2));
        s3 = _mm256_add_epi64(s3, _mm256_loadu_si256(v + 3));
    }
    s0 = _mm256_add_epi64(_mm256_add_epi64(s0, s1), _mm256_add_epi64(s2, s3));
    uint64_t out[4];
    _mm256_storeu_si256((__m256i *)(void *)out, s0);
    return out[0] + out[1] + out[2] + out[3];
}

/* Ten chains of multiply-add and 16-bit add in registers: written out, because a compiler is free to
   put an array of accumulators into memory. */
#define DOT(acc, tmp)                                                                              \
    "vpmaddubsw %%ymm15, %%ymm14, %%" tmp "\n\tvpaddw %%" tmp ", %%" acc ", %%" acc "\n\t"
static uint64_t peak_dot(uint64_t rounds)
{
    enum { CHAINS = 10, OPS = CHAINS * 32 * 2 };
    uint64_t n = rounds;
    if (!n) return 0;
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15\n\t"
                     "1:\n\t" DOT("ymm0", "ymm10") DOT("ymm1", "ymm11") DOT("ymm2", "ymm12")
                         DOT("ymm3", "ymm13") DOT("ymm4", "ymm10") DOT("ymm5", "ymm11")
                             DOT("ymm6", "ymm12") DOT("ymm7", "ymm13") DOT("ymm8", "ymm10")
                                 DOT("ymm9", "ymm11") "dec %0\n\tjnz 1b\n\t"
                     : "+r"(n)
                     :
                     : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8",
                       "ymm9", "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", "ymm15", "cc");
    return rounds * OPS;
}
#undef DOT

DEFINE_PEAK_FMA(peak_fma, "ymm", "vxorps", 8)

#define LEVEL(name) avx2_##name
void kern_linear_avx2(kern_linear *k)
{
    k->quant32 = avx2_quant32;
    k->quant256 = avx2_quant256;
    INSTALL_TILES
    k->dense_f32 = avx2_dense_f32;
    k->dense_f16 = avx2_dense_f16;
    k->dense_bf16 = avx2_dense_bf16;
    k->widen_e4m3 = avx2_widen_e4m3;
    k->widen_e5m2 = avx2_widen_e5m2;
    k->read_sum = read_sum;
    k->peak_dot = peak_dot;
    k->peak_fma = peak_fma;
}
