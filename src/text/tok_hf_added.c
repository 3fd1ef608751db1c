/* Owns the added tokens of a tokenizer.json: what the file says of each, which of equal ones counts, and
   how they are shown.  Looking for them in a text is added.c's. */
#include "text/tok_hf.h"
#include "text/tok_priv.h"

static cairn_status no_memory(cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
}

static const struct {
    const char *key;
    size_t at; /* a bool of `added` */
} flags[] = {
    {"single_word", offsetof(added, single_word)}, {"lstrip", offsetof(added, lstrip)},
    {"rstrip", offsetof(added, rstrip)},           {"normalized", offsetof(added, normalized)},
    {"special", offsetof(added, special)},
};
enum { N_FLAG = sizeof flags / sizeof flags[0] };

/* What the file says of one added token: of thousands, so that each member is looked at once. */
static cairn_status one_added(json_val v, const char *where, added *a, cairn_diag *dg)
{
    const hf_obj o = {v, where, "added_tokens", dg};
    json_iter it = json_each(v);
    json_val m, flag[N_FLAG] = {0};
    cairn_str key;

    *a = (added){.id = -1};
    while (json_next_member(&it, &key, &m)) {
        if (str_is(key, "content")) a->text = json_str(m);
        if (str_is(key, "id")) a->id = (int32_t)json_int(m, -1);
        for (size_t i = 0; i < N_FLAG; i++)
            if (str_is(key, flags[i].key)) flag[i] = m;
    }
    for (size_t i = 0; i < N_FLAG; i++) {
        if (json_typeof(flag[i]) != JSON_BOOL)
            return hf_wrong(&o, flags[i].key, flag[i], "true or false");
        *(bool *)((char *)a + flags[i].at) = json_bool(flag[i], false);
    }
    if (a->text.len <= TOK_MAX_PIECE) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_LIMIT,
                    "%s: added_tokens.content: found %zu bytes; expected at most %d", where,
                    a->text.len, TOK_MAX_PIECE);
}

static cairn_status put_added(tok *t, added a, const char *where, cairn_diag *dg)
{
    if (t->flag[a.id] & TOK_F_USED && !str_eq(t->text[a.id], a.text))
        return diag_set(dg, CAIRN_E_CORRUPT,
                        "%s: id %d is both \"%.*s\" and \"%.*s\"; expected one text", where, a.id,
                        STR_ARG(t->text[a.id]), STR_ARG(a.text));
    if (!(t->flag[a.id] & TOK_F_USED)) {
        t->text[a.id] = tok_copy(t, a.text);
        if (!t->text[a.id].ptr) return no_memory(dg);
        t->flag[a.id] |= TOK_F_USED | TOK_F_ADDED;
    }
    if (a.special) t->flag[a.id] |= TOK_F_SPECIAL;
    a.text = t->text[a.id];
    t->added[t->n_added++] = a;
    return CAIRN_OK;
}

/* The file's id must be free, or its piece equal.  As in the reference an empty token is none, and of
   equal ones the first counts. */
cairn_status hf_added_read(tok *t, json_val list, const char *where, cairn_diag *dg)
{
    json_val v;
    json_iter it = json_each(list);
    cairn_status st = CAIRN_OK;
    map seen;
    uint32_t before;
    added a;

    map_init(&seen, MEM_TEXT);
    t->added = arena_calloc(&t->mem, json_size(list) + 1, sizeof *t->added);
    if (!t->added || map_reserve(&seen, json_size(list)) != CAIRN_OK) return no_memory(dg);
    while (json_next(&it, &v)) {
        TRY_GOTO(one_added(v, where, &a, dg), out);
        if (a.text.len == 0 || map_get(&seen, a.text, &before)) continue;
        TRY_GOTO(map_put(&seen, a.text, 1), out);
        TRY_GOTO(put_added(t, a, where, dg), out);
    }
out:
    map_deinit(&seen);
    return st == CAIRN_E_NOMEM ? no_memory(dg) : st;
}

/* An added token that is a piece of the model keeps the model's id, whatever the file says.  After
   tok_index, which knows the model's pieces only. */
void hf_added_keep_ids(tok *t)
{
    for (uint32_t i = 0; i < t->n_added; i++) {
        added *a = &t->added[i];
        if (!(t->flag[a->id] & TOK_F_ADDED)) continue;
        const int32_t id = tok_find(t, a->text);
        if (id < 0) continue;
        t->flag[a->id] = 0;
        t->out[a->id] = (cairn_str){0};
        a->id = id;
        if (a->special) t->flag[id] |= TOK_F_SPECIAL;
    }
}

/* The reference shows a normalised added token as the normalizer leaves it, and then no longer knows it
   for a special one. */
cairn_status hf_added_show(tok *t, cairn_diag *dg)
{
    buf x, y;
    cairn_status st = CAIRN_OK;

    buf_init(&x, MEM_TEXT);
    buf_init(&y, MEM_TEXT);
    for (uint32_t i = 0; i < t->n_added && t->n_norm; i++) {
        const added *a = &t->added[i];
        cairn_str s = a->text;
        if (!a->normalized || !(t->flag[a->id] & TOK_F_ADDED)) continue;
        TRY_GOTO(norm_run(t->norm, t->n_norm, s, &x, &y, &s, dg), out);
        if (str_eq(s, a->text)) continue;
        t->text[a->id] = tok_copy(t, s);
        if (!t->text[a->id].ptr) {
            st = no_memory(dg);
            goto out;
        }
        t->flag[a->id] &= (uint8_t)~TOK_F_SPECIAL;
    }
out:
    buf_deinit(&x);
    buf_deinit(&y);
    return st;
}
