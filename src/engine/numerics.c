/* The check of the numerics contract: the bits of a position's logits do not depend on how they were
   computed.  The reference is the whole prompt alone in one step; every variant computes the same
   positions in another way and is compared bit by bit. */
#include "engine/forward.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/half.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/thread.h"
#include "cache/store.h"
#include "cairn/model.h"
#include "engine/embed.h"
#include "engine/step.h"
#include "tensor/backend.h"
#include "tensor/kvview.h"
#include "tensor/numerics.h"
#include "tensor/source.h"

enum {
    REFERENCE_BYTES = 512 << 20, /* longer prompts are compared at their last positions */
    MAX_STRANGERS = 3,
    STRANGER_LEN = 203, /* odd: ends in the middle of blocks and tiles */
    SHORT_PROMPT = 512,
    FLUSH_MS = 120000 /* some MB to any disk */
};

typedef struct variant {
    const char *name;
    int32_t chunk;       /* rows a step; 0: the whole prompt */
    int32_t n_strangers; /* other sequences in the same steps */
    int32_t before;      /* how many of them stand before ours in a step */
    bool few_outputs;    /* only the last row of each chunk goes through the head */
    int32_t n_threads;   /* 0: all */
} variant;

static const variant variants[] = {
    {"chunks of 1", 1, 0, 0, false, 0},
    {"chunks of 2", 2, 0, 0, false, 0},
    {"chunks of 3", 3, 0, 0, false, 0},
    {"chunks of 7", 7, 0, 0, false, 0},
    {"chunks of 64", 64, 0, 0, false, 0},
    {"chunks of 512", 512, 0, 0, false, 0},
    {"whole, last row only", 0, 0, 0, true, 0},
    {"chunks of 37, last rows only", 37, 0, 0, true, 0},
    {"chunks of 19, 1 stranger before", 19, 1, 1, false, 0},
    {"chunks of 64, 2 strangers around", 64, 2, 1, false, 0},
    {"chunks of 5, 3 strangers around", 5, 3, 2, false, 0},
    {"chunks of 130, 3 strangers after, last rows only", 130, 3, 0, true, 0},
};

/* Rows of each stranger in each step: odd, so that they reach every offset. */
static int32_t stranger_rows(int32_t i)
{
    static const int32_t rows[MAX_STRANGERS] = {1, 3, 17};
    assert(i >= 0 && i < MAX_STRANGERS);
    return rows[i];
}

typedef struct check {
    const model *m;
    const int32_t *ids;
    int32_t n, first; /* positions compared: first … n-1 */
    float *ref;       /* [n - first][vocab] */
    size_t ref_bytes;
    void (*say)(void *ctx, const char *line);
    void *ctx;
    cairn_numerics_report *report;
} check;

typedef struct stranger {
    bool open;
    seq_id seq;
    int32_t at, len, born;
    int32_t id[STRANGER_LEN];
} stranger;

static void note_difference(check *c, const variant *v, int32_t pos, size_t i, float found,
                            float expected)
{
    (void)snprintf(c->report->first, sizeof c->report->first,
                   "%s: position %d, logit %zu: %.9g (%08x); alone and whole %.9g (%08x)", v->name,
                   pos, i, (double)found, f32_bits(found), (double)expected, f32_bits(expected));
}

static void compare_row(check *c, const variant *v, int32_t pos, const float *row)
{
    const size_t vocab = (size_t)c->m->shape.vocab;
    const float *ref = c->ref + (size_t)(pos - c->first) * vocab;
    c->report->n_comparisons += vocab;
    if (memcmp(row, ref, vocab * sizeof *row) == 0) return;
    for (size_t i = 0; i < vocab; i++) {
        if (f32_bits(row[i]) == f32_bits(ref[i])) continue;
        if (c->report->n_different++ == 0) note_difference(c, v, pos, i, row[i], ref[i]);
    }
}

/* A stranger's rows for this step; a finished one makes room for the next, which then gets its
   cache blocks. */
static void add_stranger(check *c, stepper *s, stranger *x, int32_t rows)
{
    if (x->open && x->at == x->len) {
        cache_close(stepper_cache(s), x->seq);
        x->open = false;
    }
    if (!x->open) {
        x->len = min_i32(STRANGER_LEN, c->n);
        for (int32_t i = 0; i < x->len; i++)
            x->id[i] =
                (int32_t)(rng_u64(7, (uint64_t)x->born, (uint64_t)i) % (uint64_t)c->m->shape.vocab);
        const cairn_status st = cache_open(stepper_cache(s), x->len, &x->seq);
        assert(st == CAIRN_OK); /* the cache was made for all of them */
        x->open = true;
        x->at = 0;
        x->born += MAX_STRANGERS;
    }
    const int32_t n = min_i32(rows, x->len - x->at);
    stepper_add(s, x->seq, x->id + x->at, n, 1, x->len);
    x->at += n;
}

static void walk(check *c, const variant *v, stepper *s, seq_id q, stranger *x)
{
    const int32_t chunk = v->chunk ? v->chunk : c->n;
    for (int32_t at = 0; at < c->n; at += chunk) {
        const int32_t rows = min_i32(chunk, c->n - at);
        int32_t outs = max_i32(0, min_i32(rows, at + rows - c->first));
        if (v->few_outputs) outs = min_i32(outs, 1);
        stepper_begin(s);
        for (int32_t i = 0; i < v->before; i++) add_stranger(c, s, &x[i], stranger_rows(i));
        const int32_t out0 = stepper_add(s, q, c->ids + at, rows, outs, c->n);
        for (int32_t i = v->before; i < v->n_strangers; i++)
            add_stranger(c, s, &x[i], stranger_rows(i));
        stepper_run(s);
        for (int32_t i = 0; i < outs; i++)
            compare_row(c, v, at + rows - outs + i, stepper_logits(s, out0 + i));
    }
}

static stepper_opts opts_of(const check *c, const variant *v)
{
    const int32_t chunk = v->chunk ? min_i32(v->chunk, c->n) : c->n;
    stepper_opts o = {.max_rows = chunk,
                      .max_out = v->few_outputs ? 1 : min_i32(chunk, c->n - c->first),
                      .max_seqs = 1 + v->n_strangers,
                      .ctx_len = c->n,
                      .codec = stepper_codec(c->m)};
    for (int32_t i = 0; i < v->n_strangers; i++) {
        o.max_rows += stranger_rows(i);
        o.max_out++;
    }
    return o;
}

static void say_result(const check *c, const variant *v, const cairn_numerics_report *before)
{
    char line[200];
    if (!c->say) return;
    (void)snprintf(line, sizeof line, "%s: %llu comparisons, %llu different bits", v->name,
                   (unsigned long long)(c->report->n_comparisons - before->n_comparisons),
                   (unsigned long long)(c->report->n_different - before->n_different));
    c->say(c->ctx, line);
}

static cairn_status try_variant(check *c, const variant *v, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    const model *m = c->m;
    stepper *s = NULL;
    seq_id q = 0;
    const cairn_numerics_report before = *c->report;
    stranger *x = mem_calloc(MAX_STRANGERS, sizeof *x, MEM_ENGINE);
    if (!x) return diag_set(dg, CAIRN_E_NOMEM, "no memory for strangers");
    for (int32_t i = 0; i < MAX_STRANGERS; i++) x[i].born = i;
    const stepper_opts o = opts_of(c, v);
    TRY_GOTO(stepper_new(m, &o, &s, dg), out);
    TRY_GOTO(stepper_add_cache(s, c->n, (stepper_room){0}, dg), out);
    TRY_GOTO(cache_open(stepper_cache(s), c->n, &q), out);
    m->be->limit_threads(m->dev, v->n_threads);
    stepper_busy(s, true);
    walk(c, v, s, q, x);
    stepper_busy(s, false);
    m->be->limit_threads(m->dev, 0);
    say_result(c, v, &before);
out:
    stepper_free(s);
    mem_free(x);
    return st;
}

/* Rows [from, c->n) in chunks, compared where there is a reference. */
static void walk_rest(check *c, const variant *v, stepper *s, seq_id q, int32_t from)
{
    for (int32_t at = from; at < c->n; at += v->chunk) {
        const int32_t rows = min_i32(v->chunk, c->n - at);
        const int32_t outs = max_i32(0, min_i32(rows, at + rows - c->first));
        stepper_begin(s);
        const int32_t out0 = stepper_add(s, q, c->ids + at, rows, outs, c->n);
        stepper_run(s);
        cache_publish(stepper_cache(s), q, c->ids);
        for (int32_t i = 0; i < outs; i++)
            compare_row(c, v, at + rows - outs + i, stepper_logits(s, out0 + i));
    }
}

/* A folder for prefixes, gone afterwards. */
typedef struct files {
    char dir[64];
    mutex mu;
    cond news;
    bool arrived; /* guarded by mu */
} files;

static void on_arrived(void *ctx)
{
    files *f = ctx;
    mutex_lock(&f->mu);
    f->arrived = true;
    cond_signal(&f->news);
    mutex_unlock(&f->mu);
}

static cairn_status files_begin(files *f, cairn_diag *dg)
{
    *f = (files){.dir = "/tmp/cairn-numerics-XXXXXX"};
    mutex_init(&f->mu);
    cond_init(&f->news);
    if (mkdtemp(f->dir)) return CAIRN_OK;
    f->dir[0] = '\0';
    return diag_set(dg, CAIRN_E_IO, "cannot make a folder in /tmp; expected one for cache files");
}

static void files_end(files *f)
{
    if (f->dir[0]) path_remove_tree(f->dir);
    cond_deinit(&f->news);
    mutex_deinit(&f->mu);
}

/* What is known goes to files and is forgotten. */
static cairn_status spill(cache *h, cairn_diag *dg)
{
    store_flushed f = {0};
    cache_flush(h, FLUSH_MS, &f);
    cache_forget(h);
    if (f.durable && f.pending + f.dropped + f.failed == 0) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_IO, "%u runs of the cache were written, %u were not; expected all",
                    f.durable, f.pending + f.dropped + f.failed);
}

static void await_rows(files *f, cache *h, seq_id q)
{
    while (!cache_ready(h, q)) {
        mutex_lock(&f->mu);
        while (!f->arrived) cond_wait(&f->news, &f->mu);
        f->arrived = false;
        mutex_unlock(&f->mu);
        cache_arrive(h);
    }
}

/* One sequence ends after n rows; another begins with them, from files if there are any. */
static cairn_status take_up(check *c, const variant *v, stepper *s, int32_t n, files *f,
                            cairn_diag *dg)
{
    const cache_ask ask = {.ids = c->ids, .n_ids = c->n, .n_pos = c->n};
    cache *h = stepper_cache(s);
    seq_id q = 0;
    cache_forget(h);
    TRY(cache_open_on(h, &ask, &q));
    stepper_begin(s);
    (void)stepper_add(s, q, c->ids, n, 0, c->n);
    stepper_run(s);
    cache_mark(h, q, c->ids, CACHE_TURN);
    cache_close(h, q);
    if (f) TRY(spill(h, dg));
    TRY(cache_open_on(h, &ask, &q));
    if (f) await_rows(f, h, q);
    const int32_t taken = cache_len(h, q);
    if (taken == n) walk_rest(c, v, s, q, taken);
    cache_close(h, q);
    if (taken == n) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_INTERNAL, "%d of %d rows were taken from the cache; expected all",
                    taken, n);
}

/* Half of the prompt comes from a file: it must hold what memory did. */
static cairn_status try_files(check *c, stepper *s, files *f, cairn_diag *dg)
{
    const variant v = {"from files, chunks of 64", min_i32(64, c->n), 0, 0, false, 0};
    const cairn_numerics_report before = *c->report;
    const cache_disk_opts o = {.dir = f->dir,
                               .numerics = NUMERICS_VERSION,
                               .scheme = "check-numerics",
                               .arrived = on_arrived,
                               .ctx = f};
    if (c->n < 2) return CAIRN_OK;
    TRY(cache_add_disk(stepper_cache(s), &o, dg));
    TRY(take_up(c, &v, s, c->n / 2, f, dg));
    say_result(c, &v, &before);
    return CAIRN_OK;
}

/* Prefixes that end somewhere inside, right before the last row, and, as it costs a pass each, where that
   is soon done, at, before and behind the end of a block. */
static cairn_status try_prefixes(check *c, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    stepper *s = NULL;
    const variant v = {"from the prefix cache, chunks of 64", min_i32(64, c->n), 0, 0, false, 0};
    const int32_t ends[] = {c->n / 2, c->n - 1, 1, KV_BLOCK - 1, KV_BLOCK, KV_BLOCK + 1};
    const size_t n_ends = c->n > SHORT_PROMPT ? 2 : sizeof ends / sizeof *ends;
    const cairn_numerics_report before = *c->report;
    const stepper_opts o = {.max_rows = c->n,
                            .max_out = v.chunk,
                            .max_seqs = 1,
                            .ctx_len = c->n,
                            .codec = stepper_codec(c->m)};
    const uint64_t room = 2 * cache_bytes(&c->m->cache, &o.codec, o.max_rows, c->n);
    files f;
    TRY_GOTO(files_begin(&f, dg), out);
    TRY_GOTO(stepper_new(c->m, &o, &s, dg), out);
    TRY_GOTO(stepper_add_cache(s, c->n, (stepper_room){0, room, room}, dg), out);
    stepper_busy(s, true);
    for (size_t i = 0; i < n_ends; i++)
        if (ends[i] > 0 && ends[i] < c->n) TRY_GOTO(take_up(c, &v, s, ends[i], NULL, dg), out);
    say_result(c, &v, &before);
    TRY_GOTO(try_files(c, s, &f, dg), out);
out:
    if (s) stepper_busy(s, false);
    stepper_free(s); /* with threads that call back */
    files_end(&f);
    return st;
}

static bool keep(void *ctx, int32_t pos, const float *logits)
{
    check *c = ctx;
    const size_t vocab = (size_t)c->m->shape.vocab;
    memcpy(c->ref + (size_t)(pos - c->first) * vocab, logits, vocab * sizeof *logits);
    return true;
}

/* A reference of NaNs would equal anything broken in the same way. */
static cairn_status make_reference(check *c, cairn_diag *dg)
{
    const size_t vocab = (size_t)c->m->shape.vocab;
    const int32_t rows = max_i32(1, (int32_t)((size_t)REFERENCE_BYTES / sizeof(float) / vocab));
    c->first = max_i32(0, c->n - rows);
    c->ref_bytes = (size_t)(c->n - c->first) * vocab * sizeof(float);
    c->ref = mem_map(c->ref_bytes, MEM_ENGINE);
    if (!c->ref) return diag_set(dg, CAIRN_E_NOMEM, "%zu bytes for reference logits", c->ref_bytes);
    const cairn_score_opts o = {sizeof o, c->n, c->first, 0};
    TRY(forward_score(c->m, c->ids, (size_t)c->n, &o, keep, c, dg));
    for (size_t i = 0; i < c->ref_bytes / sizeof(float); i++)
        if (!isfinite(c->ref[i]))
            return diag_set(dg, CAIRN_E_CORRUPT,
                            "%s: logit %zu of position %zu is not finite; expected finite weights "
                            "and parameters",
                            c->m->src->path, i % vocab, i / vocab + (size_t)c->first);
    return CAIRN_OK;
}

static cairn_status try_threads(check *c, int32_t max_threads, cairn_diag *dg)
{
    for (int32_t t = 1; t <= max_threads; t++) {
        char whole[40], odd[40];
        (void)snprintf(whole, sizeof whole, "whole, %d threads", t);
        (void)snprintf(odd, sizeof odd, "chunks of 9, 1 stranger, %d threads", t);
        const variant both[] = {{whole, 0, 0, 0, false, t}, {odd, 9, 1, 0, false, t}};
        for (size_t i = 0; i < 2; i++) TRY(try_variant(c, &both[i], dg));
    }
    return CAIRN_OK;
}

cairn_status numerics_check(const model *m, const int32_t *ids, size_t n, int32_t max_threads,
                            void (*say)(void *ctx, const char *line), void *ctx,
                            cairn_numerics_report *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    if (!m->headless) TRY(forward_check_ids(m, ids, n, dg));
    if (max_threads < 1 || max_threads > CAIRN_MAX_THREADS)
        return diag_set(dg, CAIRN_E_ARG, "%d threads; expected 1 to %d", max_threads,
                        CAIRN_MAX_THREADS);
    if (m->headless) return embed_check_numerics(m, ids, n, max_threads, say, ctx, out, dg);
    cairn_numerics_report report = {.struct_size = sizeof report};
    check c = {.m = m, .ids = ids, .n = (int32_t)n, .say = say, .ctx = ctx, .report = &report};
    TRY_GOTO(make_reference(&c, dg), out);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        TRY_GOTO(try_variant(&c, &variants[i], dg), out);
    TRY_GOTO(try_prefixes(&c, dg), out);
    TRY_GOTO(try_threads(&c, min_i32(max_threads, m->be->threads(m->dev)), dg), out);
    *out = report;
out:
    mem_unmap(c.ref, c.ref_bytes, MEM_ENGINE);
    return st;
}
