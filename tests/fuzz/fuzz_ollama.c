/* The readers of Ollama's bodies on any bytes: no crash, what they accept is JSON again, and what they refuse has a
   reason. */
#include <stdlib.h>

#include "base/json.h"
#include "serve/ollama_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const buf *b, bool wanted)
{
    json_doc *doc = NULL;

    if (b->len == 0 && !wanted) return;
    if (json_parse_any(buf_view(b), &doc, NULL) != CAIRN_OK) abort();
    if (json_typeof(json_root(doc)) != JSON_ARR || json_size(json_root(doc)) == 0) abort();
    json_free(doc);
}

typedef cairn_status reader(chat_ask *a, cairn_str body, chat_fault *f);

static void try_one(reader *read, cairn_str body, bool messages)
{
    chat_ask a;
    chat_fault f;

    if (read(&a, body, &f) == CAIRN_OK) {
        check_json(&a.messages, messages);
        check_json(&a.tools, false);
        if (a.think < -1 || a.think > 1 || a.want_ctx < 0 || a.rq.max_tokens < 0) abort();
        if (a.rq.n_stop > CAIRN_MAX_STOP || a.n != 1) abort();
    } else if (f.dg.message[0] == 0) {
        abort();
    }
    chat_ask_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cairn_str body = {(const char *)data, size};

    try_one(ollama_chat_read, body, true);
    try_one(ollama_generate_read, body, true);
    try_one(ollama_raw_read, body, false);
    try_one(ollama_load_read, body, false);
    return 0;
}
