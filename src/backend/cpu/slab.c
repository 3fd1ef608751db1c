/* Slabs are mapped, so that what nobody touches costs addresses only; a span is never used twice. */
#include "backend/cpu/slab.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/num.h"

enum {
    SLAB_SIZE = 64 << 20, /* 32 huge pages: the one that is used in part is then a small loss */
    LINE = 64
};

struct slab {
    slab *next;
    uint8_t *data;
    size_t size, used;
    size_t n_live;
};

static slab *slab_new(size_t size)
{
    slab *b = mem_calloc(1, sizeof *b, MEM_MODEL);
    if (!b) return NULL;
    b->size = size;
    b->data = mem_map(size, MEM_WEIGHTS);
    if (b->data) return b;
    mem_free(b);
    return NULL;
}

uint8_t *slabs_take(slabs *s, size_t size)
{
    slab *b = s->newest;
    if (size > SIZE_MAX / 2) return NULL;
    size = round_up(size, LINE);
    if (!b || b->size - b->used < size) {
        b = slab_new(size > SLAB_SIZE ? size : SLAB_SIZE);
        if (!b) return NULL;
        b->next = s->newest;
        s->newest = b;
    }
    uint8_t *p = b->data + b->used;
    b->used += size;
    b->n_live++;
    return p;
}

void slabs_give(slabs *s, const uint8_t *p)
{
    slab **at = &s->newest;
    while (*at && (p < (*at)->data || p >= (*at)->data + (*at)->size)) at = &(*at)->next;
    slab *b = *at;
    assert(b && b->n_live > 0);
    if (--b->n_live > 0) return;
    *at = b->next;
    mem_unmap(b->data, b->size, MEM_WEIGHTS);
    mem_free(b);
}

size_t slabs_spare(const slabs *s)
{
    size_t spare = 0;
    for (const slab *b = s->newest; b; b = b->next) spare += b->size - b->used;
    return spare;
}

const uint8_t *slabs_chunk(const slabs *s, size_t size, size_t i)
{
    for (const slab *b = s->newest; b; b = b->next) {
        const size_t n = b->used / size;
        if (i < n) return b->data + i * size;
        i -= n;
    }
    return NULL;
}
