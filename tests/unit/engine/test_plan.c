/* Methods by one suite, execution plans, and the budget that an engine keeps to: on the simulated backend. */
#include "test.h"

#include "engine/engine_priv.h"
#include "engine/fit.h"
#include "sim_rig.h"
#include "tmp.h"

/* What every method keeps to: it proposes known rows only and the same until something is computed; what it accepts
   are ids; it ends where the budget does, and not before. */
static void keeps_to_the_rules(const method *me)
{
    enum { PROMPT = 70, NEW = 9 };
    engine *e = rig_open((cairn_engine_opts){.ctx_len = 512});
    const request_env env = {
        .vocab = SIM_VOCAB, .ctx_len = 512, .origin = &e->origin, .can = &e->can};
    const cairn_request q = watch_request(ids, PROMPT, NEW);
    sampler *chain = NULL;
    assert_ok(sampler_new(SIM_VOCAB, 512, NULL, &chain));
    const method_env menv = {NULL, chain};
    request *r = NULL;
    watch w;
    assert_ok(request_new(&q, &env, watch_event, &w, &r, NULL));
    me->begin(r);
    for (int32_t k = 0; k < NEW; k++) {
        const method_rows a = me->propose(r), b = me->propose(r);
        assert_true(a.n == b.n && a.n_out == b.n_out);
        assert_int_equal(r->n_done + a.n, r->n_ids);
        assert_true(a.n_out >= 1 && a.n_out <= me->max_out && a.n_out <= a.n);
        r->n_done += a.n;
        for (int32_t i = 0; i < a.n_out; i++) {
            float logits[SIM_VOCAB] = {0};
            sample_out s;
            logits[(k * 7 + 3) % SIM_VOCAB] = 5;
            assert_ok(me->accept(&menv, r, logits, &s, NULL));
            assert_true(s.id >= 0 && s.id < SIM_VOCAB);
            const method_end end = me->finished(menv.tok, r, s.id);
            assert_int_equal(end, r->n_ids + 1 < r->max_ids ? METHOD_GOES_ON : METHOD_FULL);
            r->ids[r->n_ids++] = s.id;
        }
    }
    assert_int_equal(r->n_ids, PROMPT + NEW);
    request_free(r);
    sampler_free(chain);
    engine_close(e);
}

static void methods(void **state)
{
    (void)state;
    static const method *const all[] = {&method_ar};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) keeps_to_the_rules(all[i]);
    assert_string_equal(method_ar.name, "autoregressive");
}

static void plans_say_what_runs(void **state)
{
    (void)state;
    static const struct {
        sim_layers kind;
        const char *layout;
    } cases[] = {{SIM_ALL_KINDS, "paged+windowed+state"},
                 {SIM_FULL, "paged"},
                 {SIM_WINDOWED, "paged+windowed"},
                 {SIM_RECURRENT, "paged+state"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sim_model_layers(&sim, cases[i].kind);
        engine *e = rig_open((cairn_engine_opts){
            .ctx_len = 1024, .max_step_rows = 100, .prefix_limit = CAIRN_NO_PREFIX});
        const exec_need need = {.n_prompt = 30, .max_ids = 130, .no_checkpoint = "logprobs"};
        const exec_plan p = exec_plan_make(&e->can, &need);
        assert_ptr_equal(p.method, &method_ar);
        assert_string_equal(p.layout, cases[i].layout);
        assert_string_equal(p.codec, "f16");
        assert_int_equal(p.max_rows, 64); /* compiled for 1, 8, 64 and 100 */
        assert_int_equal(p.last_rows, 1);
        assert_int_equal(p.n_blocks, 3);
        assert_string_equal(p.why,
                            "speculative: the model has no drafter; known prefixes: none are kept");
        cairn_engine_stats s = {.struct_size = sizeof s};
        engine_get_stats(e, &s);
        assert_string_equal(s.method, "autoregressive");
        assert_string_equal(s.cache_layout, cases[i].layout);
        assert_int_equal(s.program, p.program);
        assert_int_equal(s.program_rows, 100);
        engine_close(e);
    }
    sim_model_layers(&sim, SIM_ALL_KINDS);
}

/* Whatever differs, context, codec, rows or program: the plan is refused, and a request with it ends with the
   reason while the next one runs. */
static void plans_for_another_shape_are_refused(void **state)
{
    (void)state;
    const cairn_engine_opts others[] = {{.ctx_len = 512},
                                        {.ctx_len = 1024, .kv_codec = "bf16"},
                                        {.ctx_len = 1024, .max_step_rows = 100}};
    const exec_need need = {.n_prompt = 30, .max_ids = 130};
    static watch bad, good;
    cairn_diag dg = {0};
    engine *e = rig_open((cairn_engine_opts){.ctx_len = 1024});
    const exec_plan mine = exec_plan_make(&e->can, &need);
    assert_ok(exec_plan_check(&mine, &e->can, &dg));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        engine *o = rig_open(others[i]);
        const exec_plan theirs = exec_plan_make(&o->can, &need);
        assert_int_equal(exec_plan_check(&theirs, &e->can, &dg), CAIRN_E_ARG);
        assert_says(&dg, "a plan for shape");
        assert_says(&dg, "; expected one for");
        if (i == 1) assert_says(&dg, "f16");
        engine_close(o);
    }
    rig_submit(e, &bad, watch_request(ids, 100, 5));
    e->inbox[0]->plan.shape ^= 1;
    rig_submit(e, &good, watch_request(ids, 100, 5));
    while (engine_turn(e)) {
    }
    assert_int_equal(bad.finish, CAIRN_FINISH_ERROR);
    assert_int_equal(bad.status, CAIRN_E_ARG);
    assert_int_equal(bad.n, 0);
    assert_non_null(strstr(bad.message, "a plan for shape"));
    assert_int_equal(good.n, 5);
    engine_close(e);
}

/* What is allocated once the engine is open is what was reserved, but for what has not come yet: requests and the
   caller's own. */
static void budget_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        cairn_engine_opts o = {.ctx_len = i % 2 ? 1024 : 0,
                               .memory_budget = (UINT64_C(24) << 20) << i / 2,
                               .host_bytes = 1 << 20,
                               .prefix_limit = i == 3 ? CAIRN_NO_PREFIX : 0};
        engine *e = rig_open(o);
        const guard_out *f = &e->fit;
        const uint64_t coming = f->request_bytes + f->host_bytes;
        assert_true(f->reserved <= o.memory_budget);
        assert_true(f->reserved > o.memory_budget / 2 || i > 0);
        const uint64_t held = mem_used_all() + f->weights_bytes;
        assert_true(held <= f->reserved - coming + 4096);
        assert_true(held + (1 << 16) >=
                    f->reserved - coming); /* and no more than that is held back */
        cairn_engine_stats s = {.struct_size = sizeof s};
        engine_get_stats(e, &s);
        assert_int_equal(s.memory_budget, o.memory_budget);
        assert_int_equal(s.memory_reserved, f->reserved);
        engine_close(e);
    }
}

/* What others hold is nothing to an engine whose budget is its own. */
static void budget_of_its_own(void **state)
{
    (void)state;
    cairn_engine_opts o = {.memory_budget = 24 << 20, .other_bytes = 100000};
    engine *alone = rig_open(o), *e = NULL;
    void *others = mem_map(64 << 20, MEM_MISC);
    engine *beside = rig_open(o);
    const uint64_t own =
        alone->fit.other_bytes - 100000; /* its samplers and tables, whoever counts them */
    assert_true(own > drawer_bytes(alone->drawer) && own < drawer_bytes(alone->drawer) + (1 << 16));
    assert_true(alone->fit.reserved <= o.memory_budget);
    assert_memory_equal(&alone->fit, &beside->fit, sizeof alone->fit);
    engine_close(alone);
    engine_close(beside);
    o.other_bytes = 0;
    assert_int_equal(engine_open(&sim.m, NULL, &o, &sim_hooks, &e, NULL), CAIRN_E_LIMIT);
    mem_unmap(others, 64 << 20, MEM_MISC);
}

/* Where sequences take all that is left, a tree without room for prefixes and the stages of a disk have theirs too.
   Where these do not fit, there is no engine with a disk, and without one no prefixes are kept. */
static void tight_budget_is_kept(void **state)
{
    (void)state;
    tmp_dir dir;
    assert_true(tmp_make(&dir));
    for (int i = 0; i < 4; i++) {
        const bool disk = i % 2;
        int none = 0, bare = 0, refused = 0;
        uint64_t least = 0; /* the first that suffices, by coarse steps */
        for (uint64_t budget = 19 << 20; budget < 22 << 20;
             budget += budget < least ? 1 << 12 : 1 << 16) {
            const cairn_engine_opts o = {.max_seqs = 8,
                                         .ctx_len = i / 2 * 2048,
                                         .memory_budget = budget,
                                         .disk_dir = disk ? dir.path : NULL};
            engine *e = NULL;
            cairn_diag dg = {0};
            const cairn_status st = engine_open(&sim.m, NULL, &o, &sim_hooks, &e, &dg);
            assert_true(st == CAIRN_OK || st == CAIRN_E_LIMIT);
            refused += st != CAIRN_OK;
            if (st != CAIRN_OK) continue;
            const guard_out *f = &e->fit;
            assert_true(f->reserved <= budget);
            assert_true(mem_used_all() + f->weights_bytes + f->request_bytes + f->host_bytes <=
                        f->reserved + 4096);
            assert_true(cache_keeps(stepper_cache(e->stepper)) == (f->prefix_bytes > 0));
            none += f->prefix_bytes == 0;
            bare += f->prefix_bytes > 0 && f->prefix_room == 0;
            engine_close(e);
            if (least) continue;
            least = budget; /* up to it by fine ones: the tables of a tree are small */
            budget -= 1 << 16;
        }
        assert_true(bare > 0 && refused > 0);
        assert_true((none > 0) == !disk);
    }
    assert_true(tmp_drop(&dir));
}

static void budget_too_small(void **state)
{
    (void)state;
    engine *e;
    cairn_diag dg = {0};
    const cairn_engine_opts o = {.ctx_len = 2048, .memory_budget = 17 << 20};
    assert_int_equal(engine_open(&sim.m, NULL, &o, &sim_hooks, &e, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "a context of 2048 needs");
    assert_says(&dg, "scratch");
    assert_says(&dg, "the budget is 17825792");
}

/* The bytes of a request are those that it takes, at its least and at its most; no more than fit are accepted, and
   who is refused is told the figures.  What ends gives them back. */
static void requests_have_a_share(void **state)
{
    (void)state;
    enum { N = 20 };
    static watch w[N];
    static cairn_bias bias[CAIRN_MAX_BIAS];
    static char text[CAIRN_MAX_STOP_BYTES];
    cairn_str stop[CAIRN_MAX_STOP];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < CAIRN_MAX_STOP; i++) stop[i] = (cairn_str){text, sizeof text};
    engine *e = rig_open((cairn_engine_opts){.ctx_len = 1024, .max_queue = N});
    for (int i = 0; i < 2; i++) {
        cairn_request r = watch_request(ids, i ? 500 : 1, i ? 0 : 1);
        r.stop = stop;
        r.n_stop = i ? CAIRN_MAX_STOP : 0;
        r.sampling.bias = bias;
        r.sampling.n_bias = i ? CAIRN_MAX_BIAS : 0;
        const uint64_t before = mem_used_all();
        rig_submit(e, &w[0], r);
        assert_true(mem_used_all() - before <= e->request_bytes);
        assert_true(e->request_bytes <= request_worst_bytes(NULL, 1024));
        while (engine_turn(e)) {
        }
        assert_int_equal(e->request_bytes, 0);
    }
    int n = 0;
    cairn_diag dg = {0};
    e->fit.request_bytes = 100000;
    for (; n < N; n++) {
        const cairn_request r = watch_request(ids, 500, 0);
        memset(&w[n], 0, sizeof w[n]);
        if (engine_submit(e, &r, watch_event, &w[n], &w[n].id, &dg) != CAIRN_OK) break;
    }
    assert_true(n > 1 && n < N);
    assert_int_equal(dg.status, CAIRN_E_BUSY);
    assert_says(&dg, "of the 100000 for requests, others that run or wait hold");
    while (engine_turn(e)) {
    }
    for (int i = 0; i < n; i++) assert_int_equal(w[i].finish, CAIRN_FINISH_LENGTH);
    rig_submit(e, &w[0], watch_request(ids, 500, 1));
    engine_close(e);
}

typedef struct told {
    cairn_fit_row row[64];
    int n;
} told;

static void note(void *ctx, const cairn_fit_row *row)
{
    told *t = ctx;
    assert_true(t->n < 64);
    t->row[t->n++] = *row;
}

/* The table's figures are those of an engine that opens so, and its longest context opens. */
static void fit_agrees_with_the_engine(void **state)
{
    (void)state;
    cairn_fit_opts o = {.struct_size = sizeof o, .memory_budget = 32 << 20, .no_speed = true};
    cairn_fit_report r = {.struct_size = sizeof r};
    told t = {.n = 0};
    cairn_diag dg = {0};
    assert_ok(fit_model(&sim.m, NULL, &o, note, &t, &r, &dg));
    assert_int_equal(t.n, 6); /* 2048 and 4096, by 1, 4 and 16 */
    assert_int_equal(r.budget_bytes, 32 << 20);
    for (int i = 0; i < t.n; i++) {
        const cairn_fit_row *x = &t.row[i];
        const cairn_engine_opts eo = {.ctx_len = x->ctx_len,
                                      .max_seqs = x->max_seqs,
                                      .memory_budget = UINT64_C(1) << 40,
                                      .prefix_limit = CAIRN_NO_PREFIX};
        engine *e = rig_open(eo);
        assert_int_equal(x->cache_bytes, e->fit.cache_bytes);
        assert_int_equal(x->scratch_bytes, e->fit.scratch_bytes);
        assert_int_equal(x->table_bytes, e->fit.overhead);
        assert_int_equal(x->fits, x->needed_bytes <= o.memory_budget);
        /* what is simulated counts its scratch and has none, so an engine's sum is the less by so much */
        const uint64_t near =
            x->scratch_bytes + (1 << 16) + e->fit.request_bytes - x->request_bytes;
        assert_true(x->needed_bytes <= e->fit.reserved + near);
        assert_true(x->needed_bytes + near >= e->fit.reserved);
        engine_close(e);
    }
    assert_true(r.max_ctx > 0);
    o.ctx_len = 5000;
    assert_int_equal(fit_model(&sim.m, NULL, &o, note, &t, &r, &dg), CAIRN_E_ARG);
    assert_says(&dg, "expected 1 to 4096");
    o.ctx_len = 0;
    o.max_seqs = 1000;
    assert_int_equal(fit_model(&sim.m, NULL, &o, note, &t, &r, &dg), CAIRN_E_ARG);
    o.max_seqs = 1;
    o.memory_budget = 1 << 20;
    t.n = 0;
    assert_ok(fit_model(&sim.m, NULL, &o, note, &t, &r, &dg));
    assert_int_equal(r.max_ctx, 0);
    assert_int_equal(t.n, 2);
    assert_false(t.row[0].fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods),
        cmocka_unit_test(plans_say_what_runs),
        cmocka_unit_test(plans_for_another_shape_are_refused),
        cmocka_unit_test(budget_is_kept),
        cmocka_unit_test(budget_of_its_own),
        cmocka_unit_test(tight_budget_is_kept),
        cmocka_unit_test(budget_too_small),
        cmocka_unit_test(requests_have_a_share),
        cmocka_unit_test(fit_agrees_with_the_engine),
    };
    return cmocka_run_group_tests_name("plan", tests, rig_setup, rig_teardown);
}
