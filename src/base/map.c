/* Open addressing with linear probing; the capacity is a power of two and at most three quarters
   are taken.  A slot keeps the key's first bytes, so that most look-ups need not go where the key is.
   There is no deletion: tables are built once. */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"
#include "base/num.h"

struct map_slot {
    const char *ptr; /* NULL: free */
    uint64_t head;   /* up to 8 bytes, zeros behind */
    uint32_t len, value;
};

enum { MAP_FIRST = 16 };

void map_init(map *m, mem_tag tag)
{
    *m = (map){NULL, 0, 0, tag};
}

void map_deinit(map *m)
{
    mem_free(m->slot);
    *m = (map){NULL, 0, 0, m->tag};
}

static inline uint64_t head_of(cairn_str key)
{
    uint64_t head = 0;
    uint32_t half[2] = {0, 0};

    if (key.len >= sizeof head) {
        memcpy(&head, key.ptr, sizeof head);
    } else if (key.len >= sizeof half[0]) { /* two halves, which overlap */
        memcpy(&half[0], key.ptr, sizeof half[0]);
        memcpy(&half[1], key.ptr + key.len - sizeof half[1], sizeof half[1]);
        head = half[0] | (uint64_t)half[1] << (key.len - sizeof half[1]) * 8;
    } else {
        for (size_t i = 0; i < key.len; i++) head |= (uint64_t)(uint8_t)key.ptr[i] << 8 * i;
    }
    return head;
}

uint64_t map_hash(cairn_str key)
{
    if (key.len > sizeof(uint64_t)) return hash64(key.ptr, key.len, 0);
    const uint64_t h = (head_of(key) ^ key.len << 59) * 0x9E3779B97F4A7C15u;
    return (h ^ h >> 32) * 0xC2B2AE3D27D4EB4Fu >> 16; /* the slot is chosen by the low bits */
}

/* The slot that holds `key`, or the free one where it belongs. */
static struct map_slot *probe(struct map_slot *slot, size_t cap, cairn_str key, uint64_t h)
{
    const uint64_t head = head_of(key);

    for (size_t i = h & (cap - 1);; i = (i + 1) & (cap - 1)) {
        struct map_slot *s = &slot[i];
        if (!s->ptr) return s;
        if (s->head != head || s->len != key.len) continue;
        if (key.len <= sizeof head ||
            memcmp(s->ptr + sizeof head, key.ptr + sizeof head, key.len - sizeof head) == 0)
            return s;
    }
}

static cairn_status rehash(map *m, size_t cap)
{
    struct map_slot *fresh = mem_calloc(cap, sizeof *fresh, m->tag);
    if (!fresh) return CAIRN_E_NOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        const struct map_slot *s = &m->slot[i];
        if (!s->ptr) continue;
        const cairn_str key = {s->ptr, s->len};
        *probe(fresh, cap, key, map_hash(key)) = *s;
    }
    mem_free(m->slot);
    m->slot = fresh;
    m->cap = cap;
    return CAIRN_OK;
}

cairn_status map_reserve(map *m, size_t n)
{
    size_t cap = m->cap ? m->cap : MAP_FIRST;
    while (cap - cap / 4 < n)
        if (!mul_size(cap, 2, &cap)) return CAIRN_E_NOMEM;
    return cap > m->cap ? rehash(m, cap) : CAIRN_OK;
}

cairn_status map_put(map *m, cairn_str key, uint32_t value)
{
    if (key.len > UINT32_MAX) return CAIRN_E_LIMIT;
    const cairn_status st = map_reserve(m, m->n + 1);
    if (st != CAIRN_OK) return st;
    const uint64_t h = map_hash(key);
    struct map_slot *s = probe(m->slot, m->cap, key, h);
    if (s->ptr) {
        s->value = value;
        return CAIRN_OK;
    }
    *s = (struct map_slot){key.ptr ? key.ptr : "", head_of(key), (uint32_t)key.len, value};
    m->n++;
    return CAIRN_OK;
}

bool map_get_hashed(const map *m, cairn_str key, uint64_t hash, uint32_t *value)
{
    if (m->n == 0) return false;
    const struct map_slot *s = probe(m->slot, m->cap, key, hash);
    if (!s->ptr) return false;
    *value = s->value;
    return true;
}

bool map_get(const map *m, cairn_str key, uint32_t *value)
{
    return m->n && map_get_hashed(m, key, map_hash(key), value);
}

void map_hint_slot(const map *m, uint64_t hash)
{
    if (m->n) __builtin_prefetch(&m->slot[hash & (m->cap - 1)]);
}

void map_hint_key(const map *m, uint64_t hash)
{
    if (m->n) __builtin_prefetch(m->slot[hash & (m->cap - 1)].ptr);
}

void map_prefetch(const map *m, cairn_str key)
{
    if (m->cap) __builtin_prefetch(&m->slot[map_hash(key) & (m->cap - 1)]);
}
