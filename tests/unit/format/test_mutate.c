/* Random damage to model files: no parse may crash, hang or take much memory. */
#include "test.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "format/gguf_priv.h"
#include "format/hfconfig.h"
#include "format/safetensors_priv.h"
#include "format/shardindex.h"

enum { ROUNDS = 2000, TIME_LIMIT_S = 280, PARSE_MAX_S = 10 };
static const uint64_t parse_bytes_max = 100 << 20;

typedef void parse_fn(const uint8_t *p, size_t n);

static void walk(const meta_view *v, const meta *m, int depth)
{
    meta e;
    if (m->type != META_ARR || depth > 6) return;
    for (size_t i = 0; i < m->u.n && i < 1000; i++)
        if (meta_at(v, m, i, &e)) walk(v, &e, depth + 1);
}

static void parse_gguf(const uint8_t *p, size_t n)
{
    gguf_file f;
    arena a;

    arena_init(&a, MEM_MODEL);
    if (gguf_parse("x.gguf", p, n, &a, &f, NULL) == CAIRN_OK) {
        const meta_view v = gguf_meta(&f);
        for (size_t i = 0; i < f.n_kv; i++) {
            char key[256];
            meta m;
            snprintf(key, sizeof key, "%.*s", (int)(f.kv[i].key.len & 127), f.kv[i].key.ptr);
            if (meta_get(&v, key, &m)) walk(&v, &m, 0);
        }
        for (size_t i = 0; i < f.n_tensor; i++) {
            const tensor_desc *t = &f.tensor[i];
            assert_true(t->data >= p && t->size <= (size_t)(p + n - t->data));
        }
    }
    assert_true(mem_used_all() < parse_bytes_max);
    gguf_file_deinit(&f);
    arena_deinit(&a);
}

static void parse_safetensors(const uint8_t *p, size_t n)
{
    safetensors_file f;
    arena a;

    arena_init(&a, MEM_MODEL);
    if (safetensors_parse("x.safetensors", p, n, &a, &f, NULL) == CAIRN_OK)
        for (size_t i = 0; i < f.n_tensor; i++) {
            const tensor_desc *t = &f.tensor[i];
            assert_true(t->data >= p && t->size <= (size_t)(p + n - t->data));
        }
    assert_true(mem_used_all() < parse_bytes_max);
    arena_deinit(&a);
}

static void parse_config(const uint8_t *p, size_t n)
{
    static const char *const key[] = {"hidden_size", "eos_token_id", "rope.theta", "layer_types.1",
                                      "quantization.model.layers.0.mlp.bits"};
    hfconfig *c;

    if (hfconfig_parse("c.json", (cairn_str){(const char *)p, n}, &c, NULL) != CAIRN_OK) return;
    const meta_view v = hfconfig_meta(c);
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        meta m;
        if (meta_get(&v, key[i], &m)) walk(&v, &m, 0);
    }
    assert_true(mem_used_all() < parse_bytes_max);
    hfconfig_close(c);
}

static void parse_index(const uint8_t *p, size_t n)
{
    shard_index x;
    if (shard_index_parse("i.json", (cairn_str){(const char *)p, n}, &x, NULL) == CAIRN_OK)
        for (size_t i = 0; i < x.n_tensor; i++) assert_true(x.tensor[i].shard < x.n_shard);
    assert_true(mem_used_all() < parse_bytes_max);
    shard_index_deinit(&x);
}

/* One to eight small wounds; the length may shrink but never grow. */
static size_t damage(uint8_t *p, size_t n, uint64_t round)
{
    static const uint64_t wild[] = {
        0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, UINT64_C(1) << 60, INT64_MAX, UINT64_MAX};
    const uint64_t wounds = 1 + rng_u64(1, round, 0) % 8;

    for (uint64_t w = 0; w < wounds && n > 16; w++) {
        const uint64_t r = rng_u64(2, round, w), what = rng_u64(3, round, w);
        const size_t at = r % n;
        switch (what % 6) {
        case 0:
            p[at] ^= (uint8_t)(1 << (what >> 8) % 8);
            break;
        case 1:
            p[at] = (uint8_t)(what >> 8);
            break;
        case 2:
            memcpy(p + r % (n - 8), &wild[(what >> 8) % 9], 4 + 4 * (what >> 16 & 1));
            break;
        case 3:
            memmove(p + at, p + n - (n - at) / 2, (n - at) / 2);
            break;
        case 4:
            p[at] = (uint8_t) "\"{}[],:0-9.eE\\"[(what >> 8) % 14];
            break;
        default:
            n -= what % 16 == 5 ? (what >> 8) % (n / 2) : 0;
            break;
        }
    }
    return n;
}

static void run(const char *path, parse_fn *parse)
{
    buf whole;

    buf_init(&whole, MEM_MISC);
    assert_ok(file_read(path, 1 << 20, &whole, NULL));
    parse((const uint8_t *)whole.ptr, whole.len);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint8_t *p = mem_alloc(whole.len, MEM_MISC), *exact;
        memcpy(p, whole.ptr, whole.len);
        const size_t n = damage(p, whole.len, round);
        exact = mem_alloc(n, MEM_MISC); /* so that a sanitizer sees any step beyond */
        memcpy(exact, p, n);
        const clock_t start = clock(); /* of the processor: others may have it meanwhile */
        parse(exact, n);
        if (clock() - start > PARSE_MAX_S * CLOCKS_PER_SEC)
            fail_msg("%s: round %d is slow", path, (int)round);
        mem_free(exact);
        mem_free(p);
    }
    buf_deinit(&whole);
}

static void gguf_survives(void **state)
{
    (void)state;
    run("tests/fuzz/corpus/gguf/small.gguf", parse_gguf);
}

static void safetensors_survives(void **state)
{
    (void)state;
    run("tests/fuzz/corpus/safetensors/small.safetensors", parse_safetensors);
}

static void config_survives(void **state)
{
    (void)state;
    run("tests/fuzz/corpus/hfconfig/multi.json", parse_config);
}

static void index_survives(void **state)
{
    (void)state;
    run("tests/fuzz/corpus/shardindex/two.json", parse_index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gguf_survives),
        cmocka_unit_test(safetensors_survives),
        cmocka_unit_test(config_survives),
        cmocka_unit_test(index_survives),
    };
    alarm(TIME_LIMIT_S); /* a hang ends the program, which is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
