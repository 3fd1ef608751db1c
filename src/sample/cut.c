/* Selection in two stages.  All values are counted (and their weights summed) in bins of equal width
   below the greatest; walking down the bins finds the one where the cut lies.  Its members alone,
   few unless the distribution is odd, are then radix-selected by their bits, 11, 11 and 10 at a
   time.  Linear in the vocabulary, a fixed scratch, the same result on every machine. */
#include "sample/cut.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum { BINS = 1 << 11, BLOCK = 64 };
/* 32 nats below the greatest: what is lower has no weight that an f32 sum would notice. */
static const float bins_per_nat = 64.0f;

typedef struct bins {
    int32_t count[BINS];
    double mass[BINS];
} bins;

struct cutter {
    int32_t n, n_max;
    const float *x, *w;
    uint16_t *bin;  /* [n_max] */
    int32_t *list;  /* [n_max] indices in one bin */
    bins all, fine; /* of every value; of the list */
};

/* What is still to be passed: a number of values, or a weight. */
typedef struct wanted {
    int32_t count;
    double mass;
    bool by_mass;
} wanted;

cairn_status cutter_new(int32_t n_max, cutter **out)
{
    const size_t n = (size_t)n_max;
    cutter *c = mem_calloc(1, sizeof *c, MEM_ENGINE);
    if (!c) return CAIRN_E_NOMEM;
    c->n_max = n_max;
    c->bin = mem_alloc(n * sizeof *c->bin, MEM_ENGINE);
    c->list = mem_alloc(n * sizeof *c->list, MEM_ENGINE);
    if (!c->bin || !c->list) {
        cutter_free(c);
        return CAIRN_E_NOMEM;
    }
    *out = c;
    return CAIRN_OK;
}

void cutter_free(cutter *c)
{
    if (!c) return;
    mem_free(c->list);
    mem_free(c->bin);
    mem_free(c);
}

uint64_t cutter_bytes(const cutter *c)
{
    return sizeof *c + (uint64_t)c->n_max * (sizeof *c->bin + sizeof *c->list);
}

static uint16_t bin_of(float x, float top)
{
    const float at = (top - x) * bins_per_nat;
    return (uint16_t)(int32_t)(at < (float)(BINS - 1) ? at : (float)(BINS - 1));
}

void cutter_begin(cutter *c, int32_t n, const float *x, const float *w, float top)
{
    assert(n >= 1 && n <= c->n_max);
    c->n = n;
    c->x = x;
    c->w = w;
    memset(&c->all, 0, sizeof c->all);
    int32_t i = 0;
    for (; i + BLOCK <= c->n; i += BLOCK) /* a constant count: the compiler uses vectors */
        for (int32_t k = 0; k < BLOCK; k++) c->bin[i + k] = bin_of(x[i + k], top);
    for (; i < c->n; i++) c->bin[i] = bin_of(x[i], top);
    for (i = 0; i < c->n; i++) c->all.count[c->bin[i]]++;
    for (i = 0; w && i < c->n; i++) c->all.mass[c->bin[i]] += (double)w[i];
}

/* The bin, rising, in which the wanted amount is passed; `left` becomes what is wanted of that bin.
   Rounding may leave a mass unreached: then the last bin that holds anything. */
static int32_t walk(const bins *s, int32_t n, wanted *left)
{
    int32_t last = 0;
    wanted at_last = *left;
    for (int32_t b = 0; b < n; b++) {
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

/* Rises as the value falls, so that bins rise from the greatest; -0 and +0 are one. */
static uint32_t key_of(float x)
{
    uint32_t u;
    const float y = x + 0.0f;
    memcpy(&u, &y, sizeof u);
    return u & 0x80000000u ? u : ~(u | 0x80000000u);
}

static float value_of(uint32_t key)
{
    const uint32_t u = key & 0x80000000u ? key : ~key & 0x7fffffffu;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Keeps the list's members whose key, shifted, is `prefix`, and bins them by the next bits. */
static int32_t narrow(cutter *c, int32_t n_list, uint32_t prefix, int shift, int bits)
{
    const uint32_t mask = (1u << bits) - 1;
    int32_t n = 0;
    memset(&c->fine, 0, sizeof c->fine);
    for (int32_t i = 0; i < n_list; i++) {
        const int32_t id = c->list[i];
        const uint32_t key = key_of(c->x[id]);
        if (shift + bits < 32 && key >> (shift + bits) != prefix) continue;
        c->list[n++] = id;
        c->fine.count[(key >> shift) & mask]++;
        if (c->w) c->fine.mass[(key >> shift) & mask] += (double)c->w[id];
    }
    return n;
}

/* Of `count` equal values of total weight `mass`, how many are wanted. */
static int32_t wanted_equal(const wanted *left, int32_t count, double mass)
{
    if (!left->by_mass) return left->count;
    const double each = mass / count;
    int32_t k = 1;
    while (k < count && each * k < left->mass) k++;
    return k;
}

static cut find(cutter *c, wanted left)
{
    static const struct {
        int shift, bits;
    } level[] = {{21, 11}, {10, 11}, {0, 10}};
    int32_t n = 0, bin = walk(&c->all, BINS, &left);
    for (int32_t i = 0; i < c->n; i++)
        if (c->bin[i] == bin) c->list[n++] = i;
    uint32_t prefix = 0;
    for (size_t i = 0; i < sizeof level / sizeof *level; i++) {
        n = narrow(c, n, prefix, level[i].shift, level[i].bits);
        bin = walk(&c->fine, 1 << level[i].bits, &left);
        prefix = prefix << level[i].bits | (uint32_t)bin;
    }
    return (cut){value_of(prefix), wanted_equal(&left, c->fine.count[bin], c->fine.mass[bin])};
}

cut cut_top_k(cutter *c, int32_t k)
{
    assert(k >= 1 && k <= c->n);
    return find(c, (wanted){.count = k});
}

cut cut_top_mass(cutter *c, double mass)
{
    assert(c->w);
    return find(c, (wanted){.mass = mass, .by_mass = true});
}
