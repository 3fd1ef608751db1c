/* The reader of Anthropic's messages on any bytes: no crash, what it accepts is JSON again, and what it
   refuses has a reason.  The same bytes as a cut object are one afterwards. */
#include <stdlib.h>

#include "base/json.h"
#include "serve/anthropic_read.h"
#include "serve/json_cut.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_list(const buf *b)
{
    json_doc *doc = NULL;

    if (b->len == 0) return;
    if (json_parse_any(buf_view(b), &doc, NULL) != CAIRN_OK) abort();
    if (json_typeof(json_root(doc)) != JSON_ARR || json_size(json_root(doc)) == 0) abort();
    json_free(doc);
}

/* A beginning of `whole`, an object, is an object once it is closed. */
static void check_cut(cairn_str whole, size_t n)
{
    json_doc *doc = NULL;
    buf b;

    if (json_parse_any(whole, &doc, NULL) != CAIRN_OK) return;
    const bool object = json_typeof(json_root(doc)) == JSON_OBJ;
    json_free(doc);
    if (!object) return;
    buf_init(&b, MEM_SERVE);
    buf_put(&b, whole.ptr, n);
    json_cut_close(&b);
    if (json_parse_any(buf_view(&b), &doc, NULL) != CAIRN_OK) abort();
    json_free(doc);
    buf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cairn_str body = {(const char *)data, size};
    chat_ask a;
    chat_fault f;

    if (anthropic_ask_read(&a, body, &f) == CAIRN_OK) {
        check_list(&a.messages);
        check_list(&a.tools);
        if (a.messages.len < 2 || a.rq.max_tokens < 1 || a.rq.n_stop > CAIRN_MAX_STOP) abort();
        if (a.rq.think_budget >= a.rq.max_tokens || a.think < -1 || a.think > 1) abort();
    } else if (f.dg.message[0] == 0) {
        abort();
    }
    chat_ask_deinit(&a);
    if (size) check_cut(body, data[size - 1] % size);
    return 0;
}
