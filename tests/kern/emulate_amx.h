/* AMX's instructions in plain C: tile registers are arrays, and what the processor would fault at traps.
   Include before the kernel's source, after emulate_avx512.h. */
#ifndef TESTS_EMULATE_AMX_H
#define TESTS_EMULATE_AMX_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define EMU_TILE static __attribute__((unused))

/* Each thread has its own. */
static _Thread_local struct {
    int on;
    int rows[8], row_bytes[8];
    uint8_t byte[8][16][64];
} emu_tiles;

EMU_TILE void emu_tile_loadconfig(const void *p)
{
    uint8_t cfg[64];
    memcpy(cfg, p, sizeof cfg);
    if (cfg[0] != 1) __builtin_trap();
    for (int i = 1; i < 16; i++)
        if (cfg[i]) __builtin_trap();
    memset(&emu_tiles, 0, sizeof emu_tiles);
    emu_tiles.on = 1;
    for (int t = 0; t < 8; t++) {
        emu_tiles.row_bytes[t] = cfg[16 + 2 * t] | cfg[17 + 2 * t] << 8;
        emu_tiles.rows[t] = cfg[48 + t];
        if (emu_tiles.row_bytes[t] > 64 || emu_tiles.rows[t] > 16) __builtin_trap();
    }
}
EMU_TILE void emu_tile_release(void)
{
    if (!emu_tiles.on) __builtin_trap();
    emu_tiles.on = 0;
}
EMU_TILE void emu_tile_loadd(int t, const void *p, size_t stride)
{
    if (!emu_tiles.on) __builtin_trap();
    memset(emu_tiles.byte[t], 0, sizeof emu_tiles.byte[t]);
    for (int r = 0; r < emu_tiles.rows[t]; r++)
        memcpy(emu_tiles.byte[t][r], (const uint8_t *)p + (size_t)r * stride,
               (size_t)emu_tiles.row_bytes[t]);
}
EMU_TILE void emu_tile_stored(int t, void *p, size_t stride)
{
    if (!emu_tiles.on) __builtin_trap();
    for (int r = 0; r < emu_tiles.rows[t]; r++)
        memcpy((uint8_t *)p + (size_t)r * stride, emu_tiles.byte[t][r],
               (size_t)emu_tiles.row_bytes[t]);
}
EMU_TILE void emu_tile_zero(int t)
{
    if (!emu_tiles.on) __builtin_trap();
    memset(emu_tiles.byte[t], 0, sizeof emu_tiles.byte[t]);
}
/* c += signed bytes of a times bytes of b, signed or not. */
EMU_ALU void emu_tile_dp(int c, int a, int b, int b_signed)
{
    if (!emu_tiles.on || emu_tiles.row_bytes[a] != 4 * emu_tiles.rows[b] ||
        emu_tiles.rows[c] != emu_tiles.rows[a] || emu_tiles.row_bytes[c] != emu_tiles.row_bytes[b])
        __builtin_trap();
    const int depth = emu_tiles.row_bytes[a], n_col = emu_tiles.row_bytes[c] / 4;
    int16_t w[64][16] = {{0}};
    for (int k = 0; k < depth; k++)
        for (int n = 0; n < n_col; n++) {
            const uint8_t byte = emu_tiles.byte[b][k / 4][4 * n + k % 4];
            w[k][n] = (int16_t)(b_signed ? (int8_t)byte : byte);
        }
    for (int m = 0; m < emu_tiles.rows[c]; m++) {
        int32_t sum[16];
        memcpy(sum, emu_tiles.byte[c][m], sizeof sum);
        for (int k = 0; k < depth; k++) {
            const int x = (int8_t)emu_tiles.byte[a][m][k];
            for (int n = 0; n < 16; n++) sum[n] += x * w[k][n];
        }
        memcpy(emu_tiles.byte[c][m], sum, sizeof sum);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbssd
#undef _tile_dpbsud

#define _tile_loadconfig      emu_tile_loadconfig
#define _tile_release         emu_tile_release
#define _tile_loadd           emu_tile_loadd
#define _tile_stored          emu_tile_stored
#define _tile_zero            emu_tile_zero
#define _tile_dpbssd(c, a, b) emu_tile_dp(c, a, b, 1)
#define _tile_dpbsud(c, a, b) emu_tile_dp(c, a, b, 0)

#endif
