/* ATTEND: against a softmax in double within a bound derived from the data; and bit for bit the same
   whatever the chunks, company, threads, level and rows asked for.  Unused cache slots hold NaN and
   blocks out of the window are gone.  A latent layer, whose values are parts of its keys, gives the
   bits of one that has both. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "ops/ops_seq.h"

typedef struct attend_case {
    const char *name;
    int32_t n_head, n_kv, dk, dv, window;
    float scale, cap;
    kv_codec codec;
    int32_t len;
    float sinks; /* amplitude; 0: none */
    bool latent; /* values are the first parts of the keys */
    bool both;   /* rows see positions after them too */
} attend_case;

static const attend_case cases[] = {
    {"smollm", 9, 3, 64, 64, 0, 0.125f, 0, KV_F16, 600, 0, false, false},
    {"qwen 0.5b", 14, 2, 64, 64, 0, 0.125f, 0, KV_BF16, 300, 0, false, false},
    {"qwen 1.5b", 12, 2, 128, 128, 0, 0.09f, 0, KV_F16, 290, 0, false, false},
    {"gemma 3", 4, 1, 256, 256, 70, 0.0625f, 0, KV_F16, 400, 0, false, false},
    {"gemma 2", 8, 4, 96, 96, 300, 0.1f, 50, KV_F16, 600, 0, false, false},
    {"small", 1, 1, 16, 16, 0, 0.25f, 0, KV_F32, 530, 0, false, false},
    {"odd", 6, 2, 17, 5, 33, 0.2f, 3, KV_F32, 300, 0, false, false},
    {"eight", 3, 3, 40, 24, 0, 0.2f, 0, KV_BF16, 300, 0, false, false},
    {"unequal", 4, 2, 32, 72, 257, 0.2f, 0, KV_F16, 650, 0, false, false},
    {"many heads", 64, 1, 8, 16, 0, 0.4f, 0, KV_F16, 270, 0, false, false},
    {"no groups", 2, 2, 32, 32, 5, 0.3f, 0, KV_F16, 300, 0, false, false},
    {"sinks", 8, 2, 64, 64, 128, 0.125f, 0, KV_F16, 600, 4, false, false},
    {"heavy sinks", 4, 4, 32, 48, 0, 0.2f, 0, KV_BF16, 300, 40, false, false},
    {"both sides", 3, 3, 40, 24, 0, 0.2f, 0, KV_F32, 600, 0, false, true},
    {"both, odd", 6, 2, 17, 5, 33, 0.2f, 3, KV_F32, 300, 0, false, true},
    {"both, narrow", 2, 1, 16, 16, 1, 0.3f, 0, KV_F16, 290, 2, false, true},
    {"both, wide", 4, 1, 64, 64, 300, 0.125f, 0, KV_F16, 650, 0, false, true},
    {"latent", 16, 1, 72, 64, 0, 0.1f, 0, KV_F16, 600, 0, true, false},
    {"latent, odd", 5, 1, 41, 23, 0, 0.1f, 0, KV_BF16, 300, 0, true, false},
    {"latent, f32", 3, 1, 24, 16, 70, 0.2f, 3, KV_F32, 300, 2, true, false},
    {"latent heads", 4, 2, 32, 32, 0, 0.2f, 0, KV_F16, 290, 0, true, false},
};

/* The sink of a head; some of "heavy sinks" outweigh every position. */
static float sink_of(const attend_case *c, int32_t head)
{
    return c->sinks * rig_rand(77, (uint64_t)head);
}

/* Queries, keys and values of all positions of a sequence. */
typedef struct world {
    const attend_case *c;
    float *q, *k, *v;
} world;

static void world_open(world *w, const attend_case *c, uint64_t seed)
{
    const size_t n = (size_t)c->len;
    w->c = c;
    w->q = seq_fill(seed, n * (size_t)(c->n_head * c->dk), 3);
    w->k = seq_fill(seed + 1, n * (size_t)(c->n_kv * c->dk), 2);
    w->v = seq_fill(seed + 2, n * (size_t)(c->n_kv * c->dv), 1);
    for (size_t i = 0; c->latent && i < n * (size_t)c->n_kv; i++)
        memcpy(w->v + i * (size_t)c->dv, w->k + i * (size_t)c->dk, (size_t)c->dv * sizeof *w->v);
}

static void world_close(world *w)
{
    free(w->q);
    free(w->k);
    free(w->v);
}

/* The op and its operands' widths; latent: without values. */
static seq_case seq_of(const attend_case *c, const weight *sink, bool latent)
{
    op o = {.kind = OP_ATTEND, .in = {0, 1, latent ? VAL_NONE : 2}, .out = {3, -1, -1}};
    o.u.attend.n_head = c->n_head;
    o.u.attend.n_kv_head = c->n_kv;
    o.u.attend.dk = c->dk;
    o.u.attend.dv = c->dv;
    o.u.attend.window = c->window;
    o.u.attend.scale = c->scale;
    o.u.attend.softcap = c->cap;
    o.u.attend.both = c->both;
    if (c->sinks > 0) o.w[0] = sink;
    return (seq_case){
        .name = c->name,
        .o = o,
        .cols = {c->n_head * c->dk, c->n_kv * c->dk, c->n_kv * c->dv, c->n_head * c->dv},
        .codec = c->codec,
        .n_kv = c->n_kv,
        .dk = c->dk,
        .dv = c->dv,
        .window = c->window,
        .latent = latent,
        .both = c->both,
        .len = c->len};
}

/* Softmax in double of one row and head; out [dv] and the bound of each element: a score's error
   (a chain of dk products, the scaling, the cap) moves every p by that much relatively, twice for
   numerator and denominator; the sums over n positions add n eps. */
static void naive(const world *w, int32_t pos, int32_t head, double *out, double *bound)
{
    static double s[SEQ_MAX_LEN];
    const attend_case *c = w->c;
    const double eps = 0x1p-24;
    const int32_t kvh = head / (c->n_head / c->n_kv);
    const int32_t lo = c->window > 0 ? max_i32(0, pos - c->window + 1) : 0;
    const int32_t last = c->len - 1, ahead = c->window > 0 ? c->window - 1 : last;
    const int32_t hi = c->both ? min_i32(last, pos + ahead) : pos, n = hi - lo + 1;
    double m = -(double)INFINITY, worst = 0, sum = 0;
    for (int32_t j = lo; j <= hi; j++) {
        double dot = 0, mag = 0;
        for (int32_t d = 0; d < c->dk; d++) {
            double a = (double)w->q[(pos * c->n_head + head) * c->dk + d];
            double b = seq_stored(c->codec, w->k[(j * c->n_kv + kvh) * c->dk + d]);
            dot += a * b;
            mag += fabs(a * b);
        }
        s[j] = dot * (double)c->scale;
        if (c->cap > 0) s[j] = (double)c->cap * tanh(s[j] / (double)c->cap);
        m = fmax(m, s[j]);
        worst = fmax(worst, (c->dk + 4) * eps * mag * (double)c->scale + 8 * eps * (double)c->cap);
    }
    for (int32_t j = lo; j <= hi; j++) {
        s[j] = exp(s[j] - m);
        sum += s[j];
    }
    if (c->sinks > 0) sum += exp((double)sink_of(c, head) - m);
    for (int32_t d = 0; d < c->dv; d++) {
        double y = 0, mag = 0;
        for (int32_t j = lo; j <= hi; j++) {
            double v = seq_stored(c->codec, w->v[(j * c->n_kv + kvh) * c->dv + d]);
            y += s[j] * v;
            mag += fabs(s[j] * v);
        }
        out[d] = y / sum;
        bound[d] = (4 * worst + 2 * (n + 16) * eps) * mag / sum;
    }
}

static void check_naive(const world *w, const float *out)
{
    const attend_case *c = w->c;
    double want[512], bound[512], worst = 0;
    for (int32_t pos = 0; pos < c->len; pos += pos < 40 ? 1 : 13)
        for (int32_t h = 0; h < c->n_head; h++) {
            naive(w, pos, h, want, bound);
            for (int32_t d = 0; d < c->dv; d++) {
                double e = fabs((double)out[(pos * c->n_head + h) * c->dv + d] - want[d]);
                if (!(e <= bound[d]))
                    fail_msg("%s: position %d head %d element %d: off by %g, bound %g", c->name,
                             pos, h, d, e, bound[d]);
                worst = fmax(worst, e);
            }
        }
    printf("%-12s largest error %.2g\n", c->name, worst);
}

static void test_attend(void **state)
{
    const int32_t levels = rig_levels();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const attend_case *c = &cases[i];
        const bool small = c->n_head * c->dk < 130 && c->len <= 300;
        if (test_part() > 1 && !small) continue;
        float *want = malloc((size_t)(c->len * c->n_head * c->dv) * sizeof *want), sinks[64];
        const weight sink = {.rows = 1, .cols = c->n_head, .f32 = sinks};
        const seq_case plain = seq_of(c, &sink, false), tested = seq_of(c, &sink, c->latent);
        world w, stranger;
        for (int32_t h = 0; h < c->n_head; h++) sinks[h] = sink_of(c, h);
        world_open(&w, c, 100 + i);
        world_open(&stranger, c, 200 + i);
        const float *const in[] = {w.q, w.k, w.v}, *const other[] = {stranger.q, stranger.k,
                                                                     stranger.v};
        seq_play(&plain, &(variant){"whole", ISA_REF, 1, c->len, false, 0}, in, other, want);
        check_naive(&w, want);
        seq_compare(&tested, in, other, want, levels);
        world_close(&w);
        world_close(&stranger);
        free(want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
