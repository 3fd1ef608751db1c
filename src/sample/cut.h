/* Where a descending sort of the vocabulary would be cut, found without sorting it. */
#ifndef SAMPLE_CUT_H
#define SAMPLE_CUT_H

#include "cairn/status.h"

/* Keeps values greater than `at`, and the first `n_equal` (by id) of those equal to it. */
typedef struct cut {
    float at;
    int32_t n_equal;
} cut;

typedef struct cutter cutter; /* scratch for so many values */

cairn_status cutter_new(int32_t n_max, cutter **out);
void cutter_free(cutter *c);
uint64_t cutter_bytes(const cutter *c); /* that it holds */
/* Looks at n ≤ n_max values x, none NaN, the greatest being `top`, and their weights w (NULL: cut_top_mass
   is not asked).  Both stay the caller's and must last while cuts are asked. */
void cutter_begin(cutter *c, int32_t n, const float *x, const float *w, float top);
/* The k greatest (1 ≤ k ≤ n). */
cut cut_top_k(cutter *c, int32_t k);
/* The fewest greatest whose weights sum to at least `mass`; at least one, at most all. */
cut cut_top_mass(cutter *c, double mass);
/* The stricter of two. */
static inline cut cut_both(cut a, cut b)
{
    if (a.at != b.at) return a.at > b.at ? a : b;
    return a.n_equal < b.n_equal ? a : b;
}

#endif
