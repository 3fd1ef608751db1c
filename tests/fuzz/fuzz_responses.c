/* The reader of responses' bodies on any bytes: no crash, what it accepts is JSON again, and what it refuses has a
   reason; what it keeps makes the same messages when it is read again.  The same bytes as a call's arguments: a
   member's text comes out the same in one piece and in two. */
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "serve/json_member.h"
#include "serve/responses_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const buf *b)
{
    json_doc *doc = NULL;

    if (b->len == 0) return;
    if (json_parse_any(buf_view(b), &doc, NULL) != CAIRN_OK) abort();
    if (json_typeof(json_root(doc)) != JSON_ARR) abort();
    json_free(doc);
}

static void check_echo(const buf *echo)
{
    json_doc *doc = NULL;
    buf b;

    buf_init(&b, MEM_SERVE);
    buf_byte(&b, '{');
    buf_str(&b, buf_view(echo));
    buf_byte(&b, '}');
    if (json_parse_any(buf_view(&b), &doc, NULL) != CAIRN_OK) abort();
    json_free(doc);
    buf_deinit(&b);
}

/* As the past of an empty turn. */
static void check_again(const responses_ask *r)
{
    kept_response past = {.items = r->items};
    chat_ask a;
    chat_fault f;

    if (responses_ask_read(&a, STR_LIT("{\"input\": \"x\", \"store\": false}"), &f) != CAIRN_OK)
        abort();
    ((responses_ask *)a.more)->past = &past;
    if (responses_input_read(&a, &f) != CAIRN_OK) abort();
    chat_ask_deinit(&a);
}

static void check_member(cairn_str s, size_t cut)
{
    json_member one, two;
    buf a, b;

    buf_init(&a, MEM_SERVE);
    buf_init(&b, MEM_SERVE);
    json_member_init(&one, "input");
    json_member_init(&two, "input");
    json_member_feed(&one, s, &a);
    json_member_feed(&two, str_sub(s, 0, cut), &b);
    json_member_feed(&two, str_sub(s, cut, s.len - cut), &b);
    if (!str_eq(buf_view(&a), buf_view(&b)) || one.found != two.found) abort();
    buf_deinit(&a);
    buf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cairn_str body = {(const char *)data, size};
    cairn_status st;
    chat_ask a;
    chat_fault f;

    st = responses_ask_read(&a, body, &f);
    if (st == CAIRN_OK) st = responses_input_read(&a, &f);
    if (st == CAIRN_OK) {
        const responses_ask *r = a.more;
        check_list(&a.messages);
        check_list(&a.tools);
        check_list(&r->items);
        check_echo(&r->echo);
        if (a.messages.len < 2 || (r->keep && r->items.len < 2)) abort();
        if (r->keep) check_again(r);
    } else if (f.dg.message[0] == 0) {
        abort();
    }
    chat_ask_deinit(&a);
    if (size) check_member(body, data[size - 1] % size);
    return 0;
}
