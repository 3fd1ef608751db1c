/* Plays a sequence through one op, step by step, as the engine would lay out its cache. */
#include "ops/ops_seq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu_attend.h"
#include "base/half.h"
#include "base/num.h"
#include "test.h"

enum { MAX_BLOCKS = SEQ_MAX_LEN / KV_BLOCK + 1, MAX_ROWS = 2 * SEQ_MAX_LEN };

/* Group 0 has the blocks before the start, group 1 those after it; all are group 0's where there is none. */
typedef struct cache {
    uint8_t *block[2][MAX_BLOCKS];
    uint8_t *const *group[2];
    kv_layer kv, late;
} cache;

static size_t lay_out(const seq_case *c, kv_pair codec, int32_t group, kv_layer *out)
{
    const size_t n = (size_t)(c->n_kv * KV_BLOCK), keys = n * kv_row_bytes(codec.k, c->dk);
    const size_t values = c->latent ? 0 : n * kv_row_bytes(codec.v, c->dv);
    *out = (kv_layer){.group = group,
                      .k = codec.k,
                      .v = codec.v,
                      .n_kv_head = c->n_kv,
                      .dk = c->dk,
                      .dv = c->dv,
                      .k_off = 64,
                      .v_off = 64 + (c->latent ? 0 : round_up(keys, 64)),
                      .latent = c->latent};
    return 64 + round_up(keys, 64) + values;
}

static void cache_open(cache *m, const seq_case *c)
{
    size_t size[2];
    size[0] = lay_out(c, c->start ? seq_plain(KV_F16) : c->codec, 0, &m->kv);
    size[1] = lay_out(c, c->codec, 1, &m->late);
    if (c->start) m->kv.late = &m->late;
    m->kv.late_from = c->start;
    for (int32_t i = 0; i < MAX_BLOCKS; i++) {
        const int32_t g = c->start && i >= c->start / KV_BLOCK;
        m->block[g][i] = aligned_alloc(64, round_up(size[g], 64));
        m->block[1 - g][i] = NULL;
        memset(m->block[g][i], 0xff, size[g]); /* NaN in every codec */
    }
    for (int g = 0; g < 2; g++) m->group[g] = m->block[g];
}

static void cache_close(cache *m)
{
    for (int g = 0; g < 2; g++)
        for (int32_t i = 0; i < MAX_BLOCKS; i++) free(m->block[g][i]);
}

static void cache_drop(cache *m, const seq_case *c, int32_t pos)
{
    int32_t lo = c->window > 0 ? max_i32(0, pos - c->window + 1) : 0;
    for (int g = 0; g < 2; g++)
        for (int32_t i = 0; i < lo / KV_BLOCK; i++) {
            free(m->block[g][i]);
            m->block[g][i] = NULL;
        }
}

/* Rows of the operands at position pos; asked: the number of the row among those asked for, or -1. */
static void copy_rows(const seq_case *c, const rig *g, const float *const in[3], int32_t row,
                      int32_t asked, int32_t pos)
{
    for (int32_t i = 0; i < 3; i++) {
        const int32_t at = i == 0 || (i == 2 && c->third_asked) ? asked : row;
        const size_t n = (size_t)c->cols[i];
        if (c->o.in[i] != VAL_NONE && at >= 0)
            memcpy(rig_val(g, i) + (size_t)at * n, in[i] + (size_t)pos * n, n * sizeof(float));
    }
}

void seq_play(const seq_case *c, const variant *t, const float *const in[3],
              const float *const other[3], float *out)
{
    static int32_t pos[MAX_ROWS], out_row[MAX_ROWS], wanted[MAX_ROWS];
    const rowset rows = t->every ? ROWS_OUT : ROWS_ALL;
    const value v[] = {{c->cols[0], rows, false},
                       {c->cols[1], ROWS_ALL, false},
                       {max_i32(1, c->cols[2]), c->third_asked ? rows : ROWS_ALL, false},
                       {c->cols[3], rows, false}};
    rig g;
    cache mine, theirs;
    const int32_t chunk = c->both ? c->len : t->chunk;
    rig_open(&g, isa_name(t->level), t->threads, &c->o, v, 4, 2 * chunk, c->len, NULL);
    cache_open(&mine, c);
    cache_open(&theirs, c);
    const size_t no = (size_t)c->cols[3];
    for (int32_t p0 = 0; p0 < c->len; p0 += chunk) {
        const int32_t n = min_i32(chunk, c->len - p0);
        segment seg[2] = {{0}, {0}};
        step s = {.pos = pos, .out_row = out_row, .seg = seg, .kv = &mine.kv, .n_group = 2};
        for (int32_t i = t->company ? 0 : 1; i < 2; i++) {
            const bool me = i == 1;
            segment *sg = &seg[s.n_seg++];
            *sg = (segment){.row0 = s.n_rows,
                            .out0 = s.n_out,
                            .pos0 = p0,
                            .n_rows = me ? n : (n + 1) / 2,
                            .known_len = c->len,
                            .blocks = me ? mine.group : theirs.group};
            if (c->both) sg->known_len = sg->n_rows;
            for (int32_t k = 0; k < sg->n_rows; k++, s.n_rows++) {
                const bool want = !t->every || (p0 + k) % t->every == 0;
                pos[s.n_rows] = p0 + k;
                copy_rows(c, &g, me ? in : other, s.n_rows, want ? s.n_out : -1, p0 + k);
                if (!want) continue;
                wanted[s.n_out] = me ? p0 + k : -1;
                out_row[s.n_out++] = s.n_rows;
            }
            sg->n_out = s.n_out - sg->out0;
        }
        if (!c->both) cache_drop(&mine, c, p0);
        backend_cpu.run(g.x, &s);
        for (size_t k = 0; k < (size_t)s.n_out; k++)
            if (wanted[k] >= 0)
                memcpy(out + (size_t)wanted[k] * no, rig_val(&g, 3) + k * no, no * sizeof *out);
    }
    cache_close(&mine);
    cache_close(&theirs);
    rig_close(&g);
}

static void same_bits(const seq_case *c, const variant *t, const float *want, const float *got)
{
    const int32_t no = c->cols[3];
    for (int32_t p = 0; p < c->len; p++) {
        if (t->every && p % t->every) continue;
        for (int32_t i = 0; i < no; i++)
            if (!rig_same(want[p * no + i], got[p * no + i]))
                fail_msg("%s, %s at %s: position %d element %d: %a, not %a", c->name, t->name,
                         isa_name(t->level), p, i, (double)got[p * no + i],
                         (double)want[p * no + i]);
    }
}

void seq_compare(const seq_case *c, const float *const in[3], const float *const other[3],
                 const float *want, int32_t levels)
{
    const size_t n = (size_t)(c->len * c->cols[3]);
    float *got = malloc(n * sizeof *got);
    for (int32_t i = 0; i < levels; i++) {
        const isa_level l = rig_level(i);
        if (rig_level_adds_none(l)) continue;
        const variant v[] = {
            {"whole", l, 2, c->len, false, 0},       {"decode", l, 1, 1, false, 0},
            {"decode, 8 threads", l, 8, 1, true, 0}, {"chunks of 7", l, 3, 7, true, 0},
            {"chunks of 64", l, 2, 64, false, 3},    {"chunks of 100", l, 4, 100, true, 5},
            {"few rows", l, 2, 3, false, 2}};
        /* The plain kernels are slow, and ran as a whole already. */
        const size_t from = l == ISA_REF ? 1 : 0, to = l == ISA_REF ? 2 : sizeof v / sizeof *v;
        for (size_t k = from; k < to; k++) {
            if (left_out()) continue;
            memset(got, 0xff, n * sizeof *got);
            seq_play(c, &v[k], in, other, got);
            same_bits(c, &v[k], want, got);
        }
    }
    free(got);
}

float *seq_fill(uint64_t seed, size_t n, float amp)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = amp * rig_rand(seed, i);
    return x;
}

kv_pair seq_plain(kv_kind k)
{
    return (kv_pair){{k, 0}, {k, 0}};
}

/* The value of a code, as docs/numerics.md states it. */
static float coded(kv_kind k, int code, float a, float b)
{
    static const float c2[] = {0.45278f, 1.51042f}, c3[] = {0.24509f, 0.75601f, 1.34391f, 2.15195f},
                       c4[] = {0.1284f,  0.38805f, 0.65676f, 0.94234f,
                               1.25623f, 1.61805f, 2.06902f, 2.73259f};
    const float *const c = k == KV_TURBO_V4 ? c4 : k == KV_TURBO_V3 ? c3 : c2;
    const int half = 1 << (kv_bits(k) - 1);
    if (k <= KV_Q4) return fmaf((float)code, a, b);
    if (k == KV_TURBO_K8) return ((float)(code - 127) + b) * a;
    if (k == KV_TURBO_K4) return ((float)code + b) * a;
    return (code >= half ? c[code - half] : -c[half - 1 - code]) * a;
}

static float plain(kv_kind k, float x)
{
    if (k == KV_F16) return f16_to_f32(f16_from_f32_sat(x));
    return k == KV_BF16 ? bf16_to_f32(bf16_from_f32(x)) : x;
}

void seq_stored(kv_codec c, const float *x, int32_t n, float *out)
{
    static kern ref;
    static bool ready; /* what the machine has is asked once: a virtual one takes 100 us to say */
    uint8_t code[KV_GROUP_MAX];
    uint16_t num[2] = {0};
    if (!ready) kern_init(&ref, ISA_REF);
    ready = true;
    memcpy(out, x, (size_t)n * sizeof *out);
    if (kv_is_rotated(c.kind)) kv_turn(out, (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        if (kv_is_plain(c.kind)) {
            out[i] = plain(c.kind, out[i]);
            continue;
        }
        const int32_t at = i % c.group;
        if (at == 0) ref.vec.code[c.kind](code, num, out + i, c.group);
        out[i] = coded(c.kind, code[at], f16_to_f32(num[0]), f16_to_f32(num[1]));
    }
}
