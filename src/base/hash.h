/* Hashes: xxHash for tables, SHA-256 for content. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash64(const void *p, size_t n, uint64_t seed);

typedef struct sha256 {
    uint32_t h[8];
    uint64_t n;
    uint8_t block[64];
} sha256;
void sha256_init(sha256 *s); /* FIPS 180-4 */
void sha256_add(sha256 *s, const void *p, size_t n);
void sha256_end(sha256 *s, uint8_t out[32]);
void sha256_hex(const uint8_t digest[32], char out[65]);

#endif
