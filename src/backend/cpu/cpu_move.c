/* Ops that only move numbers: INPUT, EMBED, SELECT, SLICE, JOIN, TAP. */
#include <string.h>

#include "backend/cpu/cpu_priv.h"

typedef struct move_job {
    const cpu_run *r;
    const op *o;
} move_job;

void cpu_input(cpu_run *r, const op *o)
{
    const size_t n = (size_t)cpu_rows(r, o->out[0]) * (size_t)r->x->pl->p->value[o->out[0]].cols;
    memcpy(cpu_val(r, o->out[0]), r->s->input, n * sizeof(float));
}

/* Row of the table that row `row` of the step looks up. */
static size_t table_row(const move_job *j, int32_t row)
{
    switch (j->o->u.embed.by) {
    case EMBED_ID: {
        const int32_t id = j->r->s->id[row];
        return id < j->o->w[0]->rows ? (size_t)id : 0;
    }
    case EMBED_POS:
        return (size_t)(j->o->u.embed.first + j->r->s->pos[row]);
    case EMBED_ROW:
        return (size_t)j->o->u.embed.first;
    }
    return 0;
}

static void embed_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const move_job *j = ctx;
    const weight *w = j->o->w[0];
    const kern_vec *k = &j->r->x->d->k.vec;
    const float scale = j->o->u.embed.scale;
    const size_t cols = (size_t)w->cols;
    (void)i_thread;
    for (size_t i = begin; i < end; i++) {
        int32_t row = cpu_step_row(j->r, j->o->out[0], (int32_t)i);
        float *y = cpu_val(j->r, j->o->out[0]) + i * cols;
        weight_row_f32(w, table_row(j, row), y);
        if (scale != 1.0f) k->scale(y, y, scale, cols);
    }
}

void cpu_embed(cpu_run *r, const op *o)
{
    move_job j = {r, o};
    cpu_row_spans(r, cpu_rows(r, o->out[0]), o->w[0]->cols, CPU_GRAIN_MATH, embed_span, &j);
}

static void select_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const move_job *j = ctx;
    const size_t cols = (size_t)j->r->x->pl->p->value[j->o->out[0]].cols;
    const float *x = cpu_val(j->r, j->o->in[0]);
    float *y = cpu_val(j->r, j->o->out[0]);
    (void)i_thread;
    for (size_t i = begin; i < end; i++)
        memcpy(y + i * cols, x + (size_t)j->r->s->out_row[i] * cols, cols * sizeof *y);
}

void cpu_select(cpu_run *r, const op *o)
{
    move_job j = {r, o};
    cpu_row_spans(r, r->s->n_out, r->x->pl->p->value[o->out[0]].cols, CPU_GRAIN_MOVE, select_span,
                  &j);
}

/* n parts a row: `out` columns of each part of `in`, beginning at x, to parts `apart` wide at y. */
static void move_parts(float *y, size_t apart, const float *x, size_t in, size_t out, size_t n)
{
    for (size_t i = 0; i < n; i++) memcpy(y + i * apart, x + i * in, out * sizeof *y);
}

static void slice_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const move_job *j = ctx;
    const value *v = j->r->x->pl->p->value;
    const size_t from = (size_t)v[j->o->in[0]].cols, to = (size_t)v[j->o->out[0]].cols;
    const size_t n = (size_t)j->o->u.part.n;
    const float *x = cpu_val(j->r, j->o->in[0]) + j->o->u.part.from;
    float *y = cpu_val(j->r, j->o->out[0]);
    (void)i_thread;
    for (size_t i = begin; i < end; i++)
        move_parts(y + i * to, to / n, x + i * from, from / n, to / n, n);
}

void cpu_slice(cpu_run *r, const op *o)
{
    move_job j = {r, o};
    cpu_row_spans(r, cpu_rows(r, o->in[0]), r->x->pl->p->value[o->out[0]].cols, CPU_GRAIN_MOVE,
                  slice_span, &j);
}

static void join_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const move_job *j = ctx;
    const value *v = j->r->x->pl->p->value;
    const size_t a = (size_t)v[j->o->in[0]].cols, b = (size_t)v[j->o->in[1]].cols;
    const size_t n = (size_t)j->o->u.part.n, apart = (a + b) / n;
    const float *x = cpu_val(j->r, j->o->in[0]), *z = cpu_val(j->r, j->o->in[1]);
    float *y = cpu_val(j->r, j->o->out[0]);
    (void)i_thread;
    for (size_t i = begin; i < end; i++) {
        move_parts(y + i * (a + b), apart, x + i * a, a / n, a / n, n);
        move_parts(y + i * (a + b) + a / n, apart, z + i * b, b / n, b / n, n);
    }
}

void cpu_join(cpu_run *r, const op *o)
{
    move_job j = {r, o};
    cpu_row_spans(r, cpu_rows(r, o->in[0]), r->x->pl->p->value[o->out[0]].cols, CPU_GRAIN_MOVE,
                  join_span, &j);
}

void cpu_tap(cpu_run *r, const op *o)
{
    if (!r->s->tap || !r->s->tap[o->u.tap.tap]) return;
    size_t n = (size_t)cpu_rows(r, o->in[0]) * (size_t)r->x->pl->p->value[o->in[0]].cols;
    memcpy(r->s->tap[o->u.tap.tap], cpu_val(r, o->in[0]), n * sizeof(float));
}
