/* Owns the reading of tokenizer.json's normalizer and pre_tokenizer objects into flat lists of steps.
   A kind that is not known is an error that names it: a tokenizer that is nearly right is wrong. */
#include "text/rules.h"
#include "text/tok_hf.h"
#include "text/tok_priv.h"

typedef struct loader {
    tok *t;
    const char *where;
    cairn_diag *dg;
} loader;

cairn_status hf_pattern(tok *t, json_val v, const char *where, cairn_str *lit, regex **re,
                        cairn_str *pattern, cairn_diag *dg)
{
    json_val p = json_get(v, "pattern"), s = json_get(p, "String"), r = json_get(p, "Regex");

    *re = NULL;
    *lit = (cairn_str){0};
    *pattern = (cairn_str){0};
    /* An empty text matches between characters, as an empty expression does. */
    if (json_typeof(s) == JSON_STR && json_str(s).len == 0) {
        *pattern = STR_LIT("");
        return regex_new(*pattern, where, re, dg);
    }
    if (json_typeof(s) == JSON_STR) {
        *lit = tok_copy(t, json_str(s));
        return lit->ptr ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "no memory for a pattern");
    }
    if (json_typeof(r) != JSON_STR)
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: a pattern of another kind; expected String or Regex", where);
    *pattern = json_str(r);
    return regex_new(*pattern, where, re, dg);
}

cairn_status hf_content(tok *t, json_val v, const char *key, const char *where, cairn_str *out,
                        cairn_diag *dg)
{
    const hf_obj o = {v, where, "a step", dg};
    if (json_typeof(json_get(v, key)) != JSON_STR)
        return hf_wrong(&o, key, json_get(v, key), "a text");
    const cairn_str s = json_str(json_get(v, key));
    if (s.len > TOK_MAX_CONTENT)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "%s: `%s` of a step: found %zu bytes; expected at most %d", where, key,
                        s.len, TOK_MAX_CONTENT);
    *out = tok_copy(t, s);
    return out->ptr ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static cairn_status no_memory(cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static cairn_status add_norm(loader *l, norm_step s)
{
    if (l->t->n_norm == TOK_MAX_STEPS) {
        regex_free(s.re);
        return diag_set(l->dg, CAIRN_E_LIMIT, "%s: found more normalizers than expected, %d",
                        l->where, TOK_MAX_STEPS);
    }
    l->t->norm[l->t->n_norm++] = s;
    return norm_prepare(&l->t->norm[l->t->n_norm - 1], &l->t->mem) == CAIRN_OK ? CAIRN_OK
                                                                               : no_memory(l->dg);
}

static cairn_status norm_bert(loader *l, json_val v)
{
    bool lower = json_bool(json_get(v, "lowercase"), true);
    norm_step s = {.kind = NORM_BERT,
                   .clean = json_bool(json_get(v, "clean_text"), true),
                   .chinese = json_bool(json_get(v, "handle_chinese_chars"), true)};

    TRY(add_norm(l, s));
    if (json_bool(json_get(v, "strip_accents"), lower)) {
        TRY(add_norm(l, (norm_step){.kind = NORM_NFD}));
        TRY(add_norm(l, (norm_step){.kind = NORM_STRIP_ACCENTS, .bert = true}));
    }
    return lower ? add_norm(l, (norm_step){.kind = NORM_LOWERCASE}) : CAIRN_OK;
}

static cairn_status norm_map(loader *l, json_val v)
{
    norm_step s = {.kind = NORM_PRECOMPILED};
    const json_val chars = json_get(v, "precompiled_charsmap");
    const cairn_str spelt = json_str(chars);
    cairn_status st;

    if (spelt.len == 0)
        return diag_set(l->dg, CAIRN_E_CORRUPT,
                        "%s: precompiled_charsmap: found %s; expected a map in base64", l->where,
                        json_typeof(chars) == JSON_NONE  ? "nothing"
                        : json_typeof(chars) == JSON_STR ? "an empty text"
                                                         : json_type_name(json_typeof(chars)));
    char *bytes = mem_alloc(spelt.len + 1, MEM_TEXT);
    if (!bytes) return no_memory(l->dg);
    size_t n = tok_base64(spelt, bytes);
    if (n == SIZE_MAX)
        st =
            diag_set(l->dg, CAIRN_E_CORRUPT,
                     "%s: precompiled_charsmap: found other characters; expected base64", l->where);
    else
        st = charsmap_init(&s.map, (cairn_str){bytes, n}, &l->t->mem, l->where, l->dg);
    mem_free(bytes);
    return st == CAIRN_OK ? add_norm(l, s) : st;
}

static cairn_status one_norm(void *ctx, json_val v, cairn_str type)
{
    loader *l = ctx;
    static const struct {
        const char *name;
        norm_kind kind;
    } plain[] = {{"NFC", NORM_NFC},
                 {"NFD", NORM_NFD},
                 {"NFKC", NORM_NFKC},
                 {"NFKD", NORM_NFKD},
                 {"Lowercase", NORM_LOWERCASE},
                 {"StripAccents", NORM_STRIP_ACCENTS},
                 {"Nmt", NORM_NMT},
                 {"ByteLevel", NORM_BYTE_LEVEL}};
    norm_step s = {.kind = NORM_PREPEND};
    cairn_str pattern;

    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (str_is(type, plain[i].name)) return add_norm(l, (norm_step){.kind = plain[i].kind});
    if (str_is(type, "BertNormalizer")) return norm_bert(l, v);
    if (str_is(type, "Precompiled")) return norm_map(l, v);
    if (str_is(type, "Strip")) {
        s.kind = NORM_STRIP;
        s.left = json_bool(json_get(v, "strip_left"), true);
        s.right = json_bool(json_get(v, "strip_right"), true);
        return add_norm(l, s);
    }
    if (str_is(type, "Prepend")) {
        TRY(hf_content(l->t, v, "prepend", l->where, &s.to, l->dg));
        return add_norm(l, s);
    }
    if (str_is(type, "Replace")) {
        s.kind = NORM_REPLACE;
        TRY(hf_content(l->t, v, "content", l->where, &s.to, l->dg));
        TRY(hf_pattern(l->t, v, l->where, &s.from, &s.re, &pattern, l->dg));
        return add_norm(l, s);
    }
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: normalizer of type \"%.*s\"; expected one that is known", l->where,
                    STR_ARG(type));
}

cairn_status hf_normalizer(tok *t, json_val v, const char *where, cairn_diag *dg)
{
    const hf_obj o = {v, where, "normalizer", dg};
    loader l = {t, where, dg};

    t->norm = arena_calloc(&t->mem, TOK_MAX_STEPS, sizeof *t->norm);
    if (!t->norm) return no_memory(dg);
    return hf_is_none(v) ? CAIRN_OK : hf_steps(&o, "normalizers", one_norm, &l);
}

static cairn_status add_pre(loader *l, pre_step s)
{
    if (l->t->n_pre == TOK_MAX_STEPS) {
        regex_free(s.re);
        return diag_set(l->dg, CAIRN_E_LIMIT, "%s: found more pre-tokenizers than expected, %d",
                        l->where, TOK_MAX_STEPS);
    }
    l->t->pre[l->t->n_pre++] = s;
    return CAIRN_OK;
}

static cairn_status add_pattern(loader *l, const char *pattern, pre_behavior b, bool invert)
{
    pre_step s = {.behavior = b, .invert = invert};

    TRY(pre_of_pattern(str_of(pattern), l->where, &s, l->dg));
    return add_pre(l, s);
}

static cairn_status behavior_of(loader *l, json_val v, pre_behavior otherwise, pre_behavior *out)
{
    static const char *const name[] = {"Removed", "Isolated", "MergedWithPrevious",
                                       "MergedWithNext", "Contiguous"};
    json_val b = json_get(v, "behavior");

    *out = otherwise;
    if (json_typeof(b) == JSON_NONE) return CAIRN_OK;
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        if (!str_is(json_str(b), name[i])) continue;
        *out = (pre_behavior)i;
        return CAIRN_OK;
    }
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: split behavior \"%.*s\"; expected one that is known", l->where,
                    STR_ARG(json_str(b)));
}

static cairn_status pre_split(loader *l, json_val v)
{
    pre_step s = {.kind = PRE_LITERAL, .invert = json_bool(json_get(v, "invert"), false)};
    cairn_str pattern;

    TRY(behavior_of(l, v, PRE_ISOLATED, &s.behavior));
    TRY(hf_pattern(l->t, v, l->where, &s.lit, &s.re, &pattern, l->dg));
    if (s.re) { /* it compiles; perhaps it is not needed */
        regex_free(s.re);
        s.re = NULL;
        TRY(pre_of_pattern(pattern, l->where, &s, l->dg));
    }
    return add_pre(l, s);
}

static cairn_status pre_byte_level(loader *l, json_val v)
{
    if (json_bool(json_get(v, "add_prefix_space"), true))
        TRY(add_pre(l, (pre_step){.kind = PRE_PREFIX}));
    if (json_bool(json_get(v, "use_regex"), true))
        TRY(add_pattern(l, RULE_GPT2, PRE_ISOLATED, false));
    return add_pre(l, (pre_step){.kind = PRE_BYTES});
}

static cairn_status pre_metaspace(loader *l, json_val v)
{
    pre_step s = {.kind = PRE_METASPACE, .behavior = PRE_MERGED_WITH_NEXT};
    const cairn_str scheme = json_str(json_get(v, "prepend_scheme"));

    s.lit = tok_copy(l->t, json_str(json_get(v, "replacement")));
    s.split = json_bool(json_get(v, "split"), true);
    if (!s.lit.ptr) return no_memory(l->dg);
    if (str_is(scheme, "first")) s.scheme = PRE_FIRST;
    if (str_is(scheme, "never")) s.scheme = PRE_NEVER;
    return add_pre(l, s);
}

static cairn_status one_pre(void *ctx, json_val v, cairn_str type)
{
    loader *l = ctx;
    pre_step s = {.kind = PRE_DIGIT, .behavior = PRE_CONTIGUOUS};

    if (str_is(type, "ByteLevel")) return pre_byte_level(l, v);
    if (str_is(type, "Split")) return pre_split(l, v);
    if (str_is(type, "Metaspace")) return pre_metaspace(l, v);
    if (str_is(type, "Digits")) {
        if (json_bool(json_get(v, "individual_digits"), false)) s.behavior = PRE_ISOLATED;
        return add_pre(l, s);
    }
    if (str_is(type, "Punctuation")) {
        s.kind = PRE_PUNCTUATION;
        TRY(behavior_of(l, v, PRE_ISOLATED, &s.behavior));
        return add_pre(l, s);
    }
    s.behavior = PRE_REMOVED;
    if (str_is(type, "Whitespace")) {
        s.kind = PRE_SCAN;
        s.scan = &scan_whitespace;
        s.invert = true;
        return add_pre(l, s);
    }
    s.kind = PRE_SPACE;
    if (str_is(type, "WhitespaceSplit")) return add_pre(l, s);
    if (str_is(type, "BertPreTokenizer")) {
        TRY(add_pre(l, s));
        return add_pre(l, (pre_step){.kind = PRE_PUNCTUATION, .behavior = PRE_ISOLATED});
    }
    if (str_is(type, "UnicodeScripts")) {
        s.kind = PRE_SCRIPTS;
        s.behavior = PRE_ISOLATED;
        return add_pre(l, s);
    }
    if (str_is(type, "FixedLength")) {
        int64_t n = 5;
        TRY(json_want_int(v, "length", 1, TOK_MAX_TEXT, &n, l->dg));
        s.kind = PRE_FIXED;
        s.behavior = PRE_ISOLATED;
        s.count = (size_t)n;
        return add_pre(l, s);
    }
    if (str_is(type, "CharDelimiterSplit")) {
        s.kind = PRE_LITERAL;
        s.lit = tok_copy(l->t, json_str(json_get(v, "delimiter")));
        return s.lit.ptr ? add_pre(l, s) : no_memory(l->dg);
    }
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: pre_tokenizer of type \"%.*s\"; expected one that is known", l->where,
                    STR_ARG(type));
}

cairn_status hf_pre_tokenizer(tok *t, json_val v, const char *where, cairn_diag *dg)
{
    const hf_obj o = {v, where, "pre_tokenizer", dg};
    loader l = {t, where, dg};

    t->pre = arena_calloc(&t->mem, TOK_MAX_STEPS, sizeof *t->pre);
    if (!t->pre) return no_memory(dg);
    if (hf_is_none(v)) return CAIRN_OK;
    TRY(hf_steps(&o, "pretokenizers", one_pre, &l));
    pre_join(t->pre, &t->n_pre);
    return CAIRN_OK;
}
