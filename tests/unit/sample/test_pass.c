/* The passes of every level that runs here have the bits of the plain ones: on random logits, ties, infinities,
   NaN, zeros of both signs and denormals, at page ends, over odd counts. */
#include "test.h"

#include <math.h>
#include <sys/mman.h>

#include "backend/cpu/kern/kern.h"
#include "base/rng.h"
#include "sample/pass.h"

enum { RUNS = 5, N = RUNS * PASS_RUN, PAGE = 4096, PAGES = 4, KINDS = 6, ROUNDS = 40 };
_Static_assert(N * sizeof(float) <= PAGES * PAGE, "values fit before the page that is not there");

typedef struct level {
    const char *name;
    const pass *pass;
} level;

static int levels(level out[2])
{
    int n = 0;
#if defined(__x86_64__)
    if (isa_runs(ISA_AVX2)) out[n++] = (level){"avx2", &pass_avx2};
    if (isa_runs(ISA_AVX512)) out[n++] = (level){"avx512", &pass_avx512};
#else
    (void)out;
#endif
    return n;
}

/* n floats whose end is a page that nobody may touch. */
static float *fenced(size_t n)
{
    uint8_t *m = mmap(NULL, (PAGES + 1) * (size_t)PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(m != MAP_FAILED);
    assert_int_equal(mprotect(m + PAGES * PAGE, PAGE, PROT_NONE), 0);
    return (float *)(void *)(m + PAGES * PAGE) - n;
}

static void drop(float *p, size_t n)
{
    assert_int_equal(munmap((uint8_t *)(void *)(p + n) - PAGES * PAGE, (PAGES + 1) * (size_t)PAGE),
                     0);
}

static float value(int kind, uint64_t round, uint64_t i)
{
    const float u = (float)rng_unit(100 + round, (uint64_t)kind, i);
    const uint64_t pick = rng_u64(200 + round, (uint64_t)kind, i) % 8;
    static const float odd[8] = {0.0f, -0.0f, -INFINITY, 1e-41f, -1e-41f, -3.4e38f, -87.0f, 3e38f};
    switch (kind) {
    case 0: /* as a model's */
        return -2.5f * logf(1 + u * 49152) + 1;
    case 1: /* ties */
        return (float)(int)(u * 4) - 2;
    case 2:
        return odd[pick];
    case 3: /* around the end of what weighs anything */
        return -87.0f + (u - 0.5f) * 1e-3f;
    case 4: /* few, and nothing else */
        return pick ? -INFINITY : -100 * u;
    default:
        return -120 * u;
    }
}

static void make(float *x, int kind, uint64_t round, int32_t n)
{
    for (int32_t i = 0; i < n; i++) x[i] = value(kind, round, (uint64_t)i);
}

static float top_of(const float *x, int32_t n)
{
    float top = -3e38f;
    for (int32_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static void weigh_like_plain(const pass *p, const float *x, int32_t n_runs, float scale)
{
    static float w[2][N];
    static double run[2][RUNS];
    const size_t n = (size_t)n_runs * PASS_RUN;
    const float top = top_of(x, (int32_t)n);
    const double a = pass_ref.weigh(x, n_runs, top, scale, w[0], run[0]);
    const double b = p->weigh(x, n_runs, top, scale, w[1], run[1]);
    assert_memory_equal(&a, &b, sizeof a);
    assert_memory_equal(w[0], w[1], n * sizeof(float));
    assert_memory_equal(run[0], run[1], (size_t)n_runs * sizeof(double));
}

static void weights(void **state)
{
    (void)state;
    static const float scale[] = {1, 0.5f, 1.25f, 1e6f, 0.01f, 1.0f / 0.7f};
    level l[2];
    const int n = levels(l);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < KINDS * ROUNDS; k++) {
            const int32_t n_runs = k % (RUNS + 1);
            const size_t len = (size_t)n_runs * PASS_RUN;
            float *x = fenced(len);
            make(x, k % KINDS, (uint64_t)k / KINDS, (int32_t)len);
            for (size_t s = 0; s < sizeof scale / sizeof *scale; s++)
                weigh_like_plain(l[i].pass, x, n_runs, scale[s]);
            drop(x, len);
        }
}

/* Against the sum in the stated order, and what a value of the run itself says. */
static void plain_weights(void **state)
{
    (void)state;
    static float x[PASS_RUN], w[PASS_RUN];
    double run[1];
    make(x, 0, 1, PASS_RUN);
    const float top = top_of(x, PASS_RUN);
    double lane[PASS_LANES] = {0}, sum = 0;
    assert_true(pass_ref.weigh(x, 1, top, 1.25f, w, run) == run[0]);
    for (int i = 0; i < PASS_RUN; i++) {
        const double true_w = exp(((double)x[i] - (double)top) * 1.25);
        assert_true(fabs((double)w[i] - true_w) <= 1e-6 * true_w);
        lane[i % PASS_LANES] += (double)w[i];
    }
    for (int k = 0; k < PASS_LANES; k++) sum += lane[k];
    assert_true(sum == run[0]);
}

/* Bits are free here, not the bound: over all exponents, where runs are whole and where one value has all. */
static void estimates(void **state)
{
    (void)state;
    level l[2];
    static float w[N];
    static double run[RUNS];
    const int n = levels(l);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < (KINDS + 2) * ROUNDS; k++) {
            const int kind_at = k % (KINDS + 2);
            float *x = fenced(N);
            make(x, kind_at, (uint64_t)k / KINDS, N);
            for (int j = 0; kind_at == KINDS && j < N;
                 j++) /* one value again and again, further down each round */
                x[j] = j ? -(float)k / (KINDS + 2) / 4 : 0;
            for (int j = 0; kind_at == KINDS + 1 && j < N; j++) x[j] = x[j] * 1e4f - 1e5f;
            const float top = top_of(x, N);
            const double sum = pass_ref.weigh(x, RUNS, top, 1, w, run);
            const double about = l[i].pass->estimate(x, RUNS, top);
            assert_true(fabs(about - sum) <= PASS_ESTIMATE / 2 * sum);
            drop(x, N);
        }
}

static void high_like(const pass *p, const float *x, int32_t n_runs)
{
    float high[2][RUNS];
    bool good = true;
    for (int32_t i = 0; i < n_runs * PASS_RUN; i++) good &= x[i] < INFINITY;
    assert_int_equal(pass_ref.high(x, n_runs, high[0]), good);
    assert_int_equal(p->high(x, n_runs, high[1]), good);
    assert_memory_equal(high[0], high[1], (size_t)n_runs * sizeof(float));
    for (int32_t r = 0; r < n_runs; r++) {
        float top = -INFINITY;
        for (int32_t i = r * PASS_RUN; i < (r + 1) * PASS_RUN; i++) top = x[i] > top ? x[i] : top;
        assert_true(top == high[0][r]);
    }
}

static void highs(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -NAN};
    level l[2];
    const int n = levels(l);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < KINDS * ROUNDS; k++) {
            const int32_t n_runs = k % (RUNS + 1);
            const size_t len = (size_t)n_runs * PASS_RUN;
            float *x = fenced(len);
            make(x, k % KINDS, (uint64_t)k / KINDS, (int32_t)len);
            high_like(l[i].pass, x, n_runs);
            if (len) x[rng_u64(3, 0, (uint64_t)k) % len] = bad[k % 3];
            high_like(l[i].pass, x, n_runs);
            for (size_t j = 0; k == 5 && j < PASS_RUN; j++) x[j] = NAN; /* a run of nothing else */
            high_like(l[i].pass, x, n_runs);
            drop(x, len);
        }
}

static void collect_like(const pass *p, const float *x, int32_t n, float at)
{
    const size_t room = (size_t)n;
    float *value[2] = {fenced(room), fenced(room)}, *id[2] = {fenced(room), fenced(room)};
    int32_t k[2], want = 0;
    for (int i = 0; i < 2; i++)
        k[i] = (i ? p : &pass_ref)->collect(x, n, at, 1000, (int32_t *)(void *)id[i], value[i]);
    for (int32_t i = 0; i < n; i++) want += x[i] >= at;
    assert_int_equal(k[0], want);
    assert_int_equal(k[1], want);
    assert_memory_equal(id[0], id[1], (size_t)want * sizeof(int32_t));
    assert_memory_equal(value[0], value[1], (size_t)want * sizeof(float));
    for (int i = 0; i < 2; i++) {
        drop(value[i], room);
        drop(id[i], room);
    }
}

static void collected(void **state)
{
    (void)state;
    static const float at[] = {-3.4e38f, -87.0f, -10, -1, 0.0f, -0.0f, 1, 3e38f};
    level l[2];
    const int n = levels(l);
    for (int i = 0; i < n; i++)
        for (int32_t len = 0; len <= PASS_RUN; len += len < 70 ? 1 : 31) {
            float *x = fenced((size_t)len);
            make(x, len % KINDS, (uint64_t)len, len);
            for (size_t j = 0; j < sizeof at / sizeof *at; j++)
                collect_like(l[i].pass, x, len, at[j]);
            drop(x, (size_t)len);
        }
}

/* Whatever the user asks for, there are passes. */
static void there_is_one(void **state)
{
    (void)state;
    const pass *p = pass_here();
    assert_true(p && p->high && p->weigh && p->collect && p->estimate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights),   cmocka_unit_test(plain_weights),
        cmocka_unit_test(highs),     cmocka_unit_test(collected),
        cmocka_unit_test(estimates), cmocka_unit_test(there_is_one),
    };
    return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
