/* Table hashes are xxHash's XXH3.  SHA-256 (FIPS 180-4) is for naming content; sha256.c has it. */
#include "base/hash.h"

#include <assert.h>
#define XXH_STATIC_LINKING_ONLY /* shows the size of a stream's state; the library is linked all the same */
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(hash64_stream), "a stream has room");

uint64_t hash64(const void *p, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(p ? p : "", n, seed);
}

hash128 hash128_of(const void *p, size_t n)
{
    const XXH128_hash_t h = XXH3_128bits(p ? p : "", n);
    return (hash128){h.low64, h.high64};
}

void hash128_begin(hash64_stream *s)
{
    XXH3_state_t *x = (XXH3_state_t *)(void *)s->state;
    XXH3_INITSTATE(x);
    const XXH_errorcode e = XXH3_128bits_reset(x);
    assert(e == XXH_OK);
    (void)e;
}

void hash128_add(hash64_stream *s, const void *p, size_t n)
{
    const XXH_errorcode e = XXH3_128bits_update((XXH3_state_t *)(void *)s->state, p ? p : "", n);
    assert(e == XXH_OK);
    (void)e;
}

hash128 hash128_end(const hash64_stream *s)
{
    const XXH128_hash_t h = XXH3_128bits_digest((const XXH3_state_t *)(const void *)s->state);
    return (hash128){h.low64, h.high64};
}

void hash_library(buf *out)
{
    const unsigned v = XXH_versionNumber();
    buf_printf(out, "xxhash %u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

void hash64_begin(hash64_stream *s)
{
    XXH3_state_t *x = (XXH3_state_t *)(void *)s->state;
    XXH3_INITSTATE(x);
    const XXH_errorcode e = XXH3_64bits_reset(x);
    assert(e == XXH_OK);
    (void)e;
}

void hash64_add(hash64_stream *s, const void *p, size_t n)
{
    const XXH_errorcode e = XXH3_64bits_update((XXH3_state_t *)(void *)s->state, p ? p : "", n);
    assert(e == XXH_OK);
    (void)e;
}

uint64_t hash64_end(const hash64_stream *s)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)s->state);
}
