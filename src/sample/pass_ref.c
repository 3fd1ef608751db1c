/* The passes in plain C.  Inner counts are constant, so that the compiler uses the vectors of every machine. */
#include <math.h>

#include "sample/fexp.h"
#include "sample/pass.h"

enum { LANES = PASS_LANES };

/* *bad grows where a value is NaN or +inf. */
static float run_high(const float *x, int32_t *bad)
{
    float lane[LANES], top = -INFINITY;
    int32_t wrong[LANES] = {0};
    for (int32_t k = 0; k < LANES; k++) lane[k] = -INFINITY;
    for (int32_t i = 0; i < PASS_RUN; i += LANES)
        for (int32_t k = 0; k < LANES; k++) {
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
            wrong[k] |= !(x[i + k] < INFINITY);
        }
    for (int32_t k = 0; k < LANES; k++) {
        *bad |= wrong[k];
        top = lane[k] > top ? lane[k] : top;
    }
    return top + 0.0f; /* -0 is 0 */
}

static bool ref_high(const float *x, int32_t n_runs, float *high)
{
    int32_t bad = 0;
    for (int32_t r = 0; r < n_runs; r++) high[r] = run_high(x + (size_t)r * PASS_RUN, &bad);
    return !bad;
}

static double weigh_run(const float *restrict x, float top, float scale, float *restrict w)
{
    double lane[LANES] = {0}, sum = 0;
    for (int32_t i = 0; i < PASS_RUN; i++) w[i] = fexp((x[i] - top) * scale);
    for (int32_t i = 0; i < PASS_RUN; i += LANES)
        for (int32_t k = 0; k < LANES; k++) lane[k] += (double)w[i + k];
    for (int32_t k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

static double ref_weigh(const float *x, int32_t n_runs, float top, float scale, float *w,
                        double *run)
{
    double sum = 0;
    for (int32_t r = 0; r < n_runs; r++, x += PASS_RUN, w += PASS_RUN) {
        run[r] = weigh_run(x, top, scale, w);
        sum += run[r];
    }
    return sum;
}

static int32_t ref_collect(const float *x, int32_t n, float at, int32_t first, int32_t *id,
                           float *value)
{
    int32_t k = 0;
    for (int32_t i = 0; i < n; i++) { /* what does not count is written over: no branch to guess */
        id[k] = first + i;
        value[k] = x[i];
        k += x[i] >= at;
    }
    return k;
}

static double ref_estimate(const float *x, int32_t n_runs, float top)
{
    float w[PASS_RUN];
    double sum = 0;
    for (int32_t r = 0; r < n_runs; r++, x += PASS_RUN) sum += weigh_run(x, top, 1.0f, w);
    return sum;
}

const pass pass_ref = {ref_high, ref_weigh, ref_collect, ref_estimate};
