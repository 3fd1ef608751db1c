/* Embeddings: texts are packed into steps, their hidden states pooled as they come, the vector sent through
   the dense modules, normalised and cut.

   A text whose rows see both sides lies in one step whole; others may be cut into steps.  Neither the
   packing nor the cutting changes a bit of a row (docs/numerics.md), and pooling adds rows in the order of
   the text. */
#include "engine/embed.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "engine/guard.h"
#include "engine/pooler.h"
#include "engine/step.h"

enum { MOST_SEQS = 32 /* texts of a step: of 16 rows each they fill it */ };

typedef struct job {
    const model *m;
    const embed_text *text;
    size_t n;
    embed_how how;
    embed_fn fn;
    void *ctx;
    int32_t rows;   /* of a step */
    bool last_only; /* no other row's hidden state is wanted */
    arena a;        /* what follows, as long as the call */
    stepper *s;
    pooler pool;
    prog dense_prog;
    plan dense_plan;
    exec *dense;      /* NULL: no dense modules */
    float *vec, *out; /* [pooled], [max(dim)] */
    seq_id seq[MOST_SEQS];
} job;

int32_t embed_max_ids(const model *m)
{
    const int32_t most = guard_model_ctx(m);
    return m->pool.max_ids ? min_i32(m->pool.max_ids, most) : most;
}

int32_t embed_dim(const model *m)
{
    return m->pool.n_dim ? m->pool.n_dim : model_embed_dim(m);
}

cairn_status embed_check_ids(const model *m, const int32_t *ids, size_t n, cairn_diag *dg)
{
    const int32_t most = guard_model_ctx(m);
    if (n == 0 || n > (size_t)most)
        return diag_set(dg, n ? CAIRN_E_LIMIT : CAIRN_E_ARG,
                        "found a text of %zu tokens; expected 1 to the model's %d positions", n,
                        (int)most);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= m->shape.vocab)
            return diag_set(dg, CAIRN_E_ARG, "found id %d at place %zu; expected 0 to %d",
                            (int)ids[i], i, (int)m->shape.vocab - 1);
        if (ids[i] == m->pad_id)
            return diag_set(dg, CAIRN_E_ARG,
                            "found the padding's id %d at place %zu; expected text", (int)ids[i],
                            i);
    }
    return CAIRN_OK;
}

cairn_status embed_blame(const embed_how *o, size_t i, cairn_status st, cairn_diag *dg)
{
    return o->names ? diag_prefix(dg, st, "%s", o->names[i]) : diag_prefix(dg, st, "text %zu", i);
}

static cairn_status check(const job *j, cairn_diag *dg)
{
    const model *m = j->m;
    const int32_t dim = model_embed_dim(m);
    if (m->pool.n_kind == 0)
        return diag_set(dg, CAIRN_E_UNSUPPORTED,
                        "%s: %s.pooling_type: found none, or rank; expected mean, cls or last",
                        m->src->path, m->arch);
    if (j->how.dimensions < 0 || j->how.dimensions > dim)
        return diag_set(dg, CAIRN_E_ARG, "%d dimensions; expected 1 to the model's %d",
                        (int)j->how.dimensions, (int)dim);
    if (j->how.n_threads < 0 || j->how.n_threads > CAIRN_MAX_THREADS)
        return diag_set(dg, CAIRN_E_ARG, "%d threads; expected 0 to %d", (int)j->how.n_threads,
                        CAIRN_MAX_THREADS);
    for (size_t i = 0; i < j->n; i++) {
        const cairn_status st = embed_check_ids(m, j->text[i].ids, (size_t)j->text[i].n, dg);
        if (st != CAIRN_OK) return embed_blame(&j->how, i, st, dg);
    }
    return CAIRN_OK;
}

static int32_t longest(const job *j)
{
    int32_t n = 1;
    for (size_t i = 0; i < j->n; i++) n = max_i32(n, j->text[i].n);
    return n;
}

static cairn_status compile_dense(job *j, cairn_diag *dg)
{
    const model *m = j->m;
    if (m->pool.n_dense == 0) return CAIRN_OK;
    TRY(model_record_dense(m, &j->a, &j->dense_prog, dg));
    if (plan_make(&j->dense_prog, 1, 1, &j->a, &j->dense_plan) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "dense modules");
    return m->be->compile(m->dev, &j->dense_plan, 1, &j->dense, dg);
}

static cairn_status prepare(job *j, cairn_diag *dg)
{
    const model *m = j->m;
    const int32_t most = longest(j), each = j->how.step_rows ? j->how.step_rows : STEP_ROWS;
    j->rows = m->both ? max_i32(most, each) : each;
    j->last_only = !m->pool.skip_prompt;
    for (int32_t i = 0; i < m->pool.n_kind; i++)
        if (m->pool.kind[i] != POOL_LAST) j->last_only = false;
    const stepper_opts so = {
        .max_rows = j->rows,
        .max_out = j->last_only ? min_i32(MOST_SEQS, j->rows) : j->rows,
        .max_seqs = MOST_SEQS,
        .ctx_len = most,
        .codec = stepper_plain_codec(m), /* vectors are kept: they must not depend on it */
        .hidden = true};
    /* One text of the greatest length, or a step of many short ones, each with its last block begun. */
    const int32_t many = j->rows + MOST_SEQS * KV_BLOCK;
    const uint64_t room = cache_bytes(&m->cache, &so.codec, so.max_rows, most) +
                          cache_bytes(&m->cache, &so.codec, so.max_rows, many);
    const size_t wide = (size_t)max_i32(model_pooled_dim(m), model_embed_dim(m));
    j->vec = arena_alloc(&j->a, wide * sizeof *j->vec);
    j->out = arena_alloc(&j->a, wide * sizeof *j->out);
    if (!j->vec || !j->out || pooler_init(&j->pool, &m->pool, m->shape.hidden, &j->a) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "vectors of %zu elements", wide);
    TRY(stepper_new(m, &so, &j->s, dg));
    TRY(stepper_add_cache(j->s, most, (stepper_room){.max_bytes = room}, dg));
    return compile_dense(j, dg);
}

/* Hidden states of rows pos0 … pos0 + n - 1 of a text, the first of them output number out0. */
static void pool_rows(job *j, const embed_text *t, int32_t out0, int32_t pos0, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (pos0 + i >= t->skip) pooler_row(&j->pool, stepper_logits(j->s, out0 + i), pos0 + i);
}

static bool goes_on(const job *j)
{
    return !j->how.go_on || j->how.go_on(j->how.go_on_ctx);
}

static cairn_status stopped(cairn_diag *dg)
{
    return diag_set(dg, CAIRN_E_CANCELLED, "stopped");
}

static cairn_status finish(job *j, size_t i, bool *more, cairn_diag *dg)
{
    const pool_spec *p = &j->m->pool;
    const int32_t dim = j->how.dimensions ? j->how.dimensions : embed_dim(j->m);
    float *v = j->vec;
    pooler_end(&j->pool, v);
    if (j->dense) {
        const step s = {.n_rows = 1, .n_out = 1, .input = j->vec, .logits = j->out};
        step_run(j->m, j->dense, &s);
        v = j->out;
    }
    if (p->normalise) pool_normalise(v, model_embed_dim(j->m));
    if (p->normalise && j->how.dimensions) pool_normalise(v, dim);
    for (int32_t k = 0; k < dim; k++)
        if (!isfinite(v[k])) {
            (void)diag_set(dg, CAIRN_E_CORRUPT, "element %d is not finite; expected finite weights",
                           (int)k);
            return diag_prefix(dg, embed_blame(&j->how, i, CAIRN_E_CORRUPT, dg), "%s",
                               j->m->src->path);
        }
    *more = j->fn(j->ctx, i, v, dim);
    return CAIRN_OK;
}

static int32_t wanted(const job *j, int32_t rows, bool ends)
{
    return !j->last_only ? rows : ends ? 1 : 0;
}

/* A text that needs several steps. */
static cairn_status run_long(job *j, size_t i, bool *more, cairn_diag *dg)
{
    const embed_text *t = &j->text[i];
    seq_id q;
    const cairn_status st = cache_open(stepper_cache(j->s), t->n, &q);
    if (st != CAIRN_OK) return diag_set(dg, st, "no cache for a text of %d tokens", (int)t->n);
    pooler_begin(&j->pool);
    bool on = true;
    for (int32_t at = 0; at < t->n && (on = goes_on(j)); at += j->rows) {
        const int32_t rows = min_i32(j->rows, t->n - at);
        const int32_t outs = wanted(j, rows, at + rows == t->n);
        stepper_begin(j->s);
        stepper_add(j->s, q, t->ids + at, rows, outs, t->n);
        stepper_run(j->s);
        pool_rows(j, t, 0, at + rows - outs, outs);
    }
    cache_close(stepper_cache(j->s), q);
    return on ? finish(j, i, more, dg) : stopped(dg);
}

/* As many texts from the i-th on as fit in a step. */
static size_t pack(job *j, size_t i)
{
    const size_t left = min_size(j->n - i, MOST_SEQS);
    int32_t rows = 0;
    size_t k = 0;
    stepper_begin(j->s);
    for (; k < left && j->text[i + k].n <= j->rows - rows; k++) {
        const embed_text *t = &j->text[i + k];
        if (cache_open(stepper_cache(j->s), t->n, &j->seq[k]) != CAIRN_OK) break;
        stepper_add(j->s, j->seq[k], t->ids, t->n, wanted(j, t->n, true), t->n);
        rows += t->n;
    }
    return k;
}

static cairn_status run_step(job *j, size_t *i, bool *more, cairn_diag *dg)
{
    const size_t first = *i, k = pack(j, first);
    cairn_status st = CAIRN_OK;
    int32_t out = 0;
    if (k == 0) return diag_set(dg, CAIRN_E_INTERNAL, "no cache for text %zu", first);
    stepper_run(j->s);
    for (size_t n = 0; n < k; n++) cache_close(stepper_cache(j->s), j->seq[n]);
    for (; *i < first + k && *more && st == CAIRN_OK; ++*i) {
        const embed_text *t = &j->text[*i];
        const int32_t outs = wanted(j, t->n, true);
        pooler_begin(&j->pool);
        pool_rows(j, t, out, t->n - outs, outs);
        st = finish(j, *i, more, dg);
        out += outs;
    }
    return st;
}

static cairn_status run_all(job *j, cairn_diag *dg)
{
    bool more = true;
    for (size_t i = 0; i < j->n && more;) {
        if (!goes_on(j)) return stopped(dg);
        if (j->text[i].n > j->rows)
            TRY(run_long(j, i++, &more, dg));
        else
            TRY(run_step(j, &i, &more, dg));
    }
    return CAIRN_OK;
}

cairn_status embed_run(const model *m, const embed_text *text, size_t n, const embed_how *o,
                       embed_fn fn, void *ctx, cairn_diag *dg)
{
    cairn_status st;
    job j = {.m = m, .text = text, .n = n, .how = *o, .fn = fn, .ctx = ctx};
    TRY(check(&j, dg));
    if (n == 0) return CAIRN_OK;
    arena_init(&j.a, MEM_ENGINE);
    TRY_GOTO(prepare(&j, dg), out);
    if (o->n_threads) m->be->limit_threads(m->dev, o->n_threads);
    stepper_busy(j.s, true);
    st = run_all(&j, dg);
    stepper_busy(j.s, false);
    if (o->n_threads) m->be->limit_threads(m->dev, 0);
out:
    if (j.dense) m->be->exec_free(j.dense);
    stepper_free(j.s);
    arena_deinit(&j.a);
    return st;
}
