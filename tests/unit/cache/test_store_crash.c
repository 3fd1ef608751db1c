/* A writer, or two at one folder, killed at any moment: what they had heard to be durable is found and right at the next
   start, and nothing wrong is ever given.  The folder grows from one life to the next.
     test_store_crash [ROUNDS [SEED]]      25 rounds; `make test-crash`: 500 */
#include "store_rig.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"

enum { PATHS = 4, CHUNKS = 6, CHUNK_BLOCKS = 8, MAX_LIFE_US = 50000 };

static uint64_t n_round = 25, seed = 1;

typedef struct known { /* the parent's: [path][chunk] heard to be durable */
    bool durable[PATHS][CHUNKS];
    uint32_t n;
} known;

/* The lengths differ, so that a chunk's last block is partial in some paths. */
static rig_run *make_chunk(int path, int chunk)
{
    const int32_t n_tok = CHUNK_BLOCKS * KV_BLOCK - (chunk == CHUNKS - 1 ? path * 7 : 0);
    return rig_whole((uint64_t)path * 8, chunk * CHUNK_BLOCKS, n_tok);
}

/* Never returns: puts chunks in an order of its own and tells which are durable. */
static void live(const char *dir, uint64_t round, uint64_t who, int tell)
{
    store *s = NULL;
    store_done d;
    store_stats st;
    store_opts o = rig_opts(dir);
    static rig_run *runs[PATHS * CHUNKS];
    if (store_open(&o, &s, NULL) != CAIRN_OK) _exit(1);
    for (uint64_t i = 0;; i++) {
        const uint64_t x = rng_u64(seed + 1000 * who, round, i);
        const uint8_t which = (uint8_t)(x % (PATHS * CHUNKS));
        if (!runs[which]) runs[which] = make_chunk(which / CHUNKS, which % CHUNKS);
        (void)store_put(s, &runs[which]->run, &runs[which]);
        store_idle(s, true);
        (void)usleep((useconds_t)((x >> 32) % 200));
        store_idle(s, false); /* most lives end within a file, between two of its tensors */
        (void)usleep((useconds_t)((x >> 48) % 4000));
        if (x >> 60 == 0) store_flush(s, 5, &(store_flushed){0});
        while (store_poll(s, &d)) {
            const uint8_t told = (uint8_t)((rig_run **)d.user - runs);
            if (d.result == STORE_DURABLE && write(tell, &told, 1) != 1) _exit(2);
        }
        store_get_stats(s, &st);
        if (st.n_corrupt) _exit(3); /* the other one's, half written */
    }
}

/* Half of the lives are counted from the first run that is durable: a slow disk has none in the time of the others. */
static void await_word(int from)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
}

static void hear(int from, known *k)
{
    uint8_t which;
    while (read(from, &which, 1) == 1) {
        bool *at = &k->durable[which / CHUNKS][which % CHUNKS];
        k->n += !*at;
        *at = true;
    }
}

/* All that was heard is there; all that is there is right (rig_read_back fails the test otherwise). */
static void check(const char *dir, const known *k)
{
    const store_opts o = rig_opts(dir);
    store *s = NULL;
    store_stats st;
    assert_ok(store_open(&o, &s, NULL));
    assert_true(store_scanned(s, TEST_WAIT_MS));
    for (int i = 0; i < PATHS * CHUNKS; i++) {
        rig_run *r = make_chunk(i / CHUNKS, i % CHUNKS);
        const cairn_status got = rig_read_back(s, r);
        assert_true(got == CAIRN_OK ||
                    (got == CAIRN_E_NOTFOUND && !k->durable[i / CHUNKS][i % CHUNKS]));
        rig_free(r);
    }
    store_get_stats(s, &st);
    assert_int_equal(st.n_corrupt, 0); /* a name is given to whole files alone */
    store_close(s);
}

static uint32_t n_torn; /* files that were being written */

static int count_tmp(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type;
    n_torn += store_name_is_tmp(path + at->base);
    return 0;
}

/* Odd rounds have two writers. */
static void live_and_die(const char *dir, uint64_t round, known *k)
{
    int tell[2], status;
    pid_t child[2];
    const int n = 1 + (int)(round % 2);
    assert_int_equal(pipe(tell), 0);
    for (int i = 0; i < n; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] > 0) continue;
        (void)close(tell[0]);
        live(dir, round, (uint64_t)i, tell[1]);
    }
    assert_int_equal(close(tell[1]), 0);
    if (round % 2) await_word(tell[0]);
    for (int i = 0; i < n; i++) {
        (void)usleep((useconds_t)(rng_u64(seed, 7 + (uint64_t)i, round) % MAX_LIFE_US));
        assert_int_equal(kill(child[i], SIGKILL), 0);
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFSIGNALED(status)); /* it did not end by itself */
    }
    hear(tell[0], k);
    assert_int_equal(close(tell[0]), 0);
}

static void killed(void **state)
{
    (void)state;
    tmp_dir dir;
    known k = {.n = 0};
    uint32_t n_heard = 0;
    assert_true(tmp_make(&dir));
    for (uint64_t round = 0; round < n_round; round++) {
        live_and_die(dir.path, round, &k);
        assert_int_equal(nftw(dir.path, count_tmp, 8, FTW_PHYS), 0);
        check(dir.path, &k);
        if (k.n == PATHS * CHUNKS || round % 16 == 15) { /* from nothing again */
            n_heard += k.n;
            k = (known){.n = 0};
            assert_true(tmp_drop(&dir) && tmp_make(&dir));
        }
    }
    print_message("%u runs were durable in %u lives; %u writes were cut off\n", n_heard + k.n,
                  (uint32_t)n_round, n_torn);
    assert_true(n_heard + k.n > 0 && n_torn > 0);
    assert_true(tmp_drop(&dir));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed)};
    if (argc > 1) n_round = strtoull(argv[1], NULL, 10);
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
