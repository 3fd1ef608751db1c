/* What the machine grants is within reason, and the peak counts memory that was touched. */
#include "test.h"

#include <sched.h>

#include "base/machine.h"

static void memory_is_plausible(void **state)
{
    (void)state;
    uint64_t available = 0, total = 0;
    machine_memory(&available, &total);
    assert_true(available > (uint64_t)16 << 20 && available <= total);
}

static void peak_counts_touched_memory(void **state)
{
    (void)state;
    assert_true(machine_peak_rss() > 100000);
    const size_t n = (size_t)24 << 20;
    char *p = mem_map(n, MEM_SCRATCH);
    memset(p, 1, n);
    assert_true(machine_peak_rss() >= n);
    mem_unmap(p, n, MEM_SCRATCH);
}

/* Unknown, or one core's. */
static void core_cache_is_plausible(void **state)
{
    (void)state;
    const uint64_t n = machine_core_cache();
    if (n) assert_in_range(n, 64 << 10, 64 << 20);
}

static void at_least_one_core(void **state)
{
    (void)state;
    assert_in_range(machine_cores(), 1, 1 << 16);
}

/* The mask of this thread, not the machine's number of cores. */
static void affinity_is_obeyed(void **state)
{
    (void)state;
    cpu_set_t mine, one;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    assert_int_equal(machine_affinity(), CPU_COUNT(&mine));
    int first = 0;
    while (!CPU_ISSET(first, &mine)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(machine_affinity(), 1);
    assert_int_equal(machine_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof mine, &mine), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_plausible),     cmocka_unit_test(peak_counts_touched_memory),
        cmocka_unit_test(core_cache_is_plausible), cmocka_unit_test(at_least_one_core),
        cmocka_unit_test(affinity_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
