/* The peak of a level's dots, eight chains on registers alone: written out, because a compiler is free to put
   an array of accumulators into memory.  Included after DOT_PEAK and DOT_OPS, the operations of one. */
static uint64_t peak_dot(uint64_t rounds)
{
    enum { CHAINS = 8 };
    uint64_t n = rounds;
    if (!n) return 0;
    __asm__ volatile("movi v30.4s, #0\n\tmovi v31.4s, #0\n\t"
                     "1:\n\t" DOT_PEAK("0") DOT_PEAK("1") DOT_PEAK("2") DOT_PEAK("3") DOT_PEAK("4")
                         DOT_PEAK("5") DOT_PEAK("6") DOT_PEAK("7") "subs %0, %0, #1\n\tb.ne 1b\n\t"
                     : "+r"(n)
                     :
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v30", "v31", "cc");
    return rounds * CHAINS * DOT_OPS;
}
