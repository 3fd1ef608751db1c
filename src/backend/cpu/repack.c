/* Weights into tiles, once, at load: backend.adopt.  Owns the way from a stored block to its place in
   a tile, the memory of tiles and the count of resident bytes; leaves their use to cpu_linear.c and
   the kernels.  Tiles take as many bytes as the file, those of the codebook and ternary types more
   (kern_linear.h says how many); the peak is one tensor more, because a tensor's source pages are let go
   as soon as it is packed. */
#include <string.h>

#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/tiles.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"

/* n words of a stored block from byte `from` on go to lines `line`, line + step, … of its group. */
typedef struct word_span {
    uint8_t from, n, line, step;
} word_span;

enum {
    MAX_SPAN = 7,
    /* Of tiles: dropping pages costs every core an interrupt; of a large matrix more, by which 4.7 GB load in 4 % less. */
    TASK_BYTES = 1 << 19,
    MOST_TASK_BYTES = 1 << 22,
    TASKS_A_THREAD = 4
};

typedef struct tile_format {
    dtype type;
    uint8_t head_lines;  /* lines of the block before its groups: d, then m, of all 32 rows */
    uint8_t group_lines; /* lines of a group */
    uint8_t n_half;      /* 16-bit values of a row: d, or d and m, or d and IQ4_XS's high bits */
    uint8_t half_from;   /* where they are in the stored block */
    uint8_t fifth_from;  /* Q5_0, Q5_1: the fifth bits, for line 0; else 0 */
    uint8_t third_line;  /* Q3_K: the 8 lines of third bits from here on; else 0 */
    word_span span[MAX_SPAN];
    void (*pack)(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
                 uint8_t *tile); /* a format that more than words' places change in; else NULL */
} tile_format;

static const tile_format formats[TILE_COUNT] = {
    [TILE_Q4_0] = {DT_Q4_0, 1, 4, 1, 0, 0, 0, {{2, 4, 0, 1}}, NULL},
    [TILE_Q4_1] = {DT_Q4_1, 2, 4, 2, 0, 0, 0, {{4, 4, 0, 1}}, NULL},
    [TILE_Q5_0] = {DT_Q5_0, 1, 5, 1, 0, 2, 0, {{6, 4, 1, 1}}, NULL},
    [TILE_Q5_1] = {DT_Q5_1, 2, 5, 2, 0, 4, 0, {{8, 4, 1, 1}}, NULL},
    [TILE_Q8_0] = {DT_Q8_0, 1, 8, 1, 0, 0, 0, {{2, 8, 0, 1}}, NULL},
    [TILE_IQ4_NL] = {DT_IQ4_NL, 1, 4, 1, 0, 0, 0, {{2, 4, 0, 1}}, NULL},
    [TILE_Q2_K] = {DT_Q2_K, 0, 21, 2, 80, 0, 0, {{0, 4, 1, 1}, {16, 16, 5, 1}}, NULL},
    [TILE_Q3_K] =
        {DT_Q3_K, 1, 27, 1, 108, 0, 3, {{96, 3, 0, 1}, {0, 8, 3, 1}, {32, 16, 11, 1}}, NULL},
    [TILE_IQ4_XS] = {DT_IQ4_XS, 0, 34, 2, 0, 0, 0, {{4, 1, 1, 1}, {8, 32, 2, 1}}, NULL},
    [TILE_Q4_K] = {DT_Q4_K, 0, 36, 2, 0, 0, 0, {{4, 3, 1, 1}, {16, 32, 4, 1}}, NULL},
    [TILE_Q5_K] =
        {DT_Q5_K, 0, 44, 2, 0, 0, 0, {{4, 3, 1, 1}, {16, 8, 4, 1}, {48, 32, 12, 1}}, NULL},
    [TILE_Q6_K] = {DT_Q6_K,
                   1,
                   52,
                   1,
                   208,
                   0,
                   0,
                   {{192, 4, 0, 1},
                    {0, 8, 4, 3},
                    {32, 8, 5, 3},
                    {128, 8, 6, 3},
                    {64, 8, 28, 3},
                    {96, 8, 29, 3},
                    {160, 8, 30, 3}},
                   NULL},
    [TILE_MXFP4] = {.type = DT_MXFP4, .pack = fp4_pack},
    [TILE_NVFP4] = {.type = DT_NVFP4, .pack = fp4_pack},
    [TILE_IQ3_S] = {.type = DT_IQ3_S, .pack = grid_pack},
    [TILE_IQ3_XXS] = {.type = DT_IQ3_XXS, .pack = grid_pack},
    [TILE_IQ2_XXS] = {.type = DT_IQ2_XXS, .pack = grid_pack},
    [TILE_IQ2_XS] = {.type = DT_IQ2_XS, .pack = grid_pack},
    [TILE_IQ2_S] = {.type = DT_IQ2_S, .pack = grid_pack},
    [TILE_IQ1_S] = {.type = DT_IQ1_S, .pack = grid_pack},
    [TILE_IQ1_M] = {.type = DT_IQ1_M, .pack = grid_pack},
    [TILE_TQ1_0] = {.type = DT_TQ1_0, .pack = grid_pack},
    [TILE_TQ2_0] = {.type = DT_TQ2_0, .pack = grid_pack},
};

bool tiles_type(dtype t, tile_type *out)
{
    for (int32_t i = 0; i < TILE_COUNT; i++) {
        if (formats[i].type != t) continue;
        *out = (tile_type)i;
        return true;
    }
    return false;
}

/* The type of tiles that are not affine. */
static bool typed(const weight *w, tile_type *out)
{
    const packed *s = w->packed;
    if (!s) return tiles_type(w->type, out);
    *out = s->kind == PACKED_NVFP4 ? TILE_NVFP4 : TILE_MXFP4;
    return packed_is_fp4(s);
}

int32_t tiles_act_group(cairn_compute compute, const weight *w)
{
    tile_type t;
    if (compute != CAIRN_COMPUTE_FAST || !w->matmul || w->klass == WEIGHT_FLOAT) return 0;
    if (typed(w, &t)) return tile_elems(t);
    return w->packed && packed_is_affine(w->packed) ? 32 : 0;
}

/* Stored: bit j of 32 is weight j's.  In a tile: byte n has w[4s+n] at bit s, w[16+4s+n] at bit 4+s.
   Each half is a 4 × 4 matrix of bits to transpose, then the nibbles of both interleave. */
static uint32_t fifth_bits(uint32_t x)
{
    uint32_t t = (x ^ x >> 3) & 0x0a0a0a0a;
    x ^= t ^ t << 3;
    t = (x ^ x >> 6) & 0x00cc00cc;
    x ^= t ^ t << 6;
    uint32_t lo = x & 0xffff, hi = x >> 16;
    lo = (lo | lo << 8) & 0x00ff00ff, hi = (hi | hi << 8) & 0x00ff00ff;
    lo = (lo | lo << 4) & 0x0f0f0f0f, hi = (hi | hi << 4) & 0x0f0f0f0f;
    return lo | hi << 4;
}

/* f16 values and fifth bits of one stored block of row r (0 … 31 of the tile). */
static void pack_head(const tile_format *f, const uint8_t *src, int32_t r, uint8_t *dst,
                      uint8_t *group)
{
    size_t i = (size_t)r % 16;
    for (size_t h = 0; h < f->n_half; h++) {
        uint8_t *at = f->head_lines ? dst + TILE_LINE * h + 2 * (size_t)r : group + 32 * h + 2 * i;
        memcpy(at, src + f->half_from + 2 * h, 2);
    }
    if (f->fifth_from) {
        uint32_t bits;
        memcpy(&bits, src + f->fifth_from, sizeof bits);
        bits = fifth_bits(bits);
        memcpy(group + 4 * i, &bits, sizeof bits);
    }
}

/* Bits 1 and 2 of each nibble change places. */
static uint32_t third_bits(uint32_t x)
{
    const uint32_t t = (x ^ x >> 1) & 0x22222222;
    return x ^ t ^ t << 1;
}

/* In the lines of n rows from row i of a group on. */
static void order_third_bits(uint8_t *line, size_t i, size_t n)
{
    for (size_t s = 0; s < 8; s++) {
        for (size_t k = 0; k < n; k++) {
            uint8_t *at = line + TILE_LINE * s + 4 * (i + k);
            uint32_t bits;
            memcpy(&bits, at, sizeof bits);
            bits = third_bits(bits);
            memcpy(at, &bits, sizeof bits);
        }
    }
}

typedef uint32_t words4 __attribute__((vector_size(16)));
#define PICK __builtin_shufflevector

/* Four words of four rows to four lines. */
static inline void transpose4(const uint8_t *src, size_t row_bytes, uint8_t *to, size_t apart)
{
    words4 r[4], a, b, c, d;
    for (size_t i = 0; i < 4; i++) memcpy(&r[i], src + i * row_bytes, sizeof r[i]);
    a = PICK(r[0], r[1], 0, 4, 1, 5), b = PICK(r[2], r[3], 0, 4, 1, 5);
    c = PICK(r[0], r[1], 2, 6, 3, 7), d = PICK(r[2], r[3], 2, 6, 3, 7);
    r[0] = PICK(a, b, 0, 1, 4, 5), r[1] = PICK(a, b, 2, 3, 6, 7);
    r[2] = PICK(c, d, 0, 1, 4, 5), r[3] = PICK(c, d, 2, 3, 6, 7);
    for (size_t i = 0; i < 4; i++) memcpy(to + i * apart, &r[i], sizeof r[i]);
}

/* One stored block of n rows r … r+n-1, n ≤ 4 and r a multiple of 4, into the tile's block at dst. */
static void pack_block(const tile_format *f, const uint8_t *src, size_t row_bytes, int32_t n,
                       int32_t r, uint8_t *dst)
{
    size_t i = (size_t)r % 16, g = (size_t)r / 16;
    uint8_t *group = dst + TILE_LINE * (f->head_lines + g * f->group_lines);
    for (int32_t k = 0; k < n; k++) pack_head(f, src + (size_t)k * row_bytes, r + k, dst, group);
    for (const word_span *s = f->span; s < f->span + MAX_SPAN && s->n; s++) {
        size_t apart = (size_t)TILE_LINE * s->step, w = 0;
        const uint8_t *from = src + s->from;
        uint8_t *to = group + (size_t)TILE_LINE * s->line + 4 * i;
        for (; n == 4 && w + 4 <= s->n; w += 4)
            transpose4(from + 4 * w, row_bytes, to + w * apart, apart);
        for (; w < s->n; w++) {
            for (size_t k = 0; k < (size_t)n; k++)
                memcpy(to + w * apart + 4 * k, from + k * row_bytes + 4 * w, 4);
        }
    }
    if (f->third_line) order_third_bits(group + TILE_LINE * f->third_line, i, (size_t)n);
}

void tiles_pack(tile_type t, const uint8_t *rows, size_t row_bytes, int32_t n_row, int32_t n_block,
                uint8_t *tile)
{
    size_t tile_block = tile_block_bytes(t), block = tile_block / TILE_ROWS;
    if (formats[t].pack) {
        formats[t].pack(t, rows, row_bytes, n_row, n_block, tile);
        return;
    }
    for (int32_t b = 0; b < n_block; b++) {
        uint8_t *dst = tile + (size_t)b * tile_block;
        if (n_row < TILE_ROWS) memset(dst, 0, tile_block);
        for (int32_t r = 0; r < n_row; r += 4)
            pack_block(&formats[t], rows + (size_t)r * row_bytes + (size_t)b * block, row_bytes,
                       min_i32(4, n_row - r), r, dst);
    }
}

typedef struct pack_job {
    const weight *w;
    const tiles *t;
    int32_t per_task; /* tiles */
} pack_job;

/* Brings bytes that lie together into the cache in their order, the one that memory is fast in: packing
   walks many rows at once. */
static void fetch(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64) (void)*(const volatile uint8_t *)(p + i);
}

static void pack_one(const weight *w, const tiles *t, int32_t i_tile)
{
    const size_t row_bytes = w->size / (size_t)w->rows;
    const int32_t row = i_tile * TILE_ROWS, n = min_i32(TILE_ROWS, w->rows - row);
    uint8_t *tile = t->data + (size_t)i_tile * t->tile_bytes;
    if (t->affine) {
        affine_pack(&t->form, w, row, n, tile);
    } else if (w->packed) {
        fp4_pack_packed(t->type, w, row, n, tile);
    } else {
        fetch(w->data + (size_t)row * row_bytes, row_bytes * (size_t)n);
        tiles_pack(t->type, w->data + (size_t)row * row_bytes, row_bytes, n, t->n_block, tile);
    }
}

static void pack_task(void *ctx, int32_t i_task, int32_t i_thread)
{
    const pack_job *j = ctx;
    const weight *w = j->w;
    const int32_t first = i_task * j->per_task, end = min_i32(first + j->per_task, j->t->n_tile);
    (void)i_thread;
    for (int32_t i = first; i < end; i++) pack_one(w, j->t, i);
    if (w->packed) return;
    const size_t row_bytes = w->size / (size_t)w->rows;
    const int32_t row = first * TILE_ROWS, row_end = min_i32(end * TILE_ROWS, w->rows);
    file_map_drop(w->data + (size_t)row * row_bytes, (size_t)(row_end - row) * row_bytes);
}

/* What lies in a tile, and how large all of them are; the largest size where that overflows. */
static void tiles_shape(const weight *w, tiles *t)
{
    t->n_tile = ceil_div(w->rows, TILE_ROWS);
    if (typed(w, &t->type)) {
        t->n_block = w->cols / tile_elems(t->type);
        t->tile_bytes = tile_bytes(t->type, t->n_block);
    } else {
        t->affine = true;
        t->form = affine_form_of(w->packed);
        t->n_block = w->cols / 32;
        t->tile_bytes = affine_block_bytes(t->form.code) * (size_t)t->n_block +
                        affine_head_bytes(t->form.head) * (size_t)(t->n_block / t->form.per_head);
    }
    if (!mul_size(t->tile_bytes, (size_t)t->n_tile, &t->size) ||
        !add_size(t->size, TILE_SLACK, &t->size))
        t->size = SIZE_MAX;
}

static cairn_status tiles_new(dev *d, const weight *w, tiles **out, cairn_diag *dg)
{
    tiles *t = mem_calloc(1, sizeof *t, MEM_MODEL);
    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "no memory for the tiles of %s", w->name);
    tiles_shape(w, t);
    t->data = slabs_take(&d->tile_memory, t->size);
    if (!t->data) {
        mem_free(t);
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for %zu bytes of %s", w->size, w->name);
    }
    *out = t;
    return CAIRN_OK;
}

/* The part of a packed tensor's bytes that is the weight's own; none where rows do not lie together. */
static void drop_rows(const weight *w, const uint8_t *p, size_t size)
{
    const packed *s = w->packed;
    if (w->rows == s->rows)
        file_map_drop(p, size);
    else if (w->packed_step == 1 && s->block_rows == 1 && s->kind != PACKED_GPTQ &&
             s->kind != PACKED_AWQ)
        file_map_drop(p + size / (size_t)s->rows * (size_t)w->packed_first,
                      size / (size_t)s->rows * (size_t)w->rows);
}

/* The pages of what went into tiles, where the tasks could not: they come back from the file if an
   embedding is looked up. */
static void drop_packed(const weight *w)
{
    const packed *s = w->packed;
    drop_rows(w, s->code, s->code_size);
    drop_rows(w, s->scale, s->scale_size);
    if (s->offset) drop_rows(w, s->offset, s->offset_size);
}

/* Tiles of a task. */
static int32_t per_task(const dev *d, const tiles *t)
{
    const size_t share = t->size / TASKS_A_THREAD / (size_t)workers_count(d->pool);
    const size_t bytes = share < TASK_BYTES ? TASK_BYTES : min_size(share, MOST_TASK_BYTES);
    return (int32_t)(1 + bytes / t->tile_bytes);
}

static cairn_status adopt_one(dev *d, weight *w, cairn_diag *dg)
{
    tiles *t = NULL;
    w->dev = NULL;
    if (!tiles_act_group(d->compute, w)) {
        d->resident += w->size;
        return CAIRN_OK;
    }
    TRY(tiles_new(d, w, &t, dg));
    pack_job job = {w, t, per_task(d, t)};
    workers_run(d->pool, ceil_div(t->n_tile, job.per_task), pack_task, &job);
    if (w->packed) drop_packed(w);
    w->dev = t;
    d->resident += t->size;
    return CAIRN_OK;
}

static void release_one(dev *d, weight *w)
{
    tiles *t = w->dev;
    if (!t) {
        d->resident -= w->size;
        return;
    }
    d->resident -= t->size;
    slabs_give(&d->tile_memory, t->data);
    mem_free(t);
    w->dev = NULL;
}

cairn_status cpu_weight_adopt(dev *d, weight *w, cairn_diag *dg)
{
    if (!w->expert) return adopt_one(d, w, dg);
    for (int32_t i = 0; i < w->n_expert; i++) {
        cairn_status st = adopt_one(d, &w->expert[i], dg);
        if (st == CAIRN_OK) continue;
        while (i > 0) release_one(d, &w->expert[--i]);
        return st;
    }
    return CAIRN_OK;
}

void cpu_weight_release(dev *d, weight *w)
{
    if (!w->expert) {
        release_one(d, w);
        return;
    }
    for (int32_t i = 0; i < w->n_expert; i++) release_one(d, &w->expert[i]);
}

static size_t held_one(cairn_compute compute, const weight *w)
{
    tiles t = {0};
    if (!tiles_act_group(compute, w)) return w->size;
    tiles_shape(w, &t);
    return t.size;
}

size_t cpu_weight_held(cairn_compute compute, const weight *w)
{
    size_t all;
    if (!w->expert) return held_one(compute, w);
    return mul_size(held_one(compute, &w->expert[0]), (size_t)w->n_expert, &all) ? all : SIZE_MAX;
}

bool cpu_weight_repacks(cairn_compute compute, const weight *w)
{
    return tiles_act_group(compute, w->expert ? &w->expert[0] : w) != 0;
}
