/* Owns what is rare in tok_hf_scan.h's reading: blanks, new gaps, strings with escapes. */
#include "text/tok_hf_scan.h"

#include "base/utf8.h"

void hf_scan_blanks(hf_scan *r)
{
    const char *p = r->p, *end = r->end;
    byte16 x;

    for (; (size_t)(end - p) >= sizeof x; p += sizeof x) {
        memcpy(&x, p, sizeof x);
        const lane16 blank =
            (lane16)(x == ' ') | (lane16)(x == '\n') | (lane16)(x == '\r') | (lane16)(x == '\t');
        const uint64_t stop = ascii_bits(~blank);
        if (!stop) continue;
        r->p = p + __builtin_ctzll(stop);
        return;
    }
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    r->p = p;
}

bool hf_new_gap(hf_scan *r, hf_gap *g, const char *what)
{
    const char *from = r->p;

    hf_skip_space(r);
    for (; *what; what++) {
        if (!hf_next_is(r, *what)) {
            r->p = from;
            return false;
        }
        r->p++;
        if (*what != '"') hf_skip_space(r);
    }
    *g = HF_GAP_NONE;
    if (r->p - from > HF_GAP_MOST || r->end - from < HF_GAP_MOST) return true;
    g->len = (size_t)(r->p - from);
    g->want = ((uint64_t)1 << g->len) - 1;
    memcpy(g->half, from, sizeof g->half);
    return true;
}

/* Four digits of \u. */
static bool read_unit(hf_scan *r, uint32_t *unit)
{
    *unit = 0;
    if (r->end - r->p < 4) return false;
    for (int i = 0; i < 4; i++) {
        const int digit = str_hex_digit(*r->p++);
        if (digit < 0) return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

/* What stands behind a backslash. */
static bool read_escape(hf_scan *r, buf *out)
{
    static const char name[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    uint32_t cp, low;
    char utf8[4];

    if (r->p == r->end) return false;
    const char c = *r->p++;
    if (c != 'u') {
        const char *at = c ? strchr(name, c) : NULL;
        if (at) buf_byte(out, value[at - name]);
        return at != NULL;
    }
    if (!read_unit(r, &cp) || (cp >= 0xDC00 && cp <= 0xDFFF)) return false;
    if (cp >= 0xD800 && cp < 0xDC00) {
        if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u') return false;
        r->p += 2;
        if (!read_unit(r, &low) || low < 0xDC00 || low > 0xDFFF) return false;
        cp = 0x10000 + ((cp - 0xD800) << 10 | (low - 0xDC00));
    }
    buf_put(out, utf8, (size_t)utf8_encode(cp, utf8));
    return true;
}

bool hf_odd_string(hf_scan *r, const char *from, cairn_str *out)
{
    buf *plain = &r->plain;

    /* No string is longer than it is spelt: room for all that can come, of which the system gives what is
       written to. */
    if (!plain->cap && buf_reserve(plain, (size_t)(r->end - from) + MAP_WIDE)) return false;
    const size_t at = plain->len;
    buf_put(plain, from, (size_t)(r->p - from));
    while (r->p < r->end && *r->p != '"') {
        const char c = *r->p++;
        if ((uint8_t)c < 0x20) return false;
        if (c != '\\')
            buf_byte(plain, c);
        else if (!read_escape(r, plain))
            return false;
    }
    if (r->p++ == r->end || buf_status(plain) != CAIRN_OK) return false;
    *out = (cairn_str){plain->ptr + at, plain->len - at};
    return true;
}
