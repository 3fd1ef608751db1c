/* The AMX kernels of the codebook and ternary types over emulated instructions. */
#if defined(__x86_64__)
#include "kern/emulate_avx512.h"

#include "kern/emulate_amx.h"

#define vnni_tile_iq3_s   emulated_tile_iq3_s
#define vnni_tile_iq3_xxs emulated_tile_iq3_xxs
#define vnni_tile_iq2_xxs emulated_tile_iq2_xxs
#define vnni_tile_iq2_s   emulated_tile_iq2_s
#define vnni_tile_iq1_s   emulated_tile_iq1_s
#define vnni_tile_iq1_m   emulated_tile_iq1_m
#define vnni_tile_tq      emulated_tile_tq
#define amx_tile_iq3_s    emulated_amx_tile_iq3_s
#define amx_tile_iq3_xxs  emulated_amx_tile_iq3_xxs
#define amx_tile_iq2_xxs  emulated_amx_tile_iq2_xxs
#define amx_tile_iq2_s    emulated_amx_tile_iq2_s
#define amx_tile_iq1_s    emulated_amx_tile_iq1_s
#define amx_tile_iq1_m    emulated_amx_tile_iq1_m
#define amx_tile_tq       emulated_amx_tile_tq
#include "backend/cpu/kern/x86/linear_grid_amx.c"
#else
typedef int nothing_here;
#endif
