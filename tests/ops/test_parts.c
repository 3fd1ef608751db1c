/* SLICE, JOIN and HEADS: columns land where op.h says; a head's product is that of its own part, on every
   level, in any company, and close to the sum in double. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ops/ops_rig.h"

enum { ROWS = 70, PARTS = 3, A = 5, B = 7, OUT = 37, IN = 40 };

static void fill(const rig *g, val v, uint64_t seed)
{
    for (int32_t i = 0; i < ROWS * g->value[v].cols; i++)
        rig_val(g, v)[i] = rig_rand(seed, (uint64_t)i);
}

static void test_slice(void **state)
{
    enum { FROM = 2, TAKE = 3 };
    op o = {.kind = OP_SLICE, .in = {0, VAL_NONE, VAL_NONE}, .out = {1, VAL_NONE, VAL_NONE}};
    const value v[] = {{PARTS * B, ROWS_ALL, false}, {PARTS * TAKE, ROWS_ALL, false}};
    rig g;
    (void)state;
    o.u.part.n = PARTS;
    o.u.part.from = FROM;
    rig_open(&g, NULL, 2, &o, v, 2, ROWS, 1, NULL);
    fill(&g, 0, 1);
    backend_cpu.run(g.x, &(step){.n_rows = ROWS, .n_out = 0});
    for (int32_t r = 0; r < ROWS; r++)
        for (int32_t i = 0; i < PARTS * TAKE; i++)
            assert_true(rig_val(&g, 1)[r * PARTS * TAKE + i] ==
                        rig_val(&g, 0)[r * PARTS * B + i / TAKE * B + FROM + i % TAKE]);
    rig_close(&g);
}

static void test_join(void **state)
{
    op o = {.kind = OP_JOIN, .in = {0, 1, VAL_NONE}, .out = {2, VAL_NONE, VAL_NONE}};
    const value v[] = {{PARTS * A, ROWS_ALL, false},
                       {PARTS * B, ROWS_ALL, false},
                       {PARTS * (A + B), ROWS_ALL, false}};
    rig g;
    (void)state;
    o.u.part.n = PARTS;
    rig_open(&g, NULL, 2, &o, v, 3, ROWS, 1, NULL);
    fill(&g, 0, 2);
    fill(&g, 1, 3);
    backend_cpu.run(g.x, &(step){.n_rows = ROWS, .n_out = 0});
    for (int32_t r = 0; r < ROWS; r++)
        for (int32_t i = 0; i < PARTS * (A + B); i++) {
            const int32_t part = i / (A + B), at = i % (A + B);
            const float want = at < A ? rig_val(&g, 0)[(r * PARTS + part) * A + at]
                                      : rig_val(&g, 1)[(r * PARTS + part) * B + at - A];
            assert_true(rig_val(&g, 2)[r * PARTS * (A + B) + i] == want);
        }
    rig_close(&g);
}

typedef struct heads {
    weight top, head[PARTS];
    uint8_t data[PARTS * OUT * IN * 4];
    float f[PARTS * OUT * IN]; /* the same values */
} heads;

static void make_heads(heads *h, dtype t)
{
    const size_t size = (size_t)OUT * IN * (size_t)dtype_block_bytes(t);
    for (size_t i = 0; i < PARTS * OUT * IN; i++) {
        const float x = rig_rand(4, i);
        const uint16_t half = bf16_from_f32(x);
        if (t == DT_BF16)
            memcpy(h->data + 2 * i, &half, 2);
        else
            memcpy(h->data + 4 * i, &x, 4);
        h->f[i] = t == DT_BF16 ? bf16_to_f32(half) : x;
    }
    for (size_t i = 0; i < PARTS; i++)
        h->head[i] = (weight){.name = "head",
                              .type = t,
                              .rows = OUT,
                              .cols = IN,
                              .data = h->data + i * size,
                              .size = size,
                              .klass = WEIGHT_FLOAT,
                              .matmul = true};
    h->top = h->head[0];
    h->top.expert = h->head;
    h->top.n_expert = h->top.n_expert_used = PARTS;
}

static void run_heads(const heads *h, const char *isa, int32_t threads, int32_t first, int32_t n,
                      float *out)
{
    const op o = {.kind = OP_HEADS,
                  .in = {0, VAL_NONE, VAL_NONE},
                  .out = {1, VAL_NONE, VAL_NONE},
                  .w = {&h->top}};
    const value v[] = {{PARTS * IN, ROWS_ALL, false}, {PARTS * OUT, ROWS_ALL, false}};
    rig g;
    rig_open(&g, isa, threads, &o, v, 2, n, 1, NULL);
    for (int32_t i = 0; i < n * PARTS * IN; i++)
        rig_val(&g, 0)[i] = rig_rand(5, (uint64_t)(first * PARTS * IN + i));
    backend_cpu.run(g.x, &(step){.n_rows = n, .n_out = 0});
    memcpy(out, rig_val(&g, 1), sizeof(float) * (size_t)n * PARTS * OUT);
    rig_close(&g);
}

/* A chain of IN products in 16 lanes and a tree: (IN / 16 + 4) roundings. */
static void check_close(const heads *h, const float *y)
{
    for (int32_t i = 0; i < ROWS * PARTS * OUT; i++) {
        const int32_t row = i / (PARTS * OUT), part = i / OUT % PARTS, at = i % OUT;
        double sum = 0, mag = 0;
        for (int32_t k = 0; k < IN; k++) {
            const double x = (double)rig_rand(5, (uint64_t)((row * PARTS + part) * IN + k));
            const double p = x * (double)h->f[(part * OUT + at) * IN + k];
            sum += p;
            mag += fabs(p);
        }
        assert_true(fabs((double)y[i] - sum) <= (IN / 16.0 + 5) * 0x1p-24 * mag);
    }
}

static void check_heads(dtype t)
{
    static heads h;
    static float whole[ROWS * PARTS * OUT], again[ROWS * PARTS * OUT];
    make_heads(&h, t);
    run_heads(&h, "ref", 1, 0, ROWS, whole);
    check_close(&h, whole);
    for (int32_t l = 0; l < rig_levels(); l++) {
        const char *isa = isa_name(rig_level(l));
        run_heads(&h, isa, 3, 0, ROWS, again);
        assert_memory_equal(again, whole, sizeof whole);
        for (int32_t r = 0; r < ROWS; r += 23) {
            run_heads(&h, isa, 2, r, 1, again);
            assert_memory_equal(again, whole + r * PARTS * OUT, sizeof(float) * PARTS * OUT);
        }
    }
}

static void test_heads_bf16(void **state)
{
    (void)state;
    check_heads(DT_BF16);
}

static void test_heads_f32(void **state)
{
    (void)state;
    check_heads(DT_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_heads_bf16),
        cmocka_unit_test(test_heads_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
