/* The weights that the golden models are made of are those of the Python script, to the byte. */
#include "test.h"

#include <stdio.h>

#include "base/file.h"
#include "base/hash.h"
#include "format/format.h"
#include "golden/mkweights.h"

/* SHA-256 of what tools/golden/weights.py writes for each manifest. */
static const struct {
    const char *dir, *sha256;
} golden[] = {
    {"hf/llama", "5baf2ea3d439e3d5a842561acaecf67b8e2cc23335624a7390eb96a3533c39f8"},
    {"hf/llama_tied", "490c5aea7755944e026f8590e2604be7dd2f2fc5631740a8e532a85ecbace1b0"},
    {"hf/llama_yarn", "3724489b21bb0853103a876e18d1a6cc29e28e4f60aac9f5d3906244c6ae5b65"},
    {"hf/mistral", "8a2169dae867d5c6636ff6c961e2f9ba81784d8df93bef8cc12e10a8d340e311"},
    {"hf/qwen2", "b457cd96e2c18be1d41b20ae868d1ad1631b255d1ee9c357c86267f4fce80a00"},
    {"hf/qwen3", "3bbcc29feb944a545003e7acb13a8f767850ea11d88d37d261c27ebee6bcde53"},
    {"hf/gemma2", "117db0881b7ff05c20ae8fe407d56528a57a1c108aa414de054e9c60e805a7a3"},
    {"hf/gemma3", "0dc824bbd3e03420dca027733d0ce013d73a9f5be63c8069e1618ae90612bd59"},
    {"kinds", "1075faf2ba09308b958bbe1f17e398f8cec352542053c324fa58b856ffb8050a"},
};

static void check(const char *dir, const char *want)
{
    char from[128], tmp[MKWEIGHTS_PATH], path[MKWEIGHTS_PATH + 32], hex[65];
    uint8_t digest[32];
    cairn_diag dg = {0};
    sha256 h;
    source *s;
    buf b;

    buf_init(&b, MEM_MISC);
    snprintf(from, sizeof from, "tests/golden/%s", dir);
    if (mkweights_temp(from, tmp, &dg) != CAIRN_OK) fail_msg("%s: %s", dir, dg.message);
    snprintf(path, sizeof path, "%s/model.safetensors", tmp);
    assert_ok(file_read(path, 64 << 20, &b, &dg));
    sha256_init(&h);
    sha256_add(&h, b.ptr, b.len);
    sha256_end(&h, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, want);
    if (source_open(tmp, &s, &dg) != CAIRN_OK) fail_msg("%s: %s", dir, dg.message);
    assert_true(s->n_tensor > 0);
    source_close(s);
    buf_deinit(&b);
    mkweights_remove(tmp);
    assert_false(file_exists(tmp));
}

static void equal_to_the_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        check(golden[i].dir, golden[i].sha256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_to_the_byte)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
