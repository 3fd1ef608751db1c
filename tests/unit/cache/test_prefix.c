/* Kept prefixes in memory, with room for all and with hardly any (prefix_world.h). */
#include "prefix_world.h"

static void run(const kind *k, uint64_t seed, int32_t ctx, uint64_t n_seqs, uint64_t prefix_bytes)
{
    world *w = world_new(k, seed, ctx, n_seqs, prefix_bytes);
    const bool roomy = prefix_bytes == 1 << 26, all_known = roomy && k->sees_all;
    for (uint64_t i = 0; i < 500; i++) {
        const uint64_t calls = mem_calls();
        world_do(w, i, all_known);
        assert_int_equal(mem_calls(), calls); /* nothing allocates once it is made */
        world_verify(w);
        if (i % 8 == 0) world_count(w);
    }
    world_close_all(w);
    assert_int_equal(cache_reserved(w->c), 0);
    assert_true(cache_kept(w->c) <= prefix_bytes);
    world_count(w);
    if (roomy) assert_true(w->hits > 0 && w->n_pinned > 0);
    cache_forget(w->c);
    assert_int_equal(cache_used(w->c), 0);
    assert_int_equal(w->c->tree.n_free, w->c->tree.n_node);
    world_free(w);
}

static void random_programs(void **state)
{
    (void)state;
    static const int32_t ctx[] = {500, 200, 120, 70, 64};
    for (int k = 0; k < N_KIND; k++)
        for (uint64_t seed = 1; seed <= (test_part() > 1 ? 1 : 3); seed++)
            for (int i = 0; i < 5; i++) {
                const uint64_t s = seed + 1000 * (uint64_t)i;
                run(&world_kinds[k], s, ctx[i], SEQS, 1 << 26);
                run(&world_kinds[k], s + 100, ctx[i], SEQS, 1 << 14);
                run(&world_kinds[k], s + 200, ctx[i], 1, 1);
                run(&world_kinds[k], s + 300, ctx[i], 2, 1 << 13);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
