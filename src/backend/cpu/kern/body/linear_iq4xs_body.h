/* IQ4_XS: how a group's lines are taken apart, in a level's words. */

/* Line i: words s and 4 + s of sub-block i / 4, s = i % 4, raised by `plus`. */
INLINE void unpack(const uint8_t *group, const int i, const int plus, words *lo, words *hi)
{
    const table level = raise_table(TABLE(IQ4_LEVELS), plus);
    const words v = load(group + TILE_LINE * (2 + i));
    *lo = look_up(level, low_nibbles(v));
    *hi = look_up(level, high_nibbles(v));
}
