/* The plan of a step: properties over random needs, and a few cases by hand. */
#include "test.h"

#include "base/num.h"
#include "base/rng.h"
#include "engine/sched.h"

static void by_hand(void **state)
{
    (void)state;
    sched_item a[] = {{1000, false, 0}};
    sched_plan(a, 1, 512);
    assert_int_equal(a[0].rows, 512); /* alone: the whole step */

    sched_item b[] = {{1, true, 0}, {1000, false, 0}};
    sched_plan(b, 2, 512);
    assert_int_equal(b[0].rows, 1);
    assert_int_equal(b[1].rows, SCHED_SHARED_ROWS);

    sched_item c[] = {{1000, false, 0}, {10, false, 0}, {1000, false, 0}};
    sched_plan(c, 3, 101);
    assert_int_equal(c[0].rows, 46); /* an odd row goes to the oldest */
    assert_int_equal(c[1].rows, 10);
    assert_int_equal(c[2].rows, 45);

    sched_item d[] = {{9, false, 0}, {9, false, 0}, {1, true, 0}};
    sched_plan(d, 3, 3);
    assert_int_equal(d[0].rows, 1);
    assert_int_equal(d[1].rows, 1);
    assert_int_equal(d[2].rows, 1);
}

static void properties(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        sched_item t[20];
        const int32_t n = 1 + (int32_t)(rng_u64(seed, 0, 0) % 20);
        const int32_t max_rows = n + (int32_t)(rng_u64(seed, 1, 0) % 300);
        int32_t sum = 0, n_decode = 0, need = 0, least = INT32_MAX;
        for (int32_t i = 0; i < n; i++) {
            const uint64_t r = rng_u64(seed, 2, (uint64_t)i);
            t[i] = (sched_item){r % 3 ? 1 + (int32_t)(r % 200) : 1, r % 3 == 0, -1};
            n_decode += t[i].decoding;
            if (!t[i].decoding) need += t[i].pending;
        }
        sched_plan(t, n, max_rows);
        for (int32_t i = 0; i < n; i++) {
            assert_in_range(t[i].rows, 0, t[i].pending);
            if (t[i].decoding) assert_int_equal(t[i].rows, 1);
            sum += t[i].rows;
            if (t[i].rows < t[i].pending) least = min_i32(least, t[i].rows);
        }
        const int32_t room = n_decode ? min_i32(max_rows, n_decode + SCHED_SHARED_ROWS) : max_rows;
        assert_int_equal(sum, min_i32(room, n_decode + need)); /* no row is wasted */
        for (int32_t i = 0; i < n; i++) /* nobody has more than one row over an unsatisfied one */
            if (!t[i].decoding && least != INT32_MAX) assert_true(t[i].rows <= least + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(properties)};
    return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
