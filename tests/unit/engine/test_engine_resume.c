/* Answers that go on after a crash: a child process is the engine that dies, without any closing; the next one
   answers the same request as if nothing had happened. */
#include "test.h"
#include "tmp.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cairn/reply.h"
#include "engine/engine_priv.h"
#include "fake_time.h"
#include "sim_model.h"
#include "tok_json.h"
#include "watch.h"

enum { OPEN = SIM_VOCAB - 2, CLOSE, PROMPT = 200, ANSWER = 60, EVERY = 7, FLUSH_MS = TEST_WAIT_MS };

static sim_model sim;
static tok *t;
static tmp_dir dir;
static int32_t ids[SIM_CTX];
static const engine_hooks hooks = {.manual = true};

/* One piece for each of some visible bytes of ASCII, and two markers. */
static void open_tok(void)
{
    cairn_diag dg = {0};
    buf json;
    buf_init(&json, MEM_MISC);
    buf_printf(&json,
               "{\"added_tokens\":[{" TOK_PLAIN ",\"id\":%d,\"content\":\"<think>\"},{" TOK_PLAIN
               ",\"id\":%d,\"content\":\"</think>\"}],\"pre_tokenizer\":" TOK_BYTE_LEVEL
               ",\"decoder\":" TOK_BYTE_LEVEL
               ",\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{",
               OPEN, CLOSE);
    for (int i = 0; i < OPEN; i++) {
        const char c = (char)('!' + i);
        buf_printf(&json, "%s\"%s%c\":%d", i ? "," : "", c == '"' || c == '\\' ? "\\" : "", c, i);
    }
    buf_puts(&json, "}}}");
    if (tok_open_hf(buf_view(&json), (cairn_str){"", 0}, "test", &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    buf_deinit(&json);
}

static int setup(void **state)
{
    (void)state;
    open_tok();
    return tmp_make(&dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    tok_close(t);
    return tmp_drop(&dir) ? 0 : -1;
}

static void begin(sim_layers kind)
{
    sim_model_open(&sim, 31, SIM_SOUND);
    sim_model_layers(&sim, kind);
    sim_prompt(31, ids, SIM_CTX);
}

static engine *open_engine(bool saves)
{
    engine *e = NULL;
    cairn_diag dg = {0};
    cairn_engine_opts o = {.max_step_rows = 100, .ctx_len = 1000};
    if (saves) o.disk_dir = dir.path;
    if (saves) o.checkpoint_every = EVERY;
    if (engine_open(&sim.m, t, &o, &hooks, &e, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return e;
}

static void submit(engine *e, watch *w, const cairn_request *r)
{
    cairn_diag dg = {0};
    memset(w, 0, sizeof *w);
    if (engine_submit(e, r, watch_event, w, &w->id, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
}

static void answer(engine *e, watch *w, const cairn_request *r)
{
    submit(e, w, r);
    while (engine_turn(e)) {
    }
    assert_int_equal(w->n_done_events, 1);
}

static cairn_engine_stats stats_of(engine *e)
{
    cairn_engine_stats s = {.struct_size = sizeof s};
    engine_get_stats(e, &s);
    return s;
}

typedef enum wish { FLUSHED, WRITTEN, ROWS_WRITTEN } wish; /* before it dies */

static bool has(engine *e, wish how)
{
    ckpt_stats saved;
    ckpt_get_stats(e->ckpt, &saved);
    if (how == WRITTEN) return saved.n_written > 0; /* whatever the disk takes, it draws no more */
    (void)engine_turn(e);                           /* it never is idle */
    return stats_of(e).disk_entries > 0 && saved.n_written > 0;
}

/* An engine that answers n tokens and dies. */
static void die_after(const cairn_request *r, int32_t n, wish how)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enum { SLOW_MS = 500, TURNS = TEST_WAIT_MS / SLOW_MS };
        static watch w;
        cairn_flush f = {.struct_size = sizeof f};
        engine *e = open_engine(true);
        submit(e, &w, r);
        while (w.n < n && engine_turn(e)) {
        }
        if (how == FLUSHED) engine_flush(e, FLUSH_MS, &f);
        /* Slowly: an answer that ends too soon would leave nothing. */
        for (int i = 0; how != FLUSHED && !has(e, how) && i < TURNS && e->n_active > 0; i++)
            (void)usleep(i < 9 ? 10000 : SLOW_MS * 1000);
        _exit(w.n >= n && f.checkpoints_pending + f.checkpoints_failed + f.pending == 0 ? 0 : 1);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

static void same(const watch *w, const watch *want)
{
    assert_int_equal(w->n, want->n);
    assert_memory_equal(w->ids, want->ids, (size_t)w->n * sizeof *w->ids);
    assert_int_equal(w->n_text, want->n_text);
    assert_memory_equal(w->text, want->text, w->n_text);
    assert_int_equal(w->finish, want->finish);
    assert_int_equal(w->n_generated, want->n_generated);
    assert_int_equal(w->n_prompt, want->n_prompt);
}

static void uninterrupted(const cairn_request *r, watch *w)
{
    engine *e = open_engine(false);
    answer(e, w, r);
    engine_close(e);
}

/* Dies after so many tokens, and answers as `want`; nothing is left when it has. */
static void check(const cairn_request *r, const watch *want, int32_t n, wish how)
{
    watch w;
    die_after(r, n, how);
    engine *e = open_engine(true);
    answer(e, &w, r);
    same(&w, want);
    assert_true(how == FLUSHED ? w.n_replayed == n : w.n_replayed >= EVERY);
    if (how == FLUSHED) assert_true(w.n_cached >= PROMPT / KV_BLOCK * KV_BLOCK);
    cairn_flush f = {.struct_size = sizeof f};
    engine_flush(e, FLUSH_MS, &f);
    assert_int_equal(f.checkpoints + f.checkpoints_pending + f.checkpoints_failed, 0);
    assert_int_equal(f.cleanups_failed, 0);
    (void)engine_turn(e);
    const cairn_engine_stats s = stats_of(e);
    assert_int_equal(s.n_resumed, 1);
    assert_int_equal(s.replayed_tokens, w.n_replayed);
    assert_int_equal(s.generated_tokens, w.n - w.n_replayed);
    assert_int_equal(s.checkpoint_files, 0);
    engine_close(e);
}

static cairn_request sampled(void)
{
    cairn_request r = watch_request(ids, PROMPT, ANSWER);
    r.sampling.temperature = 1;
    r.sampling.top_p = 0.95f;
    r.sampling.repetition_penalty = 1.2f;
    r.sampling.presence_penalty = 0.1f;
    r.sampling.seed = 4;
    return r;
}

static void every_kind(void **state)
{
    (void)state;
    for (sim_layers kind = SIM_ALL_KINDS; kind <= SIM_RECURRENT; kind++) {
        begin(kind);
        watch want;
        const cairn_request greedy = watch_request(ids, PROMPT, ANSWER), drawn = sampled();
        uninterrupted(&greedy, &want);
        check(&greedy, &want, EVERY, WRITTEN);
        uninterrupted(&drawn, &want);
        check(&drawn, &want, 33, FLUSHED);
        cairn_request aimed = drawn; /* its mu is in the checkpoint */
        aimed.sampling.mirostat = 2;
        uninterrupted(&aimed, &want);
        check(&aimed, &want, 33, FLUSHED);
        sim_model_close(&sim);
    }
}

/* Rows do not wait until nothing else is to do. */
static void rows_while_busy(void **state)
{
    (void)state;
    begin(SIM_ALL_KINDS);
    watch want;
    cairn_request r = sampled();
    r.max_tokens = WATCH_IDS;
    uninterrupted(&r, &want);
    check(&r, &want, EVERY, ROWS_WRITTEN);
    sim_model_close(&sim);
}

/* It dies twice, and in a sequence that grows past a rotary table's range. */
static void twice(void **state)
{
    (void)state;
    begin(SIM_FULL);
    sim.rope.switch_len = PROMPT + 20;
    watch want;
    const cairn_request r = sampled();
    uninterrupted(&r, &want);
    die_after(&r, 15, FLUSHED);
    check(&r, &want, 44, FLUSHED);
    sim_model_close(&sim);
}

/* A stop string that begins before what was saved and ends behind. */
static void stop_strings(void **state)
{
    (void)state;
    begin(SIM_FULL);
    watch want;
    cairn_request r = sampled();
    uninterrupted(&r, &want);
    const cairn_str stop = {want.text + 2 * EVERY - 2, 4};
    const char text[5] = {stop.ptr[0], stop.ptr[1], stop.ptr[2], stop.ptr[3], '\0'};
    r.stop = &(cairn_str){text, 4};
    r.n_stop = 1;
    uninterrupted(&r, &want);
    assert_int_equal(want.finish, CAIRN_FINISH_STOP);
    assert_int_equal(want.n, 2 * EVERY + 2);
    check(&r, &want, 2 * EVERY, FLUSHED);
    sim_model_close(&sim);
}

/* A budget for thinking: before it is spent, where the thought is being closed, and behind. */
static void thoughts(void **state)
{
    (void)state;
    begin(SIM_FULL);
    watch want;
    cairn_reply_opts o = {.struct_size = sizeof o, .family = "hermes", .any_tool = true};
    o.prompt = STR_LIT("<think>");
    cairn_request r = sampled();
    r.keep_special = true;
    r.think_budget = 12;
    r.reply = &o;
    uninterrupted(&r, &want);
    assert_int_equal(want.ids[12], CLOSE);
    for (int32_t n = 11; n < 14; n++) check(&r, &want, n, FLUSHED);
    sim_model_close(&sim);
}

/* Another request is another answer, whatever differs. */
static void other_requests(void **state)
{
    (void)state;
    begin(SIM_FULL);
    static const cairn_str space = {"x", 1};
    static const cairn_bias bias = {3, -1};
    enum { KINDS = 13 };
    const cairn_request base = sampled();
    cairn_request r[KINDS];
    for (int i = 0; i < KINDS; i++) r[i] = base;
    r[0].ids = ids + 1;
    r[1].n_ids = PROMPT - 1;
    r[2].max_tokens = ANSWER + 1;
    r[3].sampling.seed = 5;
    r[4].any_seed = true;
    r[5].sampling.temperature = 0.5f;
    r[6].sampling.bias = &bias;
    r[6].sampling.n_bias = 1;
    r[7].stop = &space;
    r[7].n_stop = 1;
    r[8].choice = 1;
    r[9].cache_space = space;
    r[10].keep_special = true;
    r[11].n_logprobs = 0;
    r[12].sampling.dry_multiplier = 1;
    die_after(&base, 20, FLUSHED);
    engine *e = open_engine(true);
    for (int i = 0; i < KINDS; i++) {
        watch w;
        answer(e, &w, &r[i]);
        assert_int_equal(w.n_replayed, 0);
    }
    cairn_engine_stats s = stats_of(e);
    assert_int_equal(s.n_resumed, 0);
    assert_int_equal(s.checkpoints_refused, 1); /* log-probabilities */
    engine_close(e);
    watch want;
    uninterrupted(&base, &want);
    e = open_engine(true);
    watch w;
    answer(e, &w, &base); /* is still there */
    same(&w, &want);
    assert_int_equal(w.n_replayed, 20);
    engine_close(e);
    sim_model_close(&sim);
}

/* A seed that nobody gave is that of the attempt that died. */
static void any_seed(void **state)
{
    (void)state;
    begin(SIM_FULL);
    watch want, w;
    cairn_request r = sampled();
    r.any_seed = true;
    uninterrupted(&r, &want);
    die_after(&r, 20, FLUSHED);
    r.sampling.seed = 77;
    engine *e = open_engine(true);
    answer(e, &w, &r);
    same(&w, &want);
    answer(e, &w, &r); /* complete: whoever asks now wants another answer */
    assert_int_equal(w.n_replayed, 0);
    assert_true(memcmp(w.ids, want.ids, sizeof w.ids) != 0);
    engine_close(e);
    sim_model_close(&sim);
}

/* Who cancels may come back; who has all he wants does not. */
static void cancelled(void **state)
{
    (void)state;
    begin(SIM_FULL);
    const cairn_request r = sampled();
    watch w, want;
    uninterrupted(&r, &want);
    for (int whole = 0; whole < 2; whole++) {
        cairn_flush f = {.struct_size = sizeof f};
        engine *e = open_engine(true);
        submit(e, &w, &r);
        while (w.n < 20) assert_true(engine_turn(e));
        engine_flush(e, FLUSH_MS, &f);
        assert_int_equal(f.checkpoints, 1);
        (whole ? engine_stop : engine_cancel)(e, w.id);
        while (engine_turn(e)) {
        }
        assert_int_equal(w.finish, CAIRN_FINISH_CANCELLED);
        answer(e, &w, &r);
        same(&w, &want);
        assert_int_equal(w.n_replayed, whole ? 0 : 20);
        engine_close(e);
    }
    sim_model_close(&sim);
}

/* Years forward and back while it answers, and where it dies: the calendar is none of an answer's. */
static void clock_jumps(void **state)
{
    (void)state;
    begin(SIM_ALL_KINDS);
    const cairn_request r = sampled();
    watch want;
    uninterrupted(&r, &want);
    const int64_t year_s = 365 * 24 * 3600;
    for (int64_t k = -1; k <= 1; k++) {
        watch w;
        cairn_flush f = {.struct_size = sizeof f};
        engine *e = open_engine(true);
        submit(e, &w, &r);
        for (int32_t n = 0; engine_turn(e); n++) fake_time_shift((n % 3 - 1) * 40 * year_s);
        same(&w, &want);
        engine_flush(e, FLUSH_MS, &f); /* it is complete: its file goes */
        engine_close(e);
        fake_time_shift(k * 40 * year_s);
        die_after(&r, 33, FLUSHED);
        fake_time_shift(0);
        e = open_engine(true);
        answer(e, &w, &r);
        same(&w, &want);
        assert_int_equal(w.n_replayed, 33);
        engine_flush(e, FLUSH_MS, &f);
        assert_int_equal(f.pending + f.failed + f.dropped + f.cleanups_failed, 0);
        engine_close(e);
    }
    sim_model_close(&sim);
}

static void bad_options(void **state)
{
    (void)state;
    begin(SIM_FULL);
    engine *e = NULL;
    cairn_diag dg;
    cairn_engine_opts o = {.checkpoint_every = 5};
    assert_int_equal(engine_open(&sim.m, NULL, &o, &hooks, &e, &dg), CAIRN_E_ARG);
    assert_says(&dg, "checkpoint_every is 5 without disk_dir");
    o.checkpoint_every = -1;
    assert_int_equal(engine_open(&sim.m, NULL, &o, &hooks, &e, &dg), CAIRN_E_ARG);
    assert_says(&dg, "expected 0 or more");
    sim_model_close(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_kind, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_while_busy, setup, teardown),
        cmocka_unit_test_setup_teardown(twice, setup, teardown),
        cmocka_unit_test_setup_teardown(stop_strings, setup, teardown),
        cmocka_unit_test_setup_teardown(thoughts, setup, teardown),
        cmocka_unit_test_setup_teardown(other_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(any_seed, setup, teardown),
        cmocka_unit_test_setup_teardown(cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(clock_jumps, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_options, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
