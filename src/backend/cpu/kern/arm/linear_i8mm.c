/* LINEAR at the level of i8mm: the table, and the peak of smmla. */
#include "backend/cpu/kern/arm/linear_arm.h"

#define DOT_PEAK(acc) "smmla v" acc ".4s, v30.16b, v31.16b\n\t"
#define DOT_OPS       64
#include "backend/cpu/kern/arm/peak_dot_body.h"

#define LEVEL(name) i8mm_##name
void kern_linear_i8mm(kern_linear *k)
{
    INSTALL_TILES
    k->peak_dot = peak_dot;
}
