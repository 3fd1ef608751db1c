/* Activations to 8 bits: what the levels share.  Each includes it once, after it has defined

     abs_max(x, n)                     the largest bits of magnitudes of n floats, as a float
     round32(x, inv, d, q, rest)       q = rne(x·inv) of 32, and rest = fma(-q, d, x) if it is given
     sums16(q, lo, hi)                 the sums of the first and the last 16 of 32
     sums4(q, out)                     the eight sums of 4 of 32

   The largest magnitude is an integer maximum of the bits, as in the reference, so that NaN and infinity come
   out on top.  |x·inv| ≤ 127·(1 + 2^-22): it never rounds past 127. */

/* Writes q and, if `rest` is given, what is left of x (it may be x). */
INLINE float quant_group(const float *x, size_t n, int8_t *q, float *rest)
{
    const float amax = abs_max(x, n);
    if (!(amax >= 0x1p-120f && amax < __builtin_inff())) {
        memset(q, 0, n);
        if (rest && rest != x) memcpy(rest, x, n * sizeof *x);
        if (amax < 0x1p-120f) return 0.0f;
        if (rest) memset(rest, 0, n * sizeof *x);
        return __builtin_nanf("");
    }
    const float d = amax / 127.0f, inv = 127.0f / amax;
    for (size_t i = 0; i < n; i += 32) round32(x + i, inv, d, q + i, rest ? rest + i : NULL);
    return d;
}

INLINE void finish32(a8_32 *a, float d)
{
    int32_t lo, hi;
    sums16(a->q, &lo, &hi);
    const int32_t sum = lo + hi;
    a->d = d;
    a->s = d * (float)sum;
    a->n8 = -8 * sum;
    a->n16 = -16 * sum;
    a->n128 = -128 * sum;
    a->n32_16[0] = -32 * lo, a->n32_16[1] = -32 * hi;
    a->s16[0] = (int16_t)lo, a->s16[1] = (int16_t)hi;
}

INLINE void finish256(a8_256 *a, float d)
{
    static const uint8_t order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    int32_t s8[32], s32[8];
    a->d = d;
    for (int i = 0; i < 8; i++) {
        int32_t s4[8];
        sums4(a->q + 32 * i, s4);
        for (int k = 0; k < 4; k++) s8[4 * i + k] = s4[2 * k] + s4[2 * k + 1];
    }
    for (int i = 0; i < 32; i++) a->n8[i] = -32 * s8[i];
    for (int i = 0; i < 16; i++) {
        const int32_t s = s8[2 * i] + s8[2 * i + 1];
        a->s16[i] = (int16_t)s;
        a->n16[i] = -16 * s;
    }
    for (int i = 0; i < 8; i++) {
        s32[i] = a->s16[2 * i] + a->s16[2 * i + 1];
        a->n32[i] = -8 * s32[i];
    }
    for (int i = 0; i < 8; i++) a->s32[i] = (int16_t)s32[order[i]];
    memset(a->pad, 0, sizeof a->pad);
}

#define DEFINE_QUANT(name, type, n, finish)                                                        \
    void name(const float *x, int32_t n_block, int32_t terms, type *out, size_t stride)            \
    {                                                                                              \
        for (int32_t b = 0; b < n_block; b++, x += (n)) {                                          \
            type *a = (type *)(void *)((uint8_t *)out + (size_t)b * stride);                       \
            float rest[n];                                                                         \
            finish(a, quant_group(x, n, a->q, terms > 1 ? rest : NULL));                           \
            for (int32_t i = 1; i < terms; i++)                                                    \
                finish(&a[i], quant_group(rest, n, a[i].q, i + 1 < terms ? rest : NULL));          \
        }                                                                                          \
    }
