/* SentencePiece models and tiktoken rank files against the answers of their own libraries
   (tools/golden/make_sp.py): ids of texts, texts of ids, whole and streamed. */
#include "test.h"

#include <dirent.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "text/detok.h"

static const char folder[] = "tests/text/models";

static void read_file(const char *name, const char *ext, buf *out)
{
    char path[512];
    cairn_diag dg = {0};

    buf_init(out, MEM_TEXT);
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ext);
    assert_ok(file_read(path, 1 << 24, out, &dg));
}

static int32_t *ids_of(json_val list, size_t *n)
{
    static int32_t ids[4096];
    json_iter it = json_each(list);
    json_val v;

    for (*n = 0; *n < 4096 && json_next(&it, &v); (*n)++) ids[*n] = (int32_t)json_int(v, -1);
    return ids;
}

static void check_ids(const char *name, const tok *t, cairn_str s, json_val list)
{
    size_t n;
    const int32_t *want = ids_of(list, &n);
    buf ids;

    buf_init(&ids, MEM_TEXT);
    assert_ok(tok_encode(t, s, 0, &ids, NULL));
    if (ids.len != n * sizeof *want || (n && memcmp(ids.ptr, want, ids.len) != 0))
        fail_msg("%s: \"%.100s\" has other ids", name, s.ptr);
    buf_deinit(&ids);
}

/* A text many times over, and another one. */
static void check_long(const char *name, const tok *t, json_val c)
{
    buf s;

    buf_init(&s, MEM_TEXT);
    for (int64_t i = 0; i < json_int(json_at(c, 1), 0); i++) buf_str(&s, json_str(json_at(c, 0)));
    buf_str(&s, json_str(json_at(c, 2)));
    assert_ok(buf_status(&s));
    check_ids(name, t, buf_view(&s), json_at(c, 3));
    buf_deinit(&s);
}

static void check_decode(const char *name, const tok *t, json_val c)
{
    size_t n;
    const int32_t *ids = ids_of(json_at(c, 0), &n);
    cairn_str want = json_str(json_at(c, 1)), part;
    buf whole, parts;
    detok *d;

    buf_init(&whole, MEM_TEXT);
    buf_init(&parts, MEM_TEXT);
    assert_ok(tok_decode(t, ids, n, false, &whole, NULL));
    assert_ok(detok_new(t, false, &d));
    for (size_t i = 0; i < n; i++) {
        assert_ok(detok_feed(d, ids[i], &part));
        buf_str(&parts, part);
    }
    assert_ok(detok_end(d, &part));
    buf_str(&parts, part);
    if (!str_eq(buf_view(&whole), want) || !str_eq(buf_view(&parts), want))
        fail_msg("%s: want \"%.*s\", got \"%.*s\", streamed \"%.*s\"", name, STR_ARG(want),
                 STR_ARG(buf_view(&whole)), STR_ARG(buf_view(&parts)));
    detok_free(d);
    buf_deinit(&whole);
    buf_deinit(&parts);
}

static void check_model(const char *name, const char *ext)
{
    buf model, answers;
    json_doc *doc;
    json_val c;
    tok *t;
    cairn_diag dg = {0};

    read_file(name, ext, &model);
    read_file(name, ".json", &answers);
    assert_ok(json_parse(buf_view(&answers), &doc, &dg));
    bool ranks = tok_is_tiktoken(buf_view(&model));
    assert_int_equal(ranks, strcmp(ext, ".tiktoken") == 0);
    cairn_status st = ranks
                          ? tok_open_tiktoken(buf_view(&model), (cairn_str){0}, name, name, &t, &dg)
                          : tok_open_sentencepiece(buf_view(&model), (cairn_str){0}, name, &t, &dg);
    if (st != CAIRN_OK) fail_msg("%s", dg.message);
    json_iter it = json_each(json_get(json_root(doc), "cases"));
    while (json_next(&it, &c)) check_ids(name, t, json_str(json_at(c, 0)), json_at(c, 1));
    it = json_each(json_get(json_root(doc), "long"));
    while (json_next(&it, &c)) check_long(name, t, c);
    it = json_each(json_get(json_root(doc), "decodes"));
    while (json_next(&it, &c)) check_decode(name, t, c);
    tok_close(t);
    json_free(doc);
    buf_deinit(&model);
    buf_deinit(&answers);
}

static void all_models(void **state)
{
    static const char *const exts[] = {".model", ".tiktoken"};
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    (void)state;
    assert_non_null(d);
    while ((e = readdir(d))) {
        for (int i = 0; i < 2; i++) {
            char name[256];
            if (!str_ends(str_of(e->d_name), str_of(exts[i]))) continue;
            snprintf(name, sizeof name, "%.*s", (int)(strlen(e->d_name) - strlen(exts[i])),
                     e->d_name);
            check_model(name, exts[i]);
            n++;
        }
    }
    closedir(d);
    assert_int_equal(n, 8);
    assert_int_equal(mem_used_all(), 0);
}

/* BOS, EOS and added tokens come from tokenizer_config.json. */
static void config(void **state)
{
    static const char json[] =
        "{\"bos_token\": \"<s>\", \"add_eos_token\": true, \"added_tokens_decoder\": {"
        "\"600\": {\"content\": \"<|im|>\", \"special\": true}}}";
    buf model, ids;
    tok *t;
    cairn_diag dg = {0};

    (void)state;
    read_file("cl100k_base", ".tiktoken", &model);
    buf_init(&ids, MEM_TEXT);
    assert_ok(tok_open_tiktoken(buf_view(&model), STR_LIT(json), "cl100k", "x", &t, &dg));
    assert_int_equal(tok_vocab(t), 601);
    assert_int_equal(tok_find(t, STR_LIT("<|im|>")), 600);
    assert_ok(tok_encode(t, STR_LIT("<|im|>a"), TOK_PARSE_SPECIAL, &ids, &dg));
    assert_int_equal(((const int32_t *)(const void *)ids.ptr)[0], 600);
    tok_close(t);
    buf_deinit(&model);
    read_file("bpe_llama", ".model", &model);
    buf_clear(&ids);
    assert_ok(tok_open_sentencepiece(buf_view(&model), STR_LIT(json), "x", &t, &dg));
    assert_ok(tok_encode(t, STR_LIT("</s>"), TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, &ids, &dg));
    assert_int_equal(ids.len, 3 * sizeof(int32_t));
    assert_true(tok_is_eos(t, 2));
    tok_close(t);
    buf_deinit(&model);
    buf_deinit(&ids);
}

static void older_files(void **state)
{
    tok *t;
    buf ids;
    cairn_diag dg = {0};

    (void)state;
    buf_init(&ids, MEM_TEXT);
    assert_ok(tok_open_merges(STR_LIT("{\"a\": 0, \"b\": 1, \"ab\": 2, \"\u0120\": 3}"),
                              STR_LIT("#version: 0.2\na b\n"), (cairn_str){0}, "x", &t, &dg));
    assert_ok(tok_encode(t, STR_LIT("ab b"), 0, &ids, &dg));
    const int32_t want[] = {2, 3, 1};
    assert_int_equal(ids.len, sizeof want);
    assert_memory_equal(ids.ptr, want, sizeof want);
    tok_close(t);
    buf_clear(&ids);
    assert_ok(tok_open_wordpiece(STR_LIT("[UNK]\n[CLS]\n[SEP]\nto\n##kens\n!\n"), (cairn_str){0},
                                 "x", &t, &dg));
    assert_ok(tok_encode(t, STR_LIT("Tokens! Tok"), TOK_ADD_SPECIAL, &ids, &dg));
    const int32_t words[] = {1, 3, 4, 5, 0, 2};
    assert_int_equal(ids.len, sizeof words);
    assert_memory_equal(ids.ptr, words, sizeof words);
    tok_close(t);
    buf_deinit(&ids);
}

static void refuses(void **state)
{
    static const char *const models[] = {"", "\x0a", "\x0a\xff\xff\xff\xff\x0f", "hello",
                                         "\x12\x00"};
    tok *t;
    cairn_diag dg = {0};

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        assert_int_not_equal(
            tok_open_sentencepiece(str_of(models[i]), (cairn_str){0}, "x", &t, &dg), CAIRN_OK);
    static const char *const ranks[] = {"", "YQ== 0\nYQ=x 1\n", "YQ== 0\nYg== 0\n",
                                        "YQ== 99999999\n"};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        assert_int_not_equal(tok_open_tiktoken(str_of(ranks[i]), (cairn_str){0}, "x", "x", &t, &dg),
                             CAIRN_OK);
    assert_false(tok_is_tiktoken(STR_LIT("{\"a\": 1}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_models),
        cmocka_unit_test(config),
        cmocka_unit_test(older_files),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
