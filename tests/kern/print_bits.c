/* Prints, for each kernel, a hash of what it gives for seeded inputs.  bits.txt holds the lines: every
   level of every machine must print them, which is what one numerics means across machines.  .ci/run
   compares (steps gcc-tests and qemu); a change of the numerics version is the one reason to renew them.

   usage: print_bits [LEVEL]    the level (default: the machine's best) is named on standard error */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/kern/kern.h"
#include "backend/cpu/kern/kern_math.h"
#include "backend/cpu/tiles.h"
#include "base/half.h"
#include "base/rng.h"
#include "kern/linear_data.h"

enum { N = 2 * 1021 };

static float a[N], b[N], c[N], y[N];

static uint64_t add_byte(uint64_t h, uint8_t x)
{
    return (h ^ x) * 0x100000001b3u; /* FNV-1a */
}

/* NaN has no bits that anyone may rely on: machines make different ones. */
static uint64_t add_floats(uint64_t h, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = x[i] != x[i] ? 0x7fc00000u : f32_bits(x[i]);
        for (int k = 0; k < 32; k += 8) h = add_byte(h, (uint8_t)(u >> k));
    }
    return h;
}

static uint64_t add_bytes(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) h = add_byte(h, ((const uint8_t *)p)[i]);
    return h;
}

static void say(const char *name, uint64_t h)
{
    printf("%-20s %016llx\n", name, (unsigned long long)h);
}

static void fill_inputs(void)
{
    fill_floats(FILL_MIXED, 1, N, a);
    fill_floats(FILL_MIXED, 2, N, b);
    fill_floats(FILL_RANDOM, 3, N, c);
    for (size_t i = 0; i < N; i += 97)
        a[i] = f32_from_bits((uint32_t)rng_u64(5, 5, i)); /* any bits */
}

static void print_math(void)
{
    static const struct {
        const char *name;
        float (*f)(float);
    } all[] = {
        {"exp", kern_exp},          {"tanh", kern_tanh},           {"erfc", kern_erfc},
        {"silu", kern_silu},        {"gelu_tanh", kern_gelu_tanh}, {"gelu_erf", kern_gelu_erf},
        {"softplus", kern_softplus}};
    uint64_t h;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        h = 0;
        for (int k = -9000; k <= 9000; k++) {
            const float v = all[i].f((float)k * 0.0113f);
            h = add_floats(h, &v, 1);
        }
        say(all[i].name, h);
    }
    h = 0;
    for (int k = 0; k < 20000; k++) {
        float sc[2];
        kern_sincos((float)k * 51.7f, &sc[0], &sc[1]);
        h = add_floats(h, sc, 2);
    }
    say("sincos", h);
}

static void print_vec(const kern_vec *v)
{
    enum { HALF = N / 2 };
    static const char *const glu_name[KERN_GLUS] = {"glu silu",     "glu gelu_tanh", "glu gelu_erf",
                                                    "glu bilinear", "glu sigmoid",   "glu relu"};
    float s = v->sum_sq(b, N);
    say("sum_sq", add_floats(0, &s, 1));
    s = v->add_sum_sq(y, b, c, N);
    say("add_sum_sq", add_floats(add_floats(0, &s, 1), y, N));
    v->norm(y, a, 0.37f, b, N);
    say("norm", add_floats(0, y, N));
    v->softcap(y, a, 30.0f, N);
    say("softcap", add_floats(0, y, N));
    for (int g = 0; g < KERN_GLUS; g++) {
        v->glu[g](y, a, b, N);
        say(glu_name[g], add_floats(0, y, N));
    }
    v->rope_halves(y, a, b, c, HALF);
    say("rope_halves", add_floats(0, y, N));
    v->rope_pairs(y, a, b, c, HALF);
    say("rope_pairs", add_floats(0, y, N));
    memcpy(y, b, sizeof y);
    v->axpy(y, 0.7f, a, N);
    say("axpy", add_floats(0, y, N));
    v->divide(y, a, 3.0f, N);
    say("divide", add_floats(0, y, N));
    v->conv(y, &(kern_conv){a, c, b, c, 1, 2, HALF, true}, HALF);
    say("conv", add_floats(0, y, HALF));
    memcpy(y, b, sizeof y);
    v->delta(&(kern_delta){y + 8 * 29, y, a, c, a + 8, 0.9f, 0.7f, 8, 29});
    say("delta", add_floats(0, y, 9 * 29));
    memcpy(y, b, sizeof y);
    s = v->scan(y, 0.7f, -1.3f, c, c, N);
    say("scan", add_floats(add_floats(0, &s, 1), y, N));
}

static void print_attend(const kern_vec *v)
{
    enum { N_A = 7, DEPTH = 29, STRIPS = 4, COLS = 16 * STRIPS };
    static const char *const name[KV_PLAIN_KINDS] = {
        [KV_F16] = "f16", [KV_BF16] = "bf16", [KV_F32] = "f32"};
    static uint8_t coded[DEPTH * COLS * 4];
    static float out[N_A * COLS], wide[DEPTH * COLS], s[ATTEND_SPLIT], max[1];
    char line[32];
    for (kv_kind k = KV_F16; k <= KV_F32; k++) {
        v->encode[k](coded, b, DEPTH * COLS);
        (void)snprintf(line, sizeof line, "encode %s", name[k]);
        say(line, add_bytes(0, coded, DEPTH * COLS * kv_bits(k) / 8));
        v->widen[k](wide, coded, DEPTH, COLS);
        (void)snprintf(line, sizeof line, "widen %s", name[k]);
        say(line, add_floats(0, wide, DEPTH * COLS));
        const kern_mm m = {.c = out,
                           .a = c,
                           .b = coded,
                           .ldc = COLS,
                           .lda = DEPTH,
                           .row = COLS,
                           .strip = 16,
                           .n_a = N_A,
                           .n_strip = STRIPS,
                           .n = DEPTH};
        v->mm[k](&m);
        (void)snprintf(line, sizeof line, "mm %s", name[k]);
        say(line, add_floats(0, out, N_A * COLS));
    }
    memcpy(s, b, sizeof s);
    float sum;
    v->softmax(&(kern_softmax){s, max, &sum, 0, 0, 1, 3, 201, 0.7f, 5.0f});
    s[0] = sum;
    say("softmax", add_floats(add_floats(0, s, 208), max, 1));
}

static void print_coded(const kern_vec *v)
{
    enum { GROUP = 32, N_GROUP = 4, DEPTH = GROUP * N_GROUP };
    static const char *const name[KV_KINDS] = {[KV_Q8] = "q8",
                                               [KV_Q4] = "q4",
                                               [KV_TURBO_K8] = "turbo k8",
                                               [KV_TURBO_K4] = "turbo k4",
                                               [KV_TURBO_V4] = "turbo v4",
                                               [KV_TURBO_V3] = "turbo v3",
                                               [KV_TURBO_V2] = "turbo v2"};
    static uint8_t coded[KV_TILE * 2 * DEPTH];
    static float wide[KV_TILE * DEPTH];
    char line[32];
    for (kv_kind k = KV_Q8; k < (kv_kind)KV_KINDS; k++) {
        uint8_t codes[GROUP];
        uint16_t num[2] = {0};
        uint64_t h = 0;
        for (size_t g = 0; g < N_GROUP; g++) {
            v->code[k](codes, num, b + g * GROUP, GROUP);
            h = add_bytes(add_bytes(h, codes, GROUP), (const uint8_t *)num, sizeof num);
        }
        (void)snprintf(line, sizeof line, "code %s", name[k]);
        say(line, h);
        /* Rows and a tile of the same bytes; the numbers are 1 and less. */
        for (size_t i = 0; i < sizeof coded; i++) coded[i] = (uint8_t)(i % 2 ? 0x3b : i * 37);
        v->open_row[k](wide, coded, DEPTH, GROUP);
        (void)snprintf(line, sizeof line, "open row %s", name[k]);
        say(line, add_floats(0, wide, DEPTH));
        if (!v->open_tile[k]) continue;
        v->open_tile[k](wide, coded, DEPTH, GROUP);
        (void)snprintf(line, sizeof line, "open tile %s", name[k]);
        say(line, add_floats(0, wide, KV_TILE * DEPTH));
    }
}

/* group: of the activations. */
static void print_tile(const kern_linear *k, tile_type t, int32_t group)
{
    enum { N_BLOCK = 3, ROWS = 5, TERMS = 2, N_VEC = ROWS * TERMS };
    static float x[N_BLOCK * 256];
    static _Alignas(64) float out[TILE_MAX_VEC * TILE_ROWS];
    static _Alignas(64) uint8_t tile[N_BLOCK * TILE_ROWS * 256 + TILE_SLACK], panel[TILE_PANEL];
    static uint8_t w[N_BLOCK * TILE_ROWS * 256], act[2 * N_BLOCK * N_VEC * sizeof(a8_256)];
    const dtype d = tile_dtype(t);
    const bool fine = group < tile_elems(t);
    const int32_t cols = N_BLOCK * dtype_block(d), n_block = cols / tile_elems(t);
    const int32_t n_group = cols / group;
    const size_t one = group == 256 ? sizeof(a8_256) : sizeof(a8_32), stride = one * N_VEC;
    const size_t row = (size_t)N_BLOCK * (size_t)dtype_block_bytes(d);
    char line[32];
    fill_weights(d, FILL_MIXED, 9, N_BLOCK * TILE_ROWS, w);
    tiles_pack(t, w, row, TILE_ROWS, n_block, tile);
    for (size_t r = 0; r < ROWS; r++) {
        uint8_t *at = act + r * TERMS * one;
        fill_floats(FILL_MIXED, 20 + r, (size_t)cols, x);
        if (group == 256)
            k->quant256(x, n_group, TERMS, (a8_256 *)(void *)at, stride);
        else
            k->quant32(x, n_group, TERMS, (a8_32 *)(void *)at, stride);
    }
    (fine ? k->fine : k->tile)[t](tile, n_block, act, stride, N_VEC, TERMS, out, panel);
    (void)snprintf(line, sizeof line, "%s %s", fine ? "fine" : "tile", dtype_name(d));
    say(line, add_floats(0, out, (size_t)ROWS * TILE_ROWS));
}

static void print_dense(const kern_linear *k)
{
    enum { N_W = 9, N_X = 5, K = 77 };
    static const dtype type[] = {DT_F32, DT_F16, DT_BF16};
    kern_dense_fn *const f[] = {k->dense_f32, k->dense_f16, k->dense_bf16};
    static uint8_t w[N_W * K * 4];
    static float x[N_X * K], out[N_X * N_W];
    char line[32];
    fill_floats(FILL_MIXED, 30, N_X * K, x);
    for (size_t i = 0; i < sizeof type / sizeof *type; i++) {
        fill_weights(type[i], FILL_RANDOM, 31, N_W * K, w);
        f[i](w, (size_t)dtype_block_bytes(type[i]) * K, N_W, x, K, N_X, K, out, N_W);
        (void)snprintf(line, sizeof line, "dense %s", dtype_name(type[i]));
        say(line, add_floats(0, out, N_X * N_W));
    }
}

static void print_widen(const kern_linear *k)
{
    uint8_t all[256];
    float out[2 * 256];
    for (size_t i = 0; i < sizeof all; i++) all[i] = (uint8_t)i;
    k->widen_e4m3(all, 256, 0.37f, out);
    k->widen_e5m2(all, 256, -1.3f, out + 256);
    say("widen fp8", add_floats(0, out, 2 * 256));
}

int main(int argc, char **argv)
{
    kern k;
    isa_level level = isa_detect();
    if (argc > 1 && !(isa_parse(argv[1], &level) && isa_runs(level))) {
        fprintf(stderr, "print_bits: no level %s here\n", argv[1]);
        return 2;
    }
    kern_init(&k, level);
    fprintf(stderr, "level %s\n", isa_name(k.level));
    fill_inputs();
    print_math();
    print_vec(&k.vec);
    print_attend(&k.vec);
    print_coded(&k.vec);
    for (int t = 0; t < TILE_COUNT; t++) {
        print_tile(&k.lin, (tile_type)t, tile_elems((tile_type)t));
        if (k.lin.fine[t]) print_tile(&k.lin, (tile_type)t, 32);
    }
    print_dense(&k.lin);
    print_widen(&k.lin);
    return 0;
}
