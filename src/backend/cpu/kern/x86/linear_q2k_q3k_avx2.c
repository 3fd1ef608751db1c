/* Tiles of Q2_K and Q3_K, AVX2. */
#include "backend/cpu/kern/x86/dots_avx2.h"
#include "backend/cpu/kern/x86/linear_x86.h"

#define LEVEL(name) avx2_##name
#include "backend/cpu/kern/x86/q2k_q3k_avx2_body.h"
