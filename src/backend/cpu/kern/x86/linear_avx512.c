/* LINEAR at the level of Skylake-X: dense weights, and the peak of float multiply-add.  Tiles stay with AVX2: without VNNI a wider
   vpmaddubsw gains little over it. */
#include "backend/cpu/kern/x86/linear_x86.h"

/* As in linear_avx2.c. */
#define ZERO(acc) "vpxord %%" acc ", %%" acc ", %%" acc "\n\t"
#define FMA(acc)  "vfmadd231ps %%zmm15, %%zmm14, %%" acc "\n\t"
static uint64_t peak_fma(uint64_t rounds)
{
    enum { CHAINS = 12, OPS = CHAINS * 16 * 2 };
    uint64_t n = rounds;
    if (!n) return 0;
    __asm__ volatile(ZERO("zmm0") ZERO("zmm1") ZERO("zmm2") ZERO("zmm3") ZERO("zmm4") ZERO("zmm5")
                         ZERO("zmm6") ZERO("zmm7") ZERO("zmm8") ZERO("zmm9") ZERO("zmm10")
                             ZERO("zmm11") ZERO("zmm14") ZERO("zmm15") "1:\n\t" FMA("zmm0")
                                 FMA("zmm1") FMA("zmm2") FMA("zmm3") FMA("zmm4") FMA("zmm5")
                                     FMA("zmm6") FMA("zmm7") FMA("zmm8") FMA("zmm9") FMA("zmm10")
                                         FMA("zmm11") "dec %0\n\tjnz 1b\n\t"
                     : "+r"(n)
                     :
                     : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8",
                       "zmm9", "zmm10", "zmm11", "zmm14", "zmm15", "cc");
    return rounds * OPS;
}
#undef FMA
#undef ZERO

void kern_linear_avx512(kern_linear *k)
{
    k->dense_f32 = avx512_dense_f32;
    k->dense_f16 = avx512_dense_f16;
    k->dense_bf16 = avx512_dense_bf16;
    k->peak_fma = peak_fma;
}
