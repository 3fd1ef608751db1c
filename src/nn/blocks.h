/* Blocks that three or more families share. */
#ifndef NN_BLOCKS_H
#define NN_BLOCKS_H

#include "nn/nn.h" /* IWYU pragma: export */

/* by · x; 1 leaves no op */
static inline val times(fwd *f, val x, float by)
{
    return by == 1.0f ? x : scale(f, x, by);
}

/* The matrices of grouped-query attention (Ainslie et al. 2023, "GQA"). */
typedef struct gqa_weights {
    const weight *wq, *wk, *wv, *wo;
    const weight *q_norm, *k_norm; /* RMS norms of each head or, as long, of the row; or NULL */
    bool rope_first;               /* the norms follow the rotation */
    bool centred;                  /* they are LayerNorms of each head, gains of the whole row */
} gqa_weights;

static inline val gqa_norm(fwd *f, val x, const weight *gain, const gqa_weights *w, int32_t dim,
                           float eps)
{
    if (!gain) return x;
    return w->centred ? layer_norm_heads(f, x, gain, dim, eps) : rms_norm(f, x, gain, eps);
}

/* o = Wo · attend(rope(norm(Wq x)), rope(norm(Wk x)), Wv x), or norm(rope(…)); r NULL: no rotation */
static inline val gqa(fwd *f, val x, const gqa_weights *w, const attention *a, const rope_spec *r,
                      float eps)
{
    val q = linear(f, x, w->wq);
    val k = linear(f, x, w->wk);
    const val v = linear(f, x, w->wv);
    if (!w->rope_first) q = gqa_norm(f, q, w->q_norm, w, a->h.dim, eps);
    if (!w->rope_first) k = gqa_norm(f, k, w->k_norm, w, a->h.dim, eps);
    if (r) q = rope(f, q, a->h.dim, a->q_rope ? a->q_rope : r);
    if (r) k = rope(f, k, a->h.dim, r);
    if (w->rope_first) q = gqa_norm(f, q, w->q_norm, w, a->h.dim, eps);
    if (w->rope_first) k = gqa_norm(f, k, w->k_norm, w, a->h.dim, eps);
    const val o = attend(f, q, k, v, a);
    return linear(f, o, w->wo);
}

/* The gated MLP (Shazeer 2020, "GLU variants improve transformer"). */
typedef struct glu_weights {
    const weight *gate, *up, *down;
} glu_weights;

/* down · (act(gate x) · up x) */
static inline val glu_mlp(fwd *f, val x, const glu_weights *w, glu_act act)
{
    const val gate = linear(f, x, w->gate);
    const val up = linear(f, x, w->up);
    const val h = glu(f, act, gate, up);
    return linear(f, h, w->down);
}

/* A mixture of experts beside one that every token meets. */
typedef struct moe_weights {
    const weight *router, *bias;    /* bias of the choice, or NULL */
    const weight *gate, *up, *down; /* stacks */
    glu_weights shared;             /* gate NULL: none */
    const weight *shared_gate;      /* its sigmoid weighs the shared expert; or NULL */
} moe_weights;

static inline val moe(fwd *f, val x, const moe_weights *w, const route_spec *s, const glu_spec *act)
{
    const val logits = linear(f, x, w->router);
    const routes to = route(f, logits, w->bias, NULL, s);
    const val y = experts(f, x, to, w->gate, w->up, w->down, act);
    if (!w->shared.gate) return y;
    val z = glu_mlp(f, x, &w->shared, act->act);
    if (w->shared_gate) {
        const val g = linear(f, x, w->shared_gate);
        z = gate(f, z, g);
    }
    return add(f, y, z);
}

/* The mixer of Mamba-2 (Dao and Gu 2024, "Transformers are SSMs", section 7). */
typedef struct mamba_weights {
    const weight *w_in, *conv, *a, *d, *dt_bias, *w_out;
    const weight *norm; /* of the gated result, by groups; NULL: none */
} mamba_weights;

typedef struct mamba_spec {
    ssm_spec s;
    bool norm_first; /* before the gate */
    float eps;
} mamba_spec;

/* Wo norm(silu(z) · scan(silu(conv(x | B | C)), dt)) */
static inline val mamba_mix(fwd *f, val z, val xbc, val dt, const mamba_weights *w,
                            const mamba_spec *m)
{
    const int32_t inner = m->s.n_head * m->s.dim, group = inner / m->s.n_group;
    xbc = conv(f, xbc, w->conv, true, inner * m->s.n_state);
    val y = ssm(f, xbc, dt, w->a, w->d, w->dt_bias, &m->s, 0);
    if (w->norm && m->norm_first) y = rms_norm_heads(f, y, w->norm, group, m->eps);
    y = glu(f, GLU_SILU, z, y);
    if (w->norm && !m->norm_first) y = rms_norm_heads(f, y, w->norm, group, m->eps);
    return linear(f, y, w->w_out);
}

static inline val mamba(fwd *f, val u, const mamba_weights *w, const mamba_spec *m)
{
    const int32_t inner = m->s.n_head * m->s.dim, n_xbc = w->conv->cols;
    const val zxbcdt = linear(f, u, w->w_in);
    const val z = slice(f, zxbcdt, 1, 0, inner);
    const val xbc = slice(f, zxbcdt, 1, inner, n_xbc);
    const val dt = slice(f, zxbcdt, 1, inner + n_xbc, m->s.n_head);
    return mamba_mix(f, z, xbc, dt, w, m);
}

#endif
