/* The disk tier on files that are not what it wrote: a miss each time, never wrong bytes. */
#include "store_rig.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

static tmp_dir dir;
static uint32_t n_warn;

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
    return tmp_make(&dir) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    log_set(LOG_WARN, NULL, NULL);
    return tmp_drop(&dir) ? 0 : -1;
}

typedef struct small { /* one group of small blocks, so that a file has three pages */
    store_conf conf;
    store_meta meta;
    uint8_t block[40], state[24];
    store_scratch x;
    buf file;
    int fd;
} small;

static bool never_stops(void *ctx)
{
    (void)ctx;
    return true;
}

static void small_begin(small *k)
{
    memset(k, 0, sizeof *k);
    k->conf.n_group = 1;
    k->conf.block_bytes[0] = sizeof k->block;
    k->conf.state_bytes = sizeof k->state;
    k->meta = (store_meta){
        .n_block = 1, .n_tok = 3, .n_state = 1, .state_pos = {2}, .here = {1}, .token = {7, 8, 9}};
    store_keys_fill(&k->meta);
    rig_fill(k->block, sizeof k->block, 1);
    rig_fill(k->state, sizeof k->state, 2);
    const uint8_t *cell = k->block;
    store_item it = {.block = &cell,
                     .state = {k->state},
                     .meta = k->meta,
                     .bytes = store_file_bytes(&k->conf, &k->meta)};
    const int folder = open(dir.path, O_RDONLY | O_DIRECTORY);
    char name[STORE_NAME_BYTES];
    store_name_text(store_name_of(&k->meta), name);
    k->x.meta = k->meta;
    assert_int_equal(
        store_save(&k->conf, folder, &it, (store_former){.fd = -1}, &k->x, never_stops, NULL), 0);
    assert_int_equal(it.bytes, 3 * STORE_PAGE);
    buf_init(&k->file, MEM_MISC);
    assert_ok(file_read(tmp_path(&dir, name), 1 << 20, &k->file, NULL));
    k->fd = openat(folder, name, O_RDWR);
    assert_true(k->fd >= 0 && close(folder) == 0);
}

static void small_end(small *k)
{
    buf_deinit(&k->file);
    assert_int_equal(close(k->fd), 0);
}

/* Whether the file loads; if it does, what it gives is right. */
static bool loads(small *k)
{
    uint8_t block[40], state[24], *cell = block;
    const char *why;
    const store_dest d = {
        .token = k->meta.token, .n_tok = 3, .block = &cell, .state = state, .state_pos = 2};
    if (store_load_head(&k->conf, k->fd, store_name_of(&k->meta), &k->x, &why) != STORE_GOOD)
        return false;
    if (store_load(&k->conf, k->fd, &k->x, &d, NULL) != CAIRN_OK) return false;
    assert_memory_equal(block, k->block, sizeof block);
    assert_memory_equal(state, k->state, sizeof state);
    return true;
}

/* Only what fills pages up may change unseen. */
static void every_bit(void **state)
{
    (void)state;
    small k;
    small_begin(&k);
    assert_true(loads(&k));
    const size_t head = STORE_HEAD_FIXED + 12 + 16 + 12 + 4 + 16;
    for (size_t i = 0; i < k.file.len; i++) {
        const bool used = i < head || (i >= STORE_PAGE && i < STORE_PAGE + sizeof k.block) ||
                          (i >= 2 * STORE_PAGE && i < 2 * STORE_PAGE + sizeof k.state);
        for (int bit = 0; bit < 8; bit += used ? 1 : 7) {
            const char c = (char)(k.file.ptr[i] ^ 1 << bit);
            assert_int_equal(pwrite(k.fd, &c, 1, (off_t)i), 1);
            assert_int_equal(loads(&k), !used);
        }
        assert_int_equal(pwrite(k.fd, k.file.ptr + i, 1, (off_t)i), 1);
    }
    assert_true(loads(&k));
    small_end(&k);
}

static void every_length(void **state)
{
    (void)state;
    small k;
    small_begin(&k);
    for (size_t n = 1; n < 100; n++) {
        assert_int_equal(ftruncate(k.fd, (off_t)(k.file.len + n)), 0);
        assert_false(loads(&k));
    }
    for (size_t n = k.file.len; n-- > 0;) {
        assert_int_equal(ftruncate(k.fd, (off_t)n), 0);
        assert_false(loads(&k));
    }
    small_end(&k);
}

/* The hash of the header made anew after a change, so that what is behind it is reached. */
static void rehash(char *p)
{
    uint32_t n;
    memcpy(&n, p + 16, 4);
    memset(p + 24, 0, 8);
    memcpy(p + 24, &(uint64_t){hash64(p, n, 0)}, 8);
}

/* A header that lies and has the right hash: nothing outside of the file is believed or read. */
static void lying_headers(void **state)
{
    (void)state;
    small k;
    static const uint8_t values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    char head[STORE_PAGE];
    small_begin(&k);
    uint32_t n;
    memcpy(&n, k.file.ptr + 16, 4);
    for (size_t i = 32; i < n; i++)
        for (size_t v = 0; v < sizeof values; v++) {
            memcpy(head, k.file.ptr, sizeof head);
            if ((uint8_t)head[i] == values[v]) continue;
            head[i] = (char)values[v];
            rehash(head);
            assert_int_equal(pwrite(k.fd, head, sizeof head, 0), sizeof head);
            const bool ok = loads(&k);
            assert_true(!ok || (i >= 80 && i < 96)); /* the root alone is not the content's */
        }
    small_end(&k);
}

/* Damaged files are removed at the start or when they are read, and counted. */
static void damage_is_removed(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    rig_run *r = rig_whole(1, 0, 100);
    char path[RIG_PATH];
    store_stats st;
    buf b = rig_file(&dir, &o, r, path);
    for (size_t at = 3; at < b.len; at += at < 800 ? 37 : 997) {
        b.ptr[at] ^= 4;
        rig_save(path, &b);
        store *s = rig_open(&o);
        const cairn_status got = rig_read_back(s, r);
        store_flushed f;
        store_flush(s, 1000, &f);
        store_get_stats(s, &st);
        store_close(s);
        assert_int_equal(st.n_corrupt, got != CAIRN_OK);
        assert_int_equal(file_exists(path), got == CAIRN_OK);
        b.ptr[at] ^= 4;
    }
    assert_true(n_warn > 20);
    rig_save(path, &b);
    store *s = rig_open(&o); /* damaged under the store, then written anew */
    b.ptr[STORE_PAGE] ^= 1;
    rig_save(path, &b);
    assert_int_equal(rig_read_back(s, r), CAIRN_E_CORRUPT);
    rig_put_durable(s, r);
    assert_ok(rig_read_back(s, r));
    assert_int_equal(unlink(path), 0); /* another process makes room */
    assert_int_equal(rig_read_back(s, r), CAIRN_E_NOTFOUND);
    rig_put_durable(s, r);
    assert_ok(rig_read_back(s, r));
    assert_int_equal(unlink(path), 0); /* it is seen before the run is called durable */
    rig_put_durable(s, r);
    assert_ok(rig_read_back(s, r));
    store_close(s);
    buf_deinit(&b);
    rig_free(r);
}

/* A run of the same name takes what the former has besides; where that is damaged, the run is written alone. */
static void joined(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    const uint16_t one[RIG_GROUPS] = {3, 1, 0}, other[RIG_GROUPS] = {3, 2, 3};
    const int32_t early = 50, late = 100;
    char path[RIG_PATH];
    for (int damaged = 0; damaged < 2; damaged++) {
        rig_run *a = rig_make(1, 0, 100, one, &early, 1), *b = rig_make(1, 0, 100, other, &late, 1);
        buf file = rig_file(&dir, &o, a, path);
        file.ptr[file.len - STORE_PAGE] ^= (char)damaged; /* in the state, which is the last */
        rig_save(path, &file);
        store *s = rig_open(&o);
        rig_put_durable(s, b);
        assert_ok(rig_read_back(s, b));
        assert_int_equal(rig_read_back(s, a), damaged ? CAIRN_E_NOTFOUND : CAIRN_OK);
        store_close(s);
        assert_int_equal(unlink(path), 0);
        buf_deinit(&file);
        rig_free(a);
        rig_free(b);
    }
}

/* Whole files of others are no damage: they stay until room is needed. */
static void expect_foreign(const char *path, rig_run *r)
{
    store_stats st;
    store_id id;
    store_opts o = rig_opts(dir.path);
    store *s = rig_open(&o);
    store_get_stats(s, &st);
    assert_int_equal(st.n_foreign, 1);
    assert_int_equal(st.n_entry + st.n_corrupt, 0);
    assert_false(rig_found(s, r, &id));
    store_close(s);
    assert_true(file_exists(path));
    o.max_bytes = st.bytes - 1;
    s = rig_open(&o);
    store_flushed f;
    store_flush(s, 1000, &f);
    store_close(s);
    assert_false(file_exists(path));
}

static void foreign(void **state)
{
    (void)state;
    char path[RIG_PATH];
    rig_run *r = rig_whole(1, 0, 100);
    static const size_t other_bytes[RIG_GROUPS] = {5000, 4096, 304};
    store_opts o[6];
    for (int i = 0; i < 6; i++) o[i] = rig_opts(dir.path);
    o[0].numerics = 3;
    o[1].scheme = "q8";
    o[2].block_bytes = other_bytes;
    o[3].state_bytes = RIG_STATE - 8;
    o[4].n_group = 1;
    const uint16_t all[RIG_GROUPS] = {1, 1, 1};
    rig_run *one = rig_make(1, 0, 10, all, NULL, 0);
    for (int i = 0; i < 5; i++) {
        rig_run *put = i < 4 ? r : one; /* of one group: the first block's first */
        store *s = rig_open(&o[i]);
        rig_put_durable(s, put);
        store_close(s);
        rig_path(&dir, put, path);
        expect_foreign(path, put);
    }
    rig_free(one);
    buf b = rig_file(&dir, &o[5], r, path);
    static const struct {
        size_t at;
        uint32_t v;
    } patch[] = {{8, 0x0d0c0b0a}, {12, 2}, {12, 0}, {32, 0}};
    for (size_t i = 0; i < sizeof patch / sizeof *patch; i++) {
        char keep[4];
        memcpy(keep, b.ptr + patch[i].at, 4);
        memcpy(b.ptr + patch[i].at, &patch[i].v, 4);
        rehash(b.ptr);
        rig_save(path, &b);
        expect_foreign(path, r);
        memcpy(b.ptr + patch[i].at, keep, 4);
    }
    buf_deinit(&b);
    rig_free(r);
}

/* Another model's folder, and what is not named as ours is, are left alone. */
static void others_files_stay(void **state)
{
    (void)state;
    store_opts o = rig_opts(dir.path);
    char path[RIG_PATH], odd[520];
    rig_run *r = rig_whole(1, 0, 100);
    store_id id;
    buf b = rig_file(&dir, &o, r, path);
    (void)snprintf(odd, sizeof odd, "%s.bak", path);
    buf_cut(&b, 10);
    rig_save(odd, &b);
    o.fingerprint[3]++;
    store *s = rig_open(&o);
    assert_false(rig_found(s, r, &id));
    store_close(s);
    o.fingerprint[3]--;
    s = rig_open(&o);
    assert_ok(rig_read_back(s, r));
    store_close(s);
    assert_true(file_exists(odd));
    struct stat st;
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    *strrchr(path, '/') = '\0';
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0700);
    assert_int_equal(chmod(path, 0777), 0); /* others may write it: not to be trusted */
    s = rig_open(&o);
    assert_false(rig_found(s, r, &id));
    store_close(s);
    buf_deinit(&b);
    rig_free(r);
}

static void leftovers(void **state)
{
    (void)state;
    const store_opts o = rig_opts(dir.path);
    char path[RIG_PATH], dead[520], alive[520];
    rig_run *r = rig_whole(1, 0, 100);
    buf b = rig_file(&dir, &o, r, path);
    (void)snprintf(dead, sizeof dead, "%s.tmp-1-1", path);
    (void)snprintf(alive, sizeof alive, "%s.tmp-1-2", path);
    rig_save(dead, &b);
    rig_save(alive, &b);
    const int fd = open(alive, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0); /* as its writer does */
    store_close(rig_open(&o));
    assert_false(file_exists(dead));
    assert_true(file_exists(alive));
    assert_int_equal(close(fd), 0);
    store_close(rig_open(&o));
    assert_false(file_exists(alive));
    buf_deinit(&b);
    rig_free(r);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(every_bit), CASE(every_length),      CASE(lying_headers), CASE(damage_is_removed),
        CASE(foreign),   CASE(others_files_stay), CASE(leftovers),     CASE(joined),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
