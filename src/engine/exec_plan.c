/* What a request and an engine come to.  Of each faster way a plan says what closes it, for whoever wonders. */
#include "engine/exec_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/num.h"

static void name_layout(const cachespec *c, char out[EXEC_LAYOUT_BYTES])
{
    bool full = false, windowed = false, latent = false, state = false;
    for (int32_t i = 0; i < c->n_layer; i++) {
        const cache_layer_spec *l = &c->layer[i];
        full |= l->n_kv_head > 0 && l->window == 0 && !l->latent;
        windowed |= l->n_kv_head > 0 && l->window > 0;
        latent |= l->latent;
        state |= l->n_state > 0;
    }
    (void)snprintf(out, EXEC_LAYOUT_BYTES, "%s%s%s%s%s", full || windowed || latent ? "paged" : "",
                   windowed ? "+windowed" : "", latent ? "+latent" : "",
                   state && (full || windowed || latent) ? "+" : "", state ? "state" : "");
}

static cairn_status hash_program(const stepper *s, uint64_t *out, cairn_diag *dg)
{
    buf b;
    buf_init(&b, MEM_ENGINE);
    prog_print(stepper_prog(s), &b);
    const cairn_status st = buf_status(&b);
    if (st == CAIRN_OK) *out = hash64(b.ptr, b.len, 0);
    buf_deinit(&b);
    return st == CAIRN_OK ? st : diag_set(dg, st, "no memory for a program's listing");
}

cairn_status exec_can_read(const model *m, const stepper *s, const char *codec, int32_t ctx_len,
                           exec_can *out, cairn_diag *dg)
{
    exec_can c = {.codec = codec,
                  .isa = m->be->isa(m->dev),
                  .rows = stepper_shape_of(s),
                  .ctx_len = ctx_len,
                  .exact = m->compute == CAIRN_COMPUTE_F32};
    name_layout(&m->cache, c.layout);
    TRY(hash_program(s, &c.program, dg));
    c.shape = hash64(c.layout, strlen(c.layout), c.program);
    c.shape = hash64(codec, strlen(codec), c.shape);
    c.shape = hash64(c.rows.rows, (size_t)c.rows.n * sizeof *c.rows.rows, c.shape);
    c.shape = hash64(&ctx_len, sizeof ctx_len, c.shape);
    *out = c;
    return CAIRN_OK;
}

static int32_t rows_for(const stepper_shape *s, int32_t n)
{
    int32_t i = 0;
    while (i < s->n - 1 && s->rows[i] < n) i++;
    return s->rows[i];
}

static void say(exec_plan *p, bool closed, const char *way, const char *reason)
{
    const size_t n = strlen(p->why);
    if (closed)
        (void)snprintf(p->why + n, sizeof p->why - n, "%s%s: %s", n ? "; " : "", way, reason);
}

exec_plan exec_plan_make(const exec_can *can, const exec_need *need)
{
    exec_plan p = {.method = &method_ar,
                   .layout = can->layout,
                   .codec = can->codec,
                   .isa = can->isa,
                   .program = can->program,
                   .max_rows = rows_for(&can->rows, need->n_prompt),
                   .last_rows = rows_for(&can->rows, 1),
                   .n_blocks = ceil_div(need->max_ids, KV_BLOCK),
                   .resumes = can->saves && !need->no_checkpoint,
                   .shape = can->shape};
    say(&p, true, "speculative", "the model has no drafter");
    say(&p, can->exact, "8-bit activations", "f32 compute was asked for");
    say(&p, !can->keeps, "known prefixes", "none are kept");
    say(&p, can->saves && need->no_checkpoint, "checkpoints", need->no_checkpoint);
    return p;
}

cairn_status exec_plan_check(const exec_plan *p, const exec_can *can, cairn_diag *dg)
{
    if (p->shape == can->shape) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG,
                    "a plan for shape %016llx (cache %s of %s, program %016llx); expected one for "
                    "%016llx (cache %s of %s, program %016llx, context of %d)",
                    (unsigned long long)p->shape, p->layout, p->codec,
                    (unsigned long long)p->program, (unsigned long long)can->shape, can->layout,
                    can->codec, (unsigned long long)can->program, can->ctx_len);
}
