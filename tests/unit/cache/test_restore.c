/* Kept prefixes on disk: random programs (prefix_world.h) with flushes, restarts and damaged files.  They wait for each
   file to be durable, which is nine tenths of the time on a disk: so the folders lie in memory, where there is some to
   be had.  That files are durable when the store says so is test_store.c's to prove, and test_crash.py's. */
#include "prefix_world.h"
#include "tmp.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/rng.h"
#include "cache/cache_disk.h"

static void add_disk(world *w, const tmp_dir *dir)
{
    cairn_diag dg;
    const cache_disk_opts o = {
        .dir = dir->path, .fingerprint = {7}, .numerics = 1, .scheme = "test"};
    assert_ok(cache_add_disk(w->c, &o, &dg));
    assert_true(store_scanned(w->c->disk->store, TEST_WAIT_MS));
}

static void restart(world *w, const tmp_dir *dir)
{
    world_close_all(w);
    world_count(w);
    cache_free(w->c);
    world_open_cache(w);
    add_disk(w, dir);
}

static void flush(world *w)
{
    store_flushed f;
    cache_flush(w->c, TEST_WAIT_MS, &f);
    assert_int_equal(f.pending, 0);
    assert_int_equal(f.failed, 0);
}

/* Whatever was closed with a mark is there after a restart: up to its last row where a state was kept; else, as
   others may have gone on in its last block, up to that. */
static void all_is_back(world *w)
{
    naive *q = &w->seq[0];
    for (int32_t k = 0; k < w->n_past; k++) {
        const int32_t n = w->past[k].n;
        if (n == 0 || n + 1 > CTX) continue;
        q->ns = w->past[k].ns;
        memcpy(q->ids, w->past[k].ids, sizeof q->ids);
        q->ids[n] ^= 1; /* nobody went on so */
        assert_true(world_open(w, q, n + 1, n + 1));
        assert_true(q->len == n || (!w->c->state_bytes && q->len >= n / KV_BLOCK * KV_BLOCK));
        world_verify(w);
        world_count(w);
        world_close_all(w);
    }
}

static void run(const kind *k, uint64_t seed, uint64_t prefix_bytes)
{
    tmp_dir dir;
    assert_true(tmp_make_quick(&dir));
    world *w = world_new(k, seed, CTX, SEQS, prefix_bytes);
    add_disk(w, &dir);
    for (uint64_t i = 0; i < 200; i++) {
        world_do(w, i, false);
        world_verify(w);
        const uint64_t u = rng_u64(seed, 99, i) % 100;
        if (u < 4) flush(w);
        if (u < 2) restart(w, &dir);
        if (u > 70) (void)cache_write_behind(w->c, u > 75);
        if (i % 16 == 0) world_count(w);
    }
    world_close_all(w);
    flush(w);
    restart(w, &dir);
    w->hits = 0;
    if (prefix_bytes == 1 << 26) {
        all_is_back(w);
        assert_true(w->n_past == 0 || w->hits > 0);
    }
    world_free(w);
    assert_true(tmp_drop(&dir));
}

static void random_programs(void **state)
{
    (void)state;
    for (int k = 0; k < N_KIND; k++)
        for (uint64_t seed = 1; seed <= (test_part() > 1 ? 1 : 2); seed++) {
            run(&world_kinds[k], seed, 1 << 26);
            run(&world_kinds[k], seed + 100, 1 << 14);
        }
}

/* A byte of every file is another one: less is known, and nothing is wrong. */
static void damage(const char *folder, uint64_t seed)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_type == DT_DIR && e->d_name[0] != '.') damage(path, seed);
        if (e->d_type != DT_REG) continue;
        FILE *f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, 0, SEEK_END), 0);
        const long size = ftell(f),
                   at = (long)(rng_u64(seed, 5, (uint64_t)size) % (uint64_t)(size ? size : 1));
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        const int c = fgetc(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        (void)fputc(c ^ 4, f);
        (void)fclose(f);
    }
    (void)closedir(d);
}

static void damaged_files(void **state)
{
    (void)state;
    for (int k = 0; k < N_KIND; k++)
        for (uint64_t seed = 1; seed <= (test_part() > 1 ? 1 : 2); seed++) {
            tmp_dir dir;
            assert_true(tmp_make_quick(&dir));
            world *w = world_new(&world_kinds[k], seed, CTX, SEQS, 1 << 26);
            add_disk(w, &dir);
            for (uint64_t i = 0; i < 150; i++) {
                world_do(w, i, false);
                if (i % 50 != 49) continue;
                world_close_all(w);
                flush(w);
                damage(dir.path, seed + i);
                restart(w, &dir);
            }
            for (uint64_t i = 150; i < 300; i++) {
                world_do(w, i, false);
                world_verify(w);
                world_count(w);
            }
            world_close_all(w);
            world_free(w);
            assert_true(tmp_drop(&dir));
        }
}

/* What a cache says that it takes is what the allocator counts: but for the store's path, and for runs that are
   queued, of which there are none yet. */
static void counts_its_memory(void **state)
{
    (void)state;
    enum { STAGES = 2, PATH_MOST = 512 };
    for (int k = 0; k < N_KIND; k++)
        for (uint64_t room = 1; room <= 1 << 20; room <<= 20) {
            tmp_dir dir;
            cairn_diag dg;
            uint64_t plain, all;
            assert_true(tmp_make_quick(&dir));
            world *w = world_new(&world_kinds[k], 1, CTX, SEQS, room);
            cache_free(w->c);
            const uint64_t before = mem_used(MEM_CACHE);
            assert_ok(cache_overhead(&w->k->spec, &w->opts, false, &plain, &dg));
            assert_ok(cache_overhead(&w->k->spec, &w->opts, true, &all, &dg));
            assert_int_equal(mem_used(MEM_CACHE), before);
            world_open_cache(w);
            assert_int_equal(mem_used(MEM_CACHE) - before, cache_total(w->c) + plain);
            add_disk(w, &dir);
            all -= STAGES * store_item_bytes(STORE_MAX_BLOCKS * w->c->n_group);
            const uint64_t now = mem_used(MEM_CACHE) - before, said = cache_total(w->c) + all;
            assert_in_range(now - said, 1, PATH_MOST);
            world_free(w);
            assert_true(tmp_drop(&dir));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs),
                                       cmocka_unit_test(damaged_files),
                                       cmocka_unit_test(counts_its_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
