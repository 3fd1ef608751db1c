/* Who goes first, who waits for whom, and for how long: priorities, deadlines, prompts that begin alike. */
#include "test.h"

#include "engine/engine_priv.h"
#include "sim_model.h"
#include "watch.h"

enum { AGENTS = 8, SHARED = 1000, LEN = 1020, NEW = 5 };

static sim_model sim;
static int32_t ids[AGENTS][LEN];
static watch seen[AGENTS];

static uint64_t sim_time(void *ctx)
{
    (void)ctx;
    return sim_now_ns(sim.m.dev) + 1;
}
static const engine_hooks hooks = {sim_time, NULL, true};

static engine *open_engine(sim_layers kind, cairn_engine_opts o)
{
    engine *e = NULL;
    cairn_diag dg = {0};
    sim_model_open(&sim, 41, SIM_SOUND);
    sim_model_layers(&sim, kind);
    for (int i = 0; i < AGENTS; i++) {
        sim_prompt(41, ids[i], SHARED);
        sim_prompt(42 + (uint64_t)i, ids[i] + SHARED, LEN - SHARED);
    }
    memset(seen, 0, sizeof seen);
    if (engine_open(&sim.m, NULL, &o, &hooks, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return e;
}

static void close_engine(engine *e)
{
    engine_close(e);
    sim_model_close(&sim);
}

static void submit(engine *e, int i, cairn_request r)
{
    assert_ok(engine_submit(e, &r, watch_event, &seen[i], &seen[i].id, NULL));
}

static cairn_request agent(int i)
{
    static const int32_t marks[] = {SHARED};
    cairn_request r = watch_request(ids[i], LEN, NEW);
    r.marks = marks;
    r.n_marks = 1;
    return r;
}

static void run(engine *e)
{
    while (engine_turn(e)) {
    }
}

static void right_answer(int i)
{
    int32_t want[NEW];
    assert_int_equal(seen[i].finish, CAIRN_FINISH_LENGTH);
    sim_greedy(&sim, ids[i], LEN, want, NEW);
    assert_memory_equal(seen[i].ids, want, sizeof want);
}

/* Sent at once, one beginning is computed once: each later request computes its own end and less than a
   block. */
static void one_beginning(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        engine *e =
            open_engine(kind, (cairn_engine_opts){.max_seqs = AGENTS, .max_step_rows = 100});
        for (int i = 0; i < AGENTS; i++) submit(e, i, agent(i));
        run(e);
        assert_true(e->stats.prompt_tokens <= LEN + (AGENTS - 1) * (LEN - SHARED + KV_BLOCK));
        for (int i = 0; i < AGENTS; i++) right_answer(i);
        close_engine(e);
    }
}

/* The leader leaves half-way: the next goes on where it was. */
static void leader_leaves(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        engine *e =
            open_engine(kind, (cairn_engine_opts){.max_seqs = AGENTS, .max_step_rows = 100});
        for (int i = 0; i < AGENTS; i++) submit(e, i, agent(i));
        for (int i = 0; i < 5; i++) assert_true(engine_turn(e));
        assert_int_equal(e->n_active, 1);
        const uint64_t computed = e->stats.prompt_tokens;
        assert_in_range(computed, 400, SHARED);
        engine_cancel(e, seen[0].id);
        run(e);
        assert_int_equal(seen[0].finish, CAIRN_FINISH_CANCELLED);
        for (int i = 1; i < AGENTS; i++) right_answer(i);
        assert_true(e->stats.prompt_tokens <=
                    computed + LEN + (AGENTS - 2) * (LEN - SHARED + KV_BLOCK));
        close_engine(e);
    }
}

/* Nobody waits for rows that it could not take up. */
static void nothing_to_wait_for(void **state)
{
    (void)state;
    engine *e =
        open_engine(SIM_FULL, (cairn_engine_opts){.max_seqs = AGENTS, .max_step_rows = 100});
    cairn_request r = agent(1), alone = agent(2);
    alone.cache_space = (cairn_str){"mine", 4};
    submit(e, 1, alone); /* what it computes is its own */
    submit(e, 2, r);
    r.n_ids = KV_BLOCK; /* a block, but its last row is to be computed */
    r.n_marks = 0;
    submit(e, 3, r);
    assert_true(engine_turn(e));
    assert_int_equal(e->n_active, 3);
    close_engine(e);

    e = open_engine(SIM_FULL, (cairn_engine_opts){.prefix_limit = CAIRN_NO_PREFIX});
    submit(e, 0, agent(0));
    submit(e, 1, agent(1));
    assert_true(engine_turn(e));
    assert_int_equal(e->n_active, 2); /* nothing is kept */
    close_engine(e);
}

/* A short request that waits for a long one's beginning takes it along at its own pace. */
static void leader_hurries(void **state)
{
    (void)state;
    static int32_t longer[3000];
    engine *e = open_engine(SIM_FULL, (cairn_engine_opts){.max_seqs = 3, .max_step_rows = 100});
    sim_prompt(50, longer, 3000);
    memcpy(longer, ids[0], 300 * sizeof *longer);
    cairn_request r = watch_request(longer, 3000, NEW),
                  other = watch_request(ids[1] + 5, 1000, NEW);
    submit(e, 1, other);
    submit(e, 0, r);
    assert_true(engine_turn(e));
    r = watch_request(ids[0], 310, NEW);
    submit(e, 2, r);
    int turns = 0;
    for (; seen[2].n == 0; turns++) assert_true(engine_turn(e));
    assert_in_range(turns, 8, 11); /* 310 rows at a third of 100, not after the 1000 */
    assert_int_equal(seen[1].n, 0);
    close_engine(e);
}

static void priorities(void **state)
{
    (void)state;
    static const int32_t priority[] = {0, 5, -8, 0, -8};
    static const int order[] = {2, 4, 0, 3, 1};
    engine *e = open_engine(SIM_FULL, (cairn_engine_opts){.max_seqs = 1});
    for (int i = 0; i < 5; i++) {
        cairn_request r = watch_request(ids[i] + SHARED, 15, 3);
        r.priority = priority[i];
        submit(e, i, r);
    }
    for (int k = 0; k < 5; k++) {
        while (!seen[order[k]].n_done_events) assert_true(engine_turn(e) || k == 4);
        for (int j = k + 1; j < 5; j++) assert_int_equal(seen[order[j]].n_done_events, 0);
    }
    cairn_request r = watch_request(ids[0], 5, 1);
    cairn_diag dg;
    cairn_request_id id;
    r.priority = 9;
    assert_int_equal(engine_submit(e, &r, watch_event, NULL, &id, &dg), CAIRN_E_ARG);
    assert_says(&dg, "priority is 9");
    close_engine(e);
}

/* In the queue, in the prompt and in the answer. */
static void deadlines(void **state)
{
    (void)state;
    static const char *const says[] = {"8 ms passed after 300 of 1020 prompt tokens and 0",
                                       "5 ms passed in the queue", "of 20 prompt tokens and 5"};
    engine *e = open_engine(SIM_FULL, (cairn_engine_opts){.max_seqs = 1, .max_step_rows = 30});
    for (int i = 0; i < 3; i++) {
        cairn_request r = watch_request(ids[i], i == 2 ? 20 : LEN, 100);
        if (i == 0) r.deadline_ms = 38;
        if (i == 1) r.deadline_ms = 25;
        if (i == 2) r.deadline_ms = 45, r.priority = 3;
        submit(e, i, r);
    }
    run(e);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seen[i].finish, CAIRN_FINISH_ERROR);
        assert_int_equal(seen[i].status, CAIRN_E_CANCELLED);
        if (!strstr(seen[i].message, says[i])) fail_msg("%s", seen[i].message);
    }
    assert_int_equal(cache_reserved(stepper_cache(e->stepper)), 0);
    close_engine(e);
}

static void bad_bounds(void **state)
{
    (void)state;
    static const float bad[] = {1, -3, 1001, 0.0f / 0.0f};
    close_engine(open_engine(SIM_FULL, (cairn_engine_opts){.max_gap = 1.01f}));
    sim_model_open(&sim, 41, SIM_SOUND);
    for (int i = 0; i < 4; i++) {
        engine *e = NULL;
        cairn_diag dg;
        const cairn_engine_opts o = {.max_gap = bad[i]};
        assert_int_equal(engine_open(&sim.m, NULL, &o, &hooks, &e, &dg), CAIRN_E_ARG);
        assert_says(&dg, "max_gap");
    }
    sim_model_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_beginning),       cmocka_unit_test(leader_leaves),
        cmocka_unit_test(nothing_to_wait_for), cmocka_unit_test(leader_hurries),
        cmocka_unit_test(priorities),          cmocka_unit_test(deadlines),
        cmocka_unit_test(bad_bounds),
    };
    return cmocka_run_group_tests_name("cohort", tests, NULL, NULL);
}
