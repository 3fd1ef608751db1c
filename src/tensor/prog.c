/* Recording a program: append an op after checking that its shapes fit; print.

   The first failure sticks in p->status with its message; later calls do nothing, so that model
   files need no checks.  Rewriting belongs to fuse.c, placement to plan.c. */
#include "tensor/prog.h"

#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/num.h"

static const char *const op_names[] = {
#define OP_NAME(name) #name,
    OP_LIST(OP_NAME)
#undef OP_NAME
};

const char *op_name(op_kind k)
{
    return (unsigned)k < OP_COUNT ? op_names[k] : "?";
}

bool op_is_recurrent(op_kind k)
{
    return k == OP_CONV || k == OP_DELTA || k == OP_SSM;
}

void prog_init(prog *p, arena *a)
{
    *p = (prog){.a = a, .logits = VAL_NONE};
}

static void fail(prog *p, const char *what, const op *o, int32_t found, int32_t expected)
{
    p->status = diag_set(&p->diag, CAIRN_E_CORRUPT, "%s in layer %d: %s is %d; expected %d",
                         op_name(o->kind), (int)o->layer, what, (int)found, (int)expected);
}

/* Doubles an arena array; the old one stays in the arena, which costs less than a second lifetime. */
static void *grown(arena *a, const void *old, int32_t n, int32_t *cap, size_t item)
{
    const int32_t want = *cap ? *cap * 2 : 64;
    void *p = arena_alloc(a, (size_t)want * item);
    if (!p) return NULL;
    if (n) memcpy(p, old, (size_t)n * item);
    *cap = want;
    return p;
}

val prog_value(prog *p, int32_t cols)
{
    if (p->status != CAIRN_OK) return VAL_NONE;
    if (p->n_value == p->cap_value) {
        value *v = grown(p->a, p->value, p->n_value, &p->cap_value, sizeof *v);
        if (!v) {
            p->status = CAIRN_E_NOMEM;
            return VAL_NONE;
        }
        p->value = v;
    }
    p->value[p->n_value] = (value){.cols = cols, .rows = ROWS_ALL};
    return p->n_value++;
}

static int32_t cols(const prog *p, val v)
{
    return p->value[v].cols;
}

static bool want(prog *p, const op *o, const char *what, int32_t found, int32_t expected)
{
    if (found == expected) return true;
    fail(p, what, o, found, expected);
    return false;
}

static bool check_linear(prog *p, const op *o)
{
    for (int32_t i = 0; i < o->n_w; i++) {
        if (!want(p, o, "width of the input", cols(p, o->in[0]), o->w[i]->cols) ||
            !want(p, o, "width of the output", cols(p, o->out[i]), o->w[i]->rows))
            return false;
    }
    return o->in[1] == VAL_NONE ||
           want(p, o, "width of the residual", cols(p, o->in[1]), o->w[0]->rows);
}

static bool check_attend(prog *p, const op *o)
{
    const int32_t n = o->u.attend.n_head, kv = o->u.attend.n_kv_head;
    return (!o->w[0] || want(p, o, "number of sinks", o->w[0]->cols, n)) &&
           (o->kind == OP_ATTEND || want(p, o, "window", o->u.attend.window, 0)) &&
           want(p, o, "heads over KV heads, remainder", n % kv, 0) &&
           want(p, o, "width of the queries", cols(p, o->in[0]), n * o->u.attend.dk) &&
           (o->in[1] == VAL_NONE ||
            want(p, o, "width of the keys", cols(p, o->in[1]), kv * o->u.attend.dk)) &&
           (o->kind == OP_ATTEND_AT || o->in[2] == VAL_NONE ||
            want(p, o, "width of the values", cols(p, o->in[2]), kv * o->u.attend.dv)) &&
           want(p, o, "width of the output", cols(p, o->out[0]), n * o->u.attend.dv);
}

static bool check_pick(prog *p, const op *o)
{
    const int32_t n = o->u.pick.n_head;
    return want(p, o, "width of the queries", cols(p, o->in[0]), n * o->u.pick.dim) &&
           want(p, o, "width of the keys", cols(p, o->in[1]), o->u.pick.dim) &&
           want(p, o, "width of the weights", cols(p, o->in[2]), n) &&
           want(p, o, "width of the choice", cols(p, o->out[0]), o->u.pick.k);
}

static bool check_norm(prog *p, const op *o)
{
    const int32_t n = cols(p, o->in[0]);
    return want(p, o, "width over the group, remainder", n % o->u.norm.group, 0) &&
           want(p, o, "width over the gains, remainder", n % o->w[0]->cols, 0) &&
           want(p, o, "gains over the group, remainder", o->w[0]->cols % o->u.norm.group, 0) &&
           (!o->w[1] || want(p, o, "length of the bias", o->w[1]->cols, o->w[0]->cols)) &&
           want(p, o, "width of the output", cols(p, o->out[0]), n) &&
           (o->in[1] == VAL_NONE || want(p, o, "width of the residual", cols(p, o->in[1]), n));
}

static bool check_rope(prog *p, const op *o)
{
    const rope_spec *r = &p->rope[o->u.rope.spec];
    if (2 * r->n_freq > o->u.rope.head_dim) {
        fail(p, "rotated width", o, 2 * r->n_freq, o->u.rope.head_dim);
        return false;
    }
    return want(p, o, "width of the input", cols(p, o->in[0]),
                o->u.rope.n_head * o->u.rope.head_dim);
}

static bool check_slice(prog *p, const op *o)
{
    const int32_t n = o->u.part.n, in = cols(p, o->in[0]) / n, out = cols(p, o->out[0]) / n;
    return want(p, o, "width over the parts, remainder", cols(p, o->in[0]) % n, 0) &&
           want(p, o, "width of the output over the parts, remainder", cols(p, o->out[0]) % n, 0) &&
           want(p, o, "columns past the end", max_i32(0, o->u.part.from + out - in), 0);
}

static bool check_delta(prog *p, const op *o)
{
    const delta_spec *s = &o->u.delta;
    const int32_t values = s->n_value * s->value_dim;
    return want(p, o, "heads of values over those of keys, remainder", s->n_value % s->n_key, 0) &&
           want(p, o, "width of the input", cols(p, o->in[0]),
                2 * s->n_key * s->key_dim + values) &&
           want(p, o, "width of a", cols(p, o->in[1]), s->n_value) &&
           want(p, o, "width of b", cols(p, o->in[2]), s->n_value) &&
           want(p, o, "length of the rates", o->w[0]->cols, s->n_value) &&
           want(p, o, "length of the biases", o->w[1]->cols, s->n_value) &&
           want(p, o, "width of the output", cols(p, o->out[0]), values);
}

static bool check_mix(prog *p, const op *o)
{
    const int32_t n = o->u.mix.n, in = cols(p, o->in[0]), out = cols(p, o->out[0]);
    return want(p, o, "width over the parts, remainder", in % n, 0) &&
           want(p, o, "width of the output over a part's, remainder", out % (in / n), 0) &&
           want(p, o, "number of factors", cols(p, o->in[1]), out / (in / n) * n) &&
           want(p, o, "width of the residual", cols(p, o->in[2]), out);
}

static bool check_route(prog *p, const op *o)
{
    const route_spec *s = &o->u.route;
    const int32_t n = cols(p, o->in[0]);
    if (s->n_group < 1 || s->k < 1 || s->k > n / s->n_group * s->n_group_used) {
        fail(p, "chosen experts", o, s->k, s->n_group < 1 ? n : n / s->n_group * s->n_group_used);
        return false;
    }
    return want(p, o, "experts over groups, remainder", n % s->n_group, 0) &&
           want(p, o, "width of the choice", cols(p, o->out[0]), s->k) &&
           want(p, o, "width of the weights", cols(p, o->out[1]), s->k);
}

static bool check_experts(prog *p, const op *o)
{
    const int32_t in = cols(p, o->in[0]);
    return want(p, o, "width of the input", in, o->w[0]->cols) &&
           want(p, o, "width of the input", in, o->w[1]->cols) &&
           want(p, o, "width of gate and up", o->w[0]->rows, o->w[1]->rows) &&
           want(p, o, "width of the middle", o->w[1]->rows, o->w[2]->cols) &&
           want(p, o, "width of the output", cols(p, o->out[0]), o->w[2]->rows) &&
           want(p, o, "width of the choice", cols(p, o->in[1]), o->u.experts.k) &&
           want(p, o, "width of the weights", cols(p, o->in[2]), o->u.experts.k);
}

static bool check_ssm(prog *p, const op *o)
{
    const ssm_spec *s = &o->u.ssm.s;
    const int32_t inner = s->n_head * s->dim;
    return want(p, o, "heads over groups, remainder", s->n_head % s->n_group, 0) &&
           want(p, o, "width of x, B and C", cols(p, o->in[0]),
                inner + 2 * s->n_group * s->n_state) &&
           want(p, o, "width of the time steps", cols(p, o->in[1]), s->n_head) &&
           want(p, o, "number of decays", o->w[0]->cols, s->n_head) &&
           want(p, o, "number of skips", o->w[1]->cols, s->n_head) &&
           want(p, o, "number of biases of time steps", o->w[2]->cols, s->n_head) &&
           want(p, o, "width of the output", cols(p, o->out[0]), inner);
}

static bool check(prog *p, const op *o)
{
    switch (o->kind) {
    case OP_EMBED:
        return want(p, o, "width of the table", o->w[0]->cols, cols(p, o->out[0]));
    case OP_LINEAR:
        return check_linear(p, o);
    case OP_RMS_NORM:
    case OP_LAYER_NORM:
        return check_norm(p, o);
    case OP_ROPE:
        return check_rope(p, o);
    case OP_ATTEND:
    case OP_ATTEND_AT:
        return check_attend(p, o);
    case OP_PICK:
        return check_pick(p, o);
    case OP_GLU:
        return want(p, o, "activation, of experts only", o->u.glu.act == GLU_CLAMPED, false) &&
               want(p, o, "width of the second operand", cols(p, o->in[1]), cols(p, o->in[0]));
    case OP_ADD:
        return want(p, o, "width of the second operand", cols(p, o->in[1]), cols(p, o->in[0]));
    case OP_MATCH:
        return want(p, o, "width of the output", cols(p, o->out[0]), cols(p, o->in[0]));
    case OP_MIX:
        return check_mix(p, o);
    case OP_SCALE:
        return (!o->w[0] || want(p, o, "length of the gain", o->w[0]->cols, cols(p, o->in[0]))) &&
               want(p, o, "width of the output", cols(p, o->out[0]), cols(p, o->in[0]));
    case OP_ACT:
    case OP_CUTOFF:
    case OP_XIELU:
    case OP_SOFTCAP:
    case OP_SELECT:
        return want(p, o, "width of the output", cols(p, o->out[0]), cols(p, o->in[0]));
    case OP_SLICE:
        return check_slice(p, o);
    case OP_JOIN:
        return want(p, o, "first operand over the parts, remainder",
                    cols(p, o->in[0]) % o->u.part.n, 0) &&
               want(p, o, "second operand over the parts, remainder",
                    cols(p, o->in[1]) % o->u.part.n, 0) &&
               want(p, o, "width of the output", cols(p, o->out[0]),
                    cols(p, o->in[0]) + cols(p, o->in[1]));
    case OP_HEADS:
        return want(p, o, "width of the input", cols(p, o->in[0]),
                    o->w[0]->n_expert * o->w[0]->cols) &&
               want(p, o, "width of the output", cols(p, o->out[0]),
                    o->w[0]->n_expert * o->w[0]->rows);
    case OP_GATE:
        return want(p, o, "width of the gate", cols(p, o->in[1]), 1) &&
               want(p, o, "width of the output", cols(p, o->out[0]), cols(p, o->in[0]));
    case OP_CONV:
        return want(p, o, "width of the input", cols(p, o->in[0]), o->w[0]->cols) &&
               want(p, o, "width of the output", cols(p, o->out[0]), o->w[0]->cols);
    case OP_DELTA:
        return check_delta(p, o);
    case OP_SSM:
        return check_ssm(p, o);
    case OP_ROUTE:
        return check_route(p, o);
    case OP_EXPERTS:
        return check_experts(p, o);
    case OP_INPUT:
    case OP_TAP:
    case OP_COUNT:
        return true;
    }
    return true;
}

void prog_emit(prog *p, const op *o)
{
    if (p->status != CAIRN_OK) return;
    assert(o->kind < OP_COUNT);
    if (!check(p, o)) return;
    if (p->n_op == p->cap_op) {
        op *bigger = grown(p->a, p->op, p->n_op, &p->cap_op, sizeof *bigger);
        if (!bigger) {
            p->status = CAIRN_E_NOMEM;
            return;
        }
        p->op = bigger;
    }
    p->op[p->n_op++] = *o;
    if (o->kind == OP_TAP) p->n_tap = max_i32(p->n_tap, o->u.tap.tap + 1);
}

static bool same_freqs(const float *a, const float *b, int32_t n)
{
    if (!a || !b) return a == b;
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

int32_t prog_rope(prog *p, const rope_spec *r)
{
    if (p->status != CAIRN_OK) return 0;
    for (int32_t i = 0; i < p->n_rope; i++) {
        const rope_spec *q = &p->rope[i];
        if (q->n_freq == r->n_freq && q->interleaved == r->interleaved && q->mscale == r->mscale &&
            q->switch_len == r->switch_len && q->temper == r->temper &&
            q->temper_len == r->temper_len && same_freqs(q->inv_freq, r->inv_freq, r->n_freq) &&
            same_freqs(q->inv_freq_long, r->inv_freq_long, r->n_freq))
            return i;
    }
    if (p->n_rope == PROG_MAX_ROPE) {
        p->status =
            diag_set(&p->diag, CAIRN_E_UNSUPPORTED, "more than %d rotary tables", PROG_MAX_ROPE);
        return 0;
    }
    p->rope[p->n_rope] = *r;
    return p->n_rope++;
}

void prog_set_output(prog *p, val logits)
{
    if (p->status != CAIRN_OK) return;
    p->value[logits].output = true;
    p->logits = logits;
}

static void print_values(const prog *p, const val *v, int32_t n, buf *out)
{
    for (int32_t i = 0; i < n; i++) {
        if (v[i] == VAL_NONE) continue;
        buf_printf(out, " %%%d[%s%d]", (int)v[i], p->value[v[i]].rows == ROWS_OUT ? "out x " : "",
                   (int)p->value[v[i]].cols);
    }
}

void prog_print(const prog *p, buf *out)
{
    for (int32_t i = 0; i < p->n_op; i++) {
        const op *o = &p->op[i];
        buf_printf(out, "%4d %-8s", (int)i, op_name(o->kind));
        print_values(p, o->out, OP_MAX_OUT, out);
        buf_puts(out, " <-");
        print_values(p, o->in, OP_MAX_IN, out);
        for (int32_t k = 0; k < OP_MAX_OUT; k++)
            if (o->w[k]) buf_printf(out, " %s:%s", o->w[k]->name, dtype_name(o->w[k]->type));
        buf_byte(out, '\n');
    }
}
