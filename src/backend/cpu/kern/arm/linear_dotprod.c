/* LINEAR at the level of dotprod: the table, and the peak of sdot. */
#include "backend/cpu/kern/arm/linear_arm.h"

#define DOT_PEAK(acc) "sdot v" acc ".4s, v30.16b, v31.16b\n\t"
#define DOT_OPS       32
#include "backend/cpu/kern/arm/peak_dot_body.h"

#define LEVEL(name) dotprod_##name
void kern_linear_dotprod(kern_linear *k)
{
    INSTALL_TILES
    k->peak_dot = peak_dot;
}
