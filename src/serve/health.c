/* GET /health and GET /stats.  The health body is what probes compare byte by byte. */
#include "serve/health.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/openai_wire.h"

void health_serve(cairn_server *s, http_req *rq)
{
    (void)s;
    http_reply(rq, 200, "application/json", STR_LIT("{\"status\": \"ok\"}"));
}

static void write_engine(json_writer *w, const model *m)
{
    cairn_engine_stats st = {.struct_size = sizeof st};

    cairn_engine_get_stats(m->engine, &st);
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(m->id));
    json_w_kint(w, "active_rows", st.n_active);
    json_w_kint(w, "pending_rows", st.n_queued);
    json_w_kint(w, "configured", st.max_seqs);
    json_w_kint(w, "context_window", st.ctx_len);
    json_w_key(w, "submitted_rows");
    json_w_uint(w, st.n_requests);
    json_w_key(w, "cancelled_rows");
    json_w_uint(w, st.n_cancelled);
    json_w_key(w, "failed_rows");
    json_w_uint(w, st.n_failed);
    json_w_key(w, "prompt_tokens");
    json_w_uint(w, st.prompt_tokens);
    json_w_key(w, "generated_tokens");
    json_w_uint(w, st.generated_tokens);
    json_w_key(w, "steps");
    json_w_uint(w, st.steps);
    json_w_key(w, "kv_bytes");
    json_w_uint(w, st.cache_bytes_used);
    json_w_key(w, "kv_budget_bytes");
    json_w_uint(w, st.cache_bytes_total);
    json_w_key(w, "weights_bytes");
    json_w_uint(w, st.weights_bytes);
    json_w_key(w, "scratch_bytes");
    json_w_uint(w, st.scratch_bytes);
    json_w_knum(w, "busy_seconds", st.busy_seconds);
    json_w_end_obj(w);
}

void stats_serve(cairn_server *s, http_req *rq)
{
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_key(&w, "server");
    json_w_obj(&w);
    json_w_kstr(&w, "version", str_of(cairn_version()));
    json_w_kint(&w, "started_at", s->started_unix_s);
    json_w_kint(&w, "uptime_seconds", clock_unix_s() - s->started_unix_s);
    json_w_kint(&w, "connections", (int64_t)http_connections(s->http));
    json_w_key(&w, "requests");
    json_w_uint(&w, s->n_requests);
    json_w_end_obj(&w);
    json_w_key(&w, "models");
    json_w_arr(&w);
    for (size_t i = 0; i < s->models.n; i++) write_engine(&w, &s->models.list[i]);
    json_w_end_arr(&w);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}
