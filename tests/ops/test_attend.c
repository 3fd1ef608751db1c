/* ATTEND: against a softmax in double within a bound derived from the data; and bit for bit the same
   whatever the chunks, company, threads, level and rows asked for.  Unused cache slots hold NaN and
   blocks out of the window are gone. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/num.h"
#include "ops/ops_rig.h"

enum { MAX_LEN = 700, MAX_BLOCKS = MAX_LEN / KV_BLOCK + 1 };

typedef struct attend_case {
    const char *name;
    int32_t n_head, n_kv, dk, dv, window;
    float scale, cap;
    kv_codec codec;
    int32_t len;
    float sinks; /* amplitude; 0: none */
    bool both;
} attend_case;

static const attend_case cases[] = {
    {"smollm", 9, 3, 64, 64, 0, 0.125f, 0, KV_F16, 600, 0, false},
    {"qwen 0.5b", 14, 2, 64, 64, 0, 0.125f, 0, KV_BF16, 300, 0, false},
    {"qwen 1.5b", 12, 2, 128, 128, 0, 0.09f, 0, KV_F16, 290, 0, false},
    {"gemma 3", 4, 1, 256, 256, 70, 0.0625f, 0, KV_F16, 400, 0, false},
    {"gemma 2", 8, 4, 96, 96, 300, 0.1f, 50, KV_F16, 600, 0, false},
    {"small", 1, 1, 16, 16, 0, 0.25f, 0, KV_F32, 530, 0, false},
    {"odd", 6, 2, 17, 5, 33, 0.2f, 3, KV_F32, 300, 0, false},
    {"eight", 3, 3, 40, 24, 0, 0.2f, 0, KV_BF16, 300, 0, false},
    {"unequal", 4, 2, 32, 72, 257, 0.2f, 0, KV_F16, 650, 0, false},
    {"many heads", 64, 1, 8, 16, 0, 0.4f, 0, KV_F16, 270, 0, false},
    {"no groups", 2, 2, 32, 32, 5, 0.3f, 0, KV_F16, 300, 0, false},
    {"sinks", 8, 2, 64, 64, 128, 0.125f, 0, KV_F16, 600, 4, false},
    {"heavy sinks", 4, 4, 32, 48, 0, 0.2f, 0, KV_BF16, 300, 40, false},
    {"both sides", 3, 3, 40, 24, 0, 0.2f, 0, KV_F32, 600, 0, true},
    {"both, odd", 6, 2, 17, 5, 33, 0.2f, 3, KV_F32, 300, 0, true},
    {"both, narrow", 2, 1, 16, 16, 1, 0.3f, 0, KV_F16, 290, 2, true},
    {"both, wide", 4, 1, 64, 64, 300, 0.125f, 0, KV_F16, 650, 0, true},
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

static float *fill(uint64_t seed, size_t n, float amp)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = amp * rig_rand(seed, i);
    return x;
}

static void world_open(world *w, const attend_case *c, uint64_t seed)
{
    const size_t n = (size_t)c->len;
    w->c = c;
    w->q = fill(seed, n * (size_t)(c->n_head * c->dk), 3);
    w->k = fill(seed + 1, n * (size_t)(c->n_kv * c->dk), 2);
    w->v = fill(seed + 2, n * (size_t)(c->n_kv * c->dv), 1);
}

static void world_close(world *w)
{
    free(w->q);
    free(w->k);
    free(w->v);
}

typedef struct cache {
    uint8_t *block[MAX_BLOCKS];
    uint8_t *const *group;
    size_t size;
    kv_layer kv;
} cache;

static void cache_open(cache *m, const attend_case *c)
{
    const size_t e = kv_codec_bytes(c->codec), keys = (size_t)(c->n_kv * KV_BLOCK * c->dk) * e;
    m->kv = (kv_layer){0, c->codec, c->n_kv, c->dk, c->dv, 64, 64 + round_up(keys, 64), 0};
    m->size = m->kv.v_off + (size_t)(c->n_kv * KV_BLOCK * c->dv) * e;
    for (int32_t i = 0; i < MAX_BLOCKS; i++) {
        m->block[i] = aligned_alloc(64, round_up(m->size, 64));
        memset(m->block[i], 0xff, m->size); /* NaN in every codec */
    }
    m->group = m->block;
}

static void cache_close(cache *m)
{
    for (int32_t i = 0; i < MAX_BLOCKS; i++) free(m->block[i]);
}

static void cache_drop(cache *m, const attend_case *c, int32_t pos)
{
    int32_t lo = c->window > 0 ? max_i32(0, pos - c->window + 1) : 0;
    for (int32_t i = 0; i < lo / KV_BLOCK; i++) {
        free(m->block[i]);
        m->block[i] = NULL;
    }
}

typedef struct variant {
    const char *name;
    isa_level level;
    int32_t threads, chunk;
    bool company;  /* a second sequence rides along */
    int32_t every; /* rows wanted: every n-th; 0: all rows, by ROWS_ALL */
} variant;

static void copy_row(const attend_case *c, const rig *g, const world *w, int32_t row, int32_t q_row,
                     int32_t pos)
{
    const size_t nq = (size_t)(c->n_head * c->dk), nk = (size_t)(c->n_kv * c->dk);
    const size_t nv = (size_t)(c->n_kv * c->dv), r = (size_t)row, p = (size_t)pos;
    if (q_row >= 0) memcpy(rig_val(g, 0) + (size_t)q_row * nq, w->q + p * nq, nq * sizeof(float));
    memcpy(rig_val(g, 1) + r * nk, w->k + p * nk, nk * sizeof(float));
    memcpy(rig_val(g, 2) + r * nv, w->v + p * nv, nv * sizeof(float));
}

/* Runs the whole sequence; out: [len][n_head · dv], rows not asked for untouched. */
static void play(const attend_case *c, const world *w, const world *stranger, const variant *t,
                 float *out)
{
    enum { MAX_ROWS = 2 * MAX_LEN };
    static int32_t pos[MAX_ROWS], out_row[MAX_ROWS], wanted[MAX_ROWS];
    const rowset rows = t->every ? ROWS_OUT : ROWS_ALL;
    op o = {.kind = OP_ATTEND, .in = {0, 1, 2}, .out = {3, -1, -1}};
    o.u.attend.n_head = c->n_head;
    o.u.attend.n_kv_head = c->n_kv;
    o.u.attend.dk = c->dk;
    o.u.attend.dv = c->dv;
    o.u.attend.window = c->window;
    o.u.attend.scale = c->scale;
    o.u.attend.softcap = c->cap;
    o.u.attend.both = c->both;
    float sinks[64];
    const weight sink = {.rows = 1, .cols = c->n_head, .f32 = sinks};
    for (int32_t i = 0; i < c->n_head; i++) sinks[i] = sink_of(c, i);
    if (c->sinks > 0) o.w[0] = &sink;
    const value v[] = {{c->n_head * c->dk, rows, false},
                       {c->n_kv * c->dk, ROWS_ALL, false},
                       {c->n_kv * c->dv, ROWS_ALL, false},
                       {c->n_head * c->dv, rows, false}};
    rig g;
    cache mine, other;
    const int32_t chunk = c->both ? c->len : t->chunk; /* such a sequence cannot be cut */
    rig_open(&g, isa_name(t->level), t->threads, &o, v, 4, 2 * chunk, c->len, NULL);
    cache_open(&mine, c);
    cache_open(&other, c);
    const size_t no = (size_t)(c->n_head * c->dv);
    for (int32_t p0 = 0; p0 < c->len; p0 += chunk) {
        const int32_t n = min_i32(chunk, c->len - p0);
        segment seg[2] = {{0}, {0}};
        step s = {.pos = pos, .out_row = out_row, .seg = seg, .kv = &mine.kv, .n_group = 1};
        for (int32_t i = t->company ? 0 : 1; i < 2; i++) {
            bool me = i == 1;
            segment *sg = &seg[s.n_seg++];
            *sg = (segment){.row0 = s.n_rows,
                            .out0 = s.n_out,
                            .pos0 = p0,
                            .n_rows = n,
                            .known_len = c->len,
                            .blocks = me ? &mine.group : &other.group};
            if (!me) sg->n_rows = (n + 1) / 2;
            if (c->both) sg->known_len = sg->n_rows;
            for (int32_t k = 0; k < sg->n_rows; k++) {
                bool want = !t->every || (p0 + k) % t->every == 0;
                pos[s.n_rows] = p0 + k;
                int32_t q_row = t->every ? (want ? s.n_out : -1) : s.n_rows;
                copy_row(c, &g, me ? w : stranger, s.n_rows, q_row, p0 + k);
                if (want) {
                    wanted[s.n_out] = me ? p0 + k : -1;
                    out_row[s.n_out++] = s.n_rows;
                }
                s.n_rows++;
            }
            sg->n_out = s.n_out - sg->out0;
        }
        if (!c->both) cache_drop(&mine, c, p0);
        backend_cpu.run(g.x, &s);
        for (int32_t k = 0; k < s.n_out; k++) {
            size_t row = (size_t)(t->every ? k : out_row[k]);
            if (wanted[k] >= 0)
                memcpy(out + (size_t)wanted[k] * no, rig_val(&g, 3) + row * no, no * sizeof *out);
        }
    }
    cache_close(&mine);
    cache_close(&other);
    rig_close(&g);
}

static double stored(kv_codec c, float x)
{
    if (c == KV_F16) return (double)f16_to_f32(f16_from_f32_sat(x));
    return (double)(c == KV_BF16 ? bf16_to_f32(bf16_from_f32(x)) : x);
}

/* Softmax in double of one row and head; out [dv] and the bound of each element: a score's error
   (a chain of dk products, the scaling, the cap) moves every p by that much relatively, twice for
   numerator and denominator; the sums over n positions add n eps. */
static void naive(const world *w, int32_t pos, int32_t head, double *out, double *bound)
{
    static double s[MAX_LEN];
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
            double b = stored(c->codec, w->k[(j * c->n_kv + kvh) * c->dk + d]);
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
            double v = stored(c->codec, w->v[(j * c->n_kv + kvh) * c->dv + d]);
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

static void compare(const attend_case *c, const variant *t, const float *want, const float *got)
{
    const int32_t no = c->n_head * c->dv;
    for (int32_t p = 0; p < c->len; p++) {
        if (t->every && p % t->every) continue;
        for (int32_t i = 0; i < no; i++)
            if (!rig_same(want[p * no + i], got[p * no + i]))
                fail_msg("%s, %s at %s: position %d element %d: %a, not %a", c->name, t->name,
                         isa_name(t->level), p, i, (double)got[p * no + i],
                         (double)want[p * no + i]);
    }
}

static void test_attend(void **state)
{
    (void)state;
    const int32_t levels = rig_levels();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const attend_case *c = &cases[i];
        const bool small = c->n_head * c->dk < 130 && c->len <= 300;
        if (test_part() > 1 && !small) continue;
        const size_t n = (size_t)(c->len * c->n_head * c->dv);
        float *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
        world w, stranger;
        world_open(&w, c, 100 + i);
        world_open(&stranger, c, 200 + i);
        play(c, &w, &stranger, &(variant){"whole", ISA_REF, 1, c->len, false, 0}, want);
        check_naive(&w, want);
        for (int32_t l = 0; l < levels; l++) {
            const variant v[] = {
                {"whole", l, 2, c->len, false, 0},       {"decode", l, 1, 1, false, 0},
                {"decode, 8 threads", l, 8, 1, true, 0}, {"chunks of 7", l, 3, 7, true, 0},
                {"chunks of 64", l, 2, 64, false, 3},    {"chunks of 100", l, 4, 100, true, 5},
                {"few rows", l, 2, 3, false, 2}};
            /* The plain kernels are slow, and ran as a whole already. */
            const size_t from = l == ISA_REF ? 1 : 0, to = l == ISA_REF ? 2 : sizeof v / sizeof *v;
            for (size_t k = from; k < to; k++) {
                if (left_out()) continue;
                memset(got, 0xff, n * sizeof *got);
                play(c, &w, &stranger, &v[k], got);
                compare(c, &v[k], want, got);
            }
        }
        world_close(&w);
        world_close(&stranger);
        free(want);
        free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_attend)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
