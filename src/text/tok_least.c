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
    case NORM_NMT:
        return KEPT_VISIBLE;
    case NORM_PRECOMPILED: /* the file's map may make anything of anything */
    case NORM_SPM:
        return KEPT_NOTHING;
    }
    return KEPT_NOTHING;
}

static kept kept_by_pre(const pre_step *p)
{
    if (p->kind == PRE_SCRIPTS) return KEPT_NOTHING; /* loses what precedes the first script */
    if (p->behavior != PRE_REMOVED || p->kind == PRE_PREFIX || p->kind == PRE_BYTES ||
        p->kind == PRE_METASPACE)
        return KEPT_ALL;
    return p->kind == PRE_SPACE ? KEPT_VISIBLE : KEPT_NOTHING;
}

/* What the model's bytes allow, where bytes that no piece has are left out.  Some vocabularies lack the
   control bytes, or lead bytes of characters that nobody writes; none of these stands for a visible
   character or for one composed with it, which begins with C2 to EF. */
static kept kept_by_bytes(const tok *t)
{
    kept k = KEPT_ALL;

    for (int i = 0; i < 256; i++) {
        const bool never = i == 0xC0 || i == 0xC1 || i >= 0xF5; /* in UTF-8 */
        const bool needed = (i >= 0x21 && i <= 0x7E) || (i >= 0xC2 && i <= 0xEF);
        if (t->bpe.byte_id[i] < 0 && !never) k = least_of(k, needed ? KEPT_NOTHING : KEPT_VISIBLE);
    }
    return k;
}

/* What the model itself keeps: every byte becomes ids, and no id stands for many unknown ones. */
static kept kept_by_model(const tok *t)
{
    const kept k = kept_by_bytes(t);
    const bool affixed = t->bpe.prefix.len || t->bpe.suffix.len;

    if (t->word == spm_word || (t->word == bpe_word && t->byte_level && !affixed))
        return t->unk >= 0 ? KEPT_ALL : k; /* an unknown byte is one id */
    if (t->word == unigram_word || (t->word == bpe_word && !affixed))
        return t->bpe.byte_fallback && k == KEPT_ALL ? KEPT_ALL : KEPT_NOTHING;
    return KEPT_NOTHING;
}

static kept kept_by(const tok *t)
{
    kept k = kept_by_model(t);

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
