/* Owns the reading of tokenizer_config.json for vocabularies without a tokenizer.json: added tokens by
   id, special tokens by name, and whether BOS and EOS are put around a text. */
#include "text/tok_config.h"

cairn_status config_parse(cairn_str text, const char *where, json_doc **doc, cairn_diag *dg)
{
    *doc = NULL;
    if (text.len == 0) return CAIRN_OK;
    cairn_status st = json_parse(text, doc, dg);
    return st == CAIRN_OK ? st : diag_prefix(dg, st, "%s: tokenizer_config.json", where);
}

/* The id that a key spells; -1 if it spells none. */
static int32_t id_of_key(cairn_str key)
{
    int32_t id = 0;

    if (key.len == 0 || key.len > 7) return -1;
    for (size_t i = 0; i < key.len; i++) {
        if (!str_is_digit(key.ptr[i])) return -1;
        id = id * 10 + (key.ptr[i] - '0');
    }
    return id < TOK_MAX_VOCAB ? id : -1;
}

int32_t config_vocab(json_val config)
{
    json_iter it = json_each(json_get(config, "added_tokens_decoder"));
    json_val v;
    cairn_str key;
    int32_t n = 0;

    while (json_next_member(&it, &key, &v))
        if (id_of_key(key) >= n) n = id_of_key(key) + 1;
    return n;
}

static cairn_status no_memory(cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static cairn_status add_one(tok *t, int32_t id, json_val v, const char *where, cairn_diag *dg)
{
    added a = {.text = json_str(json_get(v, "content")),
               .id = id,
               .special = json_bool(json_get(v, "special"), false),
               .lstrip = json_bool(json_get(v, "lstrip"), false),
               .rstrip = json_bool(json_get(v, "rstrip"), false),
               .single_word = json_bool(json_get(v, "single_word"), false)};

    if (id < 0 || id >= t->n || a.text.len == 0) return CAIRN_OK;
    if (a.text.len > TOK_MAX_PIECE)
        return diag_set(dg, CAIRN_E_LIMIT, "%s: an added token of %zu bytes", where, a.text.len);
    if (!(t->flag[id] & TOK_F_USED)) {
        t->text[id] = t->out[id] = tok_copy(t, a.text);
        if (!t->text[id].ptr) return no_memory(dg);
        t->flag[id] |= TOK_F_USED | TOK_F_ADDED;
        if (a.text.len > t->max_out) t->max_out = a.text.len;
    }
    if (!str_eq(t->text[id], a.text)) return CAIRN_OK; /* the vocabulary's own name counts */
    if (a.special) t->flag[id] |= TOK_F_SPECIAL;
    a.text = t->text[id];
    t->added[t->n_added++] = a;
    return CAIRN_OK;
}

cairn_status config_added(tok *t, json_val config, const char *where, cairn_diag *dg)
{
    json_val v, list = json_get(config, "added_tokens_decoder");
    json_iter it = json_each(list);
    cairn_str key;
    size_t n = json_size(list);

    for (int32_t id = 0; id < t->n; id++) n += (t->flag[id] & TOK_F_SPECIAL) != 0;
    t->added = arena_calloc(&t->mem, n + 1, sizeof *t->added);
    if (!t->added) return no_memory(dg);
    while (json_next_member(&it, &key, &v)) TRY(add_one(t, id_of_key(key), v, where, dg));
    for (int32_t id = 0; id < t->n; id++)
        if (t->flag[id] & TOK_F_SPECIAL && !(t->flag[id] & TOK_F_ADDED) && t->text[id].len)
            t->added[t->n_added++] = (added){.text = t->text[id], .id = id, .special = true};
    return tok_index_added(t, dg);
}

static void named(tok *t, json_val config, const char *key, int32_t *id)
{
    json_val v = json_get(config, key);
    cairn_str s = json_typeof(v) == JSON_OBJ ? json_str(json_get(v, "content")) : json_str(v);
    int32_t found = s.len ? tok_find(t, s) : -1;

    if (found >= 0) *id = found;
}

static cairn_status put_one(tok *t, int32_t id, int32_t **list, uint32_t *n, cairn_diag *dg)
{
    *list = arena_alloc(&t->mem, sizeof **list);
    if (!*list) return no_memory(dg);
    **list = id;
    *n = 1;
    return CAIRN_OK;
}

cairn_status config_specials(tok *t, json_val config, bool add_bos, bool add_eos, cairn_diag *dg)
{
    tok_special *s = &t->special;

    named(t, config, "bos_token", &s->bos);
    named(t, config, "eos_token", &s->eos);
    named(t, config, "pad_token", &s->pad);
    named(t, config, "unk_token", &s->unk);
    s->add_bos = s->bos >= 0 && json_bool(json_get(config, "add_bos_token"), add_bos);
    s->add_eos = s->eos >= 0 && json_bool(json_get(config, "add_eos_token"), add_eos);
    if (s->eos >= 0) t->flag[s->eos] |= TOK_F_EOS;
    if (s->add_bos) TRY(put_one(t, s->bos, &t->before, &t->n_before, dg));
    if (s->add_eos) TRY(put_one(t, s->eos, &t->after, &t->n_after, dg));
    return CAIRN_OK;
}
