/* Bounds-checked little-endian cursor with a sticky error. */
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct reader {
    const uint8_t *ptr;
    size_t len, at;
    bool bad; /* read past the end: everything after is 0 */
} reader;

static inline reader reader_of(const void *p, size_t n)
{
    return (reader){(const uint8_t *)p, n, 0, false};
}
uint32_t reader_u32(reader *r);
uint64_t reader_u64(reader *r);
const uint8_t *reader_bytes(reader *r, uint64_t n); /* NULL and bad when there are not as many */
static inline size_t reader_left(const reader *r)
{
    return r->len - r->at;
}

#endif
