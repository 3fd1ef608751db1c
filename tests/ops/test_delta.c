/* DELTA: the gated delta rule close to its statement in double; the same bits on every level, cut into
   any chunks, beside any other sequence, on any number of threads. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "ops/ops_rig.h"

enum {
    ROWS = 37,
    KEYS = 2,
    VALUES = 6,
    DK = 20,
    DV = 45, /* four registers, one and some columns more */
    QKV = 2 * KEYS * DK + VALUES * DV,
    STATE = VALUES * DK * DV,
    BEFORE = 11 /* of the layer's state belongs to something else */
};

static float rate[VALUES], bias[VALUES];
static const weight w_rate = {.name = "rate", .rows = 1, .cols = VALUES, .f32 = rate};
static const weight w_bias = {.name = "bias", .rows = 1, .cols = VALUES, .f32 = bias};

static float input(int32_t seed, int32_t v, int32_t i)
{
    return rig_rand((uint64_t)(10 * seed + v), (uint64_t)i) * (v ? 3.0f : 1.0f);
}

static void make_weights(void)
{
    for (int32_t h = 0; h < VALUES; h++) {
        rate[h] = -0.05f - 0.3f * (float)h;
        bias[h] = rig_rand(7, (uint64_t)h);
    }
}

/* One sequence, chunk by chunk. */
typedef struct lane {
    int32_t seed, at;
    float state[BEFORE + STATE];
    bool apart; /* a step reads the state where it may not write */
    float from[BEFORE + STATE];
    float y[ROWS * VALUES * DV];
} lane;

static void run_step(lane *const *lanes, const int32_t *rows, int32_t n_lane, bool tiled,
                     const char *isa, int32_t threads)
{
    static const int32_t cols[] = {QKV, VALUES, VALUES, VALUES * DV};
    op o = {
        .kind = OP_DELTA, .in = {0, 1, 2}, .out = {3, VAL_NONE, VAL_NONE}, .w = {&w_rate, &w_bias}};
    o.u.delta = (delta_spec){KEYS, VALUES, DK, DV, BEFORE, tiled};
    const kv_layer kv = {.group = -1};
    value v[4];
    segment seg[4];
    int32_t n = 0;
    rig g;
    for (int32_t i = 0; i < n_lane; i++) {
        lane *l = lanes[i];
        seg[i] = (segment){.row0 = n, .n_rows = rows[i], .state = l->state};
        if (l->apart) {
            memcpy(l->from, l->state, sizeof l->from);
            memset(l->state + BEFORE, 0xff, STATE * sizeof(float)); /* NaN */
            seg[i].from = l->from;
        }
        n += rows[i];
    }
    for (int i = 0; i < 4; i++) v[i] = (value){cols[i], ROWS_ALL, false};
    rig_open(&g, isa, threads, &o, v, 4, n, 1, NULL);
    for (int32_t i = 0; i < n_lane; i++)
        for (int32_t k = 0; k < 3; k++)
            for (int32_t e = 0; e < rows[i] * cols[k]; e++)
                rig_val(&g, k)[seg[i].row0 * cols[k] + e] =
                    input(lanes[i]->seed, k, lanes[i]->at * cols[k] + e);
    backend_cpu.run(g.x, &(step){.n_rows = n, .n_seg = n_lane, .seg = seg, .kv = &kv});
    for (int32_t i = 0; i < n_lane; i++) {
        memcpy(lanes[i]->y + lanes[i]->at * VALUES * DV, rig_val(&g, 3) + seg[i].row0 * VALUES * DV,
               sizeof(float) * (size_t)(rows[i] * VALUES * DV));
        lanes[i]->at += rows[i];
    }
    rig_close(&g);
}

/* Rows of one sequence in chunks, alone or after those of another. */
static void run_lane(lane *l, bool tiled, const char *isa, int32_t threads, int32_t chunk,
                     bool company)
{
    static lane other;
    other = (lane){.seed = 5};
    l->apart = company;
    for (int i = 0; i < BEFORE; i++) l->state[i] = 1.5f;
    while (l->at < ROWS) {
        const int32_t n = l->at + chunk < ROWS ? chunk : ROWS - l->at;
        lane *const both[] = {&other, l};
        const int32_t rows[] = {n > 2 ? n - 2 : 1, n};
        run_step(both + !company, rows + !company, 1 + company, tiled, isa, threads);
    }
    for (int i = 0; i < BEFORE; i++) assert_true(l->state[i] == 1.5f);
}

static void unit(double *y, const lane *l, int32_t row, int32_t first)
{
    double sum = 1e-6;
    for (int32_t i = 0; i < DK; i++) {
        y[i] = (double)input(l->seed, 0, row * QKV + first + i);
        sum += y[i] * y[i];
    }
    for (int32_t i = 0; i < DK; i++) y[i] /= sqrt(sum);
}

/* All of a head's state and outputs stay below 4 here (|v| <= 1, |k| = |q| = 1, beta <= 1), and a step
   rounds each a few times, its sums DK times more. */
static void check_head(const lane *l, int32_t h, int32_t of)
{
    static double s[DK][DV];
    double q[DK], k[DK];
    memset(s, 0, sizeof s);
    for (int32_t r = 0; r < ROWS; r++) {
        const double a = (double)input(l->seed, 1, r * VALUES + h) + (double)bias[h];
        const double beta = 1 / (1 + exp(-(double)input(l->seed, 2, r * VALUES + h)));
        const double decay = exp((double)rate[h] * log1p(exp(a)));
        unit(q, l, r, of * DK);
        unit(k, l, r, (KEYS + of) * DK);
        for (int32_t j = 0; j < DV; j++) {
            double sum = 0, y = 0;
            for (int32_t i = 0; i < DK; i++) sum += (s[i][j] *= decay) * k[i];
            const double v = (double)input(l->seed, 0, r * QKV + 2 * KEYS * DK + h * DV + j);
            for (int32_t i = 0; i < DK; i++) {
                s[i][j] += k[i] * (v - sum) * beta;
                y += s[i][j] * q[i] / sqrt((double)DK);
            }
            const double found = (double)l->y[(r * VALUES + h) * DV + j];
            assert_true(fabs(found - y) <= (r + 1) * (DK + 12) * 0x1p-24);
        }
    }
}

static void check(bool tiled)
{
    static const struct {
        int32_t threads, chunk;
        bool company;
    } ways[] = {{1, ROWS, false}, {3, ROWS, true}, {1, 1, false}, {2, 5, true}, {3, 16, false}};
    static lane whole, again;
    make_weights();
    whole = (lane){.seed = 3};
    run_lane(&whole, tiled, "ref", 1, ROWS, false);
    for (int32_t h = 0; h < VALUES; h++)
        check_head(&whole, h, tiled ? h % KEYS : h / (VALUES / KEYS));
    for (int32_t l = 0; l < rig_levels(); l++)
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            again = (lane){.seed = 3};
            run_lane(&again, tiled, isa_name(rig_level(l)), ways[i].threads, ways[i].chunk,
                     ways[i].company);
            assert_memory_equal(again.y, whole.y, sizeof whole.y);
            assert_memory_equal(again.state, whole.state, sizeof whole.state);
        }
}

static void grouped(void **state)
{
    (void)state;
    check(false);
}

static void tiled(void **state)
{
    (void)state;
    check(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grouped), cmocka_unit_test(tiled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
