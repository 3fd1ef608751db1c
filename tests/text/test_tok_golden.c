/* Small tokenizers of every kind against the reference's answers (tools/golden/make_tok.py): ids with
   special tokens parsed or not, added or not; texts from ids, whole and streamed. */
#include "test.h"

#include <dirent.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "text/detok.h"

static const char folder[] = "tests/text/data";

static int bad; /* differences, printed as they are found */

static void check_ids(const char *name, const tok *t, cairn_str s, uint32_t flags, json_val want)
{
    buf ids;
    cairn_diag dg = {0};
    json_iter it = json_each(want);
    json_val v;
    size_t n = 0;

    buf_init(&ids, MEM_TEXT);
    cairn_status st = tok_encode(t, s, flags, &ids, &dg);
    const int32_t *got = (const int32_t *)(const void *)ids.ptr;
    bool same = st == CAIRN_OK && json_size(want) == ids.len / sizeof *got;
    while (same && json_next(&it, &v)) same = json_int(v, -1) == got[n++];
    if (same && tok_least_ids(t, s) > n) {
        print_error("%s: \"%.*s\": at least %zu ids promised, %zu made\n", name, STR_ARG(s),
                    tok_least_ids(t, s), n);
        bad++;
    }
    if (!same) {
        bad++;
        print_error("%s: \"%.*s\" flags %u: %s\n", name, STR_ARG(s), flags, dg.message);
        for (size_t i = 0; i < ids.len / sizeof *got; i++) print_error(" %d", got[i]);
        print_error("\n");
    }
    buf_deinit(&ids);
}

static void check_text(const char *name, const tok *t, const buf *ids, bool keep, cairn_str want)
{
    buf whole, parts;
    detok *d;
    cairn_str part;
    const int32_t *id = (const int32_t *)(const void *)ids->ptr;
    size_t n = ids->len / sizeof *id;

    buf_init(&whole, MEM_TEXT);
    buf_init(&parts, MEM_TEXT);
    assert_ok(tok_decode(t, id, n, keep, &whole, NULL));
    assert_ok(detok_new(t, keep, &d));
    assert_ok(detok_reserve(d, n));
    mem_fail_nth(1); /* feeding reserved ids asks for no memory */
    for (size_t i = 0; i < n; i++) {
        assert_ok(detok_feed(d, id[i], &part));
        uint64_t calls = mem_calls();
        buf_str(&parts, (cairn_str){0});
        if (calls) bad++;
        mem_fail_nth(0);
        buf_str(&parts, part);
        mem_fail_nth(1);
    }
    mem_fail_nth(0);
    assert_ok(detok_end(d, &part));
    buf_str(&parts, part);
    if (!str_eq(buf_view(&whole), want) || !str_eq(buf_view(&parts), want)) {
        bad++;
        print_error("%s: keep %d: want \"%.*s\", got \"%.*s\", streamed \"%.*s\"\n", name, keep,
                    STR_ARG(want), STR_ARG(buf_view(&whole)), STR_ARG(buf_view(&parts)));
    }
    detok_free(d);
    buf_deinit(&whole);
    buf_deinit(&parts);
}

static void check_case(const char *name, const tok *t, json_val c)
{
    static const uint32_t flags[] = {0, TOK_ADD_SPECIAL, TOK_PARSE_SPECIAL,
                                     TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL};
    cairn_str s = json_str(json_at(c, 0));

    for (size_t i = 0; i < 4; i++) {
        json_val want = json_at(c, i + 1);
        if (json_typeof(want) == JSON_NULL) want = json_at(c, 1);
        check_ids(name, t, s, flags[i], want);
    }
}

static void check_decode(const char *name, const tok *t, json_val c)
{
    json_iter it = json_each(json_at(c, 0));
    json_val v;
    buf ids;

    buf_init(&ids, MEM_TEXT);
    while (json_next(&it, &v)) {
        int32_t id = (int32_t)json_int(v, -1);
        buf_put(&ids, &id, sizeof id);
    }
    check_text(name, t, &ids, false, json_str(json_at(c, 1)));
    check_text(name, t, &ids, true, json_str(json_at(c, 2)));
    buf_deinit(&ids);
}

/* The same file, spelt so that its pieces and merges are read by the parser. */
static void spell_for_parser(buf *json)
{
    const cairn_str key = STR_LIT("\"model\":{");
    const size_t at = str_find(buf_view(json), key, 0);
    buf tail;

    assert_true(at < json->len);
    buf_init(&tail, MEM_TEXT);
    buf_put(&tail, json->ptr + at + 2, json->len - at - 2);
    buf_cut(json, at + 1);
    buf_puts(json, "\\u006d");
    buf_str(json, buf_view(&tail));
    buf_deinit(&tail);
}

static tok *open_part(const char *name, json_val doc, bool by_parser)
{
    buf json, config;
    tok *t = NULL;
    cairn_diag dg = {0};

    buf_init(&json, MEM_TEXT);
    buf_init(&config, MEM_TEXT);
    json_writer w = json_write(&json), w2 = json_write(&config);
    json_w_val(&w, json_get(doc, "tokenizer"));
    json_w_val(&w2, json_get(doc, "config"));
    if (by_parser) spell_for_parser(&json);
    if (tok_open_hf(buf_view(&json), buf_view(&config), name, &t, &dg) != CAIRN_OK)
        fail_msg("%s", dg.message);
    buf_deinit(&json);
    buf_deinit(&config);
    return t;
}

static void check_file(const char *path, const char *name, bool by_parser)
{
    buf text;
    json_doc *doc;
    json_val v;
    cairn_diag dg = {0};
    int before = bad;

    buf_init(&text, MEM_IO);
    assert_ok(file_read(path, (size_t)1 << 24, &text, &dg));
    assert_ok(json_parse(buf_view(&text), &doc, &dg));
    tok *t = open_part(name, json_root(doc), by_parser);
    json_iter it = json_each(json_get(json_root(doc), "cases"));
    while (json_next(&it, &v) && bad < before + 5) check_case(name, t, v);
    it = json_each(json_get(json_root(doc), "decodes"));
    while (json_next(&it, &v) && bad < before + 10) check_decode(name, t, v);
    tok_close(t);
    json_free(doc);
    buf_deinit(&text);
    if (bad > before) print_error("%s: %d differences\n", name, bad - before);
}

static void all_files(void **state)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    (void)state;
    assert_non_null(d);
    while ((e = readdir(d))) {
        char path[512];
        if (!strstr(e->d_name, ".json")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        check_file(path, e->d_name, false);
        check_file(path, e->d_name, true);
        n++;
    }
    closedir(d);
    assert_true(n >= 29);
    assert_int_equal(bad, 0);
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
