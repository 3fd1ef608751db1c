/* Measured speed: the estimates find the costs of a machine that is made up here, through noise, and the
   rows that they allow keep the bound. */
#include "test.h"

#include "base/rng.h"
#include "engine/pace.h"

enum { SHORT = 1024, LONG = 1025 };

/* A decode step of n rows; a prompt's row, dearer with its depth, and dearer in few. */
typedef struct machine {
    double step, decode, row, depth, few;
} machine;

static uint64_t took(const machine *m, const sched_item *t, int32_t n, double noise)
{
    double ns = m->step, rows = 0;
    for (int32_t i = 0; i < n; i++) {
        if (t[i].decoding) ns += m->decode;
        if (t[i].decoding) continue;
        rows += t[i].rows;
        ns += t[i].rows * (m->row + m->depth * t[i].pos);
    }
    if (rows > 0) ns += m->few;
    return (uint64_t)(ns * noise);
}

static int32_t fill(sched_item *t, int32_t n_decode, int32_t pos)
{
    for (int32_t i = 0; i < n_decode; i++)
        t[i] = (sched_item){.pending = 1, .left = 1, .decoding = true};
    t[n_decode] = (sched_item){.pending = 9000, .left = 9000, .fresh = 9000, .pos = pos};
    return n_decode + 1;
}

/* A prompt of 9000 rows beside n_decode streams; answers its steps, of which *late were over the bound. */
static int prompt(pace *p, const machine *m, int32_t n_decode, int *late)
{
    sched_item t[20];
    int steps = 0;
    *late = 0;
    for (int32_t pos = 0; pos < 9000; steps++) {
        const int32_t n = fill(t, n_decode, pos);
        sched_plan(t, n, pace_room(p, t, n, 512));
        const double u = rng_unit(7, (uint64_t)steps, 0);
        const double noise = u > 0.98 ? 8 : 0.95 + 0.1 * rng_unit(7, (uint64_t)steps, 1);
        const uint64_t ns = took(m, t, n, noise);
        const double base = m->step + n_decode * m->decode;
        *late += noise < 2 && (double)ns > p->bound * base && t[n_decode].rows > 1;
        pace_took(p, t, n, ns);
        pos += t[n_decode].rows;
        assert_true(steps < 20000);
    }
    return steps;
}

static void keeps_the_bound(void **state)
{
    (void)state;
    static const machine m[] = {{1e7, 1e6, 8e5, 50, 0},
                                {1e7, 1e5, 1e6, 2000, 0},
                                {1e7, 1e6, 8e5, 0, 5e6},
                                {2e4, 1e3, 3e3, 0.1, 0},
                                {10, 0, 1, 0, 0}}; /* a clock too coarse for it */
    for (size_t k = 0; k < sizeof m / sizeof *m; k++)
        for (int32_t n_decode = 1; n_decode <= 16; n_decode *= 4) {
            pace p = {.bound = 3};
            int late;
            const int steps = prompt(&p, &m[k], n_decode, &late);
            assert_true(late <= 2 + steps / 50);
            /* and uses most of it: the rows of a bound, at their mean depth, at least half */
            const double base = m[k].step + n_decode * m[k].decode;
            const double row = m[k].row + m[k].depth * 4500;
            assert_true(steps <= 100 + 2 * 9000 * row / (2 * base - m[k].few));
        }
}

/* Streams, prompts behind them of which `idle` may not run yet, all known to a pace that has seen the machine. */
static sched_room room_of(const pace *p, int32_t n_decode, int32_t n_prompts, int32_t idle,
                          int32_t priority)
{
    sched_item t[80];
    for (int32_t i = 0; i < n_decode + n_prompts; i++)
        t[i] = (sched_item){.pending = i < n_decode || i >= n_decode + idle,
                            .left = 1,
                            .fresh = LONG,
                            .priority = i < n_decode ? 0 : priority,
                            .decoding = i < n_decode};
    return pace_room(p, t, n_decode + n_prompts, 512);
}

/* A step may take the bound for each prompt that waits, as many times as the bound says, and longer than half a
   second only if one prompt may. */
static void many_prompts(void **state)
{
    (void)state;
    static const double bound[] = {1.5, 3, 6};
    const machine m = {1e7, 1e6, 8e5, 50, 0};
    for (int k = 0; k < 3; k++) {
        pace p = {.bound = bound[k]};
        int late;
        (void)prompt(&p, &m, 4, &late);
        const double one = (double)room_of(&p, 4, 1, 0, 0).ns, base = one / (bound[k] * 0.85 - 1);
        assert_true(base > 0.9 * 1.4e7 && base < 1.2 * 1.4e7);
        for (int32_t n = 1; n < 60; n++) {
            const double times = n < bound[k] ? n : bound[k];
            double most = times * bound[k] * 0.85 * base;
            if (most > 5e8) most = 5e8;
            const double ns = (double)room_of(&p, 4, n, 0, 0).ns + base;
            assert_true(ns > 0.999 * most && ns < 1.001 * most);
        }
        /* who cannot run, or is less urgent than all streams, does not count; who is more urgent does */
        assert_true(room_of(&p, 4, 5, 4, 0).ns == (uint64_t)one);
        assert_true(room_of(&p, 4, 5, 0, 1).ns == (uint64_t)one);
        assert_true(room_of(&p, 4, 5, 0, -1).ns > (uint64_t)one);
    }
    pace slow = {.bound = 3};
    int late;
    (void)prompt(&slow, &(machine){2e8, 1e7, 8e6, 0, 0}, 4, &late);
    assert_true(room_of(&slow, 4, 9, 0, 0).ns == room_of(&slow, 4, 1, 0, 0).ns);
}

/* Streams and prompts of these lengths: what a step may take, in times the step without prompts. */
static double times_of(const pace *p, double base, const int32_t *fresh, int32_t n)
{
    sched_item t[20];
    for (int32_t i = 0; i < 4; i++) t[i] = (sched_item){.pending = 1, .left = 1, .decoding = true};
    for (int32_t i = 0; i < n; i++)
        t[4 + i] = (sched_item){.pending = 9, .left = 9, .fresh = fresh[i]};
    return (double)pace_room(p, t, 4 + n, 512).ns / base + 1;
}

/* Steps without prompts. */
static void decode(pace *p, int32_t n_decode, int32_t steps, uint64_t ns)
{
    sched_item t[20];
    (void)fill(t, n_decode, 0);
    for (int32_t i = 0; i < n_decode; i++) t[i].rows = 1;
    for (int32_t i = 0; i < steps; i++) pace_took(p, t, n_decode, ns);
}

/* Short prompts without end beside four streams for so many steps; answers what all took, *most the longest. */
static double flow(pace *p, const machine *m, int32_t steps, double *most)
{
    double sum = 0;
    *most = 0;
    for (int32_t i = 0; i < steps; i++) {
        sched_item t[5];
        const int32_t n = fill(t, 4, 0);
        t[4].fresh = SHORT;
        sched_plan(t, n, pace_room(p, t, n, 512));
        const uint64_t ns = took(m, t, n, 1);
        pace_took(p, t, n, ns);
        sum += (double)ns;
        if ((double)ns > *most) *most = (double)ns;
    }
    return sum;
}

/* What streams had for themselves, short prompts may take, up to half a second; then they have what a long one
   has, which takes nothing of it and leaves none to others either while it waits. */
static void short_prompts(void **state)
{
    (void)state;
    const machine m = {1e7, 1e6, 5e5, 0, 0};
    const double base = 1.4e7, one = 3 * 0.85;
    pace p = {.bound = 3};
    int late;
    (void)prompt(&p, &m, 4, &late);
    decode(&p, 4, 100, (uint64_t)base);
    p.saved_ns = 0;
    assert_true(times_of(&p, base, (int32_t[]){SHORT}, 1) < 1.001 * one); /* none is left yet */
    decode(&p, 4, 100, (uint64_t)base);
    const double alone = times_of(&p, base, (int32_t[]){SHORT}, 1);
    assert_true(alone > 0.999 * 3 * one && alone < 1.001 * 3 * one); /* as three */
    assert_true(times_of(&p, base, (int32_t[]){SHORT, 1, SHORT, 5}, 4) < 1.001 * 3 * one);
    assert_true(times_of(&p, base, (int32_t[]){LONG}, 1) < 1.001 * one);
    assert_true(times_of(&p, base, (int32_t[]){SHORT, LONG}, 2) < 1.001 * 2 * one);
    double most;
    const double first = flow(&p, &m, 10, &most); /* 10 × 70 ms more than one may take: too much */
    assert_true(first > 10 * one * base + 0.45e9 && first < 10 * one * base + 0.51e9);
    assert_true(most < 9 * base);
    const double later = flow(&p, &m, 1000, &most); /* and steps that measure save a little again */
    assert_true(later < 1000 * one * base + 0.01e9 && most < 9 * base);
    assert_true(later > 0.9 * 1000 * one * base);
}

/* The first figures are off by much: they are forgotten. */
static void forgets(void **state)
{
    (void)state;
    const machine slow = {1e8, 1e7, 8e6, 50, 0}, fast = {1e7, 1e6, 8e5, 50, 0};
    pace p = {.bound = 3}, q = {.bound = 3};
    int late;
    (void)prompt(&p, &slow, 4, &late);
    (void)prompt(&p, &fast, 4, &late);
    const int again = prompt(&p, &fast, 4, &late), fresh = prompt(&q, &fast, 4, &late);
    assert_in_range(again, fresh * 8 / 10, fresh * 12 / 10);
}

/* Nobody waits: whole steps on a fast machine, half a second on a slow one, and 64 rows on any. */
static void alone(void **state)
{
    (void)state;
    static const double row[] = {1e4, 5e6, 1e8};
    static const int32_t rows[] = {512, 100, 64};
    for (int k = 0; k < 3; k++) {
        pace p = {.bound = 3};
        int late;
        sched_item t[1];
        (void)prompt(&p, &(machine){0, 0, row[k], 0, 0}, 0, &late);
        const int32_t n = fill(t, 0, 0);
        sched_plan(t, n, pace_room(&p, t, n, 512));
        assert_in_range(t[0].rows, rows[k] * 9 / 10, rows[k] * 11 / 10);
        const double ns = (double)pace_prompt_ns(&p, 1000) / (1000 * row[k]);
        assert_true(ns > 0.8 && ns < 1.3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_bound), cmocka_unit_test(many_prompts),
        cmocka_unit_test(short_prompts), cmocka_unit_test(forgets), cmocka_unit_test(alone)};
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
