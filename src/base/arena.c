/* Bump arena.  Blocks form a list, newest first; each is twice the last one up to a limit, so that
   small arenas stay small and big ones take few calls.  Only the newest block is carved. */
#include "base/arena.h"

#include <string.h>

#include "base/num.h"

struct arena_block {
    struct arena_block *next;
    size_t cap, used; /* of the bytes that follow */
    size_t unused;    /* keeps what follows 16-byte aligned */
};
_Static_assert(sizeof(struct arena_block) % 16 == 0, "blocks hand out aligned memory");

enum {
    ARENA_ALIGN = 16,
    BLOCK_MIN = 4096 - 64, /* a page with all headers */
    BLOCK_MAX = 1 << 20    /* waste at most this at the end of a block */
};

void arena_init(arena *a, mem_tag tag)
{
    *a = (arena){NULL, 0, tag};
}

void arena_deinit(arena *a)
{
    struct arena_block *b = a->head;
    while (b) {
        struct arena_block *next = b->next;
        mem_free(b);
        b = next;
    }
    a->head = NULL;
    a->used = 0;
}

size_t arena_bytes(const arena *a)
{
    size_t n = 0;
    for (const struct arena_block *b = a->head; b; b = b->next) n += sizeof *b + b->cap;
    return n;
}

static struct arena_block *add_block(arena *a, size_t size, bool zeroed)
{
    size_t cap = a->head ? a->head->cap * 2 : BLOCK_MIN, all;
    if (cap > BLOCK_MAX) cap = BLOCK_MAX;
    if (cap < size) cap = size;
    if (!add_size(cap, sizeof(struct arena_block), &all)) return NULL;
    struct arena_block *b = zeroed ? mem_calloc(1, all, a->tag) : mem_alloc(all, a->tag);
    if (!b) return NULL;
    *b = (struct arena_block){a->head, cap, 0, 0};
    a->head = b;
    return b;
}

/* zeroed: a block of its own, which the system has zeroed already. */
static void *carve(arena *a, size_t size, bool zeroed)
{
    size_t padded;
    if (!add_size(size ? size : 1, ARENA_ALIGN - 1, &padded)) return NULL;
    padded &= ~(size_t)(ARENA_ALIGN - 1);
    struct arena_block *b = a->head;
    if (!b || zeroed || b->cap - b->used < padded) b = add_block(a, padded, zeroed);
    if (!b) return NULL;
    char *p = (char *)(b + 1) + b->used;
    b->used += padded;
    a->used += padded;
    return p;
}

void *arena_alloc(arena *a, size_t size)
{
    return carve(a, size, false);
}

void *arena_calloc(arena *a, size_t n, size_t size)
{
    size_t all;
    if (!mul_size(n, size, &all)) return NULL;
    if (all > BLOCK_MAX) return carve(a, all, true);
    void *p = arena_alloc(a, all);
    if (p) memset(p, 0, all);
    return p;
}

char *arena_strdup(arena *a, cairn_str s)
{
    size_t all;
    if (!add_size(s.len, 1, &all)) return NULL;
    char *p = arena_alloc(a, all);
    if (!p) return NULL;
    if (s.len) memcpy(p, s.ptr, s.len);
    p[s.len] = '\0';
    return p;
}
