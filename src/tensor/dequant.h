/* One function a block type: the values of one block, in the operation order of the format's
   reference, so that results equal it to the bit.  Private to tensor/; dtype.c holds the table. */
#ifndef TENSOR_DEQUANT_H
#define TENSOR_DEQUANT_H

#include "base/half.h"
#include "tensor/dtype.h"

/* b: dtype_block_bytes bytes, any alignment.  y: dtype_block floats. */
typedef void dequant_block(const uint8_t *b, float *y);

dequant_block dequant_q4_0, dequant_q4_1, dequant_q5_0, dequant_q5_1, dequant_q8_0;
dequant_block dequant_q2_k, dequant_q3_k, dequant_q4_k, dequant_q5_k, dequant_q6_k;
dequant_block dequant_tq1_0, dequant_tq2_0;
dequant_block dequant_iq1_s, dequant_iq1_m, dequant_iq2_xxs, dequant_iq2_xs, dequant_iq2_s;
dequant_block dequant_iq3_xxs, dequant_iq3_s, dequant_iq4_nl, dequant_iq4_xs;
dequant_block dequant_mxfp4, dequant_nvfp4;

/* Little-endian fields at any alignment. */
static inline uint16_t field_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t field_u32(const uint8_t *p)
{
    return (uint32_t)field_u16(p) | (uint32_t)field_u16(p + 2) << 16;
}
static inline float field_f16(const uint8_t *p)
{
    return f16_to_f32(field_u16(p));
}

/* Seven sign bits stand for eight: the eighth makes their number even. */
static inline uint32_t grid_signs(uint32_t seven)
{
    return seven | (uint32_t)__builtin_parity(seven) << 7;
}

/* The grids of the IQ types: element j of a point is map[point >> (bits·j) & mask].  Made by
   tools/gen-iq-grids.py; 2 bits an element in groups of 8, 3 bits in groups of 4. */
extern const uint16_t iq1s_grid[2048], iq2xxs_grid[256], iq2xs_grid[512], iq2s_grid[1024];
extern const uint16_t iq3xxs_grid[256], iq3s_grid[512];

extern const int8_t iq4_level[16];

#endif
