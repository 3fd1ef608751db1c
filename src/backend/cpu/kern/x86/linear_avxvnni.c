/* LINEAR at the level of AVX-VNNI: the table, and the peak of its vpdpbusd. */
#include "backend/cpu/kern/x86/linear_x86.h"

/* Twelve chains in registers, written out: a compiler is free to put an array of accumulators into memory. */
#define DOT(acc) "%{vex%} vpdpbusd %%ymm15, %%ymm14, %%" acc "\n\t"
static uint64_t peak_dot(uint64_t rounds)
{
    enum { CHAINS = 12, OPS = CHAINS * 32 * 2 };
    uint64_t n = rounds;
    if (!n) return 0;
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15\n\t"
                     "1:\n\t" DOT("ymm0") DOT("ymm1") DOT("ymm2") DOT("ymm3") DOT("ymm4")
                         DOT("ymm5") DOT("ymm6") DOT("ymm7") DOT("ymm8") DOT("ymm9") DOT("ymm10")
                             DOT("ymm11") "dec %0\n\tjnz 1b\n\t"
                     : "+r"(n)
                     :
                     : "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8",
                       "ymm9", "ymm10", "ymm11", "ymm14", "ymm15", "cc");
    return rounds * OPS;
}
#undef DOT

#define LEVEL(name) avxvnni_##name
void kern_linear_avxvnni(kern_linear *k)
{
    INSTALL_TILES
    k->peak_dot = peak_dot;
}
