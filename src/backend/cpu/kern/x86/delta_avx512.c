/* AVX-512: the gated delta rule. */
#include <immintrin.h>

#include "backend/cpu/kern/kern_vec.h"

#define INLINE static inline __attribute__((always_inline))

typedef __m512 vf;
enum { LANES = 16 };
#define vf_load  _mm512_loadu_ps
#define vf_store _mm512_storeu_ps
#define vf_set   _mm512_set1_ps
#define vf_mul   _mm512_mul_ps
#define vf_sub   _mm512_sub_ps
#define vf_fma   _mm512_fmadd_ps

#include "backend/cpu/kern/x86/delta_body.h"

void kern_delta_avx512(kern_vec *v)
{
    v->delta = delta_all;
}
