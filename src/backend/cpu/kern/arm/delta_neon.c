/* NEON: the gated delta rule. */
#include "backend/cpu/kern/arm/lanes_neon.h"

#include "backend/cpu/kern/body/delta_body.h"

void kern_delta_neon(kern_vec *v)
{
    v->delta = delta;
}
