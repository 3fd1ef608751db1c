/* tokenizer.json files made to take memory: each ends in a message that names the file and the field,
   and the memory stays bounded. */
#include "test.h"

#include <stdio.h>

#include "base/buf.h"
#include "text/tok.h"
#include "tok_json.h"

static const size_t most_bytes = (size_t)100 << 20;

/* WordLevel with one word and the normalizer, decoder and added tokens given (JSON, or NULL). */
static void put_file(buf *b, const char *normalizer, const char *decoder, const char *added)
{
    buf_init(b, MEM_TEXT);
    buf_printf(b,
               "{\"added_tokens\":%s,\"normalizer\":%s,\"decoder\":%s,\"model\":{\"type\":"
               "\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}}",
               added ? added : "[]", normalizer ? normalizer : "null", decoder ? decoder : "null");
    assert_ok(buf_status(b));
}

static cairn_status open_file(buf *b, tok **t, cairn_diag *dg)
{
    const cairn_status st = tok_open_hf(buf_view(b), (cairn_str){0}, "t.json", t, dg);
    assert_true(mem_used_all() < most_bytes);
    buf_deinit(b);
    return st;
}

static void put_replace(buf *b, const char *content, int n)
{
    for (int i = 0; i < n; i++)
        buf_printf(b, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"%s\"}",
                   i ? "," : "", content);
}

static void growth_is_bounded(void **state)
{
    (void)state;
    static const char *const content[] = {"aa", "aaaaaaaa"};
    for (size_t i = 0; i < 2; i++) {
        cairn_diag dg = {0};
        tok *t = NULL;
        buf file, steps, ids;
        buf_init(&steps, MEM_TEXT);
        buf_puts(&steps, "{\"type\":\"Sequence\",\"normalizers\":[");
        put_replace(&steps, content[i], 40);
        buf_puts(&steps, "]}");
        put_file(&file, steps.ptr, NULL, NULL);
        buf_deinit(&steps);
        assert_ok(open_file(&file, &t, &dg));
        buf_init(&ids, MEM_TEXT);
        assert_int_equal(tok_encode(t, STR_LIT("ba"), 0, &ids, &dg), CAIRN_E_LIMIT);
        assert_says(&dg, "found a text of 2 bytes that normalizer step ");
        assert_says(&dg, " makes longer than 16448; expected at most 32 times its length and 16384 "
                         "bytes more");
        assert_true(mem_used_all() < most_bytes);
        buf_deinit(&ids);
        tok_close(t);
    }
}

/* What a real file does stays: a few steps, each of which lengthens. */
static void real_growth_passes(void **state)
{
    (void)state;
    tok *t = NULL;
    cairn_diag dg = {0};
    buf file, ids;
    put_file(&file,
             "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"Prepend\","
             "\"prepend\":\"\u2581\"},{\"type\":\"ByteLevel\"}]}",
             NULL, NULL);
    assert_ok(open_file(&file, &t, &dg));
    char *text = mem_alloc(3 * 100000, MEM_TEXT);
    for (size_t i = 0; i < 100000; i++) memcpy(text + 3 * i, "\uFDFA", 3); /* 33 bytes in NFKC */
    buf_init(&ids, MEM_TEXT);
    if (tok_encode(t, (cairn_str){text, 300000}, 0, &ids, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    buf_deinit(&ids);
    mem_free(text);
    tok_close(t);
}

static void refused(const char *normalizer, const char *decoder, const char *added,
                    const char *says)
{
    tok *t = NULL;
    cairn_diag dg = {0};
    buf file;
    put_file(&file, normalizer, decoder, added);
    assert_int_equal(open_file(&file, &t, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "t.json: ");
    assert_says(&dg, says);
}

static void contents_are_short(void **state)
{
    (void)state;
    static char big[10 << 20], json[sizeof big + 200];
    memset(big, 'a', sizeof big - 1);
    (void)snprintf(json, sizeof json, "{\"type\":\"Prepend\",\"prepend\":\"%s\"}", big);
    refused(json, NULL, NULL, "`prepend` of a step: found 10485759 bytes; expected at most 1024");
    (void)snprintf(json, sizeof json,
                   "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"%s\"}", big);
    refused(json, NULL, NULL, "`content` of a step: found 10485759 bytes; expected at most 1024");
    refused(NULL, json, NULL, "`content` of a step: found 10485759 bytes; expected at most 1024");
}

static void decoders_are_bounded(void **state)
{
    (void)state;
    buf steps;
    buf_init(&steps, MEM_TEXT);
    buf_puts(&steps, "{\"type\":\"Sequence\",\"decoders\":[");
    put_replace(&steps, "aaaaaaaa", 40);
    buf_puts(&steps, "]}");
    refused(NULL, steps.ptr, NULL,
            "decoder: found piece 0 to grow to 262144 bytes; expected at most 65536");
    buf_deinit(&steps);
}

static void added_tokens_are_bounded(void **state)
{
    (void)state;
    static char text[60001];
    buf list;
    buf_init(&list, MEM_TEXT);
    buf_byte(&list, '[');
    for (int i = 0; i < 60; i++) {
        memset(text, 'a', sizeof text - 1);
        (void)snprintf(text, sizeof text, "%d", i + 10);
        text[2] = 'a';
        buf_printf(&list, "%s{" TOK_PLAIN ",\"id\":%d,\"content\":\"%s\"}", i ? "," : "", i + 1,
                   text);
    }
    buf_byte(&list, ']');
    refused(NULL, NULL, list.ptr, "added_tokens: found texts of over 2097152 bytes");
    buf_deinit(&list);
}

/* (a|aa)+$ on a long run of a: the search gives up, and the message says which pattern did. */
static void searches_are_bounded(void **state)
{
    (void)state;
    tok *t = NULL;
    cairn_diag dg = {0};
    buf file, ids;
    static char text[3000];
    put_file(&file,
             "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a|aa|aaa)+$\"},\"content\":\"x\"}",
             NULL, NULL);
    assert_ok(open_file(&file, &t, &dg));
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';
    buf_init(&ids, MEM_TEXT);
    assert_int_equal(tok_encode(t, (cairn_str){text, sizeof text}, 0, &ids, &dg), CAIRN_E_LIMIT);
    assert_says(&dg, "normalizer step 0: pattern \"(a|aa|aaa)+$\": found 3000 bytes");
    buf_deinit(&ids);
    tok_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_is_bounded),        cmocka_unit_test(real_growth_passes),
        cmocka_unit_test(contents_are_short),       cmocka_unit_test(decoders_are_bounded),
        cmocka_unit_test(added_tokens_are_bounded), cmocka_unit_test(searches_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
