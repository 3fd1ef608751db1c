/* SHA-256 against FIPS 180-4's examples and, at every length around its blocks, against Python's
   hashlib; XXH3 against its published value. */
#include "test.h"

#include "base/hash.h"

static void digest_is(const sha256 *s, const char *want)
{
    sha256 end = *s;
    uint8_t digest[32];
    char hex[65];
    sha256_end(&end, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, want);
}

static void published(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sha256 s;
        sha256_init(&s);
        sha256_add(&s, cases[i].text, strlen(cases[i].text));
        digest_is(&s, cases[i].digest);
    }
}

static void a_million(void **state)
{
    (void)state;
    static char a[1000];
    sha256 s;
    memset(a, 'a', sizeof a);
    sha256_init(&s);
    for (int i = 0; i < 1000; i++) sha256_add(&s, a, sizeof a);
    digest_is(&s, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* hashlib.sha256(b"".join(sha256(d[:n]).digest() for n in range(300))), d[i] = (7 i + 3) mod 256 */
static void every_length(void **state)
{
    (void)state;
    uint8_t data[300], digest[32];
    sha256 all;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(7 * i + 3);
    sha256_init(&all);
    for (size_t n = 0; n < sizeof data; n++) {
        sha256 s;
        sha256_init(&s);
        const size_t cut = n * 5 / 7; /* in two pieces, which must not matter */
        sha256_add(&s, data, cut);
        sha256_add(&s, data + cut, n - cut);
        sha256_end(&s, digest);
        sha256_add(&all, digest, sizeof digest);
    }
    digest_is(&all, "7b074096cabb18dd0d1b468a173cb2f97f80e952525bca29542e606fd6d0753a");
}

static void table_hash(void **state)
{
    (void)state;
    assert_true(hash64("", 0, 0) == 0x2d06800538d394c2u); /* xxHash's own test vector */
    assert_true(hash64(NULL, 0, 0) == hash64("", 0, 0));
    assert_true(hash64("a", 1, 0) != hash64("b", 1, 0));
    assert_true(hash64("a", 1, 0) != hash64("a", 1, 1));
    assert_true(hash64("a\0", 2, 0) != hash64("a", 1, 0));
    const hash128 empty = hash128_of(NULL, 0); /* a test vector too */
    assert_true(empty.hi == 0x99aa06d3014798d8u && empty.lo == 0x6001c324468d497fu);
    assert_true(hash128_same(empty, hash128_of("", 0)));
    assert_false(hash128_same(empty, hash128_of("a", 1)));
}

/* However the bytes are cut. */
static void in_pieces(void **state)
{
    (void)state;
    uint8_t data[3000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(7 * i + i / 256);
    for (size_t step = 1; step < sizeof data; step = step * 3 / 2 + 1) {
        hash64_stream s;
        hash64_begin(&s);
        for (size_t at = 0; at < sizeof data; at += step)
            hash64_add(&s, data + at, sizeof data - at < step ? sizeof data - at : step);
        assert_true(hash64_end(&s) == hash64(data, sizeof data, 0));
        hash128_begin(&s);
        for (size_t at = 0; at < sizeof data; at += step)
            hash128_add(&s, data + at, sizeof data - at < step ? sizeof data - at : step);
        assert_true(hash128_same(hash128_end(&s), hash128_of(data, sizeof data)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published), cmocka_unit_test(a_million),  cmocka_unit_test(every_length),
        cmocka_unit_test(in_pieces), cmocka_unit_test(table_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
