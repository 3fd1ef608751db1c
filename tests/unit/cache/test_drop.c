/* What kept prefixes give up first: what is cheapest to compute again for its bytes, of what was used long ago. */
#include "test.h"

#include "cache/cache_priv.h"

enum {
    LONG = 1024,
    STEP = 512,
    BLOCK = KV_BLOCK * 2 * 8 * 2 /* keys and values of 8, 16 bits each */
};

static const cache_layer_spec full[] = {{1, 8, 8, .window = 0}};
static const cache_layer_spec window[] = {{1, 8, 8, .window = 128}};
static const cache_layer_spec states[] = {{.n_state = 16}}; /* 64 bytes */
static const cache_layer_spec hybrid[] = {{.n_state = 16}, {1, 8, 8, .window = 0}};

static cache *make(const cache_layer_spec *layer, int32_t n_layer, uint64_t room, uint64_t bytes)
{
    cache *c = NULL;
    cairn_diag dg;
    const cachespec s = {n_layer, layer};
    const cache_opts o = {kv_plain(KV_F16), 1, LONG + 64, STEP, 1 << 20, room, bytes};
    assert_ok(cache_new(&s, &o, &c, &dg));
    return c;
}

/* Prompts that share nothing: all their tokens are `who`. */
static const int32_t *prompt(int32_t who)
{
    static int32_t ids[LONG + 1];
    for (int32_t i = 0; i <= LONG; i++) ids[i] = who;
    return ids;
}

static seq_id open_on(cache *c, int32_t who, int32_t n)
{
    seq_id q;
    const cache_ask a = {.ids = prompt(who), .n_ids = n, .n_pos = n};
    assert_ok(cache_open_on(c, &a, &q));
    return q;
}

/* Computes rows up to n, and marks them there or not. */
static void go_on(cache *c, seq_id q, int32_t who, int32_t n, bool mark)
{
    while (cache_len(c, q) < n) {
        const int32_t left = n - cache_len(c, q), rows = left < STEP ? left : STEP;
        cache_reserve(c, q, rows);
        cache_commit(c, q, rows);
        cache_publish(c, q, prompt(who));
    }
    if (mark) cache_mark(c, q, prompt(who), CACHE_STEP);
}

static void leave(cache *c, int32_t who, int32_t n)
{
    const seq_id q = open_on(c, who, n);
    go_on(c, q, who, n, true);
    cache_close(c, q);
}

/* Rows that could be taken up; a use. */
static int32_t taken_up(cache *c, int32_t who)
{
    const seq_id q = open_on(c, who, LONG + 1);
    const int32_t n = cache_len(c, q);
    cache_close(c, q);
    return n;
}

/* Rows in the tree; no use. */
static int32_t known(cache *c, int32_t who)
{
    const cache_ns ns = {0};
    const int32_t root = tree_root(c, &ns, false);
    int32_t n = 0;
    for (int32_t i = root; (i = tree_child(&c->tree, i, who)) != NO_NODE;) n += c->tree.node[i].n;
    return n;
}

/* The newer one of ten rows takes as much room as the older one of 64. */
static void partial_before_whole(void **state)
{
    (void)state;
    cache *c = make(full, 1, 1 << 20, 2 * BLOCK);
    leave(c, 1, 64);
    leave(c, 2, 10);
    leave(c, 3, 64);
    assert_int_equal(known(c, 1), 64);
    assert_int_equal(known(c, 2), 0);
    assert_int_equal(known(c, 3), 64);
    cache_free(c);
}

/* Attention makes rows behind others dearer; and a long path does not hide what was used after it. */
static void shallow_before_deep(void **state)
{
    (void)state;
    cache *c = make(full, 1, 1 << 20, (LONG / KV_BLOCK + 1) * BLOCK);
    leave(c, 1, LONG);
    leave(c, 2, 64);
    leave(c, 3, 64);
    assert_int_equal(known(c, 1), LONG);
    assert_int_equal(known(c, 2), 0);
    assert_int_equal(known(c, 3), 64);
    cache_free(c);
    c = make(window, 1, 1 << 20, 1 << 19); /* where a layer sees a window it does not */
    assert_true(c->attend_cost == 0);
    cache_free(c);
}

/* Of equal ones the oldest; and what is cheap but was used after DROP_LOOK others is not looked at. */
static void oldest_else(void **state)
{
    (void)state;
    cache *c = make(full, 1, 1 << 20, (DROP_LOOK + 1) * BLOCK);
    for (int32_t i = 1; i <= DROP_LOOK; i++) leave(c, i, 64);
    leave(c, 100, 10);
    leave(c, 101, 64);
    assert_int_equal(known(c, 1), 0);
    for (int32_t i = 2; i <= DROP_LOOK; i++) assert_int_equal(known(c, i), 64);
    assert_int_equal(known(c, 100), 10);
    leave(c, 102, 64); /* now it is the eighth */
    assert_int_equal(known(c, 100), 0);
    assert_int_equal(known(c, 2), 64);
    cache_free(c);
}

/* Cheap ones that keep coming push out what is dear, but is not used, by the DROP_LOOK-th drop and no earlier. */
static void not_for_ever(void **state)
{
    (void)state;
    cache *c = make(full, 1, 1 << 20, 2 * BLOCK);
    leave(c, 1, 64);
    leave(c, 2, 10);
    for (int32_t i = 1; i <= DROP_LOOK; i++) {
        assert_int_equal(known(c, 1), 64);
        leave(c, 2 + i, 10);
    }
    assert_int_equal(known(c, 1), 0);
    cache_free(c);
}

/* A state from which another is near above saves less than one that stands alone. */
static void near_states(void **state)
{
    (void)state;
    cache *c = make(states, 1, 256, 256);
    assert_int_equal(c->n_snap, 4);
    leave(c, 1, 128);
    const seq_id q = open_on(c, 2, 200);
    go_on(c, q, 2, 64, true);
    go_on(c, q, 2, 128, true);
    go_on(c, q, 2, 144, true);
    cache_close(c, q);
    leave(c, 3, 64);
    assert_int_equal(taken_up(c, 1), 128);
    assert_int_equal(taken_up(c, 2), 128);
    assert_int_equal(taken_up(c, 3), 64);
    cache_free(c);
}

/* Beside recurrent layers nobody can go on at an end without a state. */
static void stateless_ends(void **state)
{
    (void)state;
    cache *c = make(hybrid, 2, 1 << 20, 3 * BLOCK + 2 * 64 - 1);
    leave(c, 1, 64);
    const seq_id q = open_on(c, 2, 64);
    go_on(c, q, 2, 64, false);
    cache_close(c, q);
    assert_int_equal(known(c, 2), 64);
    leave(c, 3, 64);
    assert_int_equal(taken_up(c, 1), 64);
    assert_int_equal(known(c, 2), 0);
    assert_int_equal(taken_up(c, 3), 64);
    cache_free(c);
}

/* Blocks of a window: few rows before many, and a path from its end: what is left of it can be taken up. */
static void windows(void **state)
{
    (void)state;
    cache *c = make(window, 1, 1 << 20, 4 * BLOCK);
    leave(c, 1, 192);
    leave(c, 2, 10);
    leave(c, 3, 64);
    assert_int_equal(taken_up(c, 2), 0);
    assert_int_equal(taken_up(c, 1), 192);
    cache_free(c);
    c = make(window, 1, 1 << 20, 4 * BLOCK); /* others are as cheap as its end, which is older */
    leave(c, 1, 192);
    leave(c, 2, 64);
    leave(c, 3, 64);
    assert_int_equal(taken_up(c, 1), 128);
    assert_int_equal(taken_up(c, 2), 64);
    cache_free(c);
}

/* A node of a whole block, the `n`th on its path, that begins with `token`. */
static int32_t add_node(cache *c, int32_t parent, int32_t token, int32_t n)
{
    const int32_t i = tree_add(c, parent, prompt(token), KV_BLOCK, n, 0);
    assert_true(i != NO_NODE);
    return i;
}

/* What is in use is stepped over, and its place left as it is. */
static void used_stays(void **state)
{
    (void)state;
    cache *c = make(full, 1, 1 << 20, 1 << 20);
    const tree *t = &c->tree;
    const seq_id q = open_on(c, 1, 64);
    go_on(c, q, 1, 64, true);
    const int32_t at = cache_seq(c, q)->node;
    (void)add_node(c, t->node[at].parent, 2, 0);
    const uint64_t used = t->node[at].used;
    assert_true(drop_leaf(c));
    assert_true(t->list[tree_leaves(t)][LIST_KEPT].first == at && t->node[at].used == used);
    assert_int_equal(tree_child(t, t->node[at].parent, 2), NO_NODE);
    assert_false(drop_leaf(c));
    cache_close(c, q);
    assert_true(drop_leaf(c));
    cache_free(c);
}

/* Behind many blocks that a sequence holds nothing cheaper is looked for. */
static void not_too_far(void **state)
{
    (void)state;
    enum { HELD = 70 * KV_BLOCK };
    static const cache_layer_spec wide[] = {{1, 8, 8, .window = HELD}};
    static int32_t ids[HELD];
    for (int far = 0; far < 2; far++) {
        cache *c = NULL;
        cairn_diag dg;
        const cachespec s = {1, wide};
        const cache_opts o = {kv_plain(KV_F16), 2, HELD, STEP, 4 << 20, 1 << 20, 1 << 20};
        assert_ok(cache_new(&s, &o, &c, &dg));
        leave(c, 1, 64);
        const int32_t n = far ? HELD : 10 * KV_BLOCK;
        seq_id q;
        assert_ok(cache_open_on(c, &(cache_ask){.ids = ids, .n_ids = n, .n_pos = n}, &q));
        while (cache_len(c, q) < n) {
            cache_reserve(c, q, KV_BLOCK);
            cache_commit(c, q, KV_BLOCK);
            cache_publish(c, q, ids);
        }
        leave(c, 2, 10);
        assert_true(drop_window_block(c, 0, false));
        assert_int_equal(taken_up(c, 1), far ? 0 : 64);
        assert_int_equal(taken_up(c, 2), far ? 10 : 0);
        cache_close(c, q);
        cache_free(c);
    }
}

/* Leaves are in order of use, though one whose last child is gone may count as used later than what is above it. */
static void leaves_stay_in_order(void **state)
{
    (void)state;
    cache *c = make(full, 1, 1 << 20, 1 << 20);
    tree *t = &c->tree;
    const cache_ns ns = {0};
    const int32_t root = tree_root(c, &ns, true), above = add_node(c, root, 1, 0),
                  at = add_node(c, above, 2, 1), old = add_node(c, at, 3, 2);
    for (int32_t i = 0; i <= DROP_LOOK; i++) (void)add_node(c, root, 10 + i, 0);
    tree_remove(c, add_node(c, at, 4, 2));
    (void)add_node(c, root, 30, 0);
    tree_remove(c, old);
    (void)add_node(c, root, 31, 0);
    tree_remove(c, at);
    uint64_t used = 0;
    int32_t n = 0;
    for (int32_t i = t->list[tree_leaves(t)][LIST_KEPT].first; i != NO_NODE; n++) {
        assert_true(t->node[i].used > used);
        used = t->node[i].used;
        i = tree_link(t, i, tree_leaves(t))->next;
    }
    assert_int_equal(n, DROP_LOOK + 4);
    cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partial_before_whole),
        cmocka_unit_test(shallow_before_deep),
        cmocka_unit_test(oldest_else),
        cmocka_unit_test(not_for_ever),
        cmocka_unit_test(near_states),
        cmocka_unit_test(stateless_ends),
        cmocka_unit_test(windows),
        cmocka_unit_test(used_stays),
        cmocka_unit_test(not_too_far),
        cmocka_unit_test(leaves_stay_in_order),
    };
    return cmocka_run_group_tests_name("drop", tests, NULL, NULL);
}
