/* Owns the reading of tokenizer.json and tokenizer_config.json: vocabulary, added tokens, model and
   special tokens.  Everything from the file is checked: ids, sizes, references between its parts.  The
   added tokens are tok_hf_added.c's, the steps tok_hf_steps.c's, the decoder tok_hf_decoder.c's, the
   post-processor tok_hf_post.c's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tok_hf.h"
#include "text/tok_priv.h"
#include "text/uchar.h"

typedef struct loader {
    tok *t;
    const char *where;
    cairn_diag *dg;
    json_val root, model;
    hf_lists *lists; /* NULL: root has the pieces and merges too */
    bool unigram;
} loader;

static cairn_status bad(loader *l, const char *what)
{
    return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: %s", l->where, what);
}

static cairn_status no_memory(loader *l)
{
    return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static hf_obj part(const loader *l, json_val v, const char *path)
{
    return (hf_obj){v, l->where, path, l->dg};
}

/* The id of a piece; `name` is the piece, empty where there is none. */
static cairn_status raise(loader *l, const char *path, cairn_str name, json_val v, int64_t *most)
{
    const int64_t id = json_int(v, -1);
    char key[80], expected[40];

    if (id < 0 || id >= TOK_MAX_VOCAB) {
        const hf_obj o = part(l, l->root, path);
        (void)snprintf(key, sizeof key, name.len ? "\"%.*s\"" : "%.*s",
                       name.len ? (int)(name.len > 60 ? 60 : name.len) : 2,
                       name.len ? name.ptr : "id");
        (void)snprintf(expected, sizeof expected, "an id from 0 to %d", TOK_MAX_VOCAB - 1);
        return hf_wrong(&o, key, v, expected);
    }
    if (id > *most) *most = id;
    return CAIRN_OK;
}

static cairn_status count_added(loader *l, int64_t *most)
{
    const hf_obj root = part(l, l->root, ""), each = part(l, l->root, "added_tokens");
    json_val v, list = json_get(l->root, "added_tokens");
    json_iter it = json_each(list);

    if (json_typeof(list) == JSON_NONE) return CAIRN_OK;
    if (json_typeof(list) != JSON_ARR) return hf_wrong(&root, "added_tokens", list, "a list");
    for (size_t i = 0; json_next(&it, &v); i++) {
        if (json_typeof(v) != JSON_OBJ) return hf_wrong_at(&each, i, v, "an object");
        const json_val s = json_get(v, "content");
        if (json_typeof(s) != JSON_STR) return hf_wrong(&each, "content", s, "a text");
        TRY(raise(l, "added_tokens", (cairn_str){0}, json_get(v, "id"), most));
    }
    return CAIRN_OK;
}

static cairn_status count_ids(loader *l, int32_t *n)
{
    json_val v, vocab = json_get(l->model, "vocab");
    json_iter it = json_each(vocab);
    cairn_str key;
    int64_t most = -1;

    if (l->unigram) {
        size_t size = json_size(vocab);
        if (size > TOK_MAX_VOCAB)
            return diag_set(l->dg, CAIRN_E_LIMIT, "%s: model.vocab: found %zu; expected at most %d",
                            l->where, size, TOK_MAX_VOCAB);
        most = (int64_t)size - 1;
    } else if (l->lists) {
        most = (int64_t)l->lists->n_piece - 1;
    } else {
        while (json_next_member(&it, &key, &v)) TRY(raise(l, "model.vocab", key, v, &most));
    }
    TRY(count_added(l, &most));
    if (most < 0) return bad(l, "model.vocab: found no piece; expected some");
    *n = (int32_t)most + 1;
    return CAIRN_OK;
}

static cairn_status set_piece(loader *l, int32_t id, cairn_str text)
{
    l->t->text[id] = tok_copy(l->t, text);
    l->t->flag[id] |= TOK_F_USED;
    return l->t->text[id].ptr ? CAIRN_OK : no_memory(l);
}

/* The same from the lists, whose texts stay. */
static void list_vocab(loader *l)
{
    const hf_piece *p = (const hf_piece *)(const void *)l->lists->piece.ptr;
    tok *t = l->t;

    for (uint32_t i = 0; i < l->lists->n_piece; i++) {
        if (!p[i].at) continue;
        t->text[i] = hf_lists_text(l->lists, &p[i]);
        t->flag[i] = TOK_F_USED;
    }
    t->texts = l->lists->texts;
    l->lists->texts = NULL;
    /* At once: no character has a NUL inside. */
    t->are_utf8 = json_utf8_valid((cairn_str){t->texts, l->lists->n_texts});
}

static cairn_status read_vocab(loader *l)
{
    json_val v, vocab = json_get(l->model, "vocab");
    json_iter it = json_each(vocab);
    cairn_str key;
    int32_t id = 0;

    if (l->lists) {
        list_vocab(l);
        return CAIRN_OK;
    }
    if (!l->unigram) {
        while (json_next_member(&it, &key, &v)) {
            id = (int32_t)json_int(v, 0);
            /* The reference's own answer then differs from run to run. */
            if (l->t->flag[id] & TOK_F_USED)
                return diag_set(l->dg, CAIRN_E_CORRUPT,
                                "%s: model.vocab: found \"%.*s\" and \"%.*s\" with id %d; expected "
                                "an id for each",
                                l->where, STR_ARG(l->t->text[id]), STR_ARG(key), id);
            TRY(set_piece(l, id, key));
        }
        return CAIRN_OK;
    }
    l->t->score = arena_calloc(&l->t->mem, (size_t)l->t->n, sizeof *l->t->score);
    if (!l->t->score) return no_memory(l);
    for (; json_next(&it, &v); id++) {
        const hf_obj o = part(l, vocab, "model.vocab");
        const double score = json_num(json_at(v, 1), (double)NAN);
        if (json_size(v) != 2 || json_typeof(json_at(v, 0)) != JSON_STR || isnan(score))
            return hf_wrong_at(&o, (size_t)id, v, "[piece, score]");
        l->t->score[id] = score;
        TRY(set_piece(l, id, json_str(json_at(v, 0))));
    }
    return CAIRN_OK;
}

static cairn_status merge_of(loader *l, json_val v, size_t index, cairn_str side[2])
{
    const hf_obj o = part(l, v, "model.merges");
    cairn_str s = json_str(v);

    if (json_typeof(v) == JSON_ARR) {
        json_iter it = json_each(v);
        json_val a = {0}, b = {0}, more;
        json_next(&it, &a);
        json_next(&it, &b);
        if (json_typeof(a) != JSON_STR || json_typeof(b) != JSON_STR || json_next(&it, &more))
            return hf_wrong_at(&o, index, v, "two pieces");
        side[0] = json_str(a);
        side[1] = json_str(b);
        return CAIRN_OK;
    }
    size_t cut = str_find(s, STR_LIT(" "), 0);
    if (cut == SIZE_MAX || str_find(s, STR_LIT(" "), cut + 1) != SIZE_MAX)
        return hf_wrong_at(&o, index, v, "two pieces");
    side[0] = str_sub(s, 0, cut);
    side[1] = str_sub(s, cut + 1, s.len - cut - 1);
    return CAIRN_OK;
}

static cairn_status read_merges(loader *l, json_val merges)
{
    json_iter it = json_each(merges);
    json_val v;
    cairn_str batch[2 * BPE_BATCH];
    size_t n = 0;

    while (json_next(&it, &v)) {
        TRY(merge_of(l, v, bpe_n_merge(&l->t->bpe) + n, &batch[2 * n]));
        if (++n < BPE_BATCH) continue;
        TRY(bpe_add_merges(l->t, batch, n, l->where, "model.merges", l->dg));
        n = 0;
    }
    return bpe_add_merges(l->t, batch, n, l->where, "model.merges", l->dg);
}

/* In the byte-level alphabet, where each is one, a piece is what it stands for, and no merge is of others: such
   a file is the parser's to refuse.  Nor were the affixes known when the merges were read. */
static cairn_status list_merges(loader *l)
{
    const tok *t = l->t;
    const bpe_merge *m = (const bpe_merge *)(const void *)t->bpe.list.ptr;
    const size_t n = bpe_n_merge(&t->bpe);

    if (t->bpe.prefix.len) return CAIRN_E_UNSUPPORTED;
    for (size_t i = 0; i < n && t->byte_level; i++)
        if ((t->flag[m[i].l] | t->flag[m[i].r] | t->flag[m[i].into]) & TOK_F_UNREACHABLE)
            return CAIRN_E_UNSUPPORTED;
    return bpe_add_lists(l->t, l->lists, l->dg);
}

static cairn_status read_bpe(loader *l)
{
    tok *t = l->t;
    const hf_obj o = part(l, l->model, "model");
    cairn_str prefix = STR_LIT(""), suffix = STR_LIT("");
    json_val merges;

    TRY(hf_list(&o, "merges", &merges));
    size_t n = l->lists ? l->lists->merge.len / sizeof(bpe_merge) : json_size(merges);
    TRY(hf_bool(&o, "byte_fallback", &t->bpe.byte_fallback));
    TRY(hf_bool(&o, "fuse_unk", &t->bpe.fuse_unk));
    TRY(hf_bool(&o, "ignore_merges", &t->bpe.ignore_merges));
    TRY(hf_text(&o, "continuing_subword_prefix", &prefix));
    TRY(hf_text(&o, "end_of_word_suffix", &suffix));
    t->bpe.prefix = tok_copy(t, prefix);
    t->bpe.suffix = tok_copy(t, suffix);
    if (!t->bpe.prefix.ptr || !t->bpe.suffix.ptr) return no_memory(l);
    if (json_num(json_get(l->model, "dropout"), 0) != 0)
        return diag_set(l->dg, CAIRN_E_UNSUPPORTED, "%s: BPE with dropout; expected none",
                        l->where);
    if (l->lists) {
        t->bpe.list = l->lists->merge;
        buf_init(&l->lists->merge, MEM_TEXT);
    }
    TRY(bpe_init(t, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n, l->dg));
    TRY(l->lists ? list_merges(l) : read_merges(l, merges));
    t->word = bpe_word;
    return bpe_finish(t, l->dg);
}

static cairn_status read_wordpiece(loader *l)
{
    tok *t = l->t;
    int64_t most = 100;
    const hf_obj o = part(l, l->model, "model");
    cairn_str prefix = STR_LIT("##");

    TRY(hf_text(&o, "continuing_subword_prefix", &prefix));
    TRY(json_want_int(l->model, "max_input_chars_per_word", 0, 1 << 20, &most, l->dg));
    t->max_word_chars = (size_t)most;
    t->bpe.prefix = tok_copy(t, prefix);
    t->word = wordpiece_word;
    return t->bpe.prefix.ptr ? CAIRN_OK : no_memory(l);
}

/* Old files do not name it. */
static cairn_status model_type(const loader *l, cairn_str *type)
{
    const hf_obj o = part(l, l->model, "model");

    if (json_typeof(json_get(l->model, "type")) != JSON_NONE) return hf_type(&o, type);
    if (json_typeof(json_get(l->model, "merges")) == JSON_ARR)
        *type = STR_LIT("BPE");
    else
        *type = json_typeof(json_get(l->model, "vocab")) == JSON_ARR ? STR_LIT("Unigram")
                                                                     : STR_LIT("WordPiece");
    return CAIRN_OK;
}

/* The reference finds an unknown token that is none when it meets unknown text, of which there is none
   where every byte is a piece. */
static cairn_status find_unk(loader *l)
{
    const hf_obj o = part(l, l->model, "model");
    cairn_str unk = STR_LIT("");

    TRY(hf_text(&o, "unk_token", &unk));
    if (unk.len) l->t->unk = tok_find(l->t, unk);
    if (unk.len && l->t->unk < 0 && !l->t->byte_level)
        return hf_wrong(&o, "unk_token", json_get(l->model, "unk_token"),
                        "a token of the vocabulary");
    l->t->special.unk = l->t->unk;
    return CAIRN_OK;
}

static cairn_status read_model(loader *l, cairn_str type)
{
    tok *t = l->t;
    const hf_obj o = part(l, l->model, "model");

    TRY(find_unk(l));
    if (str_is(type, "BPE")) return read_bpe(l);
    if (str_is(type, "WordPiece")) return read_wordpiece(l);
    if (l->unigram) {
        int64_t id = -1;
        TRY(json_want_int(l->model, "unk_id", 0, t->n - 1, &id, l->dg));
        t->unk = t->special.unk = (int32_t)id;
        TRY(hf_bool(&o, "byte_fallback", &t->bpe.byte_fallback));
        t->word = unigram_word;
        return unigram_finish(t, l->where, l->dg);
    }
    t->word = wordlevel_word;
    return CAIRN_OK;
}

/* "<s>" or {"content": "<s>", …} */
static int32_t named(const tok *t, json_val config, const char *key)
{
    json_val v = json_get(config, key);
    cairn_str s = json_typeof(v) == JSON_OBJ ? json_str(json_get(v, "content")) : json_str(v);

    return s.len ? tok_find(t, s) : -1;
}

static bool among(const int32_t *ids, uint32_t n, int32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static void read_config(tok *t, json_val config)
{
    int32_t unk = named(t, config, "unk_token");

    t->special.bos = named(t, config, "bos_token");
    t->special.eos = named(t, config, "eos_token");
    t->special.pad = named(t, config, "pad_token");
    if (unk >= 0) t->special.unk = unk;
    t->special.add_bos = t->special.bos >= 0 && among(t->before, t->n_before, t->special.bos);
    t->special.add_eos = t->special.eos >= 0 && among(t->after, t->n_after, t->special.eos);
    if (t->special.eos >= 0) t->flag[t->special.eos] |= TOK_F_EOS;
}

/* Is every byte a piece, and no other text put to the pieces?  Then words need not be rewritten in the
   byte-level alphabet: the pieces are bytes. */
static bool has_all_bytes(loader *l)
{
    tok *t = l->t;
    bool has[256] = {false};
    int n = 0;

    if (json_str(json_get(l->model, "continuing_subword_prefix")).len ||
        json_str(json_get(l->model, "end_of_word_suffix")).len)
        return false;
    for (int32_t id = 0; id < t->n; id++) {
        uint32_t cp;
        cairn_str s = t->text[id];
        if (s.len == 0 || s.len > 2 || (t->flag[id] & TOK_F_ADDED) || !utf8_valid(s)) continue;
        int byte = uc_next(s.ptr, &cp) == s.len ? bytelevel_byte(cp) : -1;
        if (byte < 0 || has[byte]) continue;
        has[byte] = true;
        n++;
    }
    return n == 256;
}

static cairn_status known_model(loader *l, cairn_str type)
{
    static const char *const known[] = {"BPE", "WordPiece", "WordLevel", "Unigram"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(type, known[i])) return CAIRN_OK;
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: model of type \"%.*s\"; expected BPE, Unigram, WordPiece or WordLevel",
                    l->where, STR_ARG(type));
}

/* The parser, which checks their bytes, must see merges that no model looks up. */
static bool unread_merges(const loader *l, cairn_str type)
{
    return l->lists && l->lists->merge.len && !str_is(type, "BPE");
}

static cairn_status build(loader *l, json_val config)
{
    tok *t;
    int32_t n = 0;
    const hf_obj root = part(l, l->root, ""), model = part(l, l->model, "model");
    cairn_str type = STR_LIT("");

    if (json_typeof(l->root) != JSON_OBJ)
        return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: found %s; expected an object", l->where,
                        json_type_name(json_typeof(l->root)));
    if (json_typeof(l->model) != JSON_OBJ) return hf_wrong(&root, "model", l->model, "an object");
    TRY(model_type(l, &type));
    TRY(known_model(l, type));
    TRY(hf_fields(&model, type));
    TRY(hf_check_root(&root));
    if (unread_merges(l, type)) return CAIRN_E_UNSUPPORTED;
    l->unigram = str_is(type, "Unigram");
    const json_val vocab = json_get(l->model, "vocab");
    if (json_typeof(vocab) != (l->unigram ? JSON_ARR : JSON_OBJ))
        return hf_wrong(&model, "vocab", vocab, l->unigram ? "a list of pairs" : "pieces and ids");
    TRY(count_ids(l, &n));
    TRY(tok_new(n, &l->t, l->dg));
    t = l->t;
    TRY(read_vocab(l));
    TRY(hf_added_read(t, json_get(l->root, "added_tokens"), l->where, l->dg));
    TRY(hf_normalizer(t, json_get(l->root, "normalizer"), l->where, l->dg));
    TRY(hf_pre_tokenizer(t, json_get(l->root, "pre_tokenizer"), l->where, l->dg));
    TRY(hf_added_show(t, l->dg));
    TRY(hf_decoder(t, json_get(l->root, "decoder"), l->where, l->dg));
    if (str_is(type, "BPE") && t->n_pre && t->pre[t->n_pre - 1].kind == PRE_BYTES &&
        has_all_bytes(l)) {
        t->byte_level = true; /* the model's keys become bytes instead of the text characters */
        t->n_pre--;
    }
    if (l->lists && !t->byte_level) { /* the keys are the pieces as spelt */
        map_deinit(&t->by_key);
        t->by_key = l->lists->by_text;
        map_init(&l->lists->by_text, MEM_TEXT);
    }
    TRY(tok_index(t, l->where, "model.vocab", l->dg));
    hf_added_keep_ids(t);
    TRY(tok_index_added(t, l->dg));
    TRY(read_model(l, type));
    TRY(hf_post_processor(t, json_get(l->root, "post_processor"), l->where, l->dg));
    read_config(t, config);
    return CAIRN_OK;
}

/* Opens the file from its text, or from what the lists leave of it. */
static cairn_status open_text(loader *l, cairn_str text, cairn_str tokenizer_config, tok **out)
{
    json_doc *doc = NULL, *config = NULL;
    cairn_status st = json_parse(text, &doc, l->dg);

    if (st != CAIRN_OK) return diag_prefix(l->dg, st, "%s", l->where);
    if (tokenizer_config.len) {
        st = json_parse(tokenizer_config, &config, l->dg);
        if (st != CAIRN_OK) {
            (void)diag_prefix(l->dg, st, "%s: tokenizer_config.json", l->where);
            goto out;
        }
    }
    l->root = json_root(doc);
    l->model = json_get(l->root, "model");
    st = build(l, config ? json_root(config) : (json_val){0});
out:
    json_free(doc);
    json_free(config);
    if (st == CAIRN_OK)
        *out = l->t;
    else
        tok_close(l->t);
    l->t = NULL;
    return st;
}

cairn_status tok_open_hf(cairn_str tokenizer_json, cairn_str tokenizer_config, const char *where,
                         tok **out, cairn_diag *dg)
{
    loader l = {.where = where, .dg = dg};
    hf_lists lists;
    cairn_status st = hf_lists_read(tokenizer_json, &lists);

    if (st == CAIRN_E_NOMEM) (void)no_memory(&l);
    if (st == CAIRN_OK) {
        l.lists = &lists;
        st = open_text(&l, buf_view(&lists.rest), tokenizer_config, out);
        l.lists = NULL;
    }
    hf_lists_free(&lists);
    if (st != CAIRN_OK && st != CAIRN_E_NOMEM) /* the whole file, for what there is to say */
        st = open_text(&l, tokenizer_json, tokenizer_config, out);
    return tok_opened(st, where, dg);
}
