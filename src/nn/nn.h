/* The vocabulary of model files: each call records one op and returns its value.  Static inline, so
   that the short names create no symbol; only model/ includes this header.

   A rule: at most one recording call in an argument list, since C does not order them. */
#ifndef NN_NN_H
#define NN_NN_H

#include "nn/rope.h"     /* IWYU pragma: export */
#include "nn/weights.h"  /* IWYU pragma: export */
#include "tensor/prog.h" /* IWYU pragma: export */

/* A forward pass being recorded. */
typedef struct fwd {
    prog *p;
    int32_t layer; /* of the ops recorded next; -1 outside the layers */
    bool taps;
} fwd;

typedef struct heads {
    int32_t n, n_kv, dim;
} heads;

typedef struct attention {
    heads h;
    float scale, softcap;    /* softcap 0: none */
    int32_t window;          /* 0: everything before */
    bool both;               /* and as much after */
    int32_t dv;              /* width of a value; 0: of a head */
    const weight *sinks;     /* a score a head, or NULL */
    const rope_spec *q_rope; /* of the queries; NULL: the keys' */
} attention;

static inline op nn_op(const fwd *f, op_kind kind, val x, val y, val z)
{
    return (op){
        .kind = kind, .layer = f->layer, .in = {x, y, z}, .out = {VAL_NONE, VAL_NONE, VAL_NONE}};
}

static inline int32_t nn_cols(const fwd *f, val x)
{
    return f->p->status == CAIRN_OK ? f->p->value[x].cols : 0;
}

static inline val nn_emit(fwd *f, op *o, int32_t cols)
{
    o->out[0] = prog_value(f->p, cols);
    prog_emit(f->p, o);
    return o->out[0];
}

static inline val embed(fwd *f, const weight *table, float by)
{
    op o = nn_op(f, OP_EMBED, VAL_NONE, VAL_NONE, VAL_NONE);
    o.w[0] = table;
    o.u.embed.scale = by;
    return nn_emit(f, &o, table->cols);
}

/* Row `first` of the table, or row first + position. */
static inline val embed_at(fwd *f, const weight *table, embed_by by, int32_t first)
{
    op o = nn_op(f, OP_EMBED, VAL_NONE, VAL_NONE, VAL_NONE);
    o.w[0] = table;
    o.u.embed.scale = 1.0f;
    o.u.embed.by = by;
    o.u.embed.first = first;
    return nn_emit(f, &o, table->cols);
}

/* Rows that whoever runs the program brings. */
static inline val input(fwd *f, int32_t cols)
{
    op o = nn_op(f, OP_INPUT, VAL_NONE, VAL_NONE, VAL_NONE);
    return nn_emit(f, &o, cols);
}

static inline val linear(fwd *f, val x, const weight *w)
{
    op o = nn_op(f, OP_LINEAR, x, VAL_NONE, VAL_NONE);
    o.w[0] = w;
    o.n_w = 1;
    return nn_emit(f, &o, w->rows);
}

/* Over each head of width `dim` (the whole row: dim = its width).  The gain may be as long as the row or
   a part of it, a whole number of heads. */
static inline val rms_norm_heads(fwd *f, val x, const weight *gain, int32_t dim, float eps)
{
    op o = nn_op(f, OP_RMS_NORM, x, VAL_NONE, VAL_NONE);
    o.w[0] = gain;
    o.u.norm.eps = eps;
    o.u.norm.group = dim;
    return nn_emit(f, &o, nn_cols(f, x));
}

static inline val rms_norm(fwd *f, val x, const weight *gain, float eps)
{
    return rms_norm_heads(f, x, gain, gain->cols, eps);
}

/* Over each head of width `dim`; gains, and the bias if not NULL, of the whole row or of a head. */
static inline val layer_norm_as(fwd *f, val x, const weight *gain, const weight *bias, int32_t dim,
                                float eps)
{
    op o = nn_op(f, OP_LAYER_NORM, x, VAL_NONE, VAL_NONE);
    o.w[0] = gain;
    o.w[1] = bias;
    o.u.norm.eps = eps;
    o.u.norm.group = dim;
    return nn_emit(f, &o, nn_cols(f, x));
}

static inline val layer_norm_heads(fwd *f, val x, const weight *gain, int32_t dim, float eps)
{
    return layer_norm_as(f, x, gain, NULL, dim, eps);
}

/* Over the whole row; bias may be NULL. */
static inline val layer_norm_bias(fwd *f, val x, const weight *gain, const weight *bias, float eps)
{
    return layer_norm_as(f, x, gain, bias, gain->cols, eps);
}

static inline val layer_norm(fwd *f, val x, const weight *gain, float eps)
{
    return layer_norm_bias(f, x, gain, NULL, eps);
}

static inline val rope(fwd *f, val x, int32_t head_dim, const rope_spec *r)
{
    op o = nn_op(f, OP_ROPE, x, VAL_NONE, VAL_NONE);
    o.u.rope.spec = prog_rope(f->p, r);
    o.u.rope.head_dim = head_dim;
    o.u.rope.n_head = nn_cols(f, x) / head_dim;
    return nn_emit(f, &o, nn_cols(f, x));
}

static inline val nn_attend(fwd *f, op o, const attention *a, int32_t from)
{
    o.u.attend.n_head = a->h.n;
    o.u.attend.n_kv_head = a->h.n_kv;
    o.u.attend.dk = a->h.dim;
    o.u.attend.dv = a->dv ? a->dv : a->h.dim;
    o.u.attend.window = a->window;
    o.u.attend.scale = a->scale;
    o.u.attend.softcap = a->softcap;
    o.u.attend.both = a->both;
    o.u.attend.cache = from;
    o.w[0] = a->sinks;
    return nn_emit(f, &o, a->h.n * o.u.attend.dv);
}

/* k and v VAL_NONE: those that layer `from` wrote. */
static inline val attend_cache(fwd *f, val q, val k, val v, const attention *a, int32_t from)
{
    return nn_attend(f, nn_op(f, OP_ATTEND, q, k, v), a, from);
}

/* A sequence that is seen on both sides runs as a whole: its layers take turns with one cache. */
static inline val attend(fwd *f, val q, val k, val v, const attention *a)
{
    return attend_cache(f, q, k, v, a, a->both ? 0 : f->layer);
}

/* Values are the first dv elements of the keys; `at`: positions that pick() chose, or VAL_NONE: all. */
static inline val attend_latent(fwd *f, val q, val k, val at, const attention *a)
{
    const op_kind kind = at == VAL_NONE ? OP_ATTEND : OP_ATTEND_AT;
    return nn_attend(f, nn_op(f, kind, q, k, at), a, f->layer);
}

typedef struct pick_spec {
    int32_t n_head, dim, k;
    float scale;
} pick_spec;

/* The k positions that an indexer's heads q and their weights w score highest; its keys k_new go
   into cache layer `into`. */
static inline val pick(fwd *f, val q, val k_new, val w, const pick_spec *s, int32_t into)
{
    op o = nn_op(f, OP_PICK, q, k_new, w);
    o.u.pick.n_head = s->n_head;
    o.u.pick.dim = s->dim;
    o.u.pick.k = s->k;
    o.u.pick.scale = s->scale;
    o.u.pick.cache = into;
    return nn_emit(f, &o, s->k);
}

static inline val glu(fwd *f, glu_act act, val gate, val up)
{
    op o = nn_op(f, OP_GLU, gate, up, VAL_NONE);
    o.u.glu.act = act;
    return nn_emit(f, &o, nn_cols(f, gate));
}

static inline val act(fwd *f, val x, glu_act how)
{
    op o = nn_op(f, OP_ACT, x, VAL_NONE, VAL_NONE);
    o.u.glu.act = how;
    return nn_emit(f, &o, nn_cols(f, x));
}

static inline val add(fwd *f, val a, val b)
{
    op o = nn_op(f, OP_ADD, a, b, VAL_NONE);
    return nn_emit(f, &o, nn_cols(f, a));
}

static inline val scale(fwd *f, val x, float by)
{
    op o = nn_op(f, OP_SCALE, x, VAL_NONE, VAL_NONE);
    o.u.map.scalar = by;
    return nn_emit(f, &o, nn_cols(f, x));
}

/* x · gain, a vector */
static inline val scale_by(fwd *f, val x, const weight *gain)
{
    op o = nn_op(f, OP_SCALE, x, VAL_NONE, VAL_NONE);
    o.u.map.scalar = 1.0f;
    o.w[0] = gain;
    return nn_emit(f, &o, nn_cols(f, x));
}

static inline val xielu(fwd *f, val x, const xielu_params *p)
{
    op o = nn_op(f, OP_XIELU, x, VAL_NONE, VAL_NONE);
    o.u.xielu = *p;
    return nn_emit(f, &o, nn_cols(f, x));
}

static inline val softcap(fwd *f, val x, float cap)
{
    op o = nn_op(f, OP_SOFTCAP, x, VAL_NONE, VAL_NONE);
    o.u.map.scalar = cap;
    return nn_emit(f, &o, nn_cols(f, x));
}

/* Of each of n parts the columns from … from + cols - 1. */
static inline val slice(fwd *f, val x, int32_t n, int32_t from, int32_t cols)
{
    op o = nn_op(f, OP_SLICE, x, VAL_NONE, VAL_NONE);
    o.u.part.n = n;
    o.u.part.from = from;
    return nn_emit(f, &o, n * cols);
}

/* Part by part, n of them, a's beside b's. */
static inline val join(fwd *f, val a, val b, int32_t n)
{
    op o = nn_op(f, OP_JOIN, a, b, VAL_NONE);
    o.u.part.n = n;
    return nn_emit(f, &o, nn_cols(f, a) + nn_cols(f, b));
}

/* Each head's part of x times the head's matrix of the stack. */
static inline val linear_heads(fwd *f, val x, const weight *w)
{
    op o = nn_op(f, OP_HEADS, x, VAL_NONE, VAL_NONE);
    o.w[0] = w;
    return nn_emit(f, &o, w->n_expert * w->rows);
}

/* x · sigmoid(g), g one number a row */
static inline val gate(fwd *f, val x, val g)
{
    op o = nn_op(f, OP_GATE, x, g, VAL_NONE);
    return nn_emit(f, &o, nn_cols(f, x));
}

/* Over time; the layer's state holds its part, (w->rows - 1) · w->cols floats, from `state` on. */
static inline val conv(fwd *f, val x, const weight *w, bool silu, int32_t state)
{
    op o = nn_op(f, OP_CONV, x, VAL_NONE, VAL_NONE);
    o.w[0] = w;
    o.u.conv.silu = silu;
    o.u.conv.state = state;
    return nn_emit(f, &o, w->cols);
}

/* qkv: queries, keys and values beside one another; a and b: a number a head of values. */
static inline val delta(fwd *f, val qkv, val a, val b, const weight *rate, const weight *bias,
                        const delta_spec *s)
{
    op o = nn_op(f, OP_DELTA, qkv, a, b);
    o.w[0] = rate;
    o.w[1] = bias;
    o.u.delta = *s;
    return nn_emit(f, &o, s->n_value * s->value_dim);
}

/* y's part j + Σ (by[j · n + i] + plus) · x's part i, of n parts */
static inline val mix(fwd *f, val x, int32_t n, val by, float plus, val y)
{
    op o = nn_op(f, OP_MIX, x, by, y);
    o.u.mix.n = n;
    o.u.mix.plus = plus;
    return nn_emit(f, &o, nn_cols(f, y));
}

/* x as long as y: x · rms(y) / rms(x), of which mean(x²) counts as `least` at least */
static inline val match(fwd *f, val x, val y, float least)
{
    op o = nn_op(f, OP_MATCH, x, y, VAL_NONE);
    o.u.match.least = least;
    return nn_emit(f, &o, nn_cols(f, x));
}

/* What of x lies above its mean + by · its standard deviation */
static inline val cutoff(fwd *f, val x, float by)
{
    op o = nn_op(f, OP_CUTOFF, x, VAL_NONE, VAL_NONE);
    o.u.map.scalar = by;
    return nn_emit(f, &o, nn_cols(f, x));
}

/* Of x | B | C; a, d and dt_bias a number a head.  The layer's state holds n_head · dim · n_state floats from
   `state` on. */
static inline val ssm(fwd *f, val xbc, val dt, const weight *a, const weight *d,
                      const weight *dt_bias, const ssm_spec *s, int32_t state)
{
    op o = nn_op(f, OP_SSM, xbc, dt, VAL_NONE);
    o.w[0] = a;
    o.w[1] = d;
    o.w[2] = dt_bias;
    o.u.ssm.s = *s;
    o.u.ssm.state = state;
    return nn_emit(f, &o, s->n_head * s->dim);
}

typedef struct routes {
    val id, weight;
} routes;

/* `bias` (of the choice) and `by` (a factor an expert) may be NULL. */
static inline routes route(fwd *f, val logits, const weight *bias, const weight *by,
                           const route_spec *s)
{
    op o = nn_op(f, OP_ROUTE, logits, VAL_NONE, VAL_NONE);
    o.w[0] = bias;
    o.w[1] = by;
    o.u.route = *s;
    const val id = prog_value(f->p, s->k);
    const val by_rank = prog_value(f->p, s->k);
    o.out[0] = id;
    o.out[1] = by_rank;
    prog_emit(f->p, &o);
    return (routes){id, by_rank};
}

/* Σ weight · down_e(act(gate_e x) · up_e x) over a row's experts */
static inline val experts(fwd *f, val x, routes to, const weight *gate, const weight *up,
                          const weight *down, const glu_spec *act)
{
    op o = nn_op(f, OP_EXPERTS, x, to.id, to.weight);
    o.w[0] = gate;
    o.w[1] = up;
    o.w[2] = down;
    o.u.experts.glu = *act;
    o.u.experts.k = nn_cols(f, to.id);
    return nn_emit(f, &o, down->rows);
}

/* Hidden state number i, if somebody asked for it. */
static inline void tap(fwd *f, val x, int32_t i)
{
    if (!f->taps) return;
    op o = nn_op(f, OP_TAP, x, VAL_NONE, VAL_NONE);
    o.u.tap.tap = i;
    prog_emit(f->p, &o);
}

#endif
