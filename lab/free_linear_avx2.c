/* Q4_K times 8-bit activations with every freedom that the format leaves on AVX2: one scale a row, so that
   it is applied once; minima as floats beside the dots; in the GEMV, two chains of floats a row and
   no sum in memory. */
#include <string.h>

#include "backend/cpu/kern/x86/words_avx2.h"
#include "free.h"

enum { GROUP = 36 * TILE_LINE, BLOCK = 2 * GROUP, VECS = 4, AHEAD_L1 = 1024, AHEAD_L2 = 6144 };

typedef struct free_panel {
    uint8_t w[4][64][32] __attribute__((aligned(32)));
    int16_t sc[4][8][16];
    int16_t pair[4][4][16];
    float d[4][8], dmin[4][8];
} free_panel;
_Static_assert(sizeof(free_panel) <= 2 * TILE_PANEL, "panel");

INLINE __m256 halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
/* Byte n of each row's word, twice as 16 bits. */
INLINE __m256i scale_pair(__m256i v, const int n)
{
    const char z = (char)0x80;
    const char b = (char)n;
    const __m128i at =
        _mm_setr_epi8(b, z, b, z, b + 4, z, b + 4, z, b + 8, z, b + 8, z, b + 12, z, b + 12, z);
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(at));
}

/* The scales of 8 rows, four a register, and their minima in pairs. */
INLINE void unpack_scales(const uint8_t *p, __m256i s[2], __m256i pair[4])
{
    const __m256i a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    const __m256i byte = _mm256_set1_epi16(0xff);
    const __m256i m0 = and8(b, 63);
    const __m256i m1 = _mm256_or_si256(high_nibbles(c), and8(_mm256_srli_epi16(b, 2), 0x30));
    s[0] = and8(a, 63);
    s[1] = _mm256_or_si256(low_nibbles(c), and8(_mm256_srli_epi16(a, 2), 0x30));
    pair[0] = _mm256_and_si256(m0, byte), pair[1] = _mm256_srli_epi16(m0, 8);
    pair[2] = _mm256_and_si256(m1, byte), pair[3] = _mm256_srli_epi16(m1, 8);
}
/* Σ minimum · sum of 32. */
INLINE __m256 minima(const __m256i *pair, const free_act *a)
{
    const __m256i x = _mm256_add_epi32(_mm256_madd_epi16(pair[0], word(a->s)),
                                       _mm256_madd_epi16(pair[1], word(a->s + 2)));
    const __m256i y = _mm256_add_epi32(_mm256_madd_epi16(pair[2], word(a->s + 4)),
                                       _mm256_madd_epi16(pair[3], word(a->s + 6)));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(x, y));
}

static void unpack(const uint8_t *tile, free_panel *u)
{
    for (int i = 0; i < BLOCK; i += TILE_LINE) {
        _mm_prefetch((const char *)tile + i + AHEAD_L1, _MM_HINT_T0);
        _mm_prefetch((const char *)tile + i + AHEAD_L2, _MM_HINT_T1);
    }
    for (int h = 0; h < 4; h++) {
        const uint8_t *p = tile + h / 2 * GROUP, *d = p + 16 * (h % 2);
        const uint8_t *lines = p + 4 * TILE_LINE + 32 * (h % 2);
        __m256i s[2];
        unpack_scales(p + TILE_LINE + 32 * (h % 2), s, (__m256i *)(void *)u->pair[h]);
        _mm256_storeu_ps(u->d[h], halves(d));
        _mm256_storeu_ps(u->dmin[h], halves(d + 32));
        for (int j = 0; j < 8; j++) {
            const __m256i v = j < 4 ? s[0] : s[1];
            _mm256_storeu_si256((__m256i *)(void *)u->sc[h][j], scale_pair(v, j % 4));
        }
        for (int i = 0; i < 32; i++) {
            const __m256i v = load(lines + TILE_LINE * i);
            __m256i *w = (__m256i *)(void *)u->w[h][i / 8 * 16 + i % 8];
            _mm256_storeu_si256(w, low_nibbles(v));
            _mm256_storeu_si256(w + 8, high_nibbles(v));
        }
    }
}

/* Halves 2g and 2g+1 of a block times n vectors. */
INLINE void panel_vecs(const free_panel *u, const int g, const free_act *a, const int n, float *y)
{
    __m256i i0[VECS], i1[VECS];
    for (int t = 0; t < n; t++) i0[t] = i1[t] = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++) {
        __m256i s0[VECS], s1[VECS];
        for (int t = 0; t < n; t++) s0[t] = s1[t] = _mm256_setzero_si256();
#pragma GCC unroll 8
        for (int k = 8 * j; k < 8 * j + 8; k++) {
            const __m256i w0 = load(u->w[2 * g][k]), w1 = load(u->w[2 * g + 1][k]);
            for (int t = 0; t < n; t++) {
                const __m256i q = word(a[t].q + 4 * k);
                const __m256i p0 = _mm256_maddubs_epi16(w0, q), p1 = _mm256_maddubs_epi16(w1, q);
                s0[t] = _mm256_add_epi16(s0[t], p0);
                KEEP(s0[t]);
                s1[t] = _mm256_add_epi16(s1[t], p1);
                KEEP(s1[t]);
            }
        }
        const __m256i c0 = load(u->sc[2 * g][j]), c1 = load(u->sc[2 * g + 1][j]);
        for (int t = 0; t < n; t++) {
            i0[t] = _mm256_add_epi32(i0[t], _mm256_madd_epi16(s0[t], c0));
            KEEP(i0[t]);
            i1[t] = _mm256_add_epi32(i1[t], _mm256_madd_epi16(s1[t], c1));
            KEEP(i1[t]);
        }
    }
    for (int t = 0; t < n; t++) {
        float *out = y + t * TILE_ROWS + 16 * g;
        __m256 y0 = _mm256_loadu_ps(out), y1 = _mm256_loadu_ps(out + 8);
        y0 = _mm256_fmadd_ps(_mm256_loadu_ps(u->d[2 * g]), _mm256_cvtepi32_ps(i0[t]), y0);
        y1 = _mm256_fmadd_ps(_mm256_loadu_ps(u->d[2 * g + 1]), _mm256_cvtepi32_ps(i1[t]), y1);
        const __m256i *p0 = (const __m256i *)(const void *)u->pair[2 * g], *p1 = p0 + 4;
        y0 = _mm256_fnmadd_ps(_mm256_loadu_ps(u->dmin[2 * g]), minima(p0, &a[t]), y0);
        y1 = _mm256_fnmadd_ps(_mm256_loadu_ps(u->dmin[2 * g + 1]), minima(p1, &a[t]), y1);
        _mm256_storeu_ps(out, y0);
        _mm256_storeu_ps(out + 8, y1);
    }
}

void free_gemm_q4_k(const uint8_t *tile, int32_t n_block, const free_act *act, const float *d,
                    int32_t n_vec, float *y, void *panel)
{
    free_panel *u = panel;
    memset(y, 0, sizeof *y * TILE_ROWS * (size_t)n_vec);
    for (int32_t b = 0; b < n_block; b++, tile += BLOCK, act += n_vec) {
        int32_t v = 0;
        unpack(tile, u);
        for (; v + VECS <= n_vec; v += VECS) {
            for (int g = 0; g < 2; g++) panel_vecs(u, g, act + v, VECS, y + v * TILE_ROWS);
        }
        for (; v < n_vec; v++) {
            for (int g = 0; g < 2; g++) panel_vecs(u, g, act + v, 1, y + v * TILE_ROWS);
        }
    }
    for (int32_t v = 0; v < n_vec; v++) {
        for (int r = 0; r < TILE_ROWS; r++) y[v * TILE_ROWS + r] *= d[v];
    }
}

/* 8 rows of a block; p: their part of the group's lines. */
INLINE void direct_half(const uint8_t *group, const int h, const free_act *a, __m256 *y,
                        __m256 *ymin)
{
    const uint8_t *p = group + 32 * h, *d = group + 16 * h;
    __m256i s[2], pair[4], sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    unpack_scales(p + TILE_LINE, s, pair);
    for (int i = 0; i < 4; i++)
        _mm_prefetch((const char *)p + TILE_LINE * i + (h ? AHEAD_L1 : AHEAD_L2), _MM_HINT_T0);
#pragma GCC unroll 4
    for (int pr = 0; pr < 4; pr++) {
        __m256i lo = _mm256_setzero_si256(), hi = lo;
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) {
            const uint8_t *line = p + TILE_LINE * (4 + 8 * pr + k);
            const __m256i v = load(line);
            if (h)
                _mm_prefetch((const char *)line + AHEAD_L1, _MM_HINT_T0);
            else
                _mm_prefetch((const char *)line + AHEAD_L2, _MM_HINT_T1);
            const int8_t *q = a->q + 64 * pr + 4 * k;
            lo = _mm256_add_epi16(lo, _mm256_maddubs_epi16(low_nibbles(v), word(q)));
            KEEP(lo);
            hi = _mm256_add_epi16(hi, _mm256_maddubs_epi16(high_nibbles(v), word(q + 32)));
            KEEP(hi);
            IN_ORDER();
        }
        const __m256i v = s[pr / 2];
        const int n = 2 * pr % 4;
        sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(lo, scale_pair(v, n)));
        sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(hi, scale_pair(v, n + 1)));
    }
    *y = _mm256_fmadd_ps(halves(d), _mm256_cvtepi32_ps(_mm256_add_epi32(sum[0], sum[1])), *y);
    *ymin = _mm256_fmadd_ps(halves(d + 32), minima(pair, a), *ymin);
}

void free_gemv_q4_k(const uint8_t *tile, int32_t n_block, const free_act *act, float d, float *y)
{
    __m256 s[4], m[4];
    for (int h = 0; h < 4; h++) s[h] = m[h] = _mm256_setzero_ps();
    for (int32_t b = 0; b < n_block; b++, tile += BLOCK) {
#pragma GCC unroll 4
        for (int h = 0; h < 4; h++) direct_half(tile + h / 2 * GROUP, h % 2, act + b, &s[h], &m[h]);
    }
    for (int h = 0; h < 4; h++)
        _mm256_storeu_ps(y + 8 * h, _mm256_mul_ps(_mm256_set1_ps(d), _mm256_sub_ps(s[h], m[h])));
}
