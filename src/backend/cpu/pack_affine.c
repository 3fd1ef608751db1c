/* Affine codes into tiles (kern/kern_linear.h has the layout): codes go into the next wider form, d and
   m into the narrowest float that holds all of them exactly, so that a tile stands for the same weights
   as the file to the bit. */
#include <string.h>

#include "backend/cpu/tiles.h"
#include "base/half.h"
#include "tensor/packed.h"
#include "tensor/weight.h"

static bool fits(affine_head h, float x)
{
    const uint32_t u = f32_bits(x);
    if (h == HEAD_BF16) return (u & 0xffff) == 0;
    return h == HEAD_F32 || f32_bits(f16_to_f32(f16_from_f32(x))) == u;
}

static bool all_fit(affine_head h, const packed *s)
{
    for (size_t r = 0; r < (size_t)s->rows; r++)
        for (size_t g = 0; g < packed_groups(s); g++) {
            float d, m;
            packed_scales(s, r, g, &d, &m);
            if (!fits(h, d) || !fits(h, m)) return false;
        }
    return true;
}

affine_form affine_form_of(const packed *s)
{
    affine_form f = {AFFINE_8, HEAD_F32, s->group / 32};
    if (s->bits <= 5) f.code = s->bits <= 4 ? AFFINE_4 : AFFINE_5;
    if (s->kind == PACKED_AFFINE) {
        if (s->scale_type != DT_F32) f.head = s->scale_type == DT_F16 ? HEAD_F16 : HEAD_BF16;
    } else if (all_fit(HEAD_BF16, s)) {
        f.head = HEAD_BF16;
    } else if (all_fit(HEAD_F16, s)) {
        f.head = HEAD_F16;
    }
    return f;
}

/* d (at 0) or m (at 1) of row r. */
static void put_head(affine_head h, uint8_t *head, size_t at, size_t r, float x)
{
    if (h == HEAD_F32) {
        memcpy(head + 2 * TILE_LINE * at + 4 * r, &x, sizeof x);
        return;
    }
    const uint16_t half = h == HEAD_BF16 ? (uint16_t)(f32_bits(x) >> 16) : f16_from_f32(x);
    memcpy(head + TILE_LINE * at + 2 * r, &half, sizeof half);
}

/* The 32 codes of row i of a group. */
static void put_codes(affine_code c, const uint8_t q[32], size_t i, uint8_t *group)
{
    if (c == AFFINE_8) {
        for (size_t s = 0; s < 8; s++) memcpy(group + TILE_LINE * s + 4 * i, q + 4 * s, 4);
        return;
    }
    if (c == AFFINE_5) {
        for (size_t n = 0; n < 4; n++) {
            uint32_t high = 0;
            for (size_t s = 0; s < 4; s++)
                high |= (uint32_t)(q[4 * s + n] >> 4) << s | (uint32_t)(q[16 + 4 * s + n] >> 4)
                                                                 << (4 + s);
            group[4 * i + n] = (uint8_t)high;
        }
        group += TILE_LINE;
    }
    for (size_t s = 0; s < 4; s++)
        for (size_t n = 0; n < 4; n++)
            group[TILE_LINE * s + 4 * i + n] =
                (uint8_t)((q[4 * s + n] & 15) | (q[16 + 4 * s + n] & 15) << 4);
}

/* Eight nibbles to eight bytes. */
static uint64_t spread(uint32_t w)
{
    uint64_t x = w;
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}

void tile_nibbles(const uint8_t *p, uint8_t out[16])
{
    uint32_t w[4];
    memcpy(w, p, sizeof w);
    const uint64_t first = spread(w[0]) | spread(w[2]) << 4;
    const uint64_t second = spread(w[1]) | spread(w[3]) << 4;
    memcpy(out, &first, sizeof first);
    memcpy(out + 8, &second, sizeof second);
}

/* As put_codes, from 16 bytes of nibbles as MLX packs them: the form that most files have. */
static void put_nibbles(const uint8_t *p, size_t i, uint8_t *group)
{
    uint8_t word[16];
    tile_nibbles(p, word);
    for (size_t s = 0; s < 4; s++) memcpy(group + TILE_LINE * s + 4 * i, word + 4 * s, 4);
}

/* Block b of a row, which is row r of the tile. */
static void pack_block(const affine_form *f, const packed *s, size_t row, size_t r, size_t b,
                       uint8_t *block)
{
    uint8_t *group = block + r / 16 * (affine_block_bytes(f->code) / 2);
    uint8_t q[32];
    if (s->bits == 4 && s->kind != PACKED_GPTQ && s->kind != PACKED_AWQ) {
        put_nibbles(s->code + row * ((size_t)s->cols / 2) + 16 * b, r % 16, group);
        return;
    }
    packed_codes32(s, row, b, q);
    put_codes(f->code, q, r % 16, group);
}

void affine_pack(const affine_form *f, const weight *w, int32_t row0, int32_t n_row, uint8_t *tile)
{
    const packed *s = w->packed;
    const size_t per = (size_t)f->per_head, n = (size_t)s->cols / 32, rows = (size_t)n_row;
    for (size_t b = 0; b < n; b++) {
        if (b % per == 0) {
            memset(tile, 0, affine_head_bytes(f->head));
            for (size_t r = 0; r < rows; r++) {
                float d, m;
                packed_scales(s, weight_packed_row(w, (size_t)row0 + r), b / per, &d, &m);
                put_head(f->head, tile, 0, r, d);
                put_head(f->head, tile, 1, r, m);
            }
            tile += affine_head_bytes(f->head);
        }
        if (rows < TILE_ROWS) memset(tile, 0, affine_block_bytes(f->code));
        for (size_t r = 0; r < rows; r++)
            pack_block(f, s, weight_packed_row(w, (size_t)row0 + r), r, b, tile);
        tile += affine_block_bytes(f->code);
    }
}
