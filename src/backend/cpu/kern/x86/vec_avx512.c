/* AVX-512: elementwise kernels. */
#include "backend/cpu/kern/x86/lanes_avx512.h"

#include "backend/cpu/kern/body/math_body.h"
#include "backend/cpu/kern/body/vec_body.h"

/* rope_pairs stays AVX2's: it is bound by its shuffles. */
void kern_vec_avx512(kern_vec *v)
{
    vec_install(v);
}
