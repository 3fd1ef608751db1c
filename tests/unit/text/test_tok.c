/* The tokenizer's contract beyond the recorded answers: questions, broken text, broken files, memory
   that runs out, words that are very long, streams. */
#include "test.h"

#include <stdio.h>

#include "base/clock.h"
#include "text/detok.h"
#include "tok_json.h"

/* Byte-level: 256 bytes would be long, so just these; every letter of the tests is there. */
static const char tiny[] =
    "{\"added_tokens\":[{" TOK_SPECIAL ",\"id\":9,\"content\":\"<s>\"},"
    "{" TOK_SPECIAL ",\"id\":10,\"content\":\"</s>\"},{" TOK_PLAIN
    ",\"id\":11,\"content\":\"tool\"}],"
    "\"pre_tokenizer\":" TOK_BYTE_LEVEL ",\"decoder\":" TOK_BYTE_LEVEL ","
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<"
    "s>\"}},"
    "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"ids\":[9]}}},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\\u0120\":2,\"ab\":3,\"\\u0120ab\":4,"
    "\"\\u00e4\":5,"
    "\"\\u00bd\":6,\"\\u0142\":7,\"aa\":8},\"merges\":[\"a b\",[\"\\u0120\",\"ab\"],\"a a\"]}}";
static const char config[] = "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},"
                             "\"model_max_length\":1000000000000000019884624838656}";

static tok *open_text(const char *json)
{
    tok *t = NULL;
    cairn_diag dg = {0};

    if (tok_open_hf(str_of(json), str_of(config), "tiny", &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    return t;
}

static void check(const tok *t, cairn_str s, uint32_t flags, const int32_t *want, size_t n)
{
    buf ids = {.tag = MEM_TEXT};

    assert_ok(tok_encode(t, s, flags, &ids, NULL));
    assert_int_equal(ids.len, n * sizeof *want);
    if (n) assert_memory_equal(ids.ptr, want, ids.len);
    buf_deinit(&ids);
}
#define IDS(...) (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

static void encodes(void **state)
{
    tok *t = open_text(tiny);

    (void)state;
    check(t, STR_LIT("ab ab"), 0, IDS(3, 4));
    check(t, STR_LIT("ab ab"), TOK_ADD_SPECIAL, IDS(9, 3, 4));
    check(t, STR_LIT("a<s>a"), TOK_PARSE_SPECIAL, IDS(0, 9, 0));
    check(t, STR_LIT("a<s>a"), 0, IDS(0, 0));      /* no bytes for < s > here */
    check(t, STR_LIT("atoola"), 0, IDS(0, 11, 0)); /* not special: always */
    check(t, STR_LIT(""), TOK_ADD_SPECIAL, IDS(9));
    tok_close(t);
}

static void answers_questions(void **state)
{
    tok *t = open_text(tiny);
    tok_special s = tok_specials(t);

    (void)state;
    assert_int_equal(tok_vocab(t), 12);
    assert_int_equal(s.bos, 9);
    assert_int_equal(s.eos, 10);
    assert_int_equal(s.unk, -1);
    assert_true(s.add_bos && !s.add_eos);
    assert_int_equal(tok_find(t, STR_LIT("\u0120ab")), 4);
    assert_int_equal(tok_find(t, STR_LIT("</s>")), 10);
    assert_int_equal(tok_find(t, STR_LIT(" ab")), -1);
    assert_int_equal(tok_find(t, STR_LIT("\xff")), -1);
    assert_str(tok_piece(t, 4), " ab");
    assert_str(tok_piece(t, 5), "\xe4");
    assert_int_equal(tok_piece(t, 99).len, 0);
    assert_int_equal(tok_piece(t, -1).len, 0);
    assert_true(tok_is_eos(t, 10) && !tok_is_eos(t, 9) && !tok_is_eos(t, -1));
    assert_ok(tok_add_eos(t, 11));
    assert_true(tok_is_eos(t, 11));
    assert_int_equal(tok_add_eos(t, 12), CAIRN_E_ARG);
    tok_close(t);
}

/* Malformed parts count as U+FFFD each; of its bytes this vocabulary has the last, as id 6. */
static void broken_text(void **state)
{
    tok *t = open_text(tiny);

    (void)state;
    check(t,
          STR_LIT("a\xff\xfe"
                  "b"),
          0, IDS(0, 6, 6, 1));
    check(t, STR_LIT("\xe4\xbd"), 0, IDS(6));
    check(t, STR_LIT("ab\xf0\x9f"), 0, IDS(3, 6));
    tok_close(t);
}

static void decodes(void **state)
{
    tok *t = open_text(tiny);
    buf out = {.tag = MEM_TEXT};
    cairn_diag dg = {0};
    const int32_t ids[] = {9, 3, 5, 6, 7, 5, 4, 10}; /* 5 6 7: one character in three ids */

    (void)state;
    assert_ok(tok_decode(t, ids, 8, false, &out, &dg));
    assert_str(buf_view(&out), "ab\xe4\xbd\xa0\xef\xbf\xbd ab");
    buf_clear(&out);
    assert_ok(tok_decode(t, ids, 8, true, &out, &dg));
    assert_str(buf_view(&out), "<s>ab\xe4\xbd\xa0\xef\xbf\xbd ab</s>");
    assert_int_equal(tok_decode(t, (const int32_t[]){3, -1}, 2, true, &out, &dg), CAIRN_E_ARG);
    assert_says(&dg, "id -1 at place 1");
    buf_clear(&out);
    assert_ok(tok_decode(t, NULL, 0, true, &out, &dg));
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
    tok_close(t);
}

static void streams_whole_characters(void **state)
{
    tok *t = open_text(tiny);
    detok *d;
    cairn_str s;

    (void)state;
    assert_ok(detok_new(t, false, &d));
    assert_ok(detok_feed(d, 3, &s));
    assert_str(s, "ab");
    assert_ok(detok_feed(d, 5, &s));
    assert_int_equal(s.len, 0);
    assert_ok(detok_feed(d, 6, &s));
    assert_int_equal(s.len, 0);
    assert_ok(detok_feed(d, 7, &s));
    assert_str(s, "\xe4\xbd\xa0");
    assert_ok(detok_feed(d, 5, &s));
    assert_ok(detok_end(d, &s));
    assert_str(s, "\xef\xbf\xbd");
    assert_int_equal(detok_feed(d, -1, &s), CAIRN_E_ARG);
    detok_free(d);
    tok_close(t);
}

/* Ids of a padded vocabulary, and those that its file skips: no text, and the decoder never sees them:
   the bytes around them are one character, words have one space between them, runs go on.  What
   `tokenizers` answers. */
static void ids_without_a_piece(void **state)
{
    static const struct {
        const char *file;
        int32_t ids[6];
        size_t n;
        const char *text;
    } cases[] = {
        {tiny, {12, 5, 200000, 6, INT32_MAX, 7}, 6, "\xe4\xbd\xa0"},
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"b\":4}}}",
         {1, 0, 2, 4, 3, 9},
         6,
         "a b"},
        {"{\"decoder\":{\"type\":\"ByteFallback\"},\"model\":{\"type\":\"BPE\",\"merges\":[],"
         "\"byte_fallback\":true,\"vocab\":{\"<0xC3>\":0,\"<0xA9>\":3}}}",
         {7, 0, 1, 2, 7, 3},
         6,
         "\xc3\xa9"},
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        tok *t = open_text(cases[k].file);
        detok *d;
        cairn_str s;
        buf whole = {.tag = MEM_TEXT}, parts = {.tag = MEM_TEXT};
        assert_ok(tok_decode(t, cases[k].ids, cases[k].n, false, &whole, NULL));
        assert_str(buf_view(&whole), cases[k].text);
        assert_ok(detok_new(t, false, &d));
        for (size_t i = 0; i < cases[k].n; i++) {
            assert_ok(detok_feed(d, cases[k].ids[i], &s));
            buf_str(&parts, s);
        }
        assert_ok(detok_end(d, &s));
        buf_str(&parts, s);
        assert_str(buf_view(&parts), cases[k].text);
        assert_int_equal(tok_piece(t, 200000).len, 0);
        detok_free(d);
        buf_deinit(&whole);
        buf_deinit(&parts);
        tok_close(t);
    }
}

/* A byte-fallback run that is not UTF-8 is judged whole: one U+FFFD a byte. */
static void byte_runs(void **state)
{
    static const char json[] =
        "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
        "\"String\":\"_\"},"
        "\"content\":\" "
        "\"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","
        "\"start\":1,\"stop\":0}]},\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"merges\":[]"
        ",\"vocab\":"
        "{\"_\":0,\"a\":1,\"<0xE4>\":2,\"<0xBD>\":3,\"<0xA0>\":4}}}";
    tok *t = open_text(json);
    buf out = {.tag = MEM_TEXT};

    (void)state;
    check(t, STR_LIT("a\xe4\xbd\xa0"), 0, IDS(1, 2, 3, 4));
    assert_ok(
        tok_decode(t, (const int32_t[]){0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 2}, 11, true, &out, NULL));
    assert_str(buf_view(&out), " a\xe4\xbd\xa0"
                               "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    buf_deinit(&out);
    tok_close(t);
}

static void long_words(void **state)
{
    tok *t = open_text(tiny);
    buf s = {.tag = MEM_TEXT}, ids = {.tag = MEM_TEXT};
    double start = clock_s();

    (void)state;
    for (int i = 0; i < 1 << 20; i++) buf_byte(&s, 'a');
    assert_ok(tok_encode(t, buf_view(&s), 0, &ids, NULL));
    assert_int_equal(ids.len, (1 << 19) * sizeof(int32_t));
    assert_true(clock_s() - start < 20);
    buf_deinit(&s);
    buf_deinit(&ids);
    tok_close(t);
}

/* An encoding that may stop has the first ids of the whole one, enough of them, and few more. */
static void stops_with_enough(void **state)
{
    enum { REPEATS = 20000, SLACK = 200 }; /* words are looked up in batches */
    tok *t = open_text(tiny);
    buf s = {.tag = MEM_TEXT}, all = {.tag = MEM_TEXT};

    (void)state;
    for (int i = 0; i < REPEATS; i++) buf_puts(&s, i % 100 ? " ab aab" : "<s>tool");
    assert_ok(tok_encode(t, buf_view(&s), TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, &all, NULL));
    for (size_t enough = 1; enough < REPEATS; enough *= 7) {
        buf ids = {.tag = MEM_TEXT};
        assert_ok(tok_encode_some(t, buf_view(&s), TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, enough,
                                  &ids, NULL));
        assert_in_range(ids.len / sizeof(int32_t), enough, enough + SLACK);
        assert_memory_equal(ids.ptr, all.ptr, ids.len); /* nothing is put behind here */
        buf_deinit(&ids);
    }
    assert_int_equal(tok_n_after(t), 0);
    buf_deinit(&all);
    buf_deinit(&s);
    tok_close(t);
}

static void deep_sequences(void **state)
{
    buf b = {.tag = MEM_TEXT};
    tok *t = NULL;
    cairn_diag dg = {0};

    (void)state;
    buf_puts(&b, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}},\"normalizer\":");
    for (int i = 0; i < 20; i++) buf_puts(&b, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 20; i++) buf_puts(&b, "]}");
    buf_puts(&b, "}");
    assert_int_equal(tok_open_hf(buf_view(&b), (cairn_str){0}, "f", &t, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "nested");
    buf_deinit(&b);
}

static cairn_status all_of_it(void *ctx)
{
    tok *t = NULL;
    buf ids, out;
    detok *d = NULL;
    cairn_str s;
    cairn_status st;

    (void)ctx;
    buf_init(&ids, MEM_TEXT);
    buf_init(&out, MEM_TEXT);
    TRY_GOTO(tok_open_hf(str_of(tiny), str_of(config), "tiny", &t, NULL), out);
    TRY_GOTO(tok_encode(t, STR_LIT("<s>ab \xff ab<s>"), 3, &ids, NULL), out);
    TRY_GOTO(tok_decode(t, (const int32_t *)(const void *)ids.ptr, ids.len / 4, true, &out, NULL),
             out);
    TRY_GOTO(detok_new(t, false, &d), out);
    TRY_GOTO(detok_feed(d, 5, &s), out);
    TRY_GOTO(detok_end(d, &s), out);
out:
    detok_free(d);
    tok_close(t);
    buf_deinit(&ids);
    buf_deinit(&out);
    return st;
}

static void memory_runs_out(void **state)
{
    (void)state;
    assert_true(fault_loop(all_of_it, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes),
        cmocka_unit_test(answers_questions),
        cmocka_unit_test(broken_text),
        cmocka_unit_test(decodes),
        cmocka_unit_test(byte_runs),
        cmocka_unit_test(streams_whole_characters),
        cmocka_unit_test(ids_without_a_piece),
        cmocka_unit_test(long_words),
        cmocka_unit_test(stops_with_enough),
        cmocka_unit_test(deep_sequences),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
