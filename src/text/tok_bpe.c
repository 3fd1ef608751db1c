/* Owns byte pair encoding: a word's symbols, merged in the order of the file's merge list.  Short
   words are merged in place, long ones with a heap, O(n log n).  The result is that of always
   taking the first merge in the list, leftmost first.  A word that is itself a piece is looked up
   first; whether it also merges to that piece is found once and remembered. */
#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "text/ascii.h"
#include "text/heap.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

static uint64_t pair_hash(uint32_t l, uint32_t r)
{
    uint64_t h = ((uint64_t)l << 32 | r) * 0x9E3779B97F4A7C15u;

    return h ^ h >> 29; /* low bits: the slot; high ones: the filter's bit */
}

/* The merge of the pair; its order is 0 if it never merges. */
static inline const bpe_slot *slot_of(const bpe *b, uint32_t l, uint32_t r)
{
    static const bpe_slot none = {.order = 0};
    uint64_t h = pair_hash(l, r), bit = h >> b->filter_shift;

    if (!(b->filter[bit / 64] >> (bit % 64) & 1)) return &none;
    for (uint64_t i = h;; i++) {
        const bpe_slot *s = &b->slot[i & b->mask];
        if ((s->l == l && s->r == r) || !s->order) return s;
    }
}

void bpe_put(bpe *b, uint32_t l, uint32_t r, uint32_t rank, uint32_t id)
{
    uint64_t h = pair_hash(l, r), bit = h >> b->filter_shift;

    b->filter[bit / 64] |= (uint64_t)1 << (bit % 64);
    for (uint64_t i = h;; i++) {
        bpe_slot *s = &b->slot[i & b->mask];
        const bool is_free = !s->order;
        if (!is_free && (s->l != l || s->r != r)) continue;
        if (is_free || !b->keep_first_rank) *s = (bpe_slot){l, r, id, ~rank};
        return;
    }
}

cairn_status bpe_init(tok *t, uint32_t n_merge, cairn_diag *dg)
{
    bpe *b = &t->bpe;
    uint32_t cap = 16;

    if (n_merge > TOK_MAX_MERGES)
        return diag_set(dg, CAIRN_E_LIMIT, "%u merges; expected at most %d", n_merge,
                        TOK_MAX_MERGES);
    while (cap < n_merge + n_merge / 2u) cap *= 2;
    b->slot = arena_calloc(&t->mem, cap, sizeof *b->slot);
    b->whole = arena_calloc(&t->mem, (size_t)t->n, 1);
    b->filter = arena_calloc(&t->mem, cap / 16, sizeof *b->filter); /* four bits a slot */
    for (b->filter_shift = 62; (uint64_t)1 << (64 - b->filter_shift) < 4 * (uint64_t)cap;)
        b->filter_shift--;
    if (!b->slot || !b->whole || !b->filter)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for %u merges", n_merge);
    b->mask = cap - 1;
    b->first_mixed = UINT32_MAX;
    buf_init(&b->tmp, MEM_TEXT);
    return CAIRN_OK;
}

/* The keys of n pieces, behind b->tmp, which has room; an empty one: no text can have it. */
static void put_keys(tok *t, const cairn_str *side, size_t n, cairn_str *key)
{
    buf *b = &t->bpe.tmp;

    for (size_t i = 0; i < n; i++) {
        key[i] = side[i];
        if (ascii_printed(side[i])) continue; /* stands for itself */
        char *from = b->ptr + b->len, *end = bytelevel_bytes(side[i], from);
        key[i] = (cairn_str){from, end ? (size_t)(end - from) : 0};
        b->len += key[i].len;
    }
}

/* memcmp without its call: most pieces are short. */
static inline bool same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t x, y;
    uint32_t u, v;

    for (; n >= sizeof x; n -= sizeof x, a += sizeof x, b += sizeof x) {
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        if (x != y) return false;
    }
    if (n >= sizeof u) {
        memcpy(&u, a, sizeof u);
        memcpy(&v, b, sizeof v);
        if (u != v) return false;
        n -= sizeof u;
        a += sizeof u;
        b += sizeof u;
    }
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* Files list merges in the order of the pieces that they make, so the id is mostly that of the merge
   before, or the next: a comparison instead of a look-up. */
static bool result_id(const tok *t, cairn_str l, cairn_str r, uint32_t *id)
{
    const uint32_t guess = t->bpe.last_id;
    const buf *b = &t->bpe.tmp;

    for (uint32_t i = guess; i < guess + 2 && i < (uint32_t)t->n; i++) {
        const cairn_str s = t->byte_level ? t->out[i] : t->text[i];
        if (s.len != l.len + r.len || t->flag[i] != TOK_F_USED) continue;
        if (!same_bytes(s.ptr, l.ptr, l.len) || !same_bytes(s.ptr + l.len, r.ptr, r.len)) continue;
        *id = i;
        return true;
    }
    char *all = b->ptr + b->len;
    memcpy(all, l.ptr, l.len);
    memcpy(all + l.len, r.ptr, r.len);
    return map_get(&t->by_key, (cairn_str){all, l.len + r.len}, id);
}

/* The id of what two pieces with the ids `id` make. */
static bool merged_id(tok *t, const cairn_str key[2], const uint32_t id[2], uint32_t *into)
{
    bpe *b = &t->bpe;
    cairn_str r = key[1];

    if (id[0] == MAP_NONE || id[1] == MAP_NONE || !key[0].len || !key[1].len) return false;
    if (b->prefix.len && str_starts(r, b->prefix))
        r = str_sub(r, b->prefix.len, r.len - b->prefix.len);
    if (!result_id(t, key[0], r, into)) return false;
    b->last_id = *into;
    const uint64_t h = pair_hash(id[0], id[1]);
    __builtin_prefetch(&b->slot[h & b->mask], 1);
    __builtin_prefetch(&b->filter[(h >> b->filter_shift) / 64], 1);
    return true;
}

static bool all_spaces(cairn_str s)
{
    const cairn_str space = STR_LIT(BPE_SPACE);

    while (str_starts(s, space)) s = str_sub(s, space.len, s.len - space.len);
    return s.len == 0;
}

/* What tok_cuts.c wants to know of the merges' order. */
static void note_spaces(bpe *b, const cairn_str key[2])
{
    const char *p = key[0].ptr;

    if (p[0] != BPE_SPACE[0] || p[key[0].len - 1] != BPE_SPACE[2] || !all_spaces(key[0])) return;
    if (all_spaces(key[1]))
        b->last_run = b->n_merge;
    else if (b->n_merge < b->first_mixed)
        b->first_mixed = b->n_merge;
}

cairn_status bpe_add_merges(tok *t, const cairn_str *side, size_t n, const char *where,
                            const char *field, cairn_diag *dg)
{
    bpe *b = &t->bpe;
    cairn_str raw[2 * BPE_BATCH];
    uint32_t id[2 * BPE_BATCH], into[BPE_BATCH];
    size_t room = 0, fine = 0;

    _Static_assert(2 * BPE_BATCH <= MAP_BATCH, "a batch is one of look-ups");
    assert(n <= BPE_BATCH);
    for (size_t i = 0; i < 2 * n; i++) room += 2 * side[i].len; /* and what a merge makes */
    buf_clear(&b->tmp);
    if (!buf_grow(&b->tmp, room + 1)) return CAIRN_E_NOMEM;
    buf_clear(&b->tmp);
    if (t->byte_level) put_keys(t, side, 2 * n, raw);
    const cairn_str *key = t->byte_level ? raw : side;
    map_get_many(&t->by_key, key, 2 * n, id);
    while (fine < n && merged_id(t, &key[2 * fine], &id[2 * fine], &into[fine])) fine++;
    if (fine < n)
        return diag_set(
            dg, CAIRN_E_CORRUPT,
            "%s: %s: found merge %zu \"%.*s\" \"%.*s\"; expected both and what they make "
            "to be in the vocabulary",
            where, field, b->n_merge + fine, STR_ARG(side[2 * fine]), STR_ARG(side[2 * fine + 1]));
    for (size_t i = 0; i < n; i++) {
        note_spaces(b, &key[2 * i]);
        bpe_put(b, id[2 * i], id[2 * i + 1], b->n_merge++, into[i]);
    }
    return CAIRN_OK;
}

static int32_t key_id(const tok *t, cairn_str key)
{
    uint32_t v;

    return map_get(&t->by_key, key, &v) ? (int32_t)v : -1;
}

static bool fill_ascii(tok *t)
{
    bpe *b = &t->bpe;

    b->ascii = arena_alloc(&t->mem, 128 * 128 * sizeof *b->ascii);
    if (!b->ascii) return false;
    for (int i = 0; i < 128 * 128; i++) {
        int32_t l = b->ascii_id[i >> 7], r = b->ascii_id[i & 127];
        const bpe_slot *s = l < 0 || r < 0 ? NULL : slot_of(b, (uint32_t)l, (uint32_t)r);
        b->ascii[i] = s ? (uint64_t)~s->order << 32 | s->id : UINT64_MAX;
    }
    return true;
}

cairn_status bpe_finish(tok *t, cairn_diag *dg)
{
    bpe *b = &t->bpe;

    buf_deinit(&b->tmp);
    for (int i = 0; i < 256; i++) {
        char raw = (char)i, hex[8];
        static const char digit[] = "0123456789ABCDEF";
        memcpy(hex, "<0x00>", 7);
        hex[3] = digit[i >> 4];
        hex[4] = digit[i & 15];
        b->byte_id[i] = key_id(t, t->byte_level ? (cairn_str){&raw, 1} : (cairn_str){hex, 6});
        if (i < 128) b->ascii_id[i] = key_id(t, (cairn_str){&raw, 1});
    }
    if (!b->slot) return CAIRN_OK;
    TRY(bpe_find_cuts(t, dg));
    return fill_ascii(t) ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
}

/* The same by way of the pairs looked up lately: the big table is mostly not in the processor's cache. */
static inline bpe_slot pair_of(const bpe *b, bpe_slot *lately, uint32_t l, uint32_t r)
{
    uint64_t h = ((uint64_t)l << 32 | r) * 0x9E3779B97F4A7C15u;

    _Static_assert(PAIR_SLOTS == 1 << 13, "a slot's number has 13 bits");
    bpe_slot *s = &lately[h >> 51];
    if (s->l != l || s->r != r) {
        const bpe_slot *found = slot_of(b, l, r);
        *s = (bpe_slot){l, r, found->id, found->order};
    }
    return *s;
}

/* Ranks and results of neighbours.  Where each symbol is one byte of `word`, ASCII pairs come from
   their table: the big one is mostly not in the processor's cache. */
static void first_ranks(const bpe *b, bpe_slot *lately, cairn_str word, const uint32_t *id,
                        uint32_t n, uint32_t *rank, uint32_t *into)
{
    bool bytes = word.len == n;

    for (uint32_t i = 0; i + 1 < n; i++) {
        if (bytes && !((word.ptr[i] | word.ptr[i + 1]) & 0x80)) {
            uint64_t x = b->ascii[(uint8_t)word.ptr[i] << 7 | (uint8_t)word.ptr[i + 1]];
            rank[i] = (uint32_t)(x >> 32);
            into[i] = (uint32_t)x;
            continue;
        }
        const bpe_slot s = pair_of(b, lately, id[i], id[i + 1]);
        rank[i] = ~s.order;
        into[i] = s.id;
    }
}

uint32_t bpe_merge_short(const bpe *b, bpe_slot *lately, cairn_str word, uint32_t *id, uint32_t n)
{
    uint32_t rank[BPE_SHORT], into[BPE_SHORT];

    assert(n <= BPE_SHORT);
    first_ranks(b, lately, word, id, n, rank, into);
    while (n > 1) {
        uint32_t best = 0;
        for (uint32_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == UINT32_MAX) break;
        id[best] = into[best];
        n--;
        for (uint32_t i = best + 1; i < n; i++) id[i] = id[i + 1];
        for (uint32_t i = best + 1; i + 1 < n; i++) {
            rank[i] = rank[i + 1];
            into[i] = into[i + 1];
        }
        for (uint32_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const bpe_slot s = pair_of(b, lately, id[i], id[i + 1]);
            rank[i] = ~s.order;
            into[i] = s.id;
        }
    }
    return n;
}

static bool pair(const tok *t, cairn_str word, const sym *s, int32_t i, uint32_t *rank,
                 uint32_t *id)
{
    (void)word;
    if (s[i].next < 0) return false;
    const bpe_slot *found = slot_of(&t->bpe, s[i].id, s[s[i].next].id);
    *rank = ~found->order;
    *id = found->id;
    return *rank != UINT32_MAX;
}

/* The same for any number: id[0…n) in, what is left in their place. */
static cairn_status merge_many(const tok *t, uint32_t *id, uint32_t *n, work *w)
{
    buf_clear(&w->sym);
    sym *s = buf_grow(&w->sym, *n * sizeof *s);
    if (!s) return CAIRN_E_NOMEM;
    for (uint32_t i = 0; i < *n; i++)
        s[i] = (sym){id[i], 1, (int32_t)i - 1, i + 1 < *n ? (int32_t)i + 1 : -1};
    TRY(merge_long(t, (cairn_str){0}, pair, s, (int32_t)*n, w));
    *n = 0;
    for (int32_t i = 0; i >= 0; i = s[i].next) id[(*n)++] = s[i].id;
    return CAIRN_OK;
}

/* One character of a word as its first symbols.  An unknown one waits in *unk for the next, with
   which it may fuse, and is put before the next known one: bytes do not end the wait, as in the
   reference. */
static void put_symbol(const tok *t, cairn_str c, bool *unk, buf *out)
{
    const bpe *b = &t->bpe;
    int32_t id =
        c.len == 1 && (uint8_t)c.ptr[0] < 128 ? b->ascii_id[(uint8_t)c.ptr[0]] : key_id(t, c);
    bool bytes = id < 0 && b->byte_fallback;

    for (size_t i = 0; bytes && i < c.len; i++) bytes = b->byte_id[(uint8_t)c.ptr[i]] >= 0;
    if (bytes) {
        for (size_t i = 0; i < c.len; i++) ids_put(out, b->byte_id[(uint8_t)c.ptr[i]]);
    } else if (id >= 0) {
        if (*unk) ids_put(out, t->unk);
        *unk = false;
        ids_put(out, id);
    } else if (t->unk >= 0) {
        if (*unk && !b->fuse_unk) ids_put(out, t->unk);
        *unk = true;
    }
}

/* The same with continuing_subword_prefix and end_of_word_suffix. */
static void put_affixed(const tok *t, cairn_str word, size_t at, size_t len, bool *unk, work *w,
                        buf *out)
{
    buf_clear(&w->heap);
    if (at > 0) buf_str(&w->heap, t->bpe.prefix);
    buf_put(&w->heap, word.ptr + at, len);
    if (at + len == word.len) buf_str(&w->heap, t->bpe.suffix);
    put_symbol(t, buf_view(&w->heap), unk, out);
}

static void put_symbols(const tok *t, cairn_str word, work *w, buf *ids)
{
    bool unk = false, affixed = t->bpe.prefix.len || t->bpe.suffix.len;
    size_t len;
    uint32_t cp;

    if (t->byte_level) {
        for (size_t i = 0; i < word.len; i++) {
            int32_t id = t->bpe.byte_id[(uint8_t)word.ptr[i]];
            if (id < 0) id = t->unk;
            if (id >= 0) ids_put(ids, id);
        }
        return;
    }
    for (size_t at = 0; at < word.len; at += len) {
        len = uc_next(word.ptr + at, &cp);
        if (affixed)
            put_affixed(t, word, at, len, &unk, w, ids);
        else
            put_symbol(t, str_sub(word, at, len), &unk, ids);
    }
    if (unk) ids_put(ids, t->unk);
}

static cairn_status merge_word(const tok *t, cairn_str word, work *w, buf *ids)
{
    size_t from = ids->len;
    bool plain = !t->bpe.prefix.len && !t->bpe.suffix.len;

    put_symbols(t, word, w, ids);
    TRY(buf_status(ids));
    if (ids->len == from) return CAIRN_OK;
    uint32_t *id = (uint32_t *)(void *)(ids->ptr + from);
    uint32_t n = (uint32_t)((ids->len - from) / sizeof *id);
    if (n <= BPE_SHORT)
        n = bpe_merge_short(&t->bpe, w->pairs, plain ? word : (cairn_str){0}, id, n);
    else
        TRY(merge_many(t, id, &n, w));
    buf_cut(ids, from + n * sizeof *id);
    return CAIRN_OK;
}

/* The word with U+2581 for its spaces, as the pieces spell it. */
static cairn_str spelt(cairn_str word, work *w)
{
    const size_t wide = sizeof BPE_SPACE - 1;

    buf_clear(&w->text_x);
    char *p = buf_grow(&w->text_x, wide * word.len);
    for (size_t i = 0; p && i < word.len; i++) {
        const bool space = word.ptr[i] == ' ';
        memcpy(p, space ? BPE_SPACE : &word.ptr[i], space ? wide : 1);
        p += space ? wide : 1;
    }
    if (p) buf_cut(&w->text_x, (size_t)(p - w->text_x.ptr));
    return buf_view(&w->text_x);
}

cairn_status bpe_part(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    (void)dg;
    const bpe *b = &t->bpe;
    cairn_str key = word;
    if (b->spaces && word.len <= t->max_text && memchr(word.ptr, ' ', word.len)) {
        key = spelt(word, w);
        TRY(buf_status(&w->text_x));
    }
    int32_t id = key.len <= t->max_text ? key_id(t, key) : -1;
    size_t from = ids->len;

    if (id < 0) return merge_word(t, word, w, ids);
    int known = b->ignore_merges ? 1 : note_get(&b->whole[id]);
    if (known == 1) {
        ids_put(ids, id);
        return CAIRN_OK;
    }
    TRY(merge_word(t, word, w, ids));
    bool same = ids->len == from + sizeof id && memcmp(ids->ptr + from, &id, sizeof id) == 0;
    if (!known) note_set(&b->whole[id], same ? 1 : 2);
    return CAIRN_OK;
}
