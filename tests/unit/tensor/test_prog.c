/* Programs: shapes are checked, plans overlap nothing that lives, rewrites keep what is computed.

   A random program is run by a plain interpreter over integers, at the places a plan gives its values:
   an overlap of two living values would show.  Each rewrite must give the same logits. */
#include "test.h"

#include "base/rng.h"
#include "tensor/fuse.h"
#include "tensor/plan.h"

enum { ROWS = 5, OUT = 2, COLS = 8, N_LAYER = 3 };
static const int32_t out_row[OUT] = {1, 4};

static weight wide = {.name = "w", .rows = COLS, .cols = COLS};
static weight gain = {.name = "g", .rows = 1, .cols = COLS};

static op make_op(op_kind k, val a, val b, val c, int32_t layer)
{
    return (op){.kind = k,
                .layer = layer,
                .in = {a, b, c},
                .out = {VAL_NONE, VAL_NONE, VAL_NONE},
                .u.norm = {0, COLS}};
}

static val put(prog *p, op o)
{
    o.out[0] = prog_value(p, COLS);
    prog_emit(p, &o);
    return o.out[0];
}

static val put_linear(prog *p, val x, int32_t layer)
{
    op o = make_op(OP_LINEAR, x, VAL_NONE, VAL_NONE, layer);
    o.w[0] = &wide;
    o.n_w = 1;
    return put(p, o);
}

static val put_norm(prog *p, val x, int32_t layer)
{
    op o = make_op(OP_RMS_NORM, x, VAL_NONE, VAL_NONE, layer);
    o.w[0] = &gain;
    return put(p, o);
}

/* A decoder of one head. */
static void record(prog *p, arena *a)
{
    prog_init(p, a);
    op e = make_op(OP_EMBED, VAL_NONE, VAL_NONE, VAL_NONE, -1);
    e.w[0] = &wide;
    val x = put(p, e);
    for (int32_t l = 0; l < N_LAYER; l++) {
        val h = put_norm(p, x, l);
        const val q = put_linear(p, h, l), k = put_linear(p, h, l), v = put_linear(p, h, l);
        op at = make_op(OP_ATTEND, q, k, v, l);
        at.u.attend.n_head = at.u.attend.n_kv_head = 1;
        at.u.attend.dk = at.u.attend.dv = COLS;
        h = put_linear(p, put(p, at), l);
        x = put(p, make_op(OP_ADD, x, h, VAL_NONE, l));
        h = put_norm(p, x, l);
        const val g = put_linear(p, h, l), u = put_linear(p, h, l);
        h = put_linear(p, put(p, make_op(OP_GLU, g, u, VAL_NONE, l)), l);
        h = put_norm(p, h, l); /* after the block, as Gemma */
        x = put(p, make_op(OP_ADD, x, h, VAL_NONE, l));
    }
    prog_set_output(p, put_linear(p, put_norm(p, x, -1), -1));
    assert_ok(p->status);
}

/* An interpreter over integers: every op mixes its operands row by row. */

typedef struct machine {
    const plan *pl;
    uint64_t mem[64 * 1024], logits[ROWS * COLS];
    uint64_t past; /* what attention read of keys and values */
} machine;

static uint64_t *at(machine *m, val v, int32_t row)
{
    const size_t off = m->pl->offset[v];
    uint64_t *base = off == SIZE_MAX ? m->logits : m->mem + off / sizeof(float);
    return base + (size_t)row * COLS;
}

static int32_t rows_of(const prog *p, val v)
{
    return p->value[v].rows == ROWS_ALL ? ROWS : OUT;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    return rng_u64(a, b, 7);
}

static void run_row(machine *m, const op *o, int32_t r, const uint64_t *kv)
{
    uint64_t x[COLS], y[COLS];
    memcpy(x, at(m, o->in[0], r), sizeof x);
    if (o->in[1] != VAL_NONE && o->kind != OP_ATTEND) memcpy(y, at(m, o->in[1], r), sizeof y);
    for (int32_t c = 0; c < COLS; c++) {
        switch (o->kind) {
        case OP_LINEAR: {
            for (int32_t k = 0; k < o->n_w; k++)
                at(m, o->out[k], r)[c] = mix(x[c], x[(c + 1) % COLS]) + (o->in[1] >= 0 ? y[c] : 0);
            break;
        }
        case OP_RMS_NORM: {
            const uint64_t s = x[c] + (o->in[1] >= 0 ? y[c] : 0);
            at(m, o->out[0], r)[c] = mix(s, 3);
            if (o->in[1] >= 0) at(m, o->out[1], r)[c] = s;
            break;
        }
        case OP_ATTEND:
            at(m, o->out[0], r)[c] = mix(x[c], kv[c]);
            break;
        case OP_GLU:
            at(m, o->out[0], r)[c] = mix(x[c], y[c]);
            break;
        case OP_ADD:
            at(m, o->out[0], r)[c] = x[c] + y[c];
            break;
        case OP_INPUT:
        case OP_EMBED:
        case OP_PICK:
        case OP_ATTEND_AT:
        case OP_LAYER_NORM:
        case OP_ROPE:
        case OP_ACT:
        case OP_XIELU:
        case OP_SCALE:
        case OP_SOFTCAP:
        case OP_SELECT:
        case OP_SLICE:
        case OP_JOIN:
        case OP_HEADS:
        case OP_GATE:
        case OP_CONV:
        case OP_DELTA:
        case OP_MIX:
        case OP_MATCH:
        case OP_CUTOFF:
        case OP_SSM:
        case OP_ROUTE:
        case OP_EXPERTS:
        case OP_TAP:
        case OP_COUNT:
            fail();
            break;
        }
    }
}

static void run_op(machine *m, const op *o)
{
    const prog *p = m->pl->p;
    uint64_t kv[COLS] = {0};
    if (o->kind == OP_EMBED) {
        for (int32_t i = 0; i < ROWS * COLS; i++) at(m, o->out[0], 0)[i] = mix((uint64_t)i, 1);
        return;
    }
    if (o->kind == OP_SELECT) {
        for (int32_t r = 0; r < OUT; r++)
            memcpy(at(m, o->out[0], r), at(m, o->in[0], out_row[r]), COLS * sizeof(uint64_t));
        return;
    }
    if (o->kind == OP_ATTEND)
        for (int32_t r = 0; r < ROWS; r++)
            for (int32_t c = 0; c < COLS; c++)
                kv[c] = mix(kv[c], at(m, o->in[1], r)[c] ^ at(m, o->in[2], r)[c]);
    for (int32_t r = 0; r < rows_of(p, o->in[0]); r++) run_row(m, o, r, kv);
}

/* Logits of the wanted rows. */
static void interpret(const prog *p, arena *a, uint64_t out[OUT * COLS])
{
    static machine m;
    static plan pl;
    memset(&m, 0xa5, sizeof m);
    assert_ok(plan_make(p, ROWS, OUT, a, &pl));
    assert_true(pl.peak / sizeof(float) <= sizeof m.mem / sizeof m.mem[0]);
    m.pl = &pl;
    for (int32_t i = 0; i < p->n_op; i++) run_op(&m, &p->op[i]);
    const bool all = p->value[p->logits].rows == ROWS_ALL;
    for (int32_t r = 0; r < OUT; r++)
        memcpy(out + r * COLS, m.logits + (size_t)(all ? out_row[r] : r) * COLS,
               COLS * sizeof *out);
}

static void rewrites_keep_the_result(void **state)
{
    (void)state;
    arena a;
    prog p;
    uint64_t want[OUT * COLS], got[OUT * COLS];
    arena_init(&a, MEM_MODEL);
    record(&p, &a);
    interpret(&p, &a, want);
    for (uint32_t which = 1; which <= FUSE_ALL; which++) {
        prog f;
        assert_ok(fuse_prog(&p, which, &a, &f));
        interpret(&f, &a, got);
        assert_memory_equal(got, want, sizeof want);
    }
    arena_deinit(&a);
}

/* What goes into a cache stays whole where one row is wanted; what chooses and asks does not. */
static void cached_operands_stay_whole(void **state)
{
    static weight one = {.name = "one", .rows = 1, .cols = COLS};
    (void)state;
    arena a;
    prog p, f;
    arena_init(&a, MEM_MODEL);
    prog_init(&p, &a);
    op e = make_op(OP_EMBED, VAL_NONE, VAL_NONE, VAL_NONE, -1);
    e.w[0] = &wide;
    const val x = put(&p, e), q = put_linear(&p, x, 0), k = put_linear(&p, x, 0);
    op w = make_op(OP_LINEAR, x, VAL_NONE, VAL_NONE, 0);
    w.w[0] = &one;
    w.n_w = 1;
    w.out[0] = prog_value(&p, 1);
    prog_emit(&p, &w);
    op pick = make_op(OP_PICK, q, k, w.out[0], 0);
    pick.u.pick.n_head = 1;
    pick.u.pick.dim = pick.u.pick.k = COLS;
    const val chosen = put(&p, pick), q2 = put_linear(&p, x, 0), k2 = put_linear(&p, x, 0);
    op at = make_op(OP_ATTEND_AT, q2, k2, chosen, 0);
    memset(&at.u, 0, sizeof at.u);
    at.u.attend.n_head = at.u.attend.n_kv_head = 1;
    at.u.attend.dk = at.u.attend.dv = COLS;
    prog_set_output(&p, put(&p, at));
    assert_ok(p.status);
    assert_ok(fuse_prog(&p, FUSE_ROWS, &a, &f));
    assert_int_equal(f.value[k].rows, ROWS_ALL);
    assert_int_equal(f.value[k2].rows, ROWS_ALL);
    const val asked[] = {q, q2, w.out[0], chosen};
    for (size_t i = 0; i < 4; i++) assert_int_equal(f.value[asked[i]].rows, ROWS_OUT);
    arena_deinit(&a);
}

static void rewrites_do_something(void **state)
{
    (void)state;
    arena a;
    prog p, f;
    plan before, after;
    arena_init(&a, MEM_MODEL);
    record(&p, &a);
    assert_ok(fuse_prog(&p, FUSE_SIBLINGS, &a, &f));
    assert_int_equal(f.n_op, p.n_op - 3 * N_LAYER); /* q·k·v and gate·up */
    assert_ok(fuse_prog(&p, FUSE_RESIDUAL, &a, &f));
    assert_int_equal(f.n_op, p.n_op - N_LAYER);
    assert_ok(fuse_prog(&p, FUSE_ADD_NORM, &a, &f));
    assert_int_equal(f.n_op, p.n_op - 2 * N_LAYER);
    assert_ok(fuse_prog(&p, FUSE_ROWS, &a, &f));
    assert_int_equal(f.value[f.logits].rows, ROWS_OUT);
    assert_ok(plan_make(&p, 64, 1, &a, &before));
    assert_ok(plan_make(&f, 64, 1, &a, &after));
    assert_true(after.peak <= before.peak);
    arena_deinit(&a);
}

/* A recurrence as the last thing: its state needs every row, what comes after it only the wanted ones. */
static void recurrences_see_every_row(void **state)
{
    (void)state;
    arena a;
    prog p, f;
    arena_init(&a, MEM_MODEL);
    prog_init(&p, &a);
    op e = make_op(OP_EMBED, VAL_NONE, VAL_NONE, VAL_NONE, -1);
    e.w[0] = &wide;
    const val in = put_linear(&p, put(&p, e), 0);
    op conv = make_op(OP_CONV, in, VAL_NONE, VAL_NONE, 0);
    conv.w[0] = &wide;
    const val mid = put(&p, conv);
    const val out = put_linear(&p, mid, 0);
    prog_set_output(&p, put_linear(&p, out, -1));
    assert_ok(fuse_prog(&p, FUSE_ROWS, &a, &f));
    assert_int_equal(f.value[in].rows, ROWS_ALL);
    assert_int_equal(f.value[mid].rows, ROWS_ALL);
    assert_int_equal(f.value[out].rows, ROWS_OUT);
    assert_int_equal(f.n_op, p.n_op + 1); /* one SELECT, behind it */
    arena_deinit(&a);
}

/* A tap wants every row of the output; what leaves the program is still the wanted ones. */
static void a_tapped_output_is_selected(void **state)
{
    (void)state;
    arena a;
    prog p, f;
    arena_init(&a, MEM_MODEL);
    record(&p, &a);
    const op t = make_op(OP_TAP, p.logits, VAL_NONE, VAL_NONE, -1);
    prog_emit(&p, &t);
    const val whole = p.logits;
    assert_ok(fuse_prog(&p, FUSE_ALL, &a, &f));
    assert_int_equal(f.value[f.logits].rows, ROWS_OUT);
    assert_true(f.logits != whole && f.value[f.logits].output && !f.value[whole].output);
    assert_int_equal(f.op[f.n_op - 1].kind, OP_SELECT);
    arena_deinit(&a);
}

static void wrong_shapes_are_named(void **state)
{
    (void)state;
    arena a;
    prog p;
    arena_init(&a, MEM_MODEL);
    prog_init(&p, &a);
    const val x = prog_value(&p, COLS + 1);
    (void)put_linear(&p, x, 2);
    assert_int_equal(p.status, CAIRN_E_CORRUPT);
    assert_says(&p.diag, "LINEAR in layer 2: width of the input is 9; expected 8");
    assert_int_equal(p.n_op, 0);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites_keep_the_result),   cmocka_unit_test(rewrites_do_something),
        cmocka_unit_test(recurrences_see_every_row),  cmocka_unit_test(a_tapped_output_is_selected),
        cmocka_unit_test(cached_operands_stay_whole), cmocka_unit_test(wrong_shapes_are_named),
    };
    return cmocka_run_group_tests_name("prog", tests, NULL, NULL);
}
