/* The coded kinds of a cache against their statement in NumPy (tools/golden/kv_codecs.py): the bytes of a block
   that ATTEND wrote, positions in steps of any size, and what every level reads from it. */
#include "test.h"

#include <math.h>

#include "backend/cpu/cpu_attend.h"
#include "backend/cpu/kern/kern.h"
#include "base/half.h"
#include "ops/golden_codecs.inc"
#include "ops/ops_rig.h"

static uint64_t add_bytes(uint64_t h, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}
static const uint64_t fnv_start = 0xcbf29ce484222325u;

/* SplitMix64's output i. */
static uint64_t mix64(uint64_t i, uint64_t seed)
{
    uint64_t z = seed + i * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* As inputs() of the script has it. */
static void fill(uint64_t seed, int32_t n, int32_t width, float *x)
{
    for (int32_t r = 0; r < n; r++)
        for (int32_t i = 0; i < width; i++, x++) {
            const uint64_t at = (uint64_t)(r * width + i + 1);
            const float u = (float)(mix64(at, seed) >> 40) * 0x1p-24f - 0.5f;
            const float each[] = {
                u * 3, u + 40,     i == width / 3 ? 300 : u * 3, -2.5f,        u * 0x1p-20f,
                0,     u * 400000, i == 5 ? NAN : u * 3,         u * 0.25f - 9};
            *x = each[r % 9];
        }
}

typedef struct place {
    kv_layer kv;
    size_t n_key, n_value;
    uint8_t *block;
    uint8_t *const *group;
} place;

static void place_open(place *p, const struct golden *g)
{
    const size_t n = (size_t)GOLDEN_HEADS * KV_BLOCK;
    *p = (place){.kv = {.k = g->k,
                        .v = g->v,
                        .n_kv_head = GOLDEN_HEADS,
                        .dk = g->dk,
                        .dv = g->dv,
                        .latent = g->latent}};
    p->n_key = n * kv_row_bytes(g->k, g->dk);
    p->n_value = g->latent ? 0 : n * kv_row_bytes(g->v, g->dv);
    p->kv.v_off = g->latent ? 0 : p->n_key;
    p->block = malloc(p->n_key + p->n_value);
    memset(p->block, 0xff, p->n_key + p->n_value);
}

/* Writes all positions, `chunk` a step. */
static void write_all(const struct golden *g, place *p, const float *keys, const float *values,
                      const char *isa, int32_t chunk)
{
    const int32_t ck = GOLDEN_HEADS * g->dk, cv = GOLDEN_HEADS * g->dv;
    const value v[] = {
        {ck, ROWS_ALL, false}, {ck, ROWS_ALL, false}, {cv, ROWS_ALL, false}, {cv, ROWS_ALL, false}};
    op o = {.kind = OP_ATTEND, .in = {0, 1, g->latent ? VAL_NONE : 2}, .out = {3, -1, -1}};
    o.u.attend.n_head = o.u.attend.n_kv_head = GOLDEN_HEADS;
    o.u.attend.dk = g->dk;
    o.u.attend.dv = g->dv;
    o.u.attend.scale = 0.1f;
    rig r;
    int32_t pos[GOLDEN_ROWS];
    uint8_t *const blocks[] = {p->block};
    p->group = blocks;
    rig_open(&r, isa, 2, &o, v, 4, chunk, GOLDEN_ROWS, NULL);
    for (int32_t at = 0; at < GOLDEN_ROWS; at += chunk) {
        const int32_t n = GOLDEN_ROWS - at < chunk ? GOLDEN_ROWS - at : chunk;
        const segment seg = {.n_rows = n, .pos0 = at, .blocks = &p->group};
        const step s = {
            .n_rows = n, .n_seg = 1, .pos = pos, .seg = &seg, .kv = &p->kv, .n_group = 1};
        for (int32_t i = 0; i < n; i++) pos[i] = at + i;
        memcpy(rig_val(&r, 0), keys + at * ck, (size_t)(n * ck) * sizeof *keys);
        memcpy(rig_val(&r, 1), keys + at * ck, (size_t)(n * ck) * sizeof *keys);
        if (!g->latent) memcpy(rig_val(&r, 2), values + at * cv, (size_t)(n * cv) * sizeof *values);
        backend_cpu.run(r.x, &s);
    }
    rig_close(&r);
}

static uint64_t add_value(uint64_t h, float x)
{
    const float y = isnan(x) ? f32_from_bits(0x7fc00000) : x + 0.0f;
    return add_bytes(h, &y, sizeof y);
}

/* Hash of the values of all positions, read from tiles or rows that begin at p. */
static uint64_t read_all(const kern_vec *k, kv_codec c, int32_t width, bool tiles, const uint8_t *p)
{
    static float tile[512 * KV_TILE], row[512];
    const size_t one = kv_row_bytes(c, width);
    uint64_t h = fnv_start;
    for (size_t pos = 0; pos < GOLDEN_ROWS; pos++)
        for (size_t head = 0; head < GOLDEN_HEADS; head++) {
            const uint8_t *at =
                p + (head * KV_BLOCK + (tiles ? pos / KV_TILE * KV_TILE : pos)) * one;
            if (tiles)
                k->open_tile[c.kind](tile, at, width, c.group);
            else
                k->open_row[c.kind](row, at, width, c.group);
            for (int32_t i = 0; i < width; i++)
                h = add_value(h, tiles ? tile[i * KV_TILE + (int32_t)pos % KV_TILE] : row[i]);
        }
    return h;
}

static void check(const struct golden *g, size_t i, const char *isa, int32_t chunk)
{
    const size_t n = GOLDEN_ROWS * GOLDEN_HEADS;
    float *keys = malloc(n * (size_t)g->dk * sizeof *keys);
    float *values = malloc(n * (size_t)g->dv * sizeof *values);
    place p;
    kern k;
    isa_level level = ISA_REF;
    fill(1000 + i, (int32_t)n, g->dk, keys);
    fill(2000 + i, (int32_t)n, g->dv, values);
    place_open(&p, g);
    write_all(g, &p, keys, values, isa, chunk);
    if (add_bytes(fnv_start, p.block, p.n_key) != g->key_bytes)
        fail_msg("case %zu at %s, steps of %d: other bytes of keys", i, isa, chunk);
    if (!g->latent && add_bytes(fnv_start, p.block + p.n_key, p.n_value) != g->value_bytes)
        fail_msg("case %zu at %s, steps of %d: other bytes of values", i, isa, chunk);
    assert_true(isa_parse(isa, &level));
    kern_init(&k, level);
    if (read_all(&k.vec, g->k, g->dk, !g->latent, p.block) != g->keys)
        fail_msg("case %zu at %s: other keys are read", i, isa);
    if (!g->latent && read_all(&k.vec, g->v, g->dv, false, p.block + p.n_key) != g->values)
        fail_msg("case %zu at %s: other values are read", i, isa);
    free(p.block);
    free(keys);
    free(values);
}

static void equals_the_statement(void **state)
{
    const int32_t levels = rig_levels();
    static const int32_t chunks[] = {1, 5, 16, GOLDEN_ROWS};
    (void)state;
    for (int32_t l = 0; l < levels; l++)
        for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++)
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
                check(&goldens[i], i, isa_name(rig_level(l)), chunks[c]);
}

/* A rotation undone is the vector again, but for rounding, and keeps lengths. */
static void turns_back(void **state)
{
    (void)state;
    for (size_t n = 64; n <= 512; n *= 2) {
        float x[512] = {0}, y[512] = {0};
        double a = 0, b = 0;
        for (size_t i = 0; i < n; i++) x[i] = y[i] = rig_rand(5, i);
        kv_turn(y, n);
        for (size_t i = 0; i < n; i++) {
            a += (double)x[i] * (double)x[i];
            b += (double)y[i] * (double)y[i];
        }
        assert_true(fabs(a - b) < 1e-4 * a);
        assert_true(fabsf(y[1] - x[1]) > 1e-3f);
        kv_turn_back(y, n);
        for (size_t i = 0; i < n; i++) assert_true(fabsf(x[i] - y[i]) < 1e-5f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_the_statement),
                                       cmocka_unit_test(turns_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
