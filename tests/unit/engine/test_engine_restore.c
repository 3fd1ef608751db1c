/* Prompts whose beginnings lie in files, on a disk that is slow, fails or is waited for: the others go on. */
#include "test.h"
#include "tmp.h"

#include <dirent.h>
#include <unistd.h>

#include "cache/cache_disk.h"
#include "engine/engine_priv.h"
#include "sim_model.h"
#include "watch.h"

enum { LONG = 2500, OTHER = 90 };

static sim_model sim;
static tmp_dir dir;
static int32_t ids[LONG + 1], other[OTHER];
static uint64_t max_bytes; /* of files; 0: more than there are */

/* A reader that stands still before each entry while the gate is shut. */
typedef struct slow_disk {
    mutex mu;
    cond news;
    bool shut, at_gate;
} slow_disk;
static slow_disk slow;

static void pass(void *ctx)
{
    slow_disk *g = ctx;
    mutex_lock(&g->mu);
    g->at_gate = true;
    cond_broadcast(&g->news);
    while (g->shut) cond_wait(&g->news, &g->mu);
    g->at_gate = false;
    mutex_unlock(&g->mu);
}

static void set_gate(bool shut)
{
    mutex_lock(&slow.mu);
    slow.shut = shut;
    cond_broadcast(&slow.news);
    mutex_unlock(&slow.mu);
}

static void await_reader(void)
{
    mutex_lock(&slow.mu);
    while (!slow.at_gate) cond_wait(&slow.news, &slow.mu);
    mutex_unlock(&slow.mu);
}

static void add_disk(engine *e, void (*arrived)(void *), void *ctx)
{
    cairn_diag dg = {0};
    const cache_disk_opts o = {.dir = dir.path,
                               .fingerprint = {3},
                               .scheme = "test",
                               .max_bytes = max_bytes,
                               .arrived = arrived,
                               .ctx = ctx};
    cache *c = stepper_cache(e->stepper);
    assert_ok(cache_add_disk(c, &o, &dg));
    assert_true(store_scanned(c->disk->store, TEST_WAIT_MS));
    c->disk->before_read = pass;
    c->disk->before_ctx = &slow;
}

static engine *open_engine(int32_t max_seqs)
{
    static const engine_hooks hooks = {.manual = true};
    const cairn_engine_opts o = {.max_seqs = max_seqs, .max_step_rows = 200};
    engine *e = NULL;
    assert_ok(engine_open(&sim.m, NULL, &o, &hooks, &e, NULL));
    add_disk(e, NULL, NULL);
    return e;
}

static void submit(engine *e, watch *w, const int32_t *prompt, int32_t n)
{
    const cairn_request r = watch_request(prompt, n, 8);
    memset(w, 0, sizeof *w);
    assert_ok(engine_submit(e, &r, watch_event, w, &w->id, NULL));
}

static void answered(const watch *w, const int32_t *prompt, int32_t n)
{
    int32_t want[8];
    sim_greedy(&sim, prompt, n, want, 8);
    assert_int_equal(w->finish, CAIRN_FINISH_LENGTH);
    assert_int_equal(w->n, 8);
    assert_memory_equal(w->ids, want, sizeof want);
}

static void finish_all(engine *e)
{
    while (engine_turn(e)) (void)usleep(20);
}

/* Leaves the long prompt's rows in files. */
static void begin(sim_layers kind)
{
    watch w;
    store_flushed f;
    assert_true(tmp_make(&dir));
    sim_model_open(&sim, 17, SIM_SOUND);
    sim_model_layers(&sim, kind);
    sim_prompt(17, ids, LONG + 1);
    sim_prompt(18, other, OTHER);
    set_gate(false);
    engine *e = open_engine(1);
    submit(e, &w, ids, LONG);
    finish_all(e);
    cache_flush(stepper_cache(e->stepper), TEST_WAIT_MS, &f);
    assert_int_equal(f.pending + f.failed + f.dropped, 0);
    assert_int_equal(f.n_entry,
                     (LONG + STORE_MAX_BLOCKS * KV_BLOCK - 1) / (STORE_MAX_BLOCKS * KV_BLOCK));
    engine_close(e);
}

static void end(engine *e)
{
    engine_close(e);
    sim_model_close(&sim);
    assert_true(tmp_drop(&dir));
}

static void others_go_on(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        watch slow_one, quick;
        begin(kind);
        engine *e = open_engine(2);
        set_gate(true);
        submit(e, &slow_one, ids, LONG);
        assert_true(engine_turn(e));
        await_reader();
        submit(e, &quick, other, OTHER);
        while (!quick.n_done_events) assert_true(engine_turn(e));
        answered(&quick, other, OTHER);
        assert_int_equal(slow_one.n_done_events + slow_one.n + slow_one.n_progress, 0);
        set_gate(false);
        finish_all(e);
        answered(&slow_one, ids, LONG);
        assert_in_range(slow_one.n_cached, 2000, LONG - 1);
        end(e);
    }
}

/* The client is told at once; the room is there for the next one as soon as nobody reads into it. */
static void cancelled(void **state)
{
    (void)state;
    watch w, next;
    begin(SIM_ALL_KINDS);
    engine *e = open_engine(1);
    cache *c = stepper_cache(e->stepper);
    set_gate(true);
    submit(e, &w, ids, LONG);
    assert_true(engine_turn(e));
    await_reader();
    engine_cancel(e, w.id);
    submit(e, &next, ids, LONG);
    assert_true(engine_turn(e));
    assert_int_equal(w.finish, CAIRN_FINISH_CANCELLED);
    assert_int_equal(w.n_done_events, 1);
    assert_true(engine_turn(e)); /* it waits in the queue */
    assert_true(cache_reserved(c) > 0);
    set_gate(false);
    finish_all(e);
    answered(&next, ids, LONG);
    assert_true(next.n_cached > 2000);
    assert_int_equal(cache_reserved(c), 0);
    set_gate(true); /* closing waits for no answer of the disk's but for the read that runs */
    cache_forget(c);
    submit(e, &w, ids, LONG);
    assert_true(engine_turn(e));
    await_reader();
    set_gate(false);
    end(e);
    assert_int_equal(w.finish, CAIRN_FINISH_CANCELLED);
}

/* Other bytes in the files whose first block is the path's 17th. */
static void damage_second_run(void)
{
    char path[600];
    const int n = snprintf(path, sizeof path, "%s/", dir.path);
    for (int i = 0; i < 16; i++) (void)snprintf(path + n + 2 * i, 3, "%02x", i ? 0 : 3);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *at; (at = readdir(d));) {
        char name[900];
        int32_t first;
        if (at->d_type != DT_REG) continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, at->d_name);
        FILE *f = fopen(name, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, 112, SEEK_SET), 0); /* index of its first block */
        assert_int_equal(fread(&first, sizeof first, 1, f), 1);
        if (first == 16) {
            assert_int_equal(fseek(f, 4096, SEEK_SET), 0); /* the first tensor */
            assert_int_equal(fwrite(&first, sizeof first, 1, f), 1);
        }
        (void)fclose(f);
    }
    (void)closedir(d);
}

/* What was read before the damage is good; the rest is computed. */
static void damaged(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        watch w;
        begin(kind);
        damage_second_run();
        engine *e = open_engine(1);
        submit(e, &w, ids, LONG);
        finish_all(e);
        answered(&w, ids, LONG);
        if (kind == SIM_FULL) assert_int_equal(w.n_cached, 1024);
        submit(e, &w, ids, LONG);
        finish_all(e);
        answered(&w, ids, LONG);
        end(e);
    }
}

static int32_t cached_of_long(engine *e)
{
    watch w;
    submit(e, &w, ids, LONG);
    finish_all(e);
    answered(&w, ids, LONG);
    return w.n_cached;
}

/* A prompt larger than all files may be keeps its beginning there, and a flush says that it does not keep all. */
static void beginning_stays(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        store_stats st;
        store_flushed f;
        begin(kind);
        engine *e = open_engine(1);
        assert_true(cache_disk_stats(stepper_cache(e->stepper), &st));
        engine_close(e);
        assert_true(tmp_drop(&dir) && tmp_make(&dir));
        max_bytes = st.bytes - 1;
        e = open_engine(1);
        assert_int_equal(cached_of_long(e), 0);
        cache_flush(stepper_cache(e->stepper), TEST_WAIT_MS, &f);
        assert_int_equal(f.pending + f.failed, 0);
        assert_true(f.dropped > 0);
        assert_int_equal(f.longest, 2048);
        engine_close(e);
        e = open_engine(1);
        if (kind != SIM_ALL_KINDS) assert_int_equal(cached_of_long(e), 2048);
        max_bytes = 0;
        end(e);
    }
}

/* What was durable and is gone is written again by the next flush, which does not say otherwise before. */
static void gone_is_written_again(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        store_flushed f;
        begin(kind);
        engine *e = open_engine(1);
        assert_true(cached_of_long(e) > 2000);
        assert_true(tmp_drop(&dir)); /* under the engine */
        cache_flush(stepper_cache(e->stepper), TEST_WAIT_MS, &f);
        assert_int_equal(f.pending + f.failed + f.dropped, 0);
        if (kind != SIM_WINDOWED) assert_true(f.longest >= LONG);
        engine_close(e);
        e = open_engine(1);
        assert_true(cached_of_long(e) > 2000);
        end(e);
    }
}

typedef struct sleeper {
    engine *e;
} sleeper;

static void wake_engine(void *ctx)
{
    engine *e = ((sleeper *)ctx)->e;
    mutex_lock(&e->mu);
    e->arrived = true;
    cond_signal(&e->news);
    mutex_unlock(&e->mu);
}

/* An engine with a thread of its own sleeps until rows arrive, and wakes for them and for a cancel. */
static void sleeps(void **state)
{
    (void)state;
    static watch w[2];
    static sleeper s;
    begin(SIM_FULL);
    const cairn_engine_opts o = {.max_seqs = 1, .max_step_rows = 200};
    assert_ok(engine_open(&sim.m, NULL, &o, NULL, &s.e, NULL));
    add_disk(s.e, wake_engine, &s);
    set_gate(true);
    submit(s.e, &w[0], ids, LONG);
    await_reader();
    engine_cancel(s.e, w[0].id);
    submit(s.e, &w[1], ids, LONG);
    for (cairn_engine_stats now = {.n_cancelled = 0}; now.n_cancelled == 0; (void)usleep(1000)) {
        now.struct_size = sizeof now;
        engine_get_stats(s.e, &now);
    }
    set_gate(false);
    for (cairn_engine_stats now = {.n_active = 1}; now.n_active + now.n_queued;
         (void)usleep(1000)) {
        now.struct_size = sizeof now;
        engine_get_stats(s.e, &now);
    }
    engine *e = s.e;
    end(e);
    assert_int_equal(w[0].finish, CAIRN_FINISH_CANCELLED);
    assert_int_equal(w[1].n, 8);
    assert_true(w[1].n_cached > 2000);
}

int main(void)
{
    mutex_init(&slow.mu);
    cond_init(&slow.news);
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_go_on),
                                       cmocka_unit_test(cancelled),
                                       cmocka_unit_test(damaged),
                                       cmocka_unit_test(beginning_stays),
                                       cmocka_unit_test(gone_is_written_again),
                                       cmocka_unit_test(sleeps)};
    return cmocka_run_group_tests_name("engine_restore", tests, NULL, NULL);
}
