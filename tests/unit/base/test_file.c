/* Files: what is there, what is missing, what is too big, and a replacement that readers see whole
   or not at all.  Each test has a folder of its own. */
#include "test.h"
#include "tmp.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static tmp_dir folder;

static const char *in_folder(const char *name)
{
    return tmp_path(&folder, name);
}

static int make_folder(void **state)
{
    (void)state;
    return tmp_make(&folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    return tmp_drop(&folder) ? 0 : -1;
}

static size_t n_files(void)
{
    size_t n = 0;
    DIR *d = opendir(folder.path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    (void)closedir(d);
    return n;
}

static void content_is(const char *path, const char *want)
{
    buf b;
    buf_init(&b, MEM_IO);
    assert_ok(file_read(path, 1 << 20, &b, NULL));
    assert_int_equal(b.len, strlen(want));
    if (b.len) assert_string_equal(b.ptr, want);
    buf_deinit(&b);
}

static void replaces_whole(void **state)
{
    (void)state;
    const char *path = in_folder("a");
    assert_ok(file_replace(path, "one", 3, NULL));
    content_is(path, "one");
    file_map m;
    assert_ok(file_map_open(path, &m, NULL));
    assert_ok(file_replace(path, "second", 6, NULL));
    content_is(path, "second");
    assert_memory_equal(m.ptr, "one", 3); /* who has the old one keeps it */
    file_map_close(&m);
    assert_null(m.ptr);
    assert_ok(file_replace(path, NULL, 0, NULL));
    content_is(path, "");
    assert_int_equal(n_files(), 1);
}

static void failed_replacement_leaves_nothing(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    assert_int_equal(file_replace(in_folder("no/such"), "x", 1, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "no/such");
    assert_int_equal(mkdir(in_folder("dir"), 0700), 0);
    assert_int_equal(file_replace(in_folder("dir"), "x", 1, &dg), CAIRN_E_IO);
    assert_says(&dg, "expected a regular file or none");
    assert_int_equal(n_files(), 1);
    assert_int_equal(mem_used_all(), 0);
}

static void maps(void **state)
{
    (void)state;
    enum { N = 100000 };
    static uint8_t data[N];
    for (size_t i = 0; i < N; i++) data[i] = (uint8_t)(i * 31);
    const char *path = in_folder("data");
    file_map m;
    assert_ok(file_replace(path, data, N, NULL));
    assert_ok(file_map_open(path, &m, NULL));
    assert_int_equal(m.size, N);
    assert_memory_equal(m.ptr, data, N);
    file_map_drop(m.ptr + 100, 50000); /* they come back from the file */
    file_map_drop(m.ptr, 10);
    assert_memory_equal(m.ptr, data, N);
    file_map_close(&m);
    file_map_close(&m);
    assert_ok(file_replace(path, "", 0, NULL));
    assert_ok(file_map_open(path, &m, NULL));
    assert_null(m.ptr);
    assert_int_equal(m.size, 0);
    file_map_close(&m);
}

static void missing_and_folders(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    file_map m = {NULL, 77};
    buf b;
    buf_init(&b, MEM_IO);
    assert_int_equal(file_map_open(in_folder("none"), &m, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "/none: cannot open: No such file");
    assert_int_equal(m.size, 77); /* untouched */
    assert_int_equal(file_map_open(folder.path, &m, &dg), CAIRN_E_IO);
    assert_says(&dg, "expected a regular file");
    assert_int_equal(file_map_open("/dev/null", &m, &dg), CAIRN_E_IO);
    assert_ok(file_replace(in_folder("f"), "x", 1, NULL));
    assert_int_equal(file_map_open(in_folder("f/g"), &m, &dg), CAIRN_E_NOTFOUND);
    assert_int_equal(file_read(in_folder("none"), 10, &b, &dg), CAIRN_E_NOTFOUND);
    assert_int_equal(file_read(folder.path, 10, &b, &dg), CAIRN_E_IO);
    assert_says(&dg, "found a directory; expected a regular file");
    assert_int_equal(b.len, 0);
    buf_deinit(&b);
    assert_true(file_exists(folder.path) && file_is_dir(folder.path));
    assert_true(file_exists(in_folder("f")) && !file_is_dir(in_folder("f")));
    assert_false(file_exists(in_folder("none")) || file_is_dir(in_folder("none")));
}

static void reading_is_limited(void **state)
{
    (void)state;
    static char data[200000];
    cairn_diag dg = {0};
    buf b;
    memset(data, 'd', sizeof data);
    assert_ok(file_replace(in_folder("big"), data, sizeof data, NULL));
    buf_init(&b, MEM_IO);
    buf_puts(&b, "before");
    assert_int_equal(file_read(in_folder("big"), sizeof data - 1, &b, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "found 200000 bytes; expected at most 199999");
    assert_string_equal(b.ptr, "before");
    assert_ok(file_read(in_folder("big"), sizeof data, &b, &dg)); /* appended */
    assert_int_equal(b.len, 6 + sizeof data);
    assert_memory_equal(b.ptr + 6, data, sizeof data);
    buf_deinit(&b);
}

static void reads_standard_input(void **state)
{
    (void)state;
    buf b;
    assert_ok(file_replace(in_folder("in"), "typed", 5, NULL));
    assert_non_null(freopen(in_folder("in"), "r", stdin));
    buf_init(&b, MEM_IO);
    assert_ok(file_read_input("-", 100, &b, NULL));
    assert_string_equal(b.ptr, "typed");
    buf_deinit(&b);
}

/* Endless, unbounded and odd files end at once, each in a message that says why. */
static void odd_files_are_refused(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    buf b;
    buf_init(&b, MEM_IO);
    const char *pipe = in_folder("fifo");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(file_read(pipe, 10, &b, &dg), CAIRN_E_IO);
    assert_says(&dg, "fifo: found a pipe; expected a regular file");
    assert_int_equal(file_read_input(pipe, 10, &b, &dg), CAIRN_E_IO);
    assert_says(&dg, "fifo: found an empty pipe");
    assert_int_equal(file_read("/dev/zero", 10, &b, &dg), CAIRN_E_IO);
    assert_says(&dg, "/dev/zero: found a device; expected a regular file");
    assert_int_equal(file_read_input("/dev/zero", 1000, &b, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "/dev/zero: found more than 1000 bytes; expected at most 1000");
    assert_int_equal(file_read_input("/dev/zero", SIZE_MAX, &b, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "expected at most 67108864");
    assert_int_equal(file_replace(pipe, "x", 1, &dg), CAIRN_E_IO);
    assert_says(&dg, "fifo: found a pipe; expected a regular file or none");
    assert_int_equal(file_read_input(folder.path, 10, &b, &dg), CAIRN_E_IO);
    assert_says(&dg, "found a directory");
    assert_int_equal(b.len, 0);
    buf_deinit(&b);

    assert_ok(file_replace(in_folder("sparse"), "", 0, NULL));
    assert_int_equal(truncate(in_folder("sparse"), (off_t)1 << 40), 0);
    buf_init(&b, MEM_IO);
    assert_int_equal(file_read(in_folder("sparse"), 1000, &b, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "found 1099511627776 bytes; expected at most 1000");
    assert_int_equal(b.cap, 0); /* nothing was read */
    buf_deinit(&b);
}

/* Nobody may make a folder in /sys, not even root. */
static void says_why_no_folder_was_made(void **state)
{
    (void)state;
    cairn_diag dg;
    assert_int_equal(path_make_dirs("/sys/cairn-none/deeper", &dg), CAIRN_E_IO);
    assert_says(&dg, "/sys/cairn-none: cannot create: ");
    assert_null(strstr(dg.message, "No such file"));
}

static void joins_paths(void **state)
{
    (void)state;
    buf b;
    buf_init(&b, MEM_IO);
    assert_string_equal(path_join(&b, "a", "b"), "a/b");
    assert_string_equal(path_join(&b, "a/", "b"), "a/b");
    assert_string_equal(path_join(&b, "", "b"), "b");
    assert_string_equal(path_join(&b, "/", "b"), "/b");
    buf_deinit(&b);
    mem_fail_nth(1);
    assert_null(path_join(&b, "a", "b"));
    mem_fail_nth(0);
    buf_deinit(&b);
}

static void makes_the_cache_folder(void **state)
{
    (void)state;
    cairn_diag dg = {0};
    struct stat s;
    buf b;
    buf_init(&b, MEM_IO);
    assert_int_equal(setenv("XDG_CACHE_HOME", in_folder("deep/er"), 1), 0);
    assert_ok(path_cache_dir(&b, &dg));
    assert_string_equal(b.ptr, in_folder("deep/er/cairn"));
    assert_int_equal(stat(b.ptr, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    assert_ok(path_cache_dir(&b, &dg)); /* again */
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_int_equal(setenv("HOME", folder.path, 1), 0);
    assert_ok(path_cache_dir(&b, &dg));
    assert_string_equal(b.ptr, in_folder(".cache/cairn"));
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(path_cache_dir(&b, &dg), CAIRN_E_NOTFOUND);
    assert_ok(file_replace(in_folder("file"), "", 0, NULL));
    assert_int_equal(setenv("XDG_CACHE_HOME", in_folder("file"), 1), 0);
    assert_int_equal(path_cache_dir(&b, &dg), CAIRN_E_IO);
    assert_says(&dg, "cannot create: File exists");
    buf_deinit(&b);
}

static cairn_status use_files(void *ctx)
{
    (void)ctx;
    buf b;
    cairn_diag dg;
    buf_init(&b, MEM_IO);
    cairn_status st = file_replace(in_folder("x"), "text", 4, &dg);
    if (st == CAIRN_OK) st = file_read(in_folder("x"), 10, &b, &dg);
    buf_deinit(&b);
    return st;
}

/* Not by fault_loop: when only the folder's fsync finds no memory the file is replaced all the same. */
static void memory_may_fail(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 4; n++) {
        mem_fail_nth(n);
        const cairn_status st = use_files(NULL);
        mem_fail_nth(0);
        assert_true(st == CAIRN_E_NOMEM || st == CAIRN_OK);
        assert_int_equal(mem_used_all(), 0);
        assert_true(n_files() <= 1);
        if (n == 1) assert_int_equal(st, CAIRN_E_NOMEM);
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(replaces_whole),
        IN_FOLDER(failed_replacement_leaves_nothing),
        IN_FOLDER(maps),
        IN_FOLDER(missing_and_folders),
        IN_FOLDER(reading_is_limited),
        IN_FOLDER(reads_standard_input),
        IN_FOLDER(makes_the_cache_folder),
        IN_FOLDER(memory_may_fail),
        IN_FOLDER(odd_files_are_refused),
        cmocka_unit_test(says_why_no_folder_was_made),
        cmocka_unit_test(joins_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
