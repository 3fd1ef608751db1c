/* The peak of float multiply-adds: twelve chains of a level's registers, which cover a latency of up to six
   cycles at two a cycle; zeroed, since a leftover that is no normal number may be slow. */
#ifndef PEAK_FMA_H
#define PEAK_FMA_H

#include <stdint.h>

/* Defines fn; `reg` names a register but for its number, `zero` its exclusive or, `lanes` its floats. */
#define DEFINE_PEAK_FMA(fn, reg, zero, lanes)                                                      \
    static uint64_t fn(uint64_t rounds)                                                            \
    {                                                                                              \
        enum { CHAINS = 12, OPS = CHAINS * (lanes)*2 };                                            \
        uint64_t n = rounds;                                                                       \
        if (!n) return 0;                                                                          \
        __asm__ volatile(PEAK_CHAINS(PEAK_ZERO, reg, zero) PEAK_ZERO(14, reg, zero)                \
                             PEAK_ZERO(15, reg, zero) "1:\n\t" PEAK_CHAINS(                        \
                                 PEAK_STEP, reg, zero) "dec %0\n\tjnz 1b\n\t"                      \
                         : "+r"(n)                                                                 \
                         :                                                                         \
                         : reg "0", reg "1", reg "2", reg "3", reg "4", reg "5", reg "6", reg "7", \
                           reg "8", reg "9", reg "10", reg "11", reg "14", reg "15", "cc");        \
        return rounds * OPS;                                                                       \
    }

#define PEAK_REG(i, reg) "%%" reg #i
#define PEAK_ZERO(i, reg, zero)                                                                    \
    zero " " PEAK_REG(i, reg) ", " PEAK_REG(i, reg) ", " PEAK_REG(i, reg) "\n\t"
#define PEAK_STEP(i, reg, zero)                                                                    \
    "vfmadd231ps " PEAK_REG(15, reg) ", " PEAK_REG(14, reg) ", " PEAK_REG(i, reg) "\n\t"
#define PEAK_CHAINS(X, reg, zero)                                                                  \
    X(0, reg, zero)                                                                                \
    X(1, reg, zero)                                                                                \
    X(2, reg, zero)                                                                                \
    X(3, reg, zero)                                                                                \
    X(4, reg, zero)                                                                                \
    X(5, reg, zero)                                                                                \
    X(6, reg, zero)                                                                                \
    X(7, reg, zero) X(8, reg, zero) X(9, reg, zero) X(10, reg, zero) X(11, reg, zero)

#endif
