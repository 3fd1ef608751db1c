/* Owns SentencePiece's merging as llama.cpp does it for GGUF vocabularies with scores: neighbours
   whose joined text is a piece merge, best score first, leftmost of equals; characters that are no
   piece become bytes. */
#include <string.h>

#include "text/tok_priv.h"
#include "text/uchar.h"

/* Higher scores first: a key that falls as the score rises. */
static uint32_t order_of(float score)
{
    uint32_t u;

    memcpy(&u, &score, sizeof u);
    return u & 0x80000000u ? u : ~u & 0x7FFFFFFFu;
}

/* sym.id is a byte offset here, of which there are 28 bits, with a mark for a user-defined piece, which
   never merges. */
enum { FROZEN = 1 << 30 };

static bool pair(const tok *t, cairn_str word, const sym *s, int32_t i, uint32_t *rank,
                 uint32_t *id)
{
    if (s[i].next < 0 || (s[i].id | s[s[i].next].id) & FROZEN) return false;
    cairn_str both = str_sub(word, s[i].id, s[i].len + s[s[i].next].len);
    if (both.len > t->max_text || !map_get(&t->by_key, both, id)) return false;
    if (t->flag[*id] & TOK_F_UNREACHABLE) return false;
    *rank = order_of((float)t->score[*id]);
    return true;
}

/* A symbol that is no piece becomes bytes, or the unknown piece: of neighbours one, if they fuse. */
static void put_symbol(const tok *t, cairn_str c, bool *was_unk, buf *ids)
{
    uint32_t id;
    bool fuse = t->bpe.fuse_unk && !t->bpe.byte_fallback;

    if (map_get(&t->by_key, c, &id) && !(t->flag[id] & TOK_F_UNREACHABLE)) {
        ids_put(ids, (int32_t)id);
        *was_unk = false;
        return;
    }
    for (size_t i = 0; i < (fuse ? 1 : c.len); i++) {
        int32_t byte = fuse ? -1 : t->bpe.byte_id[(uint8_t)c.ptr[i]];
        if (byte < 0) byte = t->unk;
        if (byte >= 0 && !(fuse && *was_unk)) ids_put(ids, byte);
    }
    *was_unk = true;
}

static cairn_status merge(const tok *t, cairn_str word, work *w, buf *ids)
{
    size_t n = 0, len;
    uint32_t cp;

    buf_clear(&w->sym);
    for (size_t at = 0; at < word.len; at += len) {
        len = trie_longest(&t->keep, word, at, &cp);
        uint32_t frozen = len ? FROZEN : 0;
        if (!len) len = uc_next(word.ptr + at, &cp);
        sym x = {(uint32_t)at | frozen, (uint32_t)len, (int32_t)n - 1, (int32_t)n + 1};
        if (at + len == word.len) x.next = -1;
        buf_put(&w->sym, &x, sizeof x);
        n++;
    }
    TRY(buf_status(&w->sym));
    sym *s = (sym *)(void *)w->sym.ptr;
    TRY(merge_long(t, word, pair, s, (int32_t)n, w));
    bool was_unk = false;
    for (int32_t i = n ? 0 : -1; i >= 0; i = s[i].next)
        put_symbol(t, str_sub(word, s[i].id & ~(uint32_t)FROZEN, s[i].len), &was_unk, ids);
    return buf_status(ids);
}

cairn_status spm_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    cairn_status st = merge(t, word, w, ids);

    return st == CAIRN_OK ? st : diag_set(dg, st, "encoding a word of %zu bytes", word.len);
}
