/* The endpoints of the Responses API: the parts that one is made of, and those of kept ones. */
#include "serve/responses.h"

#include "base/str.h"
#include "serve/auth.h"
#include "serve/endpoint.h"
#include "serve/errand.h"
#include "serve/openai_wire.h"
#include "serve/prompt.h"
#include "serve/responses_ask.h"
#include "serve/responses_format.h"
#include "serve/server_priv.h"

/* The past is looked up, and the input read, once the rest is fine. */
static bool read_input(prompt *p)
{
    responses_ask *r = p->ask.more;
    responses_store *s = p->client.responses;
    chat_fault f = {0};
    cairn_status st;

    r->store = s;
    r->by = p->client.by;
    if (r->previous.len) {
        r->past = responses_store_get(s, r->previous, &r->by, http_now_ms());
        if (!r->past)
            return prompt_refuse(p, 404, "previous_response_id", "previous_response_not_found",
                                 "Previous response with id '%.*s' not found.",
                                 STR_ARG(r->previous));
    }
    st = responses_input_read(&p->ask, &f);
    return st == CAIRN_OK || prompt_refuse_body(p, st, &f);
}

static void make(prompt *p, const models *m, cairn_str body)
{
    prompt_make_more(p, m, responses_ask_read, read_input, body);
}

/* prompt_count's object, with a member before its own. */
static void count(prompt *p, const models *m, cairn_str body)
{
    static const char head[] = "{\"object\":\"response.input_tokens\",";
    buf b;

    prompt_count_more(p, m, responses_ask_read, read_input, body);
    if (p->fault.status || p->text.len == 0) return;
    buf_init(&b, MEM_SERVE);
    buf_puts(&b, head);
    buf_put(&b, p->text.ptr + 1, p->text.len - 1);
    buf_deinit(&p->text);
    p->text = b;
}

void responses_serve(cairn_server *s, http_req *rq)
{
    static const endpoint responses = {.format = &responses_format, .make = make};

    endpoint_serve(s, rq, &responses);
}

void responses_count(cairn_server *s, http_req *rq)
{
    static const endpoint counted = {.format = &responses_format, .make = count, .just_text = true};

    endpoint_serve(s, rq, &counted);
}

typedef struct target { /* of a path */
    cairn_str id, rest; /* rest: behind the id and a slash, or empty */
} target;

static target target_of(const http_req *rq)
{
    const cairn_str path = str_of(http_path(rq) + strlen("/v1/responses/"));
    const size_t slash = str_find(path, STR_LIT("/"), 0);

    if (slash == SIZE_MAX) return (target){path, {0}};
    return (target){str_sub(path, 0, slash), str_sub(path, slash + 1, path.len - slash - 1)};
}

static owner owner_of(const cairn_server *s, const http_req *rq)
{
    owner by = {.n = 0};

    by.n = auth_space(&s->auth, rq, by.digest).len;
    return by;
}

static void not_found(http_req *rq, cairn_str id)
{
    openai_error(rq, 404, NULL, NULL, "Response with id '%.*s' not found.", STR_ARG(id));
}

static void no_route(http_req *rq)
{
    openai_error(rq, 404, NULL, "not_found", "not found");
}

typedef struct listing { /* which items of a list */
    cairn_str after;
    size_t limit;
    bool ascending;
} listing;

enum { MOST_LISTED = 100, USUALLY_LISTED = 20 }; /* OpenAI's */

static bool read_limit(cairn_str s, size_t *out)
{
    if (!s.ptr) return true;
    if (s.len == 0 || s.len > 3) return false;
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!str_is_digit(s.ptr[i])) return false;
        *out = *out * 10 + (size_t)(s.ptr[i] - '0');
    }
    return *out >= 1 && *out <= MOST_LISTED;
}

static bool read_listing(http_req *rq, listing *l)
{
    const cairn_str order = http_query(rq, "order");

    *l = (listing){.after = http_query(rq, "after"), .limit = USUALLY_LISTED};
    l->ascending = str_is(order, "asc");
    if (!read_limit(http_query(rq, "limit"), &l->limit)) {
        openai_error(rq, 400, "limit", "invalid_value", "`limit` must be from 1 to %d",
                     MOST_LISTED);
        return false;
    }
    if (!order.ptr || l->ascending || str_is(order, "desc")) return true;
    openai_error(rq, 400, "order", "invalid_value", "`order` must be asc or desc");
    return false;
}

static void write_id(json_writer *w, const char *key, json_val item)
{
    json_w_kstr(w, key,
                json_typeof(item) == JSON_OBJ ? json_str(json_get(item, "id")) : STR_LIT(""));
}

/* Those that are listed, oldest first.  Two passes, as lists may be long. */
static size_t choose(json_val list, const listing *l, json_val out[MOST_LISTED], bool *more)
{
    json_iter it = json_each(list);
    size_t n = 0, at = SIZE_MAX, from, to, count = 0;
    json_val v;

    for (; json_next(&it, &v); n++)
        if (l->after.len && str_eq(json_str(json_get(v, "id")), l->after)) at = n;
    if (l->ascending) {
        from = at == SIZE_MAX ? 0 : at + 1;
        to = n - from < l->limit ? n : from + l->limit;
    } else {
        to = at == SIZE_MAX ? n : at;
        from = to < l->limit ? 0 : to - l->limit;
    }
    *more = l->ascending ? to < n : from > 0;
    it = json_each(list);
    for (size_t i = 0; i < to && json_next(&it, &v); i++)
        if (i >= from) out[count++] = v;
    return count;
}

static void write_items(json_writer *w, json_val list, const listing *l)
{
    json_val items[MOST_LISTED];
    bool more;
    const size_t n = choose(list, l, items, &more);
    const size_t first = l->ascending || n == 0 ? 0 : n - 1, last = n == 0 ? 0 : n - 1 - first;

    json_w_obj(w);
    json_w_kstr(w, "object", STR_LIT("list"));
    json_w_key(w, "data");
    json_w_arr(w);
    for (size_t i = 0; i < n; i++) json_w_val(w, items[l->ascending ? i : n - 1 - i]);
    json_w_end_arr(w);
    write_id(w, "first_id", n ? items[first] : (json_val){0});
    write_id(w, "last_id", n ? items[last] : (json_val){0});
    json_w_kbool(w, "has_more", more);
    json_w_end_obj(w);
}

typedef struct items_errand {
    errand e;
    kept_response *k; /* a reference */
    listing l;
    buf after; /* what l.after points into */
} items_errand;

/* Worker: seconds of JSON where the input was long. */
static void list_items(errand *e)
{
    items_errand *t = (items_errand *)e;
    json_writer w = json_write(&e->body);
    json_doc *d = NULL;

    t->l.after = buf_view(&t->after);
    if (buf_status(&t->after) == CAIRN_OK &&
        json_parse_any(buf_view(&t->k->items), &d, NULL) == CAIRN_OK)
        write_items(&w, json_root(d), &t->l);
    else
        e->body.no_memory = true; /* it is our own text */
    if (d) json_free(d);
}

static void end_items(errand *e)
{
    items_errand *t = (items_errand *)e;

    responses_store_let_go(&e->s->responses, t->k);
    buf_deinit(&t->after);
}

/* Takes the reference. */
static void reply_items(cairn_server *s, http_req *rq, kept_response *k)
{
    static const errand_kind kind = {sizeof(items_errand), list_items, end_items};
    items_errand *t = NULL;
    listing l;

    if (read_listing(rq, &l)) t = (items_errand *)errand_new(&kind, s, rq, buf_view(&k->items).len);
    if (!t) {
        responses_store_let_go(&s->responses, k);
        return;
    }
    t->k = k;
    t->l = l;
    buf_init(&t->after, MEM_SERVE);
    buf_str(&t->after, l.after);
    errand_start(&t->e);
}

void responses_get(cairn_server *s, http_req *rq)
{
    const target t = target_of(rq);
    const owner by = owner_of(s, rq);
    kept_response *k = responses_store_get(&s->responses, t.id, &by, http_now_ms());

    if (k && str_is(t.rest, "input_items")) {
        reply_items(s, rq, k);
        return;
    }
    if (t.rest.len && !str_is(t.rest, "input_items"))
        no_route(rq);
    else if (!k)
        not_found(rq, t.id);
    else if (str_is(http_query(rq, "stream"), "true"))
        openai_error(rq, 400, "stream", "unsupported_parameter",
                     "`stream` is not supported: a response that is kept has ended");
    else
        openai_reply(rq, &k->body);
    responses_store_let_go(&s->responses, k);
}

void responses_delete(cairn_server *s, http_req *rq)
{
    const target t = target_of(rq);
    const owner by = owner_of(s, rq);
    json_writer w;
    buf b;

    if (t.rest.len) {
        no_route(rq);
        return;
    }
    if (!responses_store_delete(&s->responses, t.id, &by, http_now_ms())) {
        not_found(rq, t.id);
        return;
    }
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_kstr(&w, "id", t.id);
    json_w_kstr(&w, "object", STR_LIT("response"));
    json_w_kbool(&w, "deleted", true);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

void responses_post(cairn_server *s, http_req *rq)
{
    const target t = target_of(rq);
    const owner by = owner_of(s, rq);
    kept_response *k;

    if (!str_is(t.rest, "cancel")) {
        no_route(rq);
        return;
    }
    k = responses_store_get(&s->responses, t.id, &by, http_now_ms());
    if (k)
        openai_error(rq, 400, NULL, "invalid_value",
                     "only responses made in the background can be cancelled, and there are none: "
                     "close the connection of one that is under way");
    else
        not_found(rq, t.id);
    responses_store_let_go(&s->responses, k);
}
