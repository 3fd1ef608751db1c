/* MXFP4 and NVFP4 from files that keep codes and scales apart: the tile is that of GGUF's blocks with the
   same numbers, rows at the ends of mapped pages, every other row of the file, any number of blocks. */
#include "test.h"

#include "backend/cpu/tiles.h"
#include "base/rng.h"
#include "kern/fence.h"
#include "kern/linear_data.h"

static unsigned code_of(size_t row, size_t col)
{
    return (unsigned)rng_u64(21, row, col) % 16;
}

static uint8_t scale_of(size_t row, size_t group)
{
    return (uint8_t)(rng_u64(22, row, group) % 127);
}

/* Nibbles in rising order; bytes of scales. */
static void apart(size_t row, size_t cols, size_t group, uint8_t *code, uint8_t *scale)
{
    for (size_t c = 0; c < cols; c += 2)
        code[c / 2] = (uint8_t)(code_of(row, c) | code_of(row, c + 1) << 4);
    for (size_t g = 0; g < cols / group; g++) scale[g] = scale_of(row, g);
}

/* `per` groups a block: their scales, then of each group bytes with value j low and j + half high. */
static void blocks(size_t row, size_t cols, size_t group, size_t per, uint8_t *out)
{
    for (size_t g = 0; g < cols / group; g++) {
        uint8_t *b = out + g / per * per * (1 + group / 2);
        uint8_t *q = b + per + g % per * (group / 2);
        b[g % per] = scale_of(row, g);
        for (size_t j = 0; j < group / 2; j++)
            q[j] = (uint8_t)(code_of(row, g * group + j) | code_of(row, g * group + group / 2 + j)
                                                               << 4);
    }
}

static void check(tile_type t, size_t cols, size_t rows, size_t first, size_t every)
{
    const bool nv = t == TILE_NVFP4;
    const size_t group = nv ? 16 : 32, per = nv ? 4 : 1, row_bytes = cols / group * (1 + group / 2);
    const size_t file_rows = first + rows * every, size = tile_bytes(t, (int32_t)(cols / 32));
    packed p = {.kind = nv ? PACKED_NVFP4 : PACKED_MXFP4,
                .bits = 4,
                .group = (int32_t)group,
                .block_rows = 1,
                .rows = (int32_t)file_rows,
                .cols = (int32_t)cols,
                .code_size = file_rows * cols / 2,
                .scale_size = file_rows * (cols / group)};
    uint8_t *code = fence_new(p.code_size), *scale = fence_new(p.scale_size);
    uint8_t *stored = fence_new(rows * row_bytes), *want = fence_new(size), *got = fence_new(size);
    const weight w = {.rows = (int32_t)rows,
                      .cols = (int32_t)cols,
                      .packed = &p,
                      .packed_first = (int32_t)first,
                      .packed_step = (int32_t)every};
    p.code = code, p.scale = scale;
    assert_true(packed_is_fp4(&p));
    for (size_t r = 0; r < file_rows; r++)
        apart(r, cols, group, code + r * (cols / 2), scale + r * (cols / group));
    for (size_t r = 0; r < rows; r++)
        blocks(first + r * every, cols, group, per, stored + r * row_bytes);
    tiles_pack(t, stored, row_bytes, (int32_t)rows, (int32_t)(cols / 32), want);
    memset(got, 0xee, size);
    fp4_pack_packed(t, &w, 0, (int32_t)rows, got);
    assert_memory_equal(want, got, size);
    fence_free(code, p.code_size), fence_free(scale, p.scale_size);
    fence_free(stored, rows * row_bytes), fence_free(want, size), fence_free(got, size);
}

static void one_tile(void **state)
{
    (void)state;
    for (size_t n = 1; n < 6; n++)
        for (size_t rows = 1; rows <= TILE_ROWS; rows += 10) {
            check(TILE_MXFP4, 32 * n, rows, 0, 1);
            check(TILE_MXFP4, 32 * n, rows, 1, 2);
            check(TILE_NVFP4, 64 * n, rows, 3, 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_tile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
