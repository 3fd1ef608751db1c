/* Mixtures of experts: ROUTE, EXPERTS, GATE (Shazeer et al. 2017, "Outrageously large neural networks";
   DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2, for groups and the bias of choosing).

   Rows are grouped by expert, so that an expert's weights are read once a step; each group runs as
   LINEAR does, whose bits do not depend on the company of a row.  A row's experts are then added in
   the order of their ranks.  Who shares an expert thus never shows. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_math.h"
#include "base/num.h"

/* --- ROUTE: a row at a time, in plain C: a few hundred numbers --- */

/* Scores in place of logits, in rising order of experts. */
static void scores(const route_spec *s, const float *logit, int32_t n, float *score)
{
    float max = logit[0], sum = 0.0f;
    if (s->score == ROUTE_SOFTMAX) {
        for (int32_t e = 1; e < n; e++) max = logit[e] > max ? logit[e] : max;
        for (int32_t e = 0; e < n; e++) sum += score[e] = kern_exp(logit[e] - max);
        for (int32_t e = 0; e < n; e++) score[e] /= sum;
        return;
    }
    for (int32_t e = 0; e < n; e++)
        score[e] = s->score == ROUTE_SIGMOID ? 1.0f / (1.0f + kern_exp(-logit[e])) : logit[e];
}

/* Sum of the two best keys of a group. */
static float group_key(const float *key, int32_t n)
{
    float first = -INFINITY, second = -INFINITY;
    for (int32_t e = 0; e < n; e++) {
        if (key[e] > first) {
            second = first;
            first = key[e];
        } else if (key[e] > second) {
            second = key[e];
        }
    }
    return n > 1 ? first + second : first;
}

/* Index of the highest key not yet taken, the lowest index among equals; NaN loses to all. */
static int32_t best(const float *key, const uint8_t *taken, int32_t n)
{
    int32_t at = -1;
    for (int32_t e = 0; e < n; e++) {
        if (taken[e]) continue;
        if (at < 0 || key[e] > key[at] || (isnan(key[at]) && !isnan(key[e]))) at = e;
    }
    return at;
}

/* Marks as taken the experts of the groups that do not take part. */
static void drop_groups(const route_spec *s, const float *key, int32_t n, float *group,
                        uint8_t *taken)
{
    const int32_t each = n / s->n_group;
    uint8_t *chosen = taken + n; /* of the groups */
    for (int32_t g = 0; g < s->n_group; g++) group[g] = group_key(key + g * each, each);
    memset(chosen, 0, (size_t)s->n_group);
    for (int32_t i = 0; i < s->n_group_used; i++) chosen[best(group, chosen, s->n_group)] = 1;
    for (int32_t g = 0; g < s->n_group; g++)
        if (!chosen[g]) memset(taken + g * each, 1, (size_t)each);
}

/* Weights of the chosen, by rank. */
static void weigh(const op *o, const float *score, const float *id, float *w)
{
    const route_spec *s = &o->u.route;
    const float *per_expert = o->w[1] ? o->w[1]->f32 : NULL;
    float sum = 0.0f, max = score[(int32_t)id[0]];
    for (int32_t i = 1; i < s->k; i++) {
        const float x = score[(int32_t)id[i]];
        max = x > max ? x : max;
    }
    for (int32_t i = 0; i < s->k; i++) {
        const float x = score[(int32_t)id[i]];
        w[i] = s->score == ROUTE_CHOSEN ? kern_exp(x - max) : x;
        sum += w[i];
    }
    for (int32_t i = 0; i < s->k; i++) {
        if (s->normalise || s->score == ROUTE_CHOSEN) w[i] /= sum + s->eps;
        w[i] *= s->scale;
        if (per_expert) w[i] *= per_expert[(int32_t)id[i]];
    }
}

typedef struct route_scratch {
    float *score, *key, *group;
    uint8_t *taken; /* experts, then groups */
} route_scratch;

static route_scratch route_split(uint8_t *scratch, int32_t n)
{
    float *f = (float *)(void *)scratch;
    return (route_scratch){f, f + n, f + 2 * n, (uint8_t *)(f + 3 * n)};
}

cpu_need cpu_route_need(int32_t n_expert)
{
    return (cpu_need){0, round_up((3 * sizeof(float) + 2) * (size_t)n_expert, 64)};
}

static void route_row(const op *o, const float *logit, int32_t n, float *id, float *w,
                      const route_scratch *t)
{
    const route_spec *s = &o->u.route;
    const float *bias = o->w[0] ? o->w[0]->f32 : NULL;
    scores(s, logit, n, t->score);
    for (int32_t e = 0; e < n; e++) t->key[e] = bias ? t->score[e] + bias[e] : t->score[e];
    memset(t->taken, 0, (size_t)n);
    if (s->n_group > 1) drop_groups(s, t->key, n, t->group, t->taken);
    for (int32_t i = 0; i < s->k; i++) {
        const int32_t e = best(t->key, t->taken, n);
        t->taken[e] = 1;
        id[i] = (float)e;
    }
    weigh(o, t->score, id, w);
}

typedef struct route_job {
    const cpu_run *r;
    const op *o;
    const float *logit;
    float *id, *w;
    int32_t n;
} route_job;

static void route_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const route_job *j = ctx;
    const size_t k = (size_t)j->o->u.route.k;
    const route_scratch t = route_split(cpu_thread_scratch(j->r, i_thread), j->n);
    for (size_t r = begin; r < end; r++)
        route_row(j->o, j->logit + r * (size_t)j->n, j->n, j->id + r * k, j->w + r * k, &t);
}

void cpu_route(cpu_run *r, const op *o)
{
    const int32_t n = r->x->pl->p->value[o->in[0]].cols;
    route_job j = {.r = r,
                   .o = o,
                   .logit = cpu_val(r, o->in[0]),
                   .id = cpu_val(r, o->out[0]),
                   .w = cpu_val(r, o->out[1]),
                   .n = n};
    cpu_row_spans(r, cpu_rows(r, o->in[0]), n * o->u.route.k, CPU_GRAIN_MATH, route_span, &j);
}

/* --- EXPERTS --- */

/* A slot is one row's place at one of its experts; slots lie in the order of (expert, row). */
typedef struct moe_job {
    cpu_run *r;
    const op *o;
    const float *x, *weight;
    float *out;
    int32_t n_rows, k, n_expert, hidden, ffn;
    int32_t *first;        /* [n_expert + 1]: slots of expert e are first[e] … first[e+1]-1 */
    int32_t *row;          /* [slot] */
    int32_t *slot;         /* [row][rank] */
    float *in, *gate, *up; /* rows of one expert */
    float *y;              /* [slot][hidden] */
    uint8_t *shared;       /* of the products */
} moe_job;

/* Places the job's arrays from base on; answers the bytes they take. */
static size_t moe_place(moe_job *j, uint8_t *base, int32_t rows)
{
    const size_t n = (size_t)rows, slots = n * (size_t)j->k;
    const size_t part[] = {sizeof(int32_t) * ((size_t)j->n_expert + 1),
                           sizeof(int32_t) * slots,
                           sizeof(int32_t) * slots,
                           sizeof(float) * n * (size_t)j->hidden,
                           sizeof(float) * n * (size_t)j->ffn,
                           sizeof(float) * n * (size_t)j->ffn,
                           sizeof(float) * slots * (size_t)j->hidden};
    size_t at[8] = {0};
    for (int i = 0; i < 7; i++) at[i + 1] = at[i] + round_up(part[i], 64);
    if (!base) return at[7];
    j->first = (int32_t *)(void *)(base + at[0]);
    j->row = (int32_t *)(void *)(base + at[1]);
    j->slot = (int32_t *)(void *)(base + at[2]);
    j->in = (float *)(void *)(base + at[3]);
    j->gate = (float *)(void *)(base + at[4]);
    j->up = (float *)(void *)(base + at[5]);
    j->y = (float *)(void *)(base + at[6]);
    j->shared = base + at[7];
    return at[7];
}

static moe_job moe_shape(const op *o)
{
    return (moe_job){.o = o,
                     .k = o->u.experts.k,
                     .n_expert = o->w[0]->n_expert,
                     .hidden = o->w[0]->cols,
                     .ffn = o->w[0]->rows};
}

cpu_need cpu_experts_need(const dev *d, const op *o, int32_t max_rows)
{
    moe_job j = moe_shape(o);
    cpu_need need = {moe_place(&j, NULL, max_rows), 0};
    size_t most = 0;
    for (int32_t i = 0; i < 3; i++) {
        const weight *w = &o->w[i]->expert[0];
        const cpu_need n = cpu_products_need(d, &w, 1, max_rows);
        most = n.shared > most ? n.shared : most;
        need.thread = n.thread > need.thread ? n.thread : need.thread;
    }
    need.shared += 2 * most; /* gate and up may want different forms of x */
    return need;
}

/* Counting sort of all (row, rank) by expert; within one, by row. */
static void group_rows(moe_job *j, const float *id)
{
    const int32_t n = j->n_rows * j->k;
    memset(j->first, 0, sizeof *j->first * ((size_t)j->n_expert + 1));
    for (int32_t i = 0; i < n; i++) j->first[(int32_t)id[i] + 1]++;
    for (int32_t e = 0; e < j->n_expert; e++) j->first[e + 1] += j->first[e];
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = j->first[(int32_t)id[i]]++;
        j->row[at] = i / j->k;
        j->slot[i] = at;
    }
    for (int32_t e = j->n_expert; e > 0; e--) j->first[e] = j->first[e - 1];
    j->first[0] = 0;
}

static void glu_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const moe_job *j = ctx;
    const kern_vec *k = &j->r->x->d->k.vec;
    const glu_spec *s = &j->o->u.experts.glu;
    float *y = j->gate + begin, *up = j->up + begin;
    (void)i_thread;
    if (s->act == GLU_CLAMPED)
        k->glu_clamped(y, y, up, end - begin, s->alpha, s->limit);
    else
        k->glu[s->act](y, y, up, end - begin);
}

static void run_expert(moe_job *j, int32_t e)
{
    const int32_t at = j->first[e], n = j->first[e + 1] - at;
    const weight *in[2] = {&j->o->w[0]->expert[e], &j->o->w[1]->expert[e]};
    const weight *down = &j->o->w[2]->expert[e];
    const size_t hidden = (size_t)j->hidden;
    for (int32_t i = 0; i < n; i++)
        memcpy(j->in + (size_t)i * hidden, j->x + (size_t)j->row[at + i] * hidden,
               hidden * sizeof *j->in);
    cpu_products_run(j->r, &(cpu_products){.w = in,
                                           .n_w = 2,
                                           .n_rows = n,
                                           .x = j->in,
                                           .out = {j->gate, j->up},
                                           .shared = j->shared});
    cpu_spans(j->r, (size_t)n * (size_t)j->ffn, CPU_GRAIN_MATH, 16, glu_span, j);
    cpu_products_run(j->r, &(cpu_products){.w = &down,
                                           .n_w = 1,
                                           .n_rows = n,
                                           .x = j->gate,
                                           .out = {j->y + (size_t)at * hidden},
                                           .shared = j->shared});
}

/* out = fma(w, y, out) by rank, from +0. */
static void combine_span(void *ctx, size_t begin, size_t end, int32_t i_thread)
{
    const moe_job *j = ctx;
    const size_t hidden = (size_t)j->hidden, k = (size_t)j->k;
    (void)i_thread;
    for (size_t r = begin; r < end; r++) {
        float *out = j->out + r * hidden;
        memset(out, 0, hidden * sizeof *out);
        for (size_t i = r * k; i < (r + 1) * k; i++)
            j->r->x->d->k.vec.axpy(out, j->weight[i], j->y + (size_t)j->slot[i] * hidden, hidden);
    }
}

void cpu_experts(cpu_run *r, const op *o)
{
    moe_job j = moe_shape(o);
    j.r = r;
    j.x = cpu_val(r, o->in[0]);
    j.weight = cpu_val(r, o->in[2]);
    j.out = cpu_val(r, o->out[0]);
    j.n_rows = cpu_rows(r, o->in[0]);
    if (j.n_rows == 0) return;
    moe_place(&j, r->x->shared, j.n_rows);
    group_rows(&j, cpu_val(r, o->in[1]));
    for (int32_t e = 0; e < j.n_expert; e++)
        if (j.first[e + 1] > j.first[e]) run_expert(&j, e);
    cpu_row_spans(r, j.n_rows, j.hidden * j.k, CPU_GRAIN_MOVE, combine_span, &j);
}

/* --- GATE --- */

void cpu_gate(cpu_run *r, const op *o)
{
    const size_t n = (size_t)r->x->pl->p->value[o->in[0]].cols;
    const float *x = cpu_val(r, o->in[0]), *g = cpu_val(r, o->in[1]);
    float *y = cpu_val(r, o->out[0]);
    for (size_t i = 0; i < (size_t)cpu_rows(r, o->in[0]); i++)
        r->x->d->k.vec.scale(y + i * n, x + i * n, 1.0f / (1.0f + kern_exp(-g[i])), n);
}
