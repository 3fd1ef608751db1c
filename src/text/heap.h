/* Binary min-heap of merge candidates, shared by the models that merge neighbours. */
#ifndef TEXT_HEAP_H
#define TEXT_HEAP_H

#include "base/buf.h"

typedef struct heap_item {
    uint64_t key;  /* order of the merge, then position: the leftmost of equals comes first */
    uint32_t size; /* the model's check that the candidate is still true */
} heap_item;

static inline heap_item *heap_at(buf *b)
{
    return (heap_item *)(void *)b->ptr;
}

static inline void heap_push(buf *b, heap_item x)
{
    if (!buf_grow(b, sizeof x)) return;
    heap_item *h = heap_at(b);
    size_t i = b->len / sizeof x - 1;
    for (; i > 0 && h[(i - 1) / 2].key > x.key; i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = x;
}

static inline bool heap_pop(buf *b, heap_item *out)
{
    size_t n = b->len / sizeof *out, i = 0;

    if (n == 0) return false;
    heap_item *h = heap_at(b), x = h[--n];
    *out = h[0];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && h[c + 1].key < h[c].key) c++;
        if (h[c].key >= x.key) break;
        h[i] = h[c];
    }
    if (n) h[i] = x;
    buf_cut(b, n * sizeof x);
    return true;
}

#endif
