/* tokenizer.json files that no trainer would write: taken as the reference takes them, or refused by the
   field's name. */
#include "test.h"

#include "text/tok.h"
#include "tok_json.h"

static tok *open_text(const char *json)
{
    tok *t = NULL;
    cairn_diag dg = {0};

    if (tok_open_hf(str_of(json), (cairn_str){0}, "odd", &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    return t;
}

/* What the reference (tokenizers 0.23) takes, odd as it is, and what it then answers. */
static void odd_files(void **state)
{
    static const struct {
        const char *json, *text;
        int32_t ids[8];
        size_t n;
        const char *decoded;
    } cases[] = {
        /* The reference's normal forms do not know U+09FE for a mark: the one behind it stays there. */
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"+\":0,\"\\u09fe\":1,\"\\u09cd\":2},\"merges\":["
         "]},"
         "\"normalizer\":{\"type\":\"NFC\"}}",
         "+\u09fe\u09cd",
         {0, 1, 2},
         3,
         "+ \u09fe \u09cd"},
        /* Places before threes of digits divide, the end of the last three does not. */
        {"{\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"/\",\"merges\":[],\"vocab\":"
         "{\"1\":0,\"1/\":1,\"x\":2,\"x/\":3}},\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":"
         "\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":\"(?=(\\\\d{3})+(?!\\\\d))\"}}}",
         "11x1111x",
         {0, 0, 2, 1, 0, 0, 0, 3},
         8,
         "1 1/ x x/"},
        /* What is left when the normalizer has dropped the start does not begin the text. */
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{\"x\":0,"
         "\"\u2581x\":1,"
         "\"\u2581y\":2,\"<unk>\":3}},\"normalizer\":{\"type\":\"Strip\",\"strip_left\":true,"
         "\"strip_right\":true},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
         "\"\u2581\","
         "\"prepend_scheme\":\"first\",\"split\":true}}",
         " x y",
         {0, 2},
         2,
         "x \u2581x \u2581y <unk>"},
        /* An empty match divides what is around it, joined with either or not. */
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{\"x\":0,\"123\":1,"
         "\"x123\":2,\"<unk>\":3}},\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":"
         "\"MergedWithPrevious\","
         "\"invert\":true,\"pattern\":{\"Regex\":\"(?=(\\\\d{3})+(?!\\\\d))\"}}}",
         "x123",
         {0, 1},
         2,
         "x 123 x123 <unk>"},
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{\"x\":0,\"123\":1,"
         "\"x123\":2,\"<unk>\":3}},\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":"
         "\"Contiguous\","
         "\"invert\":true,\"pattern\":{\"Regex\":\"(?=(\\\\d{3})+(?!\\\\d))\"}}}",
         "x123",
         {0, 1},
         2,
         "x 123 x123 <unk>"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN
         ",\"id\":2,\"content\":\"<s>\",\"special\":true,\"normalized\":false},{" TOK_PLAIN
         ",\"id\":3,"
         "\"content\":\"<s>\",\"special\":false,\"normalized\":false}]}",
         "a<s>b",
         {0, 2, 1},
         3,
         "a b <s>"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":2,\"content\":\"\"}]}",
         "ab",
         {0, 1},
         2,
         "a b"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":2,\"content\":\"a\",\"special\":true,\"normalized\":false}]}",
         "aba",
         {0, 1, 0},
         3,
         "a b"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"b\"}}",
         "aa",
         {1, 0, 1, 0, 1},
         5,
         "a b"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\"},\"content\":\"b\"}}",
         "aa",
         {1, 0, 1, 0, 1},
         5,
         "a b"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\"},\"behavior\":\"Removed\","
         "\"invert\":true}}",
         "ab",
         {0},
         0,
         "a b"},
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\"},\"behavior\":"
         "\"Isolated\",\"invert\":false},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,"
         "\"ab\":2},\"merges\":[\"a b\"]}}",
         "ab",
         {0, 1},
         2,
         "a b ab"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"byte_fallback\":"
         "null,\"fuse_unk\":null}}",
         "ab",
         {0, 1},
         2,
         "a b"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\":2},\"merges\":[]}}",
         "ab",
         {0, 1},
         2,
         "a b "},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.0],[\"\",-1.0]],\"unk_id\":0}}",
         "aa",
         {0},
         1,
         "a "},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.0],[\"b\",-1.0],[\"b\",-2.0]],\"unk_"
         "id\":0}}",
         "ab",
         {0, 2},
         2,
         "a b b"},
        {"{\"model\":{\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}", "ab", {0, 1}, 2, "a b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tok *t = open_text(cases[i].json);
        buf ids = {.tag = MEM_TEXT}, out = {.tag = MEM_TEXT};
        assert_ok(tok_encode(t, str_of(cases[i].text), TOK_PARSE_SPECIAL, &ids, NULL));
        assert_int_equal(ids.len, cases[i].n * sizeof *cases[i].ids);
        assert_memory_equal(ids.ptr, cases[i].ids, ids.len);
        assert_ok(tok_decode(t, (const int32_t[]){0, 1, 2, 3, 4}, 5, true, &out, NULL));
        assert_str(buf_view(&out), cases[i].decoded);
        buf_deinit(&ids);
        buf_deinit(&out);
        tok_close(t);
    }
}

static void bad_files(void **state)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{", "f: JSON"},
        {"[]", "f: found an array; expected an object"},
        {"{}", "f: model: found nothing; expected an object"},
        {"{\"model\":5}", "f: model: found 5; expected an object"},
        {"{\"model\":{\"type\":\"Magic\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}",
         "f: model of type \"Magic\""},
        {"{\"model\":{\"type\":5,\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}",
         "f: model.type: found 5; expected the name of a kind"},
        {"{\"model\":{\"type\":null,\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}",
         "f: model.type: found null; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}",
         "f: model.vocab: found no piece; expected some"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":[],\"merges\":[]}}",
         "f: model.vocab: found an array of 0; expected pieces and ids"},
        {"{\"model\":{\"type\":\"BPE\",\"merges\":[]}}", "f: model.vocab: found nothing; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}",
         "f: model.vocab.\"a\": found -1; expected an id from 0 to "},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999},\"merges\":[]}}",
         "f: model.vocab.\"a\": found 99999999; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"x\"},\"merges\":[]}}",
         "f: model.vocab.\"a\": found \"x\"; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1.5},\"merges\":[]}}",
         "f: model.vocab.\"a\": found 1.5; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":9223372036854775808},\"merges\":[]}}",
         "f: model.vocab.\"a\": found 9223372036854775808; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":1},\"merges\":[]}}",
         "f: model.vocab: found \"b\" and \"c\" with id 1; expected an id for each"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1}}}",
         "f: model.merges: found nothing; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":{}}}",
         "f: model.merges: found an object; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a a\"]}}",
         "f: model.merges: found merge 0 \"a\" \"a\"; expected both and what they make to be in "
         "the"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a\"]}}",
         "f: model.merges[0]: found \"a\"; expected two pieces"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b c\"]}}",
         "f: model.merges[0]: found \"a b c\"; expected two"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[5]}}",
         "f: model.merges[0]: found 5; expected two pieces"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[[\"h\"]]}}",
         "f: model.merges[0]: found an array of 1; expected two pieces"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[[5,\"a\"]]}}",
         "f: model.merges[0]: found an array of 2; expected two pieces"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"dropout\":0.1}}",
         "dropout"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"byte_fallback\":"
         "\"x\"}}",
         "f: model.byte_fallback: found \"x\"; expected true or false"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"fuse_unk\":5}}",
         "f: model.fuse_unk: found 5; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"ignore_merges\":"
         "[]}}",
         "f: model.ignore_merges: found an array of 0; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"continuing_"
         "subword_prefix\":5}}",
         "f: model.continuing_subword_prefix: found 5; expected a text"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"end_of_word_"
         "suffix\":5}}",
         "f: model.end_of_word_suffix: found 5; expected a text"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"unk_token\":"
         "\"nope\"}}",
         "f: model.unk_token: found \"nope\"; expected a token of the vocabulary"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[],\"unk_token\":5}}",
         "f: model.unk_token: found 5; expected a text"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}",
         "f: model.vocab[0]: found an array of 1; expected [piece, score]"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0],[\"b\",\"x\"]]}}",
         "f: model.vocab[1]: found an array of 2; expected [piece"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}",
         "f: model.vocab: found an object; expected a list of pairs"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "f: model.vocab: found no piece"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"unk_id\":9}}", "unk_id"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0]],\"byte_fallback\":\"x\"}}",
         "f: model.byte_fallback: found \"x\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "{}}",
         "f: added_tokens: found an object; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "null}",
         "f: added_tokens: found null; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[5]}",
         "f: added_tokens[0]: found 5; expected an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":3,\"content\":5}]}",
         "f: added_tokens.content: found 5; expected a text"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":3}]}",
         "f: added_tokens.content: found nothing; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":1.5,\"content\":\"x\"}]}",
         "f: added_tokens.id: found 1.5; expected an id from 0"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{\"content\":\"x\"}]}",
         "f: added_tokens.id: found nothing; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":3,\"content\":\"x\",\"special\":5}]}",
         "f: added_tokens.special: found 5; expected true or false"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":3,\"content\":\"x\",\"lstrip\":\"x\"}]}",
         "f: added_tokens.lstrip: found \"x\"; expected"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"added_tokens\":"
         "[{" TOK_PLAIN ",\"id\":0,\"content\":\"b\"}]}",
         "f: id 0 is both"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":"
         "5}",
         "f: normalizer: found 5; expected an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{}"
         "}",
         "f: normalizer.type: found nothing; expected the name of a kind"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Nmx\"}}",
         "\"Nmx\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Sequence\"}}",
         "f: normalizer.normalizers: found nothing; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Sequence\",\"normalizers\":[null]}}",
         "f: normalizer: found null; expected an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"}}}",
         "f: a step.content: found nothing; expected a text"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"normalizer\":{"
         "\"type\":\"Prepend\",\"prepend\":5}}",
         "f: a step.prepend: found 5; expected a text"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":5}",
         "f: pre_tokenizer: found 5; expected an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":{\"type\":\"X\"}}",
         "\"X\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":5}}",
         "f: pre_tokenizer.pretokenizers: found 5; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false,"
         "\"pattern\":{\"Regex\":\"(\"}}}",
         "pattern \"(\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"decoder\":5}",
         "f: decoder: found 5; expected an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"decoder\":{"
         "\"type\":\"CTX\"}}",
         "\"CTX\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"decoder\":{"
         "\"type\":\"Sequence\"}}",
         "f: decoder.decoders: found nothing; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"post_"
         "processor\":\"x\"}",
         "f: post_processor: found \"x\"; expected an object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"post_"
         "processor\":{\"type\":\"Y\"}}",
         "\"Y\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"post_"
         "processor\":{\"type\":\"Sequence\"}}",
         "f: post_processor.processors: found nothing; expected a list"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":{\"type\":\"Metaspace\"}}",
         "f: pre_tokenizer.replacement: found nothing; expected one character"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"pre_"
         "tokenizer\":{\"type\":\"Digits\"}}",
         "f: pre_tokenizer.individual_digits: found nothing; expected true or false"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"decoder\":{"
         "\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"}}",
         "f: decoder.prepend_scheme: found \"last\"; expected always never first"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"truncation\":[]"
         "}",
         "f: truncation: found an array of 0; expected an object or null"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"truncation\":{"
         "\"max_length\":-1}}",
         "f: truncation.max_length: found -1; expected a whole number of 0 or more"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"padding\":{"
         "\"strategy\":\"Longest\"}}",
         "f: padding.strategy: found \"Longest\"; expected BatchLongest or {\"Fixed\": a number}"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},\"version\":\"2."
         "0\"}",
         "f: version: found \"2.0\"; expected 1.0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tok *t = NULL;
        cairn_diag dg = {0};
        assert_int_not_equal(tok_open_hf(str_of(cases[i].json), (cairn_str){0}, "f", &t, &dg),
                             CAIRN_OK);
        if (!strstr(dg.message, cases[i].says)) fail_msg("case %zu: %s", i, dg.message);
        assert_null(t);
    }
    assert_int_equal(mem_used_all(), 0);
}

/* A Metaspace of scheme "first" asks the normalizer whether a word begins the text.  The ids are those of
   tokenizers 0.23. */
static void replaced_start(void **state)
{
#define RUN   "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" *[?!]+\"},\"content\":\"-\"}"
#define PAIR  "{\"type\":\"Replace\",\"pattern\":{\"String\":\"?!\"},\"content\":\"-\"}"
#define ACUTE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"e\\u0301\"},\"content\":\"-\"}"
    static const struct {
        const char *steps, *text;
        int32_t first; /* 0: -x, 1: U+2581 -x */
    } cases[] = {
        {RUN, "?!x y", 0},
        {RUN, "?x y", 1},
        {RUN, " ?x y", 0},
        {"{\"type\":\"Prepend\",\"prepend\":\"?\"}," PAIR, "!x y", 1},
        {"{\"type\":\"NFD\"}," ACUTE, "\u00e9x y", 1},
        {"{\"type\":\"NFD\"}," ACUTE, "e\u0301x y", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        buf json, ids;
        buf_init(&json, MEM_TEXT);
        buf_init(&ids, MEM_TEXT);
        buf_printf(&json,
                   "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{\"-x\":0,"
                   "\"\u2581-x\":1,\"\u2581y\":2,\"<unk>\":3}},\"normalizer\":{\"type\":"
                   "\"Sequence\",\"normalizers\":[%s]},\"pre_tokenizer\":{\"type\":\"Metaspace\","
                   "\"replacement\":\"\u2581\",\"prepend_scheme\":\"first\",\"split\":true}}",
                   cases[i].steps);
        tok *t = open_text(json.ptr);
        assert_ok(tok_encode(t, str_of(cases[i].text), 0, &ids, NULL));
        const int32_t want[] = {cases[i].first, 2};
        assert_int_equal(ids.len, sizeof want);
        assert_memory_equal(ids.ptr, want, sizeof want);
        tok_close(t);
        buf_deinit(&ids);
        buf_deinit(&json);
    }
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_files),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(replaced_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
