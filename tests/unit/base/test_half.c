/* All codes, against values computed another way (ldexp), and all neighbours of rounding points. */
#include "test.h"

#include <math.h>

#include "base/half.h"

static float by_fields(unsigned sign, int e, unsigned m, int bits, int bias)
{
    const double x = e == 0 ? ldexp(m, 1 - bias - bits) : ldexp((1u << bits) + m, e - bias - bits);
    return (float)(sign ? -x : x);
}

static void f16_all_codes(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        const float x = f16_to_f32((uint16_t)h);
        const unsigned e = h >> 10 & 31, m = h & 1023;
        if (e == 31 && m) {
            assert_true(isnan(x));
            assert_true(isnan(f16_to_f32(f16_from_f32(x))));
            continue;
        }
        const float want =
            e == 31 ? (h >> 15 ? -INFINITY : INFINITY) : by_fields(h >> 15, (int)e, m, 10, 15);
        assert_int_equal(f32_bits(x), f32_bits(want));
        assert_int_equal(f16_from_f32(x), h);
    }
}

/* Between two neighbours: below the middle goes down, above goes up, the middle to even. */
static void f16_rounds_to_even(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7bff; h++) {
        const float lo = f16_to_f32((uint16_t)h), hi = f16_to_f32((uint16_t)(h + 1));
        const float mid = (float)(((double)lo + (double)hi) / 2); /* exact: 12 bits */
        assert_int_equal(f16_from_f32(mid), h & 1 ? h + 1 : h);
        assert_int_equal(f16_from_f32(nextafterf(mid, 0)), h);
        assert_int_equal(f16_from_f32(nextafterf(mid, INFINITY)), h + 1);
        assert_int_equal(f16_from_f32(-nextafterf(mid, 0)), h | 0x8000);
    }
    assert_int_equal(f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(f16_from_f32(-1e30f), 0xfc00);
    assert_int_equal(f16_from_f32(0x1p-25f), 0);
    assert_int_equal(f16_from_f32(0x1.000002p-25f), 1);
    assert_int_equal(f16_from_f32(1e-45f), 0);
    assert_int_equal(f16_from_f32(-0.0f), 0x8000);
}

static void f16_saturates(void **state)
{
    (void)state;
    assert_int_equal(f16_from_f32_sat(65520.0f), 0x7bff);
    assert_int_equal(f16_from_f32_sat(-INFINITY), 0xfbff);
    assert_int_equal(f16_from_f32_sat(1.0f), 0x3c00);
    assert_true(isnan(f16_to_f32(f16_from_f32_sat(NAN))));
}

static void bf16_all_codes(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        const float x = bf16_to_f32((uint16_t)h);
        const unsigned e = h >> 7 & 255, m = h & 127;
        if (e == 255 && m) {
            assert_true(isnan(x));
            assert_true(isnan(bf16_to_f32(bf16_from_f32(x))));
            continue;
        }
        const float want =
            e == 255 ? (h >> 15 ? -INFINITY : INFINITY) : by_fields(h >> 15, (int)e, m, 7, 127);
        assert_int_equal(f32_bits(x), f32_bits(want));
        assert_int_equal(bf16_from_f32(x), h);
        if (e == 255) continue;
        const float mid = f32_from_bits((uint32_t)h << 16 | 0x8000);
        assert_int_equal(bf16_from_f32(mid), h & 1 ? h + 1 : h);
        assert_int_equal(bf16_from_f32(f32_from_bits((uint32_t)h << 16 | 0x7fff)), h);
        assert_int_equal(bf16_from_f32(f32_from_bits((uint32_t)h << 16 | 0x8001)), h + 1);
    }
    assert_true(isnan(bf16_to_f32(bf16_from_f32(f32_from_bits(0x7f800001))))); /* not infinity */
}

static void fp8_all_codes(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 256; b++) {
        const float x = e4m3_to_f32((uint8_t)b), s = e8m0_to_f32((uint8_t)b);
        if ((b & 127) == 127)
            assert_true(isnan(x));
        else
            assert_int_equal(f32_bits(x),
                             f32_bits(by_fields(b >> 7, (int)(b >> 3 & 15), b & 7, 3, 7)));
        if (b == 255)
            assert_true(isnan(s));
        else
            assert_int_equal(f32_bits(s), f32_bits((float)ldexp(1, (int)b - 127)));
    }
    assert_int_equal(f32_bits(e4m3_to_f32(0x7e)), f32_bits(448.0f)); /* the largest */
}

static void fp4_all_codes(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 256; b++)
        assert_int_equal(f32_bits(e8m0_half((uint8_t)b)), f32_bits((float)ldexp(1, (int)b - 128)));
    for (unsigned c = 0; c < 16; c++)
        assert_true((float)e2m1_level[c] == 2 * by_fields(c >> 3, (int)(c >> 1 & 3), c & 1, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_all_codes), cmocka_unit_test(f16_rounds_to_even),
        cmocka_unit_test(f16_saturates), cmocka_unit_test(bf16_all_codes),
        cmocka_unit_test(fp8_all_codes), cmocka_unit_test(fp4_all_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
