/* The values of matrices whose numbers lie in several tensors.  Owns the arithmetic of each form and
   the places of its codes, scales and zeros; which tensors make a matrix, and that their shapes agree,
   is the readers' affair (format/).

   Invariant: nothing here reads past the sizes of `packed`, which its maker checked against rows, cols,
   bits and group. */
#include "tensor/packed.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "base/half.h"
#include "tensor/dequant.h"

bool packed_is_affine(const packed *s)
{
    switch (s->kind) {
    case PACKED_AFFINE:
    case PACKED_INT8:
    case PACKED_CENTRED:
    case PACKED_AWQ:
    case PACKED_GPTQ:
        return s->group % 32 == 0 && s->cols % s->group == 0 && !s->order;
    case PACKED_MXFP4:
    case PACKED_MXFP8:
    case PACKED_NVFP4:
    case PACKED_F8:
    case PACKED_COUNT:
        break;
    }
    return false;
}

bool packed_is_fp4(const packed *s)
{
    const int32_t group = s->kind == PACKED_MXFP4 ? 32 : s->kind == PACKED_NVFP4 ? 16 : 0;
    return group && s->group == group && s->cols % 32 == 0;
}

/* n codes of one bit stream that begins at a byte: code i has bits [i·bits, (i+1)·bits), low first. */
static void stream_codes(const uint8_t *p, unsigned bits, size_t n, uint8_t *out)
{
    const uint32_t mask = (1u << bits) - 1;
    uint32_t have = 0;
    unsigned n_have = 0;
    for (size_t i = 0; i < n; i++) {
        if (n_have < bits) {
            have |= (uint32_t)*p++ << n_have;
            n_have += 8;
        }
        out[i] = (uint8_t)(have & mask);
        have >>= bits;
        n_have -= bits;
    }
}

static uint32_t word_at(const uint8_t *p, size_t i)
{
    return field_u32(p + 4 * i);
}

/* AWQ: where in a word of 4-bit codes the value of row 8k + r is. */
static unsigned awq_shift(size_t row)
{
    static const uint8_t place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return 4u * place[row % 8];
}

/* One code of a file that packs down its rows (GPTQ) or along them (AWQ). */
static uint8_t column_code(const packed *s, size_t row, size_t col)
{
    const size_t rows = (size_t)s->rows, bits = (size_t)s->bits;
    if (s->kind == PACKED_AWQ)
        return word_at(s->code, col * (rows / 8) + row / 8) >> awq_shift(row) & 15;
    const size_t each = 32 / bits;
    return (uint8_t)(word_at(s->code, col / each * rows + row) >> bits * (col % each) &
                     ((1u << bits) - 1));
}

void packed_codes32(const packed *s, size_t row, size_t block, uint8_t out[32])
{
    const size_t bits = (size_t)s->bits, cols = (size_t)s->cols;
    if (s->kind == PACKED_GPTQ || s->kind == PACKED_AWQ)
        for (size_t i = 0; i < 32; i++) out[i] = column_code(s, row, 32 * block + i);
    else
        stream_codes(s->code + row * (cols * bits / 8) + block * 4 * bits, (unsigned)bits, 32, out);
    for (size_t i = 0; i < 32 && s->kind == PACKED_INT8; i++) out[i] ^= 0x80;
}

static float scale_at(const packed *s, const uint8_t *p, size_t i)
{
    float f;
    if (s->scale_type == DT_F16) return field_f16(p + 2 * i);
    if (s->scale_type == DT_BF16) return bf16_to_f32(field_u16(p + 2 * i));
    assert(s->scale_type == DT_F32);
    memcpy(&f, p + 4 * i, sizeof f);
    return f;
}

/* The zero of a group, an integer. */
static int32_t zero_of(const packed *s, size_t row, size_t group)
{
    const size_t rows = (size_t)s->rows, bits = (size_t)s->bits, each = 32 / bits;
    const uint32_t mask = (1u << bits) - 1;
    if (!s->offset) return s->zero;
    switch (s->kind) {
    case PACKED_AWQ:
        return (int32_t)(word_at(s->offset, group * (rows / 8) + row / 8) >> awq_shift(row) & 15);
    case PACKED_GPTQ:
        return (int32_t)(word_at(s->offset, group * (rows / each) + row / each) >>
                             bits * (row % each) &
                         mask) +
               s->zero;
    case PACKED_CENTRED: /* packed down the rows */
        return (int32_t)(word_at(s->offset, row / each * packed_groups(s) + group) >>
                             bits * (row % each) &
                         mask);
    case PACKED_AFFINE:
    case PACKED_INT8:
    case PACKED_MXFP4:
    case PACKED_MXFP8:
    case PACKED_NVFP4:
    case PACKED_F8:
    case PACKED_COUNT:
        break;
    }
    assert(0);
    return 0;
}

/* Files that pack by columns lay scales out by columns too. */
static size_t scale_place(const packed *s, size_t row, size_t group)
{
    if (s->kind == PACKED_GPTQ || s->kind == PACKED_AWQ) return group * (size_t)s->rows + row;
    return row / (size_t)s->block_rows * packed_groups(s) + group;
}

void packed_scales(const packed *s, size_t row, size_t group, float *d, float *m)
{
    const size_t at = scale_place(s, row, group);
    *d = scale_at(s, s->scale, at);
    *m = s->kind == PACKED_AFFINE ? scale_at(s, s->offset, at)
                                  : -(*d * (float)zero_of(s, row, group));
}

float packed_scale(const packed *s, size_t row, size_t group)
{
    const size_t at = scale_place(s, row, group);
    return s->kind == PACKED_MXFP8 ? e8m0_to_f32(s->scale[at]) : scale_at(s, s->scale, at);
}

static void row_affine(const packed *s, size_t row, float *y)
{
    uint8_t q[32];
    float d = 0, m = 0;
    for (size_t b = 0; b < (size_t)s->cols / 32; b++, y += 32) {
        const size_t per = (size_t)s->group / 32;
        if (b % per == 0) packed_scales(s, row, b / per, &d, &m);
        packed_codes32(s, row, b, q);
        for (size_t i = 0; i < 32; i++) y[i] = d * (float)q[i] + m;
    }
}

/* Forms with whole zeros, groups of any size and order. */
static void row_centred(const packed *s, size_t row, float *y)
{
    const size_t cols = (size_t)s->cols, group = (size_t)s->group;
    const bool stream = s->kind == PACKED_CENTRED;
    const uint8_t *code = s->code + row * (cols * (size_t)s->bits / 8);
    uint8_t q[32];
    for (size_t c = 0; c < cols; c++) {
        const size_t g = s->order ? word_at(s->order, c) : c / group;
        const float d = scale_at(s, s->scale, scale_place(s, row, g));
        if (stream && c % 32 == 0)
            stream_codes(code + c / 8 * (size_t)s->bits, (unsigned)s->bits,
                         cols - c < 32 ? cols - c : 32, q);
        const int32_t v = stream ? q[c % 32] : column_code(s, row, c);
        y[c] = d * (float)(v - zero_of(s, row, g));
    }
}

/* Levels are twice the values of e2m1; half of a scale is exact, denormal or not. */
static void row_fp4(const packed *s, size_t row, float *y)
{
    const size_t group = (size_t)s->group, n = packed_groups(s);
    const uint8_t *q = s->code + row * ((size_t)s->cols / 2), *e = s->scale + row * n;
    for (size_t g = 0; g < n; g++, y += group, q += group / 2) {
        const float d = 0.5f * (s->kind == PACKED_NVFP4 ? e4m3_to_f32(e[g]) : e8m0_to_f32(e[g]));
        for (size_t i = 0; i < group; i++)
            y[i] = d * (float)e2m1_level[q[i / 2] >> 4 * (i % 2) & 15];
    }
}

static void row_int8(const packed *s, size_t row, float *y)
{
    const size_t group = (size_t)s->group;
    const uint8_t *q = s->code + row * (size_t)s->cols;
    for (size_t c = 0; c < (size_t)s->cols; c++)
        y[c] = (float)(int8_t)q[c] * scale_at(s, s->scale, scale_place(s, row, c / group));
}

static void row_f8(const packed *s, size_t row, float *y)
{
    const size_t group = (size_t)s->group;
    const uint8_t *q = s->code + row * (size_t)s->cols;
    for (size_t c = 0; c < (size_t)s->cols; c++)
        y[c] = e4m3_to_f32(q[c]) * packed_scale(s, row, c / group);
}

void packed_row_f32(const packed *s, size_t row, float *out)
{
    static void (*const fn[PACKED_COUNT])(const packed *, size_t, float *) = {
        [PACKED_AFFINE] = row_affine,   [PACKED_MXFP4] = row_fp4,    [PACKED_MXFP8] = row_f8,
        [PACKED_NVFP4] = row_fp4,       [PACKED_F8] = row_f8,        [PACKED_INT8] = row_int8,
        [PACKED_CENTRED] = row_centred, [PACKED_GPTQ] = row_centred, [PACKED_AWQ] = row_centred,
    };
    assert(row < (size_t)s->rows);
    fn[s->kind](s, row, out);
}

static bool bad_scale(const packed *s, size_t i)
{
    if (s->kind == PACKED_MXFP4 || s->kind == PACKED_MXFP8) return s->scale[i] == 255;
    if (s->kind == PACKED_NVFP4) return (s->scale[i] & 0x7f) == 0x7f;
    return !isfinite(scale_at(s, s->scale, i)) ||
           (s->kind == PACKED_AFFINE && !isfinite(scale_at(s, s->offset, i)));
}

cairn_status packed_check(const packed *s, const char *tensor, cairn_diag *dg)
{
    const bool byte = s->kind == PACKED_MXFP4 || s->kind == PACKED_MXFP8 || s->kind == PACKED_NVFP4;
    const size_t n = s->scale_size / (byte ? 1 : (size_t)dtype_block_bytes(s->scale_type));
    for (size_t i = 0; i < n; i++)
        if (bad_scale(s, i))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: scale %zu is not a number or infinite; expected finite "
                            "scales and offsets",
                            s->file, tensor, i);
    if (!s->order) return CAIRN_OK;
    for (size_t c = 0; c < (size_t)s->cols; c++)
        if (word_at(s->order, c) >= packed_groups(s))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: tensor %s: g_idx of column %zu is %u; expected 0 to %zu", s->file,
                            tensor, c, (unsigned)word_at(s->order, c), packed_groups(s) - 1);
    return CAIRN_OK;
}
