/* Owns Unigram: of all ways to cut a word into pieces, the one with the best sum of scores (Viterbi,
   from left to right).  Where no piece covers a character, the unknown piece does, ten below the
   worst score; neighbouring unknowns fuse, or become bytes. */
#include <math.h>

#include "text/tok_priv.h"
#include "text/uchar.h"

cairn_status unigram_finish(tok *t, const char *where, cairn_diag *dg)
{
    double least = (double)INFINITY;

    for (int32_t id = 0; id < t->n; id++) {
        if (!(t->flag[id] & TOK_F_USED) || t->flag[id] & TOK_F_ADDED) continue;
        if (!isfinite(t->score[id]))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: the score of piece %d is no number; expected a finite one", where,
                            id);
        if (!(t->flag[id] & TOK_F_UNSCORED) && t->score[id] < least) least = t->score[id];
    }
    t->unk_score = t->short_sums ? (double)((float)least - 10.0F) : least - 10;
    return bpe_finish(t, dg); /* the byte pieces */
}

/* Best way to each byte position. */
typedef struct node {
    double score;
    uint32_t from;
    int32_t id;
} node;

static void reach(const tok *t, node *to, double score, size_t from, int32_t id)
{
    if (t->short_sums) score = (double)(float)score;
    if (to->id != -2 && score <= to->score) return;
    *to = (node){score, (uint32_t)from, id};
}

/* SentencePiece keeps long texts' sums short: what was reached from `at` on is counted from there. */
static void count_anew(node *best, size_t at, size_t end)
{
    enum { FAR = 100000 };
    const double base = best[at].score;

    if (base >= -FAR && base <= FAR) return;
    for (size_t i = at; i <= end; i++)
        if (best[i].id != -2) best[i].score = (double)(float)(best[i].score - base);
}

static void put_unknown(const tok *t, cairn_str s, buf *ids)
{
    bool bytes = t->bpe.byte_fallback;
    uint32_t id;

    if (map_get(&t->by_key, s, &id) &&
        !(t->flag[id] & TOK_F_UNREACHABLE)) { /* the unknown piece's own text */
        ids_put(ids, (int32_t)id);
        return;
    }
    for (size_t i = 0; bytes && i < s.len; i++) bytes = t->bpe.byte_id[(uint8_t)s.ptr[i]] >= 0;
    if (!bytes) {
        if (t->unk >= 0) ids_put(ids, t->unk);
        return;
    }
    for (size_t i = 0; i < s.len; i++) ids_put(ids, t->bpe.byte_id[(uint8_t)s.ptr[i]]);
}

static void extend(const tok *t, cairn_str word, node *best, size_t at)
{
    uint32_t cp, id;
    size_t first = uc_next(word.ptr + at, &cp), len = first;
    bool single = false;

    for (; len <= t->max_text && at + len <= word.len;) {
        if (map_get(&t->by_key, str_sub(word, at, len), &id) &&
            !(t->flag[id] & TOK_F_UNREACHABLE)) {
            reach(t, &best[at + len], best[at].score + t->score[id], at,
                  (int32_t)id == t->unk ? -1 : (int32_t)id);
            single |= len == first;
        }
        if (at + len >= word.len) break;
        len += uc_next(word.ptr + at + len, &cp);
    }
    if (!single) reach(t, &best[at + first], best[at].score + t->unk_score, at, -1);
}

cairn_status unigram_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    enum { CHAR_MOST = 4 }; /* bytes; the unknown piece covers one */
    const size_t reach_of = t->max_text > CHAR_MOST ? t->max_text : CHAR_MOST;
    uint32_t end = (uint32_t)word.len;

    buf_clear(&w->sym);
    node *best = buf_grow(&w->sym, (word.len + 1) * sizeof *best);
    if (!best) return diag_set(dg, CAIRN_E_NOMEM, "encoding a word of %zu bytes", word.len);
    for (size_t i = 0; i <= word.len; i++) best[i] = (node){0, 0, -2};
    best[0].id = -1;
    for (size_t at = 0; at < word.len; at++) {
        const size_t left = word.len - at;
        if (best[at].id == -2) continue;
        if (t->short_sums) count_anew(best, at, at + (left < reach_of ? left : reach_of));
        extend(t, word, best, at);
    }
    /* Backwards: turn `from` into `to`, so that the way can be walked from the left. */
    for (uint32_t at = end, next = 0; at > 0;) {
        uint32_t from = best[at].from;
        int32_t id = best[at].id;
        best[at].from = next;
        next = at;
        at = from;
        best[next].score = id; /* exact: ids are small */
        if (at == 0) best[0].from = next;
    }
    for (uint32_t at = 0; at < end;) {
        uint32_t to = best[at].from, from = at;
        int32_t id = (int32_t)best[to].score;
        while (id == -1 && to < end && (int32_t)best[best[to].from].score == -1) to = best[to].from;
        if (id >= 0)
            ids_put(ids, id);
        else
            put_unknown(t, str_sub(word, from, to - from), ids);
        at = to;
    }
    return buf_status(ids);
}
