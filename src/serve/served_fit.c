/* The table of `cairn fit` for the models that are served: what other contexts and counts would take of the budget
   that each engine has.  Programs are compiled for all of them, so a worker does it, the one for long work.  Nothing
   is measured: that would take the cores from those who generate. */
#include "serve/served_fit.h"

#include "base/diag.h"
#include "base/machine.h"
#include "base/str.h"
#include "cairn/fit.h"
#include "serve/endpoint.h"
#include "serve/fit_json.h"
#include "serve/openai_chat_format.h"
#include "serve/prompt.h"

/* The context of a usual request. */
enum { USUAL_CTX = 8192 };

typedef struct rows {
    json_writer *w;
    cairn_fit_row usual; /* the longest of up to USUAL_CTX, for one request; ctx_len 0: none came */
} rows;

static void write_row(void *ctx, const cairn_fit_row *row)
{
    rows *r = ctx;

    fit_json_row(r->w, row, false);
    if (row->max_seqs == 1 && row->ctx_len <= USUAL_CTX && row->ctx_len > r->usual.ctx_len)
        r->usual = *row;
}

/* What one usual request takes, and reads for its last token: bandwidth over that is its speed. */
static void write_prediction(json_writer *w, const cairn_fit_row *usual, const cairn_fit_report *r)
{
    json_w_key(w, "prediction");
    if (!usual->ctx_len) {
        json_w_null(w);
        return;
    }
    json_w_obj(w);
    json_w_kint(w, "context_tokens", usual->ctx_len);
    json_w_kuint(w, "needed_bytes", usual->needed_bytes);
    json_w_kuint(w, "decode_read_bytes", r->token_bytes + usual->cache_bytes);
    json_w_kbool(w, "fits", usual->fits);
    json_w_end_obj(w);
}

static void write_machine(json_writer *w)
{
    uint64_t available, total;

    machine_memory(&available, &total);
    json_w_key(w, "machine");
    json_w_obj(w);
    json_w_kint(w, "cores", machine_cores());
    json_w_kuint(w, "total_bytes", total);
    json_w_kuint(w, "available_bytes", available);
    json_w_end_obj(w);
}

/* As if the engine were opened anew: what it holds itself is not counted as others'. */
static cairn_status write_model(json_writer *w, const models *m, const served_model *one,
                                cairn_diag *dg)
{
    cairn_engine_stats s;
    cairn_model_info info;
    cairn_fit_report r;
    cairn_fit_opts o;

    cairn_engine_stats_init(&s);
    cairn_model_info_init(&info);
    cairn_fit_report_init(&r);
    cairn_fit_opts_init(&o);
    cairn_engine_get_stats(one->engine, &s);
    cairn_model_get_info(one->model, &info);
    o.memory_budget = s.memory_budget;
    o.host_bytes = m->host_bytes;
    o.other_bytes = s.other_bytes;
    o.score_len = CAIRN_SIGNAL_LEN;
    o.no_speed = true;
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(one->id));
    json_w_kstr(w, "cache_codec", str_of(info.kv_codec));
    json_w_kint(w, "model_context_tokens", info.ctx_train);
    json_w_kstr(w, "isa", str_of(info.isa ? info.isa : ""));
    json_w_key(w, "rows");
    json_w_arr(w);
    rows got = {.w = w};
    TRY(cairn_fit(one->model, &o, write_row, &got, &r, dg));
    json_w_end_arr(w);
    fit_json_report(w, &r);
    write_prediction(w, &got.usual, &r);
    json_w_end_obj(w);
    return CAIRN_OK;
}

/* Worker. */
static void make(prompt *p, const models *m, cairn_str body)
{
    cairn_status st = CAIRN_OK;
    cairn_diag dg = {0};
    json_writer w;

    (void)body; /* a GET has none that matters */
    *p = (prompt){.client = p->client};
    buf_init(&p->text, MEM_SERVE);
    w = json_write(&p->text);
    json_w_obj(&w);
    write_machine(&w);
    json_w_key(&w, "models");
    json_w_arr(&w);
    for (size_t i = 0; i < m->n && st == CAIRN_OK; i++) {
        const served_model *one = models_hold_nth(m, i, NULL);
        if (one && one->engine) st = write_model(&w, m, one, &dg);
        served_model_look_away(one);
    }
    if (st != CAIRN_OK) {
        (void)prompt_refuse_as(p, st, NULL, dg.message);
        prompt_deinit(p);
        return;
    }
    json_w_end_arr(&w);
    json_w_end_obj(&w);
}

void fit_serve(cairn_server *s, http_req *rq)
{
    static const endpoint e = {
        .format = &openai_chat_format, .make = make, .just_text = true, .slow = true};

    endpoint_serve(s, rq, &e);
}
