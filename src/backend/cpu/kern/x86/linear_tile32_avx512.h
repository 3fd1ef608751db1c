/* Tiles of the formats with 32 weights a block, affine ones and those of e2m1, in AVX-512: lines into weights,
   heads into floats.  What the levels above AVX-512 share; each includes it once after
   linear_tile32_form.h and words_avx512.h. */
/* 2^(e − 128) of sixteen bytes: d, as codes are twice the values of e2m1. */
INLINE __m512 scales_e8m0(const uint8_t *p)
{
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m512i whole = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e); /* denormal */
    const __mmask16 small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(whole, small, tiny));
}
/* Likewise half of e4m3: as f16 its bits are 2^−8 of the value. */
INLINE __m512 scales_e4m3(const uint8_t *p)
{
    const __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m256i h = _mm256_and_si256(_mm256_slli_epi16(v, 7), _mm256_set1_epi16((short)0xbfff));
    return _mm512_mul_ps(_mm512_cvtph_ps(h), _mm512_set1_ps(128.0f));
}
/* Sixteen of d or of the minimum. */
INLINE __m512 scales(form f, const uint8_t *p)
{
    if (f.head == HEAD_E8M0) return scales_e8m0(p);
    if (f.head == HEAD_E4M3) return scales_e4m3(p);
    if (f.head == HEAD_F32) return _mm512_loadu_ps(p);
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (f.head == HEAD_F16) return _mm512_cvtph_ps(v);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}
/* a | (b & c) */
INLINE __m512i or_and(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0xf8);
}
/* The two words of line s of 16 rows; `fifth`: their fifth bits. */
INLINE void unpack_line(form f, __m512i v, __m512i fifth, const unsigned s, __m512i *lo,
                        __m512i *hi)
{
    *lo = low_nibbles(v);
    *hi = high_nibbles(v);
    if (f.bits == E2M1) {
        *lo = look_up(_mm_setr_epi8(E2M1_CODES), *lo);
        *hi = look_up(_mm_setr_epi8(E2M1_CODES), *hi);
    }
    if (f.bits == IQ4) {
        *lo = iq4_levels(*lo);
        *hi = iq4_levels(*hi);
    }
    if (f.bits == BITS5) {
        const __m512i bit = _mm512_set1_epi8(16);
        *lo = or_and(*lo, _mm512_slli_epi32(fifth, 4 - s), bit);
        *hi = or_and(*hi, _mm512_srli_epi32(fifth, s), bit);
    }
}
/* A block: weights less `centre` in 8 lines a group, d, and the minimum or second scale if the form has one. */
INLINE void unpack_block(form f, const walk *at, const int centre, uint8_t (*w)[8][TILE_LINE],
                         float *d, float *m)
{
    const uint8_t *line = at->codes;
    for (int g = 0; g < 2; g++) {
        __m512i fifth = _mm512_setzero_si512(), lo, hi;
        _mm512_store_ps(d + 16 * g, scales(f, head_d(f, at->head, 16 * g)));
        if (f.min || f.halves) _mm512_store_ps(m + 16 * g, scales(f, head_m(f, at->head, 16 * g)));
        if (f.bits == BITS8) {
            for (int s = 0; s < 8; s++, line += TILE_LINE)
                _mm512_store_si512(w[g][s], sub8(load(line), centre));
            continue;
        }
        if (f.bits == BITS5) {
            fifth = load(line);
            line += TILE_LINE;
        }
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++, line += TILE_LINE) {
            unpack_line(f, load(line), fifth, (unsigned)s, &lo, &hi);
            _mm512_store_si512(w[g][s], sub8(lo, centre));
            _mm512_store_si512(w[g][4 + s], sub8(hi, centre));
        }
    }
}
