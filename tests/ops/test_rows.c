/* The ops that are not LINEAR or ATTEND: each equals its meaning in op.h written out, in whole steps
   and row by row, on every level and with threads. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/cpu/kern/kern_math.h"
#include "base/fmath.h"
#include "ops/ops_rig.h"

enum { ROWS = 37, COLS = 1536, GROUP = 96, N_OUT = 5, HEADS = 16, FREQ = 40 };

static const int32_t out_row[N_OUT] = {0, 3, 4, 20, 36};

typedef struct row_case {
    const char *name;
    op o;
    rowset rows;
    bool rope;
    /* element `i` of row `row`, from the two operands' rows */
    float (*want)(const float *a, const float *b, int32_t row, int32_t i);
} row_case;

static float gain[COLS], inv_freq[FREQ], inv_freq_long[FREQ];
static int32_t pos[ROWS];

static float lane16(const float *x, int32_t n)
{
    float l[16] = {0};
    for (int32_t i = 0; i < n; i++) l[i % 16] = fmaf(x[i], x[i], l[i % 16]);
    for (int32_t s = 8; s > 0; s /= 2)
        for (int32_t i = 0; i < s; i++) l[i] += l[i + s];
    return l[0];
}

static float want_norm(const float *a, const float *b, int32_t row, int32_t i)
{
    float x[GROUP];
    const int32_t at = i / GROUP * GROUP;
    (void)row;
    for (int32_t k = 0; k < GROUP; k++) x[k] = b ? a[at + k] + b[at + k] : a[at + k];
    float inv = 1.0f / sqrtf(lane16(x, GROUP) / (float)GROUP + 1e-5f);
    return (x[i - at] * inv) * gain[i - at];
}
static float want_norm_alone(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    return want_norm(a, NULL, row, i);
}
static float want_layer_norm_by(const float *a, int32_t i, const float *by)
{
    float d[GROUP], l[16] = {0};
    const int32_t at = i / GROUP * GROUP;
    for (int32_t k = 0; k < GROUP; k++) l[k % 16] += a[at + k];
    for (int32_t s = 8; s > 0; s /= 2)
        for (int32_t k = 0; k < s; k++) l[k] += l[k + s];
    for (int32_t k = 0; k < GROUP; k++) d[k] = a[at + k] - l[0] / (float)GROUP;
    return (d[i - at] * (1.0f / sqrtf(lane16(d, GROUP) / (float)GROUP + 1e-5f))) * by[i - at];
}
static float want_layer_norm(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return want_layer_norm_by(a, i, gain);
}
/* Gains of two groups. */
static float want_layer_norm_wide(const float *a, const float *b, int32_t row, int32_t i)
{
    return i / GROUP % 2 ? want_layer_norm_by(a, i, gain + GROUP) : want_layer_norm(a, b, row, i);
}
static float want_add(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return a[i] + b[i];
}
static float want_scale(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return a[i] * 2.5f;
}
static float want_softcap(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return 2.5f * kern_tanh(a[i] / 2.5f);
}
static const xielu_params xielu_numbers = {0.9f, 0.7f, 0.4f, -1e-3f};
static float want_xielu(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return kern_xielu(a[i], &xielu_numbers);
}
static float want_silu(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return kern_silu(a[i]) * b[i];
}
static float want_gelu_tanh(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return kern_gelu_tanh(a[i]) * b[i];
}
static float want_bilinear(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return a[i] * b[i];
}
static float want_sigmoid(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return 1.0f / (1.0f + kern_exp(-a[i])) * b[i];
}
static float want_relu(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return fmaxf(a[i], 0) * b[i];
}
static float want_gelu_erf(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)row;
    return kern_gelu_erf(a[i]) * b[i];
}
static float want_copy(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return a[i];
}

/* Rows 20 and on are of a sequence that is longer than switch_len. */
static float want_rope(const float *a, const float *b, int32_t row, int32_t i)
{
    const int32_t dim = COLS / HEADS, h = i / dim * dim, d = i % dim;
    (void)b;
    if (d >= 2 * FREQ) return a[i];
    const float *freq = row >= 20 ? inv_freq_long : inv_freq;
    float s, c;
    kern_sincos((float)pos[row] * freq[d % FREQ], &s, &c);
    const float scale = 1.25f * (float)(1 + (double)0.1f * fmath_log(1 + pos[row] / 100));
    s *= scale;
    c *= scale;
    float x1 = a[h + d % FREQ], x2 = a[h + d % FREQ + FREQ];
    return d < FREQ ? fmaf(x1, c, -(x2 * s)) : fmaf(x2, c, x1 * s);
}

static float bias[GROUP];
static const weight bias_weight = {.rows = 1, .cols = GROUP, .f32 = bias};

static float want_layer_norm_bias(const float *a, const float *b, int32_t row, int32_t i)
{
    return want_layer_norm(a, b, row, i) + bias[i % GROUP];
}

static float want_act_silu(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return kern_silu(a[i]);
}

static float want_act_gelu(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return kern_gelu_erf(a[i]);
}

static float want_act_sigmoid(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return 1.0f / (1.0f + kern_exp(-a[i]));
}

static float want_act_relu(const float *a, const float *b, int32_t row, int32_t i)
{
    (void)b;
    (void)row;
    return fmaxf(a[i], 0.0f);
}

static const weight gain_weight = {.rows = 1, .cols = GROUP, .f32 = gain};
static const weight wide_gain = {.rows = 1, .cols = 2 * GROUP, .f32 = gain};

/* Ops of value 0, of 0 and 1, into 2; what norms have besides. */
#define ONE(op)   .kind = OP_##op, .in = {0, -1, -1}, .out = {2, -1, -1}
#define TWO(op)   .kind = OP_##op, .in = {0, 1, -1}, .out = {2, -1, -1}
#define GAIN(...) .n_w = 1, .w = {__VA_ARGS__}, .u.norm = {1e-5f, GROUP}
static const row_case cases[] = {
    {"RMS_NORM", {ONE(RMS_NORM), GAIN(&gain_weight)}, ROWS_ALL, false, want_norm_alone},
    {"RMS_NORM with ADD",
     {.kind = OP_RMS_NORM, .in = {0, 1, -1}, .out = {2, 3, -1}, GAIN(&gain_weight)},
     ROWS_ALL,
     false,
     want_norm},
    {"LAYER_NORM", {ONE(LAYER_NORM), GAIN(&gain_weight)}, ROWS_ALL, false, want_layer_norm},
    {"LAYER_NORM, a gain a head",
     {ONE(LAYER_NORM), GAIN(&wide_gain)},
     ROWS_ALL,
     false,
     want_layer_norm_wide},
    {"LAYER_NORM with bias",
     {ONE(LAYER_NORM), GAIN(&gain_weight, &bias_weight)},
     ROWS_ALL,
     false,
     want_layer_norm_bias},
    {"ACT silu", {ONE(ACT), .u.glu = {GLU_SILU}}, ROWS_ALL, false, want_act_silu},
    {"ACT gelu", {ONE(ACT), .u.glu = {GLU_GELU_ERF}}, ROWS_ALL, false, want_act_gelu},
    {"ACT sigmoid", {ONE(ACT), .u.glu = {GLU_SIGMOID}}, ROWS_ALL, false, want_act_sigmoid},
    {"ACT relu", {ONE(ACT), .u.glu = {GLU_RELU}}, ROWS_ALL, false, want_act_relu},
    {"XIELU", {ONE(XIELU), .u.xielu = {0.9f, 0.7f, 0.4f, -1e-3f}}, ROWS_ALL, false, want_xielu},
    {"ADD", {TWO(ADD)}, ROWS_ALL, false, want_add},
    {"SCALE", {ONE(SCALE), .u.map = {2.5f}}, ROWS_ALL, false, want_scale},
    {"SOFTCAP", {ONE(SOFTCAP), .u.map = {2.5f}}, ROWS_ALL, false, want_softcap},
    {"GLU silu", {TWO(GLU), .u.glu = {GLU_SILU}}, ROWS_ALL, false, want_silu},
    {"GLU gelu_tanh", {TWO(GLU), .u.glu = {GLU_GELU_TANH}}, ROWS_ALL, false, want_gelu_tanh},
    {"GLU gelu_erf", {TWO(GLU), .u.glu = {GLU_GELU_ERF}}, ROWS_ALL, false, want_gelu_erf},
    {"GLU bilinear", {TWO(GLU), .u.glu = {GLU_BILINEAR}}, ROWS_ALL, false, want_bilinear},
    {"GLU sigmoid", {TWO(GLU), .u.glu = {GLU_SIGMOID}}, ROWS_ALL, false, want_sigmoid},
    {"GLU relu", {TWO(GLU), .u.glu = {GLU_RELU}}, ROWS_ALL, false, want_relu},
    {"SELECT", {ONE(SELECT)}, ROWS_OUT, false, want_copy},
    {"ROPE", {ONE(ROPE), .u.rope = {0, HEADS, COLS / HEADS}}, ROWS_ALL, true, want_rope},
};

static void check_case(const row_case *c, isa_level l, int32_t threads)
{
    if (left_out()) return;
    const rope_spec rs = {FREQ, inv_freq, inv_freq_long, 1000, 1.25f, false, 0.1f, 100};
    const value v[] = {{COLS, ROWS_ALL, false},
                       {COLS, ROWS_ALL, false},
                       {COLS, c->rows, false},
                       {COLS, ROWS_ALL, false}};
    const segment seg[2] = {{.row0 = 0, .n_rows = 20, .known_len = 100},
                            {.row0 = 20, .n_rows = ROWS - 20, .known_len = 1001}};
    const step s = {
        .n_rows = ROWS, .n_out = N_OUT, .n_seg = 2, .pos = pos, .out_row = out_row, .seg = seg};
    rig g;
    rig_open(&g, isa_name(l), threads, &c->o, v, 4, ROWS, 64, c->rope ? &rs : NULL);
    for (val k = 0; k < 2; k++)
        for (int32_t i = 0; i < ROWS * COLS; i++)
            rig_val(&g, k)[i] = 4 * rig_rand((uint64_t)k, (uint64_t)i);
    backend_cpu.run(g.x, &s);
    const float *a = rig_val(&g, 0), *b = rig_val(&g, 1), *y = rig_val(&g, 2);
    for (int32_t r = 0; r < (c->rows == ROWS_ALL ? ROWS : N_OUT); r++) {
        const int32_t row = c->rows == ROWS_ALL ? r : out_row[r];
        for (int32_t i = 0; i < COLS; i++) {
            float want = c->want(a + row * COLS, b + row * COLS, row, i);
            if (!rig_same(y[r * COLS + i], want))
                fail_msg("%s at %s, %d threads, row %d element %d: %a, not %a", c->name,
                         isa_name(l), threads, row, i, (double)y[r * COLS + i], (double)want);
        }
    }
    if (c->o.out[1] >= 0)
        for (int32_t i = 0; i < ROWS * COLS; i++)
            assert_true(rig_same(rig_val(&g, 3)[i], a[i] + b[i]));
    rig_close(&g);
}

static void test_rows(void **state)
{
    (void)state;
    for (int32_t i = 0; i < COLS; i++) gain[i] = rig_rand(9, (uint64_t)i);
    for (int32_t i = 0; i < GROUP; i++) bias[i] = rig_rand(10, (uint64_t)i);
    for (int32_t i = 0; i < FREQ; i++) {
        inv_freq[i] = 1.0f / (float)(1 + i * i);
        inv_freq_long[i] = inv_freq[i] * 0.3f;
    }
    for (int32_t i = 0; i < ROWS; i++) pos[i] = i < 20 ? 70 + i : 900 + i;
    const int32_t levels = rig_levels();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t l = 0; l < levels; l++) {
            check_case(&cases[i], rig_level(l), 1);
            check_case(&cases[i], rig_level(l), 3);
        }
}

static void test_embed(void **state)
{
    (void)state;
    enum { VOCAB = 11, DIM = 48 };
    float table[VOCAB * DIM];
    for (int32_t i = 0; i < VOCAB * DIM; i++) table[i] = rig_rand(5, (uint64_t)i);
    const weight w = {.type = DT_F32,
                      .rows = VOCAB,
                      .cols = DIM,
                      .data = (const uint8_t *)table,
                      .size = sizeof table,
                      .gather = true};
    const int32_t id[4] = {10, 0, 7, 7};
    for (int k = 0; k < 2; k++) {
        const float scale = k ? 6.9f : 1.0f;
        const op o = {.kind = OP_EMBED,
                      .in = {-1, -1, -1},
                      .out = {0, -1, -1},
                      .n_w = 1,
                      .w = {&w},
                      .u.embed = {.scale = scale}};
        const value v = {DIM, ROWS_ALL, false};
        rig g;
        rig_open(&g, NULL, 1, &o, &v, 1, 4, 64, NULL);
        backend_cpu.run(g.x, &(step){.n_rows = 4, .id = id});
        for (int32_t r = 0; r < 4; r++)
            for (int32_t i = 0; i < DIM; i++)
                assert_true(rig_same(rig_val(&g, 0)[r * DIM + i], table[id[r] * DIM + i] * scale));
        rig_close(&g);
    }
}

/* Rows by position, and one row for all. */
static void test_embed_places(void **state)
{
    enum { TABLE = 9, DIM = 20 };
    float table[TABLE * DIM];
    (void)state;
    for (int32_t i = 0; i < TABLE * DIM; i++) table[i] = rig_rand(6, (uint64_t)i);
    const weight w = {.type = DT_F32,
                      .rows = TABLE,
                      .cols = DIM,
                      .data = (const uint8_t *)table,
                      .size = sizeof table,
                      .gather = true};
    const int32_t at[4] = {0, 1, 0, 5}, id[4] = {9, 9, 9, 9}; /* ids are not looked at */
    for (embed_by by = EMBED_POS; by <= EMBED_ROW; by++) {
        const op o = {.kind = OP_EMBED,
                      .in = {-1, -1, -1},
                      .out = {0, -1, -1},
                      .w = {&w},
                      .u.embed = {1.0f, by, 3}};
        const value v = {DIM, ROWS_ALL, false};
        rig g;
        rig_open(&g, NULL, 1, &o, &v, 1, 4, 64, NULL);
        backend_cpu.run(g.x, &(step){.n_rows = 4, .id = id, .pos = at});
        for (int32_t r = 0; r < 4; r++)
            assert_memory_equal(rig_val(&g, 0) + r * DIM,
                                table + (by == EMBED_POS ? 3 + at[r] : 3) * DIM,
                                DIM * sizeof *table);
        rig_close(&g);
    }
}

static void test_input(void **state)
{
    (void)state;
    const op o = {.kind = OP_INPUT, .in = {-1, -1, -1}, .out = {0, -1, -1}};
    const value v = {8, ROWS_ALL, false};
    float rows[16];
    rig g;
    for (int32_t i = 0; i < 16; i++) rows[i] = (float)i;
    rig_open(&g, NULL, 1, &o, &v, 1, 2, 64, NULL);
    backend_cpu.run(g.x, &(step){.n_rows = 2, .input = rows});
    assert_memory_equal(rig_val(&g, 0), rows, sizeof rows);
    rig_close(&g);
}

static void test_tap(void **state)
{
    (void)state;
    const op o = {.kind = OP_TAP, .in = {0, -1, -1}, .out = {-1, -1, -1}, .u.tap = {1}};
    const value v = {8, ROWS_ALL, false};
    float got[16] = {0}, *tap[2] = {NULL, got};
    rig g;
    rig_open(&g, NULL, 1, &o, &v, 1, 2, 64, NULL);
    for (int32_t i = 0; i < 16; i++) rig_val(&g, 0)[i] = (float)i;
    backend_cpu.run(g.x, &(step){.n_rows = 2}); /* nobody asked */
    backend_cpu.run(g.x, &(step){.n_rows = 2, .tap = tap});
    assert_memory_equal(got, rig_val(&g, 0), sizeof got);
    rig_close(&g);
}

static void test_open(void **state)
{
    (void)state;
    dev *d;
    cairn_diag dg = {0};
    assert_int_equal(backend_cpu.open(&(dev_opts){.isa = "pentium"}, &d, &dg), CAIRN_E_ARG);
    assert_says(&dg, "pentium");
    assert_ok(backend_cpu.open(&(dev_opts){.n_threads = 3}, &d, &dg));
    assert_int_equal(backend_cpu.threads(d), 3);
    backend_cpu.limit_threads(d, 2);
    assert_int_equal(backend_cpu.threads(d), 2);
    backend_cpu.limit_threads(d, 0);
    assert_int_equal(backend_cpu.threads(d), 3);
    backend_cpu.close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),         cmocka_unit_test(test_embed),
        cmocka_unit_test(test_embed_places), cmocka_unit_test(test_input),
        cmocka_unit_test(test_tap),          cmocka_unit_test(test_open)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
