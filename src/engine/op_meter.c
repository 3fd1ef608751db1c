/* Owns the counts of bytes and operations that an op's meaning (tensor/op.h) asks for.  They are those
   of an ideal kernel: every weight and every visible key read once a step, no operation twice.  Leaves
   the clock to the backend and the limits of the machine to whoever divides by them. */
#include "engine/op_meter.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/num.h"

typedef struct op_sum {
    int64_t n_runs;
    double bytes, int_ops, float_ops;
} op_sum;

struct op_meter {
    const model *m;
    stepper *s;
    const prog *p;
    uint64_t *ns;                      /* [n_op] */
    op_sum *sum;                       /* [n_op] */
    char (*label)[CAIRN_MAX_OP_LABEL]; /* [n_op] */
};

/* "blk.7.ffn_gate.weight" and "model.layers.7.mlp.gate_proj.weight": what follows the layer's number,
   without the last part.  Names without a number stay whole but for that part. */
static void put_name(buf *b, const char *name)
{
    const char *from = name, *end = name + strlen(name);
    static const char tail[] = ".weight";
    const size_t n_tail = sizeof tail - 1;
    for (const char *c = name; *c; c++) {
        if (*c != '.' || !isdigit((unsigned char)c[1])) continue;
        const char *e = c + 1 + strspn(c + 1, "0123456789");
        if (*e == '.') from = e + 1;
    }
    if ((size_t)(end - from) > n_tail && strcmp(end - n_tail, tail) == 0) end -= n_tail;
    buf_printf(b, "%.*s", (int)(end - from), from);
}

/* The op, its weights, and the type of the first. */
static void make_label(const op *o, buf *b, char *out)
{
    buf_clear(b);
    buf_puts(b, op_name(o->kind));
    for (int32_t i = 0; i < OP_MAX_OUT; i++) {
        if (!o->w[i]) continue;
        buf_byte(b, i ? '+' : ' ');
        put_name(b, o->w[i]->name);
    }
    if (o->w[0] && o->w[0]->packed)
        buf_printf(b, " %s", o->w[0]->packed->name);
    else if (o->w[0])
        buf_printf(b, " %s", dtype_name(o->w[0]->type));
    const size_t n = min_size(b->len, CAIRN_MAX_OP_LABEL - 1);
    memcpy(out, b->ptr, n);
    out[n] = '\0';
}

cairn_status op_meter_new(const model *m, stepper *s, op_meter **out, cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    buf b;
    buf_init(&b, MEM_ENGINE);
    op_meter *t = mem_calloc(1, sizeof *t, MEM_ENGINE);
    if (!t) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a meter of ops");
    *t = (op_meter){.m = m, .s = s, .p = stepper_prog(s)};
    const size_t n = (size_t)t->p->n_op;
    t->ns = mem_calloc(n, sizeof *t->ns, MEM_ENGINE);
    t->sum = mem_calloc(n, sizeof *t->sum, MEM_ENGINE);
    t->label = mem_calloc(n, sizeof *t->label, MEM_ENGINE);
    if (!t->ns || !t->sum || !t->label) {
        st = diag_set(dg, CAIRN_E_NOMEM, "no memory for a meter of %zu ops", n);
        goto out;
    }
    for (size_t i = 0; i < n; i++) make_label(&t->p->op[i], &b, t->label[i]);
    TRY_GOTO(buf_status(&b), out);
    stepper_time_ops(s, t->ns);
    *out = t;
    t = NULL;
out:
    buf_deinit(&b);
    op_meter_free(t);
    return st;
}

void op_meter_free(op_meter *t)
{
    if (!t) return;
    stepper_time_ops(t->s, NULL);
    mem_free(t->label);
    mem_free(t->sum);
    mem_free(t->ns);
    mem_free(t);
}

void op_meter_reset(op_meter *t)
{
    memset(t->ns, 0, (size_t)t->p->n_op * sizeof *t->ns);
    memset(t->sum, 0, (size_t)t->p->n_op * sizeof *t->sum);
}

static void count_product(const op_meter *t, const weight *w, double bytes, double n, op_sum *c)
{
    const double ops = 2.0 * w->rows * w->cols * n;
    c->bytes += bytes;
    *(t->m->be->integer(t->m->dev, w) ? &c->int_ops : &c->float_ops) += ops;
}

/* Rows that an op computes in this step. */
static int32_t rows_of(const op_meter *t, const op *o, const step *s)
{
    return t->p->value[o->out[0]].rows == ROWS_ALL ? s->n_rows : s->n_out;
}

static void count_linear(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const int32_t n = rows_of(t, o, s);
    for (int32_t i = 0; i < OP_MAX_OUT; i++)
        if (o->w[i] && n > 0) count_product(t, o->w[i], (double)o->w[i]->size, n, c);
}

/* A matrix a head. */
static void count_heads(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const weight *w = o->w[0];
    const int32_t n = rows_of(t, o, s);
    if (n > 0) count_product(t, w, (double)w->size, (double)n * (w->expert ? w->n_expert : 1), c);
}

/* Rows that choose different experts are the worst case, and near to what is seen. */
static void count_experts(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const double chosen = (double)s->n_rows * o->u.experts.k;
    for (int32_t i = 0; i < OP_MAX_OUT; i++) {
        const weight *w = o->w[i];
        if (!w || !w->expert) continue;
        const double n = chosen < w->n_expert ? chosen : w->n_expert;
        count_product(t, &w->expert[0], n * (double)w->size / w->n_expert, chosen, c);
    }
}

/* Positions that position p sees, itself included. */
static double visible(int32_t p, int32_t window)
{
    return window > 0 && window < p + 1 ? window : p + 1;
}

/* Of all heads of a layer, the mean of positions [first, end). */
static double position_bytes(const kv_layer *kv, double first, double end)
{
    const double bytes = (double)kv_pos_bytes(kv),
                 from = kv->late_from > first ? kv->late_from : first;
    if (!kv->late || from >= end) return kv->n_kv_head * bytes;
    const double late = (end - from) / (end - first);
    return kv->n_kv_head * (bytes * (1 - late) + (double)kv_pos_bytes(kv->late) * late);
}

static void count_attend(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const kv_layer *kv = &s->kv[o->u.attend.cache];
    const bool picked = o->kind == OP_ATTEND_AT;
    const int32_t window = picked ? t->p->value[o->in[2]].cols : o->u.attend.window;
    for (int32_t i = 0; i < s->n_seg; i++) {
        const segment *g = &s->seg[i];
        double met = 0; /* by all rows; a row's picks are its own */
        for (int32_t r = 0; r < g->n_rows; r++) met += visible(g->pos0 + r, window);
        const int32_t first = window > 0 && g->pos0 >= window ? g->pos0 + 1 - window : 0;
        const double whole = g->pos0 + g->n_rows - (picked ? 0 : first);
        const double n = picked && met < whole ? met : whole, end = g->pos0 + g->n_rows;
        c->bytes += n * position_bytes(kv, end - whole, end);
        c->float_ops += 2.0 * o->u.attend.n_head * (o->u.attend.dk + o->u.attend.dv) * met;
    }
}

static void count_pick(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const kv_layer *kv = &s->kv[o->u.pick.cache];
    (void)t;
    for (int32_t i = 0; i < s->n_seg; i++) {
        const segment *g = &s->seg[i];
        const double end = g->pos0 + g->n_rows;
        c->bytes += end * position_bytes(kv, 0, end);
        for (int32_t r = 0; r < g->n_rows; r++)
            c->float_ops += 2.0 * o->u.pick.n_head * o->u.pick.dim * (g->pos0 + r + 1);
    }
}

/* A state is read and written once a segment; an element takes so many operations a row: of DELTA a decay, and
   multiply-adds for m, S and y; of SSM the same but m. */
static void count_state(double elements, double ops, const step *s, op_sum *c)
{
    c->bytes += 2.0 * sizeof(float) * elements * s->n_seg;
    c->float_ops += ops * elements * s->n_rows;
}

static void count_delta(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const delta_spec *d = &o->u.delta;
    (void)t;
    count_state((double)d->n_value * d->key_dim * d->value_dim, 7, s, c);
}

static void count_ssm(const op_meter *t, const op *o, const step *s, op_sum *c)
{
    const ssm_spec *d = &o->u.ssm.s;
    (void)t;
    count_state((double)d->n_head * d->dim * d->n_state, 5, s, c);
}

/* The others are bound by neither limit. */
typedef void (*count_fn)(const op_meter *t, const op *o, const step *s, op_sum *c);
static const count_fn count[OP_COUNT] = {
    [OP_LINEAR] = count_linear, [OP_HEADS] = count_heads,      [OP_EXPERTS] = count_experts,
    [OP_ATTEND] = count_attend, [OP_ATTEND_AT] = count_attend, [OP_PICK] = count_pick,
    [OP_DELTA] = count_delta,   [OP_SSM] = count_ssm};

void op_meter_step(op_meter *t)
{
    const step *s = stepper_step(t->s);
    for (int32_t i = 0; i < t->p->n_op; i++) {
        const op *o = &t->p->op[i];
        t->sum[i].n_runs++;
        if (count[o->kind]) count[o->kind](t, o, s, &t->sum[i]);
    }
}

/* An op before it has the same label. */
static bool seen(const op_meter *t, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (strcmp(t->label[k], t->label[i]) == 0) return true;
    return false;
}

void op_meter_report(const op_meter *t, bool decode, double seconds, cairn_op_cost_fn fn, void *ctx)
{
    double rest = seconds;
    for (int32_t i = 0; i < t->p->n_op; i++) {
        if (t->sum[i].n_runs == 0 || seen(t, i)) continue;
        cairn_op_cost c = {.label = t->label[i], .decode = decode};
        for (int32_t k = i; k < t->p->n_op; k++) {
            if (strcmp(t->label[k], c.label) != 0) continue;
            c.n_runs += t->sum[k].n_runs;
            c.seconds += (double)t->ns[k] / 1e9;
            c.bytes += t->sum[k].bytes;
            c.int_ops += t->sum[k].int_ops;
            c.float_ops += t->sum[k].float_ops;
        }
        rest -= c.seconds;
        fn(ctx, &c);
    }
    const cairn_op_cost c = {.label = "(between ops)", .decode = decode, .seconds = rest};
    fn(ctx, &c);
}
