/* Places every value of a program in one scratch buffer.

   Ops run in list order, so a value lives from the op that writes it to the last that reads it.
   Values are placed first-fit by rising offset in the order of their definition.  An elementwise op
   may write over an operand that dies with it: its kernels read an element before they write it. */
#include "tensor/plan.h"

#include <assert.h>

#include "base/num.h"

enum { PLAN_ALIGN = 64 };

typedef struct life {
    int32_t def, last;
    size_t size;
} life;

static bool elementwise(op_kind k)
{
    switch (k) {
    case OP_ROPE:
    case OP_GLU:
    case OP_ACT:
    case OP_XIELU:
    case OP_ADD:
    case OP_SCALE:
    case OP_SOFTCAP:
        return true;
    case OP_INPUT:
    case OP_EMBED:
    case OP_LINEAR:
    case OP_RMS_NORM:
    case OP_LAYER_NORM:
    case OP_ATTEND:
    case OP_PICK:
    case OP_ATTEND_AT:
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
        return false;
    }
    return false;
}

static void find_lives(const prog *p, const plan *pl, life *l)
{
    for (int32_t v = 0; v < p->n_value; v++) {
        const size_t rows = (size_t)(p->value[v].rows == ROWS_ALL ? pl->max_rows : pl->max_out);
        l[v] =
            (life){-1, -1, round_up(rows * (size_t)p->value[v].cols * sizeof(float), PLAN_ALIGN)};
    }
    for (int32_t i = 0; i < p->n_op; i++) {
        const op *o = &p->op[i];
        for (int k = 0; k < OP_MAX_OUT; k++)
            if (o->out[k] != VAL_NONE && l[o->out[k]].def < 0)
                l[o->out[k]] = (life){i, i, l[o->out[k]].size};
        for (int k = 0; k < OP_MAX_IN; k++)
            if (o->in[k] != VAL_NONE) l[o->in[k]].last = i;
    }
}

/* Lowest offset at which v fits beside every placed value that lives at the same time. */
static size_t first_fit(const prog *p, const life *l, const size_t *offset, val v)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (val u = 0; u < p->n_value; u++) {
            if (u == v || l[u].def < 0 || offset[u] == SIZE_MAX) continue;
            if (l[u].last < l[v].def || l[u].def > l[v].last) continue;
            if (at < offset[u] + l[u].size && offset[u] < at + l[v].size) {
                at = offset[u] + l[u].size;
                moved = true;
            }
        }
    }
    return at;
}

/* The operand over which op i may write its only result, or VAL_NONE. */
static val dying_operand(const prog *p, const plan *pl, const life *l, int32_t i)
{
    const op *o = &p->op[i];
    if (!elementwise(o->kind)) return VAL_NONE;
    for (int k = 0; k < 2; k++) {
        const val v = o->in[k];
        if (v != VAL_NONE && l[v].last == i && pl->offset[v] != SIZE_MAX &&
            l[v].size == l[o->out[0]].size)
            return v;
    }
    return VAL_NONE;
}

static void place(const prog *p, plan *pl, life *l, int32_t i)
{
    const op *o = &p->op[i];
    const val over = dying_operand(p, pl, l, i);
    for (int k = 0; k < OP_MAX_OUT; k++) {
        const val v = o->out[k];
        if (v == VAL_NONE || p->value[v].output) continue;
        if (over != VAL_NONE) {
            pl->offset[v] = pl->offset[over];
            l[over].last = i - 1; /* its bytes belong to v from here on */
        } else {
            pl->offset[v] = first_fit(p, l, pl->offset, v);
        }
        const size_t end = pl->offset[v] + l[v].size;
        if (end > pl->peak) pl->peak = end;
    }
}

cairn_status plan_make(const prog *p, int32_t max_rows, int32_t max_out, arena *a, plan *out)
{
    assert(p->status == CAIRN_OK && max_rows > 0 && max_out <= max_rows);
    plan pl = {.p = p, .max_rows = max_rows, .max_out = max_out};
    life *l = arena_alloc(a, (size_t)p->n_value * sizeof *l);
    pl.offset = arena_alloc(a, (size_t)p->n_value * sizeof *pl.offset);
    if (!l || !pl.offset) return CAIRN_E_NOMEM;
    for (int32_t v = 0; v < p->n_value; v++) pl.offset[v] = SIZE_MAX;
    find_lives(p, &pl, l);
    for (int32_t i = 0; i < p->n_op; i++) place(p, &pl, l, i);
    *out = pl;
    return CAIRN_OK;
}
