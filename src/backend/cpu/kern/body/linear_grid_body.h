/* Tiles of the codebook and ternary types: what the levels share.  IQ2_XS lies as IQ2_S does, TQ1_0 as
   TQ2_0.  A group is scales, then a plane of high bits (signs, or the shifts of IQ1), then codes of two or
   of four bits.  A line of codes holds n_word(…) words of a row, eight apart.  Nothing here is seen outside
   the file that includes it. */
#include "backend/cpu/kern/grid_levels.h"

/* Words of a line of codes: those of four bits, or of two. */
INLINE int n_word(const int bits)
{
    return bits == GRID_IQ3_S || bits == GRID_IQ3_XXS ? 2 : 4;
}
INLINE int has_signs(const int bits)
{
    return bits == GRID_IQ2_XXS || bits == GRID_IQ2_S;
}
INLINE int has_shifts(const int bits)
{
    return bits == GRID_IQ1_S || bits == GRID_IQ1_M;
}
/* Lines of nibbles of scales: eight a line, of 16 or of 32 weights each. */
INLINE int n_scale_line(const int bits)
{
    return bits == GRID_TQ ? 0 : bits == GRID_IQ2_S || bits == GRID_IQ1_M ? 2 : 1;
}
INLINE const uint8_t *high_plane(const int bits, const uint8_t *p)
{
    return p + TILE_LINE * n_scale_line(bits);
}
INLINE const uint8_t *code_plane(const int bits, const uint8_t *p)
{
    return high_plane(bits, p) + TILE_LINE * (has_signs(bits) ? 8 : has_shifts(bits));
}
/* Lines in front of the codes. */
INLINE int n_front_line(const int bits)
{
    return n_scale_line(bits) + (has_signs(bits) ? 8 : has_shifts(bits));
}
/* What d is multiplied by: levels are whole. */
INLINE float grid_unit(const int bits)
{
#define GRID_DOWN(name, down, ...) [GRID_##name - GRID_IQ3_S] = 1.0f / (1 << (down)),
    static const float unit[] = {GRID_LIST(GRID_DOWN)};
#undef GRID_DOWN
    return unit[bits - GRID_IQ3_S];
}
/* As the level's dots take them. */
INLINE table grid_levels(const int bits)
{
    table v = TABLE(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
#define GRID_LEVELS(name, down, ...)                                                               \
    if (bits == GRID_##name) v = TABLE(__VA_ARGS__);
    GRID_LIST(GRID_LEVELS)
#undef GRID_LEVELS
    return raise_table(v, 1 << centre_log(bits));
}

/* The high bit of word k, put into bit 2 of its index. */
INLINE words or_high_bit(const int bits, words at, const uint8_t *p, const int k)
{
    const int sub = k / 8;
    if (has_shifts(bits)) return or_and8(at, fill_bit(load(high_plane(bits, p)), k / 2), 4);
    const words v = load(high_plane(bits, p) + TILE_LINE * (k % 8));
    return or_and8(at, sub > 2 ? shr16(v, sub - 2) : shl16(v, 2 - sub), 4);
}
/* The words k, k + 8, … of the line that holds word k first. */
INLINE void unpack(const int bits, const uint8_t *p, const int k, words *w)
{
    const int n = n_word(bits), line = k / (8 * n) * 8 + k % 8;
    const words v = load(code_plane(bits, p) + TILE_LINE * line);
    for (int c = 0; c < n; c++) {
        words at = n == 2 ? c ? high_nibbles(v) : low_nibbles(v) : and8(shr16(v, 2 * c), 3);
        if (has_signs(bits) || has_shifts(bits)) at = or_high_bit(bits, at, p, k + 8 * c);
        w[c] = look_up(grid_levels(bits), at);
    }
}
