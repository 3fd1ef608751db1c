/* JSON from outside: parsing, every getter, and writing it again.  What was accepted must read back
   from our own writer as the same text; what was refused must say so in one line. */
#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(json_val v, const char *key)
{
    cairn_diag dg = {0};
    bool b;
    int64_t i;
    double x;
    cairn_str s;
    (void)json_want_bool(v, key, &b, &dg);
    (void)json_want_int(v, key, -10, 1 << 20, &i, &dg);
    (void)json_want_num(v, key, 0, 1, &x, &dg);
    (void)json_want_str(v, key, &s, &dg);
    (void)json_get(v, key);
    assert(json_size(v) == 0 || json_typeof(v) == JSON_ARR || json_typeof(v) == JSON_OBJ);
    (void)json_int(v, 0);
    assert(json_num(v, 0) == json_num(v, 0));
}

static void write_again(const json_doc *d, buf *out)
{
    json_writer w = json_write(out);
    json_w_val(&w, json_root(d));
    assert(buf_status(out) == CAIRN_OK);
}

typedef cairn_status parse_fn(cairn_str text, json_doc **out, cairn_diag *dg);

static bool accepts(parse_fn *parse, cairn_str text)
{
    cairn_diag dg = {0};
    json_doc *d = NULL, *again = NULL;
    const cairn_status st = parse(text, &d, &dg);
    if (st != CAIRN_OK) {
        assert(!d && dg.status == st && dg.message[0] && !strchr(dg.message, '\n'));
        return false;
    }
    json_iter it = json_each(json_root(d));
    json_val v;
    while (json_next(&it, &v)) touch(v, "a");
    touch(json_root(d), "a");
    (void)json_path(json_root(d), "a.b.c");
    buf first, second;
    buf_init(&first, MEM_JSON);
    buf_init(&second, MEM_JSON);
    write_again(d, &first);
    assert(parse(buf_view(&first), &again, &dg) == CAIRN_OK);
    write_again(again, &second);
    assert(str_eq(buf_view(&first), buf_view(&second)));
    buf_deinit(&first);
    buf_deinit(&second);
    json_free(d);
    json_free(again);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cairn_str text = {(const char *)data, size};
    const bool strict = accepts(json_parse, text), any = accepts(json_parse_any, text);
    assert(!strict || any);
    return 0;
}
