/* The disk tier in folders and on disks that refuse, beside others, and under clocks that go back. */
#include "store_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* What the scan's thread does before a call that it makes for a file. */
typedef struct meanwhile {
    mutex mu;
    cond c;
    int calls;           /* before it is done */
    store *s;            /* NULL: not open yet */
    rig_run *const *run; /* of three, the first one that is found is read */
    rig_run *read;       /* which that was */
} meanwhile;
static meanwhile *at_advice, *at_time;

static void do_meanwhile(meanwhile **at)
{
    store_id id;
    meanwhile *m = *at;
    if (!m || m->calls-- > 0) return;
    *at = NULL;
    mutex_lock(&m->mu);
    while (!m->s && cond_wait_ms(&m->c, &m->mu, TEST_WAIT_MS)) {
    }
    for (int i = 0; m->s && i < 3 && !m->read; i++)
        if (rig_found(m->s, m->run[i], &id)) m->read = m->run[i];
    if (m->read && rig_read_back(m->s, m->read) != CAIRN_OK) m->read = NULL;
    mutex_unlock(&m->mu);
}

int posix_fadvise(int fd, off_t at, off_t n, int advice)
{
    do_meanwhile(&at_advice);
    return syscall(SYS_fadvise64, fd, at, n, advice) == 0 ? 0 : errno;
}

int utimensat(int folder, const char *name, const struct timespec t[2], int flags)
{
    if (folder != AT_FDCWD) do_meanwhile(&at_time);
    return (int)syscall(SYS_utimensat, folder, name, t, flags);
}

static void (*before_sync)(void); /* of the next file; on the writer's thread */

int fsync(int fd)
{
    struct stat st;
    void (*fn)(void) = before_sync;
    if (fn && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        before_sync = NULL;
        fn();
    }
    return (int)syscall(SYS_fsync, fd);
}

static tmp_dir dir;
static uint32_t n_read_only;
static char last_line[600];

static void count_events(void *ctx, log_level level, const char *event, const char *line)
{
    (void)ctx, (void)level;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
    n_read_only += strcmp(event, "store.read_only") == 0;
}

static int begin(void **state)
{
    (void)state;
    n_read_only = 0;
    log_set(LOG_WARN, count_events, NULL);
    return tmp_make(&dir) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    log_set(LOG_WARN, NULL, NULL);
    return tmp_drop(&dir) ? 0 : -1;
}

/* Runs are handed back, what is there can be read, one line says why, and all is well when the cause ends. */
static bool survives(store *s, rig_run *there, rig_run *new_one)
{
    store_flushed f;
    store_done d;
    store_stats st;
    bool ok = !there || rig_read_back(s, there) == CAIRN_OK;
    for (int i = 0; i < 3; i++) {
        const cairn_status put = store_put(s, &new_one->run, new_one);
        store_flush(s, TEST_WAIT_MS, &f);
        ok &= f.pending == 0 && f.durable == 0 && f.failed + f.dropped > 0;
        ok &= put == CAIRN_E_BUSY || (store_poll(s, &d) && d.result != STORE_DURABLE);
    }
    store_get_stats(s, &st);
    ok &= st.read_only && st.queued_bytes == 0;
    return ok && (!there || rig_read_back(s, there) == CAIRN_OK);
}

static void file_for_a_folder(void **state)
{
    (void)state;
    const store_opts o = rig_opts(tmp_path(&dir, "x"));
    rig_run *r = rig_whole(1, 0, 100);
    buf b;
    buf_init(&b, MEM_MISC);
    buf_puts(&b, "a file");
    rig_save(tmp_path(&dir, "x"), &b);
    store *s = rig_open(&o);
    assert_true(survives(s, NULL, r));
    assert_int_equal(n_read_only, 1);
    assert_int_equal(unlink(tmp_path(&dir, "x")), 0);
    store_flush(s, TEST_WAIT_MS, &(store_flushed){0}); /* does not wait for the next try's time */
    rig_put_durable(s, r);
    assert_ok(rig_read_back(s, r));
    store_close(s);
    buf_deinit(&b);
    rig_free(r);
}

/* A folder that others could rename ours in; and one in which a name of ours cannot be removed. */
static void folder_above(void **state)
{
    (void)state;
    rig_run *r = rig_whole(1, 0, 100);
    const store_opts o = rig_opts(tmp_path(&dir, "x"));
    assert_int_equal(mkdir(tmp_path(&dir, "x"), 0700), 0);
    assert_int_equal(chmod(tmp_path(&dir, "x"), 0777), 0);
    store *s = rig_open(&o);
    assert_true(survives(s, NULL, r));
    assert_int_equal(n_read_only, 1);
    assert_non_null(strstr(last_line, "others may write in the folder above it"));
    assert_int_equal(chmod(tmp_path(&dir, "x"), 01777), 0); /* as /tmp is */
    store_flush(s, TEST_WAIT_MS, &(store_flushed){0});
    rig_put_durable(s, r);
    store_close(s);
    rig_free(r);
}

static void odd_folder(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    rig_run *r = rig_whole(1, 0, 100);
    char path[RIG_PATH];
    buf b = rig_file(&dir, &o, r, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    store *s = rig_open(&o);
    store_stats st;
    store_get_stats(s, &st);
    assert_int_equal(st.n_corrupt, 0);
    assert_non_null(strstr(last_line, "removed=0 not_removed=1"));
    store_close(s);
    assert_int_equal(rmdir(path), 0);
    buf_deinit(&b);
    rig_free(r);
}

/* fn in a child that is nobody; 77: it cannot be. */
static int as_nobody(int (*fn)(const char *path), const char *path)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) _exit(setgid(65534) == 0 && setuid(65534) == 0 ? fn(path) : 77);
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static rig_run *there, *fresh;

static int nobody_reads(const char *path)
{
    const store_opts o = rig_opts(path);
    store *s = NULL;
    if (store_open(&o, &s, NULL) != CAIRN_OK || !store_scanned(s, TEST_WAIT_MS)) return 1;
    const bool ok = survives(s, there, fresh) && n_read_only == 1;
    store_close(s);
    return ok ? 0 : 2;
}

static void without_permission(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    char path[RIG_PATH];
    if (geteuid() != 0) skip(); /* becoming nobody takes root */
    there = rig_whole(1, 0, 100);
    fresh = rig_whole(8, 0, 100);
    buf b = rig_file(&dir, &o, there, path);
    assert_int_equal(chown(path, 65534, 65534), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(chmod(path, 0500), 0);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(chmod(dir.path, 0755), 0);
    assert_int_equal(as_nobody(nobody_reads, dir.path), 0); /* may read, not write */
    rig_run *keep = there;
    there = NULL;
    assert_int_equal(chmod(path, 0000), 0);
    assert_int_equal(as_nobody(nobody_reads, dir.path), 0); /* neither */
    assert_int_equal(chmod(dir.path, 0700), 0);
    assert_int_equal(as_nobody(nobody_reads, dir.path), 0);
    buf_deinit(&b);
    rig_free(keep);
    rig_free(fresh);
}

/* 0; 1 to 5: what went wrong; 77: there can be no small disk here. */
static int on_a_full_disk(const char *path)
{
    const bool tmpfs = unshare(CLONE_NEWNS) == 0 &&
                       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                       mount("none", path, "tmpfs", 0, "size=256k,mode=0700") == 0;
    if (!tmpfs) { /* a limit of a file's size says the same of each write */
        (void)signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){64 << 10, 64 << 10}) != 0) return 77;
    }
    store_opts o = rig_opts(path);
    store *s = NULL;
    store_flushed f;
    store_done d;
    if (store_open(&o, &s, NULL) != CAIRN_OK) return 1;
    if (store_put(s, &there->run, NULL) != CAIRN_OK) return 2;
    store_flush(s, TEST_WAIT_MS, &f);
    if (f.durable != 1 || !store_poll(s, &d)) return 3;
    if (!survives(s, there, fresh)) return 4;
    store_close(s);
    return n_read_only == 1 && rmdir(path) != 0 ? 0 : 5;
}

static void full_disk(void **state)
{
    (void)state;
    int status = -1;
    there = rig_whole(1, 0, 100);
    fresh = rig_whole(8, 0, 1024);
    const pid_t child = fork();
    if (child == 0) _exit(on_a_full_disk(dir.path));
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    rig_free(there);
    rig_free(fresh);
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A disk that refuses once: no second try before its time, unless a flush asks. */
static void waits_before_it_tries_again(void **state)
{
    (void)state;
    store_opts o = rig_opts(tmp_path(&dir, "x"));
    rig_run *r = rig_whole(1, 0, 100);
    buf b;
    buf_init(&b, MEM_MISC);
    buf_puts(&b, "a file");
    rig_save(tmp_path(&dir, "x"), &b);
    o.retry_ms = 100000;
    store *s = rig_open(&o);
    assert_int_equal(store_put(s, &r->run, NULL), CAIRN_E_BUSY);
    assert_int_equal(unlink(tmp_path(&dir, "x")), 0);
    assert_int_equal(store_put(s, &r->run, NULL), CAIRN_E_BUSY);
    store_flushed f;
    store_flush(s, TEST_WAIT_MS, &f);
    assert_int_equal(f.dropped, 2);
    rig_put_durable(s, r);
    store_close(s);
    buf_deinit(&b);
    rig_free(r);
}

/* Files of the future are as recent as now, and the order of use of one process never turns back. */
static void clock_backwards(void **state)
{
    (void)state;
    store_opts o = rig_opts(dir.path);
    char path[RIG_PATH];
    store_id id;
    store_stats st;
    rig_run *r[4];
    store *s = rig_open(&o);
    for (int i = 0; i < 3; i++) {
        r[i] = rig_whole((uint64_t)i * 8, 0, 64);
        rig_put_durable(s, r[i]);
    }
    store_get_stats(s, &st);
    store_close(s);
    for (int i = 0; i < 3;
         i++) { /* 0 the latest of the future, 1 of the past, 2 of the near future */
        const time_t t = (time_t)(clock_unix_s() + (i == 0 ? 1000000 : i == 1 ? -1000000 : 1000));
        rig_path(&dir, r[i], path);
        assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){{t, 0}, {t, 0}}, 0), 0);
    }
    o.max_bytes = st.bytes;
    s = rig_open(&o);
    assert_ok(rig_read_back(s, r[2]));
    r[3] = rig_whole(24, 0, 64);
    rig_put_durable(s, r[3]);
    assert_false(rig_found(s, r[1], &id));
    rig_put_durable(s, r[1]);
    assert_false(rig_found(s, r[0], &id)); /* r[2] was used after the start */
    store_close(s);
    struct stat f;
    rig_path(&dir, r[2], path);
    assert_true(stat(path, &f) == 0 && f.st_mtim.tv_sec <= clock_unix_s() + 1);
    for (int i = 0; i < 4; i++) rig_free(r[i]);
}

/* All of a machine whose clock was set back: more than one batch. */
static void many_of_the_future(void **state)
{
    (void)state;
    enum { N = 300 };
    store_opts o = rig_opts(dir.path);
    rig_run *r[N];
    char path[RIG_PATH];
    struct stat f;
    store_id id;
    store_stats st;
    int64_t before_ns = 0;
    store *s = rig_open(&o);
    for (int i = 0; i < N; i++) {
        r[i] = rig_whole((uint64_t)i * 8, 0, 4);
        rig_put_durable(s, r[i]);
        const struct timespec t = {(time_t)clock_unix_s() + 1000000 + i / 2, i};
        rig_path(&dir, r[i], path);
        assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){t, t}, 0), 0);
    }
    store_get_stats(s, &st);
    store_close(s);
    o.max_bytes = st.bytes / N * (N - 1);
    s = rig_open(&o);
    assert_false(rig_found(s, r[0], &id));
    store_close(s);
    for (int i = 1; i < N; i++) { /* in the order of what they had */
        rig_path(&dir, r[i], path);
        assert_int_equal(stat(path, &f), 0);
        assert_true(store_file_time(&f) > before_ns && f.st_mtim.tv_sec <= clock_unix_s() + 1);
        before_ns = store_file_time(&f);
    }
    for (int i = 0; i < N; i++) rig_free(r[i]);
}

/* Three files of that time; the start has room for `n`.  Answers the one that is read while it looks at them. */
static rig_run *start_and_read(rig_run *r[3], meanwhile **at, int calls, time_t t, int n)
{
    char path[RIG_PATH];
    store_opts o = rig_opts(dir.path);
    store_stats st;
    store_flushed f;
    store *s = rig_open(&o);
    for (int i = 0; i < 3; i++) {
        r[i] = rig_whole((uint64_t)i * 8, 0, 64);
        rig_put_durable(s, r[i]);
        rig_path(&dir, r[i], path);
        assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){{t, 0}, {t, 0}}, 0), 0);
    }
    store_get_stats(s, &st);
    store_close(s);
    o.max_bytes = st.bytes / 3 * (uint64_t)n;
    meanwhile m = {.calls = calls, .run = r};
    mutex_init(&m.mu);
    cond_init(&m.c);
    *at = &m;
    assert_ok(store_open(&o, &s, NULL));
    mutex_lock(&m.mu);
    m.s = s;
    cond_signal(&m.c);
    mutex_unlock(&m.mu);
    assert_true(store_scanned(s, TEST_WAIT_MS));
    store_flush(s, TEST_WAIT_MS, &f); /* what there is no room for has gone then */
    store_close(s);
    assert_null(*at);
    cond_deinit(&m.c);
    mutex_deinit(&m.mu);
    assert_non_null(m.read);
    return m.read;
}

/* It is the latest from then on, though the start finds it the oldest when it is through. */
static void read_before_the_scan_ends(void **state)
{
    (void)state;
    rig_run *r[3];
    store_id id;
    const rig_run *read = start_and_read(r, &at_advice, 1, clock_unix_s() - 1000000, 1);
    store_opts o = rig_opts(dir.path);
    store *s = rig_open(&o);
    for (int i = 0; i < 3; i++) assert_int_equal(rig_found(s, r[i], &id), r[i] == read);
    store_close(s);
    for (int i = 0; i < 3; i++) rig_free(r[i]);
}

/* The scan gives its file a time in the same moment: that of the reading stays, later than the others'. */
static void read_while_times_are_corrected(void **state)
{
    (void)state;
    rig_run *r[3];
    char path[RIG_PATH];
    struct stat f;
    int64_t ns[3], read_ns = 0;
    const rig_run *read = start_and_read(r, &at_time, 0, clock_unix_s() + 1000000, 3);
    for (int i = 0; i < 3; i++) {
        rig_path(&dir, r[i], path);
        assert_int_equal(stat(path, &f), 0);
        ns[i] = store_file_time(&f);
        if (r[i] == read) read_ns = ns[i];
    }
    for (int i = 0; i < 3; i++) assert_true(r[i] == read || ns[i] < read_ns);
    for (int i = 0; i < 3; i++) rig_free(r[i]);
}

static void two_stores(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    store *a = rig_open(&o), *b = rig_open(&o);
    rig_run *r[8];
    store_flushed f;
    for (int i = 0; i < 8; i++) {
        r[i] = rig_whole((uint64_t)(i / 2) * 8, 0, 700);
        assert_ok(store_put(i % 2 ? a : b, &r[i]->run, r[i])); /* each once by either */
    }
    store_idle(a, true);
    store_idle(b, true);
    store_close(rig_open(&o)); /* a third one cleans up meanwhile */
    store_flush(a, TEST_WAIT_MS, &f);
    assert_int_equal(f.durable, 4);
    store_flush(b, TEST_WAIT_MS, &f);
    assert_int_equal(f.durable, 4);
    for (int i = 0; i < 8; i++) {
        assert_ok(rig_read_back(a, r[i]));
        assert_ok(rig_read_back(b, r[i]));
        rig_free(r[i]);
    }
    store_close(a);
    store_close(b);
}

static store *beside;
static rig_run *beside_run;
static uint32_t beside_durable;

static void write_beside(void)
{
    store_flushed f;
    if (store_put(beside, &beside_run->run, NULL) != CAIRN_OK) return;
    store_flush(beside, TEST_WAIT_MS, &f);
    beside_durable = f.durable;
}

/* Two give one name at once: what either was told to be durable is there. */
static void both_name_it(void **state)
{
    (void)state;
    static const uint16_t here[RIG_GROUPS] = {0x1f, 0x1f, 0x1f};
    const store_opts o = rig_opts(dir.path);
    rig_run *x = rig_make(0, 0, 300, here, (int32_t[]){70}, 1);
    store *s = rig_open(&o);
    beside = rig_open(&o);
    beside_run = rig_make(0, 0, 300, here, (int32_t[]){200}, 1);
    beside_durable = 0;
    before_sync = write_beside;
    rig_put_durable(s, x);
    assert_int_equal(beside_durable, 1);
    store_close(s);
    store_close(beside);
    s = rig_open(&o);
    assert_ok(rig_read_back(s, x));
    assert_ok(rig_read_back(s, beside_run));
    store_close(s);
    rig_free(x);
    rig_free(beside_run);
}

/* Closing in the middle of anything leaves no file that is not whole. */
static void closed_while_it_writes(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    rig_run *r = rig_whole(0, 0, 1024);
    store_stats st;
    for (int i = 0; i < 20; i++) {
        store *s = NULL;
        assert_ok(store_open(&o, &s, NULL));
        store_idle(s, true);
        assert_ok(store_put(s, &r->run, r));
        (void)usleep((useconds_t)i * 150);
        store_idle(s, i % 2);
        store_close(s);
        s = rig_open(&o);
        store_get_stats(s, &st);
        assert_int_equal(st.n_corrupt, 0);
        const cairn_status got = rig_read_back(s, r);
        assert_true(got == CAIRN_OK || got == CAIRN_E_NOTFOUND);
        store_close(s);
        char path[RIG_PATH];
        rig_path(&dir, r, path);
        (void)unlink(path);
        *strrchr(path, '/') = '\0';
        assert_int_equal(rmdir(path), 0); /* nothing else was left */
    }
    rig_free(r);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(file_for_a_folder),
        CASE(without_permission),
        CASE(full_disk),
        CASE(waits_before_it_tries_again),
        CASE(clock_backwards),
        CASE(two_stores),
        CASE(both_name_it),
        CASE(closed_while_it_writes),
        CASE(folder_above),
        CASE(odd_folder),
        CASE(many_of_the_future),
        CASE(read_before_the_scan_ends),
        CASE(read_while_times_are_corrected),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
