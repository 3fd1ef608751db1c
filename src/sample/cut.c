/* Radix selection: the cut's key is found 11, 11 and 10 bits at a time.  A level counts tokens (or
   sums weights) by the next bits of their key among those that share the bits found so far, then
   walks bins downwards until the wanted amount is passed.  Three passes over the vocabulary, a fixed
   scratch, the same result on every machine. */
#include "sample/cut.h"

#include <stddef.h>

#include "base/num.h"

typedef struct level {
    int shift, bits;
} level;
static const level levels[] = {{21, 11}, {10, 11}, {0, 10}};

/* What is still to be passed: a number of tokens, or a weight. */
typedef struct wanted {
    int32_t count;
    double mass;
    bool by_mass;
} wanted;

static void fill(const float *x, const float *w, int32_t n, const level *l, uint32_t prefix,
                 cut_scratch *s)
{
    const uint32_t bins = 1u << l->bits;
    const int above = l->shift + l->bits;
    memset(s->count, 0, bins * sizeof *s->count);
    memset(s->mass, 0, bins * sizeof *s->mass);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t key = cut_key(x[i]);
        if (above < 32 && key >> above != prefix) continue;
        const uint32_t bin = (key >> l->shift) & (bins - 1);
        s->count[bin]++;
        if (w) s->mass[bin] += (double)w[i];
    }
}

/* The bin in which the wanted amount is passed; `left` becomes what is wanted of that bin.  Rounding
   may leave a mass unreached: then the lowest bin that holds anything. */
static uint32_t walk(const cut_scratch *s, uint32_t bins, wanted *left)
{
    uint32_t last = 0;
    wanted at_last = *left;
    for (uint32_t b = bins; b-- > 0;) {
        if (!s->count[b]) continue;
        last = b;
        at_last = *left;
        if (left->by_mass ? s->mass[b] >= left->mass : s->count[b] >= left->count) break;
        left->count -= s->count[b];
        left->mass -= s->mass[b];
    }
    *left = at_last;
    return last;
}

/* Of `count` equal tokens of total weight `mass`, how many are wanted. */
static int32_t wanted_equal(const wanted *left, int32_t count, double mass)
{
    if (!left->by_mass) return left->count;
    const double each = mass / count;
    int32_t k = 1;
    while (k < count && each * k < left->mass) k++;
    return k;
}

static cut find(const float *x, const float *w, int32_t n, wanted left, cut_scratch *s)
{
    uint32_t prefix = 0, bin = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        fill(x, w, n, &levels[i], prefix, s);
        bin = walk(s, 1u << levels[i].bits, &left);
        prefix = prefix << levels[i].bits | bin;
    }
    return (cut){prefix, wanted_equal(&left, s->count[bin], s->mass[bin])};
}

cut cut_top_k(const float *x, int32_t n, int32_t k, cut_scratch *scratch)
{
    return find(x, NULL, n, (wanted){.count = k}, scratch);
}

cut cut_top_mass(const float *x, const float *w, int32_t n, double mass, cut_scratch *scratch)
{
    return find(x, w, n, (wanted){.mass = mass, .by_mass = true}, scratch);
}
