/* What the machine grants is within reason, and the peak counts memory that was touched. */
#include "test.h"
#include "tmp.h"

#include <sched.h>

#include "base/machine.h"

static tmp_dir root;

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

static int make_root(void **state)
{
    (void)state;
    return tmp_make(&root) ? 0 : -1;
}

static int drop_root(void **state)
{
    (void)state;
    return tmp_drop(&root) ? 0 : -1;
}

/* The hardware threads of one core, as the system lists them for `cpu`. */
static void put_siblings(int cpu, const char *list)
{
    char path[128];
    (void)snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                   cpu);
    assert_true(tmp_put(&root, path, list));
}

static void siblings_are_one_core(void **state)
{
    (void)state;
    assert_int_equal(machine_cores_at(root.path, "0-7"), 8); /* nothing is known */
    for (int i = 0; i < 4; i++) {
        char pair[16];
        (void)snprintf(pair, sizeof pair, "%d,%d\n", i, i + 4);
        put_siblings(i, pair);
        put_siblings(i + 4, pair);
    }
    assert_int_equal(machine_cores_at(root.path, "0-7"), 4);
    assert_int_equal(machine_cores_at(root.path, "1-6"), 4); /* 1 and 5, 2 and 6, 3, 4 */
    assert_int_equal(machine_cores_at(root.path, "4-7"), 4); /* their partners are others' */
    assert_int_equal(machine_cores_at(root.path, "0,4"), 2); /* a lone core */
    assert_int_equal(machine_cores_at(root.path, "4"), 1);
    assert_int_equal(machine_cores_at(root.path, "0-9"), 6); /* 8 and 9 have no file */
    put_siblings(0, "0-3\n");                                /* four to a core */
    put_siblings(1, "0-3\n");
    put_siblings(2, "nonsense");
    put_siblings(3, "0-");
    assert_int_equal(machine_cores_at(root.path, "0-1"), 2);
    assert_int_equal(machine_cores_at(root.path, "0-3"), 3); /* what cannot be read is a core */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_plausible),
        cmocka_unit_test(peak_counts_touched_memory),
        cmocka_unit_test(core_cache_is_plausible),
        cmocka_unit_test(at_least_one_core),
        cmocka_unit_test(affinity_is_obeyed),
        cmocka_unit_test_setup_teardown(siblings_are_one_core, make_root, drop_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
