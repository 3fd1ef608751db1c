/* The disk tier: entries restored into scattered blocks beside a plain read of the same files into one buffer,
   cold (dropped from the page cache) and warm, and what writing costs.  Medians of rounds in which they take turns.
     bench_store [folder on the disk to measure, default .] [MiB, default 512] [rounds, default 7]
   The folder needs room for that and keeps nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cache/store_priv.h"

enum {
    GROUPS = 2,
    PLAIN_BYTES = 4 << 20, /* of one read of the plain reader: as large as ours at most */
    MAX_ROUNDS = 99,
    MAX_RUNS = 4096
};
/* Qwen2.5-1.5B's: 28 layers of 2 heads of 128, f16; and a windowed group as large as Gemma 3 270M's. */
static const size_t block_bytes[GROUPS] = {28 * 2 * 2 * 128 * 64 * 2, 15 * 256 * 2 * 64 * 2};

typedef struct bench {
    char path[PATH_MAX + 80]; /* of the model's folder */
    store_opts opts;
    int32_t n_run;
    store_run run[MAX_RUNS];
    uint8_t *pool; /* blocks of one run, in an order that is not the file's */
    uint8_t *cell[STORE_MAX_BLOCKS * GROUPS];
    int32_t token[STORE_MAX_TOKENS];
    uint64_t bytes;
} bench;

static void fail(const char *what)
{
    fprintf(stderr, "bench_store: %s: %s\n", what, strerror(errno));
    exit(1);
}

static size_t run_bytes(void)
{
    return STORE_MAX_BLOCKS * (block_bytes[0] + block_bytes[1]);
}

static void scatter(bench *b)
{
    size_t at = 0;
    b->pool = mem_map(run_bytes(), MEM_CACHE);
    if (!b->pool) fail("memory");
    for (size_t i = 0; i < run_bytes() / 8; i++)
        memcpy(b->pool + i * 8, &(uint64_t){i * 0x9e3779b97f4a7c15u}, 8);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < STORE_MAX_BLOCKS; i++, at += block_bytes[g])
            b->cell[(i * 7 % STORE_MAX_BLOCKS) * GROUPS + g] = b->pool + at;
}

static store *open_store(const store_opts *o)
{
    cairn_diag dg;
    store *s = NULL;
    if (store_open(o, &s, &dg) != CAIRN_OK) fail(dg.message);
    if (!store_scanned(s, 60000)) fail("scan");
    return s;
}

static double write_all(bench *b)
{
    store_flushed f;
    store_done d;
    store_key k = {1, 2};
    store *s = open_store(&b->opts);
    const double t0 = clock_s();
    for (int32_t i = 0; i < b->n_run; i++) {
        store_run *r = &b->run[i];
        *r = (store_run){.root = {1, 2},
                         .parent = k,
                         .first_block = i * STORE_MAX_BLOCKS,
                         .n_block = STORE_MAX_BLOCKS,
                         .token = b->token,
                         .n_tok = STORE_MAX_TOKENS,
                         .block = (const uint8_t *const *)b->cell};
        for (int32_t n = 0; n < STORE_MAX_BLOCKS; n++)
            k = store_block_key(k, b->token + n * KV_BLOCK, KV_BLOCK);
        if (store_put(s, r, NULL) != CAIRN_OK) fail("put");
    }
    store_flush(s, 600000, &f);
    const double t1 = clock_s();
    while (store_poll(s, &d)) {
    }
    store_stats st;
    store_get_stats(s, &st);
    b->bytes = st.bytes;
    if (f.durable != (uint32_t)b->n_run) fail("not all are durable");
    store_close(s);
    return t1 - t0;
}

typedef void (*each_fn)(int fd, size_t size, void *ctx);

static void each_file(const bench *b, each_fn fn, void *ctx)
{
    const struct dirent *e;
    struct stat st;
    DIR *d = opendir(b->path);
    if (!d) fail(b->path);
    while ((e = readdir(d)) != NULL) {
        const int fd = openat(dirfd(d), e->d_name, O_RDONLY);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) fn(fd, (size_t)st.st_size, ctx);
        if (fd >= 0) (void)close(fd);
    }
    (void)closedir(d);
}

static void drop_pages(int fd, size_t size, void *ctx)
{
    (void)size, (void)ctx;
    (void)fsync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void read_plain(int fd, size_t size, void *ctx)
{
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* as the store asks for */
    for (size_t at = 0; at < size;) {
        const size_t n = size - at < PLAIN_BYTES ? size - at : PLAIN_BYTES;
        const ssize_t got = pread(fd, (char *)ctx + at, n, (off_t)at);
        if (got <= 0) fail("read");
        at += (size_t)got;
    }
}

static double plain(const bench *b, bool cold)
{
    static char *to;
    if (!to) to = mem_map(run_bytes() + (1 << 20), MEM_IO);
    if (!to) fail("memory");
    if (cold) each_file(b, drop_pages, NULL);
    const double t0 = clock_s();
    each_file(b, read_plain, to);
    return clock_s() - t0;
}

static double restore(const bench *b, store *s, bool cold)
{
    store_key k = {1, 2};
    store_id id;
    const store_dest d = {.token = b->token, .n_tok = STORE_MAX_TOKENS, .block = b->cell};
    if (cold) each_file(b, drop_pages, NULL);
    const double t0 = clock_s();
    for (int32_t i = 0; i < b->n_run; i++) {
        for (int32_t n = 0; n < STORE_MAX_BLOCKS; n++)
            k = store_block_key(k, b->token + n * KV_BLOCK, KV_BLOCK);
        if (store_find(s, (store_key){1, 2}, k, &id, 1) != 1) fail("find");
        if (store_read(s, id, &d, NULL) != CAIRN_OK) fail("restore");
    }
    return clock_s() - t0;
}

/* The best of some rounds over the first n bytes. */
static double hash_rate(const bench *b, size_t n)
{
    double best = 0;
    uint64_t h = 0;
    for (int r = 0; r < 20; r++) {
        const double t0 = clock_s();
        h ^= hash64(b->pool, n, h);
        const double rate = (double)n / 1e9 / (clock_s() - t0);
        best = rate > best ? rate : best;
    }
    return h ? best : 0; /* so that it is computed */
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

/* Shares are medians of rounds' own: a shared disk's speed drifts from one round to the next. */
static void compare(bench *b, int rounds, bool cold)
{
    double p[MAX_ROUNDS], r[MAX_ROUNDS], u[MAX_ROUNDS], share[MAX_ROUNDS], blind_share[MAX_ROUNDS];
    store_opts o = b->opts;
    store *s = open_store(&o);
    o.unverified = true;
    store *blind = open_store(&o);
    for (int i = 0; i < rounds; i++) {
        p[i] = plain(b, cold);
        r[i] = restore(b, s, cold);
        u[i] = restore(b, blind, cold);
        share[i] = 100 * p[i] / r[i];
        blind_share[i] = 100 * p[i] / u[i];
    }
    const double gb = (double)b->bytes / 1e9;
    printf("%s: plain read %.2f GB/s, restore %.2f GB/s (%.0f %% of it), without hashes %.2f GB/s "
           "(%.0f %%)\n",
           cold ? "cold" : "warm", gb / median(p, rounds), gb / median(r, rounds),
           median(share, rounds), gb / median(u, rounds), median(blind_share, rounds));
    store_close(s);
    store_close(blind);
}

/* A prompt of 128k tokens, hashed and looked up among entries that all lie in memory. */
static void lookups(bench *b)
{
    enum { ENTRIES = 10000, PROMPT_BLOCKS = 2048 };
    store_index ix;
    store_meta m = {.n_block = STORE_MAX_BLOCKS, .n_tok = STORE_MAX_TOKENS};
    double best = 1e9;
    int found = 0;
    index_init(&ix);
    for (int i = 0; i < ENTRIES; i++) { /* the first of them are the prompt's path */
        m.first_block = i * STORE_MAX_BLOCKS;
        memcpy(m.token, b->token, sizeof m.token);
        store_keys_fill(&m);
        m.parent = m.key[STORE_MAX_BLOCKS - 1];
        store_entry *e = index_reserve(&ix) ? index_entry(&m, 1) : NULL;
        if (!e) fail("memory");
        (void)index_add(&ix, e);
    }
    for (int r = 0; r < 20; r++) {
        store_key k = {0, 0};
        int32_t block;
        const double t0 = clock_s();
        for (int i = 0; i < PROMPT_BLOCKS; i++) {
            k = store_block_key(k, b->token + i % STORE_MAX_BLOCKS * KV_BLOCK, KV_BLOCK);
            found += index_find(&ix, m.root, k, STORE_NONE, &block) != STORE_NONE;
        }
        const double s = clock_s() - t0;
        best = s < best ? s : best;
    }
    printf("%d blocks hashed and found among %d entries: %.2f ms at best (%d found)\n",
           PROMPT_BLOCKS, ENTRIES, best * 1e3, found / 20);
    index_deinit(&ix);
}

static void remove_all(const bench *b)
{
    const struct dirent *e;
    DIR *d = opendir(b->path);
    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.') (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d) (void)closedir(d);
    (void)rmdir(b->path);
    (void)rmdir(b->opts.dir);
}

int main(int argc, char **argv)
{
    static bench b;
    char dir[PATH_MAX + 40], at[PATH_MAX];
    const double mib = argc > 2 ? atof(argv[2]) : 512;
    const int rounds = argc > 3 ? atoi(argv[3]) : 7;
    if (!realpath(argc > 1 ? argv[1] : ".", at)) fail("folder");
    (void)snprintf(dir, sizeof dir, "%s/bench_store.%ld", at, (long)getpid());
    (void)snprintf(b.path, sizeof b.path, "%s/%032d", dir, 0);
    b.n_run = (int32_t)(mib * 1048576 / (double)run_bytes()) + 1;
    if (b.n_run > MAX_RUNS || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: bench_store [folder [MiB [rounds]]]\n");
        return 2;
    }
    b.opts =
        (store_opts){.dir = dir, .scheme = "f16", .n_group = GROUPS, .block_bytes = block_bytes};
    b.opts.queue_bytes = UINT64_MAX;
    for (int i = 0; i < STORE_MAX_TOKENS; i++) b.token[i] = i * 31 % 1000;
    scatter(&b);
    const double s = write_all(&b);
    printf("%d entries of %d positions, %.1f MB each; written and synced at %.2f GB/s\n", b.n_run,
           STORE_MAX_TOKENS, (double)run_bytes() / 1e6, (double)b.bytes / 1e9 / s);
    printf("hash alone: %.1f GB/s of %zu MB, %.1f GB/s of 256 KiB again and again\n",
           hash_rate(&b, run_bytes()), run_bytes() / 1000000, hash_rate(&b, 256 << 10));
    lookups(&b);
    compare(&b, rounds, true);
    compare(&b, rounds, false);
    remove_all(&b);
    return 0;
}
