/* RMS_NORM, of a sum or not, LINEAR of two weights, GLU, LINEAR: many rows, which run as one, give the bits that a few rows give op by op, on
   every level and any number of threads; and the values between stay unwritten, so it is the joined way that is
   compared. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/num.h"
#include "base/rng.h"
#include "ops/ops_rig.h"

enum { ROWS = 70, FEW = CPU_GATED_ROWS - 1, COLS = 256, MOST = 256, N_W = 3 };

typedef struct gated_case {
    const char *name;
    dtype in, down;
    int32_t ffn;
    bool crossed, biased, normed, added; /* added: what is normed is a sum */
} gated_case;

static const gated_case cases[] = {
    {"codes of 32", DT_Q4_1, DT_Q4_1, 96, false, true, true, false},
    {"codes of 32, fine", DT_Q4_K, DT_Q6_K, 256, true, false, true, true},
    {"floats, two terms of 256", DT_Q4_K, DT_Q2_K, 256, false, true, false, false},
    {"floats, part of a tile", DT_Q8_0, DT_BF16, 72, true, true, true, false},
};

typedef struct net {
    weight w[N_W]; /* gate, up, down */
    uint8_t *data[N_W], *mapped[N_W];
    float bias[MOST], gain[COLS];
} net;

/* Random codes under scales that keep sums small. */
static void make_weight(net *n, int i, dtype t, int32_t rows, int32_t cols)
{
    const size_t block = (size_t)dtype_block_bytes(t), elems = (size_t)dtype_block(t);
    const size_t size = (size_t)rows * (size_t)cols / elems * block;
    n->data[i] = malloc(size);
    n->mapped[i] = malloc(size);
    assert_non_null(n->data[i]);
    assert_non_null(n->mapped[i]);
    for (size_t k = 0; k < size; k++) n->data[i][k] = (uint8_t)rng_u64(7 + (uint64_t)i, 0, k);
    for (size_t k = 0; k < size; k += block) {
        const uint16_t d = f16_from_f32(0.002f), m = f16_from_f32(t == DT_Q4_1 ? -0.015f : 0.002f);
        const size_t at = t == DT_Q6_K ? 208 : t == DT_Q2_K ? 80 : 0;
        const uint16_t half = bf16_from_f32(0.1f * rig_rand(3, k));
        memcpy(n->data[i] + k + at, t == DT_BF16 ? &half : &d, 2);
        if (t == DT_Q4_1 || t == DT_Q4_K || t == DT_Q2_K) memcpy(n->data[i] + k + at + 2, &m, 2);
    }
    n->w[i] = (weight){.name = "w",
                       .type = t,
                       .rows = rows,
                       .cols = cols,
                       .data = n->mapped[i],
                       .size = size,
                       .klass = i == 2 ? WEIGHT_FFN_DOWN : WEIGHT_PLAIN,
                       .matmul = true};
}

static void make_net(net *n, const gated_case *c)
{
    memset(n, 0, sizeof *n);
    for (uint64_t i = 0; i < MOST; i++) n->bias[i] = rig_rand(4, i);
    for (uint64_t i = 0; i < COLS; i++) n->gain[i] = rig_rand(6, i);
    make_weight(n, 0, c->in, c->ffn, COLS);
    make_weight(n, 1, c->in, c->ffn, COLS);
    make_weight(n, 2, c->down, COLS, c->ffn);
    for (int i = 0; c->biased && i < N_W; i++) n->w[i].bias = n->bias;
}

/* Row `row` of the input; the fifth is not finite somewhere, the sixth so large that its gates overflow. */
static void fill_row(float *x, int32_t row)
{
    for (int32_t i = 0; i < COLS; i++)
        x[i] = rig_rand(5, (uint64_t)(row * COLS + i)) * (row == 6 ? 1e30f : 1.0f);
    if (row == 5) x[77] = __builtin_nanf("");
}

/* Rows first … first + n - 1 in one step.  The GLU's place is that of the input, which is dead by then. */
static void run_rows(net *n, const gated_case *c, const char *isa, int32_t threads, int32_t first,
                     int32_t n_rows, float *out)
{
    const weight gain = {.name = "gain", .rows = 1, .cols = COLS, .f32 = n->gain};
    const op ops[] = {{.kind = OP_RMS_NORM,
                       .n_w = 1,
                       .in = {0, c->added ? 0 : VAL_NONE, VAL_NONE},
                       .out = {5, c->added ? 6 : VAL_NONE, VAL_NONE},
                       .w = {&gain},
                       .u.norm = {.eps = 1e-5f, .group = COLS}},
                      {.kind = OP_LINEAR,
                       .n_w = 2,
                       .in = {c->normed ? 5 : 0, VAL_NONE, VAL_NONE},
                       .out = {1, 2, VAL_NONE},
                       .w = {&n->w[0], &n->w[1]}},
                      {.kind = OP_GLU,
                       .in = {c->crossed ? 2 : 1, c->crossed ? 1 : 2, VAL_NONE},
                       .out = {3, VAL_NONE, VAL_NONE},
                       .u.glu = {GLU_SILU}},
                      {.kind = OP_LINEAR,
                       .n_w = 1,
                       .in = {3, VAL_NONE, VAL_NONE},
                       .out = {4, VAL_NONE, VAL_NONE},
                       .w = {&n->w[2]}}};
    value v[] = {{COLS, ROWS_ALL, false},   {c->ffn, ROWS_ALL, false}, {c->ffn, ROWS_ALL, false},
                 {c->ffn, ROWS_ALL, false}, {COLS, ROWS_ALL, false},   {COLS, ROWS_ALL, false},
                 {COLS, ROWS_ALL, false}};
    const size_t each = round_up((size_t)n_rows * MOST * sizeof(float), 64);
    size_t offset[] = {0, each, 2 * each, 0, 3 * each, 4 * each, 5 * each};
    op list[N_W + 1];
    memcpy(list, ops + !c->normed, sizeof *list * (N_W + (size_t)c->normed));
    prog p = {.op = list, .n_op = N_W + c->normed, .value = v, .n_value = 7, .logits = VAL_NONE};
    const plan pl = {&p, n_rows, n_rows, offset, 6 * each};
    const dev_opts opts = {CAIRN_COMPUTE_FAST, threads, isa};
    cairn_diag dg = {0};
    dev *d;
    exec *x;
    assert_int_equal(backend_cpu.open(&opts, &d, &dg), CAIRN_OK);
    for (int i = 0; i < N_W; i++) {
        memcpy(n->mapped[i], n->data[i], n->w[i].size);
        assert_int_equal(backend_cpu.adopt(d, &n->w[i], &dg), CAIRN_OK);
    }
    assert_int_equal(backend_cpu.compile(d, &pl, 1, &x, &dg), CAIRN_OK);
    for (int32_t r = 0; r < n_rows; r++) fill_row((float *)(void *)x->values + r * COLS, first + r);
    memset(x->values + each, 0x5a, 2 * each);
    assert_true(!c->normed || (x->with[0] == CPU_DONE && (x->with[1] & CPU_NORMS)));
    backend_cpu.run(x, &(step){.n_rows = n_rows, .n_out = n_rows});
    memcpy(out, x->values + 3 * each, sizeof(float) * (size_t)n_rows * COLS);
    bool written = false;
    for (size_t i = each; i < 3 * each; i++) written |= x->values[i] != 0x5a;
    assert_true(written == (n_rows < CPU_GATED_ROWS));
    backend_cpu.exec_free(x);
    for (int i = 0; i < N_W; i++) backend_cpu.release(d, &n->w[i]);
    backend_cpu.close(d);
}

static void check_case(const gated_case *c)
{
    static float want[ROWS * COLS], got[ROWS * COLS];
    int32_t n_nan = 0;
    net n;
    make_net(&n, c);
    for (int32_t r = 0; r < ROWS; r += FEW)
        run_rows(&n, c, "ref", 1, r, min_i32(FEW, ROWS - r), want + r * COLS);
    for (int32_t i = 0; i < ROWS * COLS; i++) n_nan += want[i] != want[i];
    assert_true(n_nan >= COLS && n_nan <= 2 * COLS);
    for (int32_t l = 0; l < rig_levels(); l++)
        for (int32_t threads = 1; threads <= 3; threads += 2) {
            run_rows(&n, c, isa_name(rig_level(l)), threads, 0, ROWS, got);
            for (int32_t i = 0; i < ROWS * COLS; i++)
                if (!rig_same(got[i], want[i]))
                    fail_msg("%s, level %s, row %d, column %d: %g, not %g", c->name,
                             isa_name(rig_level(l)), i / COLS, i % COLS, (double)got[i],
                             (double)want[i]);
        }
    for (int i = 0; i < N_W; i++) {
        free(n.data[i]);
        free(n.mapped[i]);
    }
}

static void test_gated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
