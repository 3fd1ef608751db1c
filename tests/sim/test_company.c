/* 64 requests at once on real kernels: each answer has the bits that it has alone, whatever runs beside it, in
   whatever order it came, with whatever cancelled.

     test_company [SECONDS MODEL...]     SECONDS for each; by default some tiny models, 200 requests each

   Half of it with a place for each request, so that steps decode up to 64 rows, half with places for a quarter, so
   that most wait and are let in as others leave.

   make test-company: minutes, the plain build and the thread sanitizer's. */
#include "test.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/thread.h"
#include "cairn/engine.h"

enum {
    AT_ONCE = 64,  /* in flight */
    MAX_LEN = 400, /* of a prompt */
    MAX_NEW = 40,
    PATIENCE =
        1200 /* s without one answer: what hangs; the thread sanitizer makes kernels 50 times as slow */
};

/* Different requests, each of which is first answered alone, and requests of a model and number of places where no time
   is given; sanitizers take ten times as long, and more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ASKS = 16, SHORT = AT_ONCE };
#else
enum { ASKS = 32, SHORT = 100 };
#endif

static const char *const tiny[] = {"tests/golden/gguf/llama/model.gguf",
                                   "tests/golden/gguf/gemma3/model.gguf",
                                   "tests/golden/gguf/falcon_h1/model.gguf"};

typedef struct answer {
    int32_t n, ids[MAX_NEW];
    float logprob[MAX_NEW];
    int32_t n_prompt; /* of the prompt, told by who asked for it */
    float prompt[MAX_LEN];
    cairn_finish finish;
    bool done;
} answer;

typedef struct ask {
    int32_t ids[MAX_LEN];
    cairn_request r;
    answer want;
} ask;

/* A place for one request in flight; got: guarded by mu until done. */
typedef struct place {
    const ask *a;
    cairn_request_id id;
    bool cancelled;
    answer got;
} place;

static ask asks[ASKS];
static place places[AT_ONCE];
static mutex mu;
static cond some_done;

static void on_event(void *ctx, const cairn_event *ev)
{
    answer *a = ctx;
    mutex_lock(&mu);
    if (ev->kind == CAIRN_EV_PROMPT) {
        a->prompt[a->n_prompt++] = ev->logprob;
    } else if (ev->kind == CAIRN_EV_TOKEN) {
        a->ids[a->n] = ev->id;
        a->logprob[a->n++] = ev->logprob;
    } else if (ev->kind == CAIRN_EV_DONE) {
        a->finish = ev->finish;
        a->done = true;
        cond_signal(&some_done);
    }
    mutex_unlock(&mu);
}

/* Half of them begin alike; long and short, greedy and drawn, high and low. */
static void make_ask(ask *a, uint64_t k, int32_t vocab, int32_t ctx)
{
    const uint64_t u = rng_u64(3, 0, k);
    const int32_t longest = min_i32(MAX_LEN, ctx - MAX_NEW);
    const int32_t n = 1 + (int32_t)(u % (u >> 60 < 12 ? 60 : (uint64_t)longest));
    for (int32_t i = 0; i < n; i++) {
        const uint64_t from = k % 2 && i < n - 10 ? 1000 : k;
        a->ids[i] = (int32_t)(rng_u64(4, from, (uint64_t)i) % (uint64_t)vocab);
    }
    cairn_request_init(&a->r);
    a->r.ids = a->ids;
    a->r.n_ids = (size_t)n;
    a->r.max_tokens = 1 + (int32_t)((u >> 16) % MAX_NEW);
    a->r.n_logprobs = 0;
    a->r.ignore_eos = true;
    a->r.priority = (int32_t)((u >> 24) % 5) - 2;
    a->r.sampling.seed = u;
    a->r.prompt_logprobs = k % 4 == 3;
    a->r.prompt_only = k % 8 == 7;
    if (k % 3) a->r.sampling.temperature = 0.8f;
    if (k % 4 == 1) a->r.sampling.top_p = 0.9f;
    if (k % 5 == 1) a->r.sampling.repetition_penalty = 1.2f;
    a->want = (answer){0};
}

static void wait_for(const answer *a)
{
    mutex_lock(&mu);
    for (int s = 0; s < PATIENCE && !a->done; s++) (void)cond_wait_ms(&some_done, &mu, 1000);
    const bool done = a->done;
    mutex_unlock(&mu);
    assert_true(done);
}

static cairn_engine *open_engine(cairn_model *m, int32_t seqs, uint64_t prefix)
{
    cairn_engine_opts o;
    cairn_engine *e = NULL;
    cairn_diag dg;
    cairn_engine_opts_init(&o);
    o.max_seqs = seqs;
    o.max_queue = AT_ONCE;
    o.max_step_rows = 128;
    o.prefix_limit = prefix;
    o.ctx_len = MAX_LEN + MAX_NEW;
    cairn_model_info info;
    cairn_model_info_init(&info);
    cairn_model_get_info(m, &info);
    o.ctx_len = min_i32(o.ctx_len, info.ctx_train);
    if (cairn_engine_open(m, &o, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return e;
}

static void answer_alone(cairn_model *m)
{
    cairn_request_id id;
    cairn_engine *e = open_engine(m, 1, CAIRN_NO_PREFIX);
    for (int k = 0; k < ASKS; k++) {
        assert_ok(cairn_engine_submit(e, &asks[k].r, on_event, &asks[k].want, &id, NULL));
        wait_for(&asks[k].want);
    }
    cairn_engine_close(e);
}

static void check(const place *p)
{
    const answer *got = &p->got, *want = &p->a->want;
    assert_int_equal(got->finish, p->cancelled ? got->finish : CAIRN_FINISH_LENGTH);
    if (got->finish == CAIRN_FINISH_LENGTH) assert_int_equal(got->n, want->n);
    if (got->finish == CAIRN_FINISH_LENGTH) assert_int_equal(got->n_prompt, want->n_prompt);
    assert_memory_equal(got->prompt, want->prompt, (size_t)got->n_prompt * sizeof *got->prompt);
    assert_memory_equal(got->ids, want->ids, (size_t)got->n * sizeof *got->ids);
    assert_memory_equal(got->logprob, want->logprob, (size_t)got->n * sizeof *got->logprob);
}

static void start(cairn_engine *e, place *p, uint64_t n)
{
    const uint64_t u = rng_u64(5, 0, n);
    *p = (place){.a = &asks[u % ASKS], .cancelled = (u >> 8) % 9 == 0};
    assert_ok(cairn_engine_submit(e, &p->a->r, on_event, &p->got, &p->id, NULL));
}

/* One that is done, or NULL after a moment. */
static place *next_done(void)
{
    place *found = NULL;
    mutex_lock(&mu);
    for (int tries = 0; tries < 2 && !found; tries++) {
        for (int i = 0; i < AT_ONCE && !found; i++)
            if (places[i].a && places[i].got.done) found = &places[i];
        if (!found && tries == 0) (void)cond_wait_ms(&some_done, &mu, 100);
    }
    mutex_unlock(&mu);
    return found;
}

/* The time is up: what is not done yet is checked as far as it got. */
static void cancel_all(cairn_engine *e)
{
    for (int i = 0; i < AT_ONCE; i++) {
        if (!places[i].a) continue;
        places[i].cancelled = true;
        cairn_engine_cancel(e, places[i].id);
    }
}

/* Answers how many. */
static uint64_t company(cairn_engine *e, int64_t seconds)
{
    const uint64_t end = clock_ns() + (uint64_t)seconds * 1000000000;
    uint64_t n = 0, last = clock_ns();
    int open = 0;
    for (int i = 0; i < AT_ONCE; i++, open++) start(e, &places[i], n++);
    for (uint64_t tick = 0; open > 0; tick++) {
        const place *some = &places[rng_u64(6, 0, tick) % AT_ONCE];
        if (some->a && some->cancelled) cairn_engine_cancel(e, some->id);
        place *p = next_done();
        assert_true(p || clock_ns() - last < (uint64_t)PATIENCE * 1000000000);
        if (!p) continue;
        last = clock_ns();
        check(p);
        p->a = NULL;
        open--;
        if (seconds && clock_ns() >= end) cancel_all(e);
        if (seconds ? clock_ns() >= end : n >= SHORT) continue;
        start(e, p, n++);
        open++;
    }
    return n;
}

static int64_t seconds;
static int n_paths = sizeof tiny / sizeof *tiny;
static const char *const *paths = tiny;

static void with_places(cairn_model *m, const char *path, int32_t n_places, int64_t of_seconds)
{
    cairn_engine *e = open_engine(m, n_places, 0);
    const uint64_t n = company(e, of_seconds);
    cairn_engine_stats s;
    cairn_engine_stats_init(&s);
    cairn_engine_get_stats(e, &s);
    cairn_engine_close(e);
    print_message(
        "%s: %llu requests in %d places as alone, %llu tokens of prompts computed, %llu taken up, "
        "%llu cancelled\n",
        path, (unsigned long long)n, (int)n_places, (unsigned long long)s.prompt_tokens,
        (unsigned long long)s.cached_tokens, (unsigned long long)s.n_cancelled);
}

static void one_model(const char *path)
{
    cairn_model *m = NULL;
    cairn_model_opts o;
    cairn_model_info info;
    cairn_diag dg;
    cairn_model_opts_init(&o);
    if (cairn_model_open(path, &o, &m, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    cairn_model_info_init(&info);
    cairn_model_get_info(m, &info);
    for (uint64_t k = 0; k < ASKS; k++) make_ask(&asks[k], k, info.vocab, info.ctx_train);
    answer_alone(m);
    with_places(m, path, AT_ONCE / 4, seconds / 2);
    with_places(m, path, AT_ONCE, seconds - seconds / 2);
    cairn_model_close(m);
}

static void same_bits_in_company(void **state)
{
    (void)state;
    mutex_init(&mu);
    cond_init(&some_done);
    for (int i = 0; i < n_paths; i++) one_model(paths[i]);
    cond_deinit(&some_done);
    mutex_deinit(&mu);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_in_company)};
    if (argc > 1) seconds = strtol(argv[1], NULL, 10);
    if (argc > 2) {
        paths = (const char *const *)(argv + 2);
        n_paths = argc - 2;
    }
    return cmocka_run_group_tests_name("company", tests, NULL, NULL);
}
