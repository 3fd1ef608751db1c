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
    mem_free(w->words);
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
    w->words = mem_calloc(WORD_SLOTS, sizeof *w->words, MEM_TEXT); /* without, all words are new */
    return w;
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

/* The word's bytes as four numbers; reads nothing behind it. */
static void load_key(cairn_str s, uint64_t key[4])
{
    key[0] = key[1] = key[2] = key[3] = 0;
    if (s.len >= 8) {
        size_t whole = s.len / 8;
        for (size_t i = 0; i < whole; i++) memcpy(&key[i], s.ptr + i * 8, 8);
        if (s.len % 8) {
            memcpy(&key[whole], s.ptr + s.len - 8, 8);
            key[whole] >>= 64 - s.len % 8 * 8;
        }
        return;
    }
    if (s.len >= 4) {
        uint32_t a, b;
        memcpy(&a, s.ptr, 4);
        memcpy(&b, s.ptr + s.len - 4, 4);
        key[0] = a | (uint64_t)b << (s.len - 4) * 8;
        return;
    }
    key[0] = (uint8_t)s.ptr[0] | (uint64_t)(uint8_t)s.ptr[s.len / 2] << s.len / 2 * 8 |
             (uint64_t)(uint8_t)s.ptr[s.len - 1] << (s.len - 1) * 8;
}

static word_slot *slot_of(const work *w, const uint64_t key[4], size_t len)
{
    uint64_t h = (key[0] ^ len) * 0x9E3779B97F4A7C15u;

    h = (h ^ h >> 32 ^ key[1]) * 0xC2B2AE3D27D4EB4Fu;
    if (len > 16) h = (h ^ h >> 29 ^ key[2] ^ key[3] * 0x165667B19E3779F9u) * 0x9E3779B97F4A7C15u;
    return &w->words[h >> 51]; /* the upper 13 bits */
}

cairn_status word_ids(const tok *t, tok_word_fn model, cairn_str word, work *w, buf *ids,
                      cairn_diag *dg)
{
    uint64_t key[4];
    size_t from = ids->len;

    _Static_assert(WORD_SLOTS == 1 << 13, "slot_of takes 13 bits");
    if (word.len == 0 || word.len > WORD_BYTES || !w->words) return model(t, word, w, ids, dg);
    load_key(word, key);
    word_slot *s = slot_of(w, key, word.len);
    if (s->len == word.len && s->key[0] == key[0] && s->key[1] == key[1] && s->key[2] == key[2] &&
        s->key[3] == key[3]) {
        int32_t *id = buf_grow(ids, s->n * sizeof *id);
        if (!id) return CAIRN_E_NOMEM;
        for (size_t i = 0; i < s->n; i++) id[i] = s->id[i];
        return CAIRN_OK;
    }
    TRY(model(t, word, w, ids, dg));
    size_t n = (ids->len - from) / sizeof(int32_t);
    if (n == 0 || n > WORD_IDS || buf_status(ids) != CAIRN_OK) return buf_status(ids);
    memcpy(s->key, key, sizeof key);
    memcpy(s->id, ids->ptr + from, n * sizeof(int32_t));
    s->len = (uint8_t)word.len;
    s->n = (uint8_t)n;
    return CAIRN_OK;
}
