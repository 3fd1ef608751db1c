/* Sequences that share blocks, in one step: each row gets the bits that it gets alone, whoever begins as it does,
   in whatever order, on any level and number of threads. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "ops/ops_rig.h"

enum { MAX_ROWS = 24, MAX_BLOCKS = 20, OUT = 3 };

/* A row at position pos, whose first n_same blocks are those of row `like`. */
typedef struct branch {
    int32_t pos, like, n_same;
} branch;

typedef struct shared_case {
    const char *name;
    int32_t n_head, n_kv, dk, dv, window;
    kv_pair codec;
    bool latent;
    int32_t late_from; /* positions before it are f16 */
    int32_t n_row;
    branch row[MAX_ROWS];
} shared_case;

#define TREE                                                                                       \
    {1100, 0, 0}, {1087, 0, 16}, {40, 0, 0}, {900, 0, 12}, {700, 3, 9}, {300, 0, 0}, {319, 5, 4},  \
    {                                                                                              \
        1020, 4, 10                                                                                \
    }
#define MANY                                                                                       \
    TREE, {800, 1, 12}, {801, 8, 12}, {255, 0, 3}, {256, 0, 4}, {900, 9, 10}, {1100, 12, 8},       \
        {600, 0, 0}, {610, 14, 8}, {620, 15, 7}, {520, 14, 8},                                     \
    {                                                                                              \
        1000, 0, 13                                                                                \
    }
#define F16                                                                                        \
    {                                                                                              \
        {KV_F16, 0},                                                                               \
        {                                                                                          \
            KV_F16, 0                                                                              \
        }                                                                                          \
    }
#define Q8                                                                                         \
    {                                                                                              \
        {KV_Q8, 32},                                                                               \
        {                                                                                          \
            KV_Q8, 32                                                                              \
        }                                                                                          \
    }
static const shared_case cases[] = {
    {"eight", 6, 2, 32, 32, 0, F16, false, 0, 8, {TREE}},
    {"many", 6, 2, 32, 48, 0, F16, false, 0, 19, {MANY}},
    {"one head", 19, 1, 16, 16, 0, F16, false, 0, 19, {MANY}},
    {"window", 4, 2, 16, 16, 300, F16, false, 0, 8, {TREE}},
    {"q8", 4, 2, 32, 32, 0, Q8, false, 0, 19, {MANY}},
    {"q8 from 512", 4, 2, 32, 32, 0, Q8, false, 512, 8, {TREE}},
    {"latent", 5, 1, 48, 32, 0, F16, true, 0, 19, {MANY}},
};

typedef struct world {
    const shared_case *c;
    rig g;
    kv_layer kv, late;
    uint8_t *memory, *table[MAX_ROWS][MAX_BLOCKS];
    uint8_t *const *group[MAX_ROWS];
    float *in[OUT];
    int32_t cols[OUT + 1];
} world;

static void lay_out(world *w)
{
    const shared_case *c = w->c;
    const kv_pair plain = F16, first = c->late_from ? plain : c->codec;
    w->kv = (kv_layer){.k = first.k,
                       .v = first.v,
                       .n_kv_head = c->n_kv,
                       .dk = c->dk,
                       .dv = c->dv,
                       .latent = c->latent};
    w->late = w->kv;
    w->late.k = c->codec.k;
    w->late.v = c->codec.v;
    const size_t rows = (size_t)c->n_kv * KV_BLOCK, room = rows * kv_pos_bytes(&w->kv);
    w->kv.v_off = c->latent ? 0 : rows * kv_row_bytes(w->kv.k, c->dk);
    w->late.v_off = c->latent ? 0 : rows * kv_row_bytes(w->late.k, c->dk);
    if (c->late_from) {
        w->kv.late = &w->late;
        w->kv.late_from = c->late_from;
    }
    const size_t size = room * MAX_ROWS * MAX_BLOCKS;
    w->memory = malloc(size);
    /* Numbers of any codec that are finite and not tiny. */
    for (size_t i = 0; i < size; i++) w->memory[i] = (uint8_t)(0x2c + rng_u64(3, 0, i) % 8);
    for (int32_t r = 0; r < c->n_row; r++) {
        w->group[r] = w->table[r];
        for (int32_t b = 0; b < MAX_BLOCKS; b++)
            w->table[r][b] = b < c->row[r].n_same ? w->table[c->row[r].like][b]
                                                  : w->memory + room * (size_t)(r * MAX_BLOCKS + b);
    }
}

/* Rows order[0 … n-1] in one step; out: [row][cols]. */
static void run_rows(world *w, const int32_t *order, int32_t n, float *out)
{
    segment seg[MAX_ROWS];
    int32_t pos[MAX_ROWS];
    for (int32_t i = 0; i < n; i++) {
        const int32_t r = order[i];
        pos[i] = w->c->row[r].pos;
        seg[i] = (segment){.row0 = i,
                           .n_rows = 1,
                           .pos0 = pos[i],
                           .known_len = pos[i] + 1,
                           .blocks = &w->group[r]};
        for (val v = 0; v < OUT; v++)
            memcpy(rig_val(&w->g, v) + i * w->cols[v], w->in[v] + r * w->cols[v],
                   (size_t)w->cols[v] * sizeof(float));
    }
    const step s = {.n_rows = n, .n_seg = n, .pos = pos, .seg = seg, .kv = &w->kv, .n_group = 1};
    backend_cpu.run(w->g.x, &s);
    for (int32_t i = 0; i < n; i++)
        memcpy(out + order[i] * w->cols[OUT], rig_val(&w->g, OUT) + i * w->cols[OUT],
               (size_t)w->cols[OUT] * sizeof(float));
}

static void open_rig(world *w, isa_level level, int32_t threads)
{
    const shared_case *c = w->c;
    value v[OUT + 1];
    const op o = {.kind = OP_ATTEND,
                  .in = {0, 1, c->latent ? VAL_NONE : 2},
                  .out = {OUT, -1, -1},
                  .u.attend = {.scale = 0.2f,
                               .window = c->window,
                               .dv = c->dv,
                               .dk = c->dk,
                               .n_kv_head = c->n_kv,
                               .n_head = c->n_head}};
    for (int32_t i = 0; i <= OUT; i++) v[i] = (value){w->cols[i], ROWS_ALL, false};
    rig_open(&w->g, isa_name(level), threads, &o, v, OUT + 1, MAX_ROWS, MAX_BLOCKS * KV_BLOCK,
             NULL);
}

static void check_case(const shared_case *c, int32_t levels)
{
    world w = {.c = c,
               .cols = {c->n_head * c->dk, c->n_kv * c->dk, c->n_kv * c->dv, c->n_head * c->dv}};
    const size_t n_out = (size_t)(c->n_row * w.cols[OUT]);
    float *want = calloc(n_out, sizeof *want), *got = calloc(n_out, sizeof *got);
    int32_t order[MAX_ROWS];
    lay_out(&w);
    for (int32_t v = 0; v < OUT; v++) {
        const int32_t n = c->n_row * w.cols[v];
        w.in[v] = malloc((size_t)n * sizeof(float));
        for (int32_t i = 0; i < n; i++) w.in[v][i] = 2 * rig_rand(40 + (uint64_t)v, (uint64_t)i);
    }
    open_rig(&w, ISA_REF, 1);
    for (int32_t r = 0; r < c->n_row; r++) run_rows(&w, &r, 1, want);
    rig_close(&w.g);
    for (int32_t l = 0; l < levels; l++)
        for (int32_t threads = 1; threads <= 3; threads += 2) {
            open_rig(&w, rig_level(l), threads);
            for (int32_t turn = 0; turn < 3; turn++) {
                for (int32_t i = 0; i < c->n_row; i++)
                    order[i] = (i * (2 * turn + 1) + 5) % c->n_row;
                memset(got, 0, n_out * sizeof *got);
                run_rows(&w, order, c->n_row, got);
                if (memcmp(want, got, n_out * sizeof *got) != 0)
                    fail_msg("%s, %s, %d threads, order %d: not the bits of each row alone",
                             c->name, isa_name(rig_level(l)), threads, turn);
            }
            rig_close(&w.g);
        }
    for (int32_t v = 0; v < OUT; v++) free(w.in[v]);
    free(w.memory);
    free(want);
    free(got);
}

static void shared_blocks(void **state)
{
    const int32_t levels = rig_levels();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!left_out()) check_case(&cases[i], levels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
