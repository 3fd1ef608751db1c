/* LINEAR at the level of Skylake-X: dense weights.  Tiles stay with AVX2: without VNNI a wider
   vpmaddubsw gains little over it. */
#include "backend/cpu/kern/x86/linear_x86.h"

void kern_linear_avx512(kern_linear *k)
{
    k->dense_f32 = avx512_dense_f32;
    k->dense_f16 = avx512_dense_f16;
    k->dense_bf16 = avx512_dense_bf16;
}
