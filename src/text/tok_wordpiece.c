/* Owns the two models that look whole words up: WordLevel, and WordPiece, which takes the longest
   piece from the left, again and again, or gives the word up as unknown. */
#include "text/tok_priv.h"
#include "text/uchar.h"

static cairn_status put_unknown(const tok *t, cairn_str word, buf *ids, cairn_diag *dg)
{
    if (t->unk < 0)
        return diag_set(dg, CAIRN_E_ARG,
                        "\"%.*s\" is not in the vocabulary, which has no unk_token", STR_ARG(word));
    ids_put(ids, t->unk);
    return CAIRN_OK;
}

cairn_status wordlevel_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    uint32_t id;

    (void)w;
    if (!map_get(&t->by_key, word, &id)) return put_unknown(t, word, ids, dg);
    ids_put(ids, (int32_t)id);
    return CAIRN_OK;
}

static size_t count_chars(cairn_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) n += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return n;
}

/* Longest piece at word[at…]; its length, 0 if none. */
static size_t longest(const tok *t, cairn_str word, size_t at, buf *key, uint32_t *id)
{
    cairn_str rest = str_sub(word, at, word.len - at);

    buf_clear(key);
    if (at > 0) buf_str(key, t->bpe.prefix);
    size_t base = key->len;
    buf_str(key, rest);
    for (size_t n = rest.len; n > 0; n = uc_prev(rest.ptr, n)) {
        buf_cut(key, base + n);
        if (base + n <= t->max_text && map_get(&t->by_key, buf_view(key), id)) return n;
    }
    return 0;
}

cairn_status wordpiece_word(const tok *t, cairn_str word, work *w, buf *ids, cairn_diag *dg)
{
    size_t from = ids->len, n;

    if (count_chars(word) > t->max_word_chars) return put_unknown(t, word, ids, dg);
    for (size_t at = 0; at < word.len; at += n) {
        uint32_t id = 0;
        n = longest(t, word, at, &w->heap, &id);
        TRY(buf_status(&w->heap)); /* without memory no piece is found */
        if (n == 0) {
            buf_cut(ids, from);
            return put_unknown(t, word, ids, dg);
        }
        ids_put(ids, (int32_t)id);
    }
    return CAIRN_OK;
}
