/* Little-endian cursor.  Never reads outside [ptr, ptr+len); after the first failure `at` stays at
   the end, so that loops over a reader terminate. */
#include "base/reader.h"

const uint8_t *reader_bytes(reader *r, uint64_t n)
{
    if (r->bad || n > r->len - r->at) {
        r->bad = true;
        r->at = r->len;
        return NULL;
    }
    const uint8_t *p = r->ptr + r->at;
    r->at += (size_t)n;
    return p;
}

static uint64_t little(reader *r, unsigned n)
{
    const uint8_t *p = reader_bytes(r, n);
    uint64_t v = 0;
    if (!p) return 0;
    for (unsigned i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint32_t reader_u32(reader *r)
{
    return (uint32_t)little(r, 4);
}

uint64_t reader_u64(reader *r)
{
    return little(r, 8);
}
