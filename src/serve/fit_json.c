/* Keys end in their units. */
#include "serve/fit_json.h"

void fit_json_row(json_writer *w, const cairn_fit_row *row, bool speed)
{
    json_w_obj(w);
    json_w_kint(w, "context_tokens", row->ctx_len);
    json_w_kint(w, "parallel_requests", row->max_seqs);
    json_w_kuint(w, "needed_bytes", row->needed_bytes);
    json_w_kuint(w, "cache_bytes", row->cache_bytes);
    json_w_kuint(w, "table_bytes", row->table_bytes);
    json_w_kuint(w, "scratch_bytes", row->scratch_bytes);
    json_w_kuint(w, "request_bytes", row->request_bytes);
    if (speed) json_w_knum(w, "decode_tokens_per_second", row->decode_tps);
    json_w_kbool(w, "fits", row->fits);
    json_w_end_obj(w);
}

void fit_json_report(json_writer *w, const cairn_fit_report *r)
{
    json_w_kuint(w, "budget_bytes", r->budget_bytes);
    json_w_kuint(w, "free_bytes", r->free_bytes);
    json_w_kuint(w, "total_bytes", r->total_bytes);
    json_w_kuint(w, "weights_bytes", r->weights_bytes);
    json_w_kuint(w, "other_bytes", r->other_bytes);
    json_w_kuint(w, "decode_read_bytes", r->token_bytes);
    if (r->read_gbs > 0) json_w_knum(w, "read_bandwidth_gbs", r->read_gbs);
    json_w_kint(w, "max_context_tokens", r->max_ctx);
}
