/* The quick reader of a tokenizer.json's pieces and merges: what it takes, and what it leaves to the
   parser. */
#include "test.h"

#include "base/str.h"
#include "text/tok_hf.h"

#include "text/tok_priv.h"

static void check_piece(const hf_lists *l, uint32_t id, cairn_str want)
{
    const hf_piece *p = (const hf_piece *)(const void *)l->piece.ptr + id;
    const cairn_str got = hf_lists_text(l, p);
    uint32_t found;

    if (!p->at || !str_eq(got, want))
        fail_msg("found \"%.*s\", expected \"%.*s\"", STR_ARG(got), STR_ARG(want));
    assert_true(map_get(&l->by_text, want, &found) && found == id);
}

static void check_merge(const hf_lists *l, size_t i, bpe_merge want)
{
    const bpe_merge *m = (const bpe_merge *)(const void *)l->merge.ptr + i;

    assert_int_equal(m->l, want.l);
    assert_int_equal(m->r, want.r);
    assert_int_equal(m->into, want.into);
}

/* Ids in no order, one far off; merges of short and long pieces, in the order of what they make and not. */
static void same_lists(void **state)
{
#define LONG "longer than sixteen bytes"
    static const char *const files[] = {
        "{\"a\":[1,{\"model\":{}}],\"model\":{\"vocab\":{\"x\":0,\"\xC3\xA9\":123456,\"\":12,"
        "\"x\xC3\xA9\":3,\"" LONG "\":5,\"" LONG "x\":4,\"q\\\"\":7,\"q\\\"x\":2},"
        "\"type\":\"BPE\",\"merges\":[\"x \xC3\xA9\"]},\"b\":\"}\"}",
        "{\"a\":[1,{\"model\":{}}],\"model\":{\"vocab\":{\"\\u0078\":0,\"\\u00E9\":123456,\"\":12,"
        "\"x\xC3\xA9\":3,\"" LONG "\":5,\"" LONG "x\":4,\"q\\\"\":7,\"q\\u0022x\":2},"
        "\"type\":\"BPE\",\"merges\":[[\"x\",\"\\u00e9\"],[\"" LONG "\",\"x\"],[\"q\\\"\",\"x\"]]},"
        "\"b\":\"}\"}",
        " { \"a\":[1,{\"model\":{}}],\"model\":{ \"vocab\" :\n{\n            \"x\" : 0,\r\n\t"
        "\"\xC3\xA9\"\n:\n123456 , \"\" : 12 ,\"x\\u00e9\":3,\"" LONG "\":5 , \"" LONG "x\":4,"
        "\"q\\\"\":7,\"q\\\"x\":2 } ,\"type\":\"BPE\",\"merges\":  [ [ \"x\" , \"\xC3\xA9\" ] "
        ",\n                                  [ \"" LONG
        "\" , \"x\" ] ,[\"q\\u0022\",\"\\u0078\"]]    }"
        ",\"b\":\"}\"}  ",
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        hf_lists l;
        if (hf_lists_read(str_of(files[i]), &l) != CAIRN_OK) fail_msg("not taken: %s", files[i]);
        const hf_piece *p = (const hf_piece *)(const void *)l.piece.ptr;
        assert_int_equal(l.n_piece, 123457);
        assert_int_equal(l.by_text.n, 8);
        assert_int_equal(l.merge.len, (i ? 3 : 1) * sizeof(bpe_merge));
        check_piece(&l, 0, STR_LIT("x"));
        check_piece(&l, 123456, STR_LIT("\xC3\xA9"));
        check_piece(&l, 12, STR_LIT(""));
        check_piece(&l, 4, STR_LIT(LONG "x"));
        assert_int_equal(p[11].at, 0);
        check_merge(&l, 0, (bpe_merge){0, 123456, 3});
        assert_int_equal(p[3].left, 1);
        assert_int_equal(p[5].left, 0);
        if (i) {
            check_merge(&l, 1, (bpe_merge){5, 0, 4});
            check_merge(&l, 2, (bpe_merge){7, 0, 2});
            assert_int_equal(p[4].left, sizeof LONG - 1);
        }
        if (i < 2)
            assert_string_equal(l.rest.ptr, "{\"a\":[1,{\"model\":{}}],\"model\":{\"vocab\":{},"
                                            "\"type\":\"BPE\",\"merges\":[]},\"b\":\"}\"}");
        hf_lists_free(&l);
    }
    assert_int_equal(mem_used_all(), 0);
}

/* Two long ones of one length that differ in a byte, at any place of either half: the guess from the merge
   before is held against all of them. */
static void guesses(void **state)
{
    enum { LEFT = 17, RIGHT = 21, SHORT = 9 };

    (void)state;
    for (size_t len = SHORT; len <= LEFT; len += LEFT - SHORT)
        for (size_t at = 0; at < len + RIGHT; at++) {
            char text[2][LEFT + RIGHT + 1] = {{0}};
            buf file;
            hf_lists l;
            buf_init(&file, MEM_TEXT);
            for (int k = 0; k < 2; k++) memset(text[k], 'a', len + RIGHT);
            text[1][at] = 'b';
            const int cut = (int)len;
            buf_printf(&file, "{\"model\":{\"vocab\":{\"%.*s\":0,\"%s\":1,", cut, text[0],
                       text[0] + len);
            if (at < len)
                buf_printf(&file, "\"%.*s\":2,", cut, text[1]);
            else
                buf_printf(&file, "\"%s\":2,", text[1] + len);
            buf_printf(&file, "\"%s\":3,\"%s\":4},\"merges\":[\"%.*s %s\",\"%.*s %s\"]}}", text[1],
                       text[0], cut, text[0], text[0] + len, cut, text[1], text[1] + len);
            assert_ok(hf_lists_read(buf_view(&file), &l));
            check_merge(&l, 0, (bpe_merge){0, 1, 4});
            check_merge(&l, 1, at < len ? (bpe_merge){2, 1, 3} : (bpe_merge){0, 2, 3});
            hf_lists_free(&l);
            buf_deinit(&file);
        }
}

static void escapes(void **state)
{
    hf_lists l;

    (void)state;
    assert_ok(
        hf_lists_read(STR_LIT("{\"model\":{\"v\\u006fcab\":{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000"
                              "\\uD83D\\ude00 and plain to the end\":1}}}"),
                      &l));
    check_piece(&l, 1, STR_LIT("\"\\/\b\f\n\r\t\0\xF0\x9F\x98\x80 and plain to the end"));
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
        "{\"vocab\":{\"a\":4194304}}",
        "{\"vocab\":{\"a\":0,\"b\":0}}",
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
        "{\"merges\":[]}",
        "{\"merges\":[],\"vocab\":{\"a\":0}}",
        "{\"vocab\":{},\"merges\":[\"a a\"]}",
        "{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}",
        "{\"vocab\":{\"a\":0,\"aa\":1},\"merges\":[\"a b\"]}",
        "{\"vocab\":{\"a\":0,\"\":1},\"merges\":[\"a \"]}",
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
                "pieces\":2,\"\\n\":3,\"a\":4,\"b\":5,\"b\\n\":6},\"merges\":[[\"a\",\"b\"],"
                "[\"b\",\"\\n\"]]}}");
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

static tok *open_model(const char *model)
{
    cairn_diag dg = {0};
    tok *t = NULL;
    buf file;

    buf_init(&file, MEM_TEXT);
    buf_printf(&file,
               "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
               "\"\u2581\"},\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"},"
               "\"content\":\" \"},\"model\":{\"type\":\"BPE\",%s}}",
               model);
    if (tok_open_hf(buf_view(&file), (cairn_str){0}, "f", &t, &dg) != CAIRN_OK)
        fail_msg("%s: %s", dg.message, file.ptr);
    buf_deinit(&file);
    return t;
}

/* Merges that stand before the pieces are the parser's: what it finds is what the lists say, and where words
   may be cut is the same from whole pieces as from their seams. */
static void as_the_parser(void **state)
{
#define SP "\u2581"
#define VOCAB                                                                                      \
    "\"vocab\":{\"" SP "\":0,\"" SP SP "\":1,\"" SP SP SP "\":2,\"a\":3,\"b\":4,\"ab\":5,\"" SP    \
    "ab\":6,"                                                                                      \
    "\"\u00e9\":7,\"a\u00e9\":8,\"ba\u00e9\":9,\"\u4e16\u754c\":10,\"unmerged\":11,\"" SP SP       \
    "a\":12,"                                                                                      \
    "\"an_even_longer_piece" SP "of_words\":13,\"an_even_longer_piece\":14,\"" SP "of_words\":15}"
#define MERGES(more)                                                                               \
    "\"merges\":[\"" SP " " SP "\",\"" SP SP " " SP "\",\"" SP " " SP SP "\",\"a b\",\"" SP        \
    " ab\",\"a \u00e9\",\"b a\u00e9\",\"an_even_longer_piece " SP "of_words\"" more "]"
    static const char *const model[][2] = {
        {VOCAB "," MERGES(""), MERGES("") "," VOCAB},
        {VOCAB "," MERGES(",\"" SP SP " a\""), MERGES(",\"" SP SP " a\"") "," VOCAB},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tok *t[] = {open_model(model[i][0]), open_model(model[i][1])};
        const bpe *a = &t[0]->bpe, *b = &t[1]->bpe;
        assert_non_null(t[0]->texts);
        assert_null(t[1]->texts); /* else both were read by the lists */
        assert_int_equal(a->list.len, b->list.len);
        assert_memory_equal(a->list.ptr, b->list.ptr, a->list.len);
        assert_memory_equal(a->known, b->known, 0x110000 / 8);
        assert_memory_equal(a->pairs, b->pairs, (1 << 20) / 8);
        assert_memory_equal(a->cuts, b->cuts, 128 * sizeof *a->cuts);
        assert_int_equal(a->runs, b->runs);
        assert_int_equal(a->last_run, b->last_run);
        assert_int_equal(a->first_mixed, b->first_mixed);
        for (int32_t id = 0; id < t[0]->n; id++) assert_true(str_eq(t[0]->out[id], t[1]->out[id]));
        tok_close(t[0]);
        tok_close(t[1]);
    }
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_lists), cmocka_unit_test(guesses),   cmocka_unit_test(escapes),
        cmocka_unit_test(left_alone), cmocka_unit_test(cut_short), cmocka_unit_test(as_the_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
