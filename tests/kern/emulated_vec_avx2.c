/* The elementwise AVX-512 kernels over emulated intrinsics. */
#if defined(__x86_64__)
#include "kern/emulate_avx512_vec.h"

#define kern_vec_avx512   emulated_vec
#define kern_delta_avx512 emulated_delta
#include "backend/cpu/kern/x86/vec_avx512.c"

#include "backend/cpu/kern/x86/delta_avx512.c"
#else
#include "backend/cpu/kern/kern_vec.h"
void emulated_vec(kern_vec *v);
void emulated_vec(kern_vec *v)
{
    (void)v;
}
#endif
