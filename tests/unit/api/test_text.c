/* The public text functions over a small tokenizer: a folder as users have it, ids and back, streaming,
   chat templates that are there, absent or broken. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cairn/text.h"

static const char sample[] = "na\xc3\xafve \xe2\x9c\x93 \xf0\x9f\x8d\x9e 12";
static char dir[] = "/tmp/cairn-test-text-XXXXXX";

static void write_file(const char *name, cairn_str text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text.ptr, 1, text.len, f), text.len);
    assert_int_equal(fclose(f), 0);
}

/* The folder's tokenizer is the reference's; `config` is its tokenizer_config.json. */
static cairn_text *open_with(const char *config)
{
    cairn_text *t = NULL;
    cairn_diag dg = {0};
    write_file("tokenizer_config.json", str_of(config));
    if (cairn_text_open(dir, &t, &dg) != CAIRN_OK) fail_msg("%s", dg.message);
    return t;
}

static int make_folder(void **state)
{
    buf text, json;
    json_doc *doc;
    (void)state;
    assert_non_null(mkdtemp(dir));
    buf_init(&text, MEM_IO);
    buf_init(&json, MEM_IO);
    assert_ok(file_read("tests/text/data/bytes_smollm.json", (size_t)1 << 24, &text, NULL));
    assert_ok(json_parse(buf_view(&text), &doc, NULL));
    json_writer w = json_write(&json);
    json_w_val(&w, json_get(json_root(doc), "tokenizer"));
    write_file("tokenizer.json", buf_view(&json));
    json_free(doc);
    buf_deinit(&json);
    buf_deinit(&text);
    return 0;
}

static int remove_folder(void **state)
{
    char path[128];
    (void)state;
    (void)snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    (void)unlink(path);
    return rmdir(dir);
}

static const char plain[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\"}";

static void vocabulary(void **state)
{
    (void)state;
    cairn_text *t = open_with(plain);
    const int32_t n = cairn_text_vocab(t);
    assert_true(n > 256);
    assert_false(cairn_text_is_eos(t, 0));
    assert_true(cairn_text_is_eos(t, 1));
    assert_false(cairn_text_is_eos(t, 2));
    assert_false(cairn_text_is_eos(t, -1));
    assert_false(cairn_text_is_eos(t, n));
    assert_str(cairn_text_piece(t, 1), "</s>");
    assert_int_equal(cairn_text_piece(t, n).len, 0);
    assert_int_equal(cairn_text_piece(t, -1).len, 0);
    size_t longest = 0;
    for (int32_t i = 0; i < n; i++)
        if (cairn_text_piece(t, i).len > longest) longest = cairn_text_piece(t, i).len;
    assert_int_equal(cairn_text_longest_piece(t), longest);
    cairn_text_close(t);
    cairn_text_close(NULL);
    assert_int_equal(mem_used_all(), 0);
}

/* Bytes that begin a character, and whether all those that follow it are there. */
static bool whole_characters(cairn_str s)
{
    size_t i = 0;
    while (i < s.len) {
        const unsigned char c = (unsigned char)s.ptr[i];
        i += c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    }
    return i == s.len;
}

static void streaming(void **state)
{
    cairn_ids ids = {0};
    cairn_bytes back = {0};
    cairn_stream *s = NULL;
    cairn_str piece;
    size_t n_empty = 0;
    buf all;
    (void)state;
    cairn_text *t = open_with(plain);
    buf_init(&all, MEM_MISC);
    assert_ok(cairn_text_tokenize(t, str_of(sample), 0, &ids, NULL));
    assert_true(ids.len > 4);
    assert_ok(cairn_text_detokenize(t, ids.ptr, ids.len, false, &back, NULL));
    assert_str(((cairn_str){back.ptr, back.len}), sample);
    assert_ok(cairn_stream_new(t, false, &s));
    for (size_t i = 0; i < ids.len; i++) {
        assert_ok(cairn_stream_feed(s, ids.ptr[i], &piece));
        assert_true(whole_characters(piece));
        n_empty += piece.len == 0;
        buf_str(&all, piece);
    }
    assert_ok(cairn_stream_feed(s, 1, &piece)); /* special: no text */
    assert_int_equal(piece.len, 0);
    assert_ok(cairn_stream_end(s, &piece));
    buf_str(&all, piece);
    assert_true(n_empty > 0); /* the loaf takes several tokens, of which the last alone shows it */
    assert_str(buf_view(&all), sample);
    cairn_stream_free(s);
    cairn_stream_free(NULL);
    assert_ok(cairn_stream_new(t, true, &s));
    assert_ok(cairn_stream_feed(s, 1, &piece));
    assert_str(piece, "</s>");
    cairn_stream_free(s);
    buf_deinit(&all);
    cairn_bytes_free(&back);
    cairn_ids_free(&ids);
    cairn_text_close(t);
    assert_int_equal(mem_used_all(), 0);
}

static cairn_status render(const cairn_text *t, cairn_bytes *out, cairn_diag *dg)
{
    cairn_render_opts o;
    cairn_render_opts_init(&o);
    o.messages = STR_LIT("[{\"role\": \"user\", \"content\": \"hi\"}]");
    return cairn_text_render(t, &o, out, dg);
}

/* Steps count beside the bytes that it is given. */
static void steps_are_limited(void **state)
{
    cairn_bytes text = {0};
    cairn_diag dg = {0};
    cairn_render_opts o;
    (void)state;
    cairn_text *t = open_with("{\"chat_template\": \"{% for i in range(5000) %}{% endfor %}ok\"}");
    cairn_render_opts_init(&o);
    o.messages = STR_LIT("[{\"role\": \"user\", \"content\": \"hi\"}]");
    o.max_steps = 1000;
    assert_int_equal(cairn_text_render(t, &o, &text, &dg), CAIRN_E_LIMIT);
    assert_null(text.ptr);
    o.max_steps = UINT32_MAX; /* no more than without it */
    assert_ok(cairn_text_render(t, &o, &text, NULL));
    assert_str(((cairn_str){text.ptr, text.len}), "ok");
    cairn_bytes_free(&text);
    cairn_text_close(t);
}

static void template_works(void **state)
{
    cairn_bytes text = {0};
    (void)state;
    cairn_text *t =
        open_with("{\"bos_token\": \"<s>\", \"chat_template\": "
                  "\"{{ bos_token }}{{ messages[0].role }}: {{ messages[0].content }}\"}");
    assert_true(cairn_text_has_template(t));
    assert_ok(cairn_text_check_template(t, NULL));
    assert_ok(render(t, &text, NULL));
    assert_str(((cairn_str){text.ptr, text.len}), "<s>user: hi");
    cairn_bytes_free(&text);
    cairn_text_close(t);
}

/* What a render with tools takes, and what one without does. */
static void template_text(void **state)
{
    (void)state;
    cairn_text *t =
        open_with("{\"chat_template\": [{\"name\": \"default\", \"template\": \"{{ 1 }}\"}, "
                  "{\"name\": \"tool_use\", \"template\": \"{{ 22 }}\"}]}");
    assert_str(cairn_text_template(t, false), "{{ 1 }}");
    assert_str(cairn_text_template(t, true), "{{ 22 }}");
    cairn_text_close(t);
    t = open_with("{\"chat_template\": \"{{ 3 }}\"}");
    assert_str(cairn_text_template(t, true), "{{ 3 }}");
    cairn_text_close(t);
    assert_int_equal(mem_used_all(), 0);
}

static void template_absent(void **state)
{
    cairn_bytes text = {0};
    cairn_diag dg = {0};
    (void)state;
    cairn_text *t = open_with(plain);
    assert_false(cairn_text_has_template(t));
    assert_int_equal(cairn_text_template(t, false).len, 0);
    assert_int_equal(render(t, &text, &dg), CAIRN_E_NOTFOUND);
    assert_says(&dg, "no chat template");
    assert_int_equal(cairn_text_check_template(t, &dg), CAIRN_E_NOTFOUND);
    cairn_text_close(t);
    assert_false(cairn_text_has_template(NULL));
    assert_int_equal(cairn_text_check_template(NULL, &dg), CAIRN_E_NOTFOUND);
}

static void template_broken(void **state)
{
    cairn_bytes text = {0};
    cairn_diag dg = {0}, check = {0};
    (void)state;
    cairn_text *t = open_with("{\"chat_template\": \"{% for m in messages %}{{ m }\"}");
    assert_false(cairn_text_has_template(t));
    const cairn_status st = cairn_text_check_template(t, &check);
    assert_true(st != CAIRN_OK && st != CAIRN_E_NOTFOUND);
    assert_int_equal(render(t, &text, &dg), st);
    assert_string_equal(dg.message, check.message);
    assert_null(strstr(dg.message, "no chat template"));
    assert_true(strlen(dg.message) > 10);
    cairn_text_close(t);
    assert_int_equal(mem_used_all(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vocabulary),        cmocka_unit_test(streaming),
        cmocka_unit_test(steps_are_limited), cmocka_unit_test(template_works),
        cmocka_unit_test(template_text),     cmocka_unit_test(template_absent),
        cmocka_unit_test(template_broken),
    };
    return cmocka_run_group_tests_name("text", tests, make_folder, remove_folder);
}
