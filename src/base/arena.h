/* Bump arena: one lifetime, freed at once.  Not thread-safe. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/alloc.h"
#include "cairn/status.h"

typedef struct arena {
    struct arena_block *head;
    size_t used; /* bytes handed out */
    mem_tag tag;
} arena;

void arena_init(arena *a, mem_tag tag);
void arena_deinit(arena *a); /* a zeroed or deinitialised arena is fine */
/* 16-byte aligned, not zeroed; NULL when there is no memory. */
void *arena_alloc(arena *a, size_t size);
void *arena_calloc(arena *a, size_t n, size_t size);
size_t arena_bytes(const arena *a);        /* of its blocks, used or not */
char *arena_strdup(arena *a, cairn_str s); /* NUL-terminated copy */

#endif
