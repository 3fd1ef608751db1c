/* Table hashes are xxHash's XXH3.  SHA-256 (FIPS 180-4) is for naming content; sha256.c has it. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash64(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(p ? p : "", n, seed);
}
