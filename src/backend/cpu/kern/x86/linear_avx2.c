/* Kernels of LINEAR for this level: none yet. */
#include "backend/cpu/kern/kern_linear.h"

void kern_linear_avx2(kern_linear *k)
{
    (void)k;
}
