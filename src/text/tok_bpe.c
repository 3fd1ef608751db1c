/* Owns byte pair encoding: a word's symbols, merged in the order of the file's merge list.  Short
   words are merged in place, long ones with a heap, O(n log n).  The result is that of always
   taking the first merge in the list, leftmost first.  A word that is itself a piece is looked up
   first; whether it also merges to that piece is found once and remembered. */
#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "text/ascii.h"
#include "text/tok_hf.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

static uint64_t pair_hash(uint32_t l, uint32_t r)
{
    uint64_t h = ((uint64_t)l << 32 | r) * 0x9E3779B97F4A7C15u;

    return h ^ h >> 29; /* low bits: the slot; high ones: the filter's bit */
}

static inline const bpe_merge *list_of(const bpe *b)
{
    return (const bpe_merge *)(const void *)b->list.ptr;
}

/* The merge of the pair. */
static inline bpe_pair pair_in(const bpe *b, uint32_t l, uint32_t r)
{
    const uint64_t h = pair_hash(l, r), bit = h >> b->filter_shift;
    bpe_pair p = {l, r, 0, UINT32_MAX};

    if (!(b->filter[bit / 64] >> (bit % 64) & 1)) return p;
    for (uint32_t i = (uint32_t)h, s; (s = b->slot[i & b->mask]) != 0; i++) {
        if ((s ^ (uint32_t)h) & ~b->mask) continue;
        const uint32_t rank = (s & b->mask) - 1;
        const bpe_merge *m = list_of(b) + rank;
        if (m->l != l || m->r != r) continue;
        p.id = m->into;
        p.rank = b->rank_is_id ? m->into : rank;
        break;
    }
    return p;
}

static inline void index_merge(bpe *b, uint32_t rank)
{
    const bpe_merge *list = list_of(b), m = list[rank];
    const uint64_t h = pair_hash(m.l, m.r), bit = h >> b->filter_shift;
    uint32_t *s;

    b->filter[bit / 64] |= (uint64_t)1 << (bit % 64);
    for (uint32_t i = (uint32_t)h; *(s = &b->slot[i & b->mask]) != 0; i++) {
        if ((*s ^ (uint32_t)h) & ~b->mask) continue;
        const bpe_merge *old = list + ((*s & b->mask) - 1);
        if (old->l != m.l || old->r != m.r) continue;
        if (b->keep_first_rank) return;
        break;
    }
    *s = ((uint32_t)h & ~b->mask) | (rank + 1);
}

void bpe_put(bpe *b, uint32_t l, uint32_t r, uint32_t into)
{
    const bpe_merge m = {l, r, into};

    buf_add(&b->list, &m, sizeof m);
    index_merge(b, bpe_n_merge(b) - 1);
}

/* In one block, which takes fewer pages. */
static bool make_tables(tok *t, uint32_t cap)
{
    bpe *b = &t->bpe;
    const size_t filter = cap / 16, ids = (size_t)t->n; /* four bits a slot */
    uint64_t *p = arena_calloc(&t->mem, 1,
                               filter * sizeof *p + cap * sizeof *b->slot + ids * sizeof *b->whole);

    if (!p) return false;
    b->filter = p;
    b->slot = (uint32_t *)(void *)(p + filter);
    b->whole = (uint8_t *)(b->slot + cap);
    b->mask = cap - 1;
    return true;
}

cairn_status bpe_init(tok *t, uint32_t n_merge, cairn_diag *dg)
{
    bpe *b = &t->bpe;
    uint32_t cap = 16;

    if (n_merge > TOK_MAX_MERGES)
        return diag_set(dg, CAIRN_E_LIMIT, "%u merges; expected at most %d", n_merge,
                        TOK_MAX_MERGES);
    while (cap < n_merge + n_merge / 2u) cap *= 2;
    for (b->filter_shift = 62; (uint64_t)1 << (64 - b->filter_shift) < 4 * (uint64_t)cap;)
        b->filter_shift--;
    buf_init(&b->tmp, MEM_TEXT);
    if (!b->list.ptr) buf_init(&b->list, MEM_TEXT);
    if (!make_tables(t, cap) ||
        buf_reserve(&b->list, n_merge * sizeof(bpe_merge) - b->list.len) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for %u merges", n_merge);
    b->first_mixed = UINT32_MAX;
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

static bool all_spaces(cairn_str s)
{
    const cairn_str space = STR_LIT(BPE_SPACE);

    while (str_starts(s, space)) s = str_sub(s, space.len, s.len - space.len);
    return s.len == 0;
}

/* What tok_cuts.c wants to know of the merges' order: of one whose first half is spaces.  Is the other? */
static void note_spaces(bpe *b, uint32_t rank, bool r)
{
    if (r)
        b->last_run = rank;
    else if (rank < b->first_mixed)
        b->first_mixed = rank;
}

/* The keys of n merges: the two sides and what they make, of which the prefix of the second is no part. */
static cairn_status merge_keys(tok *t, const cairn_str *side, size_t n, cairn_str *key)
{
    bpe *b = &t->bpe;
    size_t room = 1;

    for (size_t i = 0; i < 2 * n; i++) room += 2 * side[i].len;
    buf_clear(&b->tmp);
    TRY(buf_reserve(&b->tmp, room));
    for (size_t i = 0; i < n; i++, key += 3) {
        if (t->byte_level)
            put_keys(t, &side[2 * i], 2, key);
        else
            memcpy(key, &side[2 * i], 2 * sizeof *key);
        cairn_str r = key[1];
        if (b->prefix.len && str_starts(r, b->prefix))
            r = str_sub(r, b->prefix.len, r.len - b->prefix.len);
        key[2] = (cairn_str){b->tmp.ptr + b->tmp.len, key[0].len + r.len};
        buf_str(&b->tmp, key[0]);
        buf_str(&b->tmp, r);
    }
    return CAIRN_OK;
}

cairn_status bpe_add_merges(tok *t, const cairn_str *side, size_t n, const char *where,
                            const char *field, cairn_diag *dg)
{
    bpe *b = &t->bpe;
    cairn_str keys[3 * BPE_BATCH];
    uint32_t ids[3 * BPE_BATCH];

    _Static_assert(3 * BPE_BATCH <= MAP_BATCH, "a batch is one of look-ups");
    assert(n <= BPE_BATCH);
    TRY(merge_keys(t, side, n, keys));
    map_get_many(&t->by_key, keys, 3 * n, ids);
    for (size_t i = 0; i < n; i++) {
        const cairn_str *key = &keys[3 * i];
        const uint32_t *id = &ids[3 * i];
        if (!key[0].len || !key[1].len || id[0] == MAP_NONE || id[1] == MAP_NONE ||
            id[2] == MAP_NONE)
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: %s: found merge %u \"%.*s\" \"%.*s\"; expected both and what they "
                            "make to be in the vocabulary",
                            where, field, bpe_n_merge(b), STR_ARG(side[2 * i]),
                            STR_ARG(side[2 * i + 1]));
        if (all_spaces(key[0])) note_spaces(b, bpe_n_merge(b), all_spaces(key[1]));
        bpe_put(b, id[0], id[1], id[2]);
    }
    return CAIRN_OK;
}

cairn_status bpe_add_lists(tok *t, const hf_lists *l, cairn_diag *dg)
{
    bpe *b = &t->bpe;
    const bpe_merge *m = list_of(b);
    const hf_piece *p = (const hf_piece *)(const void *)l->piece.ptr;
    const uint32_t n = bpe_n_merge(b), ahead = 16;
    uint64_t *spaces = mem_calloc(((size_t)l->n_piece + 63) / 64, sizeof *spaces, MEM_TEXT);

    b->n_left = l->n_piece;
    b->left = mem_alloc(l->n_piece * sizeof *b->left, MEM_TEXT);
    if (!b->left || !spaces) {
        mem_free(spaces);
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for %u merges", n);
    }
    for (uint32_t i = 0; i < l->n_piece; i++) {
        b->left[i] = p[i].left;
        const cairn_str s = t->text[i];
        if (s.len && s.ptr[0] == BPE_SPACE[0] && all_spaces(s)) set_bit(spaces, i);
    }
    for (uint32_t i = 0; i < n; i++) {
        const bpe_merge far = m[i + ahead < n ? i + ahead : i];
        const uint64_t h = pair_hash(far.l, far.r);
        __builtin_prefetch(&b->slot[h & b->mask], 1);
        __builtin_prefetch(&b->filter[(h >> b->filter_shift) / 64], 1);
        if (bit_of(spaces, m[i].l)) note_spaces(b, i, bit_of(spaces, m[i].r));
        index_merge(b, i);
    }
    mem_free(spaces);
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
        const bpe_pair p = l < 0 || r < 0 ? (bpe_pair){.id = UINT32_MAX, .rank = UINT32_MAX}
                                          : pair_in(b, (uint32_t)l, (uint32_t)r);
        b->ascii[i] = (uint64_t)p.rank << 32 | p.id;
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
    mem_free(b->left);
    b->left = NULL;
    return fill_ascii(t) ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
}

/* The same by way of the pairs looked up lately: the big table is mostly not in the processor's cache. */
static inline bpe_pair pair_of(const bpe *b, bpe_pair *lately, uint32_t l, uint32_t r)
{
    uint64_t h = ((uint64_t)l << 32 | r) * 0x9E3779B97F4A7C15u;

    _Static_assert(PAIR_SLOTS == 1 << 13, "a slot's number has 13 bits");
    bpe_pair *s = &lately[h >> 51];
    if (s->l != l || s->r != r) *s = pair_in(b, l, r);
    return *s;
}

/* Ranks and results of neighbours.  Where each symbol is one byte of `word`, ASCII pairs come from
   their table: the big one is mostly not in the processor's cache. */
static void first_ranks(const bpe *b, bpe_pair *lately, cairn_str word, const uint32_t *id,
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
        const bpe_pair s = pair_of(b, lately, id[i], id[i + 1]);
        rank[i] = s.rank;
        into[i] = s.id;
    }
}

uint32_t bpe_merge_short(const bpe *b, bpe_pair *lately, cairn_str word, uint32_t *id, uint32_t n)
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
            const bpe_pair s = pair_of(b, lately, id[i], id[i + 1]);
            rank[i] = s.rank;
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
    const bpe_pair found = pair_in(&t->bpe, s[i].id, s[s[i].next].id);
    *rank = found.rank;
    *id = found.id;
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
