/* AMX's registers, set up for the products of LINEAR: of 16 vectors (rows of A, signed bytes, where their
   structs lie) and 16 rows of weights (columns of B, whose row is one line) come 16 × 16 sums C.

   Registers are named by digits, because the intrinsics paste them into assembler: 0 … 3 hold C, 4 and 5 A,
   6 and 7 B.  The process has asked the system for them (cpuid.c). */
#ifndef TILES_AMX_H
#define TILES_AMX_H

#include <immintrin.h>
#include <stdint.h>

enum { AMX_VEC = 16 };

/* One C in memory.  Kernels take up what they stored a step later, out of one of two sets, so that the sums of
   one step need not wait for its products. */
typedef struct amx_sums {
    _Alignas(64) int32_t of[AMX_VEC][16];
} amx_sums;

/* Products of n_vec ≤ AMX_VEC vectors over `k` ≤ 64 bytes.  _tile_release() ends what this begins: until then the
   system saves 8 KB more whenever it switches threads. */
static inline __attribute__((always_inline)) void amx_begin(const int n_vec, const int k)
{
    _Alignas(64) struct {
        uint8_t palette, start_row, zero[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } cfg = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        const int is_a = t == 4 || t == 5, is_b = t > 5;
        cfg.row_bytes[t] = (uint16_t)(is_a ? k : 64);
        cfg.rows[t] = (uint8_t)(is_b ? k / 4 : n_vec);
    }
    _tile_loadconfig(&cfg);
}

static inline __attribute__((always_inline)) void amx_store(amx_sums *c)
{
    _tile_stored(0, c[0].of, 64);
    _tile_stored(1, c[1].of, 64);
    _tile_stored(2, c[2].of, 64);
    _tile_stored(3, c[3].of, 64);
}

/* Tile loads are assembler that does not say what memory it reads. */
static inline __attribute__((always_inline)) void amx_panel_ready(void)
{
    __asm__ volatile("" ::: "memory");
}

/* A whole number of less than 22 bits as a float.  While the matrix unit is in use a core starts one of vector
   multiplications and conversions a cycle, of additions still two: this is two of those. */
static inline __attribute__((always_inline)) __m512 amx_float(__m512i v)
{
    const __m512i one = _mm512_set1_epi32(0x4b400000); /* 1.5 * 2^23, whose last bit is worth 1 */
    return _mm512_sub_ps(_mm512_castsi512_ps(_mm512_add_epi32(v, one)), _mm512_castsi512_ps(one));
}

/* 256 · high + low, below 2^24 in all and exact: a last bit worth 256 makes the first product. */
static inline __attribute__((always_inline)) __m512 amx_float_planes(__m512i high, __m512i low)
{
    const __m512i one = _mm512_set1_epi32(0x4b400000), more = _mm512_set1_epi32(0x4f400000);
    const __m512 both = _mm512_set1_ps(0x1.8p31f + 0x1.8p23f);
    const __m512 h = _mm512_sub_ps(_mm512_castsi512_ps(_mm512_add_epi32(high, more)), both);
    return _mm512_add_ps(h, _mm512_castsi512_ps(_mm512_add_epi32(low, one)));
}

#endif
