/* Owns the reading of tokenizer.json's post_processor: which special tokens stand before and after one
   text.  Pairs of texts are not encoded here; a kind that is not known is an error that names it. */
#include <string.h>

#include "text/tok_hf.h"
#include "text/tok_priv.h"

typedef struct loader {
    tok *t;
    const char *where;
    cairn_diag *dg;
} loader;

static cairn_status bad(loader *l, const char *what)
{
    return diag_set(l->dg, CAIRN_E_CORRUPT, "%s: %s", l->where, what);
}

static cairn_status put_around(loader *l, bool after, const int32_t *ids, size_t n)
{
    tok *t = l->t;
    int32_t **list = after ? &t->after : &t->before;
    uint32_t *count = after ? &t->n_after : &t->n_before;

    if (*count + n > TOK_MAX_STEPS)
        return bad(l, "too many special tokens around a text; expected at most 64");
    int32_t *p = arena_alloc(&t->mem, (*count + n + 1) * sizeof *p);
    if (!p) return diag_set(l->dg, CAIRN_E_NOMEM, "no memory for a tokenizer");
    /* Outside of what is there already. */
    if (*count) memcpy(p + (after ? 0 : n), *list, *count * sizeof *p);
    if (n) memcpy(p + (after ? *count : 0), ids, n * sizeof *p);
    *list = p;
    *count += (uint32_t)n;
    return CAIRN_OK;
}

static cairn_status template_ids(loader *l, json_val post, cairn_str name, int32_t *ids, size_t *n)
{
    json_val v, ids_v = {0};
    json_iter it = json_each(json_get(post, "special_tokens"));
    cairn_str key;

    while (json_next_member(&it, &key, &v))
        if (str_eq(key, name)) ids_v = json_get(v, "ids");
    it = json_each(ids_v);
    while (json_next(&it, &v)) {
        int64_t id = json_int(v, -1);
        if (id < 0 || id >= l->t->n || *n == TOK_MAX_STEPS)
            return bad(
                l,
                "post_processor: found an unknown special token; expected one of the vocabulary");
        ids[(*n)++] = (int32_t)id;
    }
    return CAIRN_OK;
}

static cairn_status post_template(loader *l, json_val post)
{
    int32_t ids[TOK_MAX_STEPS];
    size_t n = 0;
    bool after = false;
    json_val v;
    json_iter it = json_each(json_get(post, "single"));

    while (json_next(&it, &v)) {
        json_val s = json_get(v, "SpecialToken");
        if (json_typeof(s) == JSON_OBJ) {
            TRY(template_ids(l, post, json_str(json_get(s, "id")), ids, &n));
            continue;
        }
        if (after || json_typeof(json_get(v, "Sequence")) != JSON_OBJ)
            return bad(l,
                       "post_processor: found a template of another shape; expected one Sequence");
        TRY(put_around(l, false, ids, n));
        n = 0;
        after = true;
    }
    return after ? put_around(l, true, ids, n) : bad(l, "a post_processor template of one text");
}

/* ["[SEP]", 102] */
static cairn_status post_pair(loader *l, json_val post, const char *key, bool after)
{
    const hf_obj o = {post, l->where, "post_processor", l->dg};
    const json_val pair = json_get(post, key);
    const int64_t id = json_int(json_at(pair, 1), -1);

    if (json_size(pair) != 2 || json_typeof(json_at(pair, 0)) != JSON_STR)
        return hf_wrong(&o, key, pair, "[piece, id]");
    if (id < 0 || id >= l->t->n)
        return bad(l, "post_processor: found an unknown id; expected one of the vocabulary");
    int32_t one = (int32_t)id;
    return put_around(l, after, &one, 1);
}

static cairn_status one_post(void *ctx, json_val v, cairn_str type)
{
    loader *l = ctx;

    if (str_is(type, "ByteLevel")) return CAIRN_OK; /* moves offsets only */
    if (str_is(type, "TemplateProcessing")) return post_template(l, v);
    if (str_is(type, "BertProcessing") || str_is(type, "RobertaProcessing")) {
        TRY(post_pair(l, v, "cls", false));
        return post_pair(l, v, "sep", true);
    }
    return diag_set(l->dg, CAIRN_E_UNSUPPORTED,
                    "%s: post_processor of type \"%.*s\"; expected one that is known", l->where,
                    STR_ARG(type));
}

cairn_status hf_post_processor(tok *t, json_val v, const char *where, cairn_diag *dg)
{
    const hf_obj o = {v, where, "post_processor", dg};
    loader l = {t, where, dg};
    return hf_is_none(v) ? CAIRN_OK : hf_steps(&o, "processors", one_post, &l);
}
