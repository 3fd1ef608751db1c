/* Element types: names, sizes, and every block type against gguf-py. */
#include "test.h"

#include <stdio.h>

#include "format/format.h"
#include "tensor/dtype.h"

static void names_and_sizes(void **state)
{
    size_t n = 0;
    dtype t;

    (void)state;
    assert_string_equal(dtype_name(DT_Q4_K), "Q4_K");
    assert_int_equal(dtype_block(DT_Q6_K), 256);
    assert_int_equal(dtype_block_bytes(DT_Q6_K), 210);
    assert_true(dtype_from_gguf(39, &t));
    assert_int_equal(t, DT_MXFP4);
    assert_false(dtype_from_gguf(4, &t)); /* Q4_2, long gone */
    assert_false(dtype_from_gguf(UINT32_MAX, &t));
    assert_true(dtype_is_quant(DT_Q8_0));
    assert_false(dtype_is_quant(DT_BF16));
    assert_true(dtype_bytes(DT_Q4_0, 64, &n));
    assert_int_equal(n, 36);
    assert_false(dtype_bytes(DT_Q4_0, 33, &n));
    assert_false(dtype_bytes(DT_F64, UINT64_MAX / 4, &n));
    assert_true(dtype_can_dequant(DT_IQ1_M));
    assert_true(dtype_can_dequant(DT_F8_E5M2));
    assert_false(dtype_can_dequant(DT_I32));
}

/* Every block type against gguf-py, bit by bit, from an odd address. */
static void blocks_equal_reference(void **state)
{
    int n_type = 0;
    source *s = NULL;
    cairn_diag dg = {0};

    (void)state;
    assert_ok(safetensors_open_file("tests/golden/gguf_blocks.safetensors", &s, &dg));
    for (int t = 0; t < DT_COUNT; t++) {
        char raw_name[32], f32_name[32];
        snprintf(raw_name, sizeof raw_name, "%s.raw", dtype_name((dtype)t));
        snprintf(f32_name, sizeof f32_name, "%s.f32", dtype_name((dtype)t));
        const tensor_desc *raw = source_find(s, raw_name), *want = source_find(s, f32_name);
        if (!raw) {
            assert_false(dtype_is_quant((dtype)t));
            continue;
        }
        const size_t n = want->size / 4;
        uint8_t *odd = mem_alloc(raw->size + 1, MEM_MISC);
        float *got = mem_alloc(want->size, MEM_MISC);
        memcpy(odd + 1, raw->data, raw->size);
        dtype_to_f32((dtype)t, odd + 1, got, n);
        if (memcmp(got, want->data, want->size) != 0) fail_msg("%s differs", dtype_name((dtype)t));
        mem_free(odd);
        mem_free(got);
        n_type++;
    }
    assert_int_equal(n_type, 23);
    source_close(s);
}

static void floats(void **state)
{
    static const uint8_t f32[] = {0, 0, 0x20, 0xc1}, f16[] = {0, 0xc9}, bf16[] = {0x20, 0xc1},
                         f64[] = {0, 0, 0, 0, 0, 0, 0x24, 0xc0}, e5m2[] = {0xc9}, e4m3[] = {0xd2},
                         e8m0[] = {130};
    static const struct {
        dtype t;
        const void *p;
        float want;
    } c[] = {{DT_F32, f32, -10.0f},   {DT_F16, f16, -10.0f},      {DT_BF16, bf16, -10.0f},
             {DT_F64, f64, -10.0f},   {DT_F8_E5M2, e5m2, -10.0f}, {DT_F8_E4M3, e4m3, -10.0f},
             {DT_F8_E8M0, e8m0, 8.0f}};

    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        float y = 0.0f;
        dtype_to_f32(c[i].t, c[i].p, &y, 1);
        if (memcmp(&y, &c[i].want, 4) != 0) fail_msg("%s: %g", dtype_name(c[i].t), (double)y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes),
        cmocka_unit_test(blocks_equal_reference),
        cmocka_unit_test(floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
