/* ROUTE: which experts a row meets and how much each weighs (Shazeer et al. 2017, "Outrageously large
   neural networks"; DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2, for groups and the bias of
   choosing).  A row at a time, in plain C: a few hundred numbers. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern_math.h"
#include "base/num.h"

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
