/* Owns two models over a trie of all pieces: RWKV's, which takes the longest piece from the left, and
   PLaMo 2's, which takes the cut of best sum of scores, found from the right, with bytes for
   characters that no piece covers. */
#include "text/tok_priv.h"
#include "text/uchar.h"

cairn_status rwkv_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    uint32_t id;

    (void)w;
    for (size_t at = 0, len; at < word.len; at += len) {
        len = trie_longest(&t->pieces, word, at, &id);
        if (len)
            ids_put(ids, (int32_t)id);
        else if (t->unk >= 0)
            ids_put(ids, t->unk);
        if (!len) len = 1;
    }
    cairn_status st = buf_status(ids);
    return st == CAIRN_OK ? st : diag_set(dg, st, "encoding %zu bytes", word.len);
}

enum {
    COST_UNKNOWN = 10 * 1000 * 1000, /* of one character spelt in bytes, in ten-thousandths */
    COST_UNUSABLE = 20 * 1000 * 1000
};

typedef struct step {
    int64_t cost; /* of the text from here on */
    uint32_t len; /* bytes of the piece that begins here */
    int32_t id;   /* -1: bytes */
} step;

/* The cost of a piece, rounded as the reference rounds it: halves away from zero. */
static int64_t cost_of(double score)
{
    double x = score * 1e4;

    if (x >= 2e9 || x <= -2e9) return COST_UNUSABLE;
    return -(int64_t)(x < 0 ? x - 0.5 : x + 0.5);
}

/* The pieces that begin at `at`, the longest first among equals. */
static void relax(const tok *t, cairn_str s, size_t at, step *best)
{
    const trie *p = &t->pieces;
    uint32_t node = p->root[(uint8_t)s.ptr[at]];
    uint32_t cp;
    size_t len = uc_next(s.ptr + at, &cp);

    best[at] = (step){best[at + len].cost + COST_UNKNOWN, (uint32_t)len, -1};
    for (size_t i = at + 1; node; i++) {
        if (p->node[node].match) {
            uint32_t id = p->node[node].match - 1;
            int64_t cost = cost_of(t->score[id]);
            if (cost < COST_UNUSABLE && best[i].cost + cost <= best[at].cost)
                best[at] = (step){best[i].cost + cost, (uint32_t)(i - at), (int32_t)id};
        }
        if (i >= s.len) break;
        node = trie_child(p, node, (uint8_t)s.ptr[i]);
    }
}

cairn_status plamo2_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    if (str_starts(word, STR_LIT("\xEF\xBB\xBF"))) word = str_sub(word, 3, word.len - 3);
    buf_clear(&w->sym);
    step *best = buf_grow(&w->sym, (word.len + 1) * sizeof *best);
    if (!best) return diag_set(dg, CAIRN_E_NOMEM, "encoding %zu bytes", word.len);
    best[word.len] = (step){0, 0, -1};
    for (size_t at = word.len; at > 0;) {
        at = uc_prev(word.ptr, at);
        relax(t, word, at, best);
    }
    for (size_t at = 0; at < word.len; at += best[at].len) {
        if (best[at].id >= 0) {
            ids_put(ids, best[at].id);
            continue;
        }
        for (size_t i = 0; i < best[at].len; i++)
            ids_put(ids, t->bpe.byte_id[(uint8_t)word.ptr[at + i]]);
    }
    cairn_status st = buf_status(ids);
    return st == CAIRN_OK ? st : diag_set(dg, st, "encoding %zu bytes", word.len);
}
