/* AVX2 and FMA: the gated delta rule. */
#include "backend/cpu/kern/x86/lanes_avx2.h"

#include "backend/cpu/kern/body/delta_body.h"

void kern_delta_avx2(kern_vec *v)
{
    v->delta = delta;
}
