/* Weights with the extremes that a file may hold, activations with outliers, and the kernels of each level
   that this machine can run: what every test of LINEAR compares over. */
#include "kern/linear_data.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/kern/kern.h"
#include "base/half.h"
#include "base/rng.h"
#if defined(__x86_64__)
#include "kern/emulated_x86.h"
#endif

dtype tile_dtype(tile_type t)
{
#define TILE_DTYPE(name, elems, bytes) DT_##name,
    static const dtype type[] = {TILE_LIST(TILE_DTYPE)};
#undef TILE_DTYPE
    return type[t];
}

/* Most are numbers, so that most sums are. */
static uint16_t wild_half(uint64_t u)
{
    const uint16_t any = (uint16_t)(u >> 32), sign = any & 0x8000;
    switch (u % 16) {
    case 0:
        return any;
    case 1:
        return sign;
    case 2:
        return sign | 0x7bff;
    default:
        return u % 2 ? sign | (any & 0x3ff) : sign | any % 0x7c00;
    }
}

static void put_half(uint8_t *p, fill f, uint64_t seed, uint64_t i, double scale)
{
    double u = rng_unit(seed, 7, i) * 2 - 1;
    uint16_t h =
        f == FILL_WILD ? wild_half(rng_u64(seed, 17, i)) : f16_from_f32((float)(u * scale));
    memcpy(p, &h, 2);
}

static void fill_scales(dtype t, fill f, uint64_t seed, uint64_t b, uint8_t *p)
{
    static const struct {
        dtype t;
        int at, n;
    } half[] = {{DT_Q4_0, 0, 1},   {DT_Q4_1, 0, 2},    {DT_Q5_0, 0, 1},    {DT_Q5_1, 0, 2},
                {DT_Q8_0, 0, 1},   {DT_IQ4_NL, 0, 1},  {DT_Q2_K, 80, 2},   {DT_Q3_K, 108, 1},
                {DT_IQ4_XS, 0, 1}, {DT_Q4_K, 0, 2},    {DT_Q5_K, 0, 2},    {DT_Q6_K, 208, 1},
                {DT_IQ3_S, 0, 1},  {DT_IQ3_XXS, 0, 1}, {DT_IQ2_XXS, 0, 1}, {DT_IQ2_XS, 0, 1},
                {DT_IQ2_S, 0, 1},  {DT_IQ1_S, 0, 1},   {DT_TQ1_0, 52, 1},  {DT_TQ2_0, 64, 1}};
    for (size_t i = 0; i < sizeof half / sizeof *half; i++) {
        for (int k = 0; half[i].t == t && k < half[i].n; k++)
            put_half(p + half[i].at + 2 * k, f, seed, 2 * b + (uint64_t)k, 0.02);
    }
    /* d is the top nibbles of four numbers. */
    for (unsigned i = 0; i < 4 && t == DT_IQ1_M && f != FILL_WILD; i++)
        p[49 + 2 * i] = (uint8_t)((p[49 + 2 * i] & 15) |
                                  (f16_from_f32(0.013f * (float)(b % 5)) >> 4 * i & 15) << 4);
    /* Powers of two around 2^−9, a denormal one at times; e4m3 of every exponent. */
    if (t == DT_MXFP4 && f != FILL_WILD)
        p[0] = b % 37 == 3 ? (uint8_t)(b % 2) : (uint8_t)(116 + rng_u64(seed, 7, b) % 6);
    for (uint64_t i = 0; i < 4 && t == DT_NVFP4; i++)
        p[i] = (uint8_t)(rng_u64(seed, 7, 4 * b + i) % 128);
}

void fill_weights(dtype t, fill f, uint64_t seed, size_t n_block, uint8_t *out)
{
    const size_t size = (size_t)dtype_block_bytes(t);
    for (size_t b = 0; b < n_block; b++, out += size) {
        fill g = f == FILL_MIXED ? (fill)(rng_u64(seed, 3, b) % 3) : f;
        for (size_t i = 0; i < size; i++)
            out[i] = g == FILL_ONES ? 255 : g == FILL_ZEROS ? 0 : (uint8_t)rng_u64(seed, b, i);
        if (f == FILL_MIXED && t == DT_Q6_K) memset(out + 192, 128, 16);
        if (f == FILL_MIXED && t == DT_Q8_0 && b % 2) memset(out + 2, 128, 32);
        if (t == DT_F32) {
            float v = (float)(rng_unit(seed, 5, b) * 2 - 1);
            if (f == FILL_WILD) fill_floats(f, seed + b, 1, &v);
            memcpy(out, &v, 4);
        } else if (t == DT_F16 || t == DT_BF16) {
            float v = (float)(rng_unit(seed, 5, b) * 2 - 1);
            uint16_t h = t == DT_F16 ? f16_from_f32(v) : bf16_from_f32(v);
            if (f == FILL_WILD) h = wild_half(rng_u64(seed, 17, b));
            memcpy(out, &h, 2);
        } else if (t == DT_F8_E4M3 || t == DT_F8_E5M2) {
            *out &= 0xbf; /* no NaN */
        } else {
            fill_scales(t, f, seed, b, out);
        }
    }
}

void fill_floats(fill f, uint64_t seed, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) {
        double u = rng_unit(seed, 11, i) * 2 - 1;
        if (f == FILL_ZEROS)
            u = 0;
        else if (f == FILL_ONES)
            u = seed & 1 ? 1.0 : u < 0 ? -1.0 : 1.0;
        else if (f == FILL_MIXED && rng_u64(seed, 13, i) % 50 == 0)
            u *= 60;
        else if (f == FILL_WILD)
            u = ldexp(u, (int)(rng_u64(seed, 19, i / 32) % 277) - 149);
        out[i] = (float)u;
    }
}

bool same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (f32_bits(a[i]) != f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i]))) return false;
    }
    return true;
}

#if defined(__x86_64__)
#define LEVEL(name) emulated_##name
static void emulated_kernels(kern_linear *k)
{
    INSTALL_TILES
    k->quant32 = emulated_quant32;
    k->dense_f32 = emulated_dense_f32;
    k->dense_f16 = emulated_dense_f16;
    k->dense_bf16 = emulated_dense_bf16;
    k->widen_e4m3 = emulated_widen_e4m3;
    k->widen_e5m2 = emulated_widen_e5m2;
}
#undef LEVEL

#define LEVEL(name) emulated_avxvnni_##name
static void emulated_avxvnni_kernels(kern_linear *k)
{
    INSTALL_TILES
}
#undef LEVEL

static void emulated_amx_kernels(kern_linear *k)
{
    emulated_kernels(k);
#define INSTALL(type, name) k->tile[TILE_##type] = emulated_amx_tile_##name;
    AMX_TILES(INSTALL)
#undef INSTALL
    k->fine[TILE_Q4_K] = emulated_amx_fine_q4_k;
    k->fine[TILE_Q5_K] = emulated_amx_fine_q5_k;
    k->fine[TILE_Q6_K] = emulated_amx_fine_q6_k;
    k->fine_more[TILE_Q4_K] = emulated_amx_fine_more_q4_k;
    k->fine_more[TILE_Q5_K] = emulated_amx_fine_more_q5_k;
    k->fine_more[TILE_Q6_K] = emulated_amx_fine_more_q6_k;
    k->affine[AFFINE_4] = emulated_amx_affine_4;
    k->affine[AFFINE_5] = emulated_amx_affine_5;
    k->affine[AFFINE_8] = emulated_amx_affine_8;
}

#else
#define emulated_avxvnni_kernels NULL
#define emulated_kernels         NULL
#define emulated_amx_kernels     NULL
#endif

static const struct {
    const char *name;
    isa_level needs;
    void (*emulate)(kern_linear *k);
} levels[N_LEVEL] = {{"ref", ISA_REF, NULL},
                     {"avx2", ISA_AVX2, NULL},
                     {"avxvnni", ISA_AVXVNNI, NULL},
                     {"avx512", ISA_AVX512, NULL},
                     {"avx512vnni", ISA_AVX512VNNI, NULL},
                     {"amx", ISA_AMX, NULL},
                     {"neon", ISA_NEON, NULL},
                     {"dotprod", ISA_DOTPROD, NULL},
                     {"i8mm", ISA_I8MM, NULL},
                     {"avxvnni emulated", ISA_AVX2, emulated_avxvnni_kernels},
                     {"avx512vnni emulated", ISA_AVX2, emulated_kernels},
                     {"amx emulated", ISA_AVX2, emulated_amx_kernels}};

const char *level_name(int i)
{
    return levels[i].name;
}

int level_least(int i)
{
    return levels[i].emulate && levels[i].emulate == emulated_amx_kernels ? 16 : 1;
}

bool level_kernels(int i, kern_linear *k)
{
    kern all;
    if (!isa_runs(levels[i].needs)) return false;
    kern_init(&all, levels[i].needs);
    *k = all.lin;
    if (levels[i].emulate) levels[i].emulate(k);
    return true;
}
