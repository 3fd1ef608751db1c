/* The kernel table: one typed slot a kernel.  Reference first, then each ISA level overrides its slots.
   Levels are named bundles, not combinations of features; each stands on one other (docs/kernels.md). */
#ifndef KERN_KERN_H
#define KERN_KERN_H

#include "backend/cpu/kern/kern_linear.h"
#include "backend/cpu/kern/kern_vec.h"

/* Of two levels that a machine runs, the later one is the better. */
typedef enum isa_level {
    ISA_REF,        /* plain C */
    ISA_AVX2,       /* AVX2, FMA, F16C */
    ISA_AVXVNNI,    /* and its vpdpbusd, of 256 bits */
    ISA_AVX512,     /* AVX2, AVX-512 F, BW, VL, DQ */
    ISA_AVX512VNNI, /* and its VNNI */
    ISA_AMX,        /* AMX-TILE, AMX-INT8 */
    ISA_NEON,       /* of every aarch64 */
    ISA_DOTPROD,    /* sdot: FEAT_DotProd */
    ISA_I8MM,       /* smmla: FEAT_I8MM */
    ISA_COUNT
} isa_level;

typedef struct kern {
    isa_level level;
    kern_vec vec;
    kern_linear lin;
} kern;

/* A bit, 1 << level, for each level that this machine runs; ISA_REF is always there. */
uint32_t isa_machine(void);
bool isa_runs(isa_level l);
isa_level isa_detect(void); /* the best that runs */
const char *isa_name(isa_level l);
bool isa_parse(const char *name, isa_level *out);
/* The names of the levels in `mask`, "ref, avx2", cut to `size` bytes. */
void isa_list(uint32_t mask, char *out, size_t size);
/* Fills the table with the kernels of a level; what does not run here becomes the best that does. */
void kern_init(kern *k, isa_level l);

#endif
