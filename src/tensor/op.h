/* The op list: what each op means.  All values are f32 [rows, cols], rows contiguous.  The number of
   rows never enters the arithmetic of a row (numerics contract, docs/numerics.md).

   INPUT     out0[r] = row r of the step's input
   EMBED     out0[r] = scale · w0[i], i being ids[r] (row 0 past the table's end); of EMBED_POS
             `first` + pos[r]; of EMBED_ROW `first`
   LINEAR    out_i[r] = w_i · in0[r] (+ bias_i), i < n_w; then, if in1 is given (n_w = 1): + in1[r]
   RMS_NORM  x = in0[r] (+ in1[r], also stored to out1 when in1 is given); by groups of `group`
             elements: out0 = (x · (1/sqrtf(mean(x²) + eps))) · gain
   LAYER_NORM  by groups of `group` elements, d = x - mean(x):
             out0 = (d · (1/sqrtf(mean(d²) + eps))) · gain (+ w1, the bias, if given); a gain of
             several groups goes on with them, as RMS_NORM's does
   ROPE      out0[r] = in0[r] with each head's first 2·n_freq elements rotated by pos[r]
   ATTEND    writes in1 (keys) and in2 (values) of all rows into the cache, then
             out0[r] = softmax(cap(scale · q·k)) · v over the window of row r; reads only the cache,
             that of layer `cache`, which without in1 and in2 an op before has written this step;
             with in1 alone the layer is latent: a value is the first part of its key;
             w0, if given, has a score a head, of a position without a value (a sink).
             Row p sees p - window + 1 … p (window 0: all before); with `both`, the same number of
             positions after it too, for which its sequence must lie in the step as a whole
   PICK      writes in1 (an indexer's keys) of all rows into the cache of layer `cache`; of row r and
             the positions j up to its own, score(j) = Σ over heads h of
             scale · in2[r][h] · max(0, in0[r] head h · key j);
             out0[r] = the `k` positions of the highest score, of equal ones the earlier, in rising
             order; where there are no more than k: all of them, then -1
   ATTEND_AT as ATTEND of a latent layer, in1 given, over the positions of in2[r] alone, a
             row of PICK's; their numbers there take the place of positions in the order of sums
   GLU       out0 = act(in0) · in1
   ACT       out0 = act(in0), that of GLU
   XIELU     x = in0 > 0: out0 = alpha_p·x² + beta·x;
             else out0 = alpha_n·(exp(min(x, eps)) - 1 - x) + beta·x
   ADD       out0 = in0 + in1
   SCALE     out0 = in0 · scalar; with w0, a vector as wide as in0: (in0 · scalar) · w0
   SOFTCAP   out0 = cap · tanh(in0 / cap)
   SELECT    out0 = the rows of in0 whose logits are wanted
   SLICE     out0[r] = of each of `n` equal parts of in0[r] the columns from `from` on, as many as
             out0 / n
   JOIN      out0[r] = the first of `n` equal parts of in0[r], that of in1[r], the second, …
   HEADS     out0[r] = of each head h: w0's matrix h times in0[r]'s part h; floats in every mode
   GATE      out0[r] = in0[r] · sigmoid(in1[r][0])
   CONV      of each column over time: out0[r] = act(bias + Σ_j w0[j] · in0[r - K + 1 + j]), w0 [K, cols];
             act: none or SiLU; rows before the step's come from the state at `state`, the last K - 1 of in0
   DELTA     in0: queries and keys of n_key heads, values of n_value heads; in1 and in2: a and b, a number
             a head of values; q and k of a head over their lengths (√(Σx² + 1e-6)), q also over √key_dim.
             Of each head of values with state S [key_dim, value_dim], row by row: S = S · exp(w0 ·
             softplus(a + w1)); d = (v - Sᵀk) · sigmoid(b); S = S + k dᵀ; out0 = Sᵀq.  Head h has the
             keys of h / (n_value / n_key), tiled: of h mod n_key
   MIX       in0[r] has `n` parts, out0[r] and in2[r] some of the same width:
             out0's part j = in2's part j + Σ over i of (in1[r][j · n + i] + plus) · in0's part i
   MATCH     out0[r] = in0[r] · √mean(in1[r]²) / √max(mean(in0[r]²), least)
   CUTOFF    c = mean(in0[r]) + scalar · √mean((in0[r] - mean(in0[r]))²): out0 = max(in0 - c, 0)
   ROUTE     in0: a logit an expert.  Scores: softmax of them, their sigmoids or themselves; ranked by
             score (+ w0, the bias of choosing, if given), descending, then by expert, ascending; of
             n_group > 1 groups only the n_group_used whose two best add up highest take part.
             out0[r] = the `k` first experts by rank (whole numbers, all different), out1[r] = their
             weights: the scores without bias (of logits: their exponentials), over their sum (added
             by rank) + eps if normalised, · scale, · w1
   EXPERTS   out0[r] = Σ over ranks i of in2[r][i] · down_e(act(gate_e in0[r]) · up_e in0[r]) with
             e = in1[r][i]; w0 … w2 are the stacks gate, up, down; one stack may be gate and up
   SSM       the scan of Mamba-2 (Dao and Gu 2024, "Transformers are SSMs"): in0 = x | B | C, x [head, dim], B
             and C [group, n_state], in1 [head]; of each head, with dt = softplus(in1 + w2) cut to
             [dt_min, dt_max]: h = exp(dt · w0) · h + dt · x ⊗ B, out0 = h · C + w1 · x; the state
             from `state` on: h of each head, [dim, n_state]
   TAP       copies in0 to the step's tap buffer number `tap`; no output

   Recurrent ops go through all rows of a segment in their order and leave the sequence's state behind
   (op_is_recurrent): their inputs are whole.  `state` counts floats from the layer's first. */
#ifndef TENSOR_OP_H
#define TENSOR_OP_H

#include "tensor/weight.h"

#define OP_LIST(X)                                                                                 \
    X(INPUT)                                                                                       \
    X(EMBED)                                                                                       \
    X(LINEAR)                                                                                      \
    X(RMS_NORM)                                                                                    \
    X(LAYER_NORM)                                                                                  \
    X(ROPE)                                                                                        \
    X(ATTEND)                                                                                      \
    X(PICK)                                                                                        \
    X(ATTEND_AT)                                                                                   \
    X(GLU)                                                                                         \
    X(ACT)                                                                                         \
    X(XIELU)                                                                                       \
    X(ADD)                                                                                         \
    X(SCALE)                                                                                       \
    X(SOFTCAP)                                                                                     \
    X(SELECT)                                                                                      \
    X(SLICE)                                                                                       \
    X(JOIN)                                                                                        \
    X(HEADS)                                                                                       \
    X(GATE)                                                                                        \
    X(CONV)                                                                                        \
    X(DELTA)                                                                                       \
    X(MIX)                                                                                         \
    X(MATCH)                                                                                       \
    X(CUTOFF)                                                                                      \
    X(SSM)                                                                                         \
    X(ROUTE)                                                                                       \
    X(EXPERTS)                                                                                     \
    X(TAP)

typedef enum op_kind {
#define OP_ENUM(name) OP_##name,
    OP_LIST(OP_ENUM)
#undef OP_ENUM
        OP_COUNT
} op_kind;

typedef int32_t val; /* index of a value of the program; VAL_NONE: absent */
enum { VAL_NONE = -1, OP_MAX_IN = 3, OP_MAX_OUT = 3 };

/* GLU_BILINEAR: gate · up as they are; GLU_SIGMOID: sigmoid(gate); GLU_RELU: of gate and up the same value
   it is relu².  GLU_CLAMPED, of experts only: g = min(gate, limit), u = up cut to ±limit;
   (u + 1) · (g · sigmoid(alpha · g)) */
typedef enum glu_act {
    GLU_SILU,
    GLU_GELU_TANH,
    GLU_GELU_ERF,
    GLU_BILINEAR,
    GLU_SIGMOID,
    GLU_RELU,
    GLU_CLAMPED
} glu_act;

/* What picks an EMBED's row of its table. */
typedef enum embed_by { EMBED_ID, EMBED_POS, EMBED_ROW } embed_by;

typedef struct glu_spec {
    glu_act act;
    float alpha, limit; /* of GLU_CLAMPED */
} glu_spec;

typedef enum route_score {
    ROUTE_SOFTMAX, /* over all experts */
    ROUTE_SIGMOID,
    ROUTE_CHOSEN /* ranked by logit, weights: softmax over the chosen */
} route_score;

/* How a router picks experts. */
typedef struct route_spec {
    route_score score;
    int32_t k;
    int32_t n_group, n_group_used; /* n_group 1: no groups */
    bool normalise;
    float eps, scale;
} route_spec;

typedef struct delta_spec {
    int32_t n_key, n_value, key_dim, value_dim;
    int32_t state;
    bool tiled;
} delta_spec;

/* Huang and Schlag 2024, "Deriving activation functions using integration". */
typedef struct xielu_params {
    float alpha_p, alpha_n, beta, eps;
} xielu_params;

/* Heads of a scan; groups of n_head / n_group neighbours share B and C. */
typedef struct ssm_spec {
    int32_t n_head, dim, n_state, n_group;
    float dt_min, dt_max;
} ssm_spec;

/* One rotary table: angle of pair i at position p is p · inv_freq[i] (f32 product), cosine and sine
   then multiplied by mscale.  Longer sequences than switch_len (if > 0) use inv_freq_long.  With
   temper, cosine and sine grow with the position: · (1 + temper · log(1 + p div temper_len)). */
typedef struct rope_spec {
    int32_t n_freq;
    const float *inv_freq, *inv_freq_long;
    int32_t switch_len;
    float mscale;
    bool interleaved; /* pairs (2i, 2i+1); else (i, i + n_freq) */
    float temper;     /* 0: none */
    int32_t temper_len;
} rope_spec;

typedef struct op {
    op_kind kind;
    int32_t layer; /* -1: outside the layers */
    int32_t n_w;
    val in[OP_MAX_IN];
    val out[OP_MAX_OUT];
    const weight *w[OP_MAX_OUT];
    union {
        struct {
            float scale;
            embed_by by;
            int32_t first;
        } embed;
        struct {
            float eps;
            int32_t group;
        } norm;
        struct {
            int32_t spec, n_head, head_dim; /* index into prog.rope */
        } rope;
        struct {
            int32_t n_head, n_kv_head, dk, dv, window; /* window 0: all */
            int32_t cache;                             /* whose keys and values */
            float scale, softcap;                      /* softcap 0: none */
            bool both;
        } attend;
        struct {
            int32_t n_head, dim, k; /* heads of the indexer, their width */
            int32_t cache;
            float scale;
        } pick;
        struct {
            glu_act act;
        } glu;
        xielu_params xielu;
        struct {
            int32_t n, from; /* SLICE and JOIN: parts */
        } part;
        route_spec route;
        struct {
            glu_spec glu;
            int32_t k;
        } experts;
        struct {
            float scalar; /* SCALE's and CUTOFF's factor, SOFTCAP's cap */
        } map;
        struct {
            int32_t state;
            bool silu;
        } conv;
        delta_spec delta;
        struct {
            int32_t n;
            float plus;
        } mix;
        struct {
            float least;
        } match;
        struct {
            int32_t state;
            ssm_spec s;
        } ssm;
        struct {
            int32_t tap;
        } tap;
    } u;
} op;

const char *op_name(op_kind k);
bool op_is_recurrent(op_kind k);

#endif
