/* The plan of a step: a few cases by hand, and what holds of random needs. */
#include "test.h"

#include "base/rng.h"
#include "engine/sched.h"

static const sched_room wide = {512, UINT64_MAX, SCHED_LEAST};

static sched_item prompt(int32_t pending, uint64_t row_ns)
{
    return (sched_item){.pending = pending, .left = pending, .row_ns = row_ns};
}
static const sched_item decoder = {.pending = 1, .left = 1, .decoding = true};

static void by_hand(void **state)
{
    (void)state;
    sched_item a[] = {prompt(1000, 7)};
    sched_plan(a, 1, wide);
    assert_int_equal(a[0].rows, 512); /* alone: the whole step */

    sched_item b[] = {decoder, prompt(1000, 10)};
    sched_plan(b, 2, (sched_room){512, 405, SCHED_LEAST});
    assert_int_equal(b[0].rows, 1);
    assert_int_equal(b[1].rows, 40); /* what there is time for */
    sched_plan(b, 2, (sched_room){512, 3, SCHED_LEAST});
    assert_int_equal(b[1].rows, 1); /* nothing stands still */
    sched_plan(b, 2, (sched_room){512, 3, 64});
    assert_int_equal(b[1].rows, 64); /* nobody waits, and less would be slow */
    sched_plan(b, 2, (sched_room){1, 1000, SCHED_LEAST});
    sched_plan(b, 2, (sched_room){2, 1000, SCHED_LEAST});
    assert_int_equal(b[1].rows, 1);

    sched_item c[] = {prompt(1000, 0), prompt(10, 0), prompt(900, 0)};
    sched_plan(c, 3, (sched_room){100, UINT64_MAX, SCHED_LEAST});
    assert_int_equal(c[0].rows, 66); /* the oldest one's share */
    assert_int_equal(c[1].rows, 10); /* the shortest is done */
    assert_int_equal(c[2].rows, 24); /* the next shortest has what is left */

    c[0].priority = -1; /* 500 to 900 */
    sched_plan(c, 3, (sched_room){100, UINT64_MAX, SCHED_LEAST});
    assert_int_equal(c[0].rows, 90);
    assert_int_equal(c[2].rows, 0);

    sched_item d[] = {prompt(9, 0), prompt(9, 0), decoder};
    sched_plan(d, 3, (sched_room){3, UINT64_MAX, SCHED_LEAST});
    assert_int_equal(d[0].rows, 2); /* alike: in order of admission */
    assert_int_equal(d[1].rows, 0);
    assert_int_equal(d[2].rows, 1);
}

/* What must hold of any plan. */
static void check(const sched_item *t, int32_t n, sched_room room)
{
    int32_t sum = 0, paid = 0, open = 0;
    uint64_t ns = 0, dearest = 0;
    bool oldest = true;
    for (int32_t i = 0; i < n; i++) {
        assert_in_range(t[i].rows, 0, t[i].pending);
        sum += t[i].rows;
        if (t[i].decoding) {
            assert_int_equal(t[i].rows, 1);
            continue;
        }
        if (t[i].row_ns) paid += t[i].rows;
        ns += t[i].row_ns * (uint64_t)t[i].rows;
        if (t[i].row_ns > dearest) dearest = t[i].row_ns;
        open += t[i].rows < t[i].pending;
    }
    assert_true(sum <= room.max_rows);
    assert_true(ns <= room.ns || paid <= room.least);
    /* rows are left over only where another would break a bound */
    if (open) assert_true(sum == room.max_rows || ns + dearest > room.ns);
    for (int32_t i = 0; i < n && sum > n; i++)
        if (!t[i].decoding && oldest) {
            assert_true(t[i].rows > 0);
            oldest = false;
        }
}

static void properties(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        sched_item t[20];
        const int32_t n = 1 + (int32_t)(rng_u64(seed, 0, 0) % 20);
        const sched_room room = {n + (int32_t)(rng_u64(seed, 1, 0) % 300),
                                 rng_u64(seed, 1, 1) % 20000,
                                 (int32_t)(rng_u64(seed, 1, 2) % 3 ? SCHED_LEAST : 64)};
        for (int32_t i = 0; i < n; i++) {
            const uint64_t r = rng_u64(seed, 2, (uint64_t)i);
            t[i] = r % 3 ? prompt(1 + (int32_t)(r % 200), (r >> 9) % 100) : decoder;
            t[i].priority = (int32_t)((r >> 20) % 17) - 8;
            t[i].rows = -1;
        }
        sched_plan(t, n, room);
        check(t, n, room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(properties)};
    return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
