/* Owns the older pairs of files that a tokenizer.json replaces: vocab.json with merges.txt (byte-level
   BPE) and BERT's vocab.txt.  Each is written out as the tokenizer.json that transformers would make
   of it, and read as that: one reader, one set of rules. */
#include "text/rules.h"
#include "text/tok_config.h"

/* {"0": {"content": …}} as the list that tokenizer.json has. */
static void put_added(json_writer *w, json_val config)
{
    json_iter it = json_each(json_get(config, "added_tokens_decoder"));
    static const char *const flags[] = {"lstrip", "rstrip", "single_word", "normalized", "special"};
    cairn_str key;
    json_val v;

    json_w_key(w, "added_tokens");
    json_w_arr(w);
    while (json_next_member(&it, &key, &v)) {
        int64_t id = 0;
        for (size_t i = 0; i < key.len && i < 9 && str_is_digit(key.ptr[i]); i++)
            id = id * 10 + (key.ptr[i] - '0');
        json_w_obj(w);
        json_w_kint(w, "id", id);
        json_w_kstr(w, "content", json_str(json_get(v, "content")));
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
            json_w_kbool(w, flags[i], json_bool(json_get(v, flags[i]), false));
        json_w_end_obj(w);
    }
    json_w_end_arr(w);
}

static void put_type(json_writer *w, const char *key, const char *type)
{
    json_w_key(w, key);
    json_w_obj(w);
    json_w_kstr(w, "type", str_of(type));
}

static void put_merges(json_writer *w, cairn_str text)
{
    json_w_key(w, "merges");
    json_w_arr(w);
    for (size_t at = 0; at < text.len;) {
        size_t end = str_find(text, STR_LIT("\n"), at);
        if (end == SIZE_MAX) end = text.len;
        cairn_str line = str_trim(str_sub(text, at, end - at));
        if (line.len && !(at == 0 && str_starts(line, STR_LIT("#version")))) json_w_str(w, line);
        at = end + 1;
    }
    json_w_end_arr(w);
}

/* What each ByteLevel says. */
static void put_space(json_writer *w, bool prefix)
{
    json_w_kbool(w, "add_prefix_space", prefix);
    json_w_kbool(w, "trim_offsets", true);
}

/* GPT-2's split, or that of the one family that ships such files with another. */
static void put_byte_level(json_writer *w, json_val config)
{
    bool qwen = str_starts(json_str(json_get(config, "tokenizer_class")), STR_LIT("Qwen2"));

    if (qwen) {
        put_type(w, "normalizer", "NFC");
        json_w_end_obj(w);
    }
    put_type(w, "pre_tokenizer", "Sequence");
    json_w_key(w, "pretokenizers");
    json_w_arr(w);
    if (qwen) {
        json_w_obj(w);
        json_w_kstr(w, "type", STR_LIT("Split"));
        json_w_kstr(w, "behavior", STR_LIT("Isolated"));
        json_w_kbool(w, "invert", false);
        json_w_key(w, "pattern");
        json_w_obj(w);
        json_w_kstr(w, "Regex", STR_LIT(RULE_QWEN2));
        json_w_end_obj(w);
        json_w_end_obj(w);
    }
    json_w_obj(w);
    json_w_kstr(w, "type", STR_LIT("ByteLevel"));
    put_space(w, json_bool(json_get(config, "add_prefix_space"), false));
    json_w_kbool(w, "use_regex", !qwen);
    json_w_end_obj(w);
    json_w_end_arr(w);
    json_w_end_obj(w);
    put_type(w, "decoder", "ByteLevel");
    put_space(w, false);
    json_w_end_obj(w);
}

/* Opens what is written in `text`. */
static cairn_status open_written(buf *text, cairn_str config, const char *where, tok **out,
                                 cairn_diag *dg)
{
    TRY(buf_status(text));
    return tok_open_hf(buf_view(text), config, where, out, dg);
}

cairn_status tok_open_merges(cairn_str vocab, cairn_str merges, cairn_str config, const char *where,
                             tok **out, cairn_diag *dg)
{
    json_doc *pieces = NULL, *doc = NULL;
    buf text;
    json_writer w;
    cairn_status st = json_parse(vocab, &pieces, dg);

    if (st != CAIRN_OK) return diag_prefix(dg, st, "%s", where);
    buf_init(&text, MEM_TEXT);
    w = json_write(&text);
    TRY_GOTO(config_parse(config, where, &doc, dg), out);
    json_val c = doc ? json_root(doc) : (json_val){0};
    json_w_obj(&w);
    put_added(&w, c);
    put_byte_level(&w, c);
    put_type(&w, "model", "BPE");
    json_w_key(&w, "vocab");
    json_w_val(&w, json_root(pieces));
    put_merges(&w, merges);
    json_w_end_obj(&w);
    json_w_end_obj(&w);
    st = open_written(&text, config, where, out, dg);
out:
    json_free(pieces);
    json_free(doc);
    buf_deinit(&text);
    return st;
}

/* One piece a line, its id the line's number; *cls and *sep are those of the named pieces. */
static void put_lines(json_writer *w, cairn_str text, int64_t *cls, int64_t *sep)
{
    int64_t id = 0;

    json_w_key(w, "vocab");
    json_w_obj(w);
    for (size_t at = 0; at < text.len; id++) {
        size_t end = str_find(text, STR_LIT("\n"), at);
        if (end == SIZE_MAX) end = text.len;
        cairn_str line = str_sub(text, at, end - at);
        if (str_ends(line, STR_LIT("\r"))) line.len--;
        if (str_is(line, "[CLS]")) *cls = id;
        if (str_is(line, "[SEP]")) *sep = id;
        json_w_key_str(w, line);
        json_w_int(w, id);
        at = end + 1;
    }
    json_w_end_obj(w);
}

static void put_bert(json_writer *w, json_val config, int64_t cls, int64_t sep)
{
    bool lower = json_bool(json_get(config, "do_lower_case"), true);
    json_val accents = json_get(config, "strip_accents");

    put_type(w, "normalizer", "BertNormalizer");
    json_w_kbool(w, "lowercase", lower);
    json_w_kbool(w, "clean_text", true);
    json_w_kbool(w, "handle_chinese_chars",
                 json_bool(json_get(config, "tokenize_chinese_chars"), true));
    json_w_kbool(w, "strip_accents", json_bool(accents, lower));
    json_w_end_obj(w);
    put_type(w, "pre_tokenizer", "BertPreTokenizer");
    json_w_end_obj(w);
    put_type(w, "decoder", "WordPiece");
    json_w_kstr(w, "prefix", STR_LIT("##"));
    json_w_kbool(w, "cleanup", true);
    json_w_end_obj(w);
    if (cls < 0 || sep < 0) return;
    put_type(w, "post_processor", "BertProcessing");
    const int64_t id[] = {sep, cls};
    for (int i = 0; i < 2; i++) {
        json_w_key(w, i ? "cls" : "sep");
        json_w_arr(w);
        json_w_str(w, i ? STR_LIT("[CLS]") : STR_LIT("[SEP]"));
        json_w_int(w, id[i]);
        json_w_end_arr(w);
    }
    json_w_end_obj(w);
}

cairn_status tok_open_wordpiece(cairn_str vocab, cairn_str config, const char *where, tok **out,
                                cairn_diag *dg)
{
    json_doc *doc = NULL;
    int64_t cls = -1, sep = -1;
    buf text;

    TRY(config_parse(config, where, &doc, dg));
    buf_init(&text, MEM_TEXT);
    json_writer w = json_write(&text);
    json_val c = doc ? json_root(doc) : (json_val){0};
    json_w_obj(&w);
    put_added(&w, c);
    put_type(&w, "model", "WordPiece");
    json_w_kstr(&w, "unk_token", STR_LIT("[UNK]"));
    json_w_kstr(&w, "continuing_subword_prefix", STR_LIT("##"));
    json_w_kint(&w, "max_input_chars_per_word", 100);
    put_lines(&w, vocab, &cls, &sep);
    json_w_end_obj(&w);
    put_bert(&w, c, cls, sep);
    json_w_end_obj(&w);
    cairn_status st = open_written(&text, config, where, out, dg);
    json_free(doc);
    buf_deinit(&text);
    return st;
}
