/* Owns the reading of tokenizer.json's model.merges straight into ids, a batch at a time, so that the look-ups
   wait for memory together.  Every text is followed by MAP_WIDE bytes that may be read: short ones are
   compared whole, whatever their length is. */
#include <string.h>

#include "text/tok_hf.h"
#include "text/tok_hf_scan.h"
#include "text/tok_priv.h"

enum {
    BATCH = MAP_BATCH / 2, /* merges */
    MERGE_BYTES = 16,      /* about what files spend on one, where they are not indented */
};

typedef struct reader {
    hf_scan *s;
    hf_lists *l;
    hf_piece *piece;
    uint32_t last; /* the piece that the merge before makes */
    cairn_str side[2 * BATCH];
    size_t n; /* of merges whose sides wait there */
    buf both; /* a piece that is looked for */
} reader;

/* A bit for each of 16 bytes that is equal, or behind the n that count. */
static inline uint32_t same_wide(const char *a, const char *b, size_t n)
{
    byte16 x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (uint32_t)ascii_bits((lane16)(x == y)) | UINT32_MAX << n;
}

/* Is it a and b, of MAP_WIDE bytes at most? */
static inline bool is_short(const char *texts, hf_piece p, cairn_str a, cairn_str b)
{
    const bool fits = p.len == a.len + b.len;
    const char *at = texts + p.at, *then = at + (fits ? a.len : 0);

    return fits & ((same_wide(at, a.ptr, a.len) & same_wide(then, b.ptr, b.len)) == UINT32_MAX);
}

static bool is_long(const char *texts, hf_piece p, cairn_str a, cairn_str b)
{
    const char *at = texts + p.at;

    return p.len == a.len + b.len && memcmp(at, a.ptr, a.len) == 0 &&
           memcmp(at + a.len, b.ptr, b.len) == 0;
}

static bool look_up(reader *r, cairn_str a, cairn_str b, uint32_t *id)
{
    buf_clear(&r->both);
    buf_str(&r->both, a);
    buf_str(&r->both, b);
    if (buf_status(&r->both) == CAIRN_OK) return map_get(&r->l->by_text, buf_view(&r->both), id);
    r->l->no_memory = true;
    return false;
}

/* Files list merges in the order of the pieces that they make, so it is mostly that of the merge before, or
   the next: a comparison instead of a look-up. */
static inline bool find_result(reader *r, cairn_str a, cairn_str b, uint32_t *id)
{
    const hf_piece *p = r->piece + r->last;
    const char *texts = r->l->texts;
    bool same, next;

    if (a.len > MAP_WIDE || b.len > MAP_WIDE) {
        same = is_long(texts, p[0], a, b);
        next = is_long(texts, p[1], a, b);
    } else {
        same = is_short(texts, p[0], a, b);
        next = is_short(texts, p[1], a, b);
    }
    *id = r->last + !same;
    return same | next || look_up(r, a, b, id);
}

/* The merges that wait. */
static bool put_batch(reader *r)
{
    uint32_t id[2 * BATCH];
    bpe_merge *m = buf_grow(&r->l->merge, r->n * sizeof *m);

    if (!m) return false;
    map_get_wide(&r->l->by_text, r->side, 2 * r->n, id);
    for (size_t i = 0; i < r->n; i++) {
        const cairn_str a = r->side[2 * i], b = r->side[2 * i + 1];
        m[i] = (bpe_merge){id[2 * i], id[2 * i + 1], 0};
        if (m[i].l == MAP_NONE || m[i].r == MAP_NONE || !a.len || !b.len) return false;
        if (!find_result(r, a, b, &m[i].into)) return false;
        r->last = m[i].into;
        r->piece[r->last].left = (uint16_t)a.len;
    }
    r->n = 0;
    return true;
}

static inline bool put_merge(reader *r, cairn_str a, cairn_str b)
{
    r->side[2 * r->n] = a;
    r->side[2 * r->n + 1] = b;
    return ++r->n < BATCH || put_batch(r);
}

/* Where "a b" has its one space; SIZE_MAX: it has none, or two. */
static inline size_t find_space(cairn_str s)
{
    if (s.len > MAP_WIDE) {
        const size_t cut = str_find(s, STR_LIT(" "), 0);
        return cut != SIZE_MAX && str_find(s, STR_LIT(" "), cut + 1) != SIZE_MAX ? SIZE_MAX : cut;
    }
    byte16 x;
    memcpy(&x, s.ptr, sizeof x);
    const uint64_t spaces = ascii_bits((lane16)(x == ' ')) & (((uint64_t)1 << s.len) - 1);
    return !spaces || spaces & (spaces - 1) ? SIZE_MAX : (size_t)__builtin_ctzll(spaces);
}

/* "a b", … */
static bool read_joined(reader *r)
{
    hf_scan *s = r->s;
    cairn_str both;
    hf_gap first = HF_GAP_NONE, comma = HF_GAP_NONE;

    if (!hf_take_gap(s, &first, "\"")) return false;
    do {
        if (!hf_string(s, &both)) return false;
        const size_t cut = find_space(both);
        if (cut == SIZE_MAX) return false;
        if (!put_merge(r, str_sub(both, 0, cut), str_sub(both, cut + 1, both.len - cut - 1)))
            return false;
    } while (hf_take_gap(s, &comma, ",\""));
    hf_skip_space(s);
    return true;
}

/* ["a", "b"], … */
static bool read_pairs(reader *r)
{
    hf_scan *s = r->s;
    cairn_str a, b;
    hf_gap first = HF_GAP_NONE, comma = HF_GAP_NONE, next = HF_GAP_NONE;

    if (!hf_take_gap(s, &first, "[\"")) return false;
    do {
        if (!hf_string(s, &a) || !hf_take_gap(s, &comma, ",\"") || !hf_string(s, &b) ||
            !put_merge(r, a, b))
            return false;
    } while (hf_take_gap(s, &next, "],[\""));
    hf_skip_space(s);
    return hf_take(s, ']');
}

bool hf_merges_read(hf_scan *s, hf_lists *l)
{
    reader r = {.s = s, .l = l, .piece = (hf_piece *)(void *)l->piece.ptr};

    if (!hf_take(s, '[')) return false;
    if (hf_take(s, ']')) return true;
    if (!l->n_piece) return false;
    if (buf_reserve(&l->merge, (size_t)(s->end - s->p) / MERGE_BYTES * sizeof(bpe_merge)))
        return false;
    buf_init(&r.both, MEM_TEXT);
    const bool fine = (hf_next_is(s, '[') ? read_pairs(&r) : read_joined(&r)) && put_batch(&r);
    buf_deinit(&r.both);
    buf_fit(&l->merge);
    return fine && hf_take(s, ']');
}
