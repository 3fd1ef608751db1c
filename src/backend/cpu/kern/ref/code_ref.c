/* Plain C: the coded kinds of a cache. */
#include <math.h>
#include <string.h>

#include "backend/cpu/kern/kern_code.h"
#include "backend/cpu/kern/kern_vec.h"

/* Centroids of TurboQuant's values: those of the least squared error for a normal distribution of variance
   1 (Lloyd 1982; Max 1960), by tools/golden/kv_codecs.py; bounds lie half way between neighbours. */
static const float centroid2[] = {0.45278f, 1.51042f}, bound2[] = {0.9816f};
static const float centroid3[] = {0.24509f, 0.75601f, 1.34391f, 2.15195f},
                   bound3[] = {0.50055f, 1.04996f, 1.74793f};
static const float centroid4[] = {0.1284f,  0.38805f, 0.65676f, 0.94234f,
                                  1.25623f, 1.61805f, 2.06902f, 2.73259f},
                   bound4[] = {0.258225f, 0.522405f, 0.79955f, 1.099285f,
                               1.43714f,  1.843535f, 2.400805f};

static const float *const centroids[] = {NULL, NULL, centroid2, centroid3, centroid4};
static const float *const bounds[] = {NULL, NULL, bound2, bound3, bound4};

/* Least and greatest after the clamp; false: an element is NaN. */
static bool span(const float *x, int32_t n, float *lo, float *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        const float v = kv_clamp(x[i]);
        if (isnan(v)) return false;
        if (v < *lo) *lo = v;
        if (v > *hi) *hi = v;
    }
    return true;
}

static void none(uint8_t *codes, uint16_t num[2], int32_t n)
{
    memset(codes, 0, (size_t)n);
    num[0] = num[1] = KV_NAN;
}

static uint8_t to_code(float v, const kv_law *l)
{
    v = kv_rint(v);
    return (uint8_t)((v < l->lo ? l->lo : v > l->hi ? l->hi : v) + l->off);
}

static void code_affine(uint8_t *codes, uint16_t num[2], const float *x, int32_t n, float top)
{
    float lo, hi;
    if (!span(x, n, &lo, &hi)) {
        none(codes, num, n);
        return;
    }
    const kv_law l = kv_affine_law(lo, hi, top, num);
    for (int32_t i = 0; i < n; i++) codes[i] = to_code((kv_clamp(x[i]) - l.b) / l.a, &l);
}

static void code_turbo_key(uint8_t *codes, uint16_t num[2], const float *x, int32_t n, bool wide)
{
    float lo, hi;
    if (!span(x, n, &lo, &hi)) {
        none(codes, num, n);
        return;
    }
    const kv_law l = kv_turbo_key_law(lo, hi, wide, num);
    for (int32_t i = 0; i < n; i++) codes[i] = to_code(kv_clamp(x[i]) / l.a - l.b, &l);
}

static float mean_square(const float *x, int32_t n)
{
    float s[16] = {0};
    for (int32_t i = 0; i < n; i++) s[i % 16] = fmaf(x[i], x[i], s[i % 16]);
    for (int step = 8; step > 0; step /= 2)
        for (int i = 0; i < step; i++) s[i] += s[i + step];
    return s[0] / (float)n;
}

/* Codes rise with the element: the lower half are negative. */
static void code_turbo_value(uint8_t *codes, uint16_t num[2], const float *x, int32_t n, int bits)
{
    const int half = 1 << (bits - 1);
    const float rms = sqrtf(mean_square(x, n));
    num[0] = isnan(rms) ? KV_NAN : f16_from_f32_sat(rms);
    const float scale = f16_to_f32(num[0]) + 1e-8f;
    for (int32_t i = 0; i < n; i++) {
        const float y = x[i] / scale, a = fabsf(y);
        int c = 0;
        for (int b = 0; b < half - 1; b++) c += a > bounds[bits][b];
        codes[i] = (uint8_t)(y > 0 ? half + c : half - 1 - c);
    }
}

static float open_affine(float code, float scale, float bias)
{
    return fmaf(code, scale, bias);
}
static float open_k8(float code, float scale, float zero)
{
    return (code + (zero - 127.0f)) * scale;
}
static float open_k4(float code, float scale, float zero)
{
    return (code + zero) * scale;
}

static int code8(const uint8_t *p, size_t i)
{
    return p[i];
}
static int code4(const uint8_t *p, size_t i)
{
    return i % 2 ? p[i / 2] >> 4 : p[i / 2] & 15;
}
/* Lane l of element d, 16 lanes lying together. */
static int tile8(const uint8_t *p, size_t d, size_t l)
{
    return p[d * KV_TILE + l];
}
static int tile4(const uint8_t *p, size_t d, size_t l)
{
    const uint8_t b = p[d / 2 * KV_TILE + l];
    return d % 2 ? b >> 4 : b & 15;
}

static uint16_t number(const uint8_t *group, size_t i)
{
    uint16_t h;
    memcpy(&h, group + 2 * i, sizeof h);
    return h;
}

/* A coded kind whose value is law(code, first number, second): what attention reads of it. */
#define DEFINE_KIND(name, kind, bits, law)                                                         \
    static float tile_##name(const uint8_t *tile, size_t d, size_t l, kv_codec c)                  \
    {                                                                                              \
        const size_t g = (size_t)c.group;                                                          \
        const uint8_t *p = tile + d / g * KV_TILE * kv_group_bytes(c);                             \
        const float code = (float)tile##bits(p + 4 * KV_TILE, d % g, l);                           \
        return law(code, f16_to_f32(number(p, l)), f16_to_f32(number(p, KV_TILE + l)));            \
    }                                                                                              \
    static float row_##name(const uint8_t *row, size_t i, kv_codec c)                              \
    {                                                                                              \
        const size_t g = (size_t)c.group;                                                          \
        const uint8_t *p = row + i / g * kv_group_bytes(c);                                        \
        const float code = (float)code##bits(p + 4, i % g);                                        \
        return law(code, f16_to_f32(number(p, 0)), f16_to_f32(number(p, 1)));                      \
    }                                                                                              \
    static void open_tile_##name(float *dst, const void *tile, int32_t n, int32_t group)           \
    {                                                                                              \
        const kv_codec c = {kind, group};                                                          \
        for (size_t d = 0; d < (size_t)n; d++)                                                     \
            for (size_t l = 0; l < KV_TILE; l++) *dst++ = tile_##name(tile, d, l, c);              \
    }                                                                                              \
    static void open_row_##name(float *dst, const void *row, int32_t n, int32_t group)             \
    {                                                                                              \
        const kv_codec c = {kind, group};                                                          \
        for (size_t i = 0; i < (size_t)n; i++) dst[i] = row_##name(row, i, c);                     \
    }
DEFINE_KIND(q8, KV_Q8, 8, open_affine)
DEFINE_KIND(q4, KV_Q4, 4, open_affine)
DEFINE_KIND(k8, KV_TURBO_K8, 8, open_k8)
DEFINE_KIND(k4, KV_TURBO_K4, 4, open_k4)

static void open_turbo_value(float *dst, const uint8_t *row, int32_t n, kv_codec c)
{
    const size_t bits = kv_bits(c.kind), half = (size_t)1 << (bits - 1);
    for (size_t i = 0; i < (size_t)n; i++) {
        const uint8_t *p = row + i / (size_t)c.group * kv_group_bytes(c);
        const size_t at = i % (size_t)c.group * bits, byte = 2 + at / 8;
        /* three bits may reach into the next byte, never past the group */
        const uint32_t two = p[byte] | (at % 8 + bits > 8 ? (uint32_t)p[byte + 1] << 8 : 0);
        const size_t code = two >> at % 8 & (2 * half - 1);
        const float y =
            code >= half ? centroids[bits][code - half] : -centroids[bits][half - 1 - code];
        dst[i] = y * f16_to_f32(number(p, 0));
    }
}

#define DEFINE_CODE(name, fn, arg)                                                                 \
    static void code_##name(uint8_t *codes, uint16_t num[2], const float *x, int32_t n)            \
    {                                                                                              \
        fn(codes, num, x, n, arg);                                                                 \
    }
DEFINE_CODE(q8, code_affine, 255.0f)
DEFINE_CODE(q4, code_affine, 15.0f)
DEFINE_CODE(k8, code_turbo_key, true)
DEFINE_CODE(k4, code_turbo_key, false)
DEFINE_CODE(v4, code_turbo_value, 4)
DEFINE_CODE(v3, code_turbo_value, 3)
DEFINE_CODE(v2, code_turbo_value, 2)

#define DEFINE_OPEN(name, kind)                                                                    \
    static void open_row_##name(float *dst, const void *row, int32_t n, int32_t group)             \
    {                                                                                              \
        open_turbo_value(dst, row, n, (kv_codec){kind, group});                                    \
    }
DEFINE_OPEN(v4, KV_TURBO_V4)
DEFINE_OPEN(v3, KV_TURBO_V3)
DEFINE_OPEN(v2, KV_TURBO_V2)

void kern_code_ref(kern_vec *v)
{
#define KEYS_TOO(kind, name)                                                                       \
    v->code[kind] = code_##name;                                                                   \
    v->open_tile[kind] = open_tile_##name;                                                         \
    v->open_row[kind] = open_row_##name;
    KEYS_TOO(KV_Q8, q8)
    KEYS_TOO(KV_Q4, q4)
    KEYS_TOO(KV_TURBO_K8, k8)
    KEYS_TOO(KV_TURBO_K4, k4)
#undef KEYS_TOO
#define VALUES(kind, name)                                                                         \
    v->code[kind] = code_##name;                                                                   \
    v->open_row[kind] = open_row_##name;
    VALUES(KV_TURBO_V4, v4)
    VALUES(KV_TURBO_V3, v3)
    VALUES(KV_TURBO_V2, v2)
#undef VALUES
}
