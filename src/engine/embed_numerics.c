/* The numerics contract of models that only embed: a text's vector does not depend on how it was computed.
   The reference is the text alone, in one step; each variant runs again and every element is compared. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/diag.h"
#include "base/half.h"
#include "base/num.h"
#include "base/rng.h"
#include "engine/embed.h"
#include "engine/guard.h"
#include "tensor/backend.h"

enum { MOST_STRANGERS = 7, STRANGER_LEN = 203 /* odd: ends in the middle of blocks and tiles */ };

typedef struct variant {
    const char *name;
    int32_t before, after; /* strangers in the same call */
    int32_t step_rows;     /* 0: as usual; others matter where a text may be cut */
    int32_t n_threads;     /* 0: all */
} variant;

static const variant variants[] = {
    {"with 1 stranger before", 1, 0, 0, 0},
    {"with 1 stranger after", 0, 1, 0, 0},
    {"with 7 strangers around", 4, 3, 0, 0},
    {"steps of 1", 0, 0, 1, 0},
    {"steps of 7", 0, 0, 7, 0},
    {"steps of 64, 3 strangers around", 2, 1, 64, 0},
    {"steps of 333, 5 strangers after", 0, 5, 333, 0},
};

typedef struct check {
    const model *m;
    int32_t *ids, *strange; /* [n]; [MOST_STRANGERS][STRANGER_LEN] */
    int32_t n, dim;
    float *ref; /* [dim] */
    const variant *v;
    void (*say)(void *ctx, const char *line);
    void *ctx;
    cairn_numerics_report *report;
} check;

static bool keep(void *ctx, size_t i, const float *v, int32_t dim)
{
    check *c = ctx;
    (void)i;
    memcpy(c->ref, v, (size_t)dim * sizeof *v);
    return true;
}

static bool compare(void *ctx, size_t i, const float *v, int32_t dim)
{
    check *c = ctx;
    cairn_numerics_report *r = c->report;
    if (i != (size_t)c->v->before) return true;
    r->n_comparisons += (uint64_t)dim;
    for (int32_t k = 0; k < dim; k++) {
        if (f32_bits(v[k]) == f32_bits(c->ref[k])) continue;
        if (r->n_different++ == 0)
            (void)snprintf(r->first, sizeof r->first,
                           "%s: element %d: %.9g (%08x); alone %.9g (%08x)", c->v->name, (int)k,
                           (double)v[k], f32_bits(v[k]), (double)c->ref[k], f32_bits(c->ref[k]));
    }
    return true;
}

static int32_t stranger_len(const check *c, int32_t i)
{
    return max_i32(1, min_i32(c->n, STRANGER_LEN - 29 * i));
}

static cairn_status try_variant(check *c, const variant *v, cairn_diag *dg)
{
    embed_text text[MOST_STRANGERS + 1];
    const embed_how how = {.step_rows = v->step_rows, .n_threads = v->n_threads};
    const cairn_numerics_report before = *c->report;
    char line[200];
    for (int32_t i = 0; i < v->before + v->after; i++)
        text[i < v->before ? i : i + 1] =
            (embed_text){.ids = c->strange + (size_t)i * STRANGER_LEN, .n = stranger_len(c, i)};
    text[v->before] = (embed_text){.ids = c->ids, .n = c->n};
    c->v = v;
    TRY(embed_run(c->m, text, (size_t)(v->before + v->after + 1), &how, compare, c, dg));
    if (!c->say) return CAIRN_OK;
    (void)snprintf(line, sizeof line, "%s: %llu comparisons, %llu different bits", v->name,
                   (unsigned long long)(c->report->n_comparisons - before.n_comparisons),
                   (unsigned long long)(c->report->n_different - before.n_different));
    c->say(c->ctx, line);
    return CAIRN_OK;
}

static cairn_status try_threads(check *c, int32_t max_threads, cairn_diag *dg)
{
    for (int32_t t = 1; t <= max_threads; t++) {
        char name[40];
        (void)snprintf(name, sizeof name, "2 strangers around, %d threads", (int)t);
        const variant v = {name, 1, 1, 0, t};
        TRY(try_variant(c, &v, dg));
    }
    return CAIRN_OK;
}

/* An id that a text can have. */
static int32_t usable(const model *m, int32_t id)
{
    return id == m->pad_id ? (id + 1) % m->shape.vocab : id;
}

static void fill(check *c, const int32_t *ids)
{
    const uint64_t vocab = (uint64_t)c->m->shape.vocab;
    for (int32_t i = 0; i < c->n; i++) c->ids[i] = usable(c->m, ids[i]);
    for (int32_t i = 0; i < MOST_STRANGERS * STRANGER_LEN; i++)
        c->strange[i] = usable(c->m, (int32_t)(rng_u64(7, 0, (uint64_t)i) % vocab));
}

cairn_status embed_check_numerics(const model *m, const int32_t *ids, size_t n, int32_t max_threads,
                                  void (*say)(void *ctx, const char *line), void *ctx,
                                  cairn_numerics_report *out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    cairn_numerics_report report = {.struct_size = sizeof report};
    const size_t kept = min_size(n, (size_t)guard_model_ctx(m));
    check c = {.m = m, .n = (int32_t)kept, .dim = embed_dim(m), .report = &report};
    const embed_how alone = {.step_rows = c.n};
    c.say = say;
    c.ctx = ctx;
    c.ids = mem_calloc(kept + 1, sizeof *c.ids, MEM_ENGINE);
    c.strange = mem_calloc((size_t)MOST_STRANGERS * STRANGER_LEN, sizeof *c.strange, MEM_ENGINE);
    c.ref = mem_calloc((size_t)c.dim + 1, sizeof *c.ref, MEM_ENGINE);
    if (!c.ids || !c.strange || !c.ref) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory to compare vectors");
        goto out;
    }
    fill(&c, ids);
    const embed_text text = {.ids = c.ids, .n = c.n};
    TRY_GOTO(embed_run(m, &text, 1, &alone, keep, &c, dg), out);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        TRY_GOTO(try_variant(&c, &variants[i], dg), out);
    TRY_GOTO(try_threads(&c, min_i32(max_threads, m->be->threads(m->dev)), dg), out);
    *out = report;
out:
    mem_free(c.ids);
    mem_free(c.strange);
    mem_free(c.ref);
    return st;
}
