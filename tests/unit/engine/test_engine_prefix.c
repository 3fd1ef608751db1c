/* Prompts that begin alike: later ones take up rows of earlier ones, and answer as if alone.  The simulated
   backend chains a hash through cache and state, so a row from elsewhere changes every token behind it. */
#include "test.h"

#include "base/num.h"
#include "base/rng.h"
#include "engine/engine_priv.h"
#include "sim_model.h"
#include "watch.h"

static sim_model sim;
static int32_t ids[SIM_CTX];
static const engine_hooks hooks = {.manual = true};

static engine *open_engine(cairn_engine_opts o)
{
    engine *e = NULL;
    cairn_diag dg = {0};
    if (engine_open(&sim.m, NULL, &o, &hooks, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return e;
}

static void begin(sim_layers kind)
{
    sim_model_open(&sim, 31, SIM_SOUND);
    sim_model_layers(&sim, kind);
    sim_prompt(31, ids, SIM_CTX);
}

static void answer(engine *e, watch *w, const cairn_request *r)
{
    cairn_diag dg = {0};
    memset(w, 0, sizeof *w);
    if (engine_submit(e, r, watch_event, w, &w->id, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    while (engine_turn(e)) {
    }
    assert_int_equal(w->finish, CAIRN_FINISH_LENGTH);
}

/* Answers how much was taken up. */
static int32_t ask(engine *e, const int32_t *prompt, int32_t n, int32_t n_new, int32_t *out)
{
    watch w;
    int32_t want[WATCH_IDS];
    const cairn_request r = watch_request(prompt, n, n_new);
    answer(e, &w, &r);
    sim_greedy(&sim, prompt, n, want, n_new);
    assert_int_equal(w.n, n_new);
    assert_memory_equal(w.ids, want, (size_t)n_new * sizeof *want);
    if (out) memcpy(out, w.ids, (size_t)n_new * sizeof *out);
    return w.n_cached;
}

/* Each turn of a conversation computes what is new, and the last token that was drawn but not run. */
static void conversation(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        begin(kind);
        engine *e = open_engine((cairn_engine_opts){.max_step_rows = 100});
        int32_t n = 200, known = 0;
        for (int turn = 0; turn < 6; turn++) {
            assert_int_equal(ask(e, ids, n, 20, ids + n), known);
            known = n + 19;
            n += 20 + 3 * turn + 1;
        }
        engine_close(e);
        sim_model_close(&sim);
    }
}

/* The same prompt again: all but the last row, or from the last mark before it on. */
static void again_and_edited(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        begin(kind);
        const bool marks = kind == SIM_ALL_KINDS || kind == SIM_RECURRENT;
        const int32_t at[2] = {400, 690};
        watch w;
        engine *e = open_engine((cairn_engine_opts){.max_step_rows = 128});
        cairn_request r = watch_request(ids, 700, 5);
        r.marks = at;
        r.n_marks = 2;
        answer(e, &w, &r);
        assert_int_equal(w.n_cached, 0);
        answer(e, &w, &r);
        assert_int_equal(w.n_cached, marks ? 690 : 699);
        ids[600] ^= 1; /* the last message is another one */
        assert_int_equal(ask(e, ids, 700, 5, NULL), marks ? 400 : 600);
        ids[600] ^= 1;
        assert_int_equal(ask(e, ids, 700, 5, NULL), marks ? 690 : 699);
        engine_close(e);
        sim_model_close(&sim);
    }
}

/* Without marks of the caller there is one every so many rows. */
static void marks_of_its_own(void **state)
{
    (void)state;
    begin(SIM_RECURRENT);
    engine *e = open_engine((cairn_engine_opts){0});
    (void)ask(e, ids, 3000, 2, NULL);
    ids[2500] ^= 1;
    assert_int_equal(ask(e, ids, 3000, 2, NULL), 2048);
    engine_close(e);
    sim_model_close(&sim);
}

static int32_t ask_in(engine *e, const char *space, int32_t n)
{
    watch w;
    cairn_request r = watch_request(ids, n, 5);
    r.cache_space = (cairn_str){space, strlen(space)};
    r.marks = &n;
    r.n_marks = 1;
    answer(e, &w, &r);
    return w.n_cached;
}

/* Nobody's rows are taken up in another space, but those of the common one in all. */
static void spaces_are_apart(void **state)
{
    (void)state;
    begin(SIM_ALL_KINDS);
    engine *e = open_engine((cairn_engine_opts){0});
    assert_int_equal(ask_in(e, "alice", 300), 0);
    assert_int_equal(ask_in(e, "alice", 310), 300);
    assert_int_equal(ask_in(e, "bob", 310), 0);
    assert_int_equal(ask_in(e, "", 200), 0);
    assert_int_equal(ask_in(e, "", 210), 200);
    assert_int_equal(ask_in(e, "carol", 310), 210);
    assert_int_equal(ask_in(e, "", 310), 210);
    assert_int_equal(ask_in(e, "carol", 320), 310);
    cairn_engine_stats s = {.struct_size = sizeof s};
    engine_get_stats(e, &s);
    assert_int_equal(s.cached_tokens, 300 + 200 + 210 + 210 + 310);
    engine_close(e);
    sim_model_close(&sim);
}

/* What is pinned outlasts a flood, and goes when it is no more. */
static void pinned(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        begin(kind);
        static int32_t other[400];
        watch w, x;
        engine *e =
            open_engine((cairn_engine_opts){.ctx_len = 600, .max_seqs = 1, .prefix_limit = 40000});
        cairn_request r = watch_request(ids, 200, 1);
        r.pin = true;
        answer(e, &w, &r);
        assert_true(w.pinned);
        for (uint64_t flood = 0; flood < 60; flood++) {
            sim_prompt(100 + flood, other, 400);
            const cairn_request more = watch_request(other, 400, 100);
            answer(e, &x, &more);
        }
        assert_int_equal(ask(e, ids, 210, 5, NULL), 200);
        engine_unpin(e, w.id);
        engine_unpin(e, w.id + 1000);
        for (uint64_t flood = 0; flood < 60; flood++) {
            sim_prompt(200 + flood, other, 400);
            const cairn_request more = watch_request(other, 400, 100);
            answer(e, &x, &more);
        }
        assert_int_equal(ask(e, ids, 210, 5, NULL), 0);
        r.cache_space = (cairn_str){"x", 1};
        r.n_ids = 599; /* would leave no room for a whole sequence */
        answer(e, &w, &r);
        engine_close(e);
        sim_model_close(&sim);
    }
}

static void can_be_off(void **state)
{
    (void)state;
    begin(SIM_FULL);
    engine *e = open_engine((cairn_engine_opts){.prefix_limit = CAIRN_NO_PREFIX});
    assert_int_equal(ask(e, ids, 300, 5, NULL), 0);
    assert_int_equal(ask(e, ids, 300, 5, NULL), 0);
    cairn_engine_stats s = {.struct_size = sizeof s};
    engine_get_stats(e, &s);
    assert_int_equal(s.cache_bytes_used, 0);
    assert_int_equal(s.prefix_bytes_limit, 0);
    engine_close(e);
    sim_model_close(&sim);
}

/* Rows of one rotary table are no prefix for the other: 140 + 20 rows pass the length at which it changes. */
static void long_rope(void **state)
{
    (void)state;
    begin(SIM_FULL);
    sim.rope.switch_len = 150;
    engine *e = open_engine((cairn_engine_opts){0});
    assert_int_equal(ask(e, ids, 140, 5, NULL), 0);
    assert_int_equal(ask(e, ids, 140, 20, NULL), 139);
    assert_int_equal(ask(e, ids, 200, 5, NULL), 140); /* those that were computed anew */
    assert_int_equal(ask(e, ids, 145, 2, NULL), 140);
    engine_close(e);
    sim_model_close(&sim);
}

/* A cancelled prompt's rows are good for the next try. */
static void cancelled(void **state)
{
    (void)state;
    begin(SIM_ALL_KINDS);
    watch w = {0};
    engine *e = open_engine((cairn_engine_opts){.max_step_rows = 100});
    const cairn_request r = watch_request(ids, 1000, 5);
    assert_ok(engine_submit(e, &r, watch_event, &w, &w.id, NULL));
    for (int i = 0; i < 4; i++) assert_true(engine_turn(e));
    engine_cancel(e, w.id);
    while (engine_turn(e)) {
    }
    assert_int_equal(w.finish, CAIRN_FINISH_CANCELLED);
    assert_int_equal(ask(e, ids, 1000, 5, NULL), 400);
    engine_close(e);
    sim_model_close(&sim);
}

typedef struct leaver {
    engine *e;
    const watch *w;
    int32_t before; /* steps that it lets pass */
} leaver;

static void leave_within(void *ctx)
{
    leaver *l = ctx;
    if (l->before-- == 0) engine_cancel(l->e, l->w->id);
}

/* A step is given up when all whose rows it computes have gone meanwhile; what it left behind misleads nobody. */
static void gone_within_a_step(void **state)
{
    (void)state;
    const int32_t at = 300;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++)
        for (int32_t before = 0; before < 14; before++) {
            begin(kind);
            static watch w;
            w = (watch){0};
            engine *e = open_engine((cairn_engine_opts){.max_step_rows = 100});
            leaver l = {e, &w, before};
            cairn_request r = watch_request(ids, 1000, 5);
            r.marks = &at;
            r.n_marks = 1;
            sim_within(sim.m.dev, leave_within, &l);
            assert_ok(engine_submit(e, &r, watch_event, &w, &w.id, NULL));
            while (engine_turn(e)) {
            }
            cairn_engine_stats now = {.struct_size = sizeof now};
            engine_get_stats(e, &now);
            assert_int_equal(now.steps, before);
            assert_int_equal(w.finish, CAIRN_FINISH_CANCELLED);
            assert_int_equal(w.n, max_i32(before - 9, 0));
            assert_int_equal(now.cache_bytes_used, now.prefix_bytes_used);
            sim_within(sim.m.dev, NULL, NULL);
            const int32_t known = ask(e, ids, 1000, 5, NULL);
            if (kind == SIM_FULL) assert_int_equal(known, min_i32(100 * before, 999));
            if (kind == SIM_RECURRENT) assert_int_equal(known, before < 3 ? 0 : 300);
            engine_close(e);
            sim_model_close(&sim);
        }
}

/* But not when one of them stays: who does has the answer that he has alone. */
static void one_stays(void **state)
{
    (void)state;
    for (int32_t before = 0; before < 14; before++) {
        begin(SIM_ALL_KINDS);
        static watch gone, stays;
        int32_t want[5];
        gone = stays = (watch){0};
        sim_greedy(&sim, ids + 7, 400, want, 5);
        engine *e = open_engine((cairn_engine_opts){.max_seqs = 2, .max_step_rows = 100});
        leaver l = {e, &gone, before};
        const cairn_request a = watch_request(ids, 400, 5), b = watch_request(ids + 7, 400, 5);
        assert_ok(engine_submit(e, &a, watch_event, &gone, &gone.id, NULL));
        assert_ok(engine_submit(e, &b, watch_event, &stays, &stays.id, NULL));
        sim_within(sim.m.dev, leave_within, &l);
        while (engine_turn(e)) {
        }
        assert_int_equal(stays.finish, CAIRN_FINISH_LENGTH);
        assert_memory_equal(stays.ids, want, sizeof want);
        engine_close(e);
        sim_model_close(&sim);
    }
}

enum { N_ASK = 120, LONGEST = 500 };

/* Many prompts of few beginnings, several at once, in little and in much memory. */
static void random_beginnings(void **state)
{
    (void)state;
    static watch w[N_ASK];
    static int32_t prompt[N_ASK][LONGEST], want[N_ASK][12];
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++)
        for (uint64_t limit = 20000; limit <= 2000000; limit *= 100) {
            begin(kind);
            int64_t cached = 0;
            engine *e = open_engine((cairn_engine_opts){.ctx_len = 600,
                                                        .max_seqs = 5,
                                                        .max_queue = N_ASK,
                                                        .max_step_rows = 60,
                                                        .prefix_limit = limit});
            for (int i = 0; i < N_ASK; i++) {
                const uint64_t u = rng_u64(5, limit, (uint64_t)i);
                const int32_t n = 1 + (int32_t)(u % LONGEST),
                              from = (int32_t)((u >> 20) % (uint64_t)n);
                sim_prompt((u >> 40) % 3, prompt[i], n);
                for (int32_t k = from; k < n && u >> 62; k++)
                    prompt[i][k] = (int32_t)(rng_u64(u >> 50 & 3, 9, (uint64_t)k) % SIM_VOCAB);
                sim_greedy(&sim, prompt[i], n, want[i], 12);
                cairn_request r = watch_request(prompt[i], n, 1 + (int32_t)((u >> 12) % 12));
                const int32_t mark[1] = {from};
                r.marks = mark;
                r.n_marks = 1;
                memset(&w[i], 0, sizeof w[i]);
                assert_ok(engine_submit(e, &r, watch_event, &w[i], &w[i].id, NULL));
                for (uint64_t k = u >> 33 & 3; k > 0; k--) (void)engine_turn(e);
            }
            while (engine_turn(e)) {
            }
            for (int i = 0; i < N_ASK; i++) {
                assert_int_equal(w[i].finish, CAIRN_FINISH_LENGTH);
                assert_memory_equal(w[i].ids, want[i], (size_t)w[i].n * sizeof(int32_t));
                cached += w[i].n_cached;
            }
            if (limit > 20000) assert_true(cached > 0);
            engine_close(e);
            sim_model_close(&sim);
        }
}

static void bad_marks(void **state)
{
    (void)state;
    begin(SIM_FULL);
    engine *e = open_engine((cairn_engine_opts){0});
    watch w = {0};
    cairn_diag dg;
    const int32_t falling[2] = {5, 4}, past[1] = {11}, many[CAIRN_MAX_MARKS + 1] = {0};
    const struct {
        const int32_t *marks;
        size_t n;
        const char *says;
    } bad[] = {{falling, 2, "mark 1 is 4"},
               {past, 1, "mark 0 is 11"},
               {many, CAIRN_MAX_MARKS + 1, "9 marks"}};
    for (size_t i = 0; i < 3; i++) {
        cairn_request r = watch_request(ids, 10, 1);
        r.marks = bad[i].marks;
        r.n_marks = bad[i].n;
        assert_int_equal(engine_submit(e, &r, watch_event, &w, &w.id, &dg), CAIRN_E_ARG);
        assert_says(&dg, bad[i].says);
    }
    engine_close(e);
    sim_model_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(conversation),
                                       cmocka_unit_test(again_and_edited),
                                       cmocka_unit_test(marks_of_its_own),
                                       cmocka_unit_test(spaces_are_apart),
                                       cmocka_unit_test(pinned),
                                       cmocka_unit_test(can_be_off),
                                       cmocka_unit_test(long_rope),
                                       cmocka_unit_test(cancelled),
                                       cmocka_unit_test(gone_within_a_step),
                                       cmocka_unit_test(one_stays),
                                       cmocka_unit_test(random_beginnings),
                                       cmocka_unit_test(bad_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
