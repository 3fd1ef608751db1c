/* AVX-512: the gated delta rule. */
#include "backend/cpu/kern/x86/lanes_avx512.h"

#include "backend/cpu/kern/body/delta_body.h"

void kern_delta_avx512(kern_vec *v)
{
    v->delta = delta;
}
