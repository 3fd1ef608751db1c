/* Fuzz target: a tokenizer.json, a zero byte, a text.  Whatever the file says, encoding and decoding
   neither crash nor hang, the stream equals the whole, the lower bound of ids holds, and no memory is left. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tok_back.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *zero = size ? memchr(data, 0, size) : NULL;
    cairn_str json = {p, zero ? (size_t)(zero - p) : size};
    cairn_str text = {zero ? zero + 1 : p, zero ? size - json.len - 1 : size};
    cairn_diag dg;
    tok *t;
    buf ids;

    if (tok_open_hf(json, (cairn_str){0}, "fuzz", &t, &dg) == CAIRN_OK) {
        buf_init(&ids, MEM_TEXT);
        for (uint32_t flags = 0; flags < 4; flags++) {
            buf_clear(&ids);
            if (tok_encode(t, text, flags, &ids, &dg) != CAIRN_OK) continue;
            tok_back(t, &ids, flags & 1);
            if (tok_least_ids(t, text) > ids.len / sizeof(int32_t)) abort();
        }
        buf_deinit(&ids);
        tok_close(t);
    }
    if (mem_used_all() != 0) abort();
    return 0;
}
