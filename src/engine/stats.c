/* Counters: the engine thread counts, and shows a copy after each turn to whoever asks. */
#include "engine/engine_priv.h"

void stats_count_done(engine *e, cairn_finish finish)
{
    switch (finish) {
    case CAIRN_FINISH_CANCELLED:
        e->stats.n_cancelled++;
        break;
    case CAIRN_FINISH_ERROR:
        e->stats.n_failed++;
        break;
    case CAIRN_FINISH_STOP:
    case CAIRN_FINISH_LENGTH:
        break;
    }
}

void stats_show(engine *e)
{
    cairn_engine_stats *s = &e->stats;
    const cache *c = stepper_cache(e->stepper);
    s->n_active = e->n_active;
    s->cache_bytes_used = cache_used(c);
    s->cache_bytes_total = cache_total(c);
    s->prefix_bytes_used = cache_kept(c);
    s->prefix_entries = (uint32_t)cache_nodes(c);
    store_stats disk;
    if (cache_disk_stats(c, &disk)) {
        s->disk_bytes = disk.bytes;
        s->disk_entries = disk.n_entry;
        s->disk_read_only = disk.read_only;
        s->disk = true;
        s->disk_bytes_limit = disk.max_bytes;
        s->disk_pending_bytes = disk.queued_bytes;
        s->disk_read = disk.n_read;
        s->disk_written = disk.n_written;
        s->disk_failed = disk.n_failed;
        s->disk_evicted = disk.n_evicted;
        s->disk_dropped = disk.n_no_room;
    }
    if (e->ckpt) {
        ckpt_stats saved;
        ckpt_get_stats(e->ckpt, &saved);
        s->checkpoints_written = saved.n_written;
        s->checkpoints_failed = saved.n_failed;
        s->checkpoint_bytes = saved.bytes;
        s->checkpoint_files = saved.n_file;
    }
    s->busy_seconds = (double)e->busy_ns * 1e-9;
    mutex_lock(&e->mu);
    e->shown = *s;
    mutex_unlock(&e->mu);
}

static void count_layers(const engine *e, cairn_engine_stats *out)
{
    out->n_global_layers = out->n_window_layers = 0;
    for (int32_t i = 0; i < e->m->cache.n_layer; i++) {
        const cache_layer_spec *l = &e->m->cache.layer[i];
        if (l->n_kv_head == 0) continue;
        *(l->window ? &out->n_window_layers : &out->n_global_layers) += 1;
    }
}

void engine_get_stats(engine *e, cairn_engine_stats *out)
{
    const uint32_t size = out->struct_size;
    mutex_lock(&e->mu);
    *out = e->shown;
    out->request_bytes = e->request_bytes;
    out->n_queued = e->n_live - e->shown.n_active;
    mutex_unlock(&e->mu);
    if (out->n_queued < 0) out->n_queued = 0; /* a request ended since the last turn */
    out->struct_size = size;
    out->max_seqs = e->max_seqs;
    out->max_queue = e->max_queue;
    out->ctx_len = e->ctx_len;
    out->weights_bytes = e->fit.weights_bytes;
    out->scratch_bytes = e->fit.scratch_bytes;
    out->memory_budget = e->fit.budget;
    out->memory_reserved = e->fit.reserved;
    out->other_bytes = e->fit.other_bytes;
    out->table_bytes = e->fit.overhead;
    out->host_bytes = e->fit.host_bytes;
    out->request_bytes_limit = e->fit.request_bytes;
    out->method = e->plan.method->name;
    out->cache_layout = e->plan.layout;
    out->program = e->plan.program;
    out->program_rows = e->plan.max_rows;
    out->why_not_faster = e->plan.why;
    out->prefix_bytes_limit = e->prefix_bytes;
    count_layers(e, out);
    out->checkpoint_every = e->checkpoint_every;
    out->kv_codec = e->scheme.text.ptr;
}
