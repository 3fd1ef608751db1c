/* Every slot of kern_vec that a level fills gives the reference's bits, and touches nothing else:
   buffers end at an unmapped page. */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/kern/kern.h"
#include "base/half.h"
#include "kern/fence.h"

static const size_t lengths[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,
                                 12, 13, 14, 15, 16, 17, 18, 19, 20,  21,  22,  23,
                                 24, 25, 26, 27, 28, 29, 30, 31, 32,  33,  34,  35,
                                 36, 37, 38, 39, 40, 41, 61, 97, 127, 251, 509, 1021};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static bool same(float a, float b)
{
    return f32_bits(a) == f32_bits(b) || (a != a && b != b);
}

static void check_same(const char *slot, isa_level l, size_t n, int kind, const float *want,
                       const float *got, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same(want[i], got[i]))
            fail_msg("%s at %s, n %zu, kind %d: element %zu is %a, not %a", slot, isa_name(l), n,
                     kind, i, (double)got[i], (double)want[i]);
}

/* A slot as a function of up to three vectors and a number. */
typedef struct slot {
    const char *name;
    float (*call)(const kern_vec *v, float *y, const float *a, const float *b, const float *c,
                  float s, size_t n);
    size_t width;  /* elements of y and a for n */
    bool in_place; /* y may be a */
    float s;
} slot;

#define SLOT(name)                                                                                 \
    static float call_##name(const kern_vec *v, float *y, const float *a, const float *b,          \
                             const float *c, float s, size_t n)
#define UNUSED (void)y, (void)a, (void)b, (void)c, (void)s
SLOT(sum_sq)
{
    UNUSED;
    return v->sum_sq(a, n);
}
SLOT(add_sum_sq)
{
    UNUSED;
    return v->add_sum_sq(y, a, b, n);
}
SLOT(sum)
{
    UNUSED;
    return v->sum(a, n);
}
SLOT(center)
{
    UNUSED;
    return v->center(y, a, s, n);
}
SLOT(norm)
{
    UNUSED;
    v->norm(y, a, s, b, n);
    return 0;
}
SLOT(add)
{
    UNUSED;
    v->add(y, a, b, n);
    return 0;
}
SLOT(scale)
{
    UNUSED;
    v->scale(y, a, s, n);
    return 0;
}
SLOT(softcap)
{
    UNUSED;
    v->softcap(y, a, s, n);
    return 0;
}
#define GLU(name, act)                                                                             \
    SLOT(name)                                                                                     \
    {                                                                                              \
        UNUSED;                                                                                    \
        v->glu[act](y, a, b, n);                                                                   \
        return 0;                                                                                  \
    }
GLU(silu, GLU_SILU)
GLU(gelu_tanh, GLU_GELU_TANH)
GLU(gelu_erf, GLU_GELU_ERF)
GLU(bilinear, GLU_BILINEAR)
GLU(sigmoid, GLU_SIGMOID)
GLU(relu, GLU_RELU)
SLOT(glu_clamped)
{
    UNUSED;
    v->glu_clamped(y, a, b, n, 1.702f, s);
    return 0;
}
SLOT(conv)
{
    UNUSED;
    v->conv(y, &(kern_conv){b, c, a, s > 0 ? c : NULL, 1, 2, n, s > 0}, n);
    return 0;
}
/* y: a state of two rows, then the result */
SLOT(delta)
{
    UNUSED;
    v->delta(&(kern_delta){y + 2 * n, y, a, a + 1, b, 0.9f, s, 2, (int32_t)n});
    return 0;
}
SLOT(scan)
{
    UNUSED;
    return v->scan(y, s, 0.7f, b, c, n);
}
SLOT(xielu)
{
    UNUSED;
    v->xielu(y, a, &(xielu_params){0.9f, 0.7f, 0.5f, s}, n);
    return 0;
}
SLOT(rope_halves)
{
    UNUSED;
    v->rope_halves(y, a, b, c, n);
    return 0;
}
SLOT(rope_pairs)
{
    UNUSED;
    v->rope_pairs(y, a, b, c, n);
    return 0;
}
SLOT(axpy)
{
    UNUSED;
    v->axpy(y, s, b, n);
    return 0;
}
SLOT(divide)
{
    UNUSED;
    v->divide(y, a, s, n);
    return 0;
}
#undef SLOT

static const slot slots[] = {
#define SLOT(name, width, in_place, s)                                                             \
    {                                                                                              \
#name, call_##name, width, in_place, s                                                     \
    }
    SLOT(sum_sq, 1, false, 0),     SLOT(add_sum_sq, 1, true, 0), SLOT(norm, 1, true, 0.37f),
    SLOT(add, 1, true, 0),         SLOT(scale, 1, true, -1.7f),  SLOT(softcap, 1, true, 30),
    SLOT(silu, 1, true, 0),        SLOT(gelu_tanh, 1, true, 0),  SLOT(gelu_erf, 1, true, 0),
    SLOT(rope_halves, 2, true, 0), SLOT(rope_pairs, 2, true, 0), SLOT(axpy, 1, true, 0.7f),
    SLOT(divide, 1, true, 3),      SLOT(sum, 1, false, 0),       SLOT(center, 1, true, 0.3f),
    SLOT(xielu, 1, true, -1e-6f),  SLOT(bilinear, 1, true, 0),   SLOT(sigmoid, 1, true, 0),
    SLOT(relu, 1, true, 0),        SLOT(conv, 2, false, 0),      SLOT(conv, 2, false, 1),
    SLOT(delta, 3, false, 0.7f),   SLOT(scan, 1, true, 0.9f),    SLOT(glu_clamped, 1, true, 0.5f),
};

static void check_slot(const slot *t, const kern_vec *ref, const kern_vec *v, isa_level l, size_t n,
                       int kind)
{
    if (left_out()) return;
    const size_t wide = n * t->width * sizeof(float), one = n * sizeof(float);
    float *a = fence_new(wide), *b = fence_new(one), *c = fence_new(one);
    float *want = fence_new(wide), *got = fence_new(wide);
    fence_fill(a, n * t->width, kind, 1 + n);
    fence_fill(b, n, kind, 2 + n);
    fence_fill(c, n, kind, 3 + n);
    fence_fill(want, n * t->width, kind, 4 + n);
    memcpy(got, want, wide);
    float rw = t->call(ref, want, a, b, c, t->s, n), rg = t->call(v, got, a, b, c, t->s, n);
    check_same(t->name, l, n, kind, &rw, &rg, 1);
    check_same(t->name, l, n, kind, want, got, n * t->width);
    if (t->in_place) {
        memcpy(want, a, wide);
        memcpy(got, a, wide);
        (void)t->call(ref, want, want, b, c, t->s, n);
        (void)t->call(v, got, got, b, c, t->s, n);
        check_same(t->name, l, n, kind, want, got, n * t->width);
    }
    fence_free(a, wide);
    fence_free(b, one);
    fence_free(c, one);
    fence_free(want, wide);
    fence_free(got, wide);
}

/* Halves and pairs of bytes: f16 and bf16 differ from the reference in NaN payloads only. */
static bool same_half(kv_kind c, uint16_t a, uint16_t b)
{
    float x = c == KV_F16 ? f16_to_f32(a) : bf16_to_f32(a);
    float y = c == KV_F16 ? f16_to_f32(b) : bf16_to_f32(b);
    return a == b || (x != x && y != y);
}

static void check_encode(const kern_vec *ref, const kern_vec *v, isa_level l, size_t n, int kind)
{
    if (left_out()) return;
    for (kv_kind c = KV_F16; c <= KV_BF16; c++) {
        float *x = fence_new(n * 4);
        uint16_t *want = fence_new(n * 2), *got = fence_new(n * 2);
        fence_fill(x, n, kind, 5 + n);
        for (size_t i = 0; i < n; i += 5) x[i] *= 30000; /* around f16's end */
        ref->encode[c](want, x, n);
        v->encode[c](got, x, n);
        for (size_t i = 0; i < n; i++)
            if (!same_half(c, want[i], got[i]))
                fail_msg("encode %d at %s: %a to %04x, not %04x", c, isa_name(l), (double)x[i],
                         got[i], want[i]);
        fence_free(x, n * 4);
        fence_free(want, n * 2);
        fence_free(got, n * 2);
    }
}

static void fill_codec(void *dst, kv_kind c, size_t n, int kind, uint64_t seed, const kern_vec *ref)
{
    float *x = fence_new(n * 4);
    fence_fill(x, n, kind, seed);
    ref->encode[c](dst, x, n);
    fence_free(x, n * 4);
}

static void check_widen(const kern_vec *ref, const kern_vec *v, isa_level l, size_t cols, int kind)
{
    if (left_out()) return;
    enum { ROWS = 5 };
    for (kv_kind c = KV_F16; c <= KV_F32; c++) {
        const size_t n = cols * ROWS, strips = (cols + 15) / 16, out = strips * ROWS * 16;
        void *src = fence_new(n * (kv_bits(c) / 8));
        float *want = fence_new(out * 4), *got = fence_new(out * 4);
        fill_codec(src, c, n, kind, 6 + cols, ref);
        ref->widen[c](want, src, ROWS, (int32_t)cols);
        v->widen[c](got, src, ROWS, (int32_t)cols);
        check_same("widen", l, cols, kind, want, got, out);
        fence_free(src, n * (kv_bits(c) / 8));
        fence_free(want, out * 4);
        fence_free(got, out * 4);
    }
}

/* The two forms in use: keys in tiles (row 16, strip 16·n), values in rows (strip 16). */
static void check_mm(const kern_vec *ref, const kern_vec *v, isa_level l, int32_t n_a,
                     int32_t n_strip, int32_t n, int kind)
{
    if (left_out()) return;
    for (kv_kind c = KV_F16; c <= KV_F32; c++)
        for (int form = 0; form < 4; form++) {
            const bool keys = form & 1, add = form & 2;
            const size_t cols = (size_t)n_strip * 16, e = (kv_bits(c) / 8);
            const size_t n_b = (size_t)n * cols, lda = (size_t)n + 3, ldc = cols + 1;
            const size_t size_a = ((size_t)(n_a - 1) * lda + (size_t)n) * 4;
            const size_t size_c = ((size_t)(n_a - 1) * ldc + cols) * 4;
            void *b = fence_new(n_b * e);
            float *a = fence_new(size_a), *want = fence_new(size_c), *got = fence_new(size_c);
            fence_fill(a, size_a / 4, kind, 7);
            fence_fill(want, size_c / 4, kind, 8);
            memcpy(got, want, size_c);
            fill_codec(b, c, n_b, kind, 9, ref);
            kern_mm m = {.c = want,
                         .a = a,
                         .b = b,
                         .ldc = ldc,
                         .lda = lda,
                         .n_a = n_a,
                         .row = keys ? 16 : cols,
                         .strip = keys ? (size_t)n * 16 : 16,
                         .n_strip = n_strip,
                         .n = n,
                         .add = add,
                         .ahead = {keys ? b : NULL, add ? b : NULL}};
            ref->mm[c](&m);
            m.c = got;
            v->mm[c](&m);
            check_same("mm", l, (size_t)n, kind, want, got, size_c / 4);
            fence_free(b, n_b * e);
            fence_free(a, size_a);
            fence_free(want, size_c);
            fence_free(got, size_c);
        }
}

/* Codes and numbers of a group of n. */
static void check_code(const kern_vec *ref, const kern_vec *v, isa_level l, kv_kind c, int32_t n,
                       int kind)
{
    const size_t size = (size_t)n;
    float *x = fence_new(size * 4);
    uint8_t *want = fence_new(size), *got = fence_new(size);
    for (int change = 0; change < 4; change++) {
        uint16_t num[2][2] = {{0}};
        fence_fill(x, size, kind, 10 + size);
        for (size_t i = 0; change == 1 && i < size; i++) x[i] = x[0]; /* no span */
        for (size_t i = 0; change == 2 && i < size; i += 5) x[i] *= 30000;
        for (size_t i = 0; change == 3 && i < size; i++) x[i] = 300 + x[i] * 1e-3f;
        ref->code[c](want, num[0], x, n);
        v->code[c](got, num[1], x, n);
        if (memcmp(want, got, size) != 0 || memcmp(num[0], num[1], sizeof num[0]) != 0)
            fail_msg("code %d at %s: group of %d, kind %d, change %d: numbers %04x %04x, not %04x "
                     "%04x, or codes",
                     c, isa_name(l), n, kind, change, num[1][0], num[1][1], num[0][0], num[0][1]);
    }
    fence_free(x, size * 4);
    fence_free(want, size);
    fence_free(got, size);
}

/* Any bytes are codes; numbers are those of real ones, and some that are not finite. */
static void fill_coded(uint8_t *p, kv_codec c, size_t n_group, size_t lanes, int kind)
{
    const size_t one = lanes * kv_group_bytes(c), n = lanes * kv_numbers(c.kind);
    for (size_t g = 0; g < n_group; g++, p += one) {
        for (size_t i = 0; i < one; i++) p[i] = (uint8_t)((g * one + i) * 0x9e3779b9u >> 13);
        for (size_t i = 0; i < n; i++) {
            float x;
            fence_fill(&x, 1, kind, 100 + g * n + i);
            const uint16_t h = i % 19 == 7 ? 0x7e00 : f16_from_f32_sat(x);
            memcpy(p + 2 * i, &h, sizeof h);
        }
    }
}

/* Products in both forms against floats that the reference opened. */
static void check_coded_mm(const kern_vec *ref, const kern_vec *v, isa_level l, kv_codec c,
                           int32_t n_a, int32_t n_strip, int kind)
{
    enum { ROWS = 9 };
    if (left_out() || !v->mm_tiles[c.kind]) return;
    for (int form = 0; form < 4; form++) {
        const bool keys = form & 1;
        const int32_t width = keys ? 2 * c.group : (n_strip * 16 + c.group - 1) / c.group * c.group;
        const int32_t n = keys ? width : ROWS, n_row = keys ? n_strip : ROWS;
        const size_t lanes = keys ? KV_TILE : 1, row = lanes * kv_row_bytes(c, width);
        const size_t cols = (size_t)n_strip * 16, lda = (size_t)n + 3, ldc = cols + 1;
        const size_t size_a = ((size_t)(n_a - 1) * lda + (size_t)n) * 4;
        const size_t size_c = ((size_t)(n_a - 1) * ldc + cols) * 4;
        const size_t size_b = row * (size_t)n_row, wide = (size_t)(n_row * width) * lanes * 4;
        uint8_t *b = fence_new(size_b);
        float *a = fence_new(size_a), *want = fence_new(size_c), *got = fence_new(size_c);
        float *open = fence_new(wide);
        fill_coded(b, c, size_b / lanes / kv_group_bytes(c), lanes, kind);
        fence_fill(a, size_a / 4, kind, 7);
        fence_fill(want, size_c / 4, kind, 8);
        memcpy(got, want, size_c);
        for (int32_t r = 0; r < n_row; r++)
            (keys ? ref->open_tile : ref->open_row)[c.kind](open + (size_t)(r * width) * lanes,
                                                            b + (size_t)r * row, width, c.group);
        kern_mm m = {.c = want,
                     .a = a,
                     .b = open,
                     .ldc = ldc,
                     .lda = lda,
                     .n_a = n_a,
                     .row = keys ? 16 : (size_t)width,
                     .strip = keys ? (size_t)width * 16 : 16,
                     .n_strip = n_strip,
                     .n = n,
                     .group = c.group,
                     .add = form & 2,
                     .ahead = {form & 2 ? b : NULL, form == 3 ? b : NULL}};
        ref->mm[KV_F32](&m);
        m.c = got;
        m.b = b;
        m.row = row;
        (keys ? v->mm_tiles : v->mm_rows)[c.kind](&m);
        check_same(keys ? "mm_tiles" : "mm_rows", l, (size_t)n, kind, want, got, size_c / 4);
        fence_free(b, size_b);
        fence_free(a, size_a);
        fence_free(want, size_c);
        fence_free(got, size_c);
        fence_free(open, wide);
    }
}

static void check_open(const kern_vec *ref, const kern_vec *v, isa_level l, kv_codec c, int kind)
{
    const int32_t n = 3 * c.group;
    for (int tile = 0; tile < (ref->open_tile[c.kind] ? 2 : 1); tile++) {
        const size_t lanes = tile ? KV_TILE : 1, out = (size_t)n * lanes;
        const size_t size = kv_row_bytes(c, n) * lanes;
        uint8_t *b = fence_new(size);
        float *want = fence_new(out * 4), *got = fence_new(out * 4);
        fill_coded(b, c, 3, lanes, kind);
        for (int32_t part = tile ? n : 16; part <= n; part += 16) {
            (tile ? ref->open_tile : ref->open_row)[c.kind](want, b, part, c.group);
            (tile ? v->open_tile : v->open_row)[c.kind](got, b, part, c.group);
            check_same("open", l, (size_t)part, kind, want, got, (size_t)part * lanes);
        }
        fence_free(b, size);
        fence_free(want, out * 4);
        fence_free(got, out * 4);
    }
}

static void check_coded(const kern_vec *ref, const kern_vec *v, isa_level l, kv_kind kind_of,
                        int kind)
{
    for (int32_t g = kv_is_rotated(kind_of) ? 32 : 16; g <= KV_GROUP_MAX; g *= 2) {
        const kv_codec c = {kind_of, g};
        if (left_out()) continue;
        check_code(ref, v, l, kind_of, g, kind);
        check_open(ref, v, l, c, kind);
        for (int32_t n_a = 1; n_a <= 13; n_a++)
            check_coded_mm(ref, v, l, c, n_a, 1 + (n_a * 5 + g) % 9, kind);
    }
}

/* Many queries at once are each alone. */
static void check_softmaxes(const kern_vec *ref, const kern_vec *v, isa_level l, int32_t n,
                            int kind)
{
    enum { PITCH = 80, LO = 3, HI = 70 };
    const size_t size = (size_t)n * PITCH;
    if (left_out()) return;
    float *want = fence_new(size * 4), *got = fence_new(size * 4), sum[2][2][64];
    fence_fill(want, size, kind, (uint64_t)n);
    memcpy(got, want, size * 4);
    kern_softmax j = {want, sum[0][0], sum[0][1], PITCH, 2, n, LO, HI, 0.3f, 0};
    ref->softmax(&j);
    j = (kern_softmax){got, sum[1][0], sum[1][1], PITCH, 2, n, LO, HI, 0.3f, 0};
    v->softmax(&j);
    check_same("softmaxes", l, size, kind, want, got, size);
    for (int32_t i = 0; i < 2 * n; i += 2) {
        for (int k = 0; k < 2; k++) sum[k][0][i] += 0.0f;
        check_same("softmaxes", l, size, kind, &sum[0][0][i], &sum[1][0][i], 1);
        check_same("softmaxes", l, size, kind, &sum[0][1][i], &sum[1][1][i], 1);
    }
    fence_free(want, size * 4);
    fence_free(got, size * 4);
}

static void check_softmax(const kern_vec *ref, const kern_vec *v, isa_level l, int32_t lo,
                          int32_t hi, float scale, float cap, int kind)
{
    if (left_out()) return;
    const size_t n = (size_t)(hi / 16 + 1) * 16;
    float *want = fence_new(n * 4), *got = fence_new(n * 4), sum[2][2];
    fence_fill(want, n, kind, (uint64_t)(lo * 1000 + hi));
    for (int32_t j = 0; j < (int32_t)n; j++)
        if ((j < lo || j > hi) && j % 2) want[j] = NAN;
    memcpy(got, want, n * 4);
    ref->softmax(&(kern_softmax){want, &sum[0][1], &sum[0][0], 0, 0, 1, lo, hi, scale, cap});
    v->softmax(&(kern_softmax){got, &sum[1][1], &sum[1][0], 0, 0, 1, lo, hi, scale, cap});
    /* the maximum's zero has no sign that anyone sees */
    sum[0][1] += 0.0f;
    sum[1][1] += 0.0f;
    check_same("softmax", l, n, kind, sum[0], sum[1], 2);
    check_same("softmax", l, n, kind, want, got, n);
    fence_free(want, n * 4);
    fence_free(got, n * 4);
}

/* more: of magnitudes beside which all quotients are ordinary, and others. */
static void check_merge(const kern_vec *ref, const kern_vec *v, isa_level l, size_t n, size_t n_x,
                        float more, int kind)
{
    if (left_out()) return;
    const size_t step = n + 5, size = n_x * step * 4;
    float *x = fence_new(size), *w = fence_new(n_x * 4), *sum = fence_new(n_x * 4);
    float *want = fence_new(n * 4), *got = fence_new(n * 4);
    fence_fill(x, n_x * step, kind, n * 10 + n_x);
    fence_fill(w, n_x, kind, n + 3);
    fence_fill(sum, n_x, kind, n + 4);
    kern_merge j = {want, x, w, sum, step, n_x, n, more};
    ref->merge(&j);
    j.y = got;
    v->merge(&j);
    check_same("merge", l, n, kind, want, got, n);
    fence_free(x, size);
    fence_free(w, n_x * 4);
    fence_free(sum, n_x * 4);
    fence_free(want, n * 4);
    fence_free(got, n * 4);
}

static void check_attend(const kern_vec *ref, const kern_vec *v, isa_level l, int kind)
{
    for (size_t i = 0; i < N_LENGTHS; i++)
        if (lengths[i] > 0) check_widen(ref, v, l, lengths[i], kind);
    for (int32_t n_a = 1; n_a <= 27; n_a++)
        for (int32_t n_strip = 1; n_strip <= 9; n_strip += n_a > 8 ? 3 : 1)
            check_mm(ref, v, l, n_a, n_strip, 1 + (n_a * 5 + n_strip * 3) % 19, kind);
    check_mm(ref, v, l, 48, 16, 128, kind);
    for (kv_kind c = KV_Q8; c < (kv_kind)KV_KINDS; c++) check_coded(ref, v, l, c, kind);
    for (int32_t n = 1; n <= 20; n += 3) check_softmaxes(ref, v, l, n, kind);
    for (int32_t lo = 0; lo < 256; lo += lo < 40 ? 1 : 37)
        for (int32_t hi = lo; hi < 256; hi += hi < 60 ? 3 : 41)
            check_softmax(ref, v, l, lo, hi, 0.7f, hi % 2 ? 0 : 5, kind);
    static const float more[] = {0,        3.7f,    0x1.fffffep5f, 0x1.000002p-3f,
                                 0x1p-61f, 0x1p61f, 0x1p-140f};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        for (size_t n = 1; n < 300; n += n < 80 ? 7 : 33)
            for (size_t n_x = 1; n_x < 5; n_x++) check_merge(ref, v, l, n, n_x, more[i], kind);
    /* Any scale: none at all, one that turns the order round, that underflows, that overflows. */
    static const float scales[] = {1, 0, -0.3f, 0x1p-140f, 0x1p120f, NAN};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        for (int32_t hi = 2; hi < 256; hi += 83)
            check_softmax(ref, v, l, 2, hi, scales[i], hi % 2 ? 0 : 5, kind);
}

static void check_level(const kern_vec *ref, const kern_vec *v, isa_level l)
{
    for (int kind = 0; kind < FENCE_KINDS; kind++) {
        for (size_t i = 0; i < N_LENGTHS; i++) {
            for (size_t k = 0; k < sizeof slots / sizeof *slots; k++)
                check_slot(&slots[k], ref, v, l, lengths[i], kind);
            check_encode(ref, v, l, lengths[i], kind);
        }
        check_attend(ref, v, l, kind);
    }
}

static void test_levels(void **state)
{
    (void)state;
    kern ref, k;
    static kern_vec before[ISA_COUNT];
    kern_init(&ref, ISA_REF);
    int tested = 0;
    for (isa_level l = ISA_REF + 1; l < ISA_COUNT; l++) {
        if (!isa_runs(l)) {
            printf("level %s: skipped, the machine lacks it\n", isa_name(l));
            continue;
        }
        kern_init(&k, l);
        bool same = false; /* the same functions: what a level adds may be for LINEAR alone */
        for (int i = 0; i < tested && !same; i++) same = !memcmp(&before[i], &k.vec, sizeof k.vec);
        if (!same) check_level(&ref.vec, &k.vec, l);
        printf("level %s: %s\n", isa_name(l), same ? "the kernels of one before" : "equal");
        before[tested++] = k.vec;
    }
    if (tested == 0) skip();
}

/* Where the machine lacks AVX-512: the logic of its kernels.  Elsewhere a part, so that the emulation stays whole. */
#if defined(__x86_64__)
void emulated_vec(kern_vec *v);
void emulated_attend(kern_vec *v);
void emulated_code(kern_vec *v);
void emulated_delta(kern_vec *v);
#else
static void emulated_vec(kern_vec *v)
{
    (void)v; /* test_emulated skips first: no other machine has the level */
}
static void emulated_attend(kern_vec *v)
{
    (void)v;
}
static void emulated_code(kern_vec *v)
{
    (void)v;
}
static void emulated_delta(kern_vec *v)
{
    (void)v;
}
#endif
static void test_emulated(void **state)
{
    (void)state;
    kern ref, k;
    if (!isa_runs(ISA_AVX2)) skip();
    kern_init(&ref, ISA_REF);
    kern_init(&k, ISA_REF);
    emulated_vec(&k.vec);
    emulated_attend(&k.vec);
    emulated_code(&k.vec);
    emulated_delta(&k.vec);
    const int step = isa_runs(ISA_AVX512) ? FENCE_NAN : 1; /* random values, and those with NaN */
    for (int kind = 0; kind < FENCE_KINDS; kind += step) {
        for (size_t i = 0; i < N_LENGTHS; i++)
            for (size_t n = 0; n < sizeof slots / sizeof *slots; n++)
                check_slot(&slots[n], &ref.vec, &k.vec, ISA_AVX512, lengths[i], kind);
        check_attend(&ref.vec, &k.vec, ISA_AVX512, kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels),
                                       cmocka_unit_test(test_emulated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
