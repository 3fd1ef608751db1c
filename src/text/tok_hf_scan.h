/* Strict reading of JSON's text for the two long lists of a tokenizer.json: blanks, strings, and what
   stands between the elements of a list.  Bytes that are not UTF-8 pass. */
#ifndef TEXT_TOK_HF_SCAN_H
#define TEXT_TOK_HF_SCAN_H

#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "text/ascii.h"

typedef struct hf_scan {
    const char *p, *end; /* what is next; all is borrowed */
    buf plain;           /* strings that do not stand in the file as they are; never moved */
} hf_scan;

/* Past blanks, of which indented files mostly consist. */
void hf_scan_blanks(hf_scan *r);
static inline void hf_skip_space(hf_scan *r)
{
    if (r->p < r->end && (uint8_t)*r->p <= ' ') hf_scan_blanks(r);
}

static inline bool hf_next_is(const hf_scan *r, char c)
{
    return r->p < r->end && *r->p == c;
}

/* The character c and the blanks behind it. */
static inline bool hf_take(hf_scan *r, char c)
{
    if (!hf_next_is(r, c)) return false;
    r->p++;
    hf_skip_space(r);
    return true;
}

/* What stood between two texts or numbers the last time: in a list it is the same from one end to the
   other, but at its ends and where a text has escapes.  Longer ones are read anew each time. */
enum { HF_GAP_MOST = 32 };
typedef struct hf_gap {
    byte16 half[2];
    uint64_t
        want; /* a bit for each byte that counts; not known yet: more bits than there are bytes */
    size_t len;
} hf_gap;
#define HF_GAP_NONE                                                                                \
    (hf_gap)                                                                                       \
    {                                                                                              \
        .want = UINT64_MAX                                                                         \
    }

/* The characters `what` with blanks around each of them, but not behind a quote.  Where other ones stand
   nothing is taken. */
bool hf_new_gap(hf_scan *r, hf_gap *g, const char *what);

static inline bool hf_same_gap(hf_scan *r, const hf_gap *g)
{
    byte16 x, y;

    if (r->end - r->p < HF_GAP_MOST) return false;
    memcpy(&x, r->p, sizeof x);
    memcpy(&y, r->p + sizeof x, sizeof y);
    const uint64_t same =
        ascii_bits((lane16)(x == g->half[0])) | ascii_bits((lane16)(y == g->half[1])) << sizeof x;
    if ((same & g->want) != g->want) return false;
    r->p += g->len;
    return true;
}

static inline bool hf_take_gap(hf_scan *r, hf_gap *g, const char *what)
{
    return hf_same_gap(r, g) || hf_new_gap(r, g, what);
}

/* The end of the plain bytes of a string: its quote, a backslash, or what may not be there. */
static inline const char *hf_plain_end(const char *p, const char *end)
{
    byte16 x;

    for (; (size_t)(end - p) >= sizeof x; p += sizeof x) {
        memcpy(&x, p, sizeof x);
        const lane16 special =
            (lane16)(x == '"') | (lane16)(x == '\\') | ascii_range(x, 0, ' ' - 1);
        const uint64_t stop = ascii_bits(special);
        if (stop) return p + __builtin_ctzll(stop);
    }
    while (p < end && (uint8_t)*p >= ' ' && *p != '"' && *p != '\\') p++;
    return p;
}

/* The string that begins at `from`, put into `plain`: with escapes, or at the end of the file. */
bool hf_odd_string(hf_scan *r, const char *from, cairn_str *out);

/* A string behind its first quote, with the last one.  MAP_WIDE bytes may be read behind it. */
static inline bool hf_string(hf_scan *r, cairn_str *out)
{
    const char *from = r->p, *p = hf_plain_end(from, r->end);

    r->p = p;
    if (r->end - p < MAP_WIDE || *p != '"') return hf_odd_string(r, from, out);
    *out = (cairn_str){from, (size_t)(p - from)};
    r->p++;
    return true;
}

#endif
