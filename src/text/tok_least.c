/* Owns the lower bound of a text's ids.  Every id stands for at most as many bytes of the text that the
   model sees as the longest piece has, so n bytes of it make at least n / longest ids.  That text is not
   the one that was given: normalisers compose, strip and replace, added tokens take the white space
   around them, pre-tokenizers drop separators.  So what is counted is what each step is known to keep:

   - all bytes, where every step only copies or makes longer (byte-level BPE, SentencePiece's "▁");
   - else the visible ASCII characters: no normal form, case folding, accent or white space step takes
     one away (a composed character has one base, and is longer than it);
   - nothing, where a step may delete or shorten these (a replacement of them, a removed pattern), or
     where one id may stand for any length (unknown words, fused unknowns). */
#include "text/tok_priv.h"

typedef enum kept { KEPT_NOTHING, KEPT_VISIBLE, KEPT_ALL } kept;

static kept least_of(kept a, kept b)
{
    return a < b ? a : b;
}

static size_t count_visible(cairn_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) n += (unsigned char)(s.ptr[i] - 0x21) < 0x7F - 0x21;
    return n;
}

static kept kept_by_norm(const norm_step *n)
{
    switch (n->kind) {
    case NORM_PREPEND:
    case NORM_BYTE_LEVEL:
        return KEPT_ALL;
    case NORM_REPLACE:
        if (n->re || count_visible(n->from)) return KEPT_NOTHING;
        return n->to.len >= n->from.len ? KEPT_ALL : KEPT_VISIBLE;
    case NORM_NFC:
    case NORM_NFD:
    case NORM_NFKC:
    case NORM_NFKD:
    case NORM_LOWERCASE:
    case NORM_STRIP:
    case NORM_STRIP_ACCENTS:
    case NORM_BERT:
        return KEPT_VISIBLE;
    }
    return KEPT_NOTHING;
}

static kept kept_by_pre(const pre_step *p)
{
    if (p->behavior != PRE_REMOVED || p->kind == PRE_PREFIX || p->kind == PRE_BYTES ||
        p->kind == PRE_METASPACE)
        return KEPT_ALL;
    return p->kind == PRE_SPACE ? KEPT_VISIBLE : KEPT_NOTHING;
}

/* Does the model turn each byte into ids, whatever it is, and none into an id for many? */
static bool counts_bytes(const tok *t)
{
    bool bytes = true;

    for (int i = 0; i < 256; i++) bytes = bytes && t->bpe.byte_id[i] >= 0;
    if (t->word == spm_word) return bytes || t->unk >= 0;
    if (t->word == unigram_word) return bytes && t->bpe.byte_fallback;
    return t->word == bpe_word && bytes && (t->byte_level || t->bpe.byte_fallback) &&
           !t->bpe.prefix.len && !t->bpe.suffix.len;
}

static kept kept_by(const tok *t)
{
    kept k = counts_bytes(t) ? KEPT_ALL : KEPT_NOTHING;

    for (size_t i = 0; i < t->n_norm; i++) k = least_of(k, kept_by_norm(&t->norm[i]));
    for (size_t i = 0; i < t->n_pre; i++) k = least_of(k, kept_by_pre(&t->pre[i]));
    for (uint32_t i = 0; i < t->n_added; i++)
        if (t->added[i].lstrip || t->added[i].rstrip) k = least_of(k, KEPT_VISIBLE);
    return k;
}

size_t tok_least_ids(const tok *t, cairn_str s)
{
    const kept k = kept_by(t);
    const size_t longest = t->max_text > t->max_added ? t->max_text : t->max_added;
    const size_t n = k == KEPT_ALL ? s.len : k == KEPT_VISIBLE ? count_visible(s) : 0;

    return longest ? n / longest + (n % longest != 0) : 0;
}
