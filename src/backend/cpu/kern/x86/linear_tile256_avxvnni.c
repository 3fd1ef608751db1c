/* Tiles of Q4_K, Q5_K and Q6_K, AVX-VNNI. */
#include "backend/cpu/kern/x86/dots_avxvnni.h"
#include "backend/cpu/kern/x86/linear_x86.h"

#define LEVEL(name) avxvnni_##name
#include "backend/cpu/kern/x86/k456_avx2_body.h"

#include "backend/cpu/kern/x86/fine256_avx2_body.h"
