/* Which ops run together with the ones around them.

   RMS_NORM, then a LINEAR that alone reads it: its rows are normed where they become 8 bits, while they are in L1.

   LINEAR of two weights, GLU of their results, LINEAR of that.  The
   first then gates its own sums while they are in L1, and where the last meets 8-bit activations in groups of 32, one
   term, it writes those instead of floats: a tile of 32 rows is a group.  What is computed, and in what order, stays;
   the values between are never written.  Few rows have little to gain and go op by op.

   The codes lie in the GLU's place among the values, which is twice what they take. */
#include "backend/cpu/cpu_priv.h"
#include "backend/cpu/tiles.h"

/* Readers of v; an output has one more. */
static int32_t readers(const prog *p, val v)
{
    int32_t n = p->value[v].output;
    for (int32_t i = 0; i < p->n_op; i++)
        for (int k = 0; k < OP_MAX_IN; k++) n += p->op[i].in[k] == v;
    return n;
}

/* LINEAR o, whose floats are read before its results are written, and the GLU of these behind it. */
static bool is_gated(const dev *d, const prog *p, const op *o, const op *glu)
{
    if (o->kind != OP_LINEAR || o->n_w != 2 || o->in[1] != VAL_NONE || glu->kind != OP_GLU)
        return false;
    if (tiles_act_group(d->compute, o->w[0]) == 0 || tiles_act_group(d->compute, o->w[1]) == 0)
        return false;
    const bool straight = glu->in[0] == o->out[0] && glu->in[1] == o->out[1];
    const bool crossed = glu->in[0] == o->out[1] && glu->in[1] == o->out[0];
    return (straight || crossed) && readers(p, o->out[0]) == 1 && readers(p, o->out[1]) == 1 &&
           !p->value[glu->out[0]].output && p->value[o->in[0]].rows == p->value[glu->out[0]].rows;
}

static bool takes_codes(const dev *d, const prog *p, const op *glu, const op *o)
{
    return o->kind == OP_LINEAR && o->n_w == 1 && o->in[0] == glu->out[0] &&
           readers(p, o->in[0]) == 1 && cpu_meets_codes(d, o->w[0]) &&
           p->value[o->in[0]].rows == p->value[o->out[0]].rows;
}

static bool norms(const dev *d, const prog *p, const op *norm, const op *o)
{
    if (norm->kind != OP_RMS_NORM || o->kind != OP_LINEAR || o->in[0] != norm->out[0]) return false;
    if (o->in[1] == norm->out[0] || readers(p, norm->out[0]) != 1) return false;
    for (int32_t i = 0; i < o->n_w; i++)
        if (tiles_act_group(d->compute, o->w[i]) == 0) return false; /* they meet floats */
    return true;
}

void cpu_find_gated(const dev *d, const prog *p, uint8_t *with)
{
    for (int32_t i = 0; i < p->n_op; i++) with[i] = 0;
    for (int32_t i = 0; i + 1 < p->n_op; i++) {
        const op *o = &p->op[i];
        if (!is_gated(d, p, o, o + 1)) continue;
        with[i] = CPU_GATES;
        with[i + 1] = CPU_DONE;
        if (i + 2 >= p->n_op || !takes_codes(d, p, o + 1, o + 2)) continue;
        with[i] |= CPU_CODES_OUT;
        with[i + 2] = CPU_CODES_IN;
    }
    for (int32_t i = 0; i + 1 < p->n_op; i++) {
        if (!norms(d, p, &p->op[i], &p->op[i + 1])) continue;
        with[i] = CPU_DONE;
        with[i + 1] |= CPU_NORMS;
    }
}
