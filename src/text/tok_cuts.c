/* Owns the cutting of long words for byte pair encoding: models in the manner of SentencePiece see a whole
   text as one word.  A merge of two characters makes a piece that has them side by side, so a word may
   be cut between two that no piece has so; each part is then found in the cache of words.
   Where the only normalizer puts U+2581 for spaces it is left out: spaces are cut at, and asked for, as
   if they were that.  There a run of spaces is cut off what follows too, if the merges say so: when all
   that join spaces come before all that join one with another character, the run is merged by itself
   first, and what is then at its end is no part of another piece unless it is one space. */
#include "text/ascii.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

enum { CODE_POINTS = 0x110000, PAIR_BITS = 1 << 20, ASCII = 128 };

static uint64_t pair_bit(uint32_t a, uint32_t b)
{
    _Static_assert(PAIR_BITS == 1 << 20, "a pair's number has 20 bits");
    return ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u >> 44;
}

static int32_t key_id(const tok *t, cairn_str key)
{
    uint32_t v;

    return map_get(&t->by_key, key, &v) ? (int32_t)v : -1;
}

/* Is the normalizer one that the cutting can do without? */
static bool only_spaces(const tok *t)
{
    const norm_step *n = t->norm;
    const pre_step *p = t->pre;

    if (t->n_norm != 1 || n->kind != NORM_REPLACE || n->re || t->space_after_special) return false;
    if (!str_is(n->from, " ") || !str_is(n->to, BPE_SPACE)) return false;
    for (uint32_t i = 0; i < t->n_added; i++)
        if (t->added[i].normalized) return false;
    /* A split at spaces, of which there are none any more. */
    return t->n_pre == 0 ||
           (t->n_pre == 1 && p->kind == PRE_LITERAL && str_is(p->lit, " ") && !p->invert);
}

static inline void note_pair(bpe *b, uint32_t l, uint32_t r)
{
    if ((l | r) < ASCII)
        set_bit(b->cuts[l], r);
    else
        set_bit(b->pairs, pair_bit(l, r));
}

/* A character at s[at], as words have it. */
static inline size_t next_char(const bpe *b, cairn_str s, size_t at, uint32_t *cp)
{
    const size_t len = uc_next(s.ptr + at, cp);

    if (b->spaces && *cp == 0x2581) *cp = ' ';
    return len;
}

/* The neighbours in a piece, and what it stands for if it is one character. */
static void note_piece(bpe *b, cairn_str s)
{
    uint32_t cp, last = 0, before = 0;
    size_t len;

    for (size_t at = 0; at < s.len; at += len, before = last, last = cp) {
        len = next_char(b, s, at, &cp);
        if (at == 0) {
            if (len == s.len) set_bit(b->known, cp);
            continue;
        }
        note_pair(b, last, cp);
        if (last == ' ' && before == ' ' && cp != ' ') b->runs = 0;
    }
}

/* What a piece that merges make has and its halves, which are pieces, have not: the pair at the seam.  Where
   that is of spaces, two characters on each side of it. */
static void note_seam(bpe *b, cairn_str s, size_t seam)
{
    size_t from = uc_prev(s.ptr, seam);
    uint32_t l, r;

    (void)next_char(b, s, from, &l);
    size_t to = seam + next_char(b, s, seam, &r);
    note_pair(b, l, r);
    if (!b->runs || (l != ' ' && r != ' ')) return;
    if (from > 0) from = uc_prev(s.ptr, from);
    if (to < s.len) to += uc_next(s.ptr + to, &r);
    note_piece(b, str_sub(s, from, to - from));
}

/* Unknown characters may fuse across a cut, or become bytes that merge. */
static bool may_cut(const bpe *b, uint32_t left, uint32_t right)
{
    if ((left | right) < ASCII) return bit_of(b->cuts[left], right);
    return bit_of(b->known, left) && bit_of(b->known, right) &&
           !bit_of(b->pairs, pair_bit(left, right));
}

/* From the pairs that are side by side in a piece to those that may be cut. */
static void turn_ascii(bpe *b)
{
    for (uint32_t l = 0; l < ASCII; l++)
        for (uint32_t i = 0; i < ASCII / 64; i++)
            b->cuts[l][i] = bit_of(b->known, l) ? b->known[i] & ~b->cuts[l][i] : 0;
}

/* Which lengths of a run of spaces, merged by itself, end in more than one of them? */
static cairn_status find_runs(tok *t, uint32_t space)
{
    bpe *b = &t->bpe;
    uint32_t ids[BPE_SHORT];
    bpe_pair *lately = mem_alloc(PAIR_SLOTS * sizeof *lately, MEM_TEXT);

    if (!lately) return CAIRN_E_NOMEM;
    memset(lately, 0xFF, PAIR_SLOTS * sizeof *lately);
    for (uint32_t n = 2; n <= BPE_SHORT; n++) {
        for (uint32_t i = 0; i < n; i++) ids[i] = space;
        const uint32_t left = bpe_merge_short(b, lately, (cairn_str){0}, ids, n);
        if (t->text[ids[left - 1]].len > sizeof BPE_SPACE - 1) b->runs |= (uint64_t)1 << n;
    }
    mem_free(lately);
    return CAIRN_OK;
}

cairn_status bpe_find_cuts(tok *t, cairn_diag *dg)
{
    bpe *b = &t->bpe;
    const int32_t space = key_id(t, STR_LIT(BPE_SPACE));

    if (t->byte_level || b->ignore_merges || b->prefix.len || b->suffix.len || space < 0)
        return CAIRN_OK;
    b->known = arena_calloc(&t->mem, CODE_POINTS / 64, sizeof *b->known);
    b->pairs = arena_calloc(&t->mem, PAIR_BITS / 64, sizeof *b->pairs);
    b->cuts = arena_calloc(&t->mem, ASCII, sizeof *b->cuts);
    if (!b->known || !b->pairs || !b->cuts)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
    b->spaces = only_spaces(t);
    if (b->spaces) {
        t->n_norm = t->n_pre = 0;
        b->ascii_id[' '] = space;
        if (b->last_run < b->first_mixed && find_runs(t, (uint32_t)space) != CAIRN_OK)
            return diag_set(dg, CAIRN_E_NOMEM, "no memory for a vocabulary");
    }
    for (uint32_t i = 0; i < (uint32_t)t->n; i++) { /* each, merged or not */
        const uint32_t seam = i < b->n_left ? b->left[i] : 0;
        if (seam)
            note_seam(b, t->text[i], seam);
        else
            note_piece(b, t->text[i]);
    }
    turn_ascii(b);
    return CAIRN_OK;
}

/* The places in a block of a word where a cut is to be looked for: a bit for each. */
typedef struct cutter {
    const bpe *b;
    cairn_str s;
    size_t base, n; /* the block */
    uint64_t left;
} cutter;

static bool cut_wide(const bpe *b, cairn_str s, size_t at)
{
    uint32_t left, right;

    if (((uint8_t)s.ptr[at] & 0xC0) == 0x80) return false; /* inside a character */
    uc_next(s.ptr + uc_prev(s.ptr, at), &left);
    uc_next(s.ptr + at, &right);
    if (b->spaces) {
        if (left == 0x2581) left = ' ';
        if (right == 0x2581) right = ' ';
    }
    return may_cut(b, left, right);
}

static inline bool cut_at(const bpe *b, cairn_str s, size_t at)
{
    const uint8_t l = (uint8_t)s.ptr[at - 1], r = (uint8_t)s.ptr[at];

    return (l | r) & 0x80 ? cut_wide(b, s, at) : bit_of(b->cuts[l], r);
}

/* Between two ASCII letters no cut is looked for: nearly all are in some piece. */
static void next_block(cutter *c)
{
    ascii_block block;

    c->base += c->n;
    ascii_load(&block, c->s, c->base);
    c->n = block.n;
    c->left = ~(block.letter & block.letter << 1) & ~(~(uint64_t)0 << block.n);
    if (c->base == 0) c->left &= ~(uint64_t)1;
}

/* Bytes of the run of spaces at `at`. */
static inline size_t spaces_at(cairn_str s, size_t at)
{
    size_t end = at;
    uint64_t x;

    for (; end + sizeof x <= s.len; end += sizeof x) {
        memcpy(&x, s.ptr + end, sizeof x);
        x ^= 0x2020202020202020u;
        if (x) return end - at + (size_t)__builtin_ctzll(x) / 8;
    }
    while (end < s.len && s.ptr[end] == ' ') end++;
    return end - at;
}

/* The next place behind `at` where the word may be cut; its end if there is none. */
static inline size_t next_cut(cutter *c, size_t at)
{
    const cairn_str s = c->s;

    if (c->b->runs && s.ptr[at] == ' ') {
        const size_t run = spaces_at(s, at);
        if (run <= BPE_SHORT && c->b->runs >> run & 1)
            if (at + run == s.len || !str_starts(str_sub(s, at + run, 3), STR_LIT(BPE_SPACE)))
                return at + run;
    }
    for (;;) {
        while (c->left) {
            const size_t i = c->base + (size_t)__builtin_ctzll(c->left);
            c->left &= c->left - 1;
            if (i > at && cut_at(c->b, s, i)) return i;
        }
        if (c->base + c->n == s.len) return s.len;
        next_block(c);
    }
}

cairn_status bpe_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    cutter c;
    word_list l;
    cairn_status st = CAIRN_OK;

    if (!t->bpe.cuts) return bpe_part(t, word, w, ids, dg);
    c.b = &t->bpe;
    c.s = word;
    c.base = c.n = c.left = 0;
    word_list_begin(&l, word, word.len);
    for (size_t at = 0; at < word.len && st == CAIRN_OK; l.at = at) {
        for (l.n = 0; l.n < WORD_BATCH && at < word.len;) {
            at = next_cut(&c, at);
            l.end[l.n++] = (uint32_t)at;
        }
        st = words_ids(t, bpe_part, &l, w, ids, dg);
    }
    return st == CAIRN_OK ? st : diag_set(dg, st, "encoding a word of %zu bytes", word.len);
}
