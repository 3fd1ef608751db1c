/* PICK and ATTEND_AT.  PICK gives what its definition in op.h gives written out, ties and NaN included;
   attention over the picked positions gives the bits of attention over a sequence of these alone, and
   of whole attention where nothing is left out.  Both whatever the chunks, company, threads, level and
   rows asked for. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "ops/ops_seq.h"

typedef struct pick_case {
    const char *name;
    int32_t n_head, dim, k, len;
    kv_codec codec;
    float grain; /* operands are multiples of it, which makes ties; 0: any */
    bool broken; /* some keys are NaN */
} pick_case;

static const pick_case cases[] = {
    {"many heads", 64, 32, 40, 600, {KV_F16, 0}, 0, false},
    {"odd", 5, 13, 7, 300, {KV_BF16, 0}, 0, false},
    {"ties", 3, 4, 33, 530, {KV_F32, 0}, 1, false},
    {"one head", 1, 16, 1, 300, {KV_F32, 0}, 0.5f, false},
    {"broken", 4, 8, 50, 400, {KV_F16, 0}, 0.25f, true},
    {"q8", 4, 64, 50, 300, {KV_Q8, 64}, 0, false},
    {"q4", 2, 48, 20, 290, {KV_Q4, 16}, 0, true},
    {"all", 4, 16, 300, 300, {KV_F16, 0}, 0, false},
};

static float *operand(const pick_case *c, uint64_t seed, int32_t cols)
{
    const size_t n = (size_t)(c->len * cols);
    float *x = seq_fill(seed, n, 2);
    for (size_t i = 0; c->grain > 0 && i < n; i++) x[i] = c->grain * rintf(x[i] / c->grain);
    return x;
}

/* a goes before b */
static bool better(const float *score, int32_t a, int32_t b)
{
    if (isnan(score[a]) || isnan(score[b])) {
        if (isnan(score[a]) && isnan(score[b])) return a < b;
        return isnan(score[b]);
    }
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

static void scores(const pick_case *c, const float *const in[3], int32_t pos, float scale,
                   float *score)
{
    for (int32_t j = 0; j <= pos; j++) {
        float key[64];
        seq_stored(c->codec, in[1] + j * c->dim, c->dim, key);
        score[j] = 0;
        for (int32_t h = 0; h < c->n_head; h++) {
            float s = 0;
            for (int32_t d = 0; d < c->dim; d++)
                s = fmaf(in[0][(pos * c->n_head + h) * c->dim + d], key[d], s);
            if (s < 0) s = 0;
            score[j] = fmaf(in[2][pos * c->n_head + h] * scale, s, score[j]);
        }
    }
}

static void expected(const pick_case *c, const float *const in[3], float scale, float *out)
{
    static float score[SEQ_MAX_LEN];
    for (int32_t pos = 0; pos < c->len; pos++, out += c->k) {
        int32_t n = 0;
        scores(c, in, pos, scale, score);
        for (int32_t j = 0; j <= pos; j++) {
            int32_t before = 0;
            for (int32_t i = 0; i <= pos; i++) before += better(score, i, j);
            if (before < c->k) out[n++] = (float)j;
        }
        while (n < c->k) out[n++] = -1;
    }
}

static void picks_the_best(void **state)
{
    const int32_t levels = rig_levels();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pick_case *c = &cases[i];
        if (test_part() > 1 && i % 4 != 1) continue;
        seq_case s = {.name = c->name,
                      .o = {.kind = OP_PICK, .in = {0, 1, 2}, .out = {3, -1, -1}},
                      .cols = {c->n_head * c->dim, c->dim, c->n_head, c->k},
                      .third_asked = true,
                      .codec = {c->codec, c->codec},
                      .n_kv = 1,
                      .dk = c->dim,
                      .len = c->len};
        s.o.u.pick.n_head = c->n_head;
        s.o.u.pick.dim = c->dim;
        s.o.u.pick.k = c->k;
        s.o.u.pick.scale = 0.25f;
        float *x[6], *want = malloc((size_t)(c->len * c->k) * sizeof *want);
        for (int32_t v = 0; v < 6; v++) x[v] = operand(c, 10 * i + (uint64_t)v, s.cols[v % 3]);
        for (int32_t p = 3; c->broken && p < c->len; p += 3) x[1][p * c->dim] = (float)NAN;
        const float *const in[] = {x[0], x[1], x[2]}, *const other[] = {x[3], x[4], x[5]};
        expected(c, in, s.o.u.pick.scale, want);
        seq_compare(&s, in, other, want, levels);
        for (int32_t v = 0; v < 6; v++) free(x[v]);
        free(want);
    }
}

enum { HEADS = 5, DK = 40, DV = 24, LEN = 400 };

/* k 0: ATTEND of all positions. */
static seq_case attention(int32_t k, int32_t len)
{
    seq_case s = {.name = k ? "picked" : "whole",
                  .o = {.kind = k ? OP_ATTEND_AT : OP_ATTEND,
                        .in = {0, 1, k ? 2 : VAL_NONE},
                        .out = {3, -1, -1}},
                  .cols = {HEADS * DK, DK, k, HEADS * DV},
                  .third_asked = true,
                  .codec = seq_plain(KV_F16),
                  .n_kv = 1,
                  .dk = DK,
                  .dv = DV,
                  .latent = true,
                  .len = len};
    s.o.u.attend.n_head = HEADS;
    s.o.u.attend.n_kv_head = 1;
    s.o.u.attend.dk = DK;
    s.o.u.attend.dv = DV;
    s.o.u.attend.scale = 0.15f;
    return s;
}

/* Some k of the positions up to each one's own, as PICK writes them. */
static float *some_positions(int32_t k)
{
    float *at = malloc((size_t)(LEN * k) * sizeof *at);
    for (int32_t pos = 0; pos < LEN; pos++) {
        int32_t n = 0, left = min_i32(k, pos + 1);
        for (int32_t j = 0; j <= pos; j++)
            if (rig_rand(9, (uint64_t)(pos * LEN + j)) * 0.5f + 0.5f <
                (float)(left - n) / (float)(pos + 1 - j))
                at[pos * k + n++] = (float)j;
        while (n < k) at[pos * k + n++] = -1;
    }
    return at;
}

static const variant whole = {"whole", ISA_REF, 1, LEN, false, 0};

/* Row pos over a sequence of nothing but its k positions. */
static void alone(const float *q, const float *keys, const float *at, int32_t pos, int32_t k,
                  float *out)
{
    const int32_t n = min_i32(k, pos + 1);
    const seq_case s = attention(0, n);
    static float qs[LEN * HEADS * DK], ks[LEN * DK], all[LEN * HEADS * DV];
    for (int32_t i = 0; i < n; i++)
        memcpy(ks + i * DK, keys + (int32_t)at[i] * DK, DK * sizeof *ks);
    memset(qs, 0, sizeof qs);
    memcpy(qs + (n - 1) * HEADS * DK, q + pos * HEADS * DK, HEADS * DK * sizeof *q);
    const float *const in[] = {qs, ks, NULL};
    seq_play(&s, &(variant){"alone", ISA_REF, 1, n, false, 0}, in, in, all);
    memcpy(out, all + (n - 1) * HEADS * DV, HEADS * DV * sizeof *out);
}

static void attends_to_what_is_picked(void **state)
{
    static const int32_t ks[] = {1, 16, 50, 300, LEN};
    const int32_t levels = rig_levels();
    (void)state;
    float *q = seq_fill(1, LEN * HEADS * DK, 3), *keys = seq_fill(2, LEN * DK, 2);
    float *q2 = seq_fill(3, LEN * HEADS * DK, 3), *keys2 = seq_fill(4, LEN * DK, 2);
    float *want = malloc(LEN * HEADS * DV * sizeof *want), one[HEADS * DV];
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        const seq_case s = attention(ks[i], LEN);
        float *at = some_positions(ks[i]);
        const float *const in[] = {q, keys, at}, *const other[] = {q2, keys2, at};
        seq_play(&s, &whole, in, other, want);
        for (int32_t pos = 0; pos < LEN; pos += 29) {
            alone(q, keys, at + pos * ks[i], pos, ks[i], one);
            assert_memory_equal(one, want + pos * HEADS * DV, sizeof one);
        }
        seq_compare(&s, in, other, want, levels);
        free(at);
    }
    /* The last k left nothing out. */
    const seq_case s = attention(0, LEN);
    const float *const in[] = {q, keys, NULL};
    float *full = malloc(LEN * HEADS * DV * sizeof *full);
    seq_play(&s, &whole, in, in, full);
    assert_memory_equal(full, want, LEN * HEADS * DV * sizeof *full);
    free(full);
    free(want);
    free(q);
    free(q2);
    free(keys);
    free(keys2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(picks_the_best),
                                       cmocka_unit_test(attends_to_what_is_picked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
