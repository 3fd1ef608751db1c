/* Owns the reading of a GGUF's vocabulary: "gpt2" is byte-level BPE whose split rules go by name,
   "llama" SentencePiece with scores, and four more in tok_gguf_kinds.c.  What the file leaves open (BOS, spaces, which tokens end a
   turn) is decided as llama.cpp decides it.  An unknown name is an error: a nearly right split is
   wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/tok_gguf.h"

typedef gguf_loader loader;

cairn_status gguf_no_memory(loader *l)
{
    return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static cairn_status wrong(loader *l, const char *key, const meta *m, const char *expected)
{
    char found[META_TEXT_LEN];
    meta_text(m, found);
    return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: %s: found %s; expected %s", l->where, key, found,
                    expected);
}

static cairn_status array(loader *l, const char *key, bool required, meta *out)
{
    if (!meta_get(l->v, key, out)) {
        *out = (meta){0};
        if (!required) return CAIRN_OK;
    }
    if (out->type == META_ARR) return CAIRN_OK;
    return wrong(l, key, out, "an array");
}

static cairn_status string_at(loader *l, const meta *arr, const char *key, size_t i, cairn_str *out)
{
    meta m = {0};

    if (!meta_at(l->v, arr, i, &m) || m.type != META_STR)
        return wrong(l, key, &m, "an array of texts");
    *out = m.u.s;
    return CAIRN_OK;
}

int64_t gguf_type_at(loader *l, size_t i)
{
    meta m;

    if (l->types.type != META_ARR || !meta_at(l->v, &l->types, i, &m) || m.type != META_INT)
        return GGUF_NORMAL;
    return m.u.i;
}

/* U+2581 → space */
static cairn_status spaced(tok *t, cairn_str s, cairn_str *out)
{
    char *p = arena_alloc(&t->mem, s.len + 1);
    size_t n = 0;

    if (!p) return CAIRN_E_NOMEM;
    for (size_t i = 0; i < s.len;) {
        if (s.len - i >= 3 && memcmp(s.ptr + i, "\xE2\x96\x81", 3) == 0) {
            p[n++] = ' ';
            i += 3;
        } else {
            p[n++] = s.ptr[i++];
        }
    }
    *out = (cairn_str){p, n};
    return CAIRN_OK;
}

/* Do pieces have U+2581 for a space? */
static bool has_spaces(const loader *l)
{
    if (l->kind == GGUF_BPE) return l->pre->flags & GGUF_SPACED;
    return l->kind != GGUF_PLAMO2;
}

/* What the piece gives to a text, where that is not its spelling. */
static cairn_status set_out(loader *l, int32_t id, int64_t type)
{
    tok *t = l->t;
    uint8_t byte;

    if (type == GGUF_CONTROL || type == GGUF_UNKNOWN) t->flag[id] |= TOK_F_SPECIAL;
    if (type == GGUF_CONTROL || type == GGUF_UNKNOWN || type == GGUF_USER)
        t->out[id] = t->text[id];
    else if (type == GGUF_UNUSED)
        t->out[id] = STR_LIT("");
    else if (type == GGUF_BYTE && tok_byte_piece(t->text[id], &byte)) {
        t->flag[id] |= TOK_F_BYTE;
        t->out[id] = tok_copy(t, (cairn_str){(const char *)&byte, 1});
        return t->out[id].ptr ? CAIRN_OK : gguf_no_memory(l);
    } else if (has_spaces(l) && spaced(t, t->text[id], &t->out[id]) != CAIRN_OK)
        return gguf_no_memory(l);
    return CAIRN_OK;
}

static cairn_status read_pieces(loader *l)
{
    tok *t = l->t;
    size_t n_added = 0;

    for (int32_t id = 0; id < t->n; id++) {
        int64_t type = gguf_type_at(l, (size_t)id);
        cairn_str s;
        TRY(string_at(l, &l->tokens, "tokenizer.ggml.tokens", (size_t)id, &s));
        t->text[id] = tok_copy(t, s);
        if (!t->text[id].ptr) return gguf_no_memory(l);
        t->flag[id] |= TOK_F_USED;
        TRY(l->kind == GGUF_RWKV ? gguf_rwkv_piece(l, id) : set_out(l, id, type));
        if (type == GGUF_CONTROL || type == GGUF_UNKNOWN || type == GGUF_USER) n_added++;
    }
    t->added = arena_calloc(&t->mem, n_added + 1, sizeof *t->added);
    if (!t->added) return gguf_no_memory(l);
    for (int32_t id = 0; id < t->n; id++) {
        int64_t type = gguf_type_at(l, (size_t)id);
        if (type != GGUF_CONTROL && type != GGUF_UNKNOWN && type != GGUF_USER) continue;
        if (t->text[id].len == 0) continue;
        t->added[t->n_added++] =
            (added){.text = t->text[id], .id = id, .special = type != GGUF_USER};
    }
    return CAIRN_OK;
}

static cairn_status add_rules(loader *l, const gguf_pre *r)
{
    tok *t = l->t;

    t->pre = arena_calloc(&t->mem, GGUF_MOST_RULES + 1, sizeof *t->pre);
    if (!t->pre) return gguf_no_memory(l);
    for (int i = 0; i < GGUF_MOST_RULES && r->rule[i]; i++) {
        pre_step s = {.behavior = PRE_ISOLATED};
        TRY(pre_of_pattern(str_of(r->rule[i]), l->where, &s, l->dg));
        t->pre[t->n_pre++] = s;
    }
    pre_join(t->pre, &t->n_pre);
    return CAIRN_OK;
}

static cairn_status escape_spaces(loader *l)
{
    tok *t = l->t;

    t->norm = arena_calloc(&t->mem, 1, sizeof *t->norm);
    if (!t->norm) return gguf_no_memory(l);
    t->norm[t->n_norm++] =
        (norm_step){.kind = NORM_REPLACE, .from = STR_LIT(" "), .to = STR_LIT("\xE2\x96\x81")};
    return CAIRN_OK;
}

/* The model "whitespace": white space only divides, and upper case is folded unless the file says not
   to. */
static cairn_status drop_spaces(loader *l)
{
    tok *t = l->t;

    t->pre[t->n_pre++] = (pre_step){.kind = PRE_SPACE, .behavior = PRE_REMOVED};
    bool lower = !str_is(str_of(l->pre->name), "whitespace");
    if (!meta_bool(l->v, "tokenizer.ggml.normalizer.lowercase", lower)) return CAIRN_OK;
    t->norm = arena_calloc(&t->mem, 1, sizeof *t->norm);
    if (!t->norm) return gguf_no_memory(l);
    t->norm[t->n_norm++] = (norm_step){.kind = NORM_LOWERCASE};
    return CAIRN_OK;
}

static cairn_status read_merges(loader *l)
{
    static const char field[] = "tokenizer.ggml.merges";
    cairn_str side[2 * BPE_BATCH], s;
    size_t n = 0;

    for (size_t i = 0; i < l->merges.u.n; i++) {
        TRY(string_at(l, &l->merges, field, i, &s));
        const size_t cut = s.len > 1 ? str_find(s, STR_LIT(" "), 1) : SIZE_MAX;
        if (cut != SIZE_MAX) {
            side[2 * n] = str_sub(s, 0, cut);
            side[2 * n + 1] = str_sub(s, cut + 1, s.len - cut - 1);
            n++;
        }
        if (n == BPE_BATCH || cut == SIZE_MAX || i + 1 == l->merges.u.n) {
            TRY(bpe_add_merges(l->t, side, n, l->where, field, l->dg));
            n = 0;
        }
        if (cut == SIZE_MAX)
            return diag_set(l->dg, CAIRN_E_CORRUPT,
                            "%s: %s: found merge %zu \"%.*s\"; expected two pieces", l->where,
                            field, i, STR_ARG(s));
    }
    return CAIRN_OK;
}

static cairn_status read_bpe(loader *l)
{
    tok *t = l->t;
    const gguf_pre *r = l->pre;

    /* Kimi's files may have pieces alone: no merges, bytes and whole words. */
    TRY(array(l, "tokenizer.ggml.merges", !str_is(str_of(r->name), "kimi-k2"), &l->merges));
    TRY(add_rules(l, r));
    if (r->flags & GGUF_SPACED) TRY(escape_spaces(l));
    if (str_is(meta_str(l->v, "tokenizer.ggml.model", (cairn_str){0}), "whitespace"))
        TRY(drop_spaces(l));
    t->bpe.byte_fallback = r->flags & GGUF_TEXT;
    t->bpe.ignore_merges = r->flags & GGUF_IGNORE_MERGES;
    t->bpe.keep_first_rank = true;
    if (l->merges.u.n > TOK_MAX_MERGES)
        return diag_set(l->dg, CAIRN_E_LIMIT,
                        "%s: tokenizer.ggml.merges: found %zu; expected at most %d", l->where,
                        l->merges.u.n, TOK_MAX_MERGES);
    TRY(bpe_init(t, (uint32_t)l->merges.u.n, l->dg));
    TRY(read_merges(l));
    t->word = bpe_word;
    return bpe_finish(t, l->dg);
}

cairn_status gguf_read_scores(loader *l)
{
    tok *t = l->t;

    TRY(array(l, "tokenizer.ggml.scores", true, &l->scores));
    t->score = arena_calloc(&t->mem, (size_t)t->n, sizeof *t->score);
    if (!t->score) return gguf_no_memory(l);
    for (int32_t i = 0; i < t->n; i++) {
        meta m;
        double x = (double)NAN;
        if (meta_at(l->v, &l->scores, (size_t)i, &m))
            x = m.type == META_FLOAT ? m.u.f : m.type == META_INT ? (double)m.u.i : x;
        if (!isfinite(x))
            return diag_set(l->dg, CAIRN_E_CORRUPT,
                            "%s: `tokenizer.ggml.scores`[%d] is no number; expected a finite one",
                            l->where, i);
        t->score[i] = x + 0.0; /* -0 becomes 0: they are equal */
    }
    return CAIRN_OK;
}

static cairn_status read_spm(loader *l)
{
    tok *t = l->t;

    TRY(gguf_read_scores(l));
    TRY(escape_spaces(l));
    t->space_after_special = meta_bool(l->v, "tokenizer.ggml.add_space_prefix", true);
    if (t->space_after_special) {
        t->dec.strip = STR_LIT(" ");
        t->dec.strip_left = 1;
    }
    t->word = spm_word;
    return bpe_finish(t, l->dg); /* the byte pieces */
}

static int32_t id_of(loader *l, const char *key, int32_t otherwise)
{
    int64_t id = meta_int(l->v, key, otherwise);

    return id >= 0 && id < l->t->n ? (int32_t)id : -1;
}

static void mark_eos(tok *t, int32_t id)
{
    if (id >= 0) t->flag[id] |= TOK_F_EOS;
}

/* Files often name only one of the tokens that end a turn; these texts end one wherever they are
   control tokens. */
static const char *const turn_ends[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<end_of_utterance>",
};

static cairn_status put_one(loader *l, int32_t id, int32_t **list, uint32_t *n)
{
    if (id < 0) return CAIRN_OK;
    *list = arena_alloc(&l->t->mem, sizeof **list);
    if (!*list) return gguf_no_memory(l);
    **list = id;
    *n = 1;
    return CAIRN_OK;
}

typedef struct kind_info {
    const char *model;
    gguf_kind kind;
    const char *pre; /* NULL: the file names it */
    int32_t bos, eos, unk, sep;
    bool add_bos, add_eos;
} kind_info;

/* What llama.cpp takes for granted of each kind. */
static const kind_info kinds[] = {
    {"gpt2", GGUF_BPE, NULL, -1, -1, -1, -1, false, false},
    {"whitespace", GGUF_BPE, NULL, -1, -1, -1, -1, false, false},
    {"gemma4", GGUF_BPE, "gemma4", -1, -1, -1, -1, true, false},
    {"llama", GGUF_SPM, NULL, 1, 2, 0, -1, true, false},
    {"bert", GGUF_WPM, NULL, 101, -1, 100, 102, true, false},
    {"t5", GGUF_UGM, NULL, -1, 1, 2, -1, false, true},
    {"rwkv", GGUF_RWKV, NULL, -1, -1, -1, -1, false, false},
    {"plamo2", GGUF_PLAMO2, NULL, 1, 2, 0, -1, false, false},
};

static void mark_eos_tokens(loader *l)
{
    tok *t = l->t;

    mark_eos(t, t->special.eos);
    mark_eos(t, id_of(l, "tokenizer.ggml.eot_token_id", -1));
    mark_eos(t, id_of(l, "tokenizer.ggml.eom_token_id", -1));
    for (size_t i = 0; i < sizeof turn_ends / sizeof turn_ends[0]; i++) {
        int32_t id = tok_find(t, str_of(turn_ends[i]));
        if (id >= 0 && t->flag[id] & TOK_F_SPECIAL) mark_eos(t, id);
    }
}

static cairn_status read_specials(loader *l, const kind_info *k)
{
    tok *t = l->t;
    tok_special *s = &t->special;
    bool add_bos = k->add_bos, add_eos = k->add_eos;

    s->bos = id_of(l, "tokenizer.ggml.bos_token_id", k->bos);
    s->eos = id_of(l, "tokenizer.ggml.eos_token_id", k->eos);
    s->unk = id_of(l, "tokenizer.ggml.unknown_token_id", k->unk);
    s->pad = id_of(l, "tokenizer.ggml.padding_token_id", -1);
    t->unk = k->kind == GGUF_BPE ? -1 : s->unk;
    mark_eos_tokens(l);
    if (k->kind == GGUF_WPM) { /* [CLS] and [SEP], always */
        int32_t sep = id_of(l, "tokenizer.ggml.seperator_token_id", k->sep);
        s->add_bos = s->bos >= 0;
        TRY(put_one(l, s->bos, &t->before, &t->n_before));
        return put_one(l, sep, &t->after, &t->n_after);
    }
    if (k->kind == GGUF_RWKV || k->kind == GGUF_PLAMO2) return CAIRN_OK;
    if (l->pre && l->pre->flags & GGUF_ADD_BOS) add_bos = true;
    add_bos = meta_bool(l->v, "tokenizer.ggml.add_bos_token", add_bos);
    /* Gemma 4's files say false and mean true. */
    if (l->pre && l->pre->flags & GGUF_ADD_BOS && l->pre->flags & GGUF_SPACED) add_bos = true;
    add_eos = meta_bool(l->v, "tokenizer.ggml.add_eos_token", add_eos);
    s->add_bos = add_bos && s->bos >= 0;
    s->add_eos = add_eos && s->eos >= 0;
    TRY(put_one(l, s->add_bos ? s->bos : -1, &t->before, &t->n_before));
    return put_one(l, s->add_eos ? s->eos : -1, &t->after, &t->n_after);
}

static cairn_status unknown_kind(const loader *l, cairn_str model)
{
    char known[128];
    size_t n = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", kinds[i].model);
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: `tokenizer.ggml.model` is \"%.*s\"; expected one of %s", l->where,
                    STR_ARG(model), known);
}

static cairn_status find_kind(loader *l, const kind_info **out)
{
    cairn_str model = meta_str(l->v, "tokenizer.ggml.model", (cairn_str){0});

    if (model.len == 0)
        return diag_set(l->dg, CAIRN_E_NOTFOUND,
                        "%s: `tokenizer.ggml.model` is missing; expected the kind of tokenizer",
                        l->where);
    *out = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_is(model, kinds[i].model)) *out = &kinds[i];
    if (!*out) return unknown_kind(l, model);
    l->kind = (*out)->kind;
    if (l->kind != GGUF_BPE) return CAIRN_OK;
    cairn_str name = (*out)->pre ? str_of((*out)->pre)
                                 : meta_str(l->v, "tokenizer.ggml.pre", STR_LIT("default"));
    l->pre = gguf_pre_find(name);
    if (l->pre) return CAIRN_OK;
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: `tokenizer.ggml.pre` is \"%.*s\"; expected one that is known", l->where,
                    STR_ARG(name));
}

static cairn_status read_kind(loader *l)
{
    switch (l->kind) {
    case GGUF_BPE:
        return read_bpe(l);
    case GGUF_SPM:
        return read_spm(l);
    case GGUF_WPM:
        return gguf_read_wpm(l);
    case GGUF_UGM:
        return gguf_read_ugm(l);
    case GGUF_RWKV:
        return gguf_read_rwkv(l);
    case GGUF_PLAMO2:
        return gguf_read_plamo2(l);
    }
    return CAIRN_E_INTERNAL;
}

static cairn_status build(loader *l)
{
    const kind_info *kind = NULL;

    TRY(find_kind(l, &kind));
    TRY(array(l, "tokenizer.ggml.tokens", true, &l->tokens));
    TRY(array(l, "tokenizer.ggml.token_type", false, &l->types));
    if (l->tokens.u.n == 0 || l->tokens.u.n > TOK_MAX_VOCAB)
        return diag_set(l->dg, CAIRN_E_CORRUPT,
                        "%s: tokenizer.ggml.tokens: found %zu; expected 1 to %d", l->where,
                        l->tokens.u.n, TOK_MAX_VOCAB);
    TRY(tok_new((int32_t)l->tokens.u.n, &l->t, l->dg));
    l->t->byte_level = l->t->dec.byte_level = l->pre && !(l->pre->flags & GGUF_TEXT);
    TRY(read_pieces(l));
    TRY(tok_index(l->t, l->where, "tokenizer.ggml.tokens", l->dg));
    TRY(tok_index_added(l->t, l->dg));
    TRY(read_kind(l));
    return read_specials(l, kind);
}

cairn_status tok_open_gguf(const meta_view *gguf, const char *where, tok **out, cairn_diag *dg)
{
    loader l = {.v = gguf, .where = where, .dg = dg};
    cairn_status st = build(&l);

    if (st == CAIRN_OK)
        *out = l.t;
    else
        tok_close(l.t);
    return tok_opened(st, where, dg);
}
