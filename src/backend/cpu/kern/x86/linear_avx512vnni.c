/* LINEAR at the level of AVX-512 VNNI: the table, and the peak of vpdpbusd. */

#include "backend/cpu/kern/x86/linear_x86.h"

/* Sixteen chains in registers, written out: a compiler is free to put an array of accumulators into
   memory, and did, at a third of the speed. */
#define DOT(acc) "vpdpbusd %%zmm31, %%zmm30, %%" acc "\n\t"
static uint64_t peak_dot(uint64_t rounds)
{
    enum { CHAINS = 16, OPS = CHAINS * 64 * 2 };
    uint64_t n = rounds;
    if (!n) return 0;
    __asm__ volatile(
        "vpxord %%zmm30, %%zmm30, %%zmm30\n\tvpxord %%zmm31, %%zmm31, %%zmm31\n\t"
        "1:\n\t" DOT("zmm0") DOT("zmm1") DOT("zmm2") DOT("zmm3") DOT("zmm4") DOT("zmm5") DOT("zmm6")
            DOT("zmm7") DOT("zmm8") DOT("zmm9") DOT("zmm10") DOT("zmm11") DOT("zmm12") DOT("zmm13")
                DOT("zmm14") DOT("zmm15") "dec %0\n\tjnz 1b\n\t"
        : "+r"(n)
        :
        : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8", "zmm9", "zmm10",
          "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm30", "zmm31", "cc");
    return rounds * OPS;
}
#undef DOT

void kern_linear_avx512vnni(kern_linear *k)
{
    k->tile[TILE_Q4_0] = vnni_tile_q4_0;
    k->tile[TILE_Q4_1] = vnni_tile_q4_1;
    k->tile[TILE_Q5_0] = vnni_tile_q5_0;
    k->tile[TILE_Q5_1] = vnni_tile_q5_1;
    k->tile[TILE_Q8_0] = vnni_tile_q8_0;
    k->tile[TILE_IQ4_NL] = vnni_tile_iq4_nl;
    k->tile[TILE_Q2_K] = vnni_tile_q2_k;
    k->tile[TILE_Q3_K] = vnni_tile_q3_k;
    k->tile[TILE_IQ4_XS] = vnni_tile_iq4_xs;
    k->tile[TILE_Q4_K] = vnni_tile_q4_k;
    k->tile[TILE_Q5_K] = vnni_tile_q5_k;
    k->tile[TILE_Q6_K] = vnni_tile_q6_k;
    k->tile[TILE_MXFP4] = vnni_tile_mxfp4;
    k->tile[TILE_NVFP4] = vnni_tile_nvfp4;
    k->tile[TILE_IQ3_S] = vnni_tile_iq3_s;
    k->tile[TILE_IQ3_XXS] = vnni_tile_iq3_xxs;
    k->tile[TILE_IQ2_XXS] = vnni_tile_iq2_xxs;
    k->tile[TILE_IQ2_XS] = vnni_tile_iq2_s;
    k->tile[TILE_IQ2_S] = vnni_tile_iq2_s;
    k->tile[TILE_IQ1_S] = vnni_tile_iq1_s;
    k->tile[TILE_IQ1_M] = vnni_tile_iq1_m;
    k->tile[TILE_TQ1_0] = vnni_tile_tq;
    k->tile[TILE_TQ2_0] = vnni_tile_tq;
    k->fine[TILE_Q4_K] = vnni_fine_q4_k;
    k->fine[TILE_Q5_K] = vnni_fine_q5_k;
    k->fine[TILE_Q6_K] = vnni_fine_q6_k;
    k->affine[AFFINE_4] = vnni_affine_4;
    k->affine[AFFINE_5] = vnni_affine_5;
    k->affine[AFFINE_8] = vnni_affine_8;
    k->peak_dot = peak_dot;
}
