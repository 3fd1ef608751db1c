/* A big JSON text in pieces: no member is lost or torn, and damage ends it. */
#include "test.h"

#include "base/json.h"
#include "format/jsonsplit.h"

/* Members over all pieces, each piece parsed; or the status that ended it. */
static cairn_status members(cairn_str text, size_t *n, size_t *n_piece)
{
    jsonsplit s = {.text = text};
    cairn_status st = CAIRN_OK;
    buf piece;

    *n = *n_piece = 0;
    buf_init(&piece, MEM_MISC);
    while (!s.done && st == CAIRN_OK) {
        json_doc *doc = NULL;
        st = jsonsplit_next(&s, &piece, NULL);
        if (st == CAIRN_OK) st = json_parse(buf_view(&piece), &doc, NULL);
        if (st != CAIRN_OK) break;
        *n += json_size(json_root(doc));
        ++*n_piece;
        json_free(doc);
    }
    buf_deinit(&piece);
    return st;
}

static void small(void **state)
{
    static const struct {
        const char *text;
        cairn_status st;
        size_t n;
    } c[] = {
        {"{}", CAIRN_OK, 0},
        {"{ } \n", CAIRN_OK, 0},
        {"{\"a\":1}", CAIRN_OK, 1},
        {"{\"a,}\":[1,{\"x\":\"\\\",}\"}],\"b\":{}}", CAIRN_OK, 2},
        {"{\"a\":1", CAIRN_E_CORRUPT, 0},
        {"{\"a\":\"\\", CAIRN_E_CORRUPT, 0},
        {"{", CAIRN_E_CORRUPT, 0},
        {"{\"a\":1]", CAIRN_E_CORRUPT, 0},
        {"{\"a\":1}}", CAIRN_E_CORRUPT, 0},
        {"{\"a\":[}", CAIRN_E_CORRUPT, 0},
        {"{\"a\":1,}", CAIRN_E_CORRUPT, 0},
        {"{,}", CAIRN_E_CORRUPT, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        size_t n, n_piece;
        if (members(str_of(c[i].text), &n, &n_piece) != c[i].st) fail_msg("%s", c[i].text);
        if (c[i].st != CAIRN_OK) continue;
        assert_int_equal(n, c[i].n);
        assert_int_equal(jsonsplit_count(str_of(c[i].text)), c[i].n);
    }
}

static void big(void **state)
{
    size_t n, n_piece;
    buf b;

    (void)state;
    buf_init(&b, MEM_MISC);
    for (int i = 0; i < 40000; i++) buf_printf(&b, "%c\"t%d\": [%d, {}]", i ? ',' : '{', i, i);
    buf_byte(&b, '}');
    assert_ok(members(buf_view(&b), &n, &n_piece));
    assert_int_equal(n, 40000);
    assert_true(n_piece >= 3);
    assert_int_equal(jsonsplit_count(buf_view(&b)), 40000);
    buf_deinit(&b);
}

/* Where a piece ends at a comma, the member after it must not be missing. */
static void comma_after_a_piece(void **state)
{
    size_t n, n_piece;
    buf b;

    (void)state;
    buf_init(&b, MEM_MISC);
    buf_puts(&b, "{\"a\":\"");
    for (int i = 0; i < 300 << 10; i++) buf_byte(&b, 'x');
    buf_puts(&b, "\", }");
    assert_int_equal(members(buf_view(&b), &n, &n_piece), CAIRN_E_CORRUPT);
    buf_cut(&b, b.len - 3);
    buf_byte(&b, '}');
    assert_ok(members(buf_view(&b), &n, &n_piece));
    buf_clear(&b);
    buf_puts(&b, "{\"a\":\"");
    for (int i = 0; i < 5 << 20; i++) buf_byte(&b, 'x');
    buf_puts(&b, "\"}");
    assert_int_equal(members(buf_view(&b), &n, &n_piece), CAIRN_E_LIMIT);
    buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small),
        cmocka_unit_test(big),
        cmocka_unit_test(comma_after_a_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
