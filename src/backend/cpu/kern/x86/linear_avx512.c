/* LINEAR at the level of AVX-512: dense weights, and the peak of float multiply-adds.  Tiles stay with
   AVX2: without VNNI a wider vpmaddubsw gains little over it. */
#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/peak_fma.h"

DEFINE_PEAK_FMA(peak_fma, "zmm", "vpxord", 16)

void kern_linear_avx512(kern_linear *k)
{
    k->dense_f32 = avx512_dense_f32;
    k->dense_f16 = avx512_dense_f16;
    k->dense_bf16 = avx512_dense_bf16;
    k->peak_fma = peak_fma;
}
