/* The quick reader of a tokenizer.json's pieces and merges: what it takes, and what it leaves to the
   parser. */
#include "test.h"

#include "base/str.h"
#include "text/tok_hf.h"

static void check_slice(const hf_lists *l, hf_slice s, cairn_str want)
{
    const cairn_str got = hf_lists_text(l, s);

    if (!str_eq(got, want))
        fail_msg("found \"%.*s\", expected \"%.*s\"", STR_ARG(got), STR_ARG(want));
}

static void same_lists(void **state)
{
    static const char *const files[] = {
        "{\"a\":[1,{\"model\":{}}],\"model\":{\"vocab\":{\"x\":0,\"\xC3\xA9 y\":1234567,\"\":12},"
        "\"type\":\"BPE\",\"merges\":[\"x y\",\"q\\\" \\u00e9\"]},\"b\":\"}\"}",
        "{\"a\":[1,{\"model\":{}}],\"model\":{\"vocab\":{\"\\u0078\":0,\"\\u00E9 y\":1234567,"
        "\"\":12},\"type\":\"BPE\",\"merges\":[[\"x\",\"y\"],[\"q\\\"\",\"\xC3\xA9\"]]},\"b\":\"}"
        "\"}",
        " { \"a\":[1,{\"model\":{}}],\"model\":{ \"vocab\" :\n{\n            \"x\" : 0,\r\n\t"
        "\"\xC3\xA9 y\"\n:\n1234567 , \"\" : 12 } ,\"type\":\"BPE\",\"merges\":  [ [ \"x\" , \"y\" "
        "] "
        ",\n                                  [ \"q\\u0022\" , \"\xC3\xA9\" ] ]    }"
        ",\"b\":\"}\"}  ",
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        hf_lists l;
        assert_ok(hf_lists_read(str_of(files[i]), &l));
        const hf_piece *p = (const hf_piece *)(const void *)l.piece.ptr;
        const hf_merge *m = (const hf_merge *)(const void *)l.merge.ptr;
        assert_int_equal(l.piece.len, 3 * sizeof *p);
        assert_int_equal(l.merge.len, 2 * sizeof *m);
        check_slice(&l, p[0].text, STR_LIT("x"));
        check_slice(&l, p[1].text, STR_LIT("\xC3\xA9 y"));
        check_slice(&l, p[2].text, STR_LIT(""));
        assert_int_equal(p[0].id, 0);
        assert_int_equal(p[1].id, 1234567);
        assert_int_equal(p[2].id, 12);
        check_slice(&l, m[0].l, STR_LIT("x"));
        check_slice(&l, m[0].r, STR_LIT("y"));
        check_slice(&l, m[1].l, STR_LIT("q\""));
        check_slice(&l, m[1].r, STR_LIT("\xC3\xA9"));
        if (i < 2)
            assert_string_equal(l.rest.ptr, "{\"a\":[1,{\"model\":{}}],\"model\":{\"vocab\":{},"
                                            "\"type\":\"BPE\",\"merges\":[]},\"b\":\"}\"}");
        hf_lists_free(&l);
    }
    assert_int_equal(mem_used_all(), 0);
}

static void escapes(void **state)
{
    hf_lists l;

    (void)state;
    assert_ok(hf_lists_read(STR_LIT("{\"model\":{\"vocab\":{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000"
                                    "\\uD83D\\ude00 and plain to the end\":1}}}"),
                            &l));
    const hf_piece *p = (const hf_piece *)(const void *)l.piece.ptr;
    check_slice(&l, p[0].text, STR_LIT("\"\\/\b\f\n\r\t\0\xF0\x9F\x98\x80 and plain to the end"));
    hf_lists_free(&l);
}

/* Bad ones, and good ones of another shape, for which there is the parser. */
static void left_alone(void **state)
{
    static const char *const models[] = {
        "",
        "{}",
        "[]",
        "{\"vocab\":{\"a\":0}",
        "{\"vocab\":{\"a\":0},}",
        "{\"vocab\":{\"a\":0,}}",
        "{\"vocab\":{\"a\" 0}}",
        "{\"vocab\":{\"a\":}}",
        "{\"vocab\":{\"a\":-1}}",
        "{\"vocab\":{\"a\":01}}",
        "{\"vocab\":{\"a\":1.0}}",
        "{\"vocab\":{\"a\":1e0}}",
        "{\"vocab\":{\"a\":12345678}}",
        "{\"vocab\":{\"a\":\"0\"}}",
        "{\"vocab\":{a:0}}",
        "{\"vocab\":{\"a\n\":0}}",
        "{\"vocab\":{\"a\\n\n\":0}}",
        "{\"vocab\":{\"\\x\":0}}",
        "{\"vocab\":{\"\\u12g4\":0}}",
        "{\"vocab\":{\"\\ud800\":0}}",
        "{\"vocab\":{\"\\ud800\\u0041\":0}}",
        "{\"vocab\":{\"\\udc00\":0}}",
        "{\"vocab\":{\"\\",
        "{\"vocab\":{\"\\u00",
        "{\"vocab\":{\"a",
        "{\"vocab\":[[\"a\",0]]}",
        "{\"vocab\":{\"a\":0},\"vocab\":{\"b\":1}}",
        "{\"v\\u006fcab\":{\"a\":0}}",
        "{\"merges\":[]}",
        "{\"vocab\":{\"a\":0},\"merges\":{}}",
        "{\"vocab\":{\"a\":0},\"merges\":[],\"merges\":[]}",
        "{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}",
        "{\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}",
        "{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}",
        "{\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\",\"a\"]]}",
        "{\"vocab\":{\"a\":0},\"merges\":[[\"a\" \"a\"]]}",
        "{\"vocab\":{\"a\":0},\"merges\":[1]}",
        "{\"vocab\":{\"a\":0},\"merges\":[\"a a\",]}",
        "{\"vocab\":{\"a\":0},\"merges\":[\"a a\"",
    };

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        buf file;
        hf_lists l;
        buf_init(&file, MEM_TEXT);
        buf_printf(&file, "{\"model\":%s}", models[i]);
        if (hf_lists_read(buf_view(&file), &l) != CAIRN_E_UNSUPPORTED)
            fail_msg("taken: %s", models[i]);
        hf_lists_free(&l);
        buf_deinit(&file);
    }
    assert_int_equal(mem_used_all(), 0);
}

/* Cut anywhere, a file is not taken and nothing behind its end is read. */
static void cut_short(void **state)
{
    const cairn_str file =
        STR_LIT("{\"model\":{\"vocab\":{\"ab\":0,\"\\u00e9\":10,\"the longest of the "
                "pieces\":2},\"merges\":[[\"a\",\"b\"],[\"\\n\",\"c\"]]}}");
    hf_lists l;

    (void)state;
    for (size_t n = 0; n < file.len; n++) {
        char *copy = mem_alloc(n, MEM_TEXT); /* of its very size, for the sanitizers */
        memcpy(copy, file.ptr, n);
        assert_int_equal(hf_lists_read((cairn_str){copy, n}, &l), CAIRN_E_UNSUPPORTED);
        hf_lists_free(&l);
        mem_free(copy);
    }
    assert_ok(hf_lists_read(file, &l));
    hf_lists_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_lists),
        cmocka_unit_test(escapes),
        cmocka_unit_test(left_alone),
        cmocka_unit_test(cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
