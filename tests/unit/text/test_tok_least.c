/* The lower bound of a text's ids: sound for what shrinks most, and of use for what is common. */
#include "test.h"

#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "text/tok.h"

static tok *open_data(const char *name)
{
    char path[100];
    buf text, json, config;
    json_doc *doc;
    tok *t = NULL;

    buf_init(&text, MEM_IO);
    buf_init(&json, MEM_TEXT);
    buf_init(&config, MEM_TEXT);
    snprintf(path, sizeof path, "tests/text/data/%s.json", name);
    assert_ok(file_read(path, (size_t)1 << 24, &text, NULL));
    assert_ok(json_parse(buf_view(&text), &doc, NULL));
    json_writer w = json_write(&json), w2 = json_write(&config);
    json_w_val(&w, json_get(json_root(doc), "tokenizer"));
    json_w_val(&w2, json_get(json_root(doc), "config"));
    assert_ok(tok_open_hf(buf_view(&json), buf_view(&config), name, &t, NULL));
    json_free(doc);
    buf_deinit(&text);
    buf_deinit(&json);
    buf_deinit(&config);
    return t;
}

static size_t encoded(const tok *t, cairn_str s)
{
    buf ids = {.tag = MEM_TEXT};

    assert_ok(tok_encode(t, s, TOK_PARSE_SPECIAL, &ids, NULL));
    const size_t n = ids.len / sizeof(int32_t);
    buf_deinit(&ids);
    return n;
}

/* Runs of what pieces, normalisers and added tokens swallow most of, and a piece again and again. */
static void test_sound(void **state)
{
    static const char *const files[] = {
        "bytes_deepseek3", "bytes_falcon",    "bytes_llama3",       "bytes_o200k",
        "bytes_qwen2",     "bytes_qwen35",    "bytes_roberta",      "bytes_smollm",
        "fallback_gemma",  "fallback_llama2", "metaspace_always",   "metaspace_first",
        "metaspace_never", "norm_nfd",        "norm_nfkd",          "pre_mix",
        "split_removed",   "suffix",          "suffix_fused",       "unigram",
        "unigram_bytes",   "wordlevel",       "split_previous_inv", "split_contiguous",
    };
    static const char *const parts[] = {
        "a",
        " ",
        "\n",
        "\t ",
        "e\xCC\x81",
        "\xEF\xBC\xA1",
        "\xE1\x84\x80\xE1\x85\xA1",
        "<s>  ",
        "  </s>",
        "=",
        "\xE6\xBC\xA2",
        "\xF0\x9F\x98\x80",
        "<|endoftext|> ",
        "the ",
        "<mask> ",
        "0",
    };
    static char text[20000];

    (void)state;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        tok *t = open_data(files[f]);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            const size_t n = strlen(parts[i]), many = sizeof text / n;
            for (size_t k = 0; k < many; k++) memcpy(text + k * n, parts[i], n);
            const cairn_str s = {text, many * n};
            if (tok_least_ids(t, s) > encoded(t, s)) fail_msg("%s: \"%s\"", files[f], parts[i]);
        }
        for (int32_t id = 0; id < tok_vocab(t); id++) {
            const cairn_str p = tok_piece(t, id);
            const size_t many = p.len ? 2000 / p.len + 1 : 0;
            for (size_t k = 0; k < many && many * p.len < sizeof text; k++)
                memcpy(text + k * p.len, p.ptr, p.len);
            const cairn_str s = {text, many * p.len};
            if (many * p.len >= sizeof text) continue;
            if (tok_least_ids(t, s) > encoded(t, s)) fail_msg("%s: id %d", files[f], id);
        }
        tok_close(t);
    }
}

static size_t least_of(const char *name, const char *s)
{
    tok *t = open_data(name);
    const size_t n = tok_least_ids(t, str_of(s));

    tok_close(t);
    return n;
}

static void test_use(void **state)
{
    static char a[100001], space[100001];

    (void)state;
    memset(a, 'a', sizeof a - 1);
    memset(space, ' ', sizeof space - 1);
    /* the longest pieces of these small vocabularies have some tens of bytes */
    assert_true(least_of("bytes_llama3", a) > 1000);
    assert_true(least_of("bytes_llama3", space) > 1000);
    assert_true(least_of("bytes_qwen2", a) > 1000); /* NFC: what is visible counts */
    assert_int_equal(least_of("bytes_qwen2", space), 0);
    assert_true(least_of("bytes_smollm", a) > 500); /* lacks control bytes */
    assert_true(least_of("fallback_gemma", a) > 1000);
    assert_true(least_of("fallback_llama2", a) > 1000);
    assert_int_equal(least_of("wordpiece", a), 0); /* one unknown word */
    assert_int_equal(least_of("wordlevel", a), 0);
    assert_int_equal(least_of("suffix_fused", a), 0);
    assert_int_equal(least_of("split_removed", a), 0);
    assert_int_equal(least_of("bytes_llama3", ""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sound), cmocka_unit_test(test_use)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
