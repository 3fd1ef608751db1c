/* ATTEND: against a softmax in double within a bound derived from the data; and bit for bit the same
   whatever the chunks, company, threads, level and rows asked for.  Unused cache slots hold NaN and
   blocks out of the window are gone.  A latent layer, whose values are parts of its keys, gives the
   bits of one that has both. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_attend.h"
#include "base/num.h"
#include "ops/ops_seq.h"

typedef struct attend_case {
    const char *name;
    int32_t n_head, n_kv, dk, dv, window;
    float scale, cap;
    kv_pair codec;
    int32_t len;
    float sinks;   /* amplitude; 0: none */
    bool latent;   /* values are the first parts of the keys */
    bool both;     /* rows see positions after them too */
    int32_t start; /* positions before it are f16 */
} attend_case;

#define BOTH(kind, group)                                                                          \
    {                                                                                              \
        {kind, group},                                                                             \
        {                                                                                          \
            kind, group                                                                            \
        }                                                                                          \
    }
static const attend_case cases[] = {
    {"smollm", 9, 3, 64, 64, 0, 0.125f, 0, BOTH(KV_F16, 0), 600, 0, false, false, 0},
    {"qwen 0.5b", 14, 2, 64, 64, 0, 0.125f, 0, BOTH(KV_BF16, 0), 300, 0, false, false, 0},
    {"qwen 1.5b", 12, 2, 128, 128, 0, 0.09f, 0, BOTH(KV_F16, 0), 290, 0, false, false, 0},
    {"gemma 3", 4, 1, 256, 256, 70, 0.0625f, 0, BOTH(KV_F16, 0), 400, 0, false, false, 0},
    {"gemma 2", 8, 4, 96, 96, 300, 0.1f, 50, BOTH(KV_F16, 0), 600, 0, false, false, 0},
    {"small", 1, 1, 16, 16, 0, 0.25f, 0, BOTH(KV_F32, 0), 530, 0, false, false, 0},
    {"odd", 6, 2, 17, 5, 33, 0.2f, 3, BOTH(KV_F32, 0), 300, 0, false, false, 0},
    {"eight", 3, 3, 40, 24, 0, 0.2f, 0, BOTH(KV_BF16, 0), 300, 0, false, false, 0},
    {"unequal", 4, 2, 32, 72, 257, 0.2f, 0, BOTH(KV_F16, 0), 650, 0, false, false, 0},
    {"many heads", 64, 1, 8, 16, 0, 0.4f, 0, BOTH(KV_F16, 0), 270, 0, false, false, 0},
    {"no groups", 2, 2, 32, 32, 5, 0.3f, 0, BOTH(KV_F16, 0), 300, 0, false, false, 0},
    {"sinks", 8, 2, 64, 64, 128, 0.125f, 0, BOTH(KV_F16, 0), 600, 4, false, false, 0},
    {"heavy sinks", 4, 4, 32, 48, 0, 0.2f, 0, BOTH(KV_BF16, 0), 300, 40, false, false, 0},
    {"both sides", 3, 3, 40, 24, 0, 0.2f, 0, BOTH(KV_F32, 0), 600, 0, false, true, 0},
    {"both, odd", 6, 2, 17, 5, 33, 0.2f, 3, BOTH(KV_F32, 0), 300, 0, false, true, 0},
    {"both, narrow", 2, 1, 16, 16, 1, 0.3f, 0, BOTH(KV_F16, 0), 290, 2, false, true, 0},
    {"both, wide", 4, 1, 64, 64, 300, 0.125f, 0, BOTH(KV_F16, 0), 650, 0, false, true, 0},
    {"latent", 16, 1, 72, 64, 0, 0.1f, 0, BOTH(KV_F16, 0), 600, 0, true, false, 0},
    {"latent, odd", 5, 1, 41, 23, 0, 0.1f, 0, BOTH(KV_BF16, 0), 300, 0, true, false, 0},
    {"latent, f32", 3, 1, 24, 16, 70, 0.2f, 3, BOTH(KV_F32, 0), 300, 2, true, false, 0},
    {"latent heads", 4, 2, 32, 32, 0, 0.2f, 0, BOTH(KV_F16, 0), 290, 0, true, false, 0},
    {"q8", 9, 3, 64, 64, 0, 0.125f, 0, BOTH(KV_Q8, 64), 420, 0, false, false, 0},
    {"q8, one head", 1, 1, 64, 64, 0, 0.125f, 0, BOTH(KV_Q8, 64), 300, 0, false, false, 0},
    {"q8, wide", 6, 1, 128, 256, 0, 0.09f, 0, BOTH(KV_Q8, 128), 300, 0, false, false, 0},
    {"q4", 14, 2, 64, 64, 0, 0.125f, 0, BOTH(KV_Q4, 32), 420, 0, false, false, 0},
    {"q4, small", 3, 1, 16, 48, 0, 0.3f, 0, BOTH(KV_Q4, 16), 300, 0, false, false, 0},
    {"k8v4, window",
     4,
     1,
     128,
     128,
     70,
     0.09f,
     0,
     {{KV_Q8, 64}, {KV_Q4, 32}},
     400,
     0,
     false,
     false,
     0},
    {"k4v8, capped",
     8,
     4,
     96,
     96,
     257,
     0.1f,
     50,
     {{KV_Q4, 32}, {KV_Q8, 32}},
     300,
     0,
     false,
     false,
     0},
    {"q8, sinks", 8, 2, 64, 64, 128, 0.125f, 0, BOTH(KV_Q8, 32), 300, 4, false, false, 0},
    {"q4, both", 4, 1, 64, 64, 33, 0.125f, 0, BOTH(KV_Q4, 64), 290, 2, false, true, 0},
    {"keys q8", 4, 2, 64, 40, 0, 0.125f, 0, {{KV_Q8, 64}, {KV_F16, 0}}, 290, 0, false, false, 0},
    {"values q4", 4, 2, 40, 64, 0, 0.125f, 0, {{KV_BF16, 0}, {KV_Q4, 64}}, 290, 0, false, false, 0},
    {"latent q8", 16, 1, 96, 64, 0, 0.1f, 0, BOTH(KV_Q8, 32), 420, 0, true, false, 0},
    {"latent q4", 5, 1, 48, 32, 0, 0.1f, 0, BOTH(KV_Q4, 16), 290, 2, true, false, 0},
    {"turbo k8v4",
     6,
     2,
     64,
     64,
     0,
     0.125f,
     0,
     {{KV_TURBO_K8, 32}, {KV_TURBO_V4, 32}},
     300,
     0,
     false,
     false,
     0},
    {"turbo k8v3",
     12,
     2,
     128,
     128,
     0,
     0.09f,
     0,
     {{KV_TURBO_K8, 32}, {KV_TURBO_V3, 32}},
     300,
     0,
     false,
     false,
     0},
    {"turbo k8v2",
     4,
     1,
     256,
     64,
     0,
     0.06f,
     30,
     {{KV_TURBO_K8, 32}, {KV_TURBO_V2, 32}},
     270,
     2,
     false,
     false,
     0},
    {"turbo k4v3",
     2,
     2,
     64,
     512,
     0,
     0.125f,
     0,
     {{KV_TURBO_K4, 32}, {KV_TURBO_V3, 32}},
     270,
     0,
     false,
     false,
     0},
    {"q8 from 128", 9, 3, 64, 64, 0, 0.125f, 0, BOTH(KV_Q8, 64), 420, 0, false, false, 128},
    {"k8v4 from 64",
     4,
     1,
     64,
     64,
     70,
     0.125f,
     0,
     {{KV_Q8, 64}, {KV_Q4, 32}},
     300,
     2,
     false,
     false,
     64},
    {"latent q4 from 256", 16, 1, 96, 64, 0, 0.1f, 0, BOTH(KV_Q4, 32), 420, 0, true, false, 256},
    {"q4 too late", 4, 2, 64, 64, 0, 0.125f, 0, BOTH(KV_Q4, 64), 290, 0, false, false, 640},
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
    float *ks, *vs; /* as the cache gives them back */
} world;

static float *stored(const attend_case *a, kv_codec late, const float *x, int32_t dim)
{
    const int32_t n = a->len * a->n_kv;
    float *out = malloc((size_t)n * (size_t)dim * sizeof *out);
    for (int32_t i = 0; i < n; i++)
        seq_stored(i / a->n_kv < a->start ? (kv_codec){KV_F16, 0} : late, x + i * dim, dim,
                   out + i * dim);
    return out;
}

static void world_open(world *w, const attend_case *c, uint64_t seed)
{
    const size_t n = (size_t)c->len;
    w->c = c;
    w->q = seq_fill(seed, n * (size_t)(c->n_head * c->dk), 3);
    w->k = seq_fill(seed + 1, n * (size_t)(c->n_kv * c->dk), 2);
    w->v = seq_fill(seed + 2, n * (size_t)(c->n_kv * c->dv), 1);
    for (size_t i = 0; c->latent && i < n * (size_t)c->n_kv; i++)
        memcpy(w->v + i * (size_t)c->dv, w->k + i * (size_t)c->dk, (size_t)c->dv * sizeof *w->v);
    w->ks = stored(c, c->codec.k, w->k, c->dk);
    w->vs = c->latent ? NULL : stored(c, c->codec.v, w->v, c->dv);
}

static void world_close(world *w)
{
    free(w->q);
    free(w->k);
    free(w->v);
    free(w->ks);
    free(w->vs);
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
        .start = c->start,
        .len = c->len};
}

static double stored_value(const world *w, int32_t pos, int32_t kvh, int32_t d)
{
    const attend_case *c = w->c;
    const int32_t at = pos * c->n_kv + kvh;
    return (double)(c->latent ? w->ks[at * c->dk + d] : w->vs[at * c->dv + d]);
}

/* A rotated result back, in double; an element's error is at most what all n bring, over sqrt(n), and what
   log2(n) additions, a product and the rounding of 1 / sqrt(n) add to sums of all. */
static void turn_back(int32_t n, double *y, double *bound)
{
    double all = 0, error = 0;
    float sign[512];
    for (int32_t i = 0; i < n; i++) {
        all += fabs(y[i]);
        error += bound[i];
        sign[i] = 0;
    }
    sign[0] = 1; /* a column of the transform is all of one sign: what comes back are the signs */
    kv_turn_back(sign, (size_t)n);
    for (int32_t h = 1; h < n; h *= 2)
        for (int32_t i = 0; i < n; i++)
            if (!(i & h)) {
                const double a = y[i], b = y[i + h];
                y[i] = a + b;
                y[i + h] = a - b;
            }
    for (int32_t i = 0; i < n; i++) {
        y[i] *= (sign[i] < 0 ? -1 : 1) / sqrt(n);
        bound[i] = (error + (log2(n) + 3) * 0x1p-24 * all) / sqrt(n);
    }
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
            double b = (double)w->ks[(j * c->n_kv + kvh) * c->dk + d];
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
            double v = stored_value(w, j, kvh, d);
            y += s[j] * v;
            mag += fabs(s[j] * v);
        }
        out[d] = y / sum;
        bound[d] = (4 * worst + 2 * (n + 16) * eps) * mag / sum;
    }
    if (kv_is_rotated(c->codec.v.kind)) turn_back(c->dv, out, bound);
}

/* All that are few, and those beside the end of a block, of the window and of what stays plain. */
static bool is_checked(const attend_case *c, int32_t pos)
{
    const int32_t in_block = (pos + 1) % KV_BLOCK;
    return pos < 40 || pos % 13 == 1 || in_block < 3 || (c->window && abs(pos - c->window) < 2) ||
           (c->start && abs(pos - c->start) < 2) || pos == c->len - 1;
}

static void check_naive(const world *w, const float *out)
{
    const attend_case *c = w->c;
    double want[512], bound[512], worst = 0;
    for (int32_t pos = 0; pos < c->len; pos++)
        for (int32_t h = 0; h < c->n_head && is_checked(c, pos); h++) {
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

static void run_case(const attend_case *c, uint64_t seed, int32_t levels)
{
    float *want = malloc((size_t)(c->len * c->n_head * c->dv) * sizeof *want), sinks[64];
    const weight sink = {.rows = 1, .cols = c->n_head, .f32 = sinks};
    const seq_case plain = seq_of(c, &sink, false), tested = seq_of(c, &sink, c->latent);
    world w, stranger;
    for (int32_t h = 0; h < c->n_head; h++) sinks[h] = sink_of(c, h);
    world_open(&w, c, 100 + seed);
    world_open(&stranger, c, 200 + seed);
    const float *const in[] = {w.q, w.k, w.v}, *const other[] = {stranger.q, stranger.k,
                                                                 stranger.v};
    seq_play(&plain, &(variant){"whole", ISA_REF, 1, c->len, false, 0}, in, other, want);
    check_naive(&w, want);
    seq_compare(&tested, in, other, want, levels);
    world_close(&w);
    world_close(&stranger);
    free(want);
}

static void test_attend(void **state)
{
    const int32_t levels = rig_levels();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const attend_case *c = &cases[i];
        const bool small = c->n_head * c->dk < 130 && c->len <= 300;
        if (test_part() == 1 || small) run_case(c, i, levels);
    }
}

/* Every layout with every codec, coded from the first position on and from the second block: small, but of
   several groups and blocks. */
static void every_pair(void **state)
{
    static const attend_case layouts[] = {
        {"full", 2, 1, 64, 32, 0, 0.2f, 0, BOTH(KV_F16, 0), 200, 0, false, false, 0},
        {"window", 2, 2, 32, 64, 70, 0.2f, 0, BOTH(KV_F16, 0), 200, 0, false, false, 0},
        {"window, sinks", 2, 1, 32, 64, 16, 0.2f, 0, BOTH(KV_F16, 0), 200, 3, false, false, 0},
        {"sinks", 2, 1, 64, 64, 0, 0.2f, 0, BOTH(KV_F16, 0), 200, 3, false, false, 0},
        {"latent", 3, 1, 64, 32, 0, 0.2f, 0, BOTH(KV_F16, 0), 200, 0, true, false, 0},
    };
    static const kv_pair codecs[] = {
        BOTH(KV_F32, 0), BOTH(KV_F16, 0), BOTH(KV_BF16, 0),           BOTH(KV_Q8, 16),
        BOTH(KV_Q4, 16), BOTH(KV_Q8, 32), {{KV_Q8, 32}, {KV_Q4, 16}}, {{KV_Q4, 16}, {KV_Q8, 32}},
    };
    enum { FIRST_CODED = 3, N_CODEC = sizeof codecs / sizeof *codecs };
    const int32_t levels = rig_levels();
    uint64_t n = 0;
    (void)state;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        for (size_t i = 0; i < N_CODEC; i++)
            for (int32_t start = 0; start <= (i < FIRST_CODED ? 0 : KV_BLOCK); start += KV_BLOCK) {
                attend_case c = layouts[l];
                c.codec = c.latent ? (kv_pair){codecs[i].k, codecs[i].k} : codecs[i];
                c.start = start;
                if (!left_out()) run_case(&c, 1000 + n++, levels);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attend), cmocka_unit_test(every_pair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
