/* Hashes: xxHash for tables, SHA-256 for content. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

uint64_t hash64(const void *p, size_t n, uint64_t seed);

/* The same of bytes that come in pieces; no part of it need be given back. */
typedef struct hash64_stream {
    _Alignas(64) uint8_t state[576];
} hash64_stream;
void hash64_begin(hash64_stream *s);
void hash64_add(hash64_stream *s, const void *p, size_t n);
uint64_t hash64_end(const hash64_stream *s); /* with seed 0 */

/* Wide enough that two of the things that one machine ever names do not meet by chance. */
typedef struct hash128 {
    uint64_t lo, hi;
} hash128;
hash128 hash128_of(const void *p, size_t n);
/* The same of bytes that come in pieces, by a stream that hash128_begin has begun. */
void hash128_begin(hash64_stream *s);
void hash128_add(hash64_stream *s, const void *p, size_t n);
hash128 hash128_end(const hash64_stream *s);
static inline bool hash128_same(hash128 a, hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

typedef struct sha256 {
    uint32_t h[8];
    uint64_t n;
    uint8_t block[64];
} sha256;
void sha256_init(sha256 *s); /* FIPS 180-4 */
void sha256_add(sha256 *s, const void *p, size_t n);
void sha256_end(sha256 *s, uint8_t out[32]);
void sha256_hex(const uint8_t digest[32], char out[65]);

void hash_library(buf *out); /* name and version of the library below hash64 and its like */

#endif
