/* Microseconds of one sampled token, sampler by sampler, over a vocabulary (262,144: Gemma's): logits of which
   a few have the mass, as a model's, and flat ones, the worst case; nanoseconds an entry of the former beside them.
   The limit: reading all logits once.  And eight rows of a step drawn side by side (top-p), by the clock.  With a path
   to libllama.so, llama.cpp's samplers of the same settings draw from the same logits turn about in the same run;
   filling their list of candidates counts, as each step of llama.cpp has it.  Times are this thread's own, medians.
     bench_sample [VOCAB [libllama.so]] */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/workers.h"
#include "cairn/engine.h"
#include "sample/sample.h"

enum { VOCAB = 262144, REPEATS = 51, N_IDS = 4096, MAX_LINKS = 4 };

/* llama.h's, as far as they are used */
typedef struct candidate {
    int32_t id;
    float logit, p;
} candidate;

typedef struct candidates {
    candidate *data;
    size_t size;
    int64_t selected;
    bool sorted;
} candidates;

typedef struct llama {
    void (*apply)(void *, candidates *);
    void (*accept)(void *, int32_t);
    void (*free)(void *);
    void *(*top_k)(int32_t);
    void *(*top_p)(float, size_t);
    void *(*min_p)(float, size_t);
    void *(*typical)(float, size_t);
    void *(*xtc)(float, float, size_t, uint32_t);
    void *(*temp)(float);
    void *(*dist)(uint32_t);
    void *(*greedy)(void);
    void *(*mirostat)(int32_t, uint32_t, float, float, int32_t);
    void *(*mirostat_v2)(uint32_t, float, float);
    void *(*penalties)(int32_t, int32_t, float, float, float);
} llama;

typedef struct setting {
    const char *name;
    cairn_sampling how; /* what it names; T is 0.8 unless it is below 0 */
    int32_t n_logprobs; /* plus 1 */
} setting;

static const setting settings[] = {
    {"greedy", {.temperature = -1}, 0},
    {"temperature", {.top_k = 0}, 0},
    {"temperature, 20 log-probabilities", {.top_k = 0}, 21},
    {"top-k 40", {.top_k = 40}, 0},
    {"top-p 0.95", {.top_p = 0.95f}, 0},
    {"top-k 40, top-p 0.95, min-p 0.05", {.top_k = 40, .top_p = 0.95f, .min_p = 0.05f}, 0},
    {"min-p 0.05", {.min_p = 0.05f}, 0},
    {"typical 0.9", {.typical_p = 0.9f}, 0},
    {"XTC 0.02", {.xtc_probability = 1, .xtc_threshold = 0.02f}, 0},
    {"mirostat 1", {.mirostat = 1}, 0},
    {"mirostat 2", {.mirostat = 2}, 0},
    {"penalties over 4,096", {.repetition_penalty = 1.1f, .presence_penalty = 1}, 0},
    {"DRY over 4,096", {.dry_multiplier = 0.8f}, 0},
};

static int32_t vocab = VOCAB; /* at most that */
static float logits[VOCAB], work[VOCAB];
static candidate list[VOCAB];
static int32_t ids[N_IDS];

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_sample: %s\n", what);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *t)
{
    qsort(t, REPEATS, sizeof *t, by_value);
    return t[REPEATS / 2];
}

static void must_find(void *lib, const char *name, void *to)
{
    char symbol[64];
    (void)snprintf(symbol, sizeof symbol, "llama_sampler_%s", name);
    void *p = dlsym(lib, symbol);
    if (!p) die(dlerror());
    memcpy(to, &p, sizeof p);
}

static void open_llama(const char *path, llama *l)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!lib) die(dlerror());
    must_find(lib, "apply", &l->apply);
    must_find(lib, "accept", &l->accept);
    must_find(lib, "free", &l->free);
    must_find(lib, "init_top_k", &l->top_k);
    must_find(lib, "init_top_p", &l->top_p);
    must_find(lib, "init_min_p", &l->min_p);
    must_find(lib, "init_typical", &l->typical);
    must_find(lib, "init_xtc", &l->xtc);
    must_find(lib, "init_temp", &l->temp);
    must_find(lib, "init_dist", &l->dist);
    must_find(lib, "init_greedy", &l->greedy);
    must_find(lib, "init_mirostat", &l->mirostat);
    must_find(lib, "init_mirostat_v2", &l->mirostat_v2);
    must_find(lib, "init_penalties", &l->penalties);
}

/* Its chain for the same; how many links. */
static int links_of(const llama *l, const cairn_sampling *p, void *link[MAX_LINKS + 2])
{
    int n = 0;
    if (p->repetition_penalty != 1)
        link[n++] = l->penalties(vocab, N_IDS, p->repetition_penalty, 0, p->presence_penalty);
    for (int32_t i = 0; n && i < N_IDS; i++) l->accept(link[0], ids[i]);
    if (p->top_k) link[n++] = l->top_k(p->top_k);
    if (p->typical_p < 1) link[n++] = l->typical(p->typical_p, 1);
    if (p->top_p < 1) link[n++] = l->top_p(p->top_p, 1);
    if (p->min_p > 0) link[n++] = l->min_p(p->min_p, 1);
    if (p->xtc_probability > 0) link[n++] = l->xtc(1, p->xtc_threshold, 1, 1);
    if (p->temperature > 0) link[n++] = l->temp(p->temperature);
    if (p->mirostat == 1) link[n++] = l->mirostat(vocab, 1, 5, 0.1f, 100);
    if (p->mirostat == 2) link[n++] = l->mirostat_v2(1, 5, 0.1f);
    if (!p->mirostat) link[n++] = p->temperature > 0 ? l->dist(1) : l->greedy();
    return n;
}

static double theirs(const llama *l, void *const *link, int n)
{
    candidates c = {list, (size_t)vocab, -1, false};
    const double t0 = now_us();
    for (int32_t i = 0; i < vocab; i++) list[i] = (candidate){i, logits[i], 0};
    for (int i = 0; i < n; i++) l->apply(link[i], &c);
    if (c.selected < 0) die("llama.cpp chose nothing");
    return now_us() - t0;
}

static double ours(sampler *s, const cairn_sampling *how, int32_t n_logprobs)
{
    sample_state st = sample_begin(how);
    const sample_in in = {
        .how = how, .ids = ids, .n_ids = N_IDS, .n_logprobs = n_logprobs, .state = &st};
    sample_out out;
    cairn_diag dg;
    memcpy(work, logits, (size_t)vocab * sizeof *work);
    const double t0 = now_us();
    if (sample_step(s, work, &in, &out, &dg) != CAIRN_OK) die(dg.message);
    return now_us() - t0;
}

static cairn_sampling full(cairn_sampling how)
{
    const cairn_sampling n = sample_neutral();
    how.temperature = how.temperature < 0 ? 0 : 0.8f;
    how.top_p = how.top_p > 0 ? how.top_p : 1;
    how.typical_p = how.typical_p > 0 ? how.typical_p : 1;
    how.repetition_penalty = how.repetition_penalty > 0 ? how.repetition_penalty : 1;
    how.presence_window = how.frequency_window = N_IDS;
    how.mirostat_tau = n.mirostat_tau;
    how.mirostat_eta = n.mirostat_eta;
    how.dry_base = n.dry_base;
    how.dry_allowed_length = n.dry_allowed_length;
    return how;
}

static void measure(sampler *s, const llama *l, const setting *set, double out[2])
{
    const cairn_sampling how = full(set->how);
    double mine[REPEATS], its[REPEATS] = {0};
    void *link[MAX_LINKS + 2];
    /* log-probabilities and DRY are not among its links: the server does the first, a vocabulary is needed for
       the other */
    const bool both = l->apply && !set->n_logprobs && how.dry_multiplier == 0;
    const int n = both ? links_of(l, &how, link) : 0;
    for (int i = 0; i < REPEATS; i++) {
        mine[i] = ours(s, &how, set->n_logprobs - 1);
        if (both) its[i] = theirs(l, link, n);
    }
    for (int i = 0; i < n; i++) l->free(link[i]);
    out[0] = median(mine);
    out[1] = median(its);
}

static void make_logits(bool flat)
{
    for (uint64_t i = 0; i < (uint64_t)vocab; i++) {
        const double u = rng_unit(7, 0, i);
        logits[i] = (float)(flat ? 4 * u : -2.5 * log(1 + u * vocab) + rng_unit(7, 1, i));
    }
}

typedef uint32_t words4 __attribute__((vector_size(16))); /* every machine's register */

/* Of logits that lie where a step left them, as for the samplers. */
static double reading(void)
{
    double t[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        memcpy(work, logits, (size_t)vocab * sizeof *work);
        const double t0 = now_us();
        words4 a = {0}, b = a, p, q;
        for (int32_t k = 0; k + 8 <= vocab; k += 8) {
            memcpy(&p, work + k, sizeof p);
            memcpy(&q, work + k + 4, sizeof q);
            a ^= p;
            b ^= q;
        }
        a ^= b;
        __asm__ volatile("" ::"m"(a));
        t[i] = now_us() - t0;
    }
    return median(t);
}

enum { ROWS = 8 };

typedef struct lanes {
    int32_t n;
    sampler *s[ROWS];
    cairn_sampling how;
} lanes;

static float row[ROWS][VOCAB];

/* As engine/draw.c: lane t of n has rows t, t + n, … */
static void draw_lane(void *ctx, int32_t t, int32_t i_thread)
{
    const lanes *l = ctx;
    (void)i_thread;
    for (int32_t i = t; i < ROWS; i += l->n) {
        const sample_in in = {.how = &l->how, .ids = ids, .n_ids = i + 1, .n_logprobs = -1};
        sample_out out;
        cairn_diag dg;
        if (sample_step(l->s[t], row[i], &in, &out, &dg) != CAIRN_OK) die(dg.message);
    }
}

static void fill_row(void *ctx, int32_t i, int32_t i_thread)
{
    (void)ctx;
    (void)i_thread;
    memcpy(row[i], logits, (size_t)vocab * sizeof *logits);
}

/* The rows were written by the threads, as those of a head are. */
static double side_by_side(int32_t n_threads)
{
    lanes l = {.n = n_threads, .how = full((cairn_sampling){.top_p = 0.95f})};
    double t[REPEATS];
    workers *pool = NULL;
    if (workers_new(n_threads, &pool) != CAIRN_OK) die("no threads");
    for (int32_t i = 0; i < l.n; i++)
        if (sampler_new(vocab, N_IDS, NULL, &l.s[i]) != CAIRN_OK) die("no memory");
    workers_begin(pool);
    for (int i = 0; i < REPEATS; i++) {
        workers_run(pool, ROWS, fill_row, NULL);
        const uint64_t t0 = clock_ns();
        workers_run(pool, l.n, draw_lane, &l);
        t[i] = (double)(clock_ns() - t0) * 1e-3;
    }
    workers_end(pool);
    for (int32_t i = 0; i < l.n; i++) sampler_free(l.s[i]);
    workers_free(pool);
    return median(t);
}

int main(int argc, char **argv)
{
    llama l = {0};
    sampler *s = NULL;
    if (argc > 1) vocab = atoi(argv[1]);
    if (vocab < 1 || vocab > VOCAB) die("a vocabulary of 1 to 262144");
    if (argc > 2) open_llama(argv[2], &l);
    if (sampler_new(vocab, N_IDS, NULL, &s) != CAIRN_OK) die("no memory");
    for (uint64_t i = 0; i < N_IDS; i++)
        ids[i] = (int32_t)(rng_u64(8, 0, i) % (uint64_t)(vocab < 3000 ? vocab : 3000));
    printf("%-36s %8s %8s %10s %8s %10s\n", "microseconds a token", "model's", "ns/entry",
           "llama.cpp", "flat", "llama.cpp");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        double t[4];
        for (int flat = 0; flat < 2; flat++) {
            make_logits(flat);
            measure(s, &l, &settings[i], t + 2L * flat);
        }
        printf("%-36s", settings[i].name);
        printf(" %8.1f %8.3f", t[0], t[0] * 1e3 / vocab);
        for (int k = 1; k < 4; k++)
            t[k] > 0 ? printf(" %*.1f", k % 2 ? 10 : 8, t[k]) : printf(" %10s", "-");
        printf("\n");
    }
    const double least = reading();
    printf("%-36s %8.1f %8.3f\n", "reading the logits once", least, least * 1e3 / vocab);
    make_logits(false);
    for (int32_t n = 1; n <= 2; n++)
        printf("%d rows, top-p 0.95, %d thread%-12s %8.1f\n", ROWS, n, n > 1 ? "s" : "",
               side_by_side(n));
    sampler_free(s);
    return 0;
}
