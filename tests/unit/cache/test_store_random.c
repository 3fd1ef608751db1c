/* Random programs of puts, flushes and restarts: all that was ever put is there, whatever else had its name. */
#include "store_rig.h"

#include "base/rng.h"

enum { MAX_LIST = 60, ROUNDS = 150 };
typedef struct naive {
    rig_run *run[MAX_LIST];
    int n;
} naive;

static rig_run *random_run(uint64_t seed, uint64_t i)
{
#define DRAW(k, n) ((int32_t)(rng_u64(seed, i, k) % (uint64_t)(n)))
    uint16_t here[RIG_GROUPS];
    int32_t pos[STORE_MAX_STATES], n_state = 0;
    const bool named_again = DRAW(7, 2) == 0; /* like others */
    const int32_t first = named_again ? 0 : DRAW(0, 3) * DRAW(1, 5),
                  n_tok = named_again ? 100 : 1 + DRAW(2, STORE_MAX_TOKENS);
    for (int g = 0; g < RIG_GROUPS; g++) { /* all, none, a window's end, or anything */
        const uint16_t kinds[4] = {0xffff, 0, (uint16_t)(0xffff << DRAW(10, 16)),
                                   (uint16_t)DRAW(11, 65536)};
        here[g] = kinds[DRAW(20 + g, 4)];
    }
    const int32_t want =
        DRAW(3, 4) == 0 && !named_again ? DRAW(4, STORE_MAX_STATES + 1) : DRAW(5, 3);
    for (int32_t p = first * KV_BLOCK + 1; p <= first * KV_BLOCK + n_tok && n_state < want; p++)
        if (DRAW(100 + p, n_tok) < want) pos[n_state++] = p;
    return rig_make((uint64_t)DRAW(6, 9), first, n_tok, here, pos, n_state);
#undef DRAW
}

static bool same_run_name(const rig_run *a, const rig_run *b)
{
    return a->run.n_block == b->run.n_block &&
           hash128_same(a->key[a->run.n_block - 1], b->key[b->run.n_block - 1]);
}

static void list_check(store *s, const naive *l)
{
    uint32_t n_file = 0;
    store_stats st;
    for (int i = 0; i < l->n; i++) {
        int k = 0;
        while (!same_run_name(l->run[k], l->run[i])) k++;
        n_file += k == i;
        assert_ok(rig_read_back(s, l->run[i]));
    }
    store_get_stats(s, &st);
    assert_int_equal(st.n_entry, n_file);
    assert_int_equal(st.n_corrupt + st.n_foreign + st.n_miss, 0);
}

static void random_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        rig f = rig_begin();
        const store_opts o = rig_opts(f.dir.path);
        store_flushed fl;
        store_done d;
        naive l = {.n = 0};
        for (uint64_t i = 0; i < ROUNDS && l.n < MAX_LIST; i++) {
            const uint64_t what = rng_u64(seed, 1000 + i, 0) % 10;
            if (what < 6) {
                rig_run *r = random_run(seed, i);
                assert_ok(store_put(f.s, &r->run, r));
                l.run[l.n++] = r;
            } else if (what == 6) {
                store_idle(f.s, rng_u64(seed, i, 1) % 2);
            } else if (what == 7) {
                while (store_poll(f.s, &d)) assert_int_equal(d.result, STORE_DURABLE);
            } else {
                store_flush(f.s, TEST_WAIT_MS, &fl);
                assert_int_equal(fl.pending + fl.dropped + fl.failed, 0);
                if (what == 8) rig_reopen(&f, &o);
                list_check(f.s, &l);
            }
        }
        store_flush(f.s, TEST_WAIT_MS, &fl);
        rig_reopen(&f, &o);
        list_check(f.s, &l);
        for (int i = 0; i < l.n; i++) rig_free(l.run[i]);
        rig_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
