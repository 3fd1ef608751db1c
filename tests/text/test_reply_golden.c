/* What real templates write for an assistant's turn, read again: the message that was rendered.
   tools/golden/make_reply.py makes the cases.  Each is fed whole, byte by byte, in random pieces, and
   cut at every byte, where nothing may be lost. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "reply_record.h"
#include "text/tool/tool_literal.h"

static json_doc *golden;

static int load(void **state)
{
    cairn_diag dg = {0};
    buf text;
    (void)state;
    buf_init(&text, MEM_TEXT);
    assert_ok(file_read("tests/text/reply_cases.json", (size_t)8 << 20, &text, &dg));
    assert_ok(json_parse(buf_view(&text), &golden, &dg));
    buf_deinit(&text);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    json_free(golden);
    return 0;
}

static bool same_json(cairn_str text, json_val want)
{
    json_doc *d = NULL;
    buf a, b;
    buf_init(&a, MEM_JSON);
    buf_init(&b, MEM_JSON);
    json_writer wa = json_write(&a), wb = json_write(&b);
    bool same = json_parse(text, &d, NULL) == CAIRN_OK;
    if (same) {
        json_w_val(&wa, json_root(d));
        json_w_val(&wb, want);
        same = str_eq(buf_view(&a), buf_view(&b));
    }
    json_free(d);
    buf_deinit(&a);
    buf_deinit(&b);
    return same;
}

static const char *compare(const record *r, json_val want)
{
    json_val calls = json_get(want, "calls"), call;
    json_iter it = json_each(calls);
    if (r->wrong) return r->wrong;
    if (!str_eq(buf_view(&r->thought), json_str(json_get(want, "thought")))) return "the thought";
    if (!str_eq(buf_view(&r->answer), json_str(json_get(want, "content")))) return "the answer";
    if ((size_t)r->n_calls != json_size(calls)) return "the number of calls";
    for (int i = 0; json_next(&it, &call); i++) {
        const cairn_str id = json_str(json_get(call, "id"));
        if (!str_eq(str_of(r->call[i].name), json_str(json_get(call, "name")))) return "a name";
        if (id.len && !str_eq(str_of(r->call[i].id), id)) return "an id";
        if (r->call[i].end != CAIRN_CALL_DONE) return "a call's end";
        if (!same_json(buf_view(&r->call[i].args), json_get(call, "arguments"))) return "arguments";
    }
    return NULL;
}

static cairn_reply_opts opts_of(json_val c, char *family, size_t n, buf *tools)
{
    cairn_reply_opts o = {.struct_size = sizeof o};
    json_writer w = json_write(tools);
    snprintf(family, n, "%.*s", STR_ARG(json_str(json_get(c, "family"))));
    json_w_val(&w, json_get(json_root(golden), "tools"));
    o.family = family;
    o.tools = buf_view(tools);
    o.prompt = json_str(json_get(c, "prompt"));
    return o;
}

static const char *splits(const cairn_reply_opts *o, cairn_str text, const record *whole)
{
    static const int pieces[] = {1, 2, 3, 7, -1, -2, -3};
    const char *wrong = NULL;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0] && !wrong; i++) {
        record r;
        record_init(&r);
        record_run(&r, o, text, pieces[i]);
        if (!record_same(&r, whole)) wrong = "other events when split";
        record_deinit(&r);
    }
    return wrong;
}

static const char *cuts(const cairn_reply_opts *o, cairn_str text)
{
    const char *wrong = NULL;
    for (size_t n = 0; n < text.len && !wrong; n++) {
        record r;
        record_init(&r);
        record_run(&r, o, str_sub(text, 0, n), 0);
        wrong = r.wrong;
        if (!str_eq(buf_view(&r.raw), str_sub(text, 0, n))) wrong = "bytes lost when cut";
        record_deinit(&r);
    }
    return wrong;
}

static const char *run_case(json_val c)
{
    const cairn_str text = json_str(json_get(c, "text"));
    char family[64];
    buf tools;
    record r;
    buf_init(&tools, MEM_JSON);
    const cairn_reply_opts o = opts_of(c, family, sizeof family, &tools);
    record_init(&r);
    record_run(&r, &o, text, 0);
    const char *wrong = compare(&r, c);
    if (!wrong && !str_eq(buf_view(&r.raw), text)) wrong = "bytes lost";
    if (wrong)
        printf("%.*s: %s\n  text: %.*s\n  log: %.*s\n", STR_ARG(json_str(json_get(c, "name"))),
               wrong, STR_ARG(text), STR_ARG(buf_view(&r.log)));
    if (!wrong) wrong = splits(&o, text, &r);
    if (!wrong) wrong = cuts(&o, text);
    record_deinit(&r);
    buf_deinit(&tools);
    return wrong;
}

static void test_turns(void **state)
{
    json_val c;
    json_iter it = json_each(json_get(json_root(golden), "cases"));
    size_t n = 0, bad = 0;
    (void)state;
    for (; json_next(&it, &c); n++) {
        const char *wrong = run_case(c);
        if (!wrong) continue;
        bad++;
        printf("%.*s: %s\n", STR_ARG(json_str(json_get(c, "name"))), wrong);
    }
    assert_true(n > 400);
    assert_int_equal(bad, 0);
}

static void test_families(void **state)
{
    cairn_str name, word;
    json_val t, w;
    json_iter it = json_each(json_get(json_root(golden), "families"));
    size_t bad = 0, n = 0;
    buf words;
    (void)state;
    buf_init(&words, MEM_TEXT);
    for (; json_next_member(&it, &name, &t); n++) {
        json_iter each = json_each(json_get(t, "words"));
        buf_cut(&words, 0);
        while (json_next(&each, &w)) {
            word = json_str(w);
            buf_str(&words, word);
            buf_byte(&words, '\n');
        }
        const char *got = reply_find_family(buf_view(&words), (cairn_str){0})->name;
        if (str_is(json_str(json_get(t, "family")), got)) continue;
        printf("%.*s: found %s\n", STR_ARG(name), got);
        bad++;
    }
    buf_deinit(&words);
    assert_true(n > 60);
    assert_int_equal(bad, 0);
}

/* Python's literal_eval and json.loads are the references. */
static void test_values(void **state)
{
    json_val c;
    json_iter it = json_each(json_get(json_root(golden), "values"));
    size_t bad = 0, n = 0;
    buf out;
    (void)state;
    buf_init(&out, MEM_TEXT);
    for (; json_next(&it, &c); n++) {
        buf_cut(&out, 0);
        if (literal_convert(json_str(json_at(c, 0)), &out) &&
            same_json(buf_view(&out), json_at(c, 1)))
            continue;
        printf("%.*s -> %.*s\n", STR_ARG(json_str(json_at(c, 0))), STR_ARG(buf_view(&out)));
        bad++;
    }
    it = json_each(json_get(json_root(golden), "not_values"));
    while (json_next(&it, &c)) {
        buf_cut(&out, 0);
        if (!literal_convert(json_str(c), &out) && out.len == 0) continue;
        printf("%.*s is no value\n", STR_ARG(json_str(c)));
        bad++;
    }
    buf_deinit(&out);
    assert_true(n > 300);
    assert_int_equal(bad, 0);
}

static bool scan_reads(cairn_str text)
{
    scan s;
    scan_result res = SCAN_MORE;
    size_t i = 0;
    scan_init(&s);
    while (i < text.len && res == SCAN_MORE) res = scan_feed(&s, text.ptr[i++]);
    return res == SCAN_DONE && str_trim(str_sub(text, i, text.len - i)).len == 0;
}

static void test_json(void **state)
{
    json_val c;
    json_iter it = json_each(json_get(json_root(golden), "json"));
    size_t bad = 0, n = 0;
    (void)state;
    for (; json_next(&it, &c); n++) {
        const cairn_str text = json_str(json_at(c, 0));
        if (scan_reads(text) == json_bool(json_at(c, 1), false)) continue;
        printf("%.*s\n", STR_ARG(text));
        bad++;
    }
    assert_true(n > 500);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_families),
                                       cmocka_unit_test(test_values), cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, load, unload);
}
