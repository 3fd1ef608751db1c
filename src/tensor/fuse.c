/* Rewrites of a recorded program; every one leaves each row's bits as they are.

   rows      a value that only wanted rows read is computed for those alone; SELECT marks the change
             (what is left behind for later steps, keys or a recurrence's state, needs all rows)
   siblings  LINEARs of one input, recorded close together, become one op (the input is quantised
             once, one fork-join instead of three)
   residual  LINEAR, then ADD of its result, becomes LINEAR with a residual
   add_norm  ADD, then RMS_NORM of its result, becomes RMS_NORM that also stores the sum

   Each pass reads one list and writes another; values keep their numbers. */
#include "tensor/fuse.h"

#include <string.h>

#include "base/diag.h"

/* Readers of each value. */
typedef struct uses {
    int32_t *n, *last; /* [n_value] */
} uses;

static cairn_status count_uses(const prog *p, arena *a, uses *u)
{
    const size_t n = (size_t)p->n_value;
    u->n = arena_calloc(a, n + 1, sizeof *u->n);
    u->last = arena_calloc(a, n + 1, sizeof *u->last);
    if (!u->n || !u->last) return CAIRN_E_NOMEM;
    for (int32_t i = 0; i < p->n_op; i++)
        for (int k = 0; k < OP_MAX_IN; k++)
            if (p->op[i].in[k] != VAL_NONE) {
                u->n[p->op[i].in[k]]++;
                u->last[p->op[i].in[k]] = i;
            }
    return CAIRN_OK;
}

/* An empty program over the same values. */
static cairn_status begin(const prog *in, arena *a, prog *out)
{
    *out = *in;
    out->a = a;
    out->op = NULL;
    out->n_op = out->cap_op = 0;
    out->cap_value = in->n_value;
    out->value = arena_alloc(a, (size_t)in->n_value * sizeof *out->value);
    if (!out->value) return CAIRN_E_NOMEM;
    memcpy(out->value, in->value, (size_t)in->n_value * sizeof *out->value);
    return CAIRN_OK;
}

/* Operand k goes into a cache: every row of it, whoever is asked for. */
static bool is_cached(const op *o, int k)
{
    if (o->kind == OP_ATTEND) return k > 0;
    return (o->kind == OP_PICK || o->kind == OP_ATTEND_AT) && k == 1;
}

/* Walks backwards: a value is wanted whole iff an op that needs all rows of it reads it. */
static void mark_rows(const prog *p, bool *all)
{
    for (int32_t i = p->n_op - 1; i >= 0; i--) {
        const op *o = &p->op[i];
        bool whole = o->kind == OP_TAP || op_is_recurrent(o->kind);
        for (int k = 0; k < OP_MAX_OUT; k++)
            if (o->out[k] != VAL_NONE && all[o->out[k]]) whole = true;
        for (int k = 0; k < OP_MAX_IN; k++) {
            if (o->in[k] != VAL_NONE && (whole || is_cached(o, k))) all[o->in[k]] = true;
        }
    }
}

static bool has_rows_out(const prog *p, const op *o)
{
    return o->kind != OP_TAP && o->out[0] != VAL_NONE && p->value[o->out[0]].rows == ROWS_OUT;
}

/* The selected twin of v, made at its first reader. */
static val selected(prog *out, val *twin, val v, int32_t layer)
{
    if (twin[v] != VAL_NONE) return twin[v];
    const val s = prog_value(out, out->value[v].cols);
    if (s == VAL_NONE) return s;
    out->value[s].rows = ROWS_OUT;
    op sel = {.kind = OP_SELECT,
              .layer = layer,
              .in = {v, VAL_NONE, VAL_NONE},
              .out = {s, VAL_NONE, VAL_NONE}};
    prog_emit(out, &sel);
    return twin[v] = s;
}

/* An output that a TAP reads too is whole: what leaves is its wanted rows. */
static void select_output(prog *out, val *twin)
{
    const val v = out->logits;
    if (out->status != CAIRN_OK || v == VAL_NONE || out->value[v].rows == ROWS_OUT) return;
    out->value[v].output = false;
    prog_set_output(out, selected(out, twin, v, -1));
}

static cairn_status fuse_rows(const prog *in, arena *a, prog *out)
{
    bool *all = arena_calloc(a, (size_t)in->n_value, sizeof *all);
    val *twin = arena_alloc(a, (size_t)in->n_value * sizeof *twin);
    if (!all || !twin) return CAIRN_E_NOMEM;
    TRY(begin(in, a, out));
    mark_rows(in, all);
    for (val v = 0; v < in->n_value; v++) {
        twin[v] = VAL_NONE;
        out->value[v].rows = all[v] ? ROWS_ALL : ROWS_OUT;
    }
    for (int32_t i = 0; i < in->n_op; i++) {
        op o = in->op[i];
        /* The embedding looks up every row, a recurrence runs through them: the result is whole, and
           selected where read. */
        if (o.kind == OP_EMBED || op_is_recurrent(o.kind)) out->value[o.out[0]].rows = ROWS_ALL;
        if (has_rows_out(out, &o))
            for (int k = 0; k < OP_MAX_IN; k++) {
                if (o.in[k] != VAL_NONE && !is_cached(&o, k) &&
                    out->value[o.in[k]].rows == ROWS_ALL)
                    o.in[k] = selected(out, twin, o.in[k], o.layer);
            }
        prog_emit(out, &o);
    }
    select_output(out, twin);
    return out->status;
}

static bool joins(const prog *p, const op *first, const op *o)
{
    return o->kind == OP_LINEAR && o->n_w == 1 && o->in[0] == first->in[0] &&
           o->in[1] == VAL_NONE && first->in[1] == VAL_NONE &&
           p->value[o->out[0]].rows == p->value[first->out[0]].rows;
}

static cairn_status fuse_siblings(const prog *in, arena *a, prog *out)
{
    enum { REACH = 8 }; /* ops looked ahead: a norm or rope on q stands between q and k */
    bool *gone = arena_calloc(a, (size_t)in->n_op + 1, sizeof *gone);
    if (!gone) return CAIRN_E_NOMEM;
    TRY(begin(in, a, out));
    for (int32_t i = 0; i < in->n_op; i++) {
        if (gone[i]) continue;
        op o = in->op[i];
        for (int32_t j = i + 1; o.kind == OP_LINEAR && j < in->n_op && j <= i + REACH; j++) {
            if (o.n_w == OP_MAX_OUT) break;
            if (gone[j] || !joins(in, &o, &in->op[j])) continue;
            o.w[o.n_w] = in->op[j].w[0];
            o.out[o.n_w++] = in->op[j].out[0];
            gone[j] = true;
        }
        prog_emit(out, &o);
    }
    return out->status;
}

static cairn_status fuse_residual(const prog *in, arena *a, prog *out)
{
    uses u;
    TRY(count_uses(in, a, &u));
    TRY(begin(in, a, out));
    for (int32_t i = 0; i < in->n_op; i++) {
        op o = in->op[i];
        const op *next = i + 1 < in->n_op ? &in->op[i + 1] : NULL;
        if (o.kind == OP_LINEAR && o.n_w == 1 && o.in[1] == VAL_NONE && next &&
            next->kind == OP_ADD && u.n[o.out[0]] == 1 &&
            (next->in[0] == o.out[0] || next->in[1] == o.out[0])) {
            o.in[1] = next->in[0] == o.out[0] ? next->in[1] : next->in[0];
            o.out[0] = next->out[0];
            i++;
        }
        prog_emit(out, &o);
    }
    return out->status;
}

static cairn_status fuse_add_norm(const prog *in, arena *a, prog *out)
{
    TRY(begin(in, a, out));
    for (int32_t i = 0; i < in->n_op; i++) {
        op o = in->op[i];
        const op *next = i + 1 < in->n_op ? &in->op[i + 1] : NULL;
        if (o.kind == OP_ADD && next && next->kind == OP_RMS_NORM && next->in[0] == o.out[0] &&
            next->in[1] == VAL_NONE && next->u.norm.group == in->value[o.out[0]].cols) {
            const val sum = o.out[0];
            const val x = o.in[0], y = o.in[1];
            o = *next;
            o.in[0] = x;
            o.in[1] = y;
            o.out[1] = sum;
            i++;
        }
        prog_emit(out, &o);
    }
    return out->status;
}

cairn_status fuse_prog(const prog *in, uint32_t which, arena *a, prog *out)
{
    static const struct {
        uint32_t bit;
        cairn_status (*run)(const prog *in, arena *a, prog *out);
    } passes[] = {
        {FUSE_ROWS, fuse_rows},
        {FUSE_SIBLINGS, fuse_siblings},
        {FUSE_RESIDUAL, fuse_residual},
        {FUSE_ADD_NORM, fuse_add_norm},
    };
    TRY(in->status);
    prog now = *in;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        prog next;
        if (!(which & passes[i].bit)) continue;
        TRY(passes[i].run(&now, a, &next));
        now = next;
    }
    *out = now;
    return CAIRN_OK;
}
