/* Owns how a value of tokenizer.json is checked and what the message says of one that is wrong. */
#include "text/tok_hf.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"

enum { MOST_SHOWN = 60 };

/* Values are shown as written; long ones are cut, lists and objects only counted. */
static void show(json_val v, char out[MOST_SHOWN + 20])
{
    buf b;
    json_writer w;

    switch (json_typeof(v)) {
    case JSON_NONE:
    case JSON_OBJ:
        (void)snprintf(out, MOST_SHOWN + 20, "%s", json_type_name(json_typeof(v)));
        return;
    case JSON_ARR:
        (void)snprintf(out, MOST_SHOWN + 20, "an array of %zu", json_size(v));
        return;
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_INT:
    case JSON_UINT:
    case JSON_FLOAT:
    case JSON_STR:
        break;
    }
    buf_init(&b, MEM_TEXT);
    w = json_write(&b);
    json_w_val(&w, v);
    const bool cut = b.len > MOST_SHOWN;
    (void)snprintf(out, MOST_SHOWN + 20, "%.*s%s", (int)(cut ? MOST_SHOWN : b.len),
                   b.len ? b.ptr : "", cut ? "..." : "");
    buf_deinit(&b);
}

cairn_status hf_wrong(const hf_obj *o, const char *key, json_val found, const char *expected)
{
    char text[MOST_SHOWN + 20];

    show(found, text);
    return diag_set(o->dg, CAIRN_E_CORRUPT, "%s: %s%s%s: found %s; expected %s", o->where, o->path,
                    key && o->path[0] ? "." : "", key ? key : "", text, expected);
}

cairn_status hf_wrong_at(const hf_obj *o, size_t i, json_val found, const char *expected)
{
    char text[MOST_SHOWN + 20];

    show(found, text);
    return diag_set(o->dg, CAIRN_E_CORRUPT, "%s: %s[%zu]: found %s; expected %s", o->where, o->path,
                    i, text, expected);
}

cairn_status hf_bool(const hf_obj *o, const char *key, bool *out)
{
    const json_val v = json_get(o->v, key);

    if (hf_is_none(v)) return CAIRN_OK;
    if (json_typeof(v) != JSON_BOOL) return hf_wrong(o, key, v, "true or false");
    *out = json_bool(v, *out);
    return CAIRN_OK;
}

cairn_status hf_text(const hf_obj *o, const char *key, cairn_str *out)
{
    const json_val v = json_get(o->v, key);

    if (hf_is_none(v)) return CAIRN_OK;
    if (json_typeof(v) != JSON_STR) return hf_wrong(o, key, v, "a text");
    *out = json_str(v);
    return CAIRN_OK;
}

cairn_status hf_list(const hf_obj *o, const char *key, json_val *out)
{
    const json_val v = json_get(o->v, key);

    if (json_typeof(v) != JSON_ARR) return hf_wrong(o, key, v, "a list");
    *out = v;
    return CAIRN_OK;
}

cairn_status hf_type(const hf_obj *o, cairn_str *type)
{
    if (json_typeof(o->v) != JSON_OBJ) return hf_wrong(o, NULL, o->v, "an object");
    const json_val v = json_get(o->v, "type");
    if (json_typeof(v) != JSON_STR) return hf_wrong(o, "type", v, "the name of a kind");
    *type = json_str(v);
    return CAIRN_OK;
}

static cairn_status walk(const hf_obj *o, const char *key, hf_step step, void *ctx, int depth)
{
    hf_obj sub = *o;
    cairn_str type;
    json_val list;

    TRY(hf_type(o, &type));
    if (!str_is(type, "Sequence")) {
        TRY(hf_fields(o, type));
        return step(ctx, o->v, type);
    }
    if (depth == HF_MAX_DEPTH)
        return diag_set(o->dg, CAIRN_E_LIMIT, "%s: nested %s; expected at most %d deep", o->where,
                        key, HF_MAX_DEPTH);
    TRY(hf_list(o, key, &list));
    json_iter it = json_each(list);
    while (json_next(&it, &sub.v)) TRY(walk(&sub, key, step, ctx, depth + 1));
    return CAIRN_OK;
}

cairn_status hf_steps(const hf_obj *o, const char *key, hf_step step, void *ctx)
{
    return walk(o, key, step, ctx, 0);
}
