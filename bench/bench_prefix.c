/* What the prefix cache itself costs, beside what it saves: the look-up of a long prompt, with few entries and
   with thousands; taking one up; making it known.  The limit of a look-up is reading the prompt and what it is
   compared with once: a pass over both is timed in the same run.
   Then what a hit costs a real model: the last block, which ends inside, and the recurrent state are copied.
     bench_prefix [tokens of the prompt] [entries] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "cache/cache.h"

enum { REPEATS = 9, STEP = 512, ENTRY = 192, HIT = 4096 + 40, MOST_LAYERS = 30 };

static const cache_layer_spec layers[] = {
    {1, 8, 8, .window = 0}, {1, 8, 8, .window = 4096}, {.n_state = 16}};
static const cachespec specs[] = {{1, layers}, {2, layers}, {3, layers}};
static const char *const names[] = {"full attention", "full and windows",
                                    "full, windows and states"};

static seq_id open_on(cache *c, const int32_t *ids, int32_t n)
{
    seq_id q;
    const cache_ask a = {.ids = ids, .n_ids = n, .n_pos = n};
    if (cache_open_on(c, &a, &q) != CAIRN_OK) {
        (void)fprintf(stderr, "bench_prefix: no room\n");
        exit(1);
    }
    return q;
}

/* A sequence of n rows is computed and leaves them; answers the seconds of making them known. */
static double leave(cache *c, const int32_t *ids, int32_t n)
{
    double sum = 0;
    const seq_id q = open_on(c, ids, n);
    for (int32_t at = cache_len(c, q); at < n; at += STEP) {
        const int32_t rows = at + STEP < n ? STEP : n - at;
        cache_reserve(c, q, rows);
        cache_commit(c, q, rows);
        const double t0 = clock_s();
        cache_publish(c, q, ids);
        sum += clock_s() - t0;
    }
    const double t0 = clock_s();
    cache_mark(c, q, ids, CACHE_TURN);
    sum += clock_s() - t0;
    cache_close(c, q);
    return sum;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_take_up(cache *c, int32_t *ids, int32_t n)
{
    double t[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        const double t0 = clock_s();
        const seq_id q = open_on(c, ids, n + 1);
        t[i] = clock_s() - t0;
        if (cache_len(c, q) != n) {
            (void)fprintf(stderr, "bench_prefix: %d of %d rows are known\n", (int)cache_len(c, q),
                          (int)n);
            exit(1);
        }
        cache_close(c, q);
    }
    qsort(t, REPEATS, sizeof *t, by_size);
    return t[REPEATS / 2];
}

static volatile int64_t sink;

static double read_twice(const int32_t *ids, int32_t n)
{
    double best = 1;
    for (int r = 0; r < REPEATS; r++) {
        int64_t sum = 0;
        const double t0 = clock_s();
        for (int32_t i = 0; i < n; i++) sum += ids[i] ^ ids[n - 1 - i];
        sink = sum;
        const double t = clock_s() - t0;
        best = t < best ? t : best;
    }
    return best;
}

static void measure(int kind, int32_t *ids, int32_t n, int32_t n_entries)
{
    cache *c = NULL;
    cairn_diag dg = {0};
    const uint64_t room = UINT64_C(8) << 30;
    const kv_scheme f16 = kv_plain(KV_F16);
    const cache_opts o = {f16,  1,   n + 64, STEP, cache_bytes(&specs[kind], &f16, STEP, n + 64),
                          room, room};
    if (cache_new(&specs[kind], &o, &c, &dg) != CAIRN_OK) {
        (void)fprintf(stderr, "bench_prefix: %s\n", dg.message);
        exit(1);
    }
    const double known = leave(c, ids, n), few = median_take_up(c, ids, n);
    int32_t other[ENTRY];
    for (int32_t k = 0; k < n_entries;
         k++) { /* all begin as the prompt does, and part within a block */
        for (int32_t i = 0; i < ENTRY; i++)
            other[i] = i < 70 ? ids[i] : (int32_t)(rng_u64(7, (uint64_t)k, (uint64_t)i) % 50000);
        (void)leave(c, other, ENTRY);
    }
    const double many = median_take_up(c, ids, n), t0 = clock_s();
    cache_forget(c);
    printf("%-26s %8.3f %8.3f %8.3f %8.3f %8.3f\n", names[kind], known * 1e3, few * 1e3, many * 1e3,
           (clock_s() - t0) * 1e3, read_twice(ids, n) * 1e3);
    cache_free(c);
}

/* Models' shapes: layers that are all alike. */
static const struct {
    const char *name;
    int32_t n_layer;
    cache_layer_spec layer;
} models[] = {{"SmolLM2 135M", 30, {3, 64, 64, .window = 0}},
              {"Qwen2.5 1.5B", 28, {2, 128, 128, .window = 0}},
              {"Mamba-2 130M", 24, {.n_state = 24 * 64 * 128 + 3 * 1792}}};

/* A hit behind HIT tokens whose last block and state have been written, as they are after a prefill. */
static void measure_hit(int model, int32_t *ids)
{
    cache *c = NULL;
    cairn_diag dg = {0};
    cache_layer_spec l[MOST_LAYERS];
    const cachespec spec = {models[model].n_layer, l};
    for (int32_t i = 0; i < spec.n_layer; i++) l[i] = models[model].layer;
    const kv_scheme f16 = kv_plain(KV_F16);
    const uint64_t one = cache_bytes(&spec, &f16, STEP, HIT + 64);
    const cache_opts o = {f16, 1, HIT + 64, STEP, one, 2 * one, 2 * one};
    if (cache_new(&spec, &o, &c, &dg) != CAIRN_OK) {
        (void)fprintf(stderr, "bench_prefix: %s\n", dg.message);
        exit(1);
    }
    const size_t state = cache_state_bytes(&spec);
    const size_t block = (size_t)(cache_bytes(&spec, &f16, STEP, 1) - state);
    const seq_id q = open_on(c, ids, HIT);
    for (int32_t at = 0; at < HIT; at = cache_len(c, q)) {
        const int32_t rows = at + STEP < HIT ? STEP : HIT - at;
        cache_reserve(c, q, rows);
        cache_commit(c, q, rows);
        cache_publish(c, q, ids);
    }
    if (block) memset(cache_blocks(c, q)[0][HIT / KV_BLOCK], 1, block);
    if (state) memset(cache_state(c, q), 1, state);
    cache_mark(c, q, ids, CACHE_TURN);
    cache_close(c, q);
    /* it parts from what was there inside the last block, which is copied; a state is there at the end alone */
    const int32_t n = state ? HIT : HIT - 8;
    printf("%-26s %8.2f %8.2f %8.3f\n", models[model].name, (double)block / (1 << 20),
           (double)state / (1 << 20), median_take_up(c, ids, n) * 1e3);
    cache_free(c);
}

int main(int argc, char **argv)
{
    const int32_t n = argc > 1 ? atoi(argv[1]) : 131072,
                  n_entries = argc > 2 ? atoi(argv[2]) : 10000;
    if (n < HIT || n > 1 << 22 || n_entries < 0 || n_entries > 1 << 16) {
        (void)fprintf(stderr, "usage: bench_prefix [tokens] [entries]\n");
        return 2;
    }
    int32_t *ids = mem_alloc(((size_t)n + 1) * sizeof *ids, MEM_MISC);
    if (!ids) return 1;
    for (int32_t i = 0; i <= n; i++) ids[i] = (int32_t)(rng_u64(3, 0, (uint64_t)i) % 50000);
    printf(
        "%d tokens, %d entries besides; milliseconds, medians of %d\n%-26s %8s %8s %8s %8s %8s\n",
        (int)n, (int)n_entries, REPEATS, "", "leave", "take up", "…beside", "forget", "read 2x");
    for (int kind = 0; kind < 3; kind++) measure(kind, ids, n, n_entries);
    printf("a hit of %d tokens; MiB, milliseconds\n%-26s %8s %8s %8s\n", HIT, "", "block", "state",
           "take up");
    for (int m = 0; m < (int)(sizeof models / sizeof *models); m++) measure_hit(m, ids);
    mem_free(ids);
    return 0;
}
