/* How likely a prompt's tokens were: what the engine tells of each is the log-softmax of the row before it, to the same
   bits alone, in company, in any step and after a cache hit. */
#include "test.h"

#include <math.h>

#include "base/num.h"
#include "base/rng.h"
#include "sim_rig.h"

enum { TOP = 3, MOST = 700 };

/* Of one request: its prompt's tokens as they were told, and what a watch says of the rest. */
typedef struct scored {
    watch w;
    int32_t n, id[MOST], n_top[MOST];
    float logprob[MOST];
    cairn_logprob top[MOST][TOP];
} scored;

static void hear(void *ctx, const cairn_event *ev)
{
    scored *s = ctx;
    if (ev->kind != CAIRN_EV_PROMPT) {
        watch_event(&s->w, ev);
        return;
    }
    assert_int_equal(s->w.n, 0); /* before all that is drawn */
    assert_int_equal(ev->n_generated, 0);
    assert_int_equal(ev->text.len, 0);
    assert_true(s->n < MOST);
    s->id[s->n] = ev->id;
    s->n_top[s->n] = ev->n_top;
    s->logprob[s->n] = ev->logprob;
    memcpy(s->top[s->n++], ev->top, (size_t)ev->n_top * sizeof *ev->top);
}

static cairn_request scoring(int32_t n, int32_t n_new)
{
    cairn_request r = watch_request(ids, n, n_new);
    r.n_logprobs = TOP;
    r.prompt_logprobs = true;
    r.prompt_only = n_new == 0;
    return r;
}

static void submit(engine *e, scored *s, cairn_request r)
{
    cairn_diag dg = {0};
    memset(s, 0, sizeof *s);
    if (engine_submit(e, &r, hear, s, &s->w.id, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
}

static void run(engine *e)
{
    while (engine_turn(e)) {
    }
}

/* In double, from logits that no engine computed. */
static bool check_row(void *ctx, int32_t pos, const float *logits)
{
    const scored *s = ctx;
    double best = -(double)INFINITY, sum = 0;
    if (pos >= s->n) return true; /* the last row tells of no token of the prompt */
    for (int32_t i = 0; i < SIM_VOCAB; i++) best = fmax(best, (double)logits[i]);
    for (int32_t i = 0; i < SIM_VOCAB; i++) sum += exp((double)logits[i] - best);
    const double lse = best + log(sum);
    const double want = (double)logits[ids[pos + 1]] - lse;
    assert_int_equal(s->id[pos], ids[pos + 1]);
    /* A sum of 90 terms of f32's precision, and the rounding of the result. */
    assert_true(fabs((double)s->logprob[pos] - want) <= 1e-5 + 2e-7 * fabs(want));
    assert_int_equal(s->n_top[pos], TOP);
    assert_true(fabs((double)s->top[pos][0].logprob - (best - lse)) <= 1e-5);
    for (int32_t k = 1; k < TOP; k++)
        assert_true(s->top[pos][k].logprob <= s->top[pos][k - 1].logprob);
    return true;
}

static void check_all(const scored *s, int32_t n)
{
    cairn_diag dg = {0};
    cairn_score_opts o = {.struct_size = sizeof o};
    scored copy = *s;
    assert_int_equal(s->n, n - 1);
    if (forward_score(&sim.m, ids, (size_t)n, &o, check_row, &copy, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
}

static void same_bits(const scored *a, const scored *b)
{
    const size_t n = (size_t)a->n;
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->logprob, b->logprob, n * sizeof *a->logprob);
    assert_memory_equal(a->top, b->top, n * sizeof *a->top);
    assert_int_equal(a->w.n, b->w.n);
    assert_memory_equal(a->w.ids, b->w.ids, (size_t)a->w.n * sizeof *a->w.ids);
    assert_int_equal(a->w.finish, b->w.finish);
}

static scored alone, again, other[3];

static const int32_t lens[] = {1, 2, 16, 17, 18, 64, 65, 130, 300};
enum { N_LENS = sizeof lens / sizeof *lens };

static void told_by_each_layout(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        sim_model_layers(&sim, kind);
        engine *e = rig_open((cairn_engine_opts){.max_step_rows = 100});
        for (int i = 0; i < N_LENS; i++) {
            submit(e, &alone, scoring(lens[i], 5));
            run(e);
            check_all(&alone, lens[i]);
            assert_int_equal(alone.w.n, 5);
            int32_t want[5];
            sim_greedy(&sim, ids, lens[i], want, 5);
            assert_memory_equal(alone.w.ids, want, sizeof want);
            assert_int_equal(alone.w.n_cached, 0);
        }
        engine_close(e);
    }
}

/* Steps of any size, prefixes that are known, requests of the same and of other prompts beside it. */
static void same_bits_always(void **state)
{
    (void)state;
    const int32_t rows[] = {4, 5, 19, 20, 21, 512};
    engine *first = rig_open((cairn_engine_opts){0});
    for (int i = 0; i < N_LENS; i++) {
        submit(first, &alone, scoring(lens[i], 5));
        run(first);
        check_all(&alone, lens[i]);
        for (int k = 0; k < 6; k++) {
            watch w;
            engine *e = rig_open((cairn_engine_opts){.max_step_rows = rows[k]});
            rig_submit(e, &w, watch_request(ids, 280, 4));
            if (k % 2) run(e); /* the prefix is known; else it is computed meanwhile */
            for (int j = 0; j < 3; j++) submit(e, &other[j], scoring(lens[i], j == 2 ? 0 : 5));
            run(e);
            same_bits(&alone, &other[0]);
            same_bits(&alone, &other[1]);
            other[2].w.n = alone.w.n; /* nothing is drawn, */
            memcpy(other[2].w.ids, alone.w.ids, sizeof alone.w.ids);
            same_bits(&alone, &other[2]);           /* and the prompt is the same */
            submit(e, &again, scoring(lens[i], 5)); /* all of it is known by now */
            run(e);
            same_bits(&alone, &again);
            assert_int_equal(again.w.n_cached, 0);
            rig_submit(e, &w, watch_request(ids, lens[i], 5)); /* and others take it up */
            run(e);
            assert_memory_equal(w.ids, alone.w.ids, 5 * sizeof *w.ids);
            engine_close(e);
        }
    }
    engine_close(first);
}

static void prompt_alone(void **state)
{
    (void)state;
    engine *e = rig_open((cairn_engine_opts){.ctx_len = 128});
    const int32_t n[] = {1, 2, 127, 128};
    for (int i = 0; i < 4; i++) {
        for (int with = 0; with < 2; with++) {
            cairn_request r = scoring(n[i], 0);
            r.prompt_logprobs = with;
            r.want_progress = true;
            submit(e, &alone, r);
            run(e);
            assert_int_equal(alone.n, with ? n[i] - 1 : 0);
            assert_int_equal(alone.w.n, 0);
            assert_int_equal(alone.w.n_done_events, 1);
            assert_int_equal(alone.w.finish, CAIRN_FINISH_LENGTH);
            assert_int_equal(alone.w.last_progress, n[i]); /* the last row has nothing to tell */
            assert_int_equal(alone.w.n_generated, 0);
        }
    }
    watch w; /* what it computed is there for others, but for a row that is always one's own */
    rig_submit(e, &w, watch_request(ids, 127, 1));
    run(e);
    assert_true(w.n_cached > 0);
    engine_close(e);
}

/* The sequence grows past the rotary table's range: rows are computed anew, and nothing is told twice. */
static void long_rope(void **state)
{
    (void)state;
    sim.rope.switch_len = 150;
    engine *e = rig_open((cairn_engine_opts){.max_step_rows = 70});
    for (int32_t n = 100; n <= 151; n += 17) {
        int32_t want[80];
        submit(e, &alone, scoring(n, 80));
        run(e);
        check_all(&alone, n);
        sim_greedy(&sim, ids, n, want, 80);
        assert_int_equal(alone.w.n, 80);
        assert_memory_equal(alone.w.ids, want, sizeof want);
    }
    engine_close(e);
}

static void cancelled(void **state)
{
    (void)state;
    engine *e = rig_open((cairn_engine_opts){.max_step_rows = 20});
    for (int turns = 0; turns < 4; turns++) {
        submit(e, &alone, scoring(100, 5));
        for (int i = 0; i < turns; i++) assert_true(engine_turn(e));
        engine_cancel(e, alone.w.id);
        run(e);
        assert_int_equal(alone.w.finish, CAIRN_FINISH_CANCELLED);
        assert_true(alone.n < 99);
    }
    engine_close(e);
}

enum { N_LIVES = 150, N_BEGIN = 3, LONGEST = 400, NEW = 8 };

/* Some of many requests are cancelled within a step, so that now and then all whose rows it computes are. */
typedef struct lives {
    engine *e;
    uint64_t seed, n; /* steps begun */
    int32_t n_sent;
    scored s[N_LIVES];
    cairn_request r[N_LIVES];
    int32_t ids[N_LIVES][LONGEST];
} lives;

static void leave_within(void *ctx)
{
    lives *l = ctx;
    const uint64_t u = rng_u64(l->seed, 3, l->n++);
    if (u % 3 == 0)
        for (int32_t i = 0; i < l->n_sent; i++)
            if (u % 9 == 0 || (u >> 8) % 5 == (uint64_t)i % 5) engine_cancel(l->e, l->s[i].w.id);
}

/* Few beginnings, so that they wait for each other and take up what others left; all kinds of requests. */
static void make_life(lives *l, int32_t i)
{
    const uint64_t u = rng_u64(l->seed, 4, (uint64_t)i);
    const int32_t n = 1 + (int32_t)(u % LONGEST);
    sim_prompt((u >> 20) % N_BEGIN, l->ids[i], n);
    l->r[i] = watch_request(l->ids[i], n, 1 + (int32_t)((u >> 24) % NEW));
    if ((u >> 30) % 4 == 0) {
        l->r[i].prompt_logprobs = true;
        l->r[i].n_logprobs = TOP;
    }
    l->r[i].prompt_only = (u >> 33) % 8 == 0;
    l->r[i].pin = (u >> 37) % 16 == 0 && i < 40;
    l->r[i].priority = (int32_t)((u >> 42) % 3);
    if ((u >> 45) % 3) {
        l->r[i].sampling.temperature = 1;
        l->r[i].sampling.seed = (u >> 20) % 2;
        l->r[i].choice = (uint32_t)((u >> 50) % 4);
        l->r[i].sampling.top_p = 0.9f;
    }
}

static void run_lives(lives *l, const lives *alone_l, uint64_t *n_cancelled)
{
    for (int32_t i = 0; i < N_LIVES; i++) {
        const int32_t mark[1] = {l->r[i].n_ids > 9 ? (int32_t)l->r[i].n_ids * 2 / 3 : 0};
        cairn_request r = l->r[i];
        r.marks = mark;
        r.n_marks = mark[0] > 0;
        submit(l->e, &l->s[i], r);
        l->n_sent = i + 1;
        for (uint64_t k = rng_u64(l->seed, 5, (uint64_t)i) % 4; k > 0; k--) (void)engine_turn(l->e);
    }
    run(l->e);
    for (int32_t i = 0; i < N_LIVES; i++) {
        const scored *s = &l->s[i], *a = &alone_l->s[i];
        assert_int_equal(s->w.n_done_events, 1);
        *n_cancelled += s->w.finish == CAIRN_FINISH_CANCELLED;
        if (s->w.finish != CAIRN_FINISH_CANCELLED) {
            same_bits(s, a);
        } else {
            assert_true(s->n <= a->n && s->w.n <= a->w.n);
            assert_memory_equal(s->logprob, a->logprob, (size_t)s->n * sizeof *s->logprob);
            assert_memory_equal(s->w.ids, a->w.ids, (size_t)s->w.n * sizeof *s->w.ids);
        }
    }
}

static void cancelled_within_steps(void **state)
{
    (void)state;
    static lives one, l;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++)
        for (uint64_t seed = 0; seed < 10; seed++) {
            uint64_t n_cancelled = 0;
            rig_teardown(NULL);
            rig_setup(NULL);
            sim_model_layers(&sim, kind);
            sim.rope.switch_len = seed % 2 ? 200 : 0;
            memset(&one, 0, sizeof one);
            memset(&l, 0, sizeof l);
            one.seed = l.seed = seed * 10 + kind;
            one.e = rig_open((cairn_engine_opts){.max_seqs = 1, .prefix_limit = 1});
            for (int32_t i = 0; i < N_LIVES; i++) {
                make_life(&one, i);
                make_life(&l, i);
                submit(one.e, &one.s[i], one.r[i]);
                run(one.e);
            }
            engine_close(one.e);
            l.e = rig_open((cairn_engine_opts){.max_seqs = 1 + (int32_t)(seed % 5),
                                               .max_queue = N_LIVES,
                                               .ctx_len = 450,
                                               .max_step_rows = 20 + (int32_t)(seed % 3) * 40});
            sim_within(sim.m.dev, leave_within, &l);
            run_lives(&l, &one, &n_cancelled);
            sim_within(sim.m.dev, NULL, NULL);
            for (int32_t i = 0; i < N_LIVES; i++)
                if (l.s[i].w.pinned) engine_unpin(l.e, l.s[i].w.id);
            run(l.e);
            cairn_engine_stats now = {.struct_size = sizeof now};
            engine_get_stats(l.e, &now);
            assert_int_equal(now.cache_bytes_used, now.prefix_bytes_used);
            assert_true(n_cancelled > 10 && n_cancelled < N_LIVES);
            assert_true(now.steps < l.n);
            engine_close(l.e);
        }
}

static void bad(void **state)
{
    (void)state;
    scored s = {0};
    cairn_diag dg = {0};
    engine *e = rig_open((cairn_engine_opts){.ctx_len = 128});
    cairn_request r = scoring(10, 1);
    r.n_logprobs = -1;
    assert_int_equal(engine_submit(e, &r, hear, &s, &s.w.id, &dg), CAIRN_E_ARG);
    assert_says(&dg, "prompt_logprobs beside n_logprobs -1; expected 0 to 20");
    r = scoring(129, 0);
    assert_int_equal(engine_submit(e, &r, hear, &s, &s.w.id, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "leaves room for 128");
    r = scoring(128, 1);
    assert_int_equal(engine_submit(e, &r, hear, &s, &s.w.id, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "leaves room for 127");
    engine_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(told_by_each_layout, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(same_bits_always, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(prompt_alone, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(long_rope, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(cancelled, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(cancelled_within_steps, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(bad, rig_setup, rig_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
