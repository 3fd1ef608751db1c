/* ROUTE, EXPERTS and GATE.  Routing equals its statement in op.h, written out here by sorting; a row's
   experts give the bits that the row gets alone, on every level and any number of threads, and come
   close to the same sum in double. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ops/ops_rig.h"

enum { ROWS = 23, EXPERTS = 12, K = 3, HIDDEN = 64, FFN = 96 };

typedef struct ranked {
    double key;
    int32_t id;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->id - y->id;
}

/* Ids by rank, and their weights in double. */
static void want_route(const route_spec *s, const float *logit, const float *bias, const float *by,
                       int32_t *id, double *w)
{
    double score[EXPERTS], sum = 0;
    ranked r[EXPERTS], g[EXPERTS];
    const int32_t each = EXPERTS / s->n_group;
    for (int32_t e = 0; e < EXPERTS; e++) sum += exp((double)logit[e]);
    for (int32_t e = 0; e < EXPERTS; e++) {
        const double l = (double)logit[e];
        score[e] = s->score == ROUTE_SOFTMAX   ? exp(l) / sum
                   : s->score == ROUTE_SIGMOID ? 1 / (1 + exp(-l))
                                               : l;
        r[e] = (ranked){score[e] + (bias ? (double)bias[e] : 0), e};
    }
    for (int32_t i = 0; i < s->n_group; i++) {
        ranked in[EXPERTS];
        memcpy(in, r + i * each, sizeof(ranked) * (size_t)each);
        qsort(in, (size_t)each, sizeof(ranked), by_rank);
        g[i] = (ranked){in[0].key + (each > 1 ? in[1].key : 0), i};
    }
    qsort(g, (size_t)s->n_group, sizeof(ranked), by_rank);
    for (int32_t i = s->n_group_used; i < s->n_group; i++)
        for (int32_t e = 0; e < each; e++) r[g[i].id * each + e].key = -(double)INFINITY;
    qsort(r, EXPERTS, sizeof(ranked), by_rank);
    sum = 0;
    for (int32_t i = 0; i < s->k; i++) {
        id[i] = r[i].id;
        w[i] = s->score == ROUTE_CHOSEN ? exp(score[id[i]]) : score[id[i]];
        sum += w[i];
    }
    for (int32_t i = 0; i < s->k; i++) {
        if (s->normalise || s->score == ROUTE_CHOSEN) w[i] /= sum + (double)s->eps;
        w[i] *= (double)s->scale * (by ? (double)by[id[i]] : 1);
    }
}

static void route_rig(rig *g, const route_spec *s, const weight *bias, const weight *by)
{
    const op o = {.kind = OP_ROUTE,
                  .in = {0, VAL_NONE, VAL_NONE},
                  .out = {1, 2, VAL_NONE},
                  .w = {bias, by},
                  .u.route = *s};
    const value v[] = {
        {EXPERTS, ROWS_ALL, false}, {s->k, ROWS_ALL, false}, {s->k, ROWS_ALL, false}};
    rig_open(g, NULL, 2, &o, v, 3, ROWS, 1, NULL);
}

static void test_route(void **state)
{
    static const route_spec specs[] = {
        {ROUTE_SOFTMAX, 3, 1, 1, false, 0.0f, 1.0f},  {ROUTE_SOFTMAX, 1, 1, 1, true, 0.0f, 2.5f},
        {ROUTE_SIGMOID, 4, 4, 2, true, 1e-20f, 1.5f}, {ROUTE_SIGMOID, 12, 3, 3, false, 0.0f, 1.0f},
        {ROUTE_SIGMOID, 2, 12, 5, true, 0.0f, 1.0f},  {ROUTE_CHOSEN, 5, 1, 1, false, 0.0f, 1.0f},
    };
    float bias[EXPERTS], by[EXPERTS];
    const weight b = {.f32 = bias}, y = {.f32 = by};
    (void)state;
    for (uint64_t e = 0; e < EXPERTS; e++) {
        bias[e] = 0.3f * rig_rand(7, e);
        by[e] = 1.0f + 0.5f * rig_rand(8, e);
    }
    for (size_t c = 0; c < 4 * sizeof specs / sizeof specs[0]; c++) {
        const route_spec *s = &specs[c / 4];
        const bool biased = (c & 1) && s->score == ROUTE_SIGMOID, scaled = c & 2;
        rig g;
        route_rig(&g, s, biased ? &b : NULL, scaled ? &y : NULL);
        for (uint64_t i = 0; i < ROWS * EXPERTS; i++) rig_val(&g, 0)[i] = 3.0f * rig_rand(c + 9, i);
        backend_cpu.run(g.x, &(step){.n_rows = ROWS, .n_out = 0});
        for (int32_t r = 0; r < ROWS; r++) {
            int32_t id[EXPERTS];
            double w[EXPERTS];
            want_route(s, rig_val(&g, 0) + r * EXPERTS, biased ? bias : NULL, scaled ? by : NULL,
                       id, w);
            for (int32_t i = 0; i < s->k; i++) {
                assert_int_equal((int32_t)rig_val(&g, 1)[r * s->k + i], id[i]);
                const double got = (double)rig_val(&g, 2)[r * s->k + i];
                assert_true(fabs(got - w[i]) <= 1e-6 * fabs(w[i]));
            }
        }
        rig_close(&g);
    }
}

/* Equal scores go by number; what is not a number comes last and no expert is chosen twice. */
static void test_route_ties(void **state)
{
    const route_spec s = {ROUTE_SIGMOID, 4, 1, 1, true, 0.0f, 1.0f};
    rig g;
    route_rig(&g, &s, NULL, NULL);
    float *x = rig_val(&g, 0);
    (void)state;
    for (int32_t i = 0; i < ROWS * EXPERTS; i++) x[i] = 0.5f;
    x[5] = 0.75f;
    for (int32_t e = 0; e < EXPERTS; e++) x[EXPERTS + e] = e == 9 ? -1.0f : NAN;
    for (int32_t e = 0; e < EXPERTS; e++) x[2 * EXPERTS + e] = NAN;
    backend_cpu.run(g.x, &(step){.n_rows = 3, .n_out = 0});
    static const float want[3][4] = {{5, 0, 1, 2}, {9, 0, 1, 2}, {0, 1, 2, 3}};
    for (int32_t i = 0; i < 12; i++) assert_true(rig_val(&g, 1)[i] == want[i / 4][i % 4]);
    rig_close(&g);
}

typedef struct stack {
    weight top, expert[EXPERTS];
    uint8_t *data; /* as the file has it; adopting drops the pages of expert.data */
    uint8_t *mapped;
    size_t size;
    float *bias;
} stack;

static void make_stack(stack *s, dtype t, int32_t rows, int32_t cols, uint64_t seed, bool biased)
{
    const size_t n = (size_t)rows * (size_t)cols;
    const size_t size = n / (size_t)dtype_block(t) * (size_t)dtype_block_bytes(t);
    float *f = calloc(n, sizeof *f);
    s->size = EXPERTS * size;
    s->data = calloc(EXPERTS, size);
    s->mapped = calloc(EXPERTS, size);
    assert_non_null(s->mapped);
    s->bias = calloc(EXPERTS * (size_t)rows, sizeof(float));
    assert_non_null(f);
    assert_non_null(s->data);
    assert_non_null(s->bias);
    for (size_t e = 0; e < EXPERTS; e++) {
        uint8_t *to = s->data + e * size;
        for (size_t i = 0; i < n; i++) f[i] = 0.3f * rig_rand(seed + e, i);
        for (size_t i = 0; t == DT_BF16 && i < n; i++) {
            const uint16_t h = bf16_from_f32(f[i]);
            memcpy(to + 2 * i, &h, 2);
        }
        for (size_t b = 0; t == DT_Q8_0 && b < n / 32; b++) {
            const uint16_t d = f16_from_f32(0.3f / 127);
            memcpy(to + 34 * b, &d, 2);
            for (size_t i = 0; i < 32; i++)
                to[34 * b + 2 + i] = (uint8_t)(int8_t)lrintf(f[32 * b + i] / 0.3f * 127);
        }
        for (size_t b = 0; t == DT_MXFP4 && b < n / 32; b++) {
            to[17 * b] = 122; /* 2^−5 times up to 6 */
            for (size_t i = 1; i < 17; i++)
                to[17 * b + i] = (uint8_t)(int8_t)lrintf(f[32 * b + i] / 0.3f * 127);
        }
        for (size_t i = 0; i < (size_t)rows; i++)
            s->bias[e * (size_t)rows + i] = rig_rand(seed + e + 99, i);
        s->expert[e] = (weight){.name = "expert",
                                .type = t,
                                .rows = rows,
                                .cols = cols,
                                .data = s->mapped + e * size,
                                .size = size,
                                .bias = biased ? s->bias + e * (size_t)rows : NULL,
                                .matmul = true};
    }
    s->top = s->expert[0];
    s->top.expert = s->expert;
    s->top.n_expert = EXPERTS;
    s->top.n_expert_used = K;
    free(f);
}

static void free_stack(stack *s)
{
    free(s->data);
    free(s->mapped);
    free(s->bias);
}

typedef struct mixture {
    glu_spec glu;
    bool alone; /* the gate is the matrix up too */
    stack gate, up, down;
    float x[ROWS * HIDDEN], id[ROWS * K], w[ROWS * K];
} mixture;

static void make_mixture(mixture *m, dtype t)
{
    make_stack(&m->gate, t, FFN, HIDDEN, 10, false);
    make_stack(&m->up, t, FFN, HIDDEN, 40, true);
    make_stack(&m->down, t, HIDDEN, FFN, 70, true);
    for (uint64_t i = 0; i < ROWS * HIDDEN; i++) m->x[i] = rig_rand(1, i);
    for (uint64_t r = 0; r < ROWS; r++)
        for (uint64_t i = 0; i < K; i++) {
            /* expert 3 in most rows, 11 in none; within a row all differ */
            m->id[r * K + i] = i == 0 && r % 4 ? 3.0f : (float)(4 * ((r + i) % 3) + i % 3);
            m->w[r * K + i] = 0.4f + 0.3f * rig_rand(2, r * K + i);
        }
}

static void free_mixture(mixture *m)
{
    free_stack(&m->gate);
    free_stack(&m->up);
    free_stack(&m->down);
}

/* Rows first … first + n - 1 of the mixture in one step; out: [n][HIDDEN]. */
static void run_rows(mixture *m, const char *isa, int32_t threads, int32_t first, int32_t n,
                     float *out)
{
    const op o = {.kind = OP_EXPERTS,
                  .in = {0, 1, 2},
                  .out = {3, VAL_NONE, VAL_NONE},
                  .w = {&m->gate.top, m->alone ? &m->gate.top : &m->up.top, &m->down.top},
                  .u.experts = {m->glu, K}};
    const value v[] = {{HIDDEN, ROWS_ALL, false},
                       {K, ROWS_ALL, false},
                       {K, ROWS_ALL, false},
                       {HIDDEN, ROWS_ALL, false}};
    stack *all[] = {&m->gate, &m->up, &m->down};
    cairn_diag dg = {0};
    rig g;
    rig_open(&g, isa, threads, &o, v, 4, n, 1, NULL);
    for (int i = 0; i < 3; i++) {
        memcpy(all[i]->mapped, all[i]->data, all[i]->size);
        assert_int_equal(backend_cpu.adopt(g.d, &all[i]->top, &dg), CAIRN_OK);
    }
    memcpy(rig_val(&g, 0), m->x + first * HIDDEN, sizeof(float) * (size_t)n * HIDDEN);
    memcpy(rig_val(&g, 1), m->id + first * K, sizeof(float) * (size_t)n * K);
    memcpy(rig_val(&g, 2), m->w + first * K, sizeof(float) * (size_t)n * K);
    backend_cpu.run(g.x, &(step){.n_rows = n, .n_out = 0});
    memcpy(out, rig_val(&g, 3), sizeof(float) * (size_t)n * HIDDEN);
    for (int i = 0; i < 3; i++) backend_cpu.release(g.d, &all[i]->top);
    assert_int_equal(backend_cpu.resident(g.d), 0);
    rig_close(&g);
}

static void product(const stack *s, int32_t e, const double *x, double *y)
{
    const weight *w = &s->expert[e];
    float row[FFN];
    const size_t row_bytes = w->size / (size_t)w->rows;
    for (int32_t r = 0; r < w->rows; r++) {
        dtype_to_f32(w->type, s->data + (size_t)e * w->size + (size_t)r * row_bytes, row,
                     (size_t)w->cols);
        y[r] = w->bias ? (double)w->bias[r] : 0;
        for (int32_t i = 0; i < w->cols; i++) y[r] += (double)row[i] * x[i];
    }
}

static double activated(const glu_spec *s, double g, double u)
{
    if (s->act == GLU_SILU) return u * g / (1 + exp(-g));
    if (s->act == GLU_RELU) return u * fmax(g, 0);
    g = fmin(g, (double)s->limit);
    u = fmax(fmin(u, (double)s->limit), -(double)s->limit);
    return (u + 1) * g / (1 + exp(-(double)s->alpha * g));
}

static void want_row(const mixture *m, int32_t r, double *out)
{
    double x[HIDDEN], g[FFN], u[FFN], y[HIDDEN];
    memset(out, 0, sizeof(double) * HIDDEN);
    for (int32_t i = 0; i < HIDDEN; i++) x[i] = (double)m->x[r * HIDDEN + i];
    for (int32_t i = 0; i < K; i++) {
        const int32_t e = (int32_t)m->id[r * K + i];
        product(&m->gate, e, x, g);
        product(m->alone ? &m->gate : &m->up, e, x, u);
        for (int32_t k = 0; k < FFN; k++) u[k] = activated(&m->glu, g[k], u[k]);
        product(&m->down, e, u, y);
        for (int32_t k = 0; k < HIDDEN; k++) out[k] += (double)m->w[r * K + i] * y[k];
    }
}

static void check_experts(dtype t, glu_spec glu, bool alone, double tolerance)
{
    mixture *m = calloc(1, sizeof *m);
    float whole[ROWS * HIDDEN], again[ROWS * HIDDEN];
    double want[HIDDEN], worst = 0;
    assert_non_null(m);
    make_mixture(m, t);
    m->glu = glu;
    m->alone = alone;
    run_rows(m, "ref", 1, 0, ROWS, whole);
    for (int32_t r = 0; r < ROWS; r++) {
        want_row(m, r, want);
        for (int32_t i = 0; i < HIDDEN; i++) {
            const double error = fabs((double)whole[r * HIDDEN + i] - want[i]);
            if (error > worst) worst = error;
        }
    }
    printf("worst error %.3g (allowed %.3g)\n", worst, tolerance);
    assert_true(worst < tolerance);
    for (int32_t l = 0; l < rig_levels(); l++) {
        for (int32_t threads = 1; threads <= 3; threads += 2) {
            run_rows(m, isa_name(rig_level(l)), threads, 0, ROWS, again);
            assert_memory_equal(again, whole, sizeof whole);
        }
        for (int32_t r = 0; r < ROWS; r++) {
            run_rows(m, isa_name(rig_level(l)), 2, r, 1, again);
            assert_memory_equal(again, whole + r * HIDDEN, sizeof(float) * HIDDEN);
        }
    }
    free_mixture(m);
    free(m);
}

static void test_experts_bf16(void **state)
{
    (void)state;
    check_experts(DT_BF16, (glu_spec){.act = GLU_SILU}, false, 2e-5);
}

/* 8-bit activations: half a step of 1/127 an element, over 64 and 96 elements. */
static void test_experts_q8_0(void **state)
{
    (void)state;
    check_experts(DT_Q8_0, (glu_spec){.act = GLU_SILU}, false, 0.05);
}

/* Likewise; the stack is of the codes' values. */
static void test_experts_mxfp4(void **state)
{
    (void)state;
    check_experts(DT_MXFP4, (glu_spec){.act = GLU_SILU}, false, 0.05);
}

/* Limits that cut about a third of the gates and half of the ups. */
static void test_experts_clamped(void **state)
{
    (void)state;
    check_experts(DT_BF16, (glu_spec){GLU_CLAMPED, 1.702f, 0.5f}, false, 2e-5);
}

/* Experts of two matrices. */
static void test_experts_relu2(void **state)
{
    (void)state;
    check_experts(DT_BF16, (glu_spec){.act = GLU_RELU}, true, 2e-5);
}

static void test_gate(void **state)
{
    const op o = {.kind = OP_GATE, .in = {0, 1, VAL_NONE}, .out = {2, VAL_NONE, VAL_NONE}};
    const value v[] = {{HIDDEN, ROWS_ALL, false}, {1, ROWS_ALL, false}, {HIDDEN, ROWS_ALL, false}};
    rig g;
    (void)state;
    rig_open(&g, NULL, 1, &o, v, 3, ROWS, 1, NULL);
    for (uint64_t i = 0; i < ROWS * HIDDEN; i++) rig_val(&g, 0)[i] = rig_rand(3, i);
    for (uint64_t i = 0; i < ROWS; i++) rig_val(&g, 1)[i] = 5.0f * rig_rand(4, i);
    backend_cpu.run(g.x, &(step){.n_rows = ROWS, .n_out = 0});
    for (int32_t i = 0; i < ROWS * HIDDEN; i++) {
        const double s = 1 / (1 + exp(-(double)rig_val(&g, 1)[i / HIDDEN]));
        const double want = (double)rig_val(&g, 0)[i] * s;
        assert_true(fabs((double)rig_val(&g, 2)[i] - want) <= 3e-7 * fabs(want));
    }
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_route),         cmocka_unit_test(test_route_ties),
        cmocka_unit_test(test_experts_bf16),  cmocka_unit_test(test_experts_q8_0),
        cmocka_unit_test(test_experts_mxfp4), cmocka_unit_test(test_experts_clamped),
        cmocka_unit_test(test_experts_relu2), cmocka_unit_test(test_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
