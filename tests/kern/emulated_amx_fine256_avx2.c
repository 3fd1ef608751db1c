/* The AMX kernels of fine activations over emulated instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#include "kern/emulate_amx.h"

#define vnni_fine_q4_k     emulated_fine_q4_k
#define vnni_fine_q5_k     emulated_fine_q5_k
#define vnni_fine_q6_k     emulated_fine_q6_k
#define amx_fine_q4_k      emulated_amx_fine_q4_k
#define amx_fine_q5_k      emulated_amx_fine_q5_k
#define amx_fine_q6_k      emulated_amx_fine_q6_k
#define amx_fine_more_q4_k emulated_amx_fine_more_q4_k
#define amx_fine_more_q5_k emulated_amx_fine_more_q5_k
#define amx_fine_more_q6_k emulated_amx_fine_more_q6_k
#include "backend/cpu/kern/x86/linear_fine256_amx.c"
#else
typedef int nothing_here;
#endif
