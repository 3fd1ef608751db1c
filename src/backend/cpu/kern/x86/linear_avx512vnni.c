/* Kernels of LINEAR for this level: none yet. */
#include "backend/cpu/kern/kern_linear.h"

void kern_linear_avx512vnni(kern_linear *k)
{
    (void)k;
}
