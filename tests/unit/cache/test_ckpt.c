/* Checkpoints: what a key finds, who may write, what damaged and left-over files come to. */
#include "test.h"
#include "tmp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cache/ckpt_priv.h"

enum { VOCAB = 1000, MOST = 100, FLUSH_MS = 10000 };

static tmp_dir dir;
static uint32_t n_warn;
static int32_t ids[MOST];

static void count_warnings(void *ctx, log_level level, const char *event, const char *line)
{
    (void)ctx, (void)event, (void)line;
    n_warn += level == LOG_WARN;
}

static int begin(void **state)
{
    (void)state;
    n_warn = 0;
    log_set(LOG_WARN, count_warnings, NULL);
    for (int32_t i = 0; i < MOST; i++) ids[i] = (i * 37 + 5) % VOCAB;
    return tmp_make(&dir) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    log_set(LOG_WARN, NULL, NULL);
    return tmp_drop(&dir) ? 0 : -1;
}

static ckpt_opts opts(void)
{
    return (ckpt_opts){
        .dir = dir.path, .fingerprint = "a model's print", .numerics = 2, .vocab = VOCAB};
}

static ckpt *open_with(ckpt_opts o)
{
    ckpt *c = NULL;
    assert_ok(ckpt_open(&o, &c, NULL));
    return c;
}

static ckpt_ask ask(uint64_t key)
{
    return (ckpt_ask){
        .key = {key, 9}, .n_prompt = 7, .max_new = MOST, .seed = 5, .seed_given = true};
}

static ckpt_stats stats_of(ckpt *c)
{
    ckpt_stats s;
    ckpt_get_stats(c, &s);
    return s;
}

static ckpt_flushed flush(ckpt *c)
{
    ckpt_flushed f;
    ckpt_flush(c, FLUSH_MS, &f);
    assert_int_equal(f.pending, 0);
    return f;
}

#define PRINT "61206d6f64656c2773207072696e7400" /* the fingerprint's digits */

static const char *file_of(uint64_t key)
{
    char name[CKPT_NAME_BYTES], path[100];
    ckpt_name_text((hash128){key, 9}, name);
    (void)snprintf(path, sizeof path, PRINT "/checkpoints/%s", name);
    return tmp_path(&dir, path);
}

/* An attempt that found n ids, all right. */
static ckpt_attempt *expect(ckpt *c, const ckpt_ask *q, int32_t n)
{
    int32_t found[MOST];
    ckpt_found f;
    ckpt_attempt *a = ckpt_begin(c, q, found, &f);
    assert_non_null(a);
    assert_int_equal(f.n_new, n);
    assert_memory_equal(found, ids, (size_t)n * sizeof *found);
    return a;
}

/* A file of n ids, by an attempt that never ended. */
static void leave_file(uint64_t key, int32_t n)
{
    ckpt *c = open_with(opts());
    const ckpt_ask q = ask(key);
    ckpt_attempt *a = expect(c, &q, 0);
    ckpt_save(c, a, ids, n, NULL);
    assert_int_equal(flush(c).durable, 1);
    ckpt_close(c);
}

static void found_again(void **state)
{
    (void)state;
    leave_file(1, 20);
    struct stat st;
    assert_int_equal(stat(file_of(1), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_size, CKPT_HEAD + 4 * 20);
    ckpt *c = open_with(opts());
    assert_int_equal(stats_of(c).n_file, 1);
    assert_int_equal(stats_of(c).bytes, CKPT_HEAD + 4 * 20);
    const ckpt_ask q = ask(1), other = ask(2);
    ckpt_end(c, expect(c, &other, 0), false);
    ckpt_attempt *a = expect(c, &q, 20);
    ckpt_save(c, a, ids, 33, NULL);
    ckpt_save(c, a, ids, 34, NULL);
    ckpt_end(c, a, false); /* cancelled: what was saved stays, and is still written */
    (void)flush(c);
    ckpt_close(c);
    c = open_with(opts());
    a = expect(c, &q, 34);
    ckpt_end(c, a, true);
    ckpt_end(c, NULL, true);
    ckpt_end(c, expect(c, &q, 0), false);
    assert_int_equal(flush(c).cleanups, 0);
    assert_int_equal(stat(file_of(1), &st), -1);
    assert_int_equal(stats_of(c).bytes, 0);
    ckpt_close(c);
    assert_int_equal(n_warn, 0);
}

/* A seed that nobody gave comes with the ids; one that was given is part of what must agree. */
static void seeds(void **state)
{
    (void)state;
    ckpt_ask q = ask(1);
    int32_t found[MOST];
    ckpt_found f;
    q.seed_given = false;
    ckpt *c = open_with(opts());
    ckpt_save(c, ckpt_begin(c, &q, found, &f), ids, 10, NULL);
    (void)flush(c);
    ckpt_close(c);
    c = open_with(opts());
    q.seed = 77;
    ckpt_end(c, ckpt_begin(c, &q, found, &f), false);
    assert_int_equal(f.n_new, 10);
    assert_int_equal(f.seed, 5);
    q.seed_given = true;
    ckpt_end(c, expect(c, &q, 0), false); /* inconsistent: as good as damaged */
    assert_int_equal(stats_of(c).n_corrupt, 1);
    assert_int_equal(n_warn, 1);
    (void)flush(c);
    assert_false(file_exists(file_of(1)));
    ckpt_close(c);
}

/* The newest attempt owns the key: what a former one saves or completes is nothing to it. */
static void attempts(void **state)
{
    (void)state;
    ckpt *c = open_with(opts());
    ckpt_ask q = ask(1);
    ckpt_attempt *a = expect(c, &q, 0);
    ckpt_save(c, a, ids, 10, NULL);
    ckpt_attempt *b = expect(c, &q, 10); /* the seed was given: it is the same answer */
    ckpt_save(c, a, ids, 30, NULL);
    assert_int_equal(flush(c).durable, 1);
    ckpt_end(c, a, true);
    assert_true(file_exists(file_of(1)));
    ckpt_save(c, b, ids, 11, NULL);
    ckpt_end(c, b, false);
    ckpt_end(c, expect(c, &q, 11), true); /* from memory, before it was written */
    (void)flush(c);
    assert_false(file_exists(file_of(1)));

    q.seed_given = false; /* whoever asks beside one that runs wants another answer */
    int32_t found[MOST];
    ckpt_found f;
    a = ckpt_begin(c, &q, found, &f);
    ckpt_save(c, a, ids, 10, NULL);
    (void)flush(c);
    b = ckpt_begin(c, &q, found, &f);
    assert_int_equal(f.n_new, 0);
    ckpt_end(c, a, false);
    ckpt_end(c, b, false);
    ckpt_end(c, ckpt_begin(c, &q, found, &f), false);
    assert_int_equal(f.n_new, 10);
    ckpt_close(c);
}

typedef struct gate { /* holds the writer before a file gets its name */
    mutex mu;
    cond c;
    bool shut, waits;
} gate;

static void at_gate(void *ctx)
{
    gate *g = ctx;
    mutex_lock(&g->mu);
    g->waits = true;
    cond_broadcast(&g->c);
    while (g->shut) cond_wait(&g->c, &g->mu);
    g->waits = false;
    mutex_unlock(&g->mu);
}

static void wait_at(gate *g)
{
    mutex_lock(&g->mu);
    while (!g->waits) cond_wait(&g->c, &g->mu);
    mutex_unlock(&g->mu);
}

static void set_gate(gate *g, bool shut)
{
    mutex_lock(&g->mu);
    g->shut = shut;
    cond_broadcast(&g->c);
    mutex_unlock(&g->mu);
}

/* A write under way lands after the answer is complete, and after a newer attempt's too. */
static void lands_late(void **state)
{
    (void)state;
    for (int newer = 0; newer < 3; newer++) {
        gate g = {.shut = true};
        mutex_init(&g.mu);
        cond_init(&g.c);
        ckpt_opts o = opts();
        o.landing = at_gate;
        o.ctx = &g;
        ckpt *c = open_with(o);
        const ckpt_ask q = ask(1);
        ckpt_attempt *a = expect(c, &q, 0), *b = NULL;
        ckpt_flushed f;
        ckpt_save(c, a, ids, 10, NULL);
        wait_at(&g);
        ckpt_flush(c, 0, &f);
        assert_int_equal(f.pending, 1);
        if (newer == 1) b = expect(c, &q, 10);
        ckpt_end(c, a, true);
        if (newer == 1) ckpt_end(c, b, true);
        if (newer == 2) b = expect(c, &q, 0); /* the same request once more: its file must stay */
        if (newer == 2) ckpt_save(c, b, ids, 12, NULL);
        ckpt_flush(c, 0, &f);
        assert_true(f.pending >= 1 && f.cleanups == 0); /* not tried yet */
        set_gate(&g, false);
        assert_int_equal(flush(c).cleanups, 0);
        assert_int_equal(file_exists(file_of(1)), newer == 2);
        assert_int_equal(stats_of(c).n_file, newer == 2);
        if (b && newer == 2) ckpt_end(c, b, true);
        (void)flush(c);
        assert_false(file_exists(file_of(1)));
        ckpt_close(c);
        cond_deinit(&g.c);
        mutex_deinit(&g.mu);
    }
}

/* A file that cannot be removed is told by every flush until a later barrier removes it; that of a newer
   attempt never. */
static void failed_cleanup(void **state)
{
    (void)state;
    ckpt *c = open_with(opts());
    const ckpt_ask q = ask(1), other = ask(2);
    ckpt_attempt *a = expect(c, &q, 0);
    ckpt_save(c, a, ids, 10, NULL);
    (void)flush(c);
    const char *path = file_of(1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* what unlink cannot take away */
    ckpt_end(c, a, true);
    assert_int_equal(flush(c).cleanups, 1);
    ckpt_end(c, expect(c, &q, 0), false); /* the key is not eligible */
    assert_int_equal(flush(c).cleanups, 1);
    assert_int_equal(rmdir(path), 0);
    a = expect(c, &other, 0);
    ckpt_save(c, a, ids, 10, NULL);
    (void)flush(c);
    const uint64_t before = stats_of(c).barrier;
    ckpt_end(c, a, true); /* a later barrier clears the older failure */
    assert_int_equal(stats_of(c).barrier, before + 1);
    ckpt_flushed f;
    do ckpt_flush(c, 0, &f);
    while (f.cleanups);
    ckpt_close(c);
}

/* What cannot be written is said once, and tried again. */
static void no_folder(void **state)
{
    (void)state;
    const int fd = open(tmp_path(&dir, PRINT), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    ckpt *c = open_with(opts());
    const ckpt_ask q = ask(1);
    ckpt_attempt *a = expect(c, &q, 0);
    for (int32_t n = 1; n < 5; n++) {
        ckpt_save(c, a, ids, n, NULL);
        const ckpt_flushed f = flush(c);
        assert_int_equal(f.failed, 1);
        assert_int_equal(f.durable, 0);
    }
    assert_int_equal(n_warn, 1);
    assert_true(stats_of(c).n_failed >= 4);
    assert_int_equal(unlink(tmp_path(&dir, PRINT)), 0);
    assert_int_equal(flush(c).durable, 1);
    ckpt_close(c);
    c = open_with(opts());
    ckpt_end(c, expect(c, &q, 4), false);
    ckpt_close(c);
}

static buf read_file(const char *path)
{
    buf b;
    buf_init(&b, MEM_MISC);
    assert_ok(file_read(path, 1 << 20, &b, NULL));
    return b;
}

static void write_file(const char *path, const char *p, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, p, n) == (ssize_t)n && close(fd) == 0);
}

/* A bit turned, bytes cut off: a miss, and the file goes. */
static void damaged(void **state)
{
    (void)state;
    char path[400];
    leave_file(1, 6);
    (void)snprintf(path, sizeof path, "%s", file_of(1));
    buf whole = read_file(path);
    const ckpt_ask q = ask(1);
    for (size_t i = 0; i < whole.len * 2; i += 7) {
        const bool cut = i >= whole.len;
        const size_t n = cut ? i - whole.len : whole.len;
        if (!cut) whole.ptr[i] ^= (char)(1 << i % 8);
        write_file(path, whole.ptr, n);
        if (!cut) whole.ptr[i] ^= (char)(1 << i % 8);
        ckpt *c = open_with(opts());
        ckpt_end(c, expect(c, &q, 0), false);
        assert_int_equal(stats_of(c).n_corrupt, 1);
        (void)flush(c);
        assert_false(file_exists(path));
        ckpt_close(c);
    }
    write_file(path, whole.ptr, whole.len);
    ckpt *c = open_with(opts());
    ckpt_end(c, expect(c, &q, 6), false);
    ckpt_close(c);
    buf_deinit(&whole);
}

/* Whole files of others are none of a request's, and age as ours do. */
static void foreign(void **state)
{
    (void)state;
    const ckpt_ask q = ask(1);
    leave_file(1, 6);
    ckpt_opts o[3] = {opts(), opts(), opts()};
    o[0].numerics = 3;
    o[1].sampler = 1;
    o[2].vocab = 100; /* not foreign: an id that is none is damage */
    for (int i = 0; i < 3; i++) {
        ckpt *c = open_with(o[i]);
        ckpt_end(c, expect(c, &q, 0), false);
        assert_int_equal(stats_of(c).n_foreign, i < 2);
        assert_int_equal(stats_of(c).n_corrupt, i == 2);
        (void)flush(c);
        assert_int_equal(file_exists(file_of(1)), i < 2);
        ckpt_close(c);
    }
}

/* The state of a sampler that does not follow from ids. */
static void sampler_state(void **state)
{
    (void)state;
    ckpt_opts o = opts();
    o.sampler = 4;
    const ckpt_sampler s = {.version = 4, .n_bytes = 3, .bytes = "xyz"};
    const ckpt_ask q = ask(1);
    int32_t found[MOST];
    ckpt_found f;
    ckpt *c = open_with(o);
    ckpt_save(c, expect(c, &q, 0), ids, 6, &s);
    (void)flush(c);
    ckpt_close(c);
    c = open_with(o);
    ckpt_end(c, ckpt_begin(c, &q, found, &f), false);
    assert_int_equal(f.n_new, 6);
    assert_memory_equal(&f.sampler, &s, sizeof s);
    ckpt_close(c);
}

/* The oldest go, by count, bytes and age; other names stay, what a dead writer left does not. */
static void limits(void **state)
{
    (void)state;
    char other[400], tmp[500];
    for (uint64_t k = 1; k <= 5; k++) leave_file(k, 10);
    for (int64_t k = 1; k <= 5; k++) {
        const struct timespec t = {clock_unix_s() - 100 * (6 - k), 0};
        assert_int_equal(utimensat(AT_FDCWD, file_of((uint64_t)k), (struct timespec[]){t, t}, 0),
                         0);
    }
    (void)snprintf(other, sizeof other, "%s-not", file_of(1));
    write_file(other, "x", 1);
    (void)snprintf(tmp, sizeof tmp, "%s.tmp-1-2", file_of(1));
    write_file(tmp, "x", 1);
    ckpt_opts o = opts();
    o.max_files = 4;
    o.max_age_s = 350;
    ckpt *c = open_with(o); /* 1 and 2 are too old */
    assert_int_equal(stats_of(c).n_file, 3);
    for (uint64_t k = 6; k <= 8; k++) {
        const ckpt_ask q = ask(k);
        ckpt_save(c, expect(c, &q, 0), ids, 10, NULL);
        (void)flush(c);
    }
    assert_int_equal(stats_of(c).n_file, 4);
    for (uint64_t k = 1; k <= 8; k++) assert_int_equal(file_exists(file_of(k)), k >= 5);
    ckpt_close(c);
    o.max_bytes = 2 * (CKPT_HEAD + 40);
    c = open_with(o);
    assert_int_equal(stats_of(c).n_file, 2);
    assert_int_equal(stats_of(c).bytes, o.max_bytes);
    ckpt_close(c);
    assert_true(file_exists(other) && !file_exists(tmp));
    assert_int_equal(n_warn, 0);
}

/* Answers how many ids it leaves in the file; each life adds one to what it found. */
static int32_t one_life(int32_t n_known)
{
    const ckpt_opts o = opts();
    ckpt *c = NULL;
    ckpt_flushed f;
    ckpt_found found;
    int32_t got[MOST];
    const ckpt_ask q = ask(1);
    if (ckpt_open(&o, &c, NULL) != CAIRN_OK) return n_known;
    ckpt_attempt *a = ckpt_begin(c, &q, got, &found);
    assert_true(found.n_new == 0 || found.n_new == n_known);
    assert_memory_equal(got, ids, (size_t)found.n_new * sizeof *got);
    if (a) ckpt_save(c, a, ids, found.n_new + 1, NULL);
    ckpt_flush(c, FLUSH_MS, &f);
    if (a) assert_int_equal(f.durable + f.failed, 1);
    ckpt_end(c, a, false);
    ckpt_close(c);
    return f.durable ? found.n_new + 1 : n_known;
}

/* Without memory a request goes on without a checkpoint, or with an older one; nothing leaks. */
static void faults(void **state)
{
    (void)state;
    int32_t n_known = 0;
    bool reached = true;
    uint64_t n = 1;
    for (; reached; n++) {
        const uint64_t before = mem_used_all();
        mem_fail_nth(n);
        n_known = one_life(n_known);
        reached = mem_calls() >= n;
        mem_fail_nth(0);
        assert_int_equal(mem_used_all(), before);
    }
    assert_true(n > 8);
    assert_int_equal(one_life(n_known), n_known + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_again, begin, end),
        cmocka_unit_test_setup_teardown(seeds, begin, end),
        cmocka_unit_test_setup_teardown(attempts, begin, end),
        cmocka_unit_test_setup_teardown(lands_late, begin, end),
        cmocka_unit_test_setup_teardown(failed_cleanup, begin, end),
        cmocka_unit_test_setup_teardown(no_folder, begin, end),
        cmocka_unit_test_setup_teardown(damaged, begin, end),
        cmocka_unit_test_setup_teardown(foreign, begin, end),
        cmocka_unit_test_setup_teardown(sampler_state, begin, end),
        cmocka_unit_test_setup_teardown(limits, begin, end),
        cmocka_unit_test_setup_teardown(faults, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
