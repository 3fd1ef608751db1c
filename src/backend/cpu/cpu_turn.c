/* The rotation of TurboQuant's values (Zandieh et al. 2025): random signs, then the Walsh-Hadamard transform
   in its one order of additions, pairs 1 apart first, then RN(1 / sqrt(n)).  Attention sums rotated values and
   turns the sum back once. */
#include <assert.h>
#include <math.h>

#include "backend/cpu/cpu_attend.h"
#include "base/half.h"

/* Signs of elements 64i … 64i + 63 of n: output n + i of SplitMix64 from seed 42 (Steele et al. 2014). */
static uint64_t sign_word(size_t n, size_t i)
{
    uint64_t z = 42 + (uint64_t)(n + i) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void flip(float *x, size_t n)
{
    for (size_t i = 0; i < n / 64; i++) {
        const uint64_t w = sign_word(n, i);
        for (size_t k = 0; k < 64; k++, x++)
            *x = f32_from_bits(f32_bits(*x) ^ (uint32_t)(w >> k & 1) << 31);
    }
}

static void transform(float *x, size_t n)
{
    for (size_t h = 1; h < n; h *= 2)
        for (size_t i = 0; i < n; i += 2 * h)
            for (size_t k = i; k < i + h; k++) {
                const float a = x[k], b = x[k + h];
                x[k] = a + b;
                x[k + h] = a - b;
            }
    const float c = 1.0f / sqrtf((float)n);
    for (size_t i = 0; i < n; i++) x[i] *= c;
}

void kv_turn(float *x, size_t n)
{
    assert(n % 64 == 0 && (n & (n - 1)) == 0);
    flip(x, n);
    transform(x, n);
}

void kv_turn_back(float *x, size_t n)
{
    assert(n % 64 == 0 && (n & (n - 1)) == 0);
    transform(x, n);
    flip(x, n);
}
