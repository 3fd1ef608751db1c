/* The disk tier by itself: round trips, keys and names, order of use, limits, lack of memory. */
#include "store_rig.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "fake_time.h"

static void keys(void **state)
{
    (void)state;
    int32_t t[KV_BLOCK] = {1, 2, 3};
    store_origin o = {.fingerprint = "x", .numerics = 2, .scheme = "f16"};
    store_key all[8];
    all[0] = store_root(&o);
    o.numerics = 3;
    all[1] = store_root(&o);
    o.scheme = "q8";
    all[2] = store_root(&o);
    o.space = (cairn_str){"key", 3};
    all[3] = store_root(&o);
    o.adapter.lo = 1;
    all[4] = store_root(&o);
    o.media.hi = 1;
    all[5] = store_root(&o);
    all[6] = store_block_key(all[0], t, KV_BLOCK);
    all[7] = store_block_key(all[0], t, KV_BLOCK - 1);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) assert_false(hash128_same(all[i], all[k]));
    assert_true(hash128_same(all[6], store_block_key(all[0], t, KV_BLOCK)));
}

static void names(void **state)
{
    (void)state;
    const store_name n = {{0x1234, UINT64_MAX}, 16};
    store_name got;
    char text[STORE_NAME_BYTES], tmp[100];
    store_name_text(n, text);
    assert_string_equal(text, "ffffffffffffffff0000000000001234-16.cairnkv");
    assert_true(store_name_parse(text, &got));
    assert_true(hash128_same(got.end, n.end) && got.n_block == 16);
    static const char *const bad[] = {"",
                                      ".",
                                      "ffffffffffffffff0000000000001234-17.cairnkv",
                                      "ffffffffffffffff0000000000001234-0.cairnkv",
                                      "ffffffffffffffff0000000000001234-01.cairnkv",
                                      "Ffffffffffffffff0000000000001234-1.cairnkv",
                                      "ffffffffffffffff0000000000001234-1.cairnkvx",
                                      "ffffffffffffffff0000000000001234-1",
                                      "ffffffffffffffff000000000000123",
                                      "ffffffffffffffff0000000000001234-1.cairnkv.tmp-1-2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(store_name_parse(bad[i], &got));
    (void)snprintf(tmp, sizeof tmp, "%s.tmp-77-1", text);
    assert_true(store_name_is_tmp(tmp));
    assert_false(store_name_is_tmp(text));
    assert_false(store_name_is_tmp("x.cairnkv.tmp-77-1"));
}

static void one_run(void **state)
{
    (void)state;
    rig f = rig_begin();
    rig_run *r = rig_whole(1, 0, 200);
    store_id id, other;
    store_info info;
    store_stats st;
    assert_false(rig_found(f.s, r, &id));
    rig_put_durable(f.s, r);
    assert_ok(rig_read_back(f.s, r));
    assert_true(rig_found(f.s, r, &id));
    assert_true(store_get_info(f.s, id, &info));
    assert_int_equal(info.n_block, 4);
    assert_int_equal(info.n_tok, 200);
    assert_int_equal(info.n_state, 1);
    assert_int_equal(info.state_pos[0], 200);
    for (int32_t i = 0; i < 4; i++) /* found by any of its blocks, under its own root alone */
        assert_int_equal(store_find(f.s, r->run.root, r->key[i], &other, 1), 1);
    assert_int_equal(store_find(f.s, r->key[0], r->key[1], &other, 1), 0);
    assert_false(store_get_info(f.s, id + 1, &info));
    assert_false(store_get_info(f.s, 0, &info));
    rig_put_durable(f.s, r); /* again: nothing is written */
    store_get_stats(f.s, &st);
    assert_int_equal(st.n_entry, 1);
    assert_int_equal(st.queued_bytes, 0);
    rig_free(r);
    rig_end(&f);
}

/* Wants that the entry cannot serve are misses that keep it. */
static void partial_wants(void **state)
{
    (void)state;
    rig f = rig_begin();
    const uint16_t here[RIG_GROUPS] = {0xffff, 0xfff8, 0};
    rig_run *r = rig_make(1, 0, 6 * KV_BLOCK, here, &(int32_t){100}, 1);
    uint8_t out[8192], *cell[RIG_MAX_CELLS] = {NULL};
    store_id id;
    rig_put_durable(f.s, r);
    assert_true(rig_found(f.s, r, &id));
    store_dest d = {.token = r->token, .n_tok = 2 * KV_BLOCK + 1, .block = cell};
    assert_ok(store_read(f.s, id, &d, NULL));
    cell[2 * RIG_GROUPS] = out;
    assert_ok(store_read(f.s, id, &d, NULL));
    assert_true(rig_is_filled(out, rig_block_bytes[0], rig_block_seed(r->key[2], 0)));
    d.n_tok--;
    assert_int_equal(store_read(f.s, id, &d, NULL), CAIRN_E_NOTFOUND); /* past the tokens named */
    d.n_tok = 6 * KV_BLOCK;
    cell[RIG_GROUPS + 1] = out;
    assert_int_equal(store_read(f.s, id, &d, NULL), CAIRN_E_NOTFOUND); /* absent */
    cell[RIG_GROUPS + 1] = NULL;
    d.state = out;
    d.state_pos = 101;
    assert_int_equal(store_read(f.s, id, &d, NULL), CAIRN_E_NOTFOUND);
    d.state_pos = 100;
    d.n_tok = 99;
    cell[2 * RIG_GROUPS] = NULL;
    assert_int_equal(store_read(f.s, id, &d, NULL), CAIRN_E_NOTFOUND); /* the state is past them */
    d.n_tok = 100;
    assert_ok(store_read(f.s, id, &d, NULL));
    r->token[50]++;
    assert_int_equal(store_read(f.s, id, &d, NULL), CAIRN_E_NOTFOUND); /* other tokens */
    r->token[50]--;
    assert_ok(store_read(f.s, id, &d, NULL));
    rig_free(r);
    rig_end(&f);
}

static void companion(void **state)
{
    (void)state;
    rig f = rig_begin();
    store_opts o = rig_opts(f.dir.path);
    rig_run *r = rig_whole(1, 0, 70);
    char draft[5000], got[5000];
    store_id id;
    rig_fill(draft, sizeof draft, 7);
    r->run.companion = (store_companion){77, draft, sizeof draft};
    rig_put_durable(f.s, r);
    store_dest d = {
        .token = r->token, .n_tok = 70, .companion = got, .companion_bytes = sizeof got};
    for (uint32_t codec = 76; codec < 79; codec++) { /* of another codec: the rest is there */
        o.companion_codec = codec;
        rig_reopen(&f, &o);
        assert_true(rig_found(f.s, r, &id));
        assert_int_equal(store_read(f.s, id, &d, NULL), codec == 77 ? CAIRN_OK : CAIRN_E_NOTFOUND);
        if (codec == 77) assert_memory_equal(draft, got, sizeof got);
        assert_ok(rig_read_back(f.s, r));
    }
    o.companion_codec = 77;
    rig_reopen(&f, &o);
    assert_true(rig_found(f.s, r, &id));
    d.companion_bytes--;
    assert_int_equal(store_read(f.s, id, &d, NULL), CAIRN_E_NOTFOUND);
    rig_free(r);
    rig_end(&f);
}

enum { ODD_GROUPS = 3, ODD_BLOCKS = 3, ODD_CELLS = ODD_GROUPS * ODD_BLOCKS, ODD_STATE = 900001 };
typedef struct odd {
    size_t n[ODD_CELLS];
    uint8_t *cell[ODD_CELLS], *got[ODD_CELLS], *state, *got_state;
    int n_cell;
} odd;

static odd odd_make(const store_opts *o)
{
    odd x = {.n_cell = ODD_BLOCKS * o->n_group,
             .state = test_malloc(ODD_STATE),
             .got_state = test_malloc(ODD_STATE)};
    rig_fill(x.state, ODD_STATE, 1000);
    for (int i = 0; i < x.n_cell; i++) {
        x.n[i] = o->block_bytes[i % o->n_group];
        x.cell[i] = test_malloc(x.n[i]);
        x.got[i] = test_malloc(x.n[i]);
        rig_fill(x.cell[i], x.n[i], (uint64_t)i);
    }
    return x;
}

static void odd_check_and_free(odd *x)
{
    assert_memory_equal(x->got_state, x->state, ODD_STATE);
    test_free(x->state);
    test_free(x->got_state);
    for (int i = 0; i < x->n_cell; i++) {
        assert_memory_equal(x->got[i], x->cell[i], x->n[i]);
        test_free(x->cell[i]);
        test_free(x->got[i]);
    }
}

/* Tensors of odd sizes about those of one read, and a model without blocks. */
static void odd_sizes(void **state)
{
    (void)state;
    static const size_t sizes[][ODD_GROUPS] = {{300001, 70000, 1},
                                               {262144, 4096, 4097},
                                               {262143, 262145, 4095},
                                               {1000003, 131072, 131073}};
    static const int32_t token[ODD_BLOCKS * KV_BLOCK] = {1, 2, 3};
    for (size_t k = 0; k <= sizeof sizes / sizeof *sizes; k++) {
        rig f = rig_begin();
        store_opts o = rig_opts(f.dir.path);
        store_flushed fl;
        store_id id;
        o.n_group = k ? ODD_GROUPS : 0;
        o.block_bytes = k ? sizes[k - 1] : NULL;
        o.state_bytes = ODD_STATE;
        rig_reopen(&f, &o);
        odd x = odd_make(&o);
        const store_state states[2] = {{100, x.got_state}, {101, x.state}};
        const store_run r = {.root = rig_root(),
                             .parent = rig_root(),
                             .n_block = ODD_BLOCKS,
                             .n_tok = ODD_BLOCKS * KV_BLOCK,
                             .token = token,
                             .block = (const uint8_t *const *)x.cell,
                             .state = states,
                             .n_state = 2};
        memset(x.got_state, 7, ODD_STATE);
        assert_ok(store_put(f.s, &r, NULL));
        store_flush(f.s, TEST_WAIT_MS, &fl);
        assert_int_equal(fl.durable, 1);
        const store_key first = store_block_key(r.root, token, KV_BLOCK);
        assert_int_equal(store_find(f.s, r.root, first, &id, 1), 1);
        const store_dest d = {.token = token,
                              .n_tok = r.n_tok,
                              .block = x.got,
                              .state = x.got_state,
                              .state_pos = 101};
        assert_ok(store_read(f.s, id, &d, NULL));
        odd_check_and_free(&x);
        rig_end(&f);
    }
}

static void flush_counts(void **state)
{
    (void)state;
    rig f = rig_begin();
    store_flushed fl;
    store_done d;
    rig_run *r[4] = {rig_whole(1, 0, 1024), rig_whole(1, 16, 1024), rig_whole(1, 40, 100),
                     rig_whole(2, 0, 64)};
    for (int i = 0; i < 4; i++) assert_ok(store_put(f.s, &r[i]->run, r[i]));
    assert_false(store_poll(f.s, &d)); /* not idle: nothing is written */
    store_flush(f.s, TEST_WAIT_MS, &fl);
    assert_int_equal(fl.durable, 4);
    assert_int_equal(fl.n_entry, 4);
    assert_int_equal(fl.longest, 2048); /* block 40 has no path to it */
    store_flush(f.s, 0, &fl);
    assert_int_equal(fl.durable, 0);
    for (int i = 0; i < 4; i++) { /* in their order */
        assert_true(store_poll(f.s, &d));
        assert_ptr_equal(d.user, r[i]);
        rig_free(r[i]);
    }
    rig_end(&f);
}

/* A deadline that passes: what is left is counted, and written later. */
static void late_flush(void **state)
{
    (void)state;
    rig f = rig_begin();
    store_flushed fl;
    rig_run *r[8];
    uint32_t durable = 0;
    for (int i = 0; i < 8; i++) {
        r[i] = rig_whole((uint64_t)i * 8, 0, 1024);
        assert_ok(store_put(f.s, &r[i]->run, r[i]));
    }
    store_flush(f.s, 0, &fl);
    assert_int_equal(fl.pending + fl.durable, 8);
    durable += fl.durable;
    store_flush(f.s, TEST_WAIT_MS, &fl);
    assert_int_equal(durable + fl.durable, 8);
    for (int i = 0; i < 8; i++) {
        assert_ok(rig_read_back(f.s, r[i]));
        rig_free(r[i]);
    }
    rig_end(&f);
}

static void caps(void **state)
{
    (void)state;
    rig f = rig_begin();
    store_opts o = rig_opts(f.dir.path);
    rig_run *r = rig_whole(0, 0, 1024), *b = rig_whole(0, 16, 1024);
    store_stats st;
    o.queue_bytes = 200000;
    rig_reopen(&f, &o);
    assert_int_equal(store_put(f.s, &r->run, r), CAIRN_E_LIMIT); /* can never be queued */
    o.queue_bytes = 400000;
    rig_reopen(&f, &o);
    assert_ok(store_put(f.s, &r->run, r));
    assert_int_equal(store_put(f.s, &b->run, b), CAIRN_E_BUSY);
    store_get_stats(f.s, &st);
    assert_true(st.queued_bytes > 200000 && st.queued_bytes <= 400000);
    store_flushed fl;
    store_flush(f.s, TEST_WAIT_MS, &fl);
    assert_int_equal(fl.durable, 1);
    assert_int_equal(fl.dropped, 1);
    assert_ok(store_put(f.s, &b->run, b)); /* there is room again */
    o = rig_opts(f.dir.path);
    o.max_bytes = 100000;
    rig_reopen(&f, &o); /* a lower cap holds from the start */
    store_flush(f.s, 1000, &fl);
    assert_int_equal(fl.n_entry, 0);
    assert_int_equal(store_put(f.s, &r->run, r), CAIRN_E_LIMIT);
    rig_free(r);
    rig_free(b);
    rig_end(&f);
}

/* The latest used stay, and a path goes from its end; the same after a restart. */
static void order_of_use(void **state)
{
    (void)state;
    for (int restart = 0; restart < 2; restart++) {
        rig f = rig_begin();
        store_opts o = rig_opts(f.dir.path);
        rig_run *chain[3] = {rig_whole(0, 0, 64), rig_whole(0, 1, 64), rig_whole(0, 2, 64)};
        rig_run *other[3] = {rig_whole(8, 0, 64), rig_whole(16, 0, 64), rig_whole(24, 0, 64)};
        store_stats st;
        for (int i = 0; i < 3; i++) rig_put_durable(f.s, chain[i]);
        for (int i = 0; i < 3; i++) rig_put_durable(f.s, other[i]);
        store_get_stats(f.s, &st);
        o.max_bytes = st.bytes;
        assert_ok(rig_read_back(f.s, chain[2])); /* and with it what precedes it */
        assert_ok(rig_read_back(f.s, other[0]));
        rig_reopen(&f, &o);
        if (!restart) { /* in one process the order is in memory */
            assert_ok(rig_read_back(f.s, chain[2]));
            assert_ok(rig_read_back(f.s, other[0]));
        }
        rig_run *more[3] = {rig_whole(32, 0, 64), rig_whole(40, 0, 64), rig_whole(48, 0, 64)};
        store_id id;
        rig_put_durable(f.s, more[0]);
        assert_false(rig_found(f.s, other[1], &id));
        rig_put_durable(f.s, more[1]);
        assert_false(rig_found(f.s, other[2], &id));
        rig_put_durable(f.s, more[2]);
        assert_false(rig_found(f.s, chain[2], &id));
        assert_ok(rig_read_back(f.s, chain[0]));
        assert_ok(rig_read_back(f.s, chain[1]));
        assert_ok(rig_read_back(f.s, other[0]));
        store_get_stats(f.s, &st);
        assert_int_equal(st.n_evicted, 3);
        assert_true(st.bytes <= o.max_bytes);
        for (int i = 0; i < 3; i++) {
            rig_free(chain[i]);
            rig_free(other[i]);
            rig_free(more[i]);
        }
        rig_end(&f);
    }
}

/* The clock goes forward by years, back, and to where a machine without a battery begins, while entries are written
   and read: they are given up in the order of use, in this process and in the next ones. */
static void clock_jumps(void **state)
{
    (void)state;
    enum { YEAR = 365 * 24 * 3600, N = 5 };
    const int64_t now_s = (int64_t)time(NULL);
    const int64_t jump[N] = {0, 30 * YEAR, -YEAR, 3600 - now_s, 10};
    rig f = rig_begin();
    store_opts o = rig_opts(f.dir.path);
    rig_run *r[N + 1], *last = rig_whole(8 * (N + 1), 0, 64);
    struct stat st;
    char path[RIG_PATH];
    store_id id;
    for (int i = 0; i < N; i++) {
        fake_time_shift(jump[i]);
        r[i] = rig_whole((uint64_t)(8 * i), 0, 64);
        rig_put_durable(f.s, r[i]);
    }
    rig_path(&f.dir, r[1], path);
    assert_true(stat(path, &st) == 0 && st.st_mtim.tv_sec > now_s + YEAR);
    assert_ok(rig_read_back(f.s, r[0])); /* so r[1] is the oldest */
    store_stats all;
    store_get_stats(f.s, &all);
    o.max_bytes = all.bytes;
    fake_time_shift(0);
    rig_path(&f.dir, r[N - 1], path); /* no clock's time at all */
    const struct timespec t = {(time_t)1 << 40, 0};
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){t, t}, 0), 0);
    for (int start = 0; start < 2;
         start++) { /* the second one finds times that the first one corrected */
        rig_reopen(&f, &o);
        for (int i = 1; i < N; i++) {
            rig_path(&f.dir, r[i], path);
            assert_true(stat(path, &st) == 0 && st.st_mtim.tv_sec <= now_s + 1000);
        }
    }
    r[N] = rig_whole(8 * N, 0, 64);
    rig_put_durable(f.s, r[N]);
    assert_false(rig_found(f.s, r[1], &id));
    fake_time_shift(-YEAR);
    rig_put_durable(f.s, last);
    assert_false(rig_found(f.s, r[2], &id));
    fake_time_shift(0);
    o.max_bytes = all.bytes / N * 2 + 4096;
    rig_reopen(&f, &o); /* the two that were written last stay */
    assert_true(rig_found(f.s, r[N], &id) && rig_found(f.s, last, &id));
    for (int i = 0; i < N; i++) assert_false(rig_found(f.s, r[i], &id));
    for (int i = 0; i <= N; i++) rig_free(r[i]);
    rig_free(last);
    rig_end(&f);
}

static cairn_status life(void *ctx)
{
    const rig_run *r = ctx;
    store *s = NULL;
    store_done d = {.result = STORE_FAILED};
    store_flushed f;
    store_id id;
    tmp_dir dir;
    assert_true(tmp_make(&dir));
    store_opts o = rig_opts(dir.path);
    o.retry_ms = 100000; /* a start that failed for lack of memory must not mend itself */
    cairn_status st = store_open(&o, &s, NULL);
    if (st == CAIRN_OK) {
        (void)store_scanned(s, TEST_WAIT_MS);
        st = store_put(s, &r->run, NULL);
        store_flush(s, TEST_WAIT_MS, &f);
        if (st != CAIRN_OK || !store_poll(s, &d) || d.result != STORE_DURABLE)
            st = CAIRN_E_NOMEM; /* the only fault there is here */
        else
            assert_true(rig_found(s, r, &id) && rig_read_back(s, r) == CAIRN_OK);
    }
    store_close(s);
    assert_true(tmp_drop(&dir));
    return st;
}

static void memory_may_fail(void **state)
{
    (void)state;
    rig_run *r = rig_whole(0, 0, 300);
    assert_true(fault_loop(life, r) > 10);
    rig_free(r);
}

/* A start without memory finds less, nothing wrong, and loses no file. */
static void memory_may_fail_at_a_start(void **state)
{
    (void)state;
    rig f = rig_begin();
    const store_opts o = rig_opts(f.dir.path);
    rig_run *r[3] = {rig_whole(0, 0, 300), rig_whole(8, 0, 300), rig_whole(16, 0, 300)};
    for (int i = 0; i < 3; i++) rig_put_durable(f.s, r[i]);
    store_close(f.s);
    for (uint64_t n = 1; n < 30; n++) {
        const uint64_t before = mem_used_all();
        f.s = NULL;
        mem_fail_nth(n);
        const cairn_status st = store_open(&o, &f.s, NULL);
        if (st == CAIRN_OK) (void)store_scanned(f.s, TEST_WAIT_MS);
        mem_fail_nth(0);
        for (int i = 0; st == CAIRN_OK && i < 3; i++) {
            const cairn_status got = rig_read_back(f.s, r[i]);
            assert_true(got == CAIRN_OK || got == CAIRN_E_NOTFOUND);
        }
        store_close(f.s);
        assert_int_equal(mem_used_all(), before);
    }
    f.s = NULL;
    rig_reopen(&f, &o);
    for (int i = 0; i < 3; i++) {
        assert_ok(rig_read_back(f.s, r[i]));
        rig_free(r[i]);
    }
    rig_end(&f);
}

static void refusals(void **state)
{
    (void)state;
    store *s = NULL;
    cairn_diag dg;
    store_opts o = rig_opts("/nowhere");
    o.n_group = STORE_MAX_GROUPS + 1;
    assert_int_equal(store_open(&o, &s, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "33 groups");
    o.n_group = 1;
    o.block_bytes = &(size_t){SIZE_MAX};
    assert_int_equal(store_open(&o, &s, &dg), CAIRN_E_LIMIT);
    assert_null(s);
    store_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(names),
        cmocka_unit_test(one_run),
        cmocka_unit_test(partial_wants),
        cmocka_unit_test(companion),
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(flush_counts),
        cmocka_unit_test(late_flush),
        cmocka_unit_test(caps),
        cmocka_unit_test(order_of_use),
        cmocka_unit_test(clock_jumps),
        cmocka_unit_test(memory_may_fail),
        cmocka_unit_test(memory_may_fail_at_a_start),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
