/* AVX2 and FMA: the gated delta rule. */
#include <immintrin.h>

#include "backend/cpu/kern/kern_vec.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m256 vf;
enum { LANES = 8 };
#define vf_load  _mm256_loadu_ps
#define vf_store _mm256_storeu_ps
#define vf_set   _mm256_set1_ps
#define vf_mul   _mm256_mul_ps
#define vf_sub   _mm256_sub_ps
#define vf_fma   _mm256_fmadd_ps

#include "backend/cpu/kern/x86/delta_body.h"

void kern_delta_avx2(kern_vec *v)
{
    v->delta = delta_all;
}
