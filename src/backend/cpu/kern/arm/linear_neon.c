/* LINEAR at the level of NEON: the table, and the loops that measure the machine. */
#include <arm_neon.h>

#include "backend/cpu/kern/arm/linear_arm.h"

static uint64_t read_sum(const void *p, size_t n)
{
    const uint8_t *at = p;
    uint64x2_t s[4] = {vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0)};
    for (size_t i = 0; i + 64 <= n; i += 64) {
        __builtin_prefetch(at + i + 4096, 0, 3);
        for (size_t k = 0; k < 4; k++)
            s[k] = vaddq_u64(s[k], vreinterpretq_u64_u8(vld1q_u8(at + i + 16 * k)));
    }
    return vaddvq_u64(vaddq_u64(vaddq_u64(s[0], s[1]), vaddq_u64(s[2], s[3])));
}

/* smlal and smlal2: 16 products and sums. */
#define DOT_PEAK(acc)                                                                              \
    "smlal v" acc ".8h, v30.8b, v31.8b\n\tsmlal2 v" acc ".8h, v30.16b, v31.16b\n\t"
#define DOT_OPS 32
#include "backend/cpu/kern/arm/peak_dot_body.h"

/* Twelve chains cover a latency of four cycles at up to three a cycle. */
#define FMA(acc) "fmla v" acc ".4s, v30.4s, v31.4s\n\t"
static uint64_t peak_fma(uint64_t rounds)
{
    enum { CHAINS = 12, OPS = CHAINS * 4 * 2 };
    uint64_t n = rounds;
    if (!n) return 0;
    __asm__ volatile("movi v30.4s, #0\n\tmovi v31.4s, #0\n\tmovi v0.4s, #0\n\tmovi v1.4s, #0\n\t"
                     "movi v2.4s, #0\n\tmovi v3.4s, #0\n\tmovi v4.4s, #0\n\tmovi v5.4s, #0\n\t"
                     "movi v6.4s, #0\n\tmovi v7.4s, #0\n\tmovi v16.4s, #0\n\tmovi v17.4s, #0\n\t"
                     "movi v18.4s, #0\n\tmovi v19.4s, #0\n\t"
                     "1:\n\t" FMA("0") FMA("1") FMA("2") FMA("3") FMA("4") FMA("5") FMA("6")
                         FMA("7") FMA("16") FMA("17") FMA("18")
                             FMA("19") "subs %0, %0, #1\n\tb.ne 1b\n\t"
                     : "+r"(n)
                     :
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19",
                       "v30", "v31", "cc");
    return rounds * OPS;
}
#undef FMA

#define LEVEL(name) neon_##name
void kern_linear_neon(kern_linear *k)
{
    k->quant32 = neon_quant32;
    k->quant256 = neon_quant256;
    INSTALL_TILES
    k->dense_f32 = neon_dense_f32;
    k->dense_f16 = neon_dense_f16;
    k->dense_bf16 = neon_dense_bf16;
    k->widen_e4m3 = neon_widen_e4m3;
    k->widen_e5m2 = neon_widen_e5m2;
    k->read_sum = read_sum;
    k->peak_dot = peak_dot;
    k->peak_fma = peak_fma;
}
