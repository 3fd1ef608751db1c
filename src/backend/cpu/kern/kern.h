/* The kernel table: one typed slot a kernel, filled by rising levels.  Reference first, then each ISA
   level overrides its slots.  Levels are named bundles, not combinations of features. */
#ifndef KERN_KERN_H
#define KERN_KERN_H

#include "backend/cpu/kern/kern_linear.h"
#include "backend/cpu/kern/kern_vec.h"

typedef enum isa_level {
    ISA_REF,      /* plain C */
    ISA_HASWELL,  /* AVX2, FMA, F16C */
    ISA_SKYLAKEX, /* AVX-512 F, BW, VL, DQ */
    ISA_ICELAKE,  /* VNNI */
    ISA_SAPPHIRE, /* AMX-TILE, AMX-INT8 */
    ISA_COUNT
} isa_level;

typedef struct kern {
    isa_level level;
    kern_vec vec;
    kern_linear lin;
} kern;

isa_level isa_detect(void);
const char *isa_name(isa_level l);
bool isa_parse(const char *name, isa_level *out);
/* Fills the table up to `max` or what the machine has, whichever is lower. */
void kern_init(kern *k, isa_level max);

#endif
