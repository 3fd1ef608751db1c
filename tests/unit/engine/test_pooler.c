/* Every way of pooling against its definition, rows skipped, and the length of a vector; goldens compare the
   same with the reference (tests/golden/test_embeddings.c). */
#include "test.h"

#include <math.h>

#include "base/rng.h"
#include "engine/pooler.h"

enum { HIDDEN = 19, ROWS = 37, SKIP = 3 };

static float row_at(int32_t r, int32_t i)
{
    return (float)(2.0 * rng_unit(3, (uint64_t)r, (uint64_t)i) - 1.0);
}

static double want(pool_kind k, int32_t i)
{
    double sum = 0, weighted = 0, places = 0, max = -2;
    for (int32_t r = SKIP; r < ROWS; r++) {
        sum += (double)row_at(r, i);
        weighted += (r + 1) * (double)row_at(r, i);
        places += r + 1;
        max = fmax(max, (double)row_at(r, i));
    }
    switch (k) {
    case POOL_CLS:
        return (double)row_at(SKIP, i);
    case POOL_MAX:
        return max;
    case POOL_MEAN:
        return sum / (ROWS - SKIP);
    case POOL_MEAN_SQRT:
        return sum / sqrt(ROWS - SKIP);
    case POOL_WEIGHTED_MEAN:
        return weighted / places;
    case POOL_LAST:
        return (double)row_at(ROWS - 1, i);
    }
    return 0;
}

static void every_kind(void **state)
{
    const pool_spec spec = {
        .n_kind = POOL_KINDS,
        .kind = {POOL_LAST, POOL_MEAN, POOL_CLS, POOL_WEIGHTED_MEAN, POOL_MAX, POOL_MEAN_SQRT}};
    float row[HIDDEN], out[POOL_KINDS * HIDDEN];
    pooler p;
    arena a;
    (void)state;
    arena_init(&a, MEM_ENGINE);
    assert_ok(pooler_init(&p, &spec, HIDDEN, &a));
    for (int pass = 0; pass < 2; pass++) { /* nothing stays of the text before */
        pooler_begin(&p);
        for (int32_t r = SKIP; r < ROWS; r++) {
            for (int32_t i = 0; i < HIDDEN; i++) row[i] = row_at(r, i);
            pooler_row(&p, row, r);
        }
        pooler_end(&p, out);
        for (int32_t k = 0; k < POOL_KINDS; k++)
            for (int32_t i = 0; i < HIDDEN; i++) {
                const double w = want(spec.kind[k], i);
                /* rounded once, divided by a rounded square root; a sum of ROWS doubles */
                const double allowed = 0x1p-23 * fabs(w) + ROWS * ROWS * 0x1p-53;
                if (!(fabs((double)out[k * HIDDEN + i] - w) <= allowed))
                    fail_msg("kind %d, element %d: %g, not %g", (int)spec.kind[k], (int)i,
                             (double)out[k * HIDDEN + i], w);
            }
    }
    arena_deinit(&a);
}

static void lengths(void **state)
{
    float v[3] = {3, 0, -4}, none[2] = {0, 0}, tiny[1] = {1e-20f};
    (void)state;
    pool_normalise(v, 3);
    assert_true(v[0] == 0.6f && v[1] == 0 && v[2] == -0.8f);
    pool_normalise(none, 2); /* as the reference: no division by nothing */
    assert_true(none[0] == 0 && none[1] == 0);
    pool_normalise(tiny, 1);
    assert_true(tiny[0] == 1e-20f / 1e-12f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind), cmocka_unit_test(lengths)};
    return cmocka_run_group_tests_name("pooler", tests, NULL, NULL);
}
