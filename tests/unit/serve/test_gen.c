/* Generations: order, the bound of the queue, dropping, and many threads at once. */
#include "test.h"

#include <sched.h>

#include "base/clock.h"
#include "base/thread.h"
#include "serve/gen.h"

/* An engine that keeps what it is given; the test plays its thread. */
struct cairn_engine {
    cairn_event_fn fn;
    void *ctx;
    int n_cancelled, n_stopped;
    cairn_status refuse;
    bool want_progress;
};

cairn_status cairn_engine_submit(cairn_engine *e, const cairn_request *r, cairn_event_fn fn,
                                 void *ctx, cairn_request_id *out, cairn_diag *dg)
{
    (void)dg;
    e->want_progress = r->want_progress;
    if (e->refuse != CAIRN_OK) return e->refuse;
    e->fn = fn;
    e->ctx = ctx;
    *out = 1;
    return CAIRN_OK;
}

void cairn_engine_cancel(cairn_engine *e, cairn_request_id id)
{
    (void)id;
    e->n_cancelled++;
}

void cairn_engine_stop(cairn_engine *e, cairn_request_id id)
{
    (void)id;
    e->n_stopped++;
}

typedef struct seen {
    size_t n_tokens, n_bytes, n_of;
    bool any_id;
    int32_t last_id;
    int n_done;
    gen_result result;
    gen *to_drop; /* at the first token */
    int n_began, n_progress;
    int32_t n_cached;
    gen_progress progress;
    uint64_t first_ns;
} seen;

static void on_began(void *ctx, uint32_t choice, int32_t n_cached)
{
    seen *s = ctx;

    assert_int_equal(choice, 3);
    assert_int_equal(s->n_tokens, 0);
    s->n_began++;
    s->n_cached = n_cached;
}

static void on_progress(void *ctx, uint32_t choice, const gen_progress *p)
{
    seen *s = ctx;

    assert_int_equal(choice, 3);
    assert_int_equal(s->n_tokens, 0);
    assert_true(p->n_done > s->progress.n_done);
    s->n_progress++;
    s->progress = *p;
}

static void on_token(void *ctx, uint32_t choice, const gen_token *t)
{
    seen *s = ctx;

    assert_int_equal(choice, 3);
    assert_true(s->any_id || t->id == (int32_t)s->n_tokens);
    s->n_of += (size_t)t->n;
    if (t->n_top) assert_int_equal(t->top[t->n_top - 1].id, t->id + t->n_top - 1);
    s->n_tokens++;
    s->n_bytes += t->text.len;
    s->last_id = t->id;
    s->first_ns = t->first_ns;
    if (s->to_drop) gen_drop(s->to_drop);
}

static void on_done(void *ctx, uint32_t choice, const gen_result *r)
{
    seen *s = ctx;

    (void)choice;
    s->n_done++;
    s->result = *r;
}

static atomic_i64 n_wakes;

static void on_notify(void *ctx)
{
    (void)ctx;
    atomic_add(&n_wakes, 1);
}

static void emit(const cairn_engine *e, int32_t id, cairn_str text, int32_t n_top)
{
    cairn_logprob top[CAIRN_MAX_LOGPROBS];
    cairn_event ev = {.kind = CAIRN_EV_TOKEN, .id = id, .text = text, .top = top, .n_top = n_top};

    for (int32_t i = 0; i < n_top; i++) top[i] = (cairn_logprob){id + i, 0};
    e->fn(e->ctx, &ev);
}

static void progress(const cairn_engine *e, int32_t n_cached)
{
    const cairn_event ev = {.kind = CAIRN_EV_PROGRESS, .n_cached = n_cached};

    e->fn(e->ctx, &ev);
}

static void end(const cairn_engine *e, cairn_finish finish)
{
    cairn_event ev = {.kind = CAIRN_EV_DONE, .finish = finish, .text = STR_LIT("tail")};

    e->fn(e->ctx, &ev);
}

static gen *begin(mailbox *m, cairn_engine *e, seen *s)
{
    const gen_sink sink = {
        .began = on_began, .token = on_token, .done = on_done, .ctx = s, .choice = 3};
    const cairn_request r = {0};
    gen *g = NULL;

    assert_ok(gen_start(m, e, &r, &sink, &g, NULL));
    return g;
}

/* Of a step's tokens the last one wakes, for all, whether or not somebody waits for its own; what is delivered sooner is
   not told twice. */
static void test_more(void **state)
{
    const cairn_request r = {0};
    cairn_engine e[3] = {0};
    mailbox m;
    seen s[3] = {0};
    gen *g = NULL;
    gen_sink sink = {
        .token = on_token, .done = on_done, .ctx = &s[2], .choice = 3, .patient = true};

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    atomic_put(&n_wakes, 0);
    for (int i = 0; i < 2; i++) begin(&m, &e[i], &s[i]);
    assert_ok(gen_start(&m, &e[2], &r, &sink, &g, NULL));
    for (int32_t step = 0; step < 3; step++) {
        for (int i = 0; i < 3; i++) {
            const cairn_event ev = {
                .kind = CAIRN_EV_TOKEN, .id = step, .text = STR_LIT("x"), .more = i < 2};
            e[i].fn(e[i].ctx, &ev);
            assert_int_equal(atomic_get(&n_wakes), step + (i == 2));
            if (step == 2 && i == 0) mailbox_deliver(&m); /* it was awake */
        }
        mailbox_deliver(&m);
        assert_int_equal(s[0].n_tokens, step + 1);
        assert_int_equal(s[1].n_tokens, step + 1);
    }
    for (int i = 0; i < 3; i++) end(&e[i], CAIRN_FINISH_STOP);
    assert_int_equal(atomic_get(&n_wakes), 4); /* one for all that was not taken meanwhile */
    mailbox_deliver(&m);
    for (int i = 0; i < 3; i++) assert_true(s[i].n_done == 1 && s[i].n_tokens == 3);
    mailbox_deinit(&m);
}

/* Tokens that nobody waits for come with the end, in one wake, or when they take room. */
static void test_patience(void **state)
{
    const cairn_request r = {0};
    cairn_engine e = {0};
    mailbox m;
    seen s = {0};
    const gen_sink sink = {
        .token = on_token, .done = on_done, .ctx = &s, .choice = 3, .patient = true};
    gen *g = NULL;
    int32_t n = 0;
    uint64_t before, after;

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    atomic_put(&n_wakes, 0);
    assert_ok(gen_start(&m, &e, &r, &sink, &g, NULL));
    before = clock_ns();
    emit(&e, n++, STR_LIT("one"), 0);
    after = clock_ns();
    mailbox_deliver(&m);
    assert_int_equal(atomic_get(&n_wakes), 0);
    assert_int_equal(s.n_tokens, 0);
    while (n < 1000) emit(&e, n++, STR_LIT("more"), 0);
    assert_int_equal(atomic_get(&n_wakes), 1);
    mailbox_deliver(&m);
    assert_int_equal(s.n_tokens, 1000);
    emit(&e, n++, STR_LIT("last"), 0);
    assert_int_equal(atomic_get(&n_wakes), 1);
    end(&e, CAIRN_FINISH_STOP);
    assert_int_equal(atomic_get(&n_wakes), 2);
    mailbox_deliver(&m);
    assert_int_equal(s.n_tokens, 1001);
    assert_in_range(s.first_ns, before, after); /* the engine's time, not that of the delivery */
    assert_int_equal(s.n_done, 1);
    mailbox_deinit(&m);
}

static void test_order(void **state)
{
    const uint64_t before = mem_used_all();
    cairn_engine e = {0};
    mailbox m;
    seen s = {0};

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    begin(&m, &e, &s);
    atomic_put(&n_wakes, 0);
    progress(&e, 7);
    progress(&e, 7);
    for (int32_t i = 0; i < 100; i++) emit(&e, i, STR_LIT("abc"), i % 21);
    assert_int_equal(atomic_get(&n_wakes), 1); /* one wake-up for all of them */
    mailbox_deliver(&m);
    assert_int_equal(s.n_tokens, 100);
    assert_int_equal(s.n_bytes, 300);
    progress(&e, 8); /* only the first is told, and only it wakes */
    assert_int_equal(atomic_get(&n_wakes), 1);
    assert_int_equal(s.n_began, 1);
    assert_int_equal(s.n_cached, 7);
    emit(&e, 100, (cairn_str){0}, 0);
    end(&e, CAIRN_FINISH_LENGTH);
    assert_int_equal(m.n_live, 1);
    mailbox_deliver(&m);
    assert_int_equal(s.n_tokens, 101);
    assert_int_equal(s.n_done, 1);
    assert_int_equal(s.result.finish, CAIRN_FINISH_LENGTH);
    assert_int_equal(m.n_live, 0);
    mailbox_deinit(&m);
    assert_int_equal(mem_used_all(), before);
}

/* However many steps go by, one place holds where the prefill is. */
static void test_progress(void **state)
{
    const uint64_t before = mem_used_all();
    const cairn_request r = {0};
    cairn_event ev = {.kind = CAIRN_EV_PROGRESS, .n_prompt = 5000, .n_cached = 1};
    cairn_engine e = {0};
    mailbox m;
    seen s = {0};
    const gen_sink sink = {
        .progress = on_progress, .token = on_token, .done = on_done, .ctx = &s, .choice = 3};
    gen *g;

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    assert_ok(gen_start(&m, &e, &r, &sink, &g, NULL));
    assert_true(e.want_progress);
    const uint64_t begun = mem_used_all();
    for (ev.n_done = 1; ev.n_done < 4000; ev.n_done++) e.fn(e.ctx, &ev);
    assert_int_equal(mem_used_all(), begun);
    mailbox_deliver(&m);
    assert_int_equal(s.n_progress, 1);
    assert_int_equal(s.progress.n_done, 3999);
    mailbox_deliver(&m);
    assert_int_equal(s.n_progress, 1);
    ev.n_done = 5000;
    ev.prefill_seconds = 1.25;
    e.fn(e.ctx, &ev);
    emit(&e, 0, STR_LIT("abc"), 0); /* told behind it, as on_progress sees */
    mailbox_deliver(&m);
    assert_int_equal(s.n_progress, 2);
    assert_int_equal(s.progress.n_prompt, 5000);
    assert_int_equal(s.progress.n_cached, 1);
    assert_int_equal(s.progress.n_done, 5000);
    assert_int_equal(s.progress.ms, 1250);
    assert_int_equal(s.n_tokens, 1);
    gen_drop(g);
    end(&e, CAIRN_FINISH_CANCELLED);
    mailbox_deliver(&m);
    mailbox_deinit(&m);
    assert_int_equal(mem_used_all(), before);
}

/* The I/O thread is away: the queue stays bounded, the request ends in an error. */
static void test_overflow(void **state)
{
    static char big[10000];
    const uint64_t before = mem_used_all();
    cairn_engine e = {0};
    mailbox m;
    seen s = {0};

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    begin(&m, &e, &s);
    for (int32_t i = 0; i < 5000; i++) emit(&e, i, (cairn_str){big, sizeof big}, 0);
    assert_true(mem_used_all() - before < 9000000);
    mailbox_deliver(&m);
    assert_true(s.n_tokens > 100 && s.n_tokens < 1000);
    assert_int_equal(e.n_cancelled, 1);
    end(&e, CAIRN_FINISH_CANCELLED);
    mailbox_deliver(&m);
    assert_int_equal(s.result.finish, CAIRN_FINISH_ERROR);
    mailbox_deinit(&m);
    assert_int_equal(mem_used_all(), before);
}

static void test_drop_inside(void **state)
{
    cairn_engine e = {0};
    mailbox m;
    seen s = {0};

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    s.to_drop = begin(&m, &e, &s);
    for (int32_t i = 0; i < 10; i++) emit(&e, i, STR_LIT("x"), 0);
    mailbox_deliver(&m);
    assert_int_equal(s.n_tokens, 1);
    assert_int_equal(e.n_cancelled, 1);
    emit(&e, 1, STR_LIT("x"), 0); /* the engine may still be at it */
    end(&e, CAIRN_FINISH_CANCELLED);
    mailbox_deliver(&m);
    assert_int_equal(s.n_tokens, 1);
    assert_int_equal(s.n_done, 0);
    assert_int_equal(m.n_live, 0);
    mailbox_deinit(&m);
}

/* Tokens that are told again come as one text of many; those that follow do not. */
static void test_replayed(void **state)
{
    cairn_engine e = {0};
    mailbox m;
    seen s = {0};
    const cairn_event again = {.kind = CAIRN_EV_TOKEN, .text = STR_LIT("abc"), .replayed = true};
    const uint64_t before = mem_used_all();

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    (void)begin(&m, &e, &s);
    s.any_id = true;
    for (int i = 0; i < 3000; i++) e.fn(e.ctx, &again);
    emit(&e, 7, STR_LIT("x"), 2);
    emit(&e, 8, STR_LIT("y"), 0);
    mailbox_deliver(&m);
    for (int i = 0; i < 10; i++) e.fn(e.ctx, &again);
    mailbox_deliver(&m);
    assert_int_equal(s.n_of, 3000 + 2 + 10);
    assert_int_equal(s.n_bytes, 3 * 3010 + 2);
    assert_int_equal(s.n_tokens, 3 + 2 + 1); /* 9,000 bytes in texts of at most 4,096 */
    end(&e, CAIRN_FINISH_STOP);
    mailbox_deliver(&m);
    mailbox_deinit(&m);
    assert_int_equal(mem_used_all(), before);
}

static void test_refused(void **state)
{
    const gen_sink sink = {.token = on_token, .done = on_done};
    const cairn_request r = {0};
    const uint64_t before = mem_used_all();
    cairn_engine e = {.refuse = CAIRN_E_BUSY};
    mailbox m;
    gen *g = NULL;

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    assert_int_equal(gen_start(&m, &e, &r, &sink, &g, NULL), CAIRN_E_BUSY);
    assert_null(g);
    assert_int_equal(m.n_live, 0);
    mailbox_deinit(&m);
    assert_int_equal(mem_used_all(), before);
}

enum { N_THREADS = 4, N_TOKENS = 20000 };

static void *play(void *ctx)
{
    const cairn_engine *e = ctx;

    for (int32_t i = 0; i < N_TOKENS; i++) emit(e, i, STR_LIT("y"), i % 3);
    end(e, CAIRN_FINISH_STOP);
    return NULL;
}

/* Who has one core leaves it to the others. */
static void deliver_all(mailbox *m)
{
    while (m->n_live) {
        mailbox_deliver(m);
        if (m->n_live) (void)sched_yield();
    }
}

static void test_threads(void **state)
{
    cairn_engine e[N_THREADS] = {0};
    thread t[N_THREADS] = {0};
    seen s[N_THREADS] = {0};
    mailbox m;

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    for (int i = 0; i < N_THREADS; i++) begin(&m, &e[i], &s[i]);
    for (int i = 0; i < N_THREADS; i++) assert_ok(thread_start(&t[i], "play", play, &e[i]));
    deliver_all(&m);
    for (int i = 0; i < N_THREADS; i++) {
        thread_join(&t[i]);
        assert_int_equal(s[i].n_tokens, N_TOKENS);
        assert_int_equal(s[i].n_bytes, N_TOKENS);
        assert_int_equal(s[i].n_done, 1);
    }
    mailbox_deinit(&m);
}

typedef struct player {
    cairn_engine e;
    atomic_i64 round;
} player;

enum { N_ROUNDS = 5000, ENOUGH_S = 10 }; /* where all share a core a round may take its turns */

static void *play_rounds(void *ctx)
{
    player *p = ctx;

    for (int64_t i = 1;; i++) {
        while (atomic_get(&p->round) < i) (void)sched_yield();
        if (atomic_get(&p->round) > N_ROUNDS) return NULL;
        emit(&p->e, 0, STR_LIT("y"), 0);
        end(&p->e, CAIRN_FINISH_STOP);
    }
}

/* Short answers: DONE comes while the token before it is being delivered. */
static void test_done_races_delivery(void **state)
{
    static player p;
    const uint64_t before = mem_used_all();
    const double enough = clock_s() + ENOUGH_S;
    thread t = {0};
    mailbox m;

    (void)state;
    mailbox_init(&m, on_notify, NULL);
    assert_ok(thread_start(&t, "play", play_rounds, &p));
    for (int64_t i = 1; i <= N_ROUNDS && clock_s() < enough; i++) {
        seen s = {0};
        begin(&m, &p.e, &s);
        atomic_put(&p.round, i);
        deliver_all(&m);
        assert_int_equal(s.n_tokens, 1);
        assert_int_equal(s.n_done, 1);
        assert_null(m.ready);
    }
    atomic_put(&p.round, N_ROUNDS + 1);
    thread_join(&t);
    mailbox_deinit(&m);
    assert_int_equal(mem_used_all(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),    cmocka_unit_test(test_progress),
        cmocka_unit_test(test_overflow), cmocka_unit_test(test_drop_inside),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_replayed),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_done_races_delivery),
        cmocka_unit_test(test_patience), cmocka_unit_test(test_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
