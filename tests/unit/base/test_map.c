/* The map against a naive one (a list), in random order by seed. */
#include "test.h"

#include <stdio.h>

#include "base/map.h"
#include "base/rng.h"

enum { N_KEYS = 3000 };

typedef struct naive {
    char key[N_KEYS][32];
    bool there[N_KEYS];
    uint32_t value[N_KEYS];
} naive;

static void compare_all(const map *m, const naive *model)
{
    size_t n = 0;
    for (size_t i = 0; i < N_KEYS; i++) {
        uint32_t v = 12345;
        const bool found = map_get(m, str_of(model->key[i]), &v);
        assert_int_equal(found, model->there[i]);
        assert_int_equal(v, found ? model->value[i] : 12345); /* a miss writes nothing */
        n += found;
    }
    assert_int_equal(m->n, n);
}

static void like_a_list(void **state)
{
    (void)state;
    static naive model;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        map m;
        map_init(&m, MEM_TEXT);
        memset(&model, 0, sizeof model);
        /* Short, up to 16 bytes, longer; with equal ends too. */
        for (unsigned i = 0; i < N_KEYS; i++) {
            static const char *const first[] = {"", "abc", "the same", "equal at its "};
            static const char *const last[] = {"", "", "", " both ends"};
            (void)snprintf(model.key[i], sizeof model.key[i], "%s%x%s", first[i % 4],
                           i * 2654435761u, last[i % 4]);
        }
        compare_all(&m, &model);
        for (uint64_t k = 0; k < 2 * N_KEYS; k++) {
            const uint64_t r = rng_u64(seed, 0, k);
            const size_t i = r % N_KEYS;
            model.there[i] = true;
            model.value[i] = (uint32_t)(r >> 32);
            assert_ok(map_put(&m, str_of(model.key[i]), model.value[i]));
            if (k % 700 == 0) compare_all(&m, &model);
        }
        compare_all(&m, &model);
        map_deinit(&m);
        assert_int_equal(mem_used_all(), 0);
    }
}

static void odd_keys(void **state)
{
    (void)state;
    map m;
    uint32_t v = 0;
    map_init(&m, MEM_TEXT);
    assert_false(map_get(&m, STR_LIT("a"), &v));
    assert_ok(map_put(&m, (cairn_str){NULL, 0}, 1)); /* the empty key is a key */
    assert_ok(map_put(&m, STR_LIT("\0"), 2));
    assert_ok(map_put(&m, STR_LIT("\0\0"), 3));
    assert_true(map_get(&m, STR_LIT(""), &v) && v == 1);
    assert_true(map_get(&m, STR_LIT("\0"), &v) && v == 2);
    assert_true(map_get(&m, STR_LIT("\0\0"), &v) && v == 3);
    assert_ok(map_put(&m, STR_LIT(""), UINT32_MAX));
    assert_true(map_get(&m, (cairn_str){NULL, 0}, &v) && v == UINT32_MAX);
    assert_int_equal(m.n, 3);
    map_deinit(&m);
    map_deinit(&m);
}

static void reserve_is_enough(void **state)
{
    (void)state;
    static char key[5000][8];
    map m;
    map_init(&m, MEM_TEXT);
    assert_ok(map_reserve(&m, 5000));
    mem_fail_nth(1);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key[i], sizeof key[i], "k%d", i);
        assert_ok(map_put(&m, str_of(key[i]), (uint32_t)i));
    }
    assert_ok(map_reserve(&m, 10));
    assert_int_equal(mem_calls(), 0);
    mem_fail_nth(0);
    assert_int_equal(map_reserve(&m, SIZE_MAX), CAIRN_E_NOMEM);
    assert_int_equal(m.n, 5000);
    map_deinit(&m);
}

static cairn_status build(void *ctx)
{
    (void)ctx;
    static char key[100][8];
    cairn_status st = CAIRN_OK;
    map m;
    uint32_t v;
    map_init(&m, MEM_TEXT);
    for (int i = 0; i < 100 && st == CAIRN_OK; i++) {
        (void)snprintf(key[i], sizeof key[i], "k%d", i);
        st = map_put(&m, str_of(key[i]), (uint32_t)i);
        /* a failure to grow loses nothing */
        for (int k = 0; k < i; k++)
            assert_true(map_get(&m, str_of(key[k]), &v) && v == (uint32_t)k);
    }
    map_deinit(&m);
    return st;
}

static void memory_may_fail(void **state)
{
    (void)state;
    assert_true(fault_loop(build, NULL) >= 4);
}

/* Keys of every length to 20, equal but for one byte at any place; many at once as one by one. */
static void many_at_once(void **state)
{
    static char bytes[210 * 32];
    cairn_str key[2 * MAP_BATCH];
    uint32_t value[2 * MAP_BATCH], found[MAP_BATCH], v;
    map m;
    size_t n = 0;

    (void)state;
    map_init(&m, MEM_TEXT);
    map_get_many(&m, &(cairn_str){"a", 1}, 1, found);
    assert_int_equal(found[0], MAP_NONE);
    for (size_t len = 0; len <= 20; len += 3)
        for (size_t at = 0; at <= len; at++, n++) {
            char *p = bytes + n * 32;
            memset(p, 'x', len);
            if (at < len) p[at] = 'y';
            key[n] = (cairn_str){p, len};
            value[n] = (uint32_t)n;
        }
    assert_in_range(n, MAP_BATCH + 2, 2 * MAP_BATCH);
    assert_ok(map_put_many(&m, key, value, MAP_BATCH));
    map_get_many(&m, key + n - MAP_BATCH, MAP_BATCH, found);
    for (size_t i = n - MAP_BATCH; i < n; i++) {
        assert_int_equal(found[i - (n - MAP_BATCH)], i < MAP_BATCH ? i : MAP_NONE);
        assert_int_equal(map_get(&m, key[i], &v), i < MAP_BATCH);
    }
    assert_ok(map_put_many(&m, key + 1, value, MAP_BATCH)); /* replaces */
    for (size_t i = 1; i <= MAP_BATCH; i++)
        assert_true(map_get(&m, key[i], &v) && v == (uint32_t)(i - 1));
    map_deinit(&m);
    /* The form for keys behind which there is room: the same whatever stands there. */
    map_init(&m, MEM_TEXT);
    assert_ok(map_put_wide(&m, key, value, MAP_BATCH));
    for (size_t i = 0; i < n; i++)
        for (size_t k = key[i].len; k < 32; k++) bytes[i * 32 + k] = (char)(k + i);
    map_get_wide(&m, key + n - MAP_BATCH, MAP_BATCH, found);
    for (size_t i = n - MAP_BATCH; i < n; i++) {
        assert_int_equal(found[i - (n - MAP_BATCH)], i < MAP_BATCH ? i : MAP_NONE);
        assert_int_equal(map_get(&m, key[i], &v), i < MAP_BATCH);
    }
    map_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_a_list),       cmocka_unit_test(odd_keys),
        cmocka_unit_test(reserve_is_enough), cmocka_unit_test(many_at_once),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
