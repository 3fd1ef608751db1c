/* Any JSON as messages and as tools: what a server makes of it is JSON again, and making it twice
   changes nothing more. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/chat_normal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef cairn_status normal_fn(json_val v, buf *out, cairn_diag *dg);

static void twice(normal_fn *fn, json_val v)
{
    json_doc *once = NULL;
    buf a, b;

    buf_init(&a, MEM_TEXT);
    buf_init(&b, MEM_TEXT);
    if (fn(v, &a, NULL) == CAIRN_OK) {
        if (json_parse(buf_view(&a), &once, NULL) != CAIRN_OK) abort();
        if (fn(json_root(once), &b, NULL) != CAIRN_OK) abort();
        if (a.len != b.len || memcmp(a.ptr, b.ptr, a.len) != 0) abort();
        json_free(once);
    }
    buf_deinit(&a);
    buf_deinit(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_doc *d = NULL;
    if (json_parse((cairn_str){(const char *)data, size}, &d, NULL) != CAIRN_OK) return 0;
    twice(chat_normal_messages, json_root(d));
    twice(chat_normal_tools, json_root(d));
    json_free(d);
    return 0;
}
