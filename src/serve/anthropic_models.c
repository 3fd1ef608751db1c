/* Models in Anthropic's shape, a page at a time.  When a model was made is not known: the server's start stands for
   it. */
#include "serve/anthropic_models.h"

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "serve/anthropic_error.h"
#include "serve/ollama_format.h"
#include "serve/openai_wire.h"

enum { USUALLY = 20, MOST = 1000 }; /* models on a page: Anthropic's */

typedef struct page { /* from <= i < to, of the table */
    size_t from, to, n;
} page;

bool anthropic_asks(const http_req *rq)
{
    return http_header(rq, "anthropic-version") != NULL;
}

static void write_model(json_writer *w, const cairn_server *s, const served_model *m)
{
    json_w_obj(w);
    json_w_kstr(w, "type", STR_LIT("model"));
    json_w_kstr(w, "id", str_of(m->id));
    json_w_kstr(w, "display_name", str_of(m->id));
    ollama_write_time(w, "created_at", s->started_unix_s);
    json_w_kstr(w, "lifecycle", STR_LIT("active"));
    json_w_kint(w, "max_input_tokens", served_model_ctx(m));
    json_w_kint(w, "max_tokens", served_model_ctx(m));
    json_w_end_obj(w);
}

/* Decimal digits up to MOST; 0: it is none such. */
static size_t number_of(cairn_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (!str_is_digit(s.ptr[i]) || n > MOST) return 0;
        n = n * 10 + (size_t)(s.ptr[i] - '0');
    }
    return n <= MOST ? n : 0;
}

/* A query is as it was sent: of an id's bytes only '/' need be written otherwise. */
static bool same_id(const char *id, cairn_str sent)
{
    size_t k = 0;

    for (; *id && k < sent.len; id++) {
        const cairn_str left = str_sub(sent, k, sent.len - k);
        const bool escaped =
            *id == '/' && (str_starts(left, STR_LIT("%2F")) || str_starts(left, STR_LIT("%2f")));
        if (!escaped && sent.ptr[k] != *id) return false;
        k += escaped ? 3 : 1;
    }
    return !*id && k == sent.len;
}

/* The place of the model that the query's `name` has; false: it is refused.  Without one *at is as it was. */
static bool find(const cairn_server *s, http_req *rq, const char *name, size_t *at)
{
    const cairn_str id = http_query(rq, name);
    char why[80];

    if (!id.ptr) return true;
    for (size_t i = 0; i < s->models.n; i++)
        if (same_id(models_nth(&s->models, i)->id, id)) {
            *at = i;
            return true;
        }
    (void)snprintf(why, sizeof why, "`%s` must be the id of a model that is listed", name);
    anthropic_refuse(rq, 400, name, "invalid_value", why);
    return false;
}

static bool read_page(const cairn_server *s, http_req *rq, page *p)
{
    const cairn_str limit = http_query(rq, "limit");
    const size_t none = SIZE_MAX, most = limit.ptr ? number_of(limit) : USUALLY;
    size_t after = none, before = none;

    if (most == 0) {
        anthropic_refuse(rq, 400, "limit", "invalid_value", "`limit` must be from 1 to 1000");
        return false;
    }
    if (!find(s, rq, "after_id", &after) || !find(s, rq, "before_id", &before)) return false;
    *p = (page){.from = after == none ? 0 : after + 1, .n = s->models.n};
    p->to = p->n - p->from < most ? p->n : p->from + most;
    if (before == none) return true;
    p->to = before;
    p->from = before < most ? 0 : before - most;
    return true;
}

static void write_id(json_writer *w, const cairn_server *s, const page *p, const char *key,
                     size_t at)
{
    json_w_key(w, key);
    if (p->from < p->to)
        json_w_str(w, str_of(models_nth(&s->models, at)->id));
    else
        json_w_null(w);
}

void anthropic_models_list(cairn_server *s, http_req *rq)
{
    json_writer w;
    page p;
    buf b;

    if (!read_page(s, rq, &p)) return;
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_key(&w, "data");
    json_w_arr(&w);
    for (size_t i = p.from; i < p.to; i++) write_model(&w, s, models_nth(&s->models, i));
    json_w_end_arr(&w);
    /* in the direction that is walked */
    json_w_kbool(&w, "has_more", http_query(rq, "before_id").ptr ? p.from > 0 : p.to < p.n);
    write_id(&w, s, &p, "first_id", p.from);
    write_id(&w, s, &p, "last_id", p.to - 1);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}

void anthropic_models_one(cairn_server *s, http_req *rq, cairn_str id)
{
    const served_model *m = models_find(&s->models, id);
    char why[600];
    json_writer w;
    buf b;

    if (!m) {
        models_unknown(&s->models, id, why, sizeof why);
        anthropic_refuse(rq, 404, "model", "model_not_found", why);
        return;
    }
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    write_model(&w, s, m);
    openai_reply(rq, &b);
    buf_deinit(&b);
}
