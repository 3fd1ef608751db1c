/* One op on the CPU backend, without a recorder: values are filled and read by the test. */
#ifndef OPS_RIG_H
#define OPS_RIG_H

#include "backend/cpu/cpu_priv.h"

enum { RIG_VALUES = 8 };

typedef struct rig {
    dev *d;
    exec *x;
    prog p;
    plan pl;
    op op;
    value value[RIG_VALUES];
    size_t offset[RIG_VALUES];
} rig;

/* cols[i], rows[i]: the values 0 … n-1; o's vals index them. */
void rig_open(rig *g, const char *isa, int32_t n_threads, const op *o, const value *v, int32_t n,
              int32_t max_rows, int32_t max_ctx, const rope_spec *rs);
void rig_close(rig *g);
float *rig_val(const rig *g, val v);
/* [-1, 1), a function of the seed and i. */
float rig_rand(uint64_t seed, uint64_t i);
/* Equal bits, or both NaN. */
bool rig_same(float a, float b);
/* How many levels the machine runs; says which ones are skipped.  Level i of them, the first ISA_REF. */
int32_t rig_levels(void);
isa_level rig_level(int32_t i);
/* A lower level that runs has the same kernels for all but LINEAR: other ops have nothing new at l. */
bool rig_level_adds_none(isa_level l);

#endif
