/* Tables of fields: what none names is nobody's business and stays unread. */
#include "serve/body_fields.h"

#include <stdio.h>

#include "base/diag.h"
#include "base/str.h"
#include "serve/openai_messages.h"

enum { MOST_TEXTS = 16, MOST_KEY = 64, MOST_VALUE = 512 }; /* OpenAI's */

bool body_word(const char *words, cairn_str word)
{
    const cairn_str all = str_of(words);

    for (size_t i = 0; i < all.len;) {
        const size_t end = str_find(all, STR_LIT(" "), i);
        if (str_eq(str_sub(all, i, end - i), word)) return true;
        i = end + 1;
    }
    return false;
}

static cairn_status check_texts(json_val v, body_path at, chat_fault *f)
{
    json_iter it = json_each(v);
    cairn_str key = {0};
    json_val value;
    char name[41]; /* as much of a key as a path has room for */

    if (json_typeof(v) != JSON_OBJ) return chat_want(f, at.s, "an object of texts", v);
    if (json_size(v) > MOST_TEXTS)
        return chat_fault_set(f, CAIRN_E_ARG, at.s, "`%s` may hold at most %d members, found %zu",
                              at.s, MOST_TEXTS, json_size(v));
    while (json_next_member(&it, &key, &value)) {
        (void)snprintf(name, sizeof name, "%.*s", STR_ARG(key));
        const body_path p = path_key(at, name);
        if (key.len > MOST_KEY)
            return chat_fault_set(f, CAIRN_E_ARG, p.s,
                                  "`%s` has a name of %zu bytes; expected at most %d", p.s, key.len,
                                  MOST_KEY);
        if (json_typeof(value) != JSON_STR || json_str(value).len > MOST_VALUE)
            return chat_want(f, p.s, "a string of at most 512 bytes", value);
    }
    return CAIRN_OK;
}

static cairn_status check_whole(const body_field *b, json_val v, body_path at, chat_fault *f)
{
    const int64_t n = json_int(v, INT64_MIN);
    char what[80];

    if (n != INT64_MIN && n >= b->lo && n <= b->hi) return CAIRN_OK;
    (void)snprintf(what, sizeof what, "an integer from %lld to %lld", (long long)b->lo,
                   (long long)b->hi);
    return chat_want(f, at.s, what, v);
}

static cairn_status check_one(const body_field *b, json_val v, body_path at, chat_fault *f)
{
    const json_type t = json_typeof(v);

    switch (b->form) {
    case FIELD_TEXT:
        return t == JSON_STR ? CAIRN_OK : chat_want(f, at.s, "a string", v);
    case FIELD_TRUTH:
        return t == JSON_BOOL ? CAIRN_OK : chat_want(f, at.s, "true or false", v);
    case FIELD_OBJECT:
        return t == JSON_OBJ ? CAIRN_OK : chat_want(f, at.s, "an object", v);
    case FIELD_LIST:
        return t == JSON_ARR ? CAIRN_OK : chat_want(f, at.s, "an array", v);
    case FIELD_WHOLE:
        return check_whole(b, v, at, f);
    case FIELD_WORD:
        if (t == JSON_STR && body_word(b->words, json_str(v))) return CAIRN_OK;
        return chat_want(f, at.s, b->what, v);
    case FIELD_TEXTS:
        return check_texts(v, at, f);
    }
    return CAIRN_E_INTERNAL;
}

cairn_status body_fields_check(json_val part, body_path at, const body_field *list, size_t n,
                               chat_fault *f)
{
    for (size_t i = 0; i < n; i++) {
        const body_field *b = &list[i];
        const json_val holder = b->in ? json_path(part, b->in) : part;
        const json_val v = json_get(holder, b->name);
        if (json_typeof(v) <= JSON_NULL) continue;
        TRY(check_one(b, v, path_key(b->in ? path_key(at, b->in) : at, b->name), f));
    }
    return CAIRN_OK;
}

cairn_status body_name_form(json_val name, body_path at, size_t most, chat_fault *f)
{
    const cairn_str s = json_str(name);
    bool good = s.len > 0 && s.len <= most;
    char what[80];

    for (size_t i = 0; good && i < s.len; i++)
        good = str_is_digit(s.ptr[i]) || (s.ptr[i] >= 'a' && s.ptr[i] <= 'z') ||
               (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z') || s.ptr[i] == '_' || s.ptr[i] == '-';
    (void)snprintf(what, sizeof what, "a name of 1 to %zu letters, digits, _ and -", most);
    return good ? CAIRN_OK : chat_want(f, at.s, what, name);
}

cairn_status body_name_check(json_val name, body_path at, size_t most, map *seen, chat_fault *f)
{
    const cairn_str s = json_str(name);
    uint32_t before;

    TRY(body_name_form(name, at, most, f));
    if (map_get(seen, s, &before))
        return chat_fault_set(f, CAIRN_E_ARG, at.s,
                              "`%s` is `%.*s`, as that of a tool before it is", at.s, STR_ARG(s));
    if (map_put(seen, s, 1) == CAIRN_OK) return CAIRN_OK;
    return chat_fault_set(f, CAIRN_E_NOMEM, "tools", "no memory for `tools`");
}
