/* Q2_K and Q3_K: how a level's registers of words are taken apart.  Each level's file includes this once,
   after its words.

   A line of codes holds four words of a row, two bits each.  Those of k = 1 and 3 stay two bits up where
   that saves a shift: four times as large, they are summed apart, and their sum is divided at the end,
   without rest. */

/* Q3_K: sixteen signed scales a row, one a byte, in order. */
INLINE void scale_bytes_k3(const uint8_t *p, words *s)
{
    const words a = load(p), b = load(p + TILE_LINE), c = load(p + 2 * TILE_LINE);
    s[0] = sub8(or_and8(low_nibbles(a), shl16(c, 4), 0x30), 32);
    s[1] = sub8(or_and8(low_nibbles(b), shl16(c, 2), 0x30), 32);
    s[2] = sub8(or_and8(high_nibbles(a), c, 0x30), 32);
    s[3] = sub8(or_and8(high_nibbles(b), shr16(c, 2), 0x30), 32);
}

/* Line 8h+s: words s of the four sub-blocks of 32 of half block h; w[1] and w[3] are times 4. */
INLINE void unpack_times4(const int bits, const uint8_t *p, const int h, const int s, words *w)
{
    const words v = load(p + TILE_LINE * (code_line(bits) + 8 * h + s)), up = shr16(v, 4);
    w[0] = and8(v, 3), w[1] = and8(v, 12);
    w[2] = and8(up, 3), w[3] = and8(up, 12);
    if (bits == 2) return;
    const words t = load(p + TILE_LINE * (THIRD_LINE + s));
    const words t01 = h ? shr16(t, 2) : shl16(t, 2), t23 = h ? shr16(t, 3) : shl16(t, 1);
    w[0] = or_and8(w[0], t01, 4), w[1] = or_and8(w[1], t01, 16);
    w[2] = or_and8(w[2], t23, 4), w[3] = or_and8(w[3], t23, 16);
}
