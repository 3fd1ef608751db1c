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
/* The same for up to MAP_BATCH keys at once, whose waits for memory overlap; MAP_NONE: not there. */
enum { MAP_BATCH = 64 };
#define MAP_NONE UINT32_MAX
void map_get_many(const map *m, const cairn_str *key, size_t n, uint32_t *value);
/* map_put of up to MAP_BATCH keys, in their order. */
cairn_status map_put_many(map *m, const cairn_str *key, const uint32_t *value, size_t n);
/* The same two for keys at each of which MAP_WIDE bytes may be read, however short it is: nothing then
   depends on the length of a short one, so that no branch is guessed wrong. */
enum { MAP_WIDE = 16 };
void map_get_wide(const map *m, const cairn_str *key, size_t n, uint32_t *value);
cairn_status map_put_wide(map *m, const cairn_str *key, const uint32_t *value, size_t n);

#endif
