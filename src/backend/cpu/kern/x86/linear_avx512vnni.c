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

#define LEVEL(name) vnni_##name
void kern_linear_avx512vnni(kern_linear *k)
{
    INSTALL_TILES
    k->leads = true;
    k->peak_dot = peak_dot;
}
