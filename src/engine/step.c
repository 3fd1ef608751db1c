/* Batch → program → run.  The forward pass is recorded once; it is planned and compiled for a few
   row counts (buckets), so that a decode step does not walk buffers laid out for a long prefill.
   Row counts are data to the arithmetic: the bucket cannot change a bit of any row. */
#include "engine/step.h"

#include <assert.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/thread.h"
#include "tensor/fuse.h"

/* Row counts that programs are compiled for; the largest is the stepper's own.  Factors of eight
   keep the scratch of all of them within 1.15 times the largest. */
static const int32_t bucket_rows[] = {1, 8, 64};
enum { MAX_BUCKETS = STEPPER_SHAPES };

typedef struct bucket {
    int32_t max_rows;
    plan plan;
    exec *exec;
} bucket;

struct stepper {
    const model *m;
    stepper_opts opts;
    arena a; /* program, plans, step arrays: as long as the stepper */
    prog prog;
    bucket bucket[MAX_BUCKETS];
    int32_t n_bucket, vocab, switch_len;
    cache *cache;
    size_t logits_bytes, tap_bytes;
    float *logits;    /* [max_out][vocab] */
    float *tap_space; /* [n_tap][max_rows][hidden] */
    float **tap;
    /* the step being put together */
    step step;
    int32_t *id, *pos, *out_row;
    segment *seg;
    seq_id *seq;
};

int32_t stepper_outs(int32_t max_seqs, int32_t max_rows)
{
    return min_i32(max_seqs + STEP_SCORED, max_rows);
}

kv_scheme stepper_codec(const model *m)
{
    return m->kv ? *m->kv : stepper_plain_codec(m);
}

kv_scheme stepper_plain_codec(const model *m)
{
    return m->compute == CAIRN_COMPUTE_F32 ? kv_plain(KV_F32) : kv_plain(KV_F16);
}

static cairn_status compile(stepper *s, int32_t max_rows, cairn_diag *dg)
{
    bucket *b = &s->bucket[s->n_bucket];
    b->max_rows = max_rows;
    const int32_t max_out = min_i32(max_rows, s->opts.max_out);
    if (plan_make(&s->prog, max_rows, max_out, &s->a, &b->plan) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for the plan of %d rows", max_rows);
    TRY(s->m->be->compile(s->m->dev, &b->plan, s->opts.ctx_len, &b->exec, dg));
    s->n_bucket++;
    return CAIRN_OK;
}

static cairn_status compile_all(stepper *s, cairn_diag *dg)
{
    TRY((s->opts.hidden ? model_record_hidden : model_record)(s->m, FUSE_ALL, s->opts.taps, &s->a,
                                                              &s->prog, dg));
    assert(s->prog.logits != VAL_NONE);
    s->vocab = s->prog.value[s->prog.logits].cols;
    for (int32_t i = 0; i < s->prog.n_rope; i++) {
        const int32_t at = s->prog.rope[i].switch_len;
        if (at > 0 && (s->switch_len == 0 || at < s->switch_len)) s->switch_len = at;
    }
    for (size_t i = 0; i < sizeof bucket_rows / sizeof *bucket_rows; i++)
        if (bucket_rows[i] < s->opts.max_rows) TRY(compile(s, bucket_rows[i], dg));
    return compile(s, s->opts.max_rows, dg);
}

static cairn_status make_taps(stepper *s, cairn_diag *dg)
{
    const size_t n_tap = (size_t)s->prog.n_tap, hidden = (size_t)s->m->shape.hidden;
    const size_t stride = (size_t)s->opts.max_rows * hidden;
    if (!mul_size(n_tap * stride, sizeof(float), &s->tap_bytes))
        return diag_set(dg, CAIRN_E_LIMIT,
                        "%zu taps of %d rows: expected fewer bytes than a size can be", n_tap,
                        s->opts.max_rows);
    s->tap_space = mem_map(s->tap_bytes, MEM_SCRATCH);
    s->tap = arena_alloc(&s->a, n_tap * sizeof *s->tap);
    if (!s->tap_space || !s->tap)
        return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for hidden states", s->tap_bytes);
    for (size_t i = 0; i < n_tap; i++) s->tap[i] = s->tap_space + i * stride;
    return CAIRN_OK;
}

static cairn_status make_buffers(stepper *s, cairn_diag *dg)
{
    const size_t rows = (size_t)s->opts.max_rows, outs = (size_t)s->opts.max_out;
    const size_t seqs = (size_t)s->opts.max_seqs;
    s->id = arena_alloc(&s->a, rows * sizeof *s->id);
    s->pos = arena_alloc(&s->a, rows * sizeof *s->pos);
    s->out_row = arena_alloc(&s->a, outs * sizeof *s->out_row);
    s->seg = arena_alloc(&s->a, seqs * sizeof *s->seg);
    s->seq = arena_alloc(&s->a, seqs * sizeof *s->seq);
    if (!mul_size(outs * (size_t)s->vocab, sizeof(float), &s->logits_bytes))
        return diag_set(dg, CAIRN_E_LIMIT,
                        "logits of %zu rows: expected fewer bytes than a size can be", outs);
    s->logits = mem_map(s->logits_bytes, MEM_SCRATCH);
    if (!s->id || !s->pos || !s->out_row || !s->seg || !s->seq || !s->logits)
        return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for logits of %zu rows", s->logits_bytes,
                        outs);
    return s->opts.taps ? make_taps(s, dg) : CAIRN_OK;
}

cairn_status stepper_new(const model *m, const stepper_opts *o, stepper **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    assert(o->max_rows > 0 && o->max_out > 0 && o->max_out <= o->max_rows && o->max_seqs > 0);
    if (!m->dev)
        return diag_set(dg, CAIRN_E_ARG,
                        "the model was opened without its weights; expected one opened with them");
    stepper *s = mem_calloc(1, sizeof *s, MEM_ENGINE);
    if (!s) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a stepper");
    s->m = m;
    s->opts = *o;
    arena_init(&s->a, MEM_ENGINE);
    TRY_GOTO(compile_all(s, dg), out);
    TRY_GOTO(make_buffers(s, dg), out);
    *out = s;
    s = NULL;
out:
    stepper_free(s);
    return st;
}

void stepper_free(stepper *s)
{
    if (!s) return;
    cache_free(s->cache);
    mem_unmap(s->tap_space, s->tap_bytes, MEM_SCRATCH);
    mem_unmap(s->logits, s->logits_bytes, MEM_SCRATCH);
    for (int32_t i = 0; i < s->n_bucket; i++) s->m->be->exec_free(s->bucket[i].exec);
    arena_deinit(&s->a);
    mem_free(s);
}

cairn_status stepper_add_cache(stepper *s, int32_t ctx_len, stepper_room room, cairn_diag *dg)
{
    const stepper_opts *o = &s->opts;
    const cachespec *spec = &s->m->cache;
    assert(!s->cache && ctx_len <= o->ctx_len);
    if (!room.max_bytes)
        room.max_bytes = (uint64_t)o->max_seqs * cache_bytes(spec, &o->codec, o->max_rows, ctx_len);
    const cache_opts co = {o->codec,       o->max_seqs,      ctx_len,          o->max_rows,
                           room.max_bytes, room.prefix_room, room.prefix_bytes};
    return cache_new(spec, &co, &s->cache, dg);
}

cache *stepper_cache(stepper *s)
{
    return s->cache;
}

size_t stepper_scratch(const stepper *s)
{
    size_t sum = s->logits_bytes + s->tap_bytes;
    for (int32_t i = 0; i < s->n_bucket; i++) sum += s->m->be->exec_bytes(s->bucket[i].exec);
    return sum;
}

stepper_shape stepper_shape_of(const stepper *s)
{
    stepper_shape out = {.n = s->n_bucket};
    for (int32_t i = 0; i < s->n_bucket; i++) out.rows[i] = s->bucket[i].max_rows;
    return out;
}

int32_t stepper_switch_len(const stepper *s)
{
    return s->switch_len;
}

void stepper_begin(stepper *s)
{
    s->step = (step){.id = s->id,
                     .pos = s->pos,
                     .out_row = s->out_row,
                     .seg = s->seg,
                     .kv = cache_layers(s->cache),
                     .n_group = cache_groups(s->cache),
                     .logits = s->logits,
                     .tap = s->tap,
                     .stop = s->opts.stop};
}

int32_t stepper_add(stepper *s, seq_id q, const int32_t *ids, int32_t n, int32_t n_out,
                    int32_t known_len)
{
    step *t = &s->step;
    assert(n > 0 && t->n_rows + n <= s->opts.max_rows && t->n_seg < s->opts.max_seqs);
    assert(n_out >= 0 && n_out <= n && t->n_out + n_out <= s->opts.max_out);
    const int32_t pos0 = cache_len(s->cache, q), out0 = t->n_out;
    assert(known_len >= pos0 + n);
    cache_reserve(s->cache, q, n);
    s->seg[t->n_seg] = (segment){t->n_rows,
                                 n,
                                 out0,
                                 n_out,
                                 pos0,
                                 known_len,
                                 cache_blocks(s->cache, q),
                                 cache_state(s->cache, q),
                                 cache_state_before(s->cache, q)};
    s->seq[t->n_seg++] = q;
    for (int32_t i = 0; i < n; i++) {
        s->id[t->n_rows + i] = ids[i];
        s->pos[t->n_rows + i] = pos0 + i;
    }
    for (int32_t i = n - n_out; i < n; i++) s->out_row[t->n_out++] = t->n_rows + i;
    t->n_rows += n;
    return out0;
}

static void take_device(const model *m)
{
    if (m->running) mutex_lock(m->running);
}

static void leave_device(const model *m)
{
    if (m->running) mutex_unlock(m->running);
}

void step_run(const model *m, exec *x, const step *s)
{
    take_device(m);
    m->be->run(x, s);
    leave_device(m);
}

const prog *stepper_prog(const stepper *s)
{
    return &s->prog;
}

const step *stepper_step(const stepper *s)
{
    return &s->step;
}

void stepper_time_ops(stepper *s, uint64_t *ns)
{
    for (int32_t i = 0; i < s->n_bucket; i++) s->m->be->time_ops(s->bucket[i].exec, ns);
}

void stepper_busy(stepper *s, bool on)
{
    take_device(s->m);
    s->m->be->busy(s->m->dev, on);
    leave_device(s->m);
}

void stepper_each(stepper *s, int32_t n, dev_task fn, void *ctx)
{
    take_device(s->m);
    s->m->be->each(s->m->dev, n, fn, ctx);
    leave_device(s->m);
}

bool stepper_run(stepper *s)
{
    assert(s->step.n_rows > 0);
    int32_t i = 0;
    while (s->bucket[i].max_rows < s->step.n_rows) i++;
    step_run(s->m, s->bucket[i].exec, &s->step);
    const bool whole = !s->opts.stop || !note_get(s->opts.stop);
    for (int32_t k = 0; k < s->step.n_seg; k++)
        cache_commit(s->cache, s->seq[k], whole ? s->seg[k].n_rows : 0);
    return whole;
}

float *stepper_logits(stepper *s, int32_t i_out)
{
    assert(i_out >= 0 && i_out < s->step.n_out);
    return s->logits + (size_t)i_out * (size_t)s->vocab;
}

const float *stepper_tap(const stepper *s, int32_t i_tap, int32_t i_row)
{
    assert(s->tap && i_tap < s->prog.n_tap && i_row < s->step.n_rows);
    return s->tap[i_tap] + (size_t)i_row * (size_t)s->m->shape.hidden;
}
