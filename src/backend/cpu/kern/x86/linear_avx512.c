/* LINEAR at the level of AVX-512: dense weights, activations by 32, and the peak of float multiply-adds.  Tiles stay with
   AVX2: without VNNI a wider vpmaddubsw gains little over it. */
#include <immintrin.h>

#include "backend/cpu/kern/x86/lanes_avx512.h"
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/peak_fma.h"

#include "backend/cpu/kern/body/fetch.h"

DEFINE_PEAK_FMA(peak_fma, "zmm", "vpxord", 16)

/* As the kernels fetch.  AVX2's loop reads 20 GB/s where this reads 33 (Sapphire Rapids, two threads, 400 MB). */
static uint64_t read_sum(const void *p, size_t n)
{
    const uint8_t *at = p;
    __m512i s[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                    _mm512_setzero_si512()};
    for (size_t i = 0; i + 256 <= n; i += 256)
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            prefetch(at + i + 64 * k);
            s[k] = _mm512_add_epi64(s[k], _mm512_loadu_si512(at + i + 64 * k));
        }
    s[0] = _mm512_add_epi64(_mm512_add_epi64(s[0], s[1]), _mm512_add_epi64(s[2], s[3]));
    uint64_t part[8], sum = 0; /* gcc's reduction adds signed numbers, which overflow */
    _mm512_storeu_si512(part, s[0]);
    for (size_t i = 0; i < 8; i++) sum += part[i];
    return sum;
}

void kern_linear_avx512(kern_linear *k)
{
    k->quant32 = avx512_quant32;
    k->dense_f32 = avx512_dense_f32;
    k->dense_f16 = avx512_dense_f16;
    k->dense_bf16 = avx512_dense_bf16;
    k->widen_e4m3 = avx512_widen_e4m3;
    k->widen_e5m2 = avx512_widen_e5m2;
    k->peak_fma = peak_fma;
    k->read_sum = read_sum;
}
