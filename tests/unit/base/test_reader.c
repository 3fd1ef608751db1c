/* Reads are little-endian, never past the end, and a failure sticks. */
#include "test.h"

#include "base/reader.h"

static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xff,
                                0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8, 0x80};

static void reads_little_endian(void **state)
{
    (void)state;
    reader r = reader_of(bytes, sizeof bytes);
    assert_int_equal(reader_u8(&r), 0x01);
    assert_int_equal(reader_u16(&r), 0x0302);
    assert_int_equal(reader_u32(&r), 0x07060504);
    assert_int_equal(reader_left(&r), 10);
    assert_true(reader_u64(&r) == 0xf9fafbfcfdfeff08u);
    assert_int_equal(reader_left(&r), 2);
    assert_int_equal(reader_u16(&r), 0x80f8);
    assert_false(r.bad);
    assert_int_equal(reader_u8(&r), 0);
    assert_true(r.bad);
}

static void reads_floats(void **state)
{
    (void)state;
    const float f = -1.25f;
    const double d = 0.1;
    uint8_t both[12];
    memcpy(both, &f, 4);
    memcpy(both + 4, &d, 8);
    reader r = reader_of(both, sizeof both);
    assert_true(reader_f32(&r) == f);
    assert_true(reader_f64(&r) == d);
    assert_true(reader_f64(&r) == 0 && r.bad);
}

static void failure_sticks(void **state)
{
    (void)state;
    for (size_t left = 0; left < 8; left++) {
        reader r = reader_of(bytes, left);
        assert_true(reader_u64(&r) == 0);
        assert_true(r.bad);
        assert_int_equal(reader_left(&r), 0);
        assert_int_equal(reader_u8(&r), 0); /* though a byte was there */
        assert_null(reader_bytes(&r, 0));
    }
}

static void bytes_are_counted_in_64_bits(void **state)
{
    (void)state;
    reader r = reader_of(bytes, sizeof bytes);
    assert_ptr_equal(reader_bytes(&r, 4), bytes);
    assert_ptr_equal(reader_bytes(&r, 0), bytes + 4);
    assert_ptr_equal(reader_bytes(&r, 13), bytes + 4);
    assert_false(r.bad);
    assert_non_null(reader_bytes(&r, 0)); /* nothing, at the end */
    assert_null(reader_bytes(&r, UINT64_MAX));
    assert_true(r.bad);
    r = reader_of(bytes, 4);
    assert_null(reader_bytes(&r, ((uint64_t)1 << 32) + 1));
    r = reader_of(NULL, 0);
    assert_int_equal(reader_u32(&r), 0);
    assert_true(r.bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_little_endian),
        cmocka_unit_test(reads_floats),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(bytes_are_counted_in_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
