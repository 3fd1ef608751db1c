/* IQ4_XS in AVX2's registers: what its files share, whatever their dots.  Included after dots_LEVEL.h. */
#include "backend/cpu/kern/x86/tile256_avx2_body.h"

#include "backend/cpu/kern/body/linear_iq4xs_body.h"

/* The 8 scales of 8 rows.  p: the half's part of its group; high16: the high bits. */
INLINE void scales(const uint8_t *high16, const uint8_t *p, __m256i *sc)
{
    const __m256i low = load(p + TILE_LINE), centre = _mm256_set1_epi8(32);
    /* Nibble i of the high bits to byte i. */
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)high16));
    x = _mm256_or_si256(x, _mm256_slli_epi32(x, 8));
    x = _mm256_and_si256(x, _mm256_set1_epi32(0xff00ff));
    x = _mm256_or_si256(x, _mm256_slli_epi32(x, 4));
    const __m256i even = _mm256_or_si256(low_nibbles(low), and8(_mm256_slli_epi16(x, 4), 0x30));
    const __m256i odd = _mm256_or_si256(high_nibbles(low), and8(_mm256_slli_epi16(x, 2), 0x30));
    const __m256i e = _mm256_sub_epi8(even, centre), o = _mm256_sub_epi8(odd, centre);
    for (int m = 0; m < 4; m++) {
        sc[2 * m] = signed_scale_of(stored_bits(BITS_IQ4), scale_lines(BITS_IQ4), e, m);
        sc[2 * m + 1] = signed_scale_of(stored_bits(BITS_IQ4), scale_lines(BITS_IQ4), o, m);
    }
}
