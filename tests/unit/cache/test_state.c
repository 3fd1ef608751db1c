/* Recurrent states between sequences and the tree: a hit copies nothing, what is read stays as it is until all who read
   it have written their own, whatever is given up meanwhile; and no state is lost or counted twice. */
#include "test.h"

#include "cache/cache_priv.h"

enum { N_SEQ = 4, N_STATE = 1000, CTX = 512, STEP = 64 };

static const cache_layer_spec layer = {.n_state = N_STATE};
static const cachespec spec = {1, &layer};

static cache *make(int32_t n_snap)
{
    cache *c = NULL;
    cairn_diag dg;
    const uint64_t state = cache_state_bytes(&spec), room = (uint64_t)n_snap * state;
    const cache_opts o = {kv_plain(KV_F16), N_SEQ, CTX, STEP, N_SEQ * state, room, 1 << 20};
    assert_ok(cache_new(&spec, &o, &c, &dg));
    assert_int_equal(c->n_snap, n_snap);
    assert_int_equal(cache_total(c), (N_SEQ + (uint64_t)n_snap) * state);
    return c;
}

static const int32_t *prompt(int32_t who)
{
    static int32_t ids[CTX];
    for (int32_t i = 0; i < CTX; i++) ids[i] = who;
    return ids;
}

static seq_id open_on(cache *c, int32_t who)
{
    seq_id q;
    const cache_ask a = {.ids = prompt(who), .n_ids = CTX, .n_pos = CTX};
    assert_ok(cache_open_on(c, &a, &q));
    return q;
}

static const float *now(const cache *c, seq_id q)
{
    const float *from = cache_state_before(c, q);
    return from ? from : cache_state(c, q);
}

static void expect(const float *state, float x)
{
    for (int32_t i = 0; i < N_STATE; i++) assert_true(state[i] == x);
}

static void write_rows(const cache *c, seq_id q, float x)
{
    for (int32_t i = 0; i < N_STATE; i++) cache_state(c, q)[i] = x;
}

/* A step of n rows that finds `was` and leaves x. */
static void go_on(cache *c, seq_id q, int32_t n, float was, float x)
{
    cache_reserve(c, q, n);
    expect(now(c, q), was);
    write_rows(c, q, x);
    cache_commit(c, q, n);
    expect(now(c, q), x);
}

static void leave(cache *c, int32_t who, float x)
{
    const seq_id q = open_on(c, who);
    go_on(c, q, 10, 0, x);
    cache_mark(c, q, prompt(who), CACHE_TURN);
    cache_close(c, q);
}

static int32_t states_used(const cache *c)
{
    return c->states.n_block - c->states.n_free;
}

/* Two read where it lies, and each writes its own. */
static void hit(void **state)
{
    (void)state;
    cache *c = make(4);
    leave(c, 1, 5);
    const seq_id a = open_on(c, 1), b = open_on(c, 1);
    const float *kept = cache_state_before(c, a);
    assert_int_equal(cache_len(c, a), 10);
    assert_non_null(kept);
    assert_ptr_equal(kept, cache_state_before(c, b));
    assert_true(cache_state(c, a) != kept && cache_state(c, b) != kept);
    go_on(c, a, 3, 5, 6);
    assert_null(cache_state_before(c, a));
    expect(kept, 5);
    go_on(c, b, 3, 5, 7);
    expect(kept, 5);
    go_on(c, a, 1, 6, 8);
    cache_close(c, a);
    cache_close(c, b);
    const seq_id again = open_on(c, 1);
    assert_ptr_equal(cache_state_before(c, again), kept);
    expect(kept, 5);
    cache_close(c, again);
    cache_free(c);
}

/* What a mark leaves is not copied either: the sequence reads it there. */
static void mark(void **state)
{
    (void)state;
    cache *c = make(4);
    const seq_id a = open_on(c, 1);
    go_on(c, a, 10, 0, 5);
    const float *was = cache_state(c, a);
    cache_mark(c, a, prompt(1), CACHE_STEP);
    assert_ptr_equal(cache_state_before(c, a), was);
    cache_mark(c, a, prompt(1), CACHE_TURN); /* again: there it is */
    assert_ptr_equal(cache_state_before(c, a), was);
    assert_int_equal(states_used(c), 2);
    go_on(c, a, 1, 5, 6);
    expect(was, 5);
    cache_close(c, a);
    assert_int_equal(states_used(c), 1);
    assert_int_equal(cache_kept(c), c->state_bytes);
    cache_free(c);
}

/* While two read it, giving it up would free nothing; when one does, that one has it for its own. */
static void given_up(void **state)
{
    (void)state;
    cache *c = make(1);
    leave(c, 1, 5);
    const seq_id a = open_on(c, 1), b = open_on(c, 1);
    const float *kept = cache_state_before(c, a);
    assert_false(drop_snap(c));
    const seq_id other = open_on(c, 2);
    go_on(c, other, 10, 0, 9);
    cache_mark(c, other, prompt(2), CACHE_STEP);
    assert_null(cache_state_before(c, other));
    expect(kept, 5);
    go_on(c, a, 1, 5, 6);
    assert_ptr_equal(cache_state_before(c, b), kept);
    cache_mark(c, other, prompt(2), CACHE_STEP);
    assert_non_null(cache_state_before(c, other));
    assert_null(cache_state_before(c, b));
    assert_ptr_equal(cache_state(c, b), kept);
    go_on(c, b, 1, 5, 7);
    expect(now(c, a), 6);
    assert_int_equal(states_used(c), 4);
    cache_close(c, a);
    cache_close(c, b);
    cache_close(c, other);
    assert_int_equal(states_used(c), 1);
    cache_free(c);
}

/* A step that has begun reads and writes where it was told to. */
static void given_up_in_a_step(void **state)
{
    (void)state;
    cache *c = make(2);
    leave(c, 1, 5);
    const seq_id a = open_on(c, 1);
    cache_reserve(c, a, 1);
    const float *from = cache_state_before(c, a), *to = cache_state(c, a);
    assert_true(drop_snap(c));
    assert_ptr_equal(cache_state_before(c, a), from);
    assert_ptr_equal(cache_state(c, a), to);
    expect(from, 5);
    write_rows(c, a, 6);
    cache_commit(c, a, 1);
    assert_ptr_equal(now(c, a), to);
    expect(to, 6);
    assert_int_equal(states_used(c), 1);
    cache_close(c, a);
    assert_int_equal(states_used(c), 0);
    cache_free(c);
}

/* Marks of one turn that are more than there is room for: the latest are kept, and nobody's state is lost. */
static void more_marks_than_room(void **state)
{
    (void)state;
    cache *c = make(2);
    seq_id q[N_SEQ];
    for (int32_t i = 0; i < N_SEQ; i++) {
        q[i] = open_on(c, i + 1);
        go_on(c, q[i], 10, 0, (float)(i + 1));
    }
    for (int32_t i = 0; i < N_SEQ; i++) cache_mark(c, q[i], prompt(i + 1), CACHE_STEP);
    assert_int_equal(states_used(c), N_SEQ + 2);
    for (int32_t i = 0; i < N_SEQ; i++) {
        expect(now(c, q[i]), (float)(i + 1));
        assert_int_equal(cache_state_before(c, q[i]) != NULL, i >= N_SEQ - 2);
        go_on(c, q[i], 1, (float)(i + 1), 50);
        cache_close(c, q[i]);
    }
    for (int32_t i = 0; i < N_SEQ; i++) {
        q[0] = open_on(c, i + 1);
        assert_int_equal(cache_len(c, q[0]), i < N_SEQ - 2 ? 0 : 10);
        if (i >= N_SEQ - 2) expect(now(c, q[0]), (float)(i + 1));
        cache_close(c, q[0]);
    }
    cache_forget(c);
    assert_int_equal(states_used(c), 0);
    cache_free(c);
}

/* Two spaces' nodes keep one state: what is given up of one, the other has. */
static void two_spaces(void **state)
{
    (void)state;
    cache *c = make(2);
    leave(c, 1, 5);
    seq_id q;
    const cache_ask a = {.ns = {7, 7}, .ids = prompt(1), .n_ids = CTX, .n_pos = CTX};
    assert_ok(cache_open_on(c, &a, &q));
    assert_int_equal(cache_len(c, q), 10);
    cache_mark(c, q, prompt(1), CACHE_STEP);
    cache_close(c, q);
    assert_int_equal(states_used(c), 1);
    assert_int_equal(cache_kept(c), c->state_bytes);
    assert_true(drop_snap(c));
    assert_int_equal(states_used(c), 1);
    assert_ok(cache_open_on(c, &a, &q));
    go_on(c, q, 1, 5, 6);
    cache_close(c, q);
    assert_true(drop_snap(c));
    assert_int_equal(states_used(c), 0);
    cache_free(c);
}

/* A new sequence begins with zeros, where another one's state was. */
static void zeros(void **state)
{
    (void)state;
    cache *c = make(1);
    for (int i = 0; i < 2 * N_SEQ; i++) {
        const seq_id q = open_on(c, 1);
        go_on(c, q, 1, 0, 9);
        cache_close(c, q);
    }
    cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hit),
        cmocka_unit_test(mark),
        cmocka_unit_test(given_up),
        cmocka_unit_test(given_up_in_a_step),
        cmocka_unit_test(more_marks_than_room),
        cmocka_unit_test(two_spaces),
        cmocka_unit_test(zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
