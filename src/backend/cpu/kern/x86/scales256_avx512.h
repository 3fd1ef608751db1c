/* The scales of Q2_K, IQ4_XS and the codebook types in AVX-512: 32-bit numbers, one a row, of 16 rows.  What the
   levels above AVX-512 share; each file includes it once after linear_tile256_avx512.h. */
/* Bytes m and n of each word, unsigned, as its 16-bit numbers. */
INLINE __m512i pair_of(__m512i v, const int m, const int n)
{
    const char z = (char)0x80, a = (char)m, b = (char)n;
    return _mm512_shuffle_epi8(
        v, _mm512_broadcast_i32x4(_mm_setr_epi8(a, z, b, z, a + 4, z, b + 4, z, a + 8, z, b + 8, z,
                                                a + 12, z, b + 12, z)));
}

/* Q2_K: 16 scales, 8 pairs of minima. */
INLINE void scales_k2(const uint8_t *p, __m512i *sc, __m512i *pair)
{
    for (int i = 0; i < 4; i++) {
        const __m512i v = load(p + TILE_LINE * (1 + i)), s = low_nibbles(v), m = high_nibbles(v);
        sc[4 * i] = byte_of(s, 0), sc[4 * i + 1] = byte_of(s, 1);
        sc[4 * i + 2] = byte_of(s, 2), sc[4 * i + 3] = byte_of(s, 3);
        pair[2 * i] = pair_of(m, 0, 1), pair[2 * i + 1] = pair_of(m, 2, 3);
    }
}

/* IQ4_XS: 8 signed scales. */
INLINE void scales_iq4xs(const uint8_t *p, __m512i *sc)
{
    const __m512i low = load(p + TILE_LINE), centre = _mm512_set1_epi32(-32);
    const __m512i high =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(p + 32)));
    for (unsigned j = 0; j < 8; j++) {
        const __m512i l = _mm512_and_si512(_mm512_srli_epi32(low, 4 * j), _mm512_set1_epi32(15));
        const __m512i h =
            j < 2 ? _mm512_slli_epi32(high, 4 - 2 * j) : _mm512_srli_epi32(high, 2 * j - 4);
        const __m512i s = _mm512_ternarylogic_epi32(l, h, _mm512_set1_epi32(0x30), 0xf8);
        sc[j] = _mm512_add_epi32(s, centre);
    }
}

/* Codebook types with n_line lines of scales: 16; 1 each where there are none. */
INLINE void scales_grid(const int n_line, const uint8_t *p, __m512i *sc)
{
    const unsigned each = n_line == 1 ? 2 : 1; /* runs of 16 */
    const __m512i one = _mm512_set1_epi32(1), nibble = _mm512_set1_epi32(15);
    for (int j = 0; j < 16; j++) sc[j] = one;
    for (int i = 0; i < n_line; i++) {
        const __m512i v = load(p + TILE_LINE * i);
        for (unsigned j = 0; j < 8; j++) {
            const __m512i s = _mm512_and_si512(_mm512_srli_epi32(v, 4 * j), nibble);
            for (unsigned e = 0; e < each; e++)
                sc[8 * (unsigned)i + each * j + e] = _mm512_add_epi32(_mm512_add_epi32(s, s), one);
        }
    }
}

/* d of 16 rows whose levels are `unit` times as large. */
INLINE __m512 halves_times(const uint8_t *p, const float unit)
{
    return _mm512_mul_ps(halves(p), _mm512_set1_ps(unit));
}
