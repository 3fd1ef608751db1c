/* The messages of a response's request: instructions, the past, then its own items.  What is kept of a request is
   these, whole, so that no later one depends on what they referred to. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/http.h"
#include "serve/openai_messages.h"
#include "serve/responses_ask.h"
#include "serve/responses_items.h"

enum { MOST_REFERRED = 64 << 20 }; /* bytes read for references to items: half a second */

typedef struct walk {
    items i;
    chat_ask *a;
    responses_ask *r;
    bool keeping;
    json_writer kept;
    size_t n_kept;
    size_t referred; /* bytes */
} walk;

static cairn_status want(walk *w, body_path p, const char *what, json_val v)
{
    return chat_want(w->i.f, p.s, what, v);
}

static cairn_status no_memory(walk *w)
{
    return chat_fault_set(w->i.f, CAIRN_E_NOMEM, "input", "no memory for `input`");
}

/* A message's parts as the API lists them: a text is a part, and one of an answer has annotations. */
static void keep_content(json_writer *k, json_val v, bool assistant)
{
    json_iter it = json_each(v);
    json_val part;

    json_w_arr(k);
    if (json_typeof(v) == JSON_STR) {
        json_w_obj(k);
        json_w_kstr(k, "type", assistant ? STR_LIT("output_text") : STR_LIT("input_text"));
        json_w_kstr(k, "text", json_str(v));
        if (assistant) json_w_key(k, "annotations");
        if (assistant) json_w_raw(k, STR_LIT("[]"));
        json_w_end_obj(k);
    }
    while (json_next(&it, &part)) json_w_val(k, part);
    json_w_end_arr(k);
}

static const char *prefix_of(cairn_str type)
{
    if (str_is(type, "message")) return "msg";
    if (str_is(type, "reasoning")) return "rs";
    if (str_is(type, "custom_tool_call")) return "ctc";
    return str_is(type, "function_call") ? "fc" : "item";
}

static void keep(walk *w, json_val item, cairn_str type)
{
    static const char *const own[] = {"id", "type", "status", "content"};
    const bool message = str_is(type, "message");
    const cairn_str id = json_str(json_get(item, "id"));
    const cairn_str status = json_str(json_get(item, "status"));
    json_iter it = json_each(item);
    char made[64];
    cairn_str key = {0};
    json_val v;

    if (!w->keeping) return;
    (void)snprintf(made, sizeof made, "%s_%si%04zx", prefix_of(type), w->r->digits, w->n_kept++);
    json_w_obj(&w->kept);
    json_w_kstr(&w->kept, "id", id.len ? id : str_of(made));
    json_w_kstr(&w->kept, "type", type);
    while (json_next_member(&it, &key, &v)) {
        bool done = false;
        for (size_t i = 0; i < sizeof own / sizeof own[0] - !message; i++)
            done = done || str_is(key, own[i]);
        if (done) continue;
        json_w_key_str(&w->kept, key);
        json_w_val(&w->kept, v);
    }
    json_w_kstr(&w->kept, "status", status.len ? status : STR_LIT("completed"));
    if (message) {
        json_w_key(&w->kept, "content");
        keep_content(&w->kept, json_get(item, "content"),
                     str_is(json_str(json_get(item, "role")), "assistant"));
    }
    json_w_end_obj(&w->kept);
}

static cairn_status plain_item(walk *w, json_val item, body_path p, cairn_str type)
{
    TRY(items_add(&w->i, item, p, type));
    keep(w, item, type);
    return CAIRN_OK;
}

/* The response that an item's id begins with: msg_DIGITS…; NULL: none is kept. */
static kept_response *response_of(const walk *w, cairn_str id)
{
    const size_t at = str_find(id, STR_LIT("_"), 0);
    char name[RESPONSE_ID];

    if (!w->r->store || at == SIZE_MAX || id.len - at - 1 < RESPONSE_DIGITS) return NULL;
    (void)snprintf(name, sizeof name, "resp_%.*s", RESPONSE_DIGITS, id.ptr + at + 1);
    return responses_store_get(w->r->store, str_of(name), &w->r->by, http_now_ms());
}

static json_val with_id(json_val list, cairn_str id)
{
    json_iter it = json_each(list);
    json_val v;

    while (json_next(&it, &v))
        if (str_eq(json_str(json_get(v, "id")), id)) return v;
    return (json_val){0};
}

/* Adds the item `id` of the JSON array `list`; *found says whether it is there. */
static cairn_status add_from(walk *w, const buf *list, cairn_str id, body_path p, bool *found)
{
    cairn_status st = CAIRN_OK;
    json_doc *d = NULL;
    json_val item;

    if (*found || list->len == 0) return CAIRN_OK;
    w->referred += list->len;
    if (w->referred > MOST_REFERRED)
        return chat_fault_set(w->i.f, CAIRN_E_LIMIT, "input",
                              "`input` refers to more than can be looked up; use "
                              "`previous_response_id`, or send the items");
    if (json_parse_any(buf_view(list), &d, NULL) != CAIRN_OK) return no_memory(w);
    item = with_id(json_root(d), id);
    *found = json_typeof(item) == JSON_OBJ;
    if (*found) st = plain_item(w, item, p, json_str(json_get(item, "type")));
    json_free(d);
    return st;
}

static cairn_status reference(walk *w, json_val item, body_path p)
{
    cairn_status st = CAIRN_OK;
    kept_response *k;
    const cairn_str id = json_str(json_get(item, "id"));
    bool found = false;

    if (id.len == 0) return want(w, path_key(p, "id"), "the id of an item", json_get(item, "id"));
    k = response_of(w, id);
    if (k) {
        st = add_from(w, &k->output, id, p, &found);
        if (st == CAIRN_OK) st = add_from(w, &k->items, id, p, &found);
        responses_store_let_go(w->r->store, k);
    }
    if (st != CAIRN_OK || found) return st;
    return chat_fault_set(w->i.f, CAIRN_E_NOTFOUND, path_key(p, "id").s,
                          "`%s`: no item `%.*s` is kept; those of responses with `store` false, "
                          "and old ones, are not",
                          path_key(p, "id").s, STR_ARG(id));
}

static cairn_status add_items(walk *w, json_val list, body_path p)
{
    json_iter it = json_each(list);
    json_val item;
    cairn_str type = {0};

    for (size_t i = 0; json_next(&it, &item); i++) {
        TRY(items_type(&w->i, item, path_element(p, i), &type));
        TRY(str_is(type, "item_reference") ? reference(w, item, path_element(p, i))
                                           : plain_item(w, item, path_element(p, i), type));
    }
    return CAIRN_OK;
}

static cairn_status add_kept(walk *w, const buf *list)
{
    const body_path p = {"previous_response_id"};
    cairn_status st;
    json_doc *d = NULL;

    if (list->len == 0) return CAIRN_OK;
    if (json_parse_any(buf_view(list), &d, NULL) != CAIRN_OK) return no_memory(w);
    st = add_items(w, json_root(d), p);
    json_free(d);
    return st;
}

/* All that went before, the oldest first. */
static cairn_status add_past(walk *w)
{
    const kept_response **chain;
    size_t n = 0, i = 0;

    for (const kept_response *k = w->r->past; k; k = k->past) n++;
    if (n == 0) return CAIRN_OK;
    chain = arena_calloc(&w->a->mem, n, sizeof *chain);
    if (!chain) return no_memory(w);
    for (const kept_response *k = w->r->past; k; k = k->past) chain[n - ++i] = k;
    for (i = 0; i < n; i++) {
        TRY(add_kept(w, &chain[i]->items));
        TRY(add_kept(w, &chain[i]->output));
    }
    return CAIRN_OK;
}

/* A text is what the user says. */
static cairn_status add_text(walk *w, json_val input)
{
    char id[64];

    items_say(&w->i, turns_user, json_str(input));
    if (!w->keeping) return CAIRN_OK;
    json_w_obj(&w->kept);
    (void)snprintf(id, sizeof id, "msg_%si0000", w->r->digits);
    json_w_kstr(&w->kept, "id", str_of(id));
    json_w_kstr(&w->kept, "type", STR_LIT("message"));
    json_w_kstr(&w->kept, "role", STR_LIT("user"));
    json_w_kstr(&w->kept, "status", STR_LIT("completed"));
    json_w_key(&w->kept, "content");
    keep_content(&w->kept, input, false);
    json_w_end_obj(&w->kept);
    return CAIRN_OK;
}

static cairn_status add_all(walk *w)
{
    const json_val root = json_root(w->a->doc), input = json_get(root, "input");
    const body_path p = {"input"};

    items_say_system(&w->i, json_str(json_get(root, "instructions")));
    w->keeping = false;
    TRY(add_past(w));
    w->keeping = w->r->keep;
    if (json_typeof(input) == JSON_STR && json_str(input).len) return add_text(w, input);
    if (json_typeof(input) != JSON_ARR || json_size(input) == 0)
        return want(w, p, "a string or an array of items, not empty", input);
    return add_items(w, input, p);
}

/* The system's message, then the others. */
static cairn_status put_messages(walk *w, const buf *others)
{
    cairn_status st;
    json_writer all;
    buf b;

    buf_init(&b, MEM_SERVE);
    all = json_write(&b);
    json_w_arr(&all);
    if (w->i.system.len) {
        json_w_obj(&all);
        json_w_kstr(&all, "role", STR_LIT("system"));
        json_w_kstr(&all, "content", buf_view(&w->i.system));
        json_w_end_obj(&all);
    }
    if (others->len) json_w_raw(&all, buf_view(others));
    json_w_end_arr(&all);
    b.no_memory |= w->i.system.no_memory;
    st = chat_messages_normalise(&b, "input", &w->a->messages, w->i.f);
    buf_deinit(&b);
    return st;
}

cairn_status responses_input_read(chat_ask *a, chat_fault *f)
{
    walk *w = arena_calloc(&a->mem, 1, sizeof *w);
    cairn_status st;
    buf others;

    if (!w) return chat_fault_set(f, CAIRN_E_NOMEM, "input", "no memory for `input`");
    w->a = a;
    w->r = a->more;
    buf_init(&others, MEM_SERVE);
    items_init(&w->i, &a->mem, &others, f);
    w->kept = json_write(&w->r->items);
    if (w->r->keep) json_w_arr(&w->kept);
    st = add_all(w);
    if (st == CAIRN_OK) turns_flush(&w->i.t);
    if (st == CAIRN_OK && w->r->keep) json_w_end_arr(&w->kept);
    if (st == CAIRN_OK &&
        (turns_status(&w->i.t) != CAIRN_OK || buf_status(&w->r->items) != CAIRN_OK))
        st = no_memory(w);
    if (st == CAIRN_OK && others.len == 0 && w->i.system.len == 0)
        st = chat_fault_set(f, CAIRN_E_UNSUPPORTED, "input",
                            "`input` holds nothing that the model can be told");
    if (st == CAIRN_OK) st = put_messages(w, &others);
    if (st == CAIRN_OK) st = left_out_warn(&w->i.left, "items", a, f);
    items_deinit(&w->i);
    buf_deinit(&others);
    return st;
}
