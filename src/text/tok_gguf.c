/* Owns the reading of a GGUF's vocabulary: "gpt2" is byte-level BPE whose split rules go by name,
   "llama" SentencePiece with scores.  What the file leaves open (BOS, spaces, which tokens end a
   turn) is decided as llama.cpp decides it.  An unknown name is an error: a nearly right split is
   wrong. */
#include <math.h>
#include <string.h>

#include "text/rules.h"
#include "text/tok_priv.h"

/* tokenizer.ggml.token_type */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER, TYPE_UNUSED, TYPE_BYTE };

/* The letters of deepseek-llm: cased ones, spelt out as ranges. */
#define CASED_LETTERS                                                                              \
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"   \
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"           \
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"               \
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"               \
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"          \
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"         \
    "\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"          \
    "\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"                 \
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"           \
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf"               \
    "\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"                    \
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"         \
    "\U000118a0-\U000118df\U0001e900-\U0001e943"
#define HAN_HANGUL "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

enum { MOST_RULES = 6 };

typedef struct pre_rules {
    const char *name;
    const char *rule[MOST_RULES]; /* each over the words of the one before */
    bool ignore_merges, add_bos;
    bool spaced; /* pieces are text with U+2581 for spaces, not bytes */
} pre_rules;

/* tokenizer.ggml.model "gemma4" has one rule, and no name for it. */
static const pre_rules gemma4 = {"gemma4", {"[^\\n]+|[\\n]+"}, 0, 1, 1};

static const pre_rules rules[] = {
    {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", RULE_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, 0, 0, 0},
    {"gpt-2", {RULE_GPT2}, 0, 0, 0},
    {"phi-2", {RULE_GPT2}, 0, 0, 0},
    {"mpt", {RULE_GPT2}, 0, 0, 0},
    {"olmo", {RULE_GPT2}, 0, 0, 0},
    {"jais", {RULE_GPT2}, 0, 0, 0},
    {"gigachat", {RULE_GPT2}, 0, 0, 0},
    {"mellum", {RULE_GPT2}, 0, 0, 0},
    {"modern-bert", {RULE_GPT2}, 0, 0, 0},
    {"trillion", {RULE_GPT2}, 0, 0, 0},
    {"granite-docling", {RULE_GPT2}, 0, 0, 0},
    {"smollm", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"starcoder", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"refact", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"command-r", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"codeshell", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"exaone", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"minerva-7b", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"mellum2", {"\\p{N}", RULE_GPT2}, 0, 0, 0},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", RULE_GPT2, "[0-9][0-9][0-9]"}, 0, 0, 0},
    {"llama-bpe", {RULE_LLAMA3}, 1, 1, 0},
    {"llama3", {RULE_LLAMA3}, 1, 1, 0},
    {"llama-v3", {RULE_LLAMA3}, 1, 1, 0},
    {"falcon3", {RULE_LLAMA3}, 1, 1, 0},
    {"falcon-h1", {RULE_LLAMA3}, 1, 1, 0},
    {"pixtral", {RULE_LLAMA3}, 1, 1, 0},
    {"midm-2.0", {RULE_LLAMA3}, 1, 1, 0},
    {"lfm2", {RULE_LLAMA3}, 1, 1, 0},
    {"dbrx", {RULE_LLAMA3}, 0, 0, 0},
    {"smaug-bpe", {RULE_LLAMA3}, 0, 0, 0},
    {"chatglm-bpe", {RULE_LLAMA3}, 0, 0, 0},
    {"glm4", {RULE_LLAMA3}, 1, 0, 0},
    {"glm5", {RULE_LLAMA3}, 1, 0, 0},
    {"qwen2", {RULE_QWEN2}, 0, 0, 0},
    {"deepseek-r1-qwen", {RULE_QWEN2}, 0, 0, 0},
    {"stablelm2", {RULE_QWEN2}, 0, 0, 0},
    {"hunyuan", {RULE_QWEN2}, 0, 0, 0},
    {"megrez", {RULE_QWEN2}, 0, 0, 0},
    {"grok-2", {RULE_QWEN2}, 0, 0, 0},
    {"qwen35", {RULE_QWEN35}, 0, 0, 0},
    {"deepseek-llm",
     {"[\r\n]", "\\s?[" CASED_LETTERS "]+",
      "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$", HAN_HANGUL,
      "\\p{N}+"},
     0,
     0,
     0},
    {"deepseek-coder", {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_HANGUL, "\\p{N}"}, 0, 0, 0},
    {"deepseek-v3", {"\\p{N}{1,3}", RULE_HAN_KANA, RULE_DEEPSEEK3}, 0, 0, 0},
    {"hunyuan-dense", {"\\p{N}{1,3}", RULE_HAN_KANA, RULE_DEEPSEEK3}, 0, 0, 0},
    {"gpt-4o", {RULE_O200K}, 0, 0, 0},
    {"llama4", {RULE_O200K}, 0, 0, 0},
    {"kanana2", {RULE_O200K}, 0, 0, 0},
};

typedef struct loader {
    tok *t;
    const meta_view *v;
    const char *where;
    cairn_diag *dg;
    meta tokens, types, scores, merges;
    const pre_rules *rules; /* of BPE; NULL: SPM */
} loader;

static cairn_status no_memory(loader *l)
{
    return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static cairn_status array(loader *l, const char *key, bool required, meta *out)
{
    if (!meta_get(l->v, key, out)) {
        *out = (meta){0};
        if (!required) return CAIRN_OK;
        return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: no `%s`", l->where, key);
    }
    if (out->type != META_ARR)
        return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: `%s` is not an array", l->where, key);
    return CAIRN_OK;
}

static cairn_status string_at(loader *l, const meta *arr, const char *key, size_t i, cairn_str *out)
{
    meta m;

    if (!meta_at(l->v, arr, i, &m) || m.type != META_STR)
        return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: `%s`[%zu] is not a string", l->where, key, i);
    *out = m.u.s;
    return CAIRN_OK;
}

static int64_t type_at(loader *l, size_t i)
{
    meta m;

    if (l->types.type != META_ARR || !meta_at(l->v, &l->types, i, &m) || m.type != META_INT)
        return TYPE_NORMAL;
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

/* What the piece gives to a text, where that is not its spelling. */
static cairn_status set_out(loader *l, int32_t id, int64_t type)
{
    tok *t = l->t;
    uint8_t byte;

    if (type == TYPE_CONTROL || type == TYPE_UNKNOWN) t->flag[id] |= TOK_F_SPECIAL;
    if (type == TYPE_CONTROL || type == TYPE_UNKNOWN || type == TYPE_USER)
        t->out[id] = t->text[id];
    else if (type == TYPE_UNUSED)
        t->out[id] = STR_LIT("");
    else if (type == TYPE_BYTE && tok_byte_piece(t->text[id], &byte)) {
        t->flag[id] |= TOK_F_BYTE;
        t->out[id] = tok_copy(t, (cairn_str){(const char *)&byte, 1});
        return t->out[id].ptr ? CAIRN_OK : no_memory(l);
    } else if (!t->byte_level && spaced(t, t->text[id], &t->out[id]) != CAIRN_OK)
        return no_memory(l);
    return CAIRN_OK;
}

static cairn_status read_pieces(loader *l)
{
    tok *t = l->t;
    size_t n_added = 0;

    for (int32_t id = 0; id < t->n; id++) {
        int64_t type = type_at(l, (size_t)id);
        cairn_str s;
        TRY(string_at(l, &l->tokens, "tokenizer.ggml.tokens", (size_t)id, &s));
        t->text[id] = tok_copy(t, s);
        if (!t->text[id].ptr) return no_memory(l);
        t->flag[id] |= TOK_F_USED;
        TRY(set_out(l, id, type));
        if (type == TYPE_CONTROL || type == TYPE_UNKNOWN || type == TYPE_USER) n_added++;
    }
    t->added = arena_calloc(&t->mem, n_added + 1, sizeof *t->added);
    if (!t->added) return no_memory(l);
    for (int32_t id = 0; id < t->n; id++) {
        int64_t type = type_at(l, (size_t)id);
        if (type != TYPE_CONTROL && type != TYPE_UNKNOWN && type != TYPE_USER) continue;
        if (t->text[id].len == 0) continue;
        t->added[t->n_added++] =
            (added){.text = t->text[id], .id = id, .special = type != TYPE_USER};
    }
    return CAIRN_OK;
}

static cairn_status add_rules(loader *l, const pre_rules *r)
{
    tok *t = l->t;

    t->pre = arena_calloc(&t->mem, MOST_RULES, sizeof *t->pre);
    if (!t->pre) return no_memory(l);
    for (int i = 0; i < MOST_RULES && r->rule[i]; i++) {
        pre_step s = {.kind = PRE_SCAN, .behavior = PRE_ISOLATED};
        s.scan = scan_find(str_of(r->rule[i]));
        if (!s.scan) {
            s.kind = PRE_REGEX;
            TRY(regex_new(str_of(r->rule[i]), l->where, &s.re, l->dg));
        }
        t->pre[t->n_pre++] = s;
    }
    return CAIRN_OK;
}

static cairn_status escape_spaces(loader *l)
{
    tok *t = l->t;

    t->norm = arena_calloc(&t->mem, 1, sizeof *t->norm);
    if (!t->norm) return no_memory(l);
    t->norm[t->n_norm++] =
        (norm_step){.kind = NORM_REPLACE, .from = STR_LIT(" "), .to = STR_LIT("\xE2\x96\x81")};
    return CAIRN_OK;
}

static cairn_status read_bpe(loader *l)
{
    tok *t = l->t;
    const pre_rules *r = l->rules;
    cairn_str s;

    TRY(array(l, "tokenizer.ggml.merges", true, &l->merges));
    TRY(add_rules(l, r));
    if (r->spaced) TRY(escape_spaces(l));
    t->bpe.byte_fallback = r->spaced;
    t->bpe.ignore_merges = r->ignore_merges;
    t->bpe.keep_first_rank = true;
    if (l->merges.u.n > TOK_MAX_MERGES)
        return diag_set(l->dg, CAIRN_E_LIMIT, "%s: %zu merges", l->where, l->merges.u.n);
    TRY(bpe_init(t, (uint32_t)l->merges.u.n, l->dg));
    for (size_t i = 0; i < l->merges.u.n; i++) {
        TRY(string_at(l, &l->merges, "tokenizer.ggml.merges", i, &s));
        size_t cut = s.len > 1 ? str_find(s, STR_LIT(" "), 1) : SIZE_MAX;
        if (cut == SIZE_MAX)
            return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: merge %zu, \"%.*s\", is not two pieces",
                            l->where, i, STR_ARG(s));
        TRY(bpe_add_merge(t, str_sub(s, 0, cut), str_sub(s, cut + 1, s.len - cut - 1), l->where,
                          l->dg));
    }
    t->word = bpe_word;
    return bpe_finish(t, l->dg);
}

static cairn_status read_spm(loader *l)
{
    tok *t = l->t;

    TRY(array(l, "tokenizer.ggml.scores", true, &l->scores));
    t->score = arena_calloc(&t->mem, (size_t)t->n, sizeof *t->score);
    if (!t->score) return no_memory(l);
    TRY(escape_spaces(l));
    for (int32_t i = 0; i < t->n; i++) {
        meta m;
        double x = (double)NAN;
        if (meta_at(l->v, &l->scores, (size_t)i, &m))
            x = m.type == META_FLOAT ? m.u.f : m.type == META_INT ? (double)m.u.i : x;
        if (!isfinite(x))
            return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: `tokenizer.ggml.scores`[%d] is no number",
                            l->where, i);
        t->score[i] = x + 0.0; /* -0 becomes 0: they are equal */
    }
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
    if (!*list) return no_memory(l);
    **list = id;
    *n = 1;
    return CAIRN_OK;
}

static cairn_status read_specials(loader *l)
{
    tok *t = l->t;
    bool add_bos = l->rules ? l->rules->add_bos : true;
    tok_special *s = &t->special;

    s->bos = id_of(l, "tokenizer.ggml.bos_token_id", l->rules ? -1 : 1);
    s->eos = id_of(l, "tokenizer.ggml.eos_token_id", l->rules ? -1 : 2);
    s->unk = id_of(l, "tokenizer.ggml.unknown_token_id", l->rules ? -1 : 0);
    s->pad = id_of(l, "tokenizer.ggml.padding_token_id", -1);
    t->unk = l->rules ? -1 : s->unk;
    mark_eos(t, s->eos);
    mark_eos(t, id_of(l, "tokenizer.ggml.eot_token_id", -1));
    mark_eos(t, id_of(l, "tokenizer.ggml.eom_token_id", -1));
    for (size_t i = 0; i < sizeof turn_ends / sizeof turn_ends[0]; i++) {
        int32_t id = tok_find(t, str_of(turn_ends[i]));
        if (id >= 0 && t->flag[id] & TOK_F_SPECIAL) mark_eos(t, id);
    }
    if (l->rules != &gemma4) add_bos = meta_bool(l->v, "tokenizer.ggml.add_bos_token", add_bos);
    s->add_bos = add_bos && s->bos >= 0;
    s->add_eos = meta_bool(l->v, "tokenizer.ggml.add_eos_token", false) && s->eos >= 0;
    TRY(put_one(l, s->add_bos ? s->bos : -1, &t->before, &t->n_before));
    return put_one(l, s->add_eos ? s->eos : -1, &t->after, &t->n_after);
}

static cairn_status find_rules(loader *l)
{
    cairn_str pre = meta_str(l->v, "tokenizer.ggml.pre", STR_LIT("default"));

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (!str_is(pre, rules[i].name)) continue;
        l->rules = &rules[i];
        return CAIRN_OK;
    }
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED, "%s: `tokenizer.ggml.pre` is \"%.*s\"", l->where,
                    STR_ARG(pre));
}

static cairn_status find_model(loader *l)
{
    cairn_str model = meta_str(l->v, "tokenizer.ggml.model", (cairn_str){0});

    if (str_is(model, "llama")) return CAIRN_OK;
    if (str_is(model, "gpt2")) return find_rules(l);
    if (str_is(model, "gemma4")) {
        l->rules = &gemma4;
        return CAIRN_OK;
    }
    if (model.len == 0)
        return diag_set(l->dg, CAIRN_E_NOTFOUND, "%s: no `tokenizer.ggml.model`", l->where);
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED, "%s: `tokenizer.ggml.model` is \"%.*s\"", l->where,
                    STR_ARG(model));
}

static cairn_status build(loader *l)
{
    TRY(find_model(l));
    TRY(array(l, "tokenizer.ggml.tokens", true, &l->tokens));
    TRY(array(l, "tokenizer.ggml.token_type", false, &l->types));
    if (l->tokens.u.n == 0 || l->tokens.u.n > TOK_MAX_VOCAB)
        return diag_set(l->dg, CAIRN_E_CORRUPT,
                        "%s: `tokenizer.ggml.tokens` has %zu, expected 1 … %d", l->where,
                        l->tokens.u.n, TOK_MAX_VOCAB);
    TRY(tok_new((int32_t)l->tokens.u.n, &l->t, l->dg));
    l->t->byte_level = l->t->dec.byte_level = l->rules && !l->rules->spaced;
    TRY(read_pieces(l));
    TRY(tok_index(l->t, l->where, l->dg));
    TRY(tok_index_added(l->t, l->dg));
    TRY(l->rules ? read_bpe(l) : read_spm(l));
    return read_specials(l);
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
