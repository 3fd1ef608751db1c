/* Philox4x32-10 (Salmon et al. 2011, section 3.3 and table 2): ten rounds of two 32×32→64 products.
   The counter is (index, stream), the key is the seed; of the 128 bits the low 64 are the value. */
#include "base/rng.h"

uint64_t rng_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (uint64_t)c1 << 32 | c0;
}

double rng_unit(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(rng_u64(seed, stream, index) >> 11) * 0x1p-53;
}
