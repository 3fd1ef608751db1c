/* The engine without its thread, on the simulated backend: one request's life, limits, failures. */
#include "test.h"

#include "base/num.h"
#include "engine/request.h"
#include "sim_rig.h"

static void run(engine *e)
{
    while (engine_turn(e)) {
    }
}

static cairn_engine_stats stats_of(engine *e)
{
    cairn_engine_stats s = {.struct_size = sizeof s};
    engine_get_stats(e, &s);
    return s;
}

static void greedy_answer(void **state)
{
    (void)state;
    const int32_t lens[] = {1, 63, 64, 65, 300, 700};
    engine *e = rig_open((cairn_engine_opts){.max_step_rows = 100});
    for (int i = 0; i < 6; i++) {
        watch w;
        int32_t want[30];
        rig_submit(e, &w, watch_request(ids, lens[i], 30));
        run(e);
        sim_greedy(&sim, ids, lens[i], want, 30);
        assert_int_equal(w.n, 30);
        assert_memory_equal(w.ids, want, sizeof want);
        assert_int_equal(w.n_done_events, 1);
        assert_int_equal(w.finish, CAIRN_FINISH_LENGTH);
        assert_int_equal(w.n_prompt, lens[i]);
        assert_true(w.prefill_seconds > 0 && w.decode_seconds > 0);
    }
    const cairn_engine_stats s = stats_of(e);
    assert_int_equal(s.n_requests, 6);
    assert_int_equal(s.prompt_tokens, 1 + 63 + 64 + 65 + 300 + 700);
    assert_int_equal(s.generated_tokens, 6 * 30);
    assert_int_equal(s.n_active, 0);
    assert_int_equal(s.n_queued, 0);
    assert_int_equal(s.cache_bytes_used, s.prefix_bytes_used);
    assert_int_equal(s.ctx_len, SIM_CTX);
    assert_true(s.cache_bytes_total > 0 && s.scratch_bytes > 0 && s.busy_seconds > 0);
    assert_false(sim_is_busy(sim.m.dev));
    engine_close(e);
}

/* The sequence passes the rotary table's range while it is being decoded. */
static void long_rope_restarts(void **state)
{
    (void)state;
    sim.rope.switch_len = 150;
    const int32_t lens[] = {100, 149, 150, 151};
    engine *e = rig_open((cairn_engine_opts){.max_step_rows = 70});
    for (int i = 0; i < 4; i++) {
        watch w;
        int32_t want[80];
        rig_submit(e, &w, watch_request(ids, lens[i], 80));
        run(e);
        sim_greedy(&sim, ids, lens[i], want, 80);
        assert_int_equal(w.n, 80);
        assert_memory_equal(w.ids, want, sizeof want);
    }
    engine_close(e);
}

static void full_context_ends(void **state)
{
    (void)state;
    watch w;
    engine *e = rig_open((cairn_engine_opts){.ctx_len = 128});
    rig_submit(e, &w, watch_request(ids, 100, 0));
    run(e);
    assert_int_equal(w.n, 28);
    assert_int_equal(w.finish, CAIRN_FINISH_LENGTH);
    rig_submit(e, &w, watch_request(ids, 127, 500));
    run(e);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.finish, CAIRN_FINISH_LENGTH);
    const cairn_request r = watch_request(ids, 128, 1);
    cairn_diag dg;
    cairn_request_id id = 99;
    assert_int_equal(engine_submit(e, &r, watch_event, &w, &id, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "128 tokens");
    assert_int_equal(id, 99);
    engine_close(e);
}

static void bad_requests(void **state)
{
    (void)state;
    engine *e = rig_open((cairn_engine_opts){.max_queue = 1});
    static const cairn_str empty_stop = {"", 0};
    static const int32_t bad_id[] = {3, SIM_VOCAB}, negative[] = {-1};
    cairn_request r[9];
    for (int i = 0; i < 9; i++) r[i] = watch_request(ids, 5, 1);
    r[0].n_ids = 0;
    r[1].ids = bad_id;
    r[1].n_ids = 2;
    r[2].ids = negative;
    r[2].n_ids = 1;
    r[3].max_tokens = -1;
    r[4].n_logprobs = CAIRN_MAX_LOGPROBS + 1;
    r[5].sampling.temperature = -1;
    r[6].stop = &empty_stop;
    r[6].n_stop = 1;
    r[7].n_stop = 2;
    r[8].sampling.n_bias = 1 << 20;
    const char *const says[] = {"no ids",      "id 90 at 1", "id -1",
                                "max_tokens",  "n_logprobs", "temperature",
                                "stop string", "stop has 2", "biases"};
    for (int round = 0; round < 3; round++) /* a refused request holds no slot */
        for (int i = 0; i < 9; i++) {
            cairn_diag dg;
            cairn_request_id id;
            assert_int_equal(engine_submit(e, &r[i], watch_event, NULL, &id, &dg), CAIRN_E_ARG);
            assert_says(&dg, says[i]);
        }
    assert_int_equal(stats_of(e).n_queued, 0);
    engine_close(e);
}

static void queue_is_bounded(void **state)
{
    (void)state;
    enum { ALL = 2 + 3 };
    engine *e = rig_open((cairn_engine_opts){.max_seqs = 2, .max_queue = 3});
    static watch w[ALL], one_more;
    for (int i = 0; i < ALL; i++) rig_submit(e, &w[i], watch_request(ids, 10, 4));
    const cairn_request r = watch_request(ids, 10, 4);
    cairn_diag dg;
    cairn_request_id id;
    assert_int_equal(engine_submit(e, &r, watch_event, &one_more, &id, &dg), CAIRN_E_BUSY);
    assert_says(&dg, "queue is full");
    engine_turn(e);
    assert_int_equal(stats_of(e).n_active, 2);
    assert_int_equal(stats_of(e).n_queued, 3);
    assert_int_equal(engine_submit(e, &r, watch_event, &one_more, &id, &dg), CAIRN_E_BUSY);
    while (!w[0].n_done_events) engine_turn(e);
    rig_submit(e, &one_more, r); /* there is a slot again */
    run(e);
    for (int i = 0; i < ALL; i++) assert_int_equal(w[i].n, 4);
    assert_int_equal(one_more.n, 4);
    engine_close(e);
}

/* From each state a cancelled request is gone after one turn, with one event, and leaves no block. */
static void cancel_anywhere(void **state)
{
    (void)state;
    for (int turns = 0; turns < 12; turns++) {
        engine *e = rig_open((cairn_engine_opts){.max_seqs = 2, .max_step_rows = 64});
        static watch w[4];
        for (int i = 0; i < 4; i++) rig_submit(e, &w[i], watch_request(ids + i, 200, 50));
        for (int t = 0; t < turns; t++) engine_turn(e);
        for (int i = 0; i < 4; i++) engine_cancel(e, w[i].id);
        engine_cancel(e, w[0].id); /* twice is fine */
        engine_cancel(e, 12345);   /* nobody is fine */
        assert_false(engine_turn(e));
        for (int i = 0; i < 4; i++) {
            assert_int_equal(w[i].n_done_events, 1);
            assert_int_equal(w[i].finish, CAIRN_FINISH_CANCELLED);
        }
        assert_int_equal(stats_of(e).cache_bytes_used, stats_of(e).prefix_bytes_used);
        assert_int_equal(stats_of(e).n_cancelled, 4);
        engine_close(e);
    }
}

typedef struct canceller {
    watch w;
    engine *e;
    int32_t after;
    watch *next; /* submitted from the last event */
} canceller;

static void cancel_self(void *ctx, const cairn_event *ev)
{
    canceller *c = ctx;
    watch_event(&c->w, ev);
    if (c->w.n == c->after) engine_cancel(c->e, ev->request);
    if (ev->kind == CAIRN_EV_DONE && c->next) rig_submit(c->e, c->next, watch_request(ids, 9, 3));
}

static void call_from_callback(void **state)
{
    (void)state;
    engine *e = rig_open((cairn_engine_opts){.max_seqs = 1, .max_queue = 1});
    static watch next, other;
    static canceller c;
    c = (canceller){.e = e, .after = 3, .next = &next};
    const cairn_request r = watch_request(ids, 9, 50);
    assert_ok(engine_submit(e, &r, cancel_self, &c, &c.w.id, NULL));
    rig_submit(e, &other, watch_request(ids, 5, 2));
    run(e);
    assert_int_equal(c.w.n, 3);
    assert_int_equal(c.w.finish, CAIRN_FINISH_CANCELLED);
    assert_int_equal(other.n, 2);
    assert_int_equal(next.n, 3);
    engine_close(e);
}

typedef struct reader {
    int32_t n, n_waiting, most; /* events; in a row that say that more follows, now and at most */
} reader;

typedef struct told {
    watch w;
    reader *to;
} told;

static void tell_reader(void *ctx, const cairn_event *ev)
{
    told *t = ctx;
    watch_event(&t->w, ev);
    t->to->n++;
    t->to->n_waiting = ev->more ? t->to->n_waiting + 1 : 0;
    t->to->most = max_i32(t->to->most, t->to->n_waiting);
}

/* Two readers of three requests each, one of nobody's: when a turn is over nobody waits for an event that was
   promised, and of a step's events but the last of a reader promise one.  Also where a request ends, or fails. */
static void more_is_kept(void **state)
{
    (void)state;
    sim_set(sim.m.dev, 9, SIM_NAN);
    static told t[7];
    reader r[3] = {{0}};
    engine *e = rig_open((cairn_engine_opts){.max_seqs = 7, .max_queue = 7});
    memset(t, 0, sizeof t);
    for (int i = 0; i < 7; i++) {
        cairn_request q = watch_request(ids + i, 11 + i, 2 + i);
        q.want_progress = i % 2;
        t[i].to = &r[i < 6 ? i % 2 : 2];
        q.reader = i < 6 ? t[i].to : NULL;
        assert_ok(engine_submit(e, &q, tell_reader, &t[i], &t[i].w.id, NULL));
    }
    for (bool on = true; on;) {
        on = engine_turn(e);
        for (int k = 0; k < 3; k++) assert_int_equal(r[k].n_waiting, 0);
    }
    assert_true(r[0].most >= 2 && r[1].most >= 2);
    assert_int_equal(r[2].most, 0);
    for (int i = 0; i < 7; i++) assert_int_equal(t[i].w.n_done_events, 1);
    engine_close(e);
}

static void nan_ends_its_request(void **state)
{
    (void)state;
    sim_set(sim.m.dev, 9, SIM_NAN); /* at positions that are a multiple of 5 */
    static watch bad, good;
    engine *e = rig_open((cairn_engine_opts){0});
    rig_submit(e, &bad, watch_request(ids, 9, 50));
    rig_submit(e, &good, watch_request(ids, 12, 4)); /* rows 11 … 14 */
    run(e);
    assert_int_equal(bad.finish, CAIRN_FINISH_ERROR);
    assert_int_equal(bad.status, CAIRN_E_INTERNAL);
    assert_non_null(strstr(bad.message, "position 11"));
    assert_int_equal(bad.n, 2);
    assert_int_equal(good.finish, CAIRN_FINISH_LENGTH);
    assert_int_equal(stats_of(e).n_failed, 1);
    engine_close(e);
}

static void progress_and_logprobs(void **state)
{
    (void)state;
    watch w;
    engine *e = rig_open((cairn_engine_opts){.max_step_rows = 50});
    cairn_request r = watch_request(ids, 220, 3);
    r.want_progress = true;
    r.n_logprobs = 5;
    rig_submit(e, &w, r);
    run(e);
    assert_int_equal(w.n_progress, 6); /* 0, and after each step */
    assert_int_equal(w.last_progress, 220);
    assert_int_equal(w.n_top, 5);
    assert_true(w.logprob < 0);
    engine_close(e);
}

/* Between admission and the end a turn asks for no memory. */
static void no_allocation(void **state)
{
    (void)state;
    static watch w[6];
    engine *e = rig_open((cairn_engine_opts){.max_seqs = 4, .max_step_rows = 64});
    for (int i = 0; i < 6; i++) {
        cairn_request r = watch_request(ids + i, 150 + i, 60);
        r.sampling.temperature = 0.8f;
        r.sampling.top_k = 20;
        r.sampling.top_p = 0.9f;
        r.sampling.repetition_penalty = 1.1f;
        r.n_logprobs = 3;
        rig_submit(e, &w[i], r);
    }
    const uint64_t calls = mem_calls();
    run(e);
    assert_int_equal(mem_calls(), calls);
    for (int i = 0; i < 6; i++) assert_int_equal(w[i].n, 60);
    engine_close(e);
}

/* Room for one long request: the second waits, the short third does not overtake it. */
static void waits_for_memory_in_order(void **state)
{
    (void)state;
    static watch a, b, c;
    const uint64_t limit = cache_bytes(&sim.m.cache, &(kv_scheme){0}, 64, 1024);
    engine *e = rig_open((cairn_engine_opts){
        .max_seqs = 4, .max_step_rows = 64, .ctx_len = 1024, .memory_limit = limit});
    rig_submit(e, &a, watch_request(ids, 500, 400));
    rig_submit(e, &b, watch_request(ids, 600, 20));
    rig_submit(e, &c, watch_request(ids, 3, 5));
    while (engine_turn(e)) {
        const cairn_engine_stats s = stats_of(e);
        assert_true(s.cache_bytes_used <= s.cache_bytes_total);
        assert_true(s.cache_bytes_total <= limit);
        if (!a.n_done_events) assert_int_equal(b.n + c.n, 0);
    }
    assert_int_equal(a.n, 400);
    assert_int_equal(b.n, 20);
    assert_int_equal(c.n, 5);
    engine_close(e);
}

static void close_cancels(void **state)
{
    (void)state;
    static watch w[5];
    engine *e = rig_open((cairn_engine_opts){.max_seqs = 2});
    for (int i = 0; i < 4; i++) rig_submit(e, &w[i], watch_request(ids, 100, 100));
    for (int t = 0; t < 5; t++) engine_turn(e);
    rig_submit(e, &w[4], watch_request(ids, 100, 100)); /* still in the inbox */
    engine_close(e);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(w[i].n_done_events, 1);
        assert_int_equal(w[i].finish, CAIRN_FINISH_CANCELLED);
    }
    engine_close(NULL);
}

static void bad_options(void **state)
{
    (void)state;
    const struct {
        cairn_engine_opts o;
        cairn_status st;
        const char *says;
    } cases[] = {
        {{.max_seqs = -1}, CAIRN_E_ARG, "max_seqs is -1"},
        {{.max_seqs = 1000}, CAIRN_E_ARG, "max_seqs"},
        {{.max_queue = -5}, CAIRN_E_ARG, "max_queue"},
        {{.max_seqs = 8, .max_step_rows = 7}, CAIRN_E_ARG, "max_step_rows"},
        {{.ctx_len = -1}, CAIRN_E_ARG, "ctx_len"},
        {{.kv_codec = "q9"}, CAIRN_E_ARG, "q9"},
        {{.ctx_len = 2048, .memory_limit = 1000}, CAIRN_E_LIMIT, "a context of 2048 needs"},
        {{.memory_limit = 1000}, CAIRN_E_LIMIT, "the limit is 1000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        engine *e;
        cairn_diag dg;
        assert_int_equal(engine_open(&sim.m, NULL, &cases[i].o, &sim_hooks, &e, &dg), cases[i].st);
        assert_says(&dg, cases[i].says);
    }
    dev *d = sim.m.dev;
    sim.m.dev = NULL;
    const cairn_engine_opts o = {0};
    engine *e;
    cairn_diag dg;
    assert_int_equal(engine_open(&sim.m, NULL, &o, &sim_hooks, &e, &dg), CAIRN_E_ARG);
    assert_says(&dg, "without its weights; expected");
    sim.m.dev = d;
}

static cairn_status one_life(void *ctx)
{
    (void)ctx;
    engine *e = NULL;
    static watch w;
    const cairn_engine_opts o = {.max_seqs = 2, .ctx_len = 256, .max_step_rows = 32};
    cairn_request r = watch_request(ids, 40, 4);
    const cairn_str stop[] = {{"abab", 4}, {"b", 1}};
    r.stop = stop;
    r.n_stop = 2;
    cairn_status st = engine_open(&sim.m, NULL, &o, &sim_hooks, &e, NULL);
    if (st != CAIRN_OK) return st;
    memset(&w, 0, sizeof w);
    st = engine_submit(e, &r, watch_event, &w, &w.id, NULL);
    if (st == CAIRN_OK) {
        run(e);
        assert_int_equal(w.n, 4);
    }
    engine_close(e);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(one_life, NULL) > 30);
}

typedef struct last_wish {
    engine *e;
    cairn_status st;
    cairn_diag dg;
} last_wish;

static void ask_again(void *ctx, const cairn_event *ev)
{
    last_wish *w = ctx;
    cairn_request_id id;
    const cairn_request r = watch_request(ids, 5, 5);
    if (ev->kind == CAIRN_EV_DONE) w->st = engine_submit(w->e, &r, ask_again, w, &id, &w->dg);
}

static void closing_says_so(void **state)
{
    (void)state;
    last_wish w = {.e = rig_open((cairn_engine_opts){0})};
    cairn_request_id id;
    const cairn_request r = watch_request(ids, 5, 5);
    assert_ok(engine_submit(w.e, &r, ask_again, &w, &id, NULL));
    engine_close(w.e);
    assert_int_equal(w.st, CAIRN_E_BUSY);
    assert_says(&w.dg, "closing");
}

static void moves(void **state)
{
    (void)state;
    static const bool may[REQ_STATE_COUNT][REQ_STATE_COUNT] = {{false, true, false, false, true},
                                                               {false, false, true, false, true},
                                                               {false, false, false, true, true},
                                                               {false, true, false, false, true},
                                                               {false}};
    for (int a = 0; a < REQ_STATE_COUNT; a++)
        for (int b = 0; b < REQ_STATE_COUNT; b++)
            assert_int_equal(request_may((request_state)a, (request_state)b), may[a][b]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(greedy_answer),
        TEST(long_rope_restarts),
        TEST(full_context_ends),
        TEST(bad_requests),
        TEST(queue_is_bounded),
        TEST(cancel_anywhere),
        TEST(call_from_callback),
        TEST(more_is_kept),
        TEST(nan_ends_its_request),
        TEST(progress_and_logprobs),
        TEST(no_allocation),
        TEST(waits_for_memory_in_order),
        TEST(close_cancels),
        TEST(closing_says_so),
        TEST(bad_options),
        TEST(no_memory),
        TEST(moves),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
