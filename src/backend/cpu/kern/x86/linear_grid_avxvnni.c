/* Tiles of the codebook and ternary types, AVX-VNNI. */
#include "backend/cpu/kern/x86/dots_avxvnni.h"
#include "backend/cpu/kern/x86/linear_x86.h"

#define LEVEL(name) avxvnni_##name
#include "backend/cpu/kern/x86/grid_avx2_body.h"
