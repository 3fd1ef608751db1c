/* The scheduler at length: random requests by seed on the simulated backend and its clock.  Lengths, arrivals,
   priorities, cancels, deadlines, shared beginnings, tiny caches; checked every turn.

     test_sched [REQUESTS]     a short form by default; make test-sim: 100,000

   Every answer equals the one given alone; every request has one DONE, its last event; nothing is
   over-committed and nothing leaks; running requests get a token every turn, within the bound; who is admitted
   was the first in turn; the oldest prompt moves; the same seed gives the same trace. */
#include "test.h"

#include "base/hash.h"
#include "base/num.h"
#include "base/rng.h"
#include "engine/engine_priv.h"
#include "unit/engine/sim_model.h"
#include "unit/engine/watch.h"

enum {
    ROUND = 500,  /* requests of one engine */
    PROMPTS = 24, /* that a round draws from */
    FAMILIES = 3, /* beginnings that they share */
    MAX_PROMPT = 600,
    MAX_NEW = 30,
    MAX_SEQS = 8,
    SHORT = 20 * ROUND
};

static int32_t n_requests = SHORT;
static sim_model sim;
static uint64_t seed;

static uint64_t sim_time(void *ctx)
{
    (void)ctx;
    return sim_now_ns(sim.m.dev) + 1;
}
static const engine_hooks hooks = {sim_time, NULL, true};

/* The n-th random number of a kind in this round. */
static uint64_t draw(uint64_t kind, uint64_t n)
{
    return rng_u64(seed, kind, n);
}

typedef struct prompt {
    int32_t n, ids[MAX_PROMPT], want[MAX_NEW]; /* the answer, given alone */
} prompt;

static prompt prompts[PROMPTS];

/* One request and what was seen of it. */
typedef struct life {
    const prompt *p;
    int32_t max_tokens, n_before; /* tokens before this turn */
    uint64_t born_ns, deadline_ns;
    bool cancelled;
    watch w;
} life;

static life lives[ROUND], *open_lives[ROUND];
static int32_t n_lives, n_open;
static uint64_t trace;

static void note(uint64_t x)
{
    trace = hash64(&x, sizeof x, trace);
}

static void on_event(void *ctx, const cairn_event *ev)
{
    life *l = ctx;
    watch_event(&l->w, ev);
    note(ev->request * 4 + (uint64_t)ev->kind);
    note((uint64_t)ev->id);
    note(sim_now_ns(sim.m.dev));
}

static engine *open_engine(cairn_engine_opts o)
{
    engine *e = NULL;
    cairn_diag dg = {0};
    if (engine_open(&sim.m, NULL, &o, &hooks, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return e;
}

static void make_prompts(void)
{
    engine *e = open_engine((cairn_engine_opts){.max_seqs = 1, .prefix_limit = CAIRN_NO_PREFIX});
    for (uint64_t i = 0; i < PROMPTS; i++) {
        prompt *p = &prompts[i];
        const uint64_t u = draw(1, i);
        p->n = 1 + (int32_t)(u % (u >> 60 ? 150 : MAX_PROMPT));
        const int32_t shared = min_i32(p->n, (int32_t)((u >> 20) % MAX_PROMPT));
        sim_prompt(draw(2, i % FAMILIES), p->ids, shared);
        sim_prompt(draw(3, i), p->ids + shared, p->n - shared);
        static watch w;
        memset(&w, 0, sizeof w);
        const cairn_request r = watch_request(p->ids, p->n, MAX_NEW);
        assert_ok(engine_submit(e, &r, watch_event, &w, &w.id, NULL));
        while (engine_turn(e)) {
        }
        memcpy(p->want, w.ids, sizeof p->want);
    }
    engine_close(e);
}

static engine *random_engine(void)
{
    static const int32_t rows[] = {16, 40, 128, 512};
    const uint64_t u = draw(4, 0);
    const kv_scheme f16 = kv_plain(KV_F16);
    cairn_engine_opts o = {.max_seqs = 1 + (int32_t)(u % MAX_SEQS),
                           .max_queue = 1 + (int32_t)((u >> 8) % 60),
                           .max_step_rows = rows[(u >> 16) % 4],
                           .ctx_len = MAX_PROMPT + MAX_NEW + 1,
                           .max_gap = 1.5f + (float)((u >> 24) % 4)};
    const uint64_t whole = cache_bytes(&sim.m.cache, &f16, o.max_step_rows, o.ctx_len);
    o.memory_limit = whole * (1 + (u >> 32) % 4); /* of as many sequences, or fewer than may run */
    if ((u >> 40) % 4 == 0) o.prefix_limit = CAIRN_NO_PREFIX;
    if ((u >> 40) % 4 == 1) o.prefix_limit = whole / 2;
    return open_engine(o);
}

/* False: the queue is full. */
static bool submit_next(engine *e)
{
    static const cairn_str space[] = {{"", 0}, {"", 0}, {"", 0}, {"other", 5}};
    life *l = &lives[n_lives];
    const uint64_t u = draw(5, (uint64_t)n_lives);
    *l = (life){.p = &prompts[u % PROMPTS],
                .max_tokens = 1 + (int32_t)((u >> 8) % MAX_NEW),
                .born_ns = sim_now_ns(sim.m.dev)};
    cairn_request r = watch_request(l->p->ids, l->p->n, l->max_tokens);
    if ((u >> 16) % 3 == 0) r.priority = (int32_t)((u >> 20) % 17) - CAIRN_MAX_PRIORITY;
    if ((u >> 26) % 8 == 0) r.deadline_ms = 1 + (uint32_t)((u >> 32) % 2000);
    l->deadline_ns = r.deadline_ms * UINT64_C(1000000);
    r.want_progress = (u >> 44) % 2;
    r.cache_space = space[(u >> 48) % 4];
    const cairn_status st = engine_submit(e, &r, on_event, l, &l->w.id, NULL);
    assert_true(st == CAIRN_OK || st == CAIRN_E_BUSY);
    if (st != CAIRN_OK) return false;
    open_lives[n_open++] = l;
    n_lives++;
    return true;
}

/* Bursts, and quiet between them. */
static void arrivals_and_cancels(engine *e, int turn)
{
    const uint64_t u = draw(6, (uint64_t)turn);
    const uint64_t most = u % 64 == 0 ? 20 : u % 16 == 0 ? 2 : 0;
    for (uint64_t k = 0; k < most && n_lives < ROUND; k++)
        if (!submit_next(e)) break;
    if ((u >> 8) % 40 || n_open == 0) return;
    life *l = open_lives[(u >> 20) % (uint64_t)n_open];
    l->cancelled = true;
    engine_cancel(e, l->w.id);
}

/* What was before a turn. */
typedef struct before {
    uint64_t ns, rows, steps;
    int32_t n_active, oldest_done;
    cairn_request_id active[MAX_SEQS], oldest; /* the oldest prompt; 0: there is none */
} before;

static before look(const engine *e)
{
    before b = {
        .ns = sim_now_ns(sim.m.dev), .rows = e->stats.prompt_tokens, .steps = e->stats.steps};
    for (; b.n_active < e->n_active; b.n_active++) {
        const request *r = e->mine[b.n_active];
        b.active[b.n_active] = r->id;
        if (r->state != REQ_PREFILL || b.oldest) continue;
        b.oldest = r->id;
        b.oldest_done = r->n_done;
    }
    for (int32_t i = 0; i < n_open; i++) open_lives[i]->n_before = open_lives[i]->w.n;
    return b;
}

static bool was_active(const before *b, cairn_request_id id)
{
    for (int32_t i = 0; i < b->n_active; i++)
        if (b->active[i] == id) return true;
    return false;
}

static bool is_active(const engine *e, const request *r)
{
    for (int32_t i = 0; i < e->n_active; i++)
        if (e->mine[i] == r) return true;
    return false;
}

/* Whoever was admitted in this turn had an earlier turn than all who were not, but for those that wait for a
   prefix; who is waited for is at work. */
static void check_queue(const engine *e, const before *b)
{
    uint64_t latest = 0;
    for (int32_t i = 0; i < e->n_active; i++)
        if (!was_active(b, e->mine[i]->id) && e->mine[i]->due_ns > latest)
            latest = e->mine[i]->due_ns;
    for (int32_t i = e->n_active; i < e->n_mine; i++) {
        const request *r = e->mine[i];
        if (r->leader)
            assert_true(is_active(e, r->leader));
        else if (!r->n_waits) /* nor did when the turn began */
            assert_true(r->due_ns >= latest);
        assert_in_range(r->n_waits, 0, 8);
    }
}

static void check_room(const engine *e, const before *b)
{
    const cache *c = stepper_cache(e->stepper);
    assert_in_range(e->n_active, 0, e->max_seqs);
    assert_in_range(e->n_mine, 0, engine_capacity(e));
    if (e->n_mine > 0) assert_int_equal(e->stats.steps, b->steps + 1); /* somebody always runs */
    assert_true(cache_used(c) <= cache_total(c));
    assert_true(cache_reserved(c) <= cache_total(c));
    assert_true(cache_kept(c) <= cache_used(c));
}

/* Who decoded has a token more or is gone, and the turn kept its bound, but for one row: that of a prompt as many
   times as it says, since all prompts here are short (test_engine_many.c has long ones, and short ones without end). */
static void check_streams(const engine *e, const before *b)
{
    const uint64_t now = sim_now_ns(sim.m.dev), computed = e->stats.prompt_tokens - b->rows;
    int32_t n_decode = 0;
    for (int32_t i = 0; i < n_open; i++) {
        const life *l = open_lives[i];
        const int32_t more = l->w.n - l->n_before;
        assert_in_range(more, 0, 1);
        if (l->n_before > 0 && !l->w.n_done_events) assert_int_equal(more, 1);
        if (l->n_before > 0) n_decode += more;
        if (l->deadline_ns && !l->w.n_done_events)
            assert_true(b->ns - l->born_ns < l->deadline_ns + 1000000);
    }
    const double base = SIM_STEP_NS + (double)n_decode * SIM_ROW_NS;
    if (n_decode > 0 && computed > 1)
        assert_true((double)(now - b->ns) <= e->pace.bound * e->pace.bound * base);
}

/* The oldest prompt moves; turns that compute none are few. */
static void check_prompts(const engine *e, const before *b, int *n_without)
{
    const bool none = e->stats.prompt_tokens == b->rows;
    for (int32_t i = 0; i < e->n_active; i++) {
        const request *r = e->mine[i];
        if (r->id != b->oldest || r->state != REQ_PREFILL) continue;
        if (none)
            ++*n_without;
        else
            assert_true(r->n_done > b->oldest_done);
    }
}

static void check_end(const life *l)
{
    assert_int_equal(l->w.n_done_events, 1);
    assert_memory_equal(l->w.ids, l->p->want, (size_t)l->w.n * sizeof *l->w.ids);
    switch (l->w.finish) {
    case CAIRN_FINISH_LENGTH:
        assert_int_equal(l->w.n, l->max_tokens);
        break;
    case CAIRN_FINISH_CANCELLED:
        assert_true(l->cancelled);
        break;
    case CAIRN_FINISH_ERROR:
        assert_int_equal(l->w.status, CAIRN_E_CANCELLED);
        assert_true(l->deadline_ns > 0);
        assert_non_null(strstr(l->w.message, "deadline"));
        break;
    case CAIRN_FINISH_STOP:
        fail();
    }
}

static void take_ended(void)
{
    int32_t n = 0;
    for (int32_t i = 0; i < n_open; i++) {
        if (open_lives[i]->w.n_done_events)
            check_end(open_lives[i]);
        else
            open_lives[n++] = open_lives[i];
    }
    n_open = n;
}

static void one_round(void)
{
    engine *e = random_engine();
    int n_without = 0, turn = 0;
    trace = 0;
    n_lives = n_open = 0;
    for (bool more = true; more || n_lives < ROUND; turn++) {
        arrivals_and_cancels(e, turn);
        const before b = look(e);
        more = engine_turn(e);
        check_queue(e, &b);
        check_room(e, &b);
        check_streams(e, &b);
        check_prompts(e, &b, &n_without);
        take_ended();
        assert_true(turn < 200 * ROUND);
    }
    assert_int_equal(n_open, 0);
    assert_in_range(n_without, 0, turn / 16 + MAX_SEQS);
    assert_int_equal(cache_used(stepper_cache(e->stepper)), cache_kept(stepper_cache(e->stepper)));
    assert_int_equal(cache_reserved(stepper_cache(e->stepper)), 0);
    engine_close(e);
    note((uint64_t)turn);
}

static void random_rounds(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (int32_t i = 0; i < n_requests / ROUND; i++) {
        seed = (uint64_t)i;
        const uint64_t live = mem_used_all();
        uint64_t first = 0;
        for (int again = 0; again < 2; again++) { /* a second time: the same trace */
            sim_model_open(&sim, seed, SIM_SOUND);
            sim_model_layers(&sim, (sim_layers)(i % 4));
            make_prompts();
            one_round();
            sim_model_close(&sim);
            assert_int_equal(mem_used_all(), live);
            if (again) assert_true(trace == first);
            first = trace;
        }
        assert_true(trace != last);
        last = trace;
    }
    print_message("%d requests, trace %016llx\n", (int)n_requests, (unsigned long long)trace);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_rounds)};
    if (argc > 1) n_requests = max_i32(ROUND, (int32_t)strtol(argv[1], NULL, 10));
    return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
