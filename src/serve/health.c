/* GET /health and GET /stats.  The health body is what probes compare byte by byte. */
#include "serve/health.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "serve/openai_wire.h"

void health_serve(cairn_server *s, http_req *rq)
{
    (void)s;
    http_reply(rq, 200, "application/json", STR_LIT("{\"status\": \"ok\"}"));
}

/* One budget, and who has how much of it. */
static void write_memory(json_writer *w, const cairn_engine_stats *st)
{
    json_w_key(w, "memory");
    json_w_obj(w);
    json_w_kuint(w, "budget_bytes", st->memory_budget);
    json_w_kuint(w, "reserved_bytes", st->memory_reserved);
    json_w_kuint(w, "weights_bytes", st->weights_bytes);
    json_w_kuint(w, "scratch_bytes", st->scratch_bytes);
    json_w_kuint(w, "cache_bytes", st->cache_bytes_total);
    json_w_kuint(w, "table_bytes", st->table_bytes);
    json_w_kuint(w, "request_bytes", st->request_bytes_limit);
    json_w_kuint(w, "request_used_bytes", st->request_bytes);
    json_w_kuint(w, "server_bytes", st->host_bytes);
    json_w_kuint(w, "other_bytes", st->other_bytes);
    json_w_end_obj(w);
}

/* How a request that asks for nothing is computed. */
static void write_plan(json_writer *w, const cairn_engine_stats *st)
{
    char program[17];
    (void)snprintf(program, sizeof program, "%016llx", (unsigned long long)st->program);
    json_w_key(w, "plan");
    json_w_obj(w);
    json_w_kstr(w, "method", str_of(st->method ? st->method : ""));
    json_w_kstr(w, "cache_layout", str_of(st->cache_layout ? st->cache_layout : ""));
    json_w_kstr(w, "kv_codec", str_of(st->kv_codec));
    json_w_kstr(w, "program", str_of(program));
    json_w_kint(w, "program_rows", st->program_rows);
    json_w_kstr(w, "why_not_faster", str_of(st->why_not_faster ? st->why_not_faster : ""));
    json_w_end_obj(w);
}

/* What prompts found in memory. */
static void write_prompt_cache(json_writer *w, const cairn_engine_stats *st)
{
    json_w_key(w, "prompt_cache");
    json_w_obj(w);
    json_w_kuint(w, "entries", st->prefix_entries);
    json_w_kuint(w, "bytes", st->prefix_bytes_used);
    json_w_kuint(w, "max_bytes", st->prefix_bytes_limit);
    json_w_kuint(w, "hits", st->prefix_hits);
    json_w_kuint(w, "misses", st->prefix_misses);
    json_w_end_obj(w);
}

/* As what keys and values are kept, and in how many layers. */
static void write_kv_quant(json_writer *w, const cairn_engine_stats *st)
{
    json_w_key(w, "kv_quant");
    json_w_obj(w);
    json_w_kstr(w, "mode", str_of(st->kv_codec));
    json_w_kint(w, "layers", st->n_global_layers + st->n_window_layers);
    json_w_key(w, "attention");
    json_w_obj(w);
    json_w_kint(w, "global", st->n_global_layers);
    json_w_kint(w, "sliding_window", st->n_window_layers);
    json_w_end_obj(w);
    json_w_end_obj(w);
}

/* What a request may ask for.  Usable: what requests, caches and their tables share. */
static void write_admission(json_writer *w, const cairn_engine_stats *st)
{
    const uint64_t taken = st->weights_bytes + st->scratch_bytes + st->other_bytes + st->host_bytes;

    json_w_key(w, "admission");
    json_w_obj(w);
    json_w_kint(w, "max_safe_context", st->ctx_len);
    json_w_kuint(w, "memory_budget_bytes", st->memory_budget);
    json_w_kuint(w, "usable_bytes", st->memory_budget > taken ? st->memory_budget - taken : 0);
    json_w_kuint(w, "weights_bytes", st->weights_bytes);
    json_w_end_obj(w);
}

/* The folder for prefixes, in runs of up to 1,024 positions; null where there is none. */
static void write_ssd_cache(json_writer *w, const cairn_engine_stats *st)
{
    json_w_key(w, "ssd_cache");
    if (!st->disk) {
        json_w_null(w);
        return;
    }
    json_w_obj(w);
    json_w_kuint(w, "entries", st->disk_entries);
    json_w_kuint(w, "bytes", st->disk_bytes);
    json_w_kuint(w, "max_bytes", st->disk_bytes_limit);
    json_w_kuint(w, "restores", st->disk_read);
    json_w_kuint(w, "spills", st->disk_written);
    json_w_kuint(w, "failed_spills", st->disk_failed);
    json_w_kuint(w, "dropped_spills", st->disk_dropped);
    json_w_kuint(w, "evictions", st->disk_evicted);
    json_w_kuint(w, "pending_spill_bytes", st->disk_pending_bytes);
    json_w_kbool(w, "read_only", st->disk_read_only);
    json_w_end_obj(w);
}

/* Who runs together. */
static void write_batch(json_writer *w, const cairn_engine_stats *st)
{
    json_w_key(w, "batch");
    json_w_obj(w);
    json_w_kint(w, "configured", st->max_seqs);
    json_w_kbool(w, "batched", st->max_seqs > 1);
    json_w_kstr(w, "mode", st->max_seqs > 1 ? STR_LIT("batch") : STR_LIT("serial"));
    json_w_kint(w, "active_rows", st->n_active);
    json_w_kint(w, "pending_rows", st->n_queued);
    json_w_kuint(w, "submitted_rows", st->n_requests);
    json_w_kuint(w, "kv_bytes", st->cache_bytes_used);
    json_w_kuint(w, "kv_budget_bytes", st->cache_bytes_total);
    json_w_end_obj(w);
}

/* What stands under each engine, and at the top of the model that answers where none is named. */
static void write_shapes(json_writer *w, const cairn_engine_stats *st)
{
    write_batch(w, st);
    write_prompt_cache(w, st);
    write_kv_quant(w, st);
    write_admission(w, st);
    write_ssd_cache(w, st);
}

/* Of the model that answers where none is named, while it is loaded. */
static void write_default(json_writer *w, const served_model *m)
{
    static const char *const keys[] = {"batch", "prompt_cache", "kv_quant", "admission",
                                       "ssd_cache"};
    cairn_engine_stats st;

    for (size_t i = 0; !m->engine && i < sizeof keys / sizeof keys[0]; i++) {
        json_w_key(w, keys[i]);
        json_w_null(w);
    }
    if (!m->engine) return;
    cairn_engine_stats_init(&st);
    cairn_engine_get_stats(m->engine, &st);
    write_shapes(w, &st);
}

static void write_engine(json_writer *w, const served_model *m)
{
    cairn_engine_stats st;

    cairn_engine_stats_init(&st);
    cairn_engine_get_stats(m->engine, &st);
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(m->id));
    json_w_kint(w, "active_rows", st.n_active);
    json_w_kint(w, "pending_rows", st.n_queued);
    json_w_kint(w, "configured", st.max_seqs);
    json_w_kint(w, "context_window", st.ctx_len);
    json_w_kuint(w, "submitted_rows", st.n_requests);
    json_w_kuint(w, "cancelled_rows", st.n_cancelled);
    json_w_kuint(w, "failed_rows", st.n_failed);
    json_w_kuint(w, "prompt_tokens", st.prompt_tokens);
    json_w_kuint(w, "generated_tokens", st.generated_tokens);
    json_w_kuint(w, "steps", st.steps);
    json_w_kuint(w, "kv_bytes", st.cache_bytes_used);
    json_w_kuint(w, "kv_budget_bytes", st.cache_bytes_total);
    json_w_kuint(w, "cached_tokens", st.cached_tokens);
    json_w_kuint(w, "prefix_bytes", st.prefix_bytes_used);
    json_w_kuint(w, "prefix_budget_bytes", st.prefix_bytes_limit);
    json_w_kuint(w, "disk_bytes", st.disk_bytes);
    json_w_kuint(w, "disk_entries", st.disk_entries);
    json_w_kbool(w, "disk_read_only", st.disk_read_only);
    json_w_kuint(w, "checkpoint_files", st.checkpoint_files);
    json_w_kuint(w, "checkpoint_bytes", st.checkpoint_bytes);
    json_w_kuint(w, "checkpoints_written", st.checkpoints_written);
    json_w_kuint(w, "checkpoints_failed", st.checkpoints_failed);
    json_w_kuint(w, "checkpoints_refused", st.checkpoints_refused);
    json_w_kuint(w, "resumed_requests", st.n_resumed);
    json_w_kuint(w, "replayed_tokens", st.replayed_tokens);
    json_w_kstr(w, "kv_codec", str_of(st.kv_codec));
    json_w_kuint(w, "weights_bytes", st.weights_bytes);
    json_w_kuint(w, "scratch_bytes", st.scratch_bytes);
    json_w_knum(w, "busy_seconds", st.busy_seconds);
    write_memory(w, &st);
    write_plan(w, &st);
    write_shapes(w, &st);
    json_w_end_obj(w);
}

static void write_kept(json_writer *w, responses_store *r)
{
    json_w_key(w, "response_store");
    json_w_obj(w);
    mutex_lock(&r->mu);
    json_w_kuint(w, "entries", r->n);
    json_w_kuint(w, "bytes", r->bytes);
    json_w_kuint(w, "max_bytes", r->max_bytes);
    mutex_unlock(&r->mu);
    json_w_kint(w, "ttl_ms", RESPONSES_TTL_MS);
    json_w_end_obj(w);
}

/* All models, loaded or not. */
static void write_known(json_writer *w, const models *all)
{
    json_w_key(w, "known_models");
    json_w_arr(w);
    for (size_t i = 0; i < all->n; i++) {
        const served_model *m = models_nth(all, i);
        const model_use u = served_model_use(m);
        json_w_obj(w);
        json_w_kstr(w, "id", str_of(m->id));
        json_w_kstr(w, "state", str_of(served_model_state_word(m)));
        json_w_kbool(w, "pinned", u.pinned);
        json_w_kuint(w, "uses", u.refs);
        json_w_kuint(w, "bytes", u.bytes);
        json_w_kuint(w, "loads", u.n_loads);
        json_w_kuint(w, "failed_loads", u.n_failed);
        json_w_end_obj(w);
    }
    json_w_end_arr(w);
}

void stats_serve(cairn_server *s, http_req *rq)
{
    const served_model *unnamed = models_unnamed(&s->models);
    buf b;
    json_writer w;

    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    json_w_obj(&w);
    json_w_key(&w, "server");
    json_w_obj(&w);
    json_w_kstr(&w, "owner", STR_LIT("serve"));
    json_w_kstr(&w, "model", str_of(unnamed->id));
    json_w_kstr(&w, "version", str_of(cairn_version()));
    json_w_kint(&w, "started_at", s->started_unix_s);
    json_w_kint(&w, "uptime_seconds", (int64_t)((clock_ns() - s->started_ns) / 1000000000));
    json_w_kint(&w, "connections", (int64_t)http_connections(s->http));
    json_w_kuint(&w, "requests", s->n_requests);
    json_w_kuint(&w, "pending_prompts", jobs_live(&s->jobs));
    json_w_end_obj(&w);
    write_kept(&w, &s->responses);
    write_default(&w, unnamed);
    json_w_key(&w, "models");
    json_w_arr(&w);
    for (size_t i = 0; i < s->models.n; i++)
        if (models_nth(&s->models, i)->engine) write_engine(&w, models_nth(&s->models, i));
    json_w_end_arr(&w);
    write_known(&w, &s->models);
    json_w_end_obj(&w);
    openai_reply(rq, &b);
    buf_deinit(&b);
}
