/* Owns the cache of words and the scratch that calls of tok_encode share one after the other.  A slot
   is chosen by the word's hash and holds the last word of its few ids that was there: bounded, and
   never asked for more than the model would answer.  Each call has a scratch for itself. */
#include "text/tok_priv.h"

enum {
    POOL_MOST = 4,        /* scratches kept; more threads at once make their own for a call */
    KEEP_BYTES = 4 << 20, /* of one buffer: a huge text's is given back */
};

#define WORK_BUFS(w)                                                                               \
    {                                                                                              \
        &(w)->norm_x, &(w)->norm_y, &(w)->text_x, &(w)->text_y, &(w)->span_x, &(w)->span_y,        \
            &(w)->early, &(w)->late, &(w)->sym, &(w)->heap                                         \
    }

static void work_free(work *w)
{
    buf *all[] = WORK_BUFS(w);

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_deinit(all[i]);
    mem_free(w->cache);
    mem_free(w);
}

cairn_status pool_new(tok_pool **out)
{
    tok_pool *p = mem_calloc(1, sizeof *p, MEM_TEXT);

    if (!p) return CAIRN_E_NOMEM;
    mutex_init(&p->mu);
    *out = p;
    return CAIRN_OK;
}

void pool_free(tok_pool *p)
{
    if (!p) return;
    for (work *w = p->free, *next; w; w = next) {
        next = w->next;
        work_free(w);
    }
    mutex_deinit(&p->mu);
    mem_free(p);
}

static bool cache_new(work *w)
{
    const size_t line = 64, hot = HOT_SLOTS * sizeof *w->hot, words = WORD_SLOTS * sizeof *w->words;
    const size_t pairs = PAIR_SLOTS * sizeof *w->pairs;

    w->cache = mem_calloc(1, line + hot + words + pairs, MEM_TEXT);
    if (!w->cache) return false;
    char *p = (char *)w->cache + (-(uintptr_t)w->cache & (line - 1));
    w->hot = (hot_slot *)(void *)p;
    w->words = (word_slot *)(void *)(p + hot);
    w->pairs = (bpe_pair *)(void *)(p + hot + words);
    memset(w->pairs, 0xFF, pairs);
    return true;
}

work *pool_take(tok_pool *p)
{
    mutex_lock(&p->mu);
    work *w = p->free;
    if (w) {
        p->free = w->next;
        p->n--;
    }
    mutex_unlock(&p->mu);
    if (w) return w;
    w = mem_calloc(1, sizeof *w, MEM_TEXT);
    if (!w) return NULL;
    buf *all[] = WORK_BUFS(w);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) buf_init(all[i], MEM_TEXT);
    if (cache_new(w)) return w;
    work_free(w);
    return NULL;
}

void pool_give(tok_pool *p, work *w)
{
    buf *all[] = WORK_BUFS(w);
    bool full;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->cap > KEEP_BYTES || buf_status(all[i]) != CAIRN_OK) buf_deinit(all[i]);
        buf_clear(all[i]);
    }
    mutex_lock(&p->mu);
    full = p->n == POOL_MOST;
    if (!full) {
        w->next = p->free;
        p->free = w;
        p->n++;
    }
    mutex_unlock(&p->mu);
    if (full) work_free(w);
}

/* Up to eight bytes as a number; reads nothing behind them. */
static inline uint64_t load_tail(const char *p, size_t n)
{
    uint32_t a, b;

    if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        return a | (uint64_t)b << (n - 4) * 8;
    }
    if (n == 0) return 0;
    return (uint8_t)p[0] | (uint64_t)(uint8_t)p[n / 2] << n / 2 * 8 |
           (uint64_t)(uint8_t)p[n - 1] << (n - 1) * 8;
}

/* Up to 32 bytes as four numbers. */
static inline void load_key(const char *p, size_t n, uint64_t key[4])
{
    size_t whole = n / 8;

    key[0] = key[1] = key[2] = key[3] = 0;
    for (size_t i = 0; i < whole; i++) memcpy(&key[i], p + i * 8, 8);
    if (n % 8) key[whole] = load_tail(p + whole * 8, n % 8);
}

static uint64_t mix(uint64_t h, const uint64_t key[4])
{
    h = (h ^ key[0]) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32 ^ key[1]) * 0xC2B2AE3D27D4EB4Fu;
    if (key[2] | key[3])
        h = (h ^ h >> 29 ^ key[2] ^ key[3] * 0x165667B19E3779F9u) * 0x9E3779B97F4A7C15u;
    return h;
}

static bool same_key(const uint64_t a[4], const uint64_t b[4])
{
    return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]));
}

static cairn_status put_ids(const word_slot *s, buf *ids)
{
    int32_t *id = buf_grow(ids, s->n * sizeof *id);

    if (!id) return CAIRN_E_NOMEM;
    for (size_t i = 0; i < s->n; i++) id[i] = i < 7 ? s->id[i] : s->long_id[i - 7];
    return CAIRN_OK;
}

static void keep_ids(word_slot *s, const buf *ids, size_t from, size_t n)
{
    int32_t id[WORD_IDS];

    memcpy(id, ids->ptr + from, n * sizeof *id);
    for (size_t i = 0; i < n; i++) *(i < 7 ? &s->id[i] : &s->long_id[i - 7]) = id[i];
    s->n = (uint8_t)n;
}

/* Any word of up to WORD_BYTES, by the slots that have room for it. */
static cairn_status wide_ids(const tok *t, tok_word_fn model, cairn_str word, work *w, buf *ids,
                             cairn_diag *dg)
{
    uint64_t key[4], more[4] = {0};
    const bool is_long = word.len > 32;
    size_t from = ids->len;

    _Static_assert(WORD_SLOTS == 1 << 14, "a slot's number has 14 bits");
    if (word.len > WORD_BYTES) return model(t, word, w, ids, dg);
    load_key(word.ptr, is_long ? 32 : word.len, key);
    if (is_long) load_key(word.ptr + 32, word.len - 32, more);
    uint64_t h = mix(word.len, key);
    word_slot *s = &w->words[(is_long ? mix(h, more) : h) >> 50];
    if (s->len == word.len && same_key(s->key, key) && (!is_long || same_key(s->long_key, more)))
        return put_ids(s, ids);
    TRY(model(t, word, w, ids, dg));
    size_t n = (ids->len - from) / sizeof(int32_t);
    if (n == 0 || n > WORD_IDS || buf_status(ids) != CAIRN_OK) return buf_status(ids);
    if (word.len <= HOT_BYTES && n <= HOT_IDS) return CAIRN_OK;
    memcpy(s->key, key, sizeof key);
    if (is_long) memcpy(s->long_key, more, sizeof more);
    keep_ids(s, ids, from, n);
    s->len = (uint8_t)word.len;
    return CAIRN_OK;
}

/* A word as the hot slots know it. */
typedef struct hot_key {
    uint64_t key[2];
    hot_slot *set; /* the two slots where it may be; NULL: too long */
} hot_key;

/* What is kept of 16 bytes of which the first n count. */
static const uint64_t hot_mask[HOT_BYTES + 1][2] = {
    {0, 0},
#define ALL UINT64_MAX
    {ALL >> 56, 0},   {ALL >> 48, 0},   {ALL >> 40, 0},   {ALL >> 32, 0},
    {ALL >> 24, 0},   {ALL >> 16, 0},   {ALL >> 8, 0},    {ALL, 0},
    {ALL, ALL >> 56}, {ALL, ALL >> 48}, {ALL, ALL >> 40}, {ALL, ALL >> 32},
    {ALL, ALL >> 24}, {ALL, ALL >> 16}, {ALL, ALL >> 8},  {ALL, ALL},
#undef ALL
};

/* The first n ≤ 16 bytes at p, of which `room` may be read: without a branch that depends on n. */
static inline void load_hot(const char *p, size_t n, size_t room, uint64_t key[2])
{
    if (room >= HOT_BYTES) {
        memcpy(key, p, HOT_BYTES);
        key[0] &= hot_mask[n][0];
        key[1] &= hot_mask[n][1];
    } else {
        key[0] = load_tail(p, n < 8 ? n : 8);
        key[1] = n > 8 ? load_tail(p + 8, n - 8) : 0;
    }
}

static inline void find_set(const work *w, const char *p, size_t n, size_t room, hot_key *k)
{
    _Static_assert(HOT_SLOTS == 1 << 16, "the number of two slots has 15 bits");
    k->set = NULL;
    if (n - 1 >= HOT_BYTES) return;
    load_hot(p, n, room, k->key);
    uint64_t h = k->key[0] * 0x9E3779B97F4A7C15u ^ k->key[1] * 0xC2B2AE3D27D4EB4Fu;
    k->set = &w->hot[h >> 49 << 1];
    __builtin_prefetch(k->set);
}

static inline bool is_hot(const hot_slot *s, const hot_key *k, size_t len)
{
    return s->len == len && !((s->key[0] ^ k->key[0]) | (s->key[1] ^ k->key[1]));
}

static inline bool put_hot(const hot_slot *s, buf *ids)
{
    const size_t from = ids->len;

    if (ids->cap - from <= sizeof s->id) { /* all are copied, n count */
        if (!buf_grow(ids, sizeof s->id)) return false;
    }
    memcpy(ids->ptr + from, s->id, sizeof s->id);
    ids->len = from + s->n * sizeof *s->id;
    return true;
}

/* The slot of the two that holds the word; NULL if none. */
static inline const hot_slot *hot_of(const hot_key *k, size_t len)
{
    if (!k->set) return NULL;
    if (is_hot(&k->set[0], k, len)) return &k->set[0];
    return is_hot(&k->set[1], k, len) ? &k->set[1] : NULL;
}

/* A word that is in none of its hot slots, of which it gets the first: the older one is forgotten. */
static cairn_status cold_ids(const tok *t, tok_word_fn model, cairn_str word, const hot_key *k,
                             work *w, buf *ids, cairn_diag *dg)
{
    const size_t from = ids->len;
    hot_slot *s = k->set;

    TRY(wide_ids(t, model, word, w, ids, dg));
    size_t n = (ids->len - from) / sizeof(int32_t);
    if (!s || n == 0 || n > HOT_IDS || buf_status(ids) != CAIRN_OK) return buf_status(ids);
    s[1] = s[0];
    s[0] = (hot_slot){{k->key[0], k->key[1]}, {0}, (uint8_t)word.len, (uint8_t)n};
    memcpy(s->id, ids->ptr + from, n * sizeof *s->id);
    return CAIRN_OK;
}

cairn_status words_ids(const tok *t, tok_word_fn model, const word_list *l, work *w, buf *ids,
                       cairn_diag *dg)
{
    hot_key key[WORD_BATCH];
    size_t at = l->at;

    for (uint32_t i = 0; i < l->n; at = l->end[i++])
        find_set(w, l->s.ptr + at, l->end[i] - at, l->room - at, &key[i]);
    at = l->at;
    for (uint32_t i = 0; i < l->n; at = l->end[i++]) {
        const size_t len = l->end[i] - at;
        const hot_slot *s = hot_of(&key[i], len);
        if (s) {
            if (!put_hot(s, ids)) return CAIRN_E_NOMEM;
            continue;
        }
        TRY(cold_ids(t, model, str_sub(l->s, at, len), &key[i], w, ids, dg));
    }
    return CAIRN_OK;
}

cairn_status word_ids(const tok *t, tok_word_fn model, cairn_str s, size_t room, work *w, buf *ids,
                      cairn_diag *dg)
{
    hot_key key;

    find_set(w, s.ptr, s.len, room, &key);
    const hot_slot *found = hot_of(&key, s.len);
    if (found) return put_hot(found, ids) ? CAIRN_OK : CAIRN_E_NOMEM;
    return cold_ids(t, model, s, &key, w, ids, dg);
}
