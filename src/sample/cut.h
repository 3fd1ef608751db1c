/* Where a descending sort of the vocabulary would be cut, found without sorting it. */
#ifndef SAMPLE_CUT_H
#define SAMPLE_CUT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Keeps tokens whose key is greater, and the first `n_equal` (by id) of those whose key is equal. */
typedef struct cut {
    uint32_t key;
    int32_t n_equal;
} cut;

enum { CUT_BINS = 1 << 11 };
typedef struct cut_scratch {
    int32_t count[CUT_BINS];
    double mass[CUT_BINS];
} cut_scratch;

/* Order of floats as order of integers; -0 and +0 are one. */
static inline uint32_t cut_key(float x)
{
    uint32_t u;
    const float y = x + 0.0f;
    memcpy(&u, &y, sizeof u);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

/* The k greatest (1 ≤ k ≤ n). */
cut cut_top_k(const float *x, int32_t n, int32_t k, cut_scratch *scratch);
/* The fewest greatest whose weights w sum to at least `mass`; at least one, at most all. */
cut cut_top_mass(const float *x, const float *w, int32_t n, double mass, cut_scratch *scratch);
/* The stricter of two. */
static inline cut cut_both(cut a, cut b)
{
    if (a.key != b.key) return a.key > b.key ? a : b;
    return a.n_equal < b.n_equal ? a : b;
}

#endif
