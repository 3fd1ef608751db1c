/* UTF-8 as in table 3-7 of the Unicode standard: the range of the second byte depends on the first,
   which alone excludes overlong forms, surrogates and code points past 10FFFF. */
#include "base/utf8.h"

#include <string.h>

enum { REPLACEMENT = 0xFFFD };

/* Length of the sequence that `first` starts (0: none), and the range of its second byte. */
static int lead(uint8_t first, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return 2;
    if (first < 0xF0) {
        if (first == 0xE0) *lo = 0xA0;
        if (first == 0xED) *hi = 0x9F;
        return 3;
    }
    if (first > 0xF4) return 0;
    if (first == 0xF0) *lo = 0x90;
    if (first == 0xF4) *hi = 0x8F;
    return 4;
}

/* How many of the sequence's bytes are there and right; `want` is its full length. */
static int prefix(const char *p, size_t n, int *want)
{
    uint8_t lo, hi;
    *want = lead((uint8_t)p[0], &lo, &hi);
    int i = 1;
    for (; i < *want && (size_t)i < n; i++) {
        const uint8_t c = (uint8_t)p[i];
        if (c < lo || c > hi) break;
        lo = 0x80;
        hi = 0xBF;
    }
    return i;
}

int utf8_decode(const char *p, size_t n, uint32_t *cp)
{
    static const uint8_t first_mask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    int want;
    const int have = prefix(p, n, &want);
    if (have != want) {
        *cp = REPLACEMENT;
        return -have;
    }
    uint32_t c = (uint8_t)p[0] & first_mask[want];
    for (int i = 1; i < want; i++) c = c << 6 | ((uint8_t)p[i] & 0x3Fu);
    *cp = c;
    return want;
}

int utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) cp = REPLACEMENT;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3F));
        cp >>= 6;
    }
    static const uint8_t first[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(first[n] | cp);
    return n;
}

/* Three bytes that are a character: neither a longer form than needed nor a surrogate. */
static bool is_three(const uint8_t *p)
{
    const uint32_t high = (p[0] & 15u) << 6 | (p[1] & 63u); /* the code point's but for six bits */

    return (p[0] & 0xF0) == 0xE0 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80 &&
           high >= 0x800 >> 6 && high >> 5 != 0xD800 >> 11;
}

/* Length of the ASCII bytes from s[i] on, in eights where there are as many, and of the frequent forms
   that need no tables: two and three bytes. */
static size_t plain(cairn_str s, size_t i)
{
    const size_t from = i;
    uint64_t word;

    while (i < s.len) {
        const uint8_t *p = (const uint8_t *)s.ptr + i;
        const size_t left = s.len - i;
        if (left >= sizeof word) {
            memcpy(&word, p, sizeof word);
            if (!(word & 0x8080808080808080u)) {
                i += sizeof word;
                continue;
            }
        }
        if (p[0] < 0x80)
            i++;
        else if (left >= 2 && p[0] >= 0xC2 && p[0] < 0xE0 && (p[1] & 0xC0) == 0x80)
            i += 2;
        else if (left >= 3 && is_three(p))
            i += 3;
        else
            break;
    }
    return i - from;
}

bool utf8_valid(cairn_str s)
{
    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        i += plain(s, i);
        if (i == s.len) break;
        const int n = utf8_decode(s.ptr + i, s.len - i, &cp);
        if (n < 0) return false;
        i += (size_t)n;
    }
    return true;
}

size_t utf8_tail(cairn_str s)
{
    for (size_t n = 1; n <= 3 && n <= s.len; n++) {
        const char *p = s.ptr + s.len - n;
        if (((uint8_t)*p & 0xC0) == 0x80) continue; /* inside a character: its start is before */
        int want;
        const int have = prefix(p, n, &want);
        return (size_t)have == n && want > have ? n : 0;
    }
    return 0;
}
