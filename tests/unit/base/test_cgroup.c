/* Limits of control groups, from files as kernels and containers show them. */
#include "test.h"
#include "tmp.h"

#include <stdio.h>

#include "base/cgroup.h"

static tmp_dir root;

static void put(const char *path, const char *text)
{
    assert_true(tmp_put(&root, path, text));
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

#define V2 "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void nothing_limits_nothing(void **state)
{
    (void)state;
    cgroup_limits g = cgroup_read(root.path);
    assert_true(g.cores == 0 && g.memory_max == UINT64_MAX && g.memory_left == UINT64_MAX);
    put("/proc/self/cgroup", "0::/a\n");
    put("/proc/self/mountinfo", V2 "a line that is no mount\n\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    g = cgroup_read(root.path);
    assert_true(g.cores == 0 && g.memory_max == UINT64_MAX);
}

static void tightest_of_all_levels(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put("/proc/self/mountinfo", V2);
    put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "50000 20000\n");
    put("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/memory.max", "1000\n");
    put("/sys/fs/cgroup/a/memory.current", "900\n");
    put("/sys/fs/cgroup/a/memory.stat", "anon 100\nactive_file 200\ninactive_file 100\n");
    const cgroup_limits g = cgroup_read(root.path);
    assert_true(g.cores == 1.5);
    assert_int_equal(g.memory_max, 1000);
    assert_int_equal(g.memory_left, 400);
}

/* A group above its memory.high is slowed until it hardly moves, so that is a limit too, at any level. */
static void memory_high_is_a_limit(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/proc/self/mountinfo", V2);
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.high", "max\n");
    put("/sys/fs/cgroup/a/b/memory.current", "500\n");
    cgroup_limits g = cgroup_read(root.path);
    assert_true(g.memory_max == UINT64_MAX && g.memory_left == UINT64_MAX);
    put("/sys/fs/cgroup/a/b/memory.high", "3000\n");
    g = cgroup_read(root.path);
    assert_int_equal(g.memory_max, 3000);
    assert_int_equal(g.memory_left, 2500);
    put("/sys/fs/cgroup/a/b/memory.max", "2000\n"); /* below it: high never comes into effect */
    g = cgroup_read(root.path);
    assert_int_equal(g.memory_max, 2000);
    assert_int_equal(g.memory_left, 1500);
    put("/sys/fs/cgroup/a/memory.high", "1500\n"); /* of an ancestor, with others' memory in it */
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.current", "1400\n");
    put("/sys/fs/cgroup/a/memory.stat", "anon 1150\ninactive_file 250\nactive_file 0\n");
    g = cgroup_read(root.path);
    assert_int_equal(g.memory_max, 1500);
    assert_int_equal(g.memory_left, 350);
    put("/sys/fs/cgroup/a/memory.current", "1900\n"); /* already beyond it: nothing is left */
    assert_int_equal(cgroup_read(root.path).memory_left, 0);
}

/* A container that sees its own part of the hierarchy, but the host's name of its group. */
static void container_sees_a_part(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/docker/4f/worker\n");
    put("/proc/self/mountinfo", "31 23 0:28 /docker/4f /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/worker/cpu.max", "200000 100000\n");
    assert_true(cgroup_read(root.path).cores == 2);
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_true(cgroup_read(root.path).cores == 1);
    /* and where the group's name means nothing there, the mount point still counts */
    put("/proc/self/cgroup", "0::/../../elsewhere\n");
    assert_true(cgroup_read(root.path).cores == 1);
}

static void version_1_and_a_hybrid(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/p\n0::/u\n");
    put("/proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "38 31 0:41 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cpu,cpuacct/p/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/p/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "5000\n");
    put("/sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1000\n");
    cgroup_limits g = cgroup_read(root.path);
    assert_true(g.cores == 0);
    assert_int_equal(g.memory_left, 4000);
    put("/sys/fs/cgroup/cpu,cpuacct/p/cpu.cfs_quota_us", "350000\n");
    assert_true(cgroup_read(root.path).cores == 3.5);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4500\n"); /* of the group above */
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
    g = cgroup_read(root.path);
    assert_int_equal(g.memory_max, 4500);
    assert_int_equal(g.memory_left, 2500);
    put("/sys/fs/cgroup/unified/u/cpu.max", "300000 100000\n");
    assert_true(cgroup_read(root.path).cores == 3);
}

static void broken_files_limit_nothing(void **state)
{
    static const char *const bad[] = {
        "", "100000", "100000 0", "100000 max", "-1 100000", "x", "99999999999999999999 1"};
    (void)state;
    put("/proc/self/cgroup", "junk\n0\n0:\n0::/a");
    put("/proc/self/mountinfo", V2);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("/sys/fs/cgroup/a/cpu.max", bad[i]);
        assert_true(cgroup_read(root.path).cores == 0);
    }
    put("/sys/fs/cgroup/a/cpu.max", "200000 100000");
    assert_true(cgroup_read(root.path).cores == 2);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_root, drop_root)
    const struct CMUnitTest tests[] = {
        CASE(nothing_limits_nothing), CASE(tightest_of_all_levels),
        CASE(memory_high_is_a_limit), CASE(container_sees_a_part),
        CASE(version_1_and_a_hybrid), CASE(broken_files_limit_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
