/* Kernels that multiply weights: what LINEAR is made of.  docs/numerics.md, section LINEAR, states the
   arithmetic; the reference kernels (ref/linear_*.c) are that statement in plain C, and every level
   gives their bits.

   Quantised weights lie in tiles of 32 rows, block after block along the row, so that a tile is one
   linear stream of as many bytes as the file has.  A line is 64 bytes: one 32-bit word of each of 16
   rows; group g of a tile holds the rows 16g … 16g+15.  One block of a tile, by format:
     Q4_0  d[32]            | per group: 4 lines of nibbles
     Q4_1  d[32] | m[32]    | per group: 4 lines of nibbles
     Q5_0  d[32]            | per group: 1 line of fifth bits, 4 of nibbles
     Q5_1  d[32] | m[32]    | per group: 1 line of fifth bits, 4 of nibbles
     Q8_0  d[32]            | per group: 8 lines
     IQ4_NL d[32]           | per group: 4 lines of nibbles
     Q2_K                     per group: d[16] dmin[16] | 4 lines of scales | 16 of codes
     Q3_K  d[32]            | per group: 3 lines of scales | 8 of third bits | 16 of codes
     IQ4_XS                   per group: d[16] high bits of scales[16] | 1 line of low | 32 of nibbles
     Q4_K                     per group: d[16] dmin[16] | 3 lines of scales | 32 of nibbles
     Q5_K                     per group: d[16] dmin[16] | 3 lines of scales | 8 of fifth bits | 32 of nibbles
     Q6_K  d[32]            | per group: 4 lines of scales | 16 times (2 lines of nibbles, 1 of high bits)
     MXFP4 e[2][32], of two blocks | per block and group: 4 lines of nibbles
     NVFP4 s[2][32]         | per group: 4 lines of nibbles
   d, m and dmin are f16; e are bytes of e8m0, s of e4m3: the scale of w[0…15], then of w[16…31].  Codes
   of MXFP4 and NVFP4 are those of e2m1.  They come from GGUF and from files that keep scales
   apart.  Within a line, byte n of a row's word, n = 0 … 3, holds:
     nibbles, 32-blocks   line s: low w[4s+n], high w[16+4s+n]
     fifth bits, likewise bit s: of w[4s+n], bit 4+s: of w[16+4s+n]
     Q8_0                 line s: w[4s+n]
     codes, Q2_K Q3_K     line 8h+s: bits 2k and 2k+1 of w[128h+32k+4s+n], k = 0 … 3
     scales, Q2_K         line i: of sub-block 4i+n, low the scale, high the minimum
     scales, Q3_K         the file's 12 bytes, as they are
     third bits, Q3_K     line s: w[128h+32k+4s+n] at bit 4h + 0, 2, 1, 3 for k = 0 … 3: a shift brings two
                          of them to where the codes of two k lie
     scales, IQ4_XS       the file's 2 and 4 bytes, as they are
     nibbles, IQ4_XS      line 4j+s: low w[32j+4s+n], high w[32j+16+4s+n]
     nibbles, Q4_K Q5_K   line 8p+s: low w[64p+4s+n], high w[64p+32+4s+n]
     fifth bits, Q5_K     line s: bit 2p of w[64p+4s+n], bit 2p+1 of w[64p+32+4s+n]
     scales, Q4_K Q5_K    the file's 12 bytes, as they are
     scales, Q6_K         line i: the scale of sub-block 4i+n
     Q6_K, triple 8h+s    low nibbles w[128h+4s+n], w[128h+32+4s+n]; high nibbles w[128h+64+4s+n],
                          w[128h+96+4s+n]; high bits of these four from bit 0 up, two each
   Codebook and ternary types: d[32], then per group scales, high bits and codes.  The codes name levels
   (grid_levels.h) and not points of the file's grids: more bytes than the file has (IQ3_S 134 for 110 a row
   and 256 weights, IQ3_XXS 134 for 98, IQ2_S 106 for 82, IQ2_XS 106 for 74, IQ2_XXS 102 for 66, IQ1_M 78
   for 56, IQ1_S 74 for 50, TQ1_0 66 for 54), but no gathers, of which a core does one in the time of
   twenty look-ups in a register: a vector alone would be bound by them, and decoding is that.
     IQ3_S, IQ3_XXS       1 line of scales | 32 of nibbles, as in Q4_K
     IQ2_XXS              1 line of scales | 8 of signs | 16 of codes
     IQ2_XS, IQ2_S        2 lines of scales | 8 of signs | 16 of codes
     IQ1_S, IQ1_M         1 line, 2 lines of scales | 1 of shifts | 16 of codes
     TQ1_0, TQ2_0         16 lines of codes
     scales               s of 2s + 1; line i, byte n: low of run 8i+2n, high of run 8i+2n+1; runs of 16
                          weights, of 32 where there is one line
     signs                line s: bit k of w[32k+4s+n]
     shifts               bit k of a row's word: of w[8k … 8k+7]
     codes                line 8h+s: bits 2c, 2c+1 of w[128h+32c+4s+n]
   Rows past the weight's last are zero blocks.

   Affine tiles (weights d·q + m, q from 0 up, one d and m for `per_head` blocks of 32): a head, then
   that many blocks, then the next head.  The head is d[32] | m[32], as f16, bf16 or f32; a block is
     codes of 4 bits        per group: 4 lines of nibbles, as in 32-blocks above
     codes of 5 bits        per group: 1 line of fifth bits, 4 of nibbles
     codes of 8 bits        per group: 8 lines, line s: q[4s+n]
   Codes of fewer bits lie in the next form up. */
#ifndef KERN_LINEAR_H
#define KERN_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, elements a block, bytes a block and row */
#define TILE_LIST(X)                                                                               \
    X(Q4_0, 32, 18)                                                                                \
    X(Q4_1, 32, 20)                                                                                \
    X(Q5_0, 32, 22)                                                                                \
    X(Q5_1, 32, 24)                                                                                \
    X(Q8_0, 32, 34)                                                                                \
    X(IQ4_NL, 32, 18)                                                                              \
    X(Q2_K, 256, 84)                                                                               \
    X(Q3_K, 256, 110)                                                                              \
    X(IQ4_XS, 256, 136)                                                                            \
    X(Q4_K, 256, 144)                                                                              \
    X(Q5_K, 256, 176)                                                                              \
    X(Q6_K, 256, 210)                                                                              \
    X(MXFP4, 32, 17)                                                                               \
    X(NVFP4, 32, 18)                                                                               \
    X(IQ3_S, 256, 134)                                                                             \
    X(IQ3_XXS, 256, 134)                                                                           \
    X(IQ2_XXS, 256, 102)                                                                           \
    X(IQ2_XS, 256, 106)                                                                            \
    X(IQ2_S, 256, 106)                                                                             \
    X(IQ1_S, 256, 74)                                                                              \
    X(IQ1_M, 256, 78)                                                                              \
    X(TQ1_0, 256, 66)                                                                              \
    X(TQ2_0, 256, 66)

typedef enum tile_type {
#define TILE_ENUM(name, elems, bytes) TILE_##name,
    TILE_LIST(TILE_ENUM)
#undef TILE_ENUM
        TILE_COUNT
} tile_type;

typedef enum affine_code { AFFINE_4, AFFINE_5, AFFINE_8, AFFINE_COUNT } affine_code;
typedef enum affine_head { HEAD_F16, HEAD_BF16, HEAD_F32 } affine_head;
typedef struct affine_form {
    affine_code code;
    affine_head head;
    int32_t per_head; /* blocks of 32 under one d and m */
} affine_form;

enum {
    TILE_ROWS = 32,
    TILE_LINE = 64,
    TILE_SLACK = 16384, /* readable bytes after the last tile: prefetches run ahead */
    TILE_L1_VEC = 96,   /* vectors a call whose sums stay in L1 */
    TILE_MAX_VEC = 192, /* most vectors a call of a tile kernel */
    TILE_PANEL = 20480, /* bytes of a panel of unpacked weights, 64-aligned */
};

/* One group of 32 activations: x ≈ d · q. */
typedef struct a8_32 {
    int8_t q[32]; /* −127 … 127 */
    float d;
    float s;               /* RN(d · Σ q) */
    int32_t n8, n16, n128; /* −8, −16, −128 times Σ q */
    int32_t n32_16[2];     /* −32 times the sums of 16 */
    int16_t s16[2];        /* sums of 16 */
} a8_32;

/* One group of 256 activations. */
typedef struct a8_256 {
    int8_t q[256];
    int32_t n8[32];  /* −32 times the sums of 8 */
    int32_t n16[16]; /* −16 times the sums of 16 */
    int32_t n32[8];  /* −8 times the sums of 32 */
    int16_t s16[16]; /* sums of 16 */
    int16_t s32[8];  /* sums of 32, in the order 0 2 1 3 4 6 5 7 of masked pairs of packed scales */
    float d;
    float pad[11]; /* whole lines: AMX loads 64 of q twice as fast from one line as from two */
} a8_256;

/* Quantises n_block groups of x.  terms = 2: what the first term leaves is quantised again.  Term i
   of block b goes to the byte offset b·stride from out, plus i structs. */
typedef void kern_quant32_fn(const float *x, int32_t n_block, int32_t terms, a8_32 *out,
                             size_t stride);
typedef void kern_quant256_fn(const float *x, int32_t n_block, int32_t terms, a8_256 *out,
                              size_t stride);

/* y[v / terms][32] = the tile's 32 rows times activation vector v (terms = 2: the sum over its two
   terms), v < n_vec ≤ TILE_MAX_VEC, n_vec a multiple of terms.  act: a8_32 or a8_256, vector v of
   block b at byte offset b·stride plus v structs.  y is overwritten, 64-aligned; panel: TILE_PANEL
   bytes of the thread's own, 64-aligned. */
typedef void kern_tile_fn(const uint8_t *tile, int32_t n_block, const void *act, size_t stride,
                          int32_t n_vec, int32_t terms, float *y, void *panel);

/* The same for an affine tile: a8_32, `n_block` blocks of 32, a multiple of per_head. */
typedef void kern_affine_fn(const affine_form *f, const uint8_t *tile, int32_t n_block,
                            const void *act, size_t stride, int32_t n_vec, int32_t terms, float *y,
                            void *panel);

/* y[t·y_stride + r] = Σ_k w[r][k] · x[t·x_stride + k] by lane16, for r < n_w, t < n_x.
   w: rows w_stride bytes apart, of any alignment. */
typedef void kern_dense_fn(const uint8_t *w, size_t w_stride, int32_t n_w, const float *x,
                           size_t x_stride, int32_t n_x, int32_t k, float *y, size_t y_stride);

/* y[i] = RN(w[i]·s), w floats of 8 bits at any alignment. */
typedef void kern_widen_fn(const uint8_t *w, int32_t n, float s, float *y);

typedef struct kern_linear {
    kern_quant32_fn *quant32;
    kern_quant256_fn *quant256;
    kern_tile_fn *tile[TILE_COUNT];
    /* Formats with 256 weights a block times a8_32: group i of 32 at byte offset i·stride, n_block blocks of
       256.  NULL: the format has none. */
    kern_tile_fn *fine[TILE_COUNT];
    /* fine that goes on: y holds the sums of the blocks before and is added to, by the same chains.  At least 16
       vectors, terms 1.  NULL: the level gains nothing by walking K in parts. */
    kern_tile_fn *fine_more[TILE_COUNT];
    kern_affine_fn *affine[AFFINE_COUNT];
    bool leads; /* tile kernels fetch at far_ahead (base/far.h) */
    /* 0, or the bytes of activations up to which more vectors a call than TILE_L1_VEC pay: panels take long to
       make, and sums may lie in the second cache beside the activations. */
    size_t near_act;
    kern_dense_fn *dense_f32, *dense_f16, *dense_bf16;
    kern_widen_fn *widen_e4m3, *widen_e5m2;
    /* Limits of the machine.  read_sum reads n bytes (a multiple of 4096) once and answers a checksum.
       peak_dot runs the level's best int8 multiply-add on registers alone and answers how many
       operations, products and sums, these rounds were; peak_fma does so for floats. */
    uint64_t (*read_sum)(const void *p, size_t n);
    uint64_t (*peak_dot)(uint64_t rounds);
    uint64_t (*peak_fma)(uint64_t rounds);
} kern_linear;

/* Rising levels: each overrides what it does better. */
void kern_linear_ref(kern_linear *k);
void kern_linear_avx2(kern_linear *k);
void kern_linear_avxvnni(kern_linear *k);
void kern_linear_avx512(kern_linear *k);
void kern_linear_avx512vnni(kern_linear *k);
void kern_linear_amx(kern_linear *k);
void kern_linear_neon(kern_linear *k);
void kern_linear_dotprod(kern_linear *k);
void kern_linear_i8mm(kern_linear *k);

static inline int32_t tile_elems(tile_type t)
{
#define TILE_ELEMS(name, elems, bytes) elems,
    static const int16_t n[TILE_COUNT] = {TILE_LIST(TILE_ELEMS)};
#undef TILE_ELEMS
    return n[t];
}
/* Bytes of one block of one tile; MXFP4's scales of two blocks share a line, half of it empty after
   the last of an odd number. */
static inline size_t tile_block_bytes(tile_type t)
{
#define TILE_BYTES(name, elems, bytes) bytes,
    static const uint8_t row[TILE_COUNT] = {TILE_LIST(TILE_BYTES)};
#undef TILE_BYTES
    return (size_t)row[t] * TILE_ROWS;
}
static inline size_t tile_bytes(tile_type t, int32_t n_block)
{
    const size_t n = tile_block_bytes(t) * (size_t)n_block;
    return (n + TILE_LINE - 1) / TILE_LINE * TILE_LINE;
}
/* Bytes of a block of codes of one affine tile, and of its head. */
static inline size_t affine_block_bytes(affine_code c)
{
    return (size_t)TILE_LINE * 2 * (c == AFFINE_8 ? 8 : c == AFFINE_5 ? 5 : 4);
}
static inline size_t affine_head_bytes(affine_head h)
{
    return (size_t)TILE_LINE * (h == HEAD_F32 ? 4 : 2);
}

#endif
