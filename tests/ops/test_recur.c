/* Recurrent ops: each equals its meaning in op.h computed in double, and gives the same bits on every
   level, however a sequence is cut into steps, beside whom it runs and on how many threads. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops_rig.h"

/* Half an ulp of 1, and what docs/numerics.md says of functions, all relative. */
#define EPS      0x1p-24
#define SILU     1.6e-7
#define SOFTPLUS 2.1e-7
#define EXP      7.94e-8

enum { ROWS = 41, STATE_GAP = 7, MAX_IN = 2, MAX_COLS = 1024 };

/* An op of one or two inputs and its widths; row r of sequence q is a function of (q, r). */
typedef struct recur_case {
    op o;
    int32_t in_cols[MAX_IN], cols, n_state;
} recur_case;

static float input(int32_t seq, int32_t in, int32_t row, int32_t i)
{
    return rig_rand((uint64_t)(seq * MAX_IN + in), (uint64_t)(row * MAX_COLS + i));
}

/* Steps of `chunk` rows of sequence 0; with company, sequence 1 gives three rows before them.  Apart: a step reads the
   state of sequence 0 where it may not write. */
static void run_case(const recur_case *c, const char *isa, int32_t threads, int32_t chunk,
                     bool company, bool apart, float *out)
{
    enum { OTHER = 3 };
    const size_t n_state = (size_t)c->n_state + STATE_GAP;
    const bool two = c->o.in[1] != VAL_NONE;
    const value v[] = {{c->in_cols[0], ROWS_ALL, false},
                       {two ? c->in_cols[1] : 1, ROWS_ALL, false},
                       {c->cols, ROWS_ALL, false}};
    const kv_layer kv[2] = {{.group = -1}, {.group = -1, .state_off = 4}};
    float *state[3];
    for (int i = 0; i < 3; i++) assert_non_null(state[i] = calloc(n_state, sizeof(float)));
    rig g;
    rig_open(&g, isa, threads, &c->o, v, 3, chunk + OTHER, 1, NULL);
    for (int32_t at = 0, other = 0; at < ROWS; at += chunk) {
        const int32_t n = ROWS - at < chunk ? ROWS - at : chunk, before = company ? OTHER : 0;
        if (apart) {
            memcpy(state[2], state[0], n_state * sizeof(float));
            memset(state[0] + 4, 0xff, (size_t)c->n_state * sizeof(float)); /* NaN */
        }
        const segment seg[2] = {{.row0 = 0, .n_rows = OTHER, .pos0 = other, .state = state[1]},
                                {.row0 = before,
                                 .n_rows = n,
                                 .pos0 = at,
                                 .state = state[0],
                                 .from = apart ? state[2] : NULL}};
        for (int32_t k = 0; k < (two ? 2 : 1); k++)
            for (int32_t r = 0; r < before + n; r++)
                for (int32_t i = 0; i < c->in_cols[k]; i++)
                    rig_val(&g, k)[r * c->in_cols[k] + i] =
                        r < before ? input(1, k, other + r, i) : input(0, k, at + r - before, i);
        backend_cpu.run(g.x, &(step){.n_rows = before + n,
                                     .n_seg = company ? 2 : 1,
                                     .seg = company ? seg : seg + 1,
                                     .kv = kv});
        memcpy(out + (size_t)at * (size_t)c->cols, rig_val(&g, 2) + before * c->cols,
               sizeof(float) * (size_t)(n * c->cols));
        other += before;
    }
    for (int32_t i = 0; i < 4; i++) assert_true(state[0][i] == 0); /* another layer's */
    rig_close(&g);
    for (int i = 0; i < 3; i++) free(state[i]);
}

static void check_bits(const recur_case *c, const float *want)
{
    static const int32_t chunks[] = {1, 2, 5, ROWS};
    const size_t n = (size_t)ROWS * (size_t)c->cols;
    float *got = calloc(n, sizeof *got);
    assert_non_null(got);
    for (int32_t l = 0, n_level = rig_levels(); l < n_level; l++)
        for (size_t k = 0; k < 8 * sizeof chunks / sizeof *chunks; k++) {
            if (left_out()) continue;
            run_case(c, isa_name(rig_level(l)), k & 1 ? 3 : 1, chunks[k / 8], k & 2, k & 4, got);
            for (size_t i = 0; i < n; i++)
                if (!rig_same(got[i], want[i]))
                    fail_msg("%s, chunks of %d, %s%s: row %zu is %a, not %a",
                             isa_name(rig_level(l)), (int)chunks[k / 8],
                             k & 2 ? "in company" : "alone", k & 4 ? ", states apart" : "",
                             i / (size_t)c->cols, (double)got[i], (double)want[i]);
        }
    free(got);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void check_conv(int32_t k, int32_t cols, bool silu_after, bool biased)
{
    float w[8 * MAX_COLS], bias[MAX_COLS];
    const weight kernel = {.rows = k, .cols = cols, .f32 = w, .bias = biased ? bias : NULL};
    const recur_case c = {.o = {.kind = OP_CONV,
                                .layer = 1,
                                .in = {0, VAL_NONE, VAL_NONE},
                                .out = {2, VAL_NONE, VAL_NONE},
                                .w = {&kernel},
                                .u.conv = {.state = 3, .silu = silu_after}},
                          .in_cols = {cols},
                          .cols = cols,
                          .n_state = (k - 1) * cols + 3};
    float *y = calloc((size_t)ROWS * (size_t)cols, sizeof *y);
    assert_non_null(y);
    for (int32_t i = 0; i < k * cols; i++) w[i] = rig_rand(90, (uint64_t)i);
    for (int32_t i = 0; i < cols; i++) bias[i] = rig_rand(91, (uint64_t)i);
    run_case(&c, "ref", 1, ROWS, false, false, y);
    for (int32_t r = 0; r < ROWS; r++)
        for (int32_t i = 0; i < cols; i++) {
            double sum = biased ? (double)bias[i] : 0, size = fabs(sum);
            for (int32_t j = 0; j < k; j++)
                if (r - k + 1 + j >= 0) {
                    const double x = (double)input(0, 0, r - k + 1 + j, i);
                    sum += (double)w[j * cols + i] * x;
                    size += fabs((double)w[j * cols + i] * x);
                }
            /* k roundings of partial sums; silu's slope is below 1.1, its own error in numerics.md */
            const double allowed = 1.1 * k * EPS * size + (silu_after ? SILU * size : 0);
            if (silu_after) sum = silu(sum);
            assert_true(fabs((double)y[r * cols + i] - sum) <= allowed);
        }
    check_bits(&c, y);
    free(y);
}

static void test_conv(void **state)
{
    (void)state;
    check_conv(3, 64, false, false);
    check_conv(4, 301, true, true);
    check_conv(2, 17, true, false);
    check_conv(7, 600, false, true);
}

typedef struct ssm_case {
    ssm_spec s;
    float a[32], d[32], bias[32];
} ssm_case;

/* One head in double, over all rows, and beside each number what f32 may be off by: the errors of the time
   step and of exp, one rounding an operation, and what the state brought along. */
static void scan_in_double(const ssm_case *c, int32_t head, double *y, double *off)
{
    const ssm_spec *s = &c->s;
    const int32_t inner = s->n_head * s->dim, at_x = head * s->dim;
    const int32_t at_b = inner + head / (s->n_head / s->n_group) * s->n_state;
    const int32_t at_c = at_b + s->n_group * s->n_state;
    const size_t n_state = (size_t)(s->dim * s->n_state);
    double *h = calloc(2 * n_state, sizeof *h), *e = h + n_state;
    assert_non_null(h);
    for (int32_t r = 0; r < ROWS; r++) {
        const double raw = (double)(input(0, 1, r, head) + c->bias[head]);
        const double dt = fmin(fmax(log1p(exp(raw)), (double)s->dt_min), (double)s->dt_max);
        const double power = dt * (double)c->a[head], a = exp(power);
        const double off_a = fabs(power) * (SOFTPLUS + EPS) + EXP + EPS;
        for (int32_t p = 0; p < s->dim; p++) {
            const double x = (double)input(0, 0, r, at_x + p), skip = (double)c->d[head] * x;
            double sum = skip, size = 0, brought = 0;
            for (int32_t n = 0; n < s->n_state; n++) {
                const size_t at = (size_t)(p * s->n_state + n);
                const double in = dt * x * (double)input(0, 0, r, at_b + n);
                const double out = (double)input(0, 0, r, at_c + n);
                e[at] = a * e[at] + fabs(a * h[at]) * off_a + fabs(in) * (SOFTPLUS + EPS);
                h[at] = a * h[at] + in;
                e[at] += EPS * fabs(h[at]);
                sum += h[at] * out;
                size += fabs(h[at] * out);
                brought += e[at] * fabs(out);
            }
            y[r * inner + at_x + p] = sum;
            /* lane16: a chain of a sixteenth of them, four additions; then the skip */
            off[r * inner + at_x + p] =
                1.01 * (brought + (s->n_state / 16 + 5) * EPS * size + EPS * (fabs(skip) + size));
        }
    }
    free(h);
}

static void check_ssm(const ssm_spec *s)
{
    ssm_case c = {.s = *s};
    const weight a = {.rows = 1, .cols = s->n_head, .f32 = c.a};
    const weight d = {.rows = 1, .cols = s->n_head, .f32 = c.d};
    const weight bias = {.rows = 1, .cols = s->n_head, .f32 = c.bias};
    const int32_t inner = s->n_head * s->dim, bc = s->n_group * s->n_state;
    const recur_case k = {.o = {.kind = OP_SSM,
                                .layer = 1,
                                .in = {0, 1, VAL_NONE},
                                .out = {2, VAL_NONE, VAL_NONE},
                                .w = {&a, &d, &bias},
                                .u.ssm = {.state = 5, .s = *s}},
                          .in_cols = {inner + 2 * bc, s->n_head},
                          .cols = inner,
                          .n_state = inner * s->n_state + 5};
    float *y = calloc((size_t)(ROWS * inner), sizeof *y);
    double *want = calloc(2 * (size_t)(ROWS * inner), sizeof *want), *off = want + ROWS * inner;
    assert_true(y && want);
    for (uint64_t i = 0; i < (uint64_t)s->n_head; i++) {
        c.a[i] = -1.0f - rig_rand(92, i);
        c.d[i] = rig_rand(93, i);
        c.bias[i] = 2 * rig_rand(94, i);
        scan_in_double(&c, (int32_t)i, want, off);
    }
    run_case(&k, "ref", 1, ROWS, false, false, y);
    for (int32_t i = 0; i < ROWS * inner; i++) assert_true(fabs((double)y[i] - want[i]) <= off[i]);
    check_bits(&k, y);
    free(y);
    free(want);
}

static void test_ssm(void **state)
{
    static const ssm_spec specs[] = {
        {8, 16, 16, 2, 0, INFINITY},
        {6, 5, 37, 3, 0.3f, 0.8f},
        {4, 64, 128, 1, 0.001f, INFINITY},
        {1, 7, 9, 1, 0, INFINITY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) check_ssm(&specs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_ssm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
