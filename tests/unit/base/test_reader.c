/* Reads are little-endian, never past the end, and a failure sticks. */
#include "test.h"

#include "base/reader.h"

static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xff,
                                0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9, 0xf8, 0x80};

static void reads_little_endian(void **state)
{
    (void)state;
    reader r = reader_of(bytes, sizeof bytes);
    assert_int_equal(reader_u32(&r), 0x04030201);
    assert_int_equal(reader_left(&r), 13);
    assert_true(reader_u64(&r) == 0xfcfdfeff08070605u);
    assert_int_equal(reader_left(&r), 5);
    assert_false(r.bad);
    assert_int_equal(reader_u64(&r), 0); /* five are not eight */
    assert_true(r.bad);
}

static void failure_sticks(void **state)
{
    (void)state;
    for (size_t left = 0; left < 8; left++) {
        reader r = reader_of(bytes, left);
        assert_true(reader_u64(&r) == 0);
        assert_true(r.bad);
        assert_int_equal(reader_left(&r), 0);
        assert_int_equal(reader_u32(&r), 0); /* though bytes were there */
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
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(bytes_are_counted_in_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
