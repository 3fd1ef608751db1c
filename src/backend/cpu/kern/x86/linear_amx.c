/* LINEAR at the level of AMX: the table, and the peak of the matrix unit. */

#include "backend/cpu/kern/x86/linear_x86.h"
#include "backend/cpu/kern/x86/tiles_amx.h"

/* Four chains: a product takes 16 cycles, its sums come after 52. */
static uint64_t peak_dot(uint64_t rounds)
{
    enum { CHAINS = 4, OPS = CHAINS * AMX_VEC * 16 * 64 * 2 };
    amx_begin(AMX_VEC, 64);
    for (uint64_t i = 0; i < rounds; i++) {
        _tile_dpbsud(0, 4, 6);
        _tile_dpbsud(1, 5, 6);
        _tile_dpbsud(2, 4, 7);
        _tile_dpbsud(3, 5, 7);
    }
    _tile_release();
    return rounds * OPS;
}

/* Of the second cache, 2 MB wherever there is AMX; measured in docs/kernels.md. */
enum { NEAR_ACT = 1792 << 10 };

void kern_linear_amx(kern_linear *k)
{
    k->near_act = NEAR_ACT;
#define INSTALL(type, name) k->tile[TILE_##type] = amx_tile_##name;
    AMX_TILES(INSTALL)
#undef INSTALL
    k->fine[TILE_Q4_K] = amx_fine_q4_k;
    k->fine[TILE_Q5_K] = amx_fine_q5_k;
    k->fine[TILE_Q6_K] = amx_fine_q6_k;
    k->fine_more[TILE_Q4_K] = amx_fine_more_q4_k;
    k->fine_more[TILE_Q5_K] = amx_fine_more_q5_k;
    k->fine_more[TILE_Q6_K] = amx_fine_more_q6_k;
    k->affine[AFFINE_4] = amx_affine_4;
    k->affine[AFFINE_5] = amx_affine_5;
    k->affine[AFFINE_8] = amx_affine_8;
    k->peak_dot = peak_dot;
}
