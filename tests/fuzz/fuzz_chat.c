/* The chat request reader on any bytes: no crash, and what it accepts is JSON again. */
#include <stdlib.h>

#include "base/json.h"
#include "serve/openai_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const buf *b)
{
    json_doc *doc = NULL;

    if (b->len == 0) return;
    if (json_parse(buf_view(b), &doc, NULL) != CAIRN_OK) abort();
    json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    chat_ask a;
    chat_fault f;
    const cairn_str body = {(const char *)data, size};

    if (chat_ask_read(&a, body, &f) == CAIRN_OK) {
        check_json(&a.messages);
        check_json(&a.tools);
        if (json_typeof(a.kwargs) != JSON_NONE && json_typeof(a.kwargs) != JSON_OBJ) abort();
        if (a.think < -1 || a.think > 1) abort();
        if (a.messages.len < 2 || a.n < 1 || a.rq.n_stop > CAIRN_MAX_STOP) abort();
    } else if (f.dg.message[0] == 0) {
        abort(); /* refused without a reason */
    }
    chat_ask_deinit(&a);
    return 0;
}
