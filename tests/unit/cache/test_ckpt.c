/* Checkpoints: what a key finds, who may write, what damaged and left-over files come to. */
#include "test.h"
#include "tmp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cache/ckpt_priv.h"
#include "fake_time.h"

enum { VOCAB = 1000, MOST = 100, FLUSH_MS = TEST_WAIT_MS };

static int flock_error; /* what it fails with; 0: it does not */

int flock(int fd, int op)
{
    const int e = flock_error;
    if (!e) return (int)syscall(SYS_flock, fd, op);
    errno = e;
    return -1;
}

static int n_sync_folder; /* of a folder: how many more may fail; the writer's thread reads it */

int fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode) ||
        __atomic_load_n(&n_sync_folder, __ATOMIC_RELAXED) == 0)
        return (int)syscall(SYS_fsync, fd);
    (void)__atomic_sub_fetch(&n_sync_folder, 1, __ATOMIC_RELAXED);
    errno = EIO;
    return -1;
}

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
    ckpt_end(c, a, true); /* nothing of it is left for b's next attempt */
    ckpt_end(c, b, false);
    ckpt_end(c, ckpt_begin(c, &q, found, &f), false);
    assert_int_equal(f.n_new, 0);
    (void)flush(c);
    assert_false(file_exists(file_of(1)));
    ckpt_end(c, ckpt_begin(c, &q, found, &f), false);
    assert_int_equal(f.n_new, 0);
    a = ckpt_begin(c, &q, found, &f);
    ckpt_save(c, a, ids, 10, NULL);
    (void)flush(c);
    b = ckpt_begin(c, &q, found, &f);
    ckpt_save(c, b, ids, 11, NULL); /* written after the former's file went */
    assert_int_equal(flush(c).durable, 1);
    ckpt_end(c, a, true);
    ckpt_end(c, b, false);
    (void)flush(c);
    assert_int_equal(stats_of(c).n_file, 1);
    ckpt_end(c, ckpt_begin(c, &q, found, &f), false);
    assert_int_equal(f.n_new, 11);
    ckpt_close(c);
}

/* The lock passes from who ended to who is superseded and still runs: no other process's. */
static void lock_of_our_own(void **state)
{
    (void)state;
    ckpt *c = open_with(opts());
    const ckpt_ask q = ask(1);
    ckpt_attempt *a = expect(c, &q, 0);
    ckpt_save(c, a, ids, 10, NULL);
    (void)flush(c);
    ckpt_attempt *b = expect(c, &q, 10);
    ckpt_save(c, b, ids, 20, NULL);
    assert_int_equal(flush(c).durable, 1);
    ckpt_end(c, b, false);
    b = expect(c, &q, 20);
    ckpt_save(c, b, ids, 30, NULL);
    assert_int_equal(flush(c).durable, 1);
    ckpt_end(c, a, true);
    ckpt_end(c, b, true);
    (void)flush(c);
    assert_false(file_exists(file_of(1)));
    ckpt_close(c);
}

/* The disk takes no more: one warning, nothing is left of the attempts to write, and all is well when there is room. */
static void full_disk(void **state)
{
    (void)state;
    struct rlimit was;
    const ckpt_ask q = ask(1);
    ckpt *c = open_with(opts());
    ckpt_attempt *a = expect(c, &q, 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const struct rlimit full = {CKPT_HEAD + 8,
                                was.rlim_max}; /* two ids: it ends in a file's middle */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    ckpt_flushed f[2];
    for (int i = 0; i < 2; i++) {
        ckpt_save(c, a, ids, 10 + i, NULL);
        ckpt_flush(c, FLUSH_MS, &f[i]);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    for (int i = 0; i < 2; i++)
        assert_true(f[i].failed == 1 && f[i].durable == 0 && f[i].pending == 0);
    assert_int_equal(n_warn, 1);
    DIR *d = opendir(tmp_path(&dir, PRINT "/checkpoints"));
    for (const struct dirent *at; d && (at = readdir(d)) != NULL;)
        assert_true(at->d_name[0] == '.');
    assert_true(d && closedir(d) == 0);
    ckpt_save(c, a, ids, 12, NULL);
    assert_int_equal(flush(c).durable, 1);
    ckpt_end(c, a, false);
    ckpt_close(c);
    c = open_with(opts());
    a = expect(c, &q, 12);
    ckpt_end(c, a, true);
    ckpt_close(c);
    (void)signal(SIGXFSZ, handler);
}

/* Its file cannot be gone on from, but is not another process's for that. */
static void lock_kept_of_unreadable(void **state)
{
    (void)state;
    static const ckpt_conf newer = {"a model's print", 3, 0, VOCAB}; /* numerics */
    ckpt *c = open_with(opts()), *other = open_with(opts());
    const ckpt_ask q = ask(1);
    ckpt_attempt *a = expect(c, &q, 0);
    ckpt_save(c, a, ids, 10, NULL);
    (void)flush(c);
    ckpt_attempt *b = expect(c, &q, 10);
    (void)flush(c);
    ckpt_end(c, b, false); /* a has the lock */
    const ckpt_meta m = {.key = q.key, .n_prompt = 7, .n_new = 10, .seed = 5, .seed_given = true};
    buf file;
    buf_init(&file, MEM_MISC);
    ckpt_encode(&newer, &m, ids, &file);
    const int fd = open(file_of(1), O_WRONLY);
    assert_int_equal(pwrite(fd, file.ptr, file.len, 0), (ssize_t)file.len);
    assert_int_equal(close(fd), 0);
    b = expect(c, &q, 0);
    assert_false(b->elsewhere);
    ckpt_attempt *theirs = expect(other, &q, 0);
    assert_true(theirs->elsewhere);
    ckpt_save(other, theirs, ids, 5, NULL);
    assert_int_equal(flush(other).durable, 0);
    ckpt_save(c, b, ids, 20, NULL);
    assert_int_equal(flush(c).durable, 1);
    ckpt_end(other, theirs, false);
    ckpt_end(c, a, true);
    ckpt_end(c, b, true);
    (void)flush(c);
    assert_false(file_exists(file_of(1)));
    ckpt_close(other);
    ckpt_close(c);
    buf_deinit(&file);
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
    for (int newer = 0; newer < 4; newer++) {
        gate g = {.shut = true};
        mutex_init(&g.mu);
        cond_init(&g.c);
        ckpt_opts o = opts();
        o.landing = at_gate;
        o.ctx = &g;
        ckpt *c = open_with(o);
        ckpt_ask q = ask(1);
        q.seed_given = newer < 3;
        ckpt_attempt *a = expect(c, &q, 0), *b = NULL;
        ckpt_flushed f;
        ckpt_save(c, a, ids, 10, NULL);
        wait_at(&g);
        ckpt_flush(c, 0, &f);
        assert_int_equal(f.pending, 1);
        if (newer == 1) b = expect(c, &q, 10);
        if (newer == 3) b = expect(c, &q, 0); /* another answer, which draws nothing */
        ckpt_end(c, a, true);
        if (newer == 3) ckpt_end(c, b, false);
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

/* The file got its name, and its folder could not be synced: it is not durable, but ours to remove. */
static void named_not_durable(void **state)
{
    (void)state;
    const ckpt_ask q = ask(1);
    for (int again = 0; again < 2; again++) {
        ckpt *c = open_with(opts()), *other = open_with(opts());
        ckpt_attempt *a = expect(c, &q, 0);
        __atomic_store_n(&n_sync_folder, 1, __ATOMIC_RELAXED);
        ckpt_save(c, a, ids, 10, NULL);
        for (int ms = 0; stats_of(c).n_failed == 0 && ms < FLUSH_MS; ms++) (void)usleep(1000);
        assert_true(file_exists(file_of(1)));
        ckpt_end(other, expect(other, &q, 0),
                 true); /* nobody else goes on with it, or removes it */
        ckpt_flushed f;
        ckpt_flush(other, FLUSH_MS, &f);
        assert_true(file_exists(file_of(1)));
        if (again) assert_int_equal(flush(c).durable, 1);
        ckpt_end(c, a, true);
        assert_int_equal(flush(c).cleanups, 0);
        assert_false(file_exists(file_of(1)));
        ckpt_close(other);
        ckpt_close(c);
    }
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

static void save(ckpt *c, ckpt_attempt *a, int32_t n, uint32_t durable)
{
    ckpt_save(c, a, ids, n, NULL);
    const ckpt_flushed f = flush(c);
    assert_int_equal(f.durable, durable);
    assert_int_equal(f.failed + f.cleanups, 0);
}

/* Two processes, one folder: who runs an answer has its file, and the other one neither goes on with it nor
   replaces or removes it.  It may when that one is done, whatever was there when it began. */
static void one_folder(void **state)
{
    (void)state;
    ckpt *one = open_with(opts()), *two = open_with(opts());
    const ckpt_ask q = ask(1);
    ckpt_attempt *a = expect(one, &q, 0);
    save(one, a, 10, 1);
    ckpt_attempt *b = expect(two, &q, 0); /* begins anew */
    save(two, b, 3, 0);
    save(one, a, 12, 1);
    ckpt_end(two, b, true); /* its own answer is complete, the other's is not */
    (void)flush(two);
    assert_true(file_exists(file_of(1)));
    ckpt_end(one, a, false);
    (void)flush(one);
    b = expect(two, &q, 12);
    ckpt_end(one, expect(one, &q, 0), true); /* now it is that one's */
    (void)flush(one);
    save(two, b, 20, 1);
    ckpt_end(two, b, false);
    (void)flush(two);
    a = expect(one, &q, 20);
    ckpt_end(one, a, true);
    (void)flush(one);
    assert_false(file_exists(file_of(1)));
    ckpt_end(two, expect(two, &q, 0), false);
    assert_int_equal(n_warn, 0);
    ckpt_close(two);
    ckpt_close(one);
}

/* Attempts that began beside each other: the first to write has the name, the next one when that has ended. */
static void both_began(void **state)
{
    (void)state;
    ckpt *one = open_with(opts()), *two = open_with(opts());
    const ckpt_ask q = ask(1);
    ckpt_attempt *a = expect(one, &q, 0), *b = expect(two, &q, 0);
    save(one, a, 10, 1);
    save(two, b, 11, 0);
    ckpt_end(one, a, true);
    (void)flush(one);
    assert_false(file_exists(file_of(1)));
    assert_int_equal(flush(two).durable, 1); /* tries again */
    a = expect(one, &q, 0);
    ckpt_attempt *newer = expect(two, &q, 11); /* has the file with it */
    ckpt_end(two, b, false);
    save(one, a, 5, 0);
    save(two, newer, 12, 1);
    ckpt_end(two, newer, false);
    save(one, a, 6, 1); /* who is left may have it */
    ckpt_end(one, a, true);
    (void)flush(one);
    assert_false(file_exists(file_of(1)));
    ckpt_close(two);
    ckpt_close(one);
}

/* No limit of another process takes what runs away, at a start or later. */
static void kept_from_others(void **state)
{
    (void)state;
    const struct timespec t = {clock_unix_s() - 1000, 0};
    ckpt_opts o = opts();
    o.max_files = 1;
    o.max_age_s = 100;
    ckpt *one = open_with(opts());
    for (uint64_t k = 1; k <= 3; k++) {
        const ckpt_ask q = ask(k);
        save(one, expect(one, &q, 0), 10, (uint32_t)k);
        assert_int_equal(utimensat(AT_FDCWD, file_of(k), (struct timespec[]){t, t}, 0), 0);
    }
    ckpt *two = open_with(o);
    const ckpt_ask q = ask(4);
    save(two, expect(two, &q, 0), 10, 1);
    for (uint64_t k = 1; k <= 4; k++) assert_true(file_exists(file_of(k)));
    assert_int_equal(flush(one).durable, 3);
    ckpt_close(one);
    ckpt_close(open_with(o)); /* now they are too old */
    for (uint64_t k = 1; k <= 4; k++) assert_int_equal(file_exists(file_of(k)), k == 4);
    ckpt_close(two);
}

/* A process that was there all along goes on with what a killed one made meanwhile. */
static void killed_beside(void **state)
{
    (void)state;
    int go[2], told[2];
    char byte;
    const ckpt_ask q = ask(1);
    assert_true(pipe(go) == 0 && pipe(told) == 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)!read(go[0], &byte, 1);
        ckpt *one = open_with(opts());
        save(one, expect(one, &q, 0), 30, 1);
        (void)!write(told[1], "", 1);
        for (;;) (void)pause();
    }
    ckpt *two = open_with(opts());
    assert_int_equal(write(go[1], "", 1), 1);
    assert_int_equal(read(told[0], &byte, 1), 1);
    ckpt_end(two, expect(two, &q, 0), false); /* it lives */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    ckpt_attempt *a = expect(two, &q, 30);
    save(two, a, 31, 1);
    ckpt_end(two, a, true);
    (void)flush(two);
    assert_false(file_exists(file_of(1)));
    ckpt_close(two);
    for (int i = 0; i < 2; i++) assert_true(close(go[i]) == 0 && close(told[i]) == 0);
}

/* Removed under it: a flush writes anew what it says to be durable. */
static void folder_gone(void **state)
{
    (void)state;
    ckpt *c = open_with(opts());
    const ckpt_ask q = ask(1), other = ask(2);
    ckpt_attempt *a = expect(c, &q, 0), *b = expect(c, &other, 0);
    ckpt_save(c, b, ids, 7, NULL);
    save(c, a, 10, 2);
    assert_int_equal(unlink(file_of(1)), 0);
    assert_int_equal(flush(c).durable, 2);
    assert_true(file_exists(file_of(1)));
    assert_true(tmp_drop(&dir)); /* the folder of all */
    assert_int_equal(mkdir(dir.path, 0700), 0);
    assert_int_equal(flush(c).durable, 2);
    assert_true(file_exists(file_of(1)) && file_exists(file_of(2)));
    assert_int_equal(rename(tmp_path(&dir, PRINT), tmp_path(&dir, "elsewhere")), 0);
    assert_int_equal(flush(c).durable, 2);
    assert_true(file_exists(file_of(1)) && file_exists(file_of(2)));
    assert_int_equal(stats_of(c).n_file, 2);
    ckpt_end(c, a, true);
    ckpt_end(c, b, true);
    (void)flush(c);
    assert_true(!file_exists(file_of(1)) && !file_exists(file_of(2)));
    ckpt_close(c);
    assert_int_equal(n_warn, 0);
}

/* A folder of such a name is somebody's: told at each start, counted as no file, and not as removed. */
static void odd_folder(void **state)
{
    (void)state;
    leave_file(1, 10);
    assert_int_equal(mkdir(file_of(2), 0700), 0);
    for (uint32_t i = 1; i <= 2; i++) {
        ckpt *c = open_with(opts());
        assert_int_equal(stats_of(c).n_file, 1);
        assert_int_equal(stats_of(c).n_corrupt, 0);
        assert_int_equal(n_warn, i);
        ckpt_close(c);
    }
}

static int64_t time_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (int64_t)st.st_mtim.tv_sec;
}

/* The clock goes forward by years and back, below 1970's first days too, while answers run: nothing running or
   younger than it seems is removed, and the order of writing stays. */
static void clock_jumps(void **state)
{
    (void)state;
    enum { YEAR = 365 * 24 * 3600, N = 5 };
    const int64_t now_s = clock_unix_s();
    const int64_t jump[N] = {0, 30 * YEAR, -YEAR, 3600 - now_s, 10};
    ckpt_attempt *a[N];
    ckpt_opts o = opts();
    ckpt *c = open_with(o);
    for (int i = 0; i < N; i++) {
        const ckpt_ask q = ask((uint64_t)i + 1);
        fake_time_shift(jump[i]);
        a[i] = expect(c, &q, 0);
        save(c, a[i], 10, (uint32_t)i + 1);
    }
    assert_true(time_of(file_of(2)) > now_s + YEAR);
    for (int i = 0; i < N; i++) save(c, a[i], 20, N);
    ckpt_close(c);
    const struct timespec t = {(time_t)1 << 40, 0}; /* no clock's time at all */
    assert_int_equal(utimensat(AT_FDCWD, file_of(N), (struct timespec[]){t, t}, 0), 0);
    fake_time_shift(0);
    o.max_files = N - 1;
    c = open_with(o); /* the first one written goes */
    for (uint64_t k = 1; k <= N; k++) assert_int_equal(file_exists(file_of(k)), k > 1);
    for (uint64_t k = 2; k <= N; k++) assert_in_range(time_of(file_of(k)), now_s, now_s + 1000);
    for (uint64_t k = 2; k <= N; k++) {
        const ckpt_ask q = ask(k);
        ckpt_end(c, expect(c, &q, 20), false);
    }
    ckpt_close(c);
    fake_time_shift(3600 - now_s); /* a machine whose clock was not set before it began */
    c = open_with(opts());
    const ckpt_ask q = ask(9);
    save(c, expect(c, &q, 0), 10, 1);
    ckpt_close(c);
    fake_time_shift(0);
    c = open_with(opts());
    assert_int_equal(stats_of(c).n_file, N);
    ckpt_end(c, expect(c, &q, 10), false);
    ckpt_close(c);
    assert_int_equal(n_warn, 0);
}

/* What a clock without a battery gave is of now for the limits too: the oldest of the others goes. */
static void odd_time_stays(void **state)
{
    (void)state;
    const int64_t now_s = clock_unix_s();
    const int64_t at_s[] = {now_s - 300, now_s - 200, 3600, now_s + 100000};
    for (uint64_t k = 1; k <= 4; k++) leave_file(k, 10);
    for (uint64_t k = 1; k <= 4; k++) {
        const struct timespec t = {(time_t)at_s[k - 1], 0};
        assert_int_equal(utimensat(AT_FDCWD, file_of(k), (struct timespec[]){t, t}, 0), 0);
    }
    ckpt_opts o = opts();
    o.max_files = 2;
    ckpt_close(open_with(o));
    for (uint64_t k = 1; k <= 4; k++) assert_int_equal(file_exists(file_of(k)), k >= 3);
    o.max_files = 1;
    ckpt_close(open_with(o)); /* in the order of what they had */
    assert_true(!file_exists(file_of(3)) && file_exists(file_of(4)));
}

/* A file that somebody else has locked: no descriptor of it stays, nor is one closed that is not ours any more. */
static void held_elsewhere(void **state)
{
    (void)state;
    char name[CKPT_NAME_BYTES];
    ckpt_name_text((hash128){1, 0}, name);
    const int folder = open(dir.path, O_RDONLY | O_DIRECTORY);
    const int theirs = openat(folder, name, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(theirs, LOCK_EX | LOCK_NB), 0);
    int fd = 0;
    assert_int_equal(ckpt_hold(folder, name, &fd), CKPT_THEIRS);
    assert_int_equal(fd, -1);
    assert_false(ckpt_remove_this(folder, name, theirs));
    assert_true(ckpt_remove(folder, name, -1)); /* that one's to remove */
    assert_int_equal(close(theirs), 0);
    assert_int_equal(ckpt_hold(folder, name, &fd), CKPT_OURS);
    assert_int_equal(close(fd), 0);
    assert_true(ckpt_remove(folder, name, -1));
    assert_int_equal(ckpt_hold(folder, name, &fd), CKPT_NONE);
    assert_int_equal(fd, -1);
    assert_int_equal(close(folder), 0);
}

/* What the system does not say is not taken for another's hold: the file may be there, and ours to remove. */
static void hold_unknown(void **state)
{
    (void)state;
    char name[CKPT_NAME_BYTES], tmp[NAME_MAX];
    struct rlimit files;
    ckpt_name_text((hash128){1, 0}, name);
    const int folder = open(dir.path, O_RDONLY | O_DIRECTORY);
    const int made = openat(folder, name, O_RDWR | O_CREAT, 0600);
    assert_true(made >= 0 && close(made) == 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit none = {0, files.rlim_max};
    int fd = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const ckpt_whose full = ckpt_hold(folder, name, &fd);
    const bool gone = ckpt_remove(folder, name, -1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(full, CKPT_UNKNOWN);
    assert_int_equal(fd, -1);
    assert_false(gone);
    flock_error = ENOLCK;
    const ckpt_whose no_locks = ckpt_hold(folder, name, &fd);
    const bool gone_too = ckpt_remove(folder, name, -1);
    const int e = store_make_tmp(folder, name, tmp, &fd);
    flock_error = 0;
    assert_int_equal(no_locks, CKPT_UNKNOWN);
    assert_false(gone_too);
    assert_int_equal(e, ENOLCK); /* and not that of a lost race */
    assert_int_equal(faccessat(folder, tmp, F_OK, 0), -1);
    assert_true(ckpt_remove(folder, name, -1));
    assert_int_equal(faccessat(folder, name, F_OK, 0), -1);
    assert_int_equal(close(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_again, begin, end),
        cmocka_unit_test_setup_teardown(seeds, begin, end),
        cmocka_unit_test_setup_teardown(attempts, begin, end),
        cmocka_unit_test_setup_teardown(lock_of_our_own, begin, end),
        cmocka_unit_test_setup_teardown(lock_kept_of_unreadable, begin, end),
        cmocka_unit_test_setup_teardown(full_disk, begin, end),
        cmocka_unit_test_setup_teardown(lands_late, begin, end),
        cmocka_unit_test_setup_teardown(failed_cleanup, begin, end),
        cmocka_unit_test_setup_teardown(no_folder, begin, end),
        cmocka_unit_test_setup_teardown(damaged, begin, end),
        cmocka_unit_test_setup_teardown(named_not_durable, begin, end),
        cmocka_unit_test_setup_teardown(foreign, begin, end),
        cmocka_unit_test_setup_teardown(sampler_state, begin, end),
        cmocka_unit_test_setup_teardown(limits, begin, end),
        cmocka_unit_test_setup_teardown(one_folder, begin, end),
        cmocka_unit_test_setup_teardown(both_began, begin, end),
        cmocka_unit_test_setup_teardown(kept_from_others, begin, end),
        cmocka_unit_test_setup_teardown(killed_beside, begin, end),
        cmocka_unit_test_setup_teardown(folder_gone, begin, end),
        cmocka_unit_test_setup_teardown(odd_folder, begin, end),
        cmocka_unit_test_setup_teardown(held_elsewhere, begin, end),
        cmocka_unit_test_setup_teardown(hold_unknown, begin, end),
        cmocka_unit_test_setup_teardown(clock_jumps, begin, end),
        cmocka_unit_test_setup_teardown(odd_time_stays, begin, end),
        cmocka_unit_test_setup_teardown(faults, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
