/* What each op of a program takes and what it has to do, summed over the layers that do the same: the
   figures of a roofline (Williams, Waterman and Patterson 2009).  Owned by the one who measures. */
#ifndef ENGINE_OP_METER_H
#define ENGINE_OP_METER_H

#include "cairn/score.h"
#include "engine/step.h"

typedef struct op_meter op_meter;

/* Times the ops of `s`, which must outlive it, from now on. */
cairn_status op_meter_new(const model *m, stepper *s, op_meter **out, cairn_diag *dg);
void op_meter_free(op_meter *t);
/* The step that just ran is one of those counted. */
void op_meter_step(op_meter *t);
void op_meter_reset(op_meter *t);
/* Answers what was counted since the last reset, of a phase that took `seconds`. */
void op_meter_report(const op_meter *t, bool decode, double seconds, cairn_op_cost_fn fn,
                     void *ctx);

#endif
