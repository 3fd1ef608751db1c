/* Open addressing with linear probing; the capacity is a power of two and at most three quarters
   are taken.  A slot keeps the key's first bytes, which are all of most keys; four slots fill a line of the
   processor's cache.  Behind the slots stand the last bytes of keys of up to 16, which with the first are
   the key, and where longer ones are.  There is no deletion: tables are built once. */
#include "base/map.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"

struct map_slot {
    uint64_t head;        /* up to 8 bytes, zeros behind */
    uint32_t more, value; /* more: 1 + the key's length; 0: free */
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

/* What the two forms of many keys at once are made of. */
#define EACH_FORM static inline __attribute__((always_inline))

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
    } else if (key.len) { /* first, middle and last, which may be one */
        const uint8_t *p = (const uint8_t *)key.ptr;
        head = p[0] | (uint64_t)p[key.len / 2] << key.len / 2 * 8 |
               (uint64_t)p[key.len - 1] << (key.len - 1) * 8;
    }
    return head;
}

enum { HEAD = 8, BOTH = 16 }; /* bytes of a head, of a head and a tail, which may overlap */

/* A key as it is looked for. */
typedef struct ask {
    cairn_str key;
    uint64_t head, rest, hash; /* rest: what stands behind the slots */
} ask;

/* A rest of 0 changes nothing. */
static inline uint64_t hash_both(uint64_t head, uint64_t rest, size_t len)
{
    const uint64_t h =
        (head ^ (rest ^ rest >> 32) * 0x9FB21C651E98DF25u ^ len << 59) * 0x9E3779B97F4A7C15u;
    return (h ^ h >> 32) * 0xC2B2AE3D27D4EB4Fu >> 16; /* the slot is chosen by the low bits */
}

/* Of head, rest and length, or of the key where that is longer. */
static inline uint64_t hash_of(uint64_t head, uint64_t rest, cairn_str key)
{
    return key.len > BOTH ? hash64(key.ptr, key.len, 0) : hash_both(head, rest, key.len);
}

static inline uint64_t rest_of(cairn_str key)
{
    uint64_t tail;

    if (key.len <= HEAD) return 0;
    if (key.len > BOTH) return (uintptr_t)key.ptr;
    memcpy(&tail, key.ptr + key.len - sizeof tail, sizeof tail);
    return tail;
}

static inline ask ask_for(cairn_str key)
{
    const uint64_t head = head_of(key), rest = rest_of(key);
    return (ask){key, head, rest, hash_of(head, rest, key)};
}

/* Which bits of what is read count, for each length, and where the rest begins. */
static const struct wide {
    uint64_t head, rest, at;
} wide_of[BOTH + 1] = {
#define WIDE_HEAD(n) [n] = {UINT64_MAX >> (64 - 8 * (n)), 0, 0}
#define WIDE_BOTH(n) [n] = {UINT64_MAX, UINT64_MAX, (n)-HEAD}
    WIDE_HEAD(1),  WIDE_HEAD(2),  WIDE_HEAD(3),  WIDE_HEAD(4),  WIDE_HEAD(5),  WIDE_HEAD(6),
    WIDE_HEAD(7),  WIDE_HEAD(8),  WIDE_BOTH(9),  WIDE_BOTH(10), WIDE_BOTH(11), WIDE_BOTH(12),
    WIDE_BOTH(13), WIDE_BOTH(14), WIDE_BOTH(15), WIDE_BOTH(16)};

/* The same where MAP_WIDE bytes may be read. */
EACH_FORM ask ask_wide(cairn_str key)
{
    uint64_t head, rest;

    if (__builtin_expect(key.len > BOTH, false)) return ask_for(key);
    const struct wide *w = &wide_of[key.len];
    memcpy(&head, key.ptr, sizeof head);
    memcpy(&rest, key.ptr + w->at, sizeof rest);
    head &= w->head;
    rest &= w->rest;
    return (ask){key, head, rest, hash_both(head, rest, key.len)};
}

static inline uint64_t *rest_at(const map *m, size_t i)
{
    return (uint64_t *)(void *)(m->slot + m->cap) + i;
}

static inline const char *long_key(uint64_t rest)
{
    return (const char *)(uintptr_t)rest;
}

/* The slot that holds the key, or the free one where it belongs. */
static inline size_t probe(const map *m, const ask *a)
{
    const size_t len = a->key.len;

    for (size_t i = a->hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        const struct map_slot *s = &m->slot[i];
        if (!s->more) return i;
        if ((s->head ^ a->head) | (s->more ^ (len + 1))) continue;
        if (len <= HEAD || *rest_at(m, i) == a->rest) return i;
        if (len > BOTH &&
            memcmp(long_key(*rest_at(m, i)) + HEAD, a->key.ptr + HEAD, len - HEAD) == 0)
            return i;
    }
}

static cairn_status rehash(map *m, size_t cap)
{
    map fresh = {.cap = cap, .n = m->n, .tag = m->tag};

    fresh.slot = mem_calloc(cap, sizeof *fresh.slot + sizeof(uint64_t), m->tag);
    if (!fresh.slot) return CAIRN_E_NOMEM;
    for (size_t i = 0; i < m->cap; i++) {
        const struct map_slot *s = &m->slot[i];
        if (!s->more) continue;
        const uint64_t rest = *rest_at(m, i);
        ask a = {{long_key(rest), s->more - 1}, s->head, rest, 0};
        a.hash = hash_of(a.head, a.rest, a.key);
        const size_t to = probe(&fresh, &a);
        fresh.slot[to] = *s;
        *rest_at(&fresh, to) = rest;
    }
    mem_free(m->slot);
    *m = fresh;
    return CAIRN_OK;
}

cairn_status map_reserve(map *m, size_t n)
{
    size_t cap = m->cap ? m->cap : MAP_FIRST;
    while (cap - cap / 4 < n)
        if (!mul_size(cap, 2, &cap)) return CAIRN_E_NOMEM;
    return cap > m->cap ? rehash(m, cap) : CAIRN_OK;
}

static inline void put(map *m, const ask *a, uint32_t value)
{
    const size_t i = probe(m, a);

    m->n += !m->slot[i].more;
    m->slot[i] = (struct map_slot){a->head, (uint32_t)a->key.len + 1, value};
    if (a->key.len > HEAD) *rest_at(m, i) = a->rest;
}

cairn_status map_put(map *m, cairn_str key, uint32_t value)
{
    return map_put_many(m, &key, &value, 1);
}

EACH_FORM cairn_status put_many(map *m, const cairn_str *key, const uint32_t *value, size_t n,
                                bool wide)
{
    ask a[MAP_BATCH];

    assert(n <= MAP_BATCH);
    const cairn_status st = map_reserve(m, m->n + n);
    if (st != CAIRN_OK) return st;
    for (size_t i = 0; i < n; i++) {
        if (key[i].len >= UINT32_MAX) return CAIRN_E_LIMIT;
        a[i] = wide ? ask_wide(key[i]) : ask_for(key[i]);
        __builtin_prefetch(&m->slot[a[i].hash & (m->cap - 1)], 1);
    }
    for (size_t i = 0; i < n; i++) put(m, &a[i], value[i]);
    return CAIRN_OK;
}

cairn_status map_put_many(map *m, const cairn_str *key, const uint32_t *value, size_t n)
{
    return put_many(m, key, value, n, false);
}

cairn_status map_put_wide(map *m, const cairn_str *key, const uint32_t *value, size_t n)
{
    return put_many(m, key, value, n, true);
}

bool map_get(const map *m, cairn_str key, uint32_t *value)
{
    if (m->n == 0) return false;
    const ask a = ask_for(key);
    const struct map_slot *s = &m->slot[probe(m, &a)];
    if (s->more) *value = s->value;
    return s->more;
}

EACH_FORM void get_many(const map *m, const cairn_str *key, size_t n, uint32_t *value, bool wide)
{
    ask a[MAP_BATCH];

    assert(n <= MAP_BATCH);
    for (size_t i = 0; i < n; i++) value[i] = MAP_NONE;
    if (m->n == 0) return;
    for (size_t i = 0; i < n; i++) {
        a[i] = wide ? ask_wide(key[i]) : ask_for(key[i]);
        const size_t at = a[i].hash & (m->cap - 1);
        __builtin_prefetch(&m->slot[at]);
        if (key[i].len > HEAD) __builtin_prefetch(rest_at(m, at));
    }
    for (size_t i = 0; i < n; i++)
        if (key[i].len > BOTH) __builtin_prefetch(long_key(*rest_at(m, a[i].hash & (m->cap - 1))));
    for (size_t i = 0; i < n; i++) {
        const struct map_slot *s = &m->slot[probe(m, &a[i])];
        if (s->more) value[i] = s->value;
    }
}

void map_get_many(const map *m, const cairn_str *key, size_t n, uint32_t *value)
{
    get_many(m, key, n, value, false);
}

void map_get_wide(const map *m, const cairn_str *key, size_t n, uint32_t *value)
{
    get_many(m, key, n, value, true);
}
