/* Open-addressing map from byte strings (borrowed) to uint32 values. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/alloc.h"
#include "cairn/status.h"

typedef struct map {
    struct map_slot *slot;
    size_t cap, n;
    mem_tag tag;
} map;

void map_init(map *m, mem_tag tag);
void map_deinit(map *m);
cairn_status map_reserve(map *m, size_t n);
/* Inserts or replaces.  The key's bytes must stay. */
cairn_status map_put(map *m, cairn_str key, uint32_t value);
bool map_get(const map *m, cairn_str key, uint32_t *value);
/* The same in steps, for many keys at once, whose waits for memory then overlap: hash all, then hint at
   their slots, then at what the slots point to, then get. */
uint64_t map_hash(cairn_str key);
void map_hint_slot(const map *m, uint64_t hash);
void map_hint_key(const map *m, uint64_t hash);
bool map_get_hashed(const map *m, cairn_str key, uint64_t hash, uint32_t *value);
/* A hint that `key` will be asked for soon: many at once wait for memory together. */
void map_prefetch(const map *m, cairn_str key);

#endif
