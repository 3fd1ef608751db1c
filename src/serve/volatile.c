/* One rule so far: the header "x-anthropic-billing-header: name=value; name=value; …" that Claude Code writes
   before its instructions, whose last value is another one each time.  Only a prompt's very front is looked
   at, so a conversation about such headers stays as it is. */
#include "serve/volatile.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"

static const char header[] = "x-anthropic-billing-header:";

static bool is_of_field(char c)
{
    return c != ';' && c != '\n' && c != '\0';
}

/* The end of " name=value;" at i, or i where there is none. */
static size_t field_end(cairn_str s, size_t i)
{
    size_t end = i;
    while (end < s.len && s.ptr[end] == ' ') end++;
    const size_t from = end;
    while (end < s.len && is_of_field(s.ptr[end])) end++;
    const bool whole = end < s.len && s.ptr[end] == ';' && memchr(s.ptr + from, '=', end - from);
    return whole ? end + 1 : i;
}

cairn_str volatile_skip(cairn_str system)
{
    size_t i = sizeof header - 1, next;
    if (!str_starts(system, STR_LIT(header))) return system;
    while ((next = field_end(system, i)) > i) i = next;
    while (i < system.len && system.ptr[i] == '\n') i++;
    return (cairn_str){system.ptr + i, system.len - i};
}

static void put_message(json_writer *w, json_val m)
{
    json_iter it = json_each(m);
    cairn_str k;
    json_val v;

    json_w_obj(w);
    while (json_next_member(&it, &k, &v)) {
        json_w_key_str(w, k);
        if (str_is(k, "content") && json_typeof(v) == JSON_STR)
            json_w_str(w, volatile_skip(json_str(v)));
        else
            json_w_val(w, v);
    }
    json_w_end_obj(w);
}

cairn_status volatile_strip(cairn_str messages, buf *out)
{
    json_doc *d = NULL;
    json_val m;

    if (!memmem(messages.ptr, messages.len, header, sizeof header - 1)) return CAIRN_OK;
    if (json_parse_any(messages, &d, NULL) != CAIRN_OK)
        return CAIRN_E_NOMEM; /* it is our own text */
    const json_val first = json_at(json_root(d), 0);
    const bool system = str_is(json_str(json_get(first, "role")), "system");
    json_iter it = json_each(json_root(d));
    json_writer w = json_write(out);
    json_w_arr(&w);
    for (size_t i = 0; system && json_next(&it, &m); i++)
        i == 0 ? put_message(&w, m) : json_w_val(&w, m);
    json_w_end_arr(&w);
    json_free(d);
    if (!system) buf_clear(out);
    return buf_status(out);
}
