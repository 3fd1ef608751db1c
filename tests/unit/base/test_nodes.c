/* Memory nodes, from files as machines show them: which count, where parts go, and that threads of a pool stay
   with theirs. */
#include "test.h"
#include "tmp.h"

#include <sched.h>
#include <stdio.h>

#include "base/nodes.h"
#include "base/workers.h"

#define NODE "/sys/devices/system/node/"
enum { N_THREAD = 4, MOST_CORES = 8192 };

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

/* The cores of this thread's mask, `most` of them at most. */
static int my_cores(int *core, int most)
{
    cpu_set_t set[MOST_CORES / CPU_SETSIZE];
    int n = 0;
    memset(set, 0, sizeof set);
    if (sched_getaffinity(0, sizeof set, set) != 0) return 0;
    for (int i = 0; i < MOST_CORES && n < most; i++)
        if (CPU_ISSET_S((size_t)i, sizeof set, set)) core[n++] = i;
    return n;
}

static void none_where_none_are_named(void **state)
{
    nodes m = {.n = 7};
    (void)state;
    nodes_read(root.path, &m);
    assert_int_equal(m.n, 0);
    assert_false(nodes_bind(root.path, 0));
    static const char *const bad[] = {
        "", "\n", "x", "-1", "1-0", "0-", "0-99999999999999999999", "99999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put(NODE "online", bad[i]);
        put(NODE "node0/cpulist", bad[i]);
        nodes_read(root.path, &m);
        assert_int_equal(m.n, 0);
    }
}

/* Memory alone, and cores that are not ours, make no node. */
static void nodes_with_our_cores_count(void **state)
{
    nodes m;
    char text[64];
    int core[1];
    (void)state;
    assert_int_equal(my_cores(core, 1), 1);
    put(NODE "online", "0-1,3,1000\n");
    put(NODE "node0/cpulist", "\n");
    put(NODE "node1/cpulist", "60000-60003\n");
    (void)snprintf(text, sizeof text, "%d,65000-65535\n", core[0]);
    put(NODE "node3/cpulist", text);
    nodes_read(root.path, &m);
    assert_int_equal(m.n, 1);
    assert_int_equal(m.n_core, 1);
    assert_int_equal(m.of[0].id, 3);
}

static void parts_follow_cores(void **state)
{
    const nodes even = {.n = 2, .n_core = 8, .of = {{0, 4}, {1, 4}}};
    const nodes uneven = {.n = 3, .n_core = 8, .of = {{0, 1}, {4, 6}, {5, 1}}};
    (void)state;
    for (int32_t i = 0; i < 8; i++) {
        assert_int_equal(nodes_place(&even, i, 8), i / 4);
        assert_int_equal(nodes_place(&uneven, i, 8), i == 0 ? 0 : i == 7 ? 2 : 1);
    }
    for (int32_t i = 0; i < 3; i++) assert_int_equal(nodes_place(&even, i, 3), i == 2);
    for (int32_t i = 0; i < 32; i++) assert_int_equal(nodes_place(&even, i, 32), i / 16);
}

typedef struct seen {
    int n[N_THREAD], core[N_THREAD][2];
} seen;

static void look(void *ctx, int32_t i, int32_t i_thread)
{
    seen *s = ctx;
    (void)i;
    s->n[i_thread] = my_cores(s->core[i_thread], 2);
}

/* Two nodes of a core each: those of the four threads that had a task. */
static void threads_stay_with_their_node(void **state)
{
    workers *w = NULL;
    seen s = {0};
    char text[64];
    int core[2];
    (void)state;
    if (my_cores(core, 2) < 2) skip();
    put(NODE "online", "0-1\n");
    for (int i = 0; i < 2; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, NODE "node%d/cpulist", i);
        (void)snprintf(text, sizeof text, "%d\n", core[i]);
        put(path, text);
    }
    assert_ok(workers_new_at(root.path, N_THREAD, &w));
    for (int round = 0; round < 200; round++) workers_run(w, 64, look, &s);
    workers_free(w);
    int n_seen = 0;
    for (int i = 1; i < N_THREAD; i++) {
        if (s.n[i] == 0) continue;
        assert_int_equal(s.n[i], 1);
        assert_int_equal(s.core[i][0], core[i / 2]);
        n_seen++;
    }
    assert_true(n_seen > 0 || s.n[0] > 0);
    assert_true(s.n[0] == 0 || s.n[0] == 2); /* the caller stays free */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(none_where_none_are_named, make_root, drop_root),
        cmocka_unit_test_setup_teardown(nodes_with_our_cores_count, make_root, drop_root),
        cmocka_unit_test(parts_follow_cores),
        cmocka_unit_test_setup_teardown(threads_stay_with_their_node, make_root, drop_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
