/* MIX, MATCH, CUTOFF, SCALE by a vector, and an embedding past its end: each equals its meaning in op.h
   written out, in whole steps and row by row, on every level and with threads. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "ops/ops_rig.h"

enum { ROWS = 90, WIDTH = 203, PARTS = 3, STREAMS = 2, MOST = ROWS * WIDTH * PARTS };

static float gain[WIDTH];
static const weight gain_weight = {.rows = 1, .cols = WIDTH, .f32 = gain};

typedef struct mix_case {
    const char *name;
    op o;
    int32_t cols[4]; /* in0, in1, in2, out0; 0: none */
    void (*want)(const op *o, const float *a, const float *b, const float *c, float *y);
} mix_case;

static float tree(float *l)
{
    for (int32_t s = 8; s > 0; s /= 2)
        for (int32_t i = 0; i < s; i++) l[i] += l[i + s];
    return l[0];
}

static float mean_of(const float *x)
{
    float l[16] = {0};
    for (int32_t i = 0; i < WIDTH; i++) l[i % 16] += x[i];
    return tree(l) / (float)WIDTH;
}

static float mean_square(const float *x, float less)
{
    float l[16] = {0};
    for (int32_t i = 0; i < WIDTH; i++) l[i % 16] = fmaf(x[i] - less, x[i] - less, l[i % 16]);
    return tree(l) / (float)WIDTH;
}

static void want_mix(const op *o, const float *a, const float *b, const float *c, float *y)
{
    const int32_t n = o->u.mix.n;
    for (int32_t j = 0; j < STREAMS; j++)
        for (int32_t i = 0; i < WIDTH; i++) {
            float sum = c[j * WIDTH + i];
            for (int32_t k = 0; k < n; k++)
                sum = fmaf(b[j * n + k] + o->u.mix.plus, a[k * WIDTH + i], sum);
            y[j * WIDTH + i] = sum;
        }
}

static void want_match(const op *o, const float *a, const float *b, const float *c, float *y)
{
    const float own = mean_square(a, 0), to = sqrtf(mean_square(b, 0));
    const float least = o->u.match.least, from = sqrtf(own < least ? least : own);
    (void)c;
    for (int32_t i = 0; i < WIDTH; i++) y[i] = a[i] * to / from;
}

static void want_cutoff(const op *o, const float *a, const float *b, const float *c, float *y)
{
    const float mean = mean_of(a), deviation = sqrtf(mean_square(a, mean));
    const float at = mean + deviation * o->u.map.scalar;
    (void)b;
    (void)c;
    for (int32_t i = 0; i < WIDTH; i++) y[i] = a[i] - at < 0 ? 0 : a[i] - at;
}

static void want_scale(const op *o, const float *a, const float *b, const float *c, float *y)
{
    (void)b;
    (void)c;
    for (int32_t i = 0; i < WIDTH; i++) y[i] = a[i] * o->u.map.scalar * gain[i];
}

static const mix_case cases[] = {
    {"MIX",
     {.kind = OP_MIX, .in = {0, 1, 2}, .out = {3, -1, -1}, .u.mix = {PARTS, 0}},
     {PARTS * WIDTH, STREAMS *PARTS, STREAMS *WIDTH, STREAMS *WIDTH},
     want_mix},
    {"MIX of one part",
     {.kind = OP_MIX, .in = {0, 1, 2}, .out = {3, -1, -1}, .u.mix = {1, 1}},
     {WIDTH, STREAMS, STREAMS *WIDTH, STREAMS *WIDTH},
     want_mix},
    {"MATCH",
     {.kind = OP_MATCH, .in = {0, 1, -1}, .out = {3, -1, -1}, .u.match = {1e-5f}},
     {WIDTH, WIDTH, 1, WIDTH},
     want_match},
    {"MATCH of little",
     {.kind = OP_MATCH, .in = {0, 1, -1}, .out = {3, -1, -1}, .u.match = {10}},
     {WIDTH, WIDTH, 1, WIDTH},
     want_match},
    {"CUTOFF",
     {.kind = OP_CUTOFF, .in = {0, -1, -1}, .out = {3, -1, -1}, .u.map = {0.7f}},
     {WIDTH, 1, 1, WIDTH},
     want_cutoff},
    {"SCALE",
     {.kind = OP_SCALE, .in = {0, -1, -1}, .out = {3, -1, -1}, .w = {&gain_weight}, .u.map = {3}},
     {WIDTH, 1, 1, WIDTH},
     want_scale},
};

/* Rows first … first + n - 1 of the case, as op.h says them or as the backend does. */
static void run_case(const mix_case *k, const char *isa, int32_t threads, int32_t first, int32_t n,
                     bool written_out, float *out)
{
    value v[4];
    rig g;
    for (int i = 0; i < 4; i++) v[i] = (value){k->cols[i], ROWS_ALL, false};
    rig_open(&g, isa, threads, &k->o, v, 4, n, 1, NULL);
    for (val i = 0; i < 3; i++)
        for (int32_t at = 0; at < n * k->cols[i]; at++)
            rig_val(&g, i)[at] = rig_rand((uint64_t)i, (uint64_t)(first * k->cols[i] + at));
    if (!written_out) backend_cpu.run(g.x, &(step){.n_rows = n});
    for (int32_t r = 0; written_out && r < n; r++)
        k->want(&k->o, rig_val(&g, 0) + r * k->cols[0], rig_val(&g, 1) + r * k->cols[1],
                rig_val(&g, 2) + r * k->cols[2], rig_val(&g, 3) + r * k->cols[3]);
    memcpy(out, rig_val(&g, 3), sizeof(float) * (size_t)(n * k->cols[3]));
    rig_close(&g);
}

static void check_case(const mix_case *k)
{
    static float want[MOST], got[MOST];
    const size_t row = sizeof(float) * (size_t)k->cols[3];
    run_case(k, "ref", 1, 0, ROWS, true, want);
    for (int32_t l = 0; l < rig_levels(); l++) {
        const char *isa = isa_name(rig_level(l));
        for (int32_t threads = 1; threads <= 3; threads += 2) {
            run_case(k, isa, threads, 0, ROWS, false, got);
            if (memcmp(got, want, ROWS * row) != 0)
                fail_msg("%s at %s, %d threads", k->name, isa, threads);
        }
        run_case(k, isa, 1, 41, 1, false, got);
        if (memcmp(got, want + 41 * k->cols[3], row) != 0)
            fail_msg("%s at %s, a row alone", k->name, isa);
    }
}

static void test_mix(void **state)
{
    (void)state;
    for (int32_t i = 0; i < WIDTH; i++) gain[i] = rig_rand(9, (uint64_t)i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

static void test_cutoff_keeps_nan(void **state)
{
    const op o = {.kind = OP_CUTOFF, .in = {0, -1, -1}, .out = {1, -1, -1}, .u.map = {1}};
    const value v[] = {{4, ROWS_ALL, false}, {4, ROWS_ALL, false}};
    rig g;
    (void)state;
    rig_open(&g, NULL, 1, &o, v, 2, 1, 1, NULL);
    for (int32_t i = 0; i < 4; i++) rig_val(&g, 0)[i] = i == 2 ? NAN : (float)i;
    backend_cpu.run(g.x, &(step){.n_rows = 1});
    assert_true(isnan(rig_val(&g, 1)[2]));
    rig_close(&g);
}

static void test_embed_past_the_end(void **state)
{
    const float table[] = {0.25f, 0.5f, 3, 4};
    const weight w = {.type = DT_F32,
                      .rows = 2,
                      .cols = 2,
                      .data = (const uint8_t *)table,
                      .size = sizeof table,
                      .gather = true};
    const op o = {.kind = OP_EMBED,
                  .in = {-1, -1, -1},
                  .out = {0, -1, -1},
                  .w = {&w},
                  .u.embed = {.scale = 2}};
    const int32_t id[] = {1, 2, 900};
    const float want[] = {6, 8, 0.5f, 1, 0.5f, 1};
    rig g;
    (void)state;
    rig_open(&g, NULL, 1, &o, &(value){2, ROWS_ALL, false}, 1, 3, 1, NULL);
    backend_cpu.run(g.x, &(step){.n_rows = 3, .id = id});
    assert_memory_equal(rig_val(&g, 0), want, sizeof want);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mix),
                                       cmocka_unit_test(test_cutoff_keeps_nan),
                                       cmocka_unit_test(test_embed_past_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
