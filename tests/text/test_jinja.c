/* Replays recorded cases of the template language (tests/text/jinja_cases.json, made by
   tools/golden/make_jinja.py with the reference), then limits and allocation failures.
   `test_jinja --batch FILE` renders [{"template", "context"}, …], or {"context", "templates": […]},
   and prints one JSON line a case, for the scripts beside this file. */
#include <stdio.h>

#include "base/file.h"
#include "test.h"
#include "text/chat.h"
#include "text/jinja.h"

enum { MAX_FILE = 256 << 20, MAX_VARS = 64 };

static cairn_status render(cairn_str text, json_val context, buf *out, cairn_diag *dg)
{
    jinja_var vars[MAX_VARS];
    size_t n = 0;
    jinja *t = NULL;
    json_iter it = json_each(context);
    cairn_str key;
    json_val v;
    cairn_status st = jinja_compile(text, "template", &t, dg);

    while (st == CAIRN_OK && n < MAX_VARS && json_next_member(&it, &key, &v))
        vars[n++] = (jinja_var){.name = key, .value = v};
    if (st == CAIRN_OK) st = jinja_render(t, vars, n, out, dg);
    jinja_free(t);
    return st;
}

static json_doc *load(const char *path)
{
    buf b;
    json_doc *d = NULL;
    cairn_diag dg = {0};

    buf_init(&b, MEM_TEXT);
    if (file_read(path, MAX_FILE, &b, &dg) != CAIRN_OK ||
        json_parse(buf_view(&b), &d, &dg) != CAIRN_OK)
        fprintf(stderr, "%s\n", dg.message);
    buf_deinit(&b);
    return d;
}

static void recorded_cases(void **state)
{
    json_doc *d = load("tests/text/jinja_cases.json");
    json_iter it;
    json_val c;
    int n = 0, wrong = 0;

    (void)state;
    assert_non_null(d);
    json_val context = json_get(json_root(d), "context");
    it = json_each(json_get(json_root(d), "cases"));
    while (json_next(&it, &c)) {
        json_val want = json_get(c, "result");
        bool fails = json_typeof(want) != JSON_STR;
        cairn_diag dg = {0};
        buf out;
        buf_init(&out, MEM_TEXT);
        cairn_status st = render(json_str(json_get(c, "template")), context, &out, &dg);
        bool same = fails ? st != CAIRN_OK && dg.message[0]
                          : st == CAIRN_OK && str_eq(buf_view(&out), json_str(want));
        if (!same) {
            cairn_str t = json_str(json_get(c, "template"));
            fprintf(stderr, "%.*s\n  got  [%.*s] %s\n  want [%.*s]\n", STR_ARG(t),
                    STR_ARG(buf_view(&out)), dg.message, STR_ARG(json_str(want)));
        }
        wrong += !same;
        n++;
        buf_deinit(&out);
    }
    json_free(d);
    assert_int_equal(wrong, 0);
    assert_true(n > 400);
}

static void expect(const char *text, cairn_status want, const char *message)
{
    cairn_diag dg = {0};
    buf out;

    buf_init(&out, MEM_TEXT);
    cairn_status st = render(str_of(text), (json_val){0}, &out, &dg);
    if (st != want || !strstr(dg.message, message))
        fail_msg("%s: status %d, message '%s', expected %d '%s'", text, (int)st, dg.message,
                 (int)want, message);
    assert_int_equal(out.len, 0);
    buf_deinit(&out);
}

static void messages_say_where(void **state)
{
    (void)state;
    expect("a\n{{ x.y }}", CAIRN_E_ARG, "template, line 2: 'x' is undefined");
    expect("{{ {}.a.b }}", CAIRN_E_ARG, "'dict object' has no attribute 'a'");
    expect("{{ raise_exception('no tools') }}", CAIRN_E_ARG, "line 1: no tools");
    expect("{% if x %}", CAIRN_E_CORRUPT, "endif");
    expect("{% foo %}", CAIRN_E_CORRUPT, "unknown tag 'foo'");
    expect("{{ 1 | foo }}", CAIRN_E_CORRUPT, "no filter named 'foo'");
    expect("{{ (1 }}", CAIRN_E_CORRUPT, "line 1");
    expect("{% include 'x' %}", CAIRN_E_UNSUPPORTED, "include");
    expect("{{ [].append(1) }}", CAIRN_E_ARG, "sandbox");
}

static void limits_hold(void **state)
{
    (void)state;
    expect("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
           CAIRN_E_LIMIT, "steps");
    expect("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", CAIRN_E_LIMIT, "deep");
    expect("{% set n = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}"
           "{% endfor %}",
           CAIRN_E_LIMIT, "");
    expect("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor "
           "%}{{ n.x }}",
           CAIRN_E_LIMIT, "deep");
    expect("{{ 'x' * 99999999999 }}", CAIRN_E_LIMIT, "");
    expect("{{ 9223372036854775807 + 1 }}", CAIRN_E_LIMIT, "64 bits");
    expect("{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}", CAIRN_E_LIMIT, "");
    expect("{{ range(100001) }}", CAIRN_E_ARG, "range");
}

static void deep_syntax_is_refused(void **state)
{
    static const char *const units[] = {"(",  "[",  "not ", "-",    "{% if 1 %}",
                                        "1+", "x.", "x|f(", "1 if "};
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        buf t, out;
        cairn_diag dg = {0};
        buf_init(&t, MEM_TEXT);
        buf_init(&out, MEM_TEXT);
        if (units[i][1] != '%') buf_puts(&t, "{{ ");
        for (int k = 0; k < 20000; k++) buf_puts(&t, units[i]);
        buf_puts(&t, "1 }}");
        assert_int_not_equal(render(buf_view(&t), (json_val){0}, &out, &dg), CAIRN_OK);
        buf_deinit(&t);
        buf_deinit(&out);
    }
}

/* What a render allocates, most of it. */
static cairn_status one_render(void *ctx)
{
    static const char text[] =
        "{% macro m(a, b=[1, 2]) %}{{ a ~ b|join('-') }}{{ caller() if caller }}{% endmacro %}"
        "{% for x in [3, 1, 2]|sort %}{{ m(x) }}{{ '%s{}'.format(x) % x }}{{ [x]|tojson }}"
        "{% endfor %}{% set y %}{{ {'a': 1}|items|list }}{% endset %}{{ y|upper|replace('A', 'b') "
        "}}";
    buf out;

    (void)ctx;
    buf_init(&out, MEM_TEXT);
    cairn_status st = render((cairn_str){text, sizeof text - 1}, (json_val){0}, &out, NULL);
    buf_deinit(&out);
    return st;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    assert_true(fault_loop(one_render, NULL) > 3);
}

static void chat_has_its_variables(void **state)
{
    static const char text[] = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                               "{{ eos_token }}{% endfor %}{{ pad_token }}{{ tools is none }}"
                               "{% if add_generation_prompt %}[{{ who }}]{% endif %}";
    json_doc *d = NULL;
    chat *c = NULL;
    cairn_diag dg = {0};
    buf out;

    (void)state;
    assert_int_equal(json_parse(STR_LIT("{\"m\":[{\"role\":\"user\",\"content\":\"hé\"}],"
                                        "\"k\":{\"who\":\"bot\"},\"e\":{\"pad_token\":\"<p>\"}}"),
                                &d, &dg),
                     CAIRN_OK);
    json_val root = json_root(d);
    assert_int_equal(chat_open(STR_LIT(text), STR_LIT("<s>"), STR_LIT("</s>"), json_get(root, "e"),
                               "chat", &c, &dg),
                     CAIRN_OK);
    buf_init(&out, MEM_TEXT);
    assert_int_equal(
        chat_render(c, json_get(root, "m"), (json_val){0}, json_get(root, "k"), true, &out, &dg),
        CAIRN_OK);
    assert_true(str_is(buf_view(&out), "<s>[user]hé</s><p>True[bot]"));
    assert_int_equal(chat_render(c, root, (json_val){0}, (json_val){0}, true, &out, &dg),
                     CAIRN_E_ARG);
    buf_deinit(&out);
    chat_close(c);
    json_free(d);
}

static void batch_one(cairn_str text, json_val context)
{
    cairn_diag dg = {0};
    buf out, line;

    buf_init(&out, MEM_TEXT);
    buf_init(&line, MEM_TEXT);
    cairn_status st = render(text, context, &out, &dg);
    json_writer w = json_write(&line);
    json_w_obj(&w);
    json_w_kstr(&w, st == CAIRN_OK ? "result" : "error",
                st == CAIRN_OK ? buf_view(&out) : str_of(dg.message));
    json_w_end_obj(&w);
    printf("%.*s\n", (int)line.len, line.ptr);
    buf_deinit(&out);
    buf_deinit(&line);
}

static int batch(const char *path)
{
    json_doc *d = load(path);
    json_iter it;
    json_val c;

    if (!d) return 1;
    const json_val root = json_root(d);
    const bool shared = json_typeof(root) == JSON_OBJ;
    it = json_each(shared ? json_get(root, "templates") : root);
    while (json_next(&it, &c))
        batch_one(json_str(shared ? c : json_get(c, "template")),
                  json_get(shared ? root : c, "context"));
    json_free(d);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_cases),
        cmocka_unit_test(messages_say_where),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(deep_syntax_is_refused),
        cmocka_unit_test(survives_lack_of_memory),
        cmocka_unit_test(chat_has_its_variables),
    };
    if (argc == 3 && strcmp(argv[1], "--batch") == 0) return batch(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
