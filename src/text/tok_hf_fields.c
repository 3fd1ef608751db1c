/* The members that each object of a tokenizer.json must and may have, as the `tokenizers` package reads
   them: what it refuses is refused here, by the member's name, though a value would be at hand.  Members
   that nobody here uses are checked too: a file that is wrong in one is not what it seems. */
#include "text/tok_hf.h"

#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "base/utf8.h"

/* What a member must be. */
typedef enum kind {
    BOOL,
    TEXT,
    CHARACTER, /* a text of one */
    COUNT,     /* a whole number of 0 or more */
    WORD,      /* one of `words` */
    STRATEGY   /* "BatchLongest" or {"Fixed": n} */
} kind;

typedef enum need {
    NEEDED,   /* and not null */
    LEFT_OUT, /* or there, and not null */
    NULL_TOO
} need;

typedef struct field {
    const char *parts; /* paths of objects, in words */
    const char *type;  /* of the object; NULL: any */
    const char *key;
    kind kind;
    need need;
    const char *words;
} field;

#define STEPS "pre_tokenizer decoder post_processor"
static const field fields[] = {
    {"normalizer", "BertNormalizer", "clean_text", BOOL, NEEDED, NULL},
    {"normalizer", "BertNormalizer", "handle_chinese_chars", BOOL, NEEDED, NULL},
    {"normalizer", "BertNormalizer", "strip_accents", BOOL, NULL_TOO, NULL},
    {"normalizer", "BertNormalizer", "lowercase", BOOL, NEEDED, NULL},
    {"normalizer", "Strip", "strip_left", BOOL, NEEDED, NULL},
    {"normalizer", "Strip", "strip_right", BOOL, NEEDED, NULL},
    {STEPS, "ByteLevel", "add_prefix_space", BOOL, NEEDED, NULL},
    {STEPS, "ByteLevel", "trim_offsets", BOOL, NEEDED, NULL},
    {STEPS, "ByteLevel", "use_regex", BOOL, LEFT_OUT, NULL},
    {STEPS, "Metaspace", "replacement", CHARACTER, NEEDED, NULL},
    {STEPS, "Metaspace", "prepend_scheme", WORD, LEFT_OUT, "always never first"},
    {STEPS, "Metaspace", "split", BOOL, NULL_TOO, NULL},
    {STEPS, "Metaspace", "add_prefix_space", BOOL, NULL_TOO, NULL},
    {"pre_tokenizer", "Split", "behavior", TEXT, NEEDED, NULL},
    {"pre_tokenizer", "Split", "invert", BOOL, NEEDED, NULL},
    {"pre_tokenizer", "Digits", "individual_digits", BOOL, NEEDED, NULL},
    {"pre_tokenizer", "FixedLength", "length", COUNT, LEFT_OUT, NULL},
    {"pre_tokenizer", "CharDelimiterSplit", "delimiter", CHARACTER, NEEDED, NULL},
    {"decoder", "WordPiece", "prefix", TEXT, NEEDED, NULL},
    {"decoder", "WordPiece", "cleanup", BOOL, NEEDED, NULL},
    {"decoder", "BPEDecoder", "suffix", TEXT, NEEDED, NULL},
    {"decoder", "CTC", "pad_token", TEXT, NEEDED, NULL},
    {"decoder", "CTC", "word_delimiter_token", TEXT, NEEDED, NULL},
    {"decoder", "CTC", "cleanup", BOOL, NEEDED, NULL},
    {"decoder", "Strip", "content", CHARACTER, NEEDED, NULL},
    {"decoder", "Strip", "start", COUNT, NEEDED, NULL},
    {"decoder", "Strip", "stop", COUNT, NEEDED, NULL},
    {"model", "WordLevel", "unk_token", TEXT, NEEDED, NULL},
    {"model", "WordPiece", "unk_token", TEXT, NEEDED, NULL},
    {"model", "WordPiece", "continuing_subword_prefix", TEXT, NEEDED, NULL},
    {"model", "WordPiece", "max_input_chars_per_word", COUNT, NEEDED, NULL},
    {"model", "Unigram", "byte_fallback", BOOL, LEFT_OUT, NULL},
    {"", NULL, "version", WORD, LEFT_OUT, "1.0"},
    {"truncation", NULL, "direction", WORD, LEFT_OUT, "Left Right"},
    {"truncation", NULL, "max_length", COUNT, NEEDED, NULL},
    {"truncation", NULL, "strategy", WORD, NEEDED, "LongestFirst OnlyFirst OnlySecond"},
    {"truncation", NULL, "stride", COUNT, NEEDED, NULL},
    {"padding", NULL, "strategy", STRATEGY, NEEDED, NULL},
    {"padding", NULL, "direction", WORD, NEEDED, "Left Right"},
    {"padding", NULL, "pad_to_multiple_of", COUNT, NULL_TOO, NULL},
    {"padding", NULL, "pad_id", COUNT, NEEDED, NULL},
    {"padding", NULL, "pad_type_id", COUNT, NEEDED, NULL},
    {"padding", NULL, "pad_token", TEXT, NEEDED, NULL},
};
#undef STEPS

/* `word` is one of those in `words`, which single spaces part. */
static bool among(const char *words, cairn_str word)
{
    for (const char *at = words, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, ' ');
        if (str_eq(word, (cairn_str){at, end ? (size_t)(end - at) : strlen(at)})) return true;
    }
    return false;
}

static bool is_character(json_val v)
{
    const cairn_str s = json_str(v);
    uint32_t cp;
    return s.len > 0 && utf8_decode(s.ptr, s.len, &cp) == (int)s.len;
}

static bool is_count(json_val v)
{
    return json_typeof(v) == JSON_UINT || (json_typeof(v) == JSON_INT && json_int(v, -1) >= 0);
}

static bool fits(const field *f, json_val v)
{
    switch (f->kind) {
    case BOOL:
        return json_typeof(v) == JSON_BOOL;
    case TEXT:
        return json_typeof(v) == JSON_STR;
    case CHARACTER:
        return is_character(v);
    case COUNT:
        return is_count(v);
    case WORD:
        return json_typeof(v) == JSON_STR && among(f->words, json_str(v));
    case STRATEGY:
        return str_is(json_str(v), "BatchLongest") ||
               (json_size(v) == 1 && is_count(json_get(v, "Fixed")));
    }
    return false;
}

static const char *expected(const field *f)
{
    static const char *const what[] = {[BOOL] = "true or false",
                                       [TEXT] = "a text",
                                       [CHARACTER] = "one character",
                                       [COUNT] = "a whole number of 0 or more",
                                       [STRATEGY] = "BatchLongest or {\"Fixed\": a number}"};
    return f->kind == WORD ? f->words : what[f->kind];
}

static cairn_status check_one(const hf_obj *o, const field *f)
{
    const json_val v = json_get(o->v, f->key);
    const json_type t = json_typeof(v);

    if (t == JSON_NONE && f->need != NEEDED) return CAIRN_OK;
    if (t == JSON_NULL && f->need == NULL_TOO) return CAIRN_OK;
    return fits(f, v) ? CAIRN_OK : hf_wrong(o, f->key, v, expected(f));
}

/* Files of before prepend_scheme say false where newer ones say never; those with both must agree. */
static cairn_status check_scheme(const hf_obj *o)
{
    const json_val scheme = json_get(o->v, "prepend_scheme");

    if (json_bool(json_get(o->v, "add_prefix_space"), true) || str_is(json_str(scheme), "never"))
        return CAIRN_OK;
    return hf_wrong(o, "prepend_scheme", scheme, "never, as add_prefix_space is false");
}

cairn_status hf_fields(const hf_obj *o, cairn_str type)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const field *f = &fields[i];
        if (f->type && !str_is(type, f->type)) continue;
        if (among(f->parts, str_of(o->path))) TRY(check_one(o, f));
    }
    return str_is(type, "Metaspace") ? check_scheme(o) : CAIRN_OK;
}

cairn_status hf_check_root(const hf_obj *root)
{
    static const char *const keys[] = {"truncation", "padding"};

    TRY(hf_fields(root, STR_LIT("")));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const hf_obj o = {json_get(root->v, keys[i]), root->where, keys[i], root->dg};
        if (hf_is_none(o.v)) continue;
        if (json_typeof(o.v) != JSON_OBJ) return hf_wrong(root, keys[i], o.v, "an object or null");
        TRY(hf_fields(&o, STR_LIT("")));
    }
    return CAIRN_OK;
}
