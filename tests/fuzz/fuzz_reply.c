/* Model output from anywhere through every family.  The first byte picks the family, the second how
   the rest is cut; up to the first NUL it is the prompt.  What comes out must account for every byte,
   be the same however it was cut, and finished calls must have arguments that are JSON. */
#include <assert.h>
#include <string.h>

#include "../reply_record.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{"
    "\"type\":\"string\"},"
    "\"b\":{\"type\":[\"string\",\"null\"]},\"c\":{\"type\":\"integer\"}}}}},{\"name\":\"g\"}]";

static void check(const record *r, cairn_str text)
{
    assert(!r->wrong);
    assert(str_eq(buf_view(&r->raw), text));
    for (int i = 0; i < r->n_calls; i++) {
        json_doc *d = NULL;
        assert(r->call[i].end >= 0);
        if (r->call[i].end != CAIRN_CALL_DONE || !utf8_valid(buf_view(&r->call[i].args))) continue;
        const cairn_status st = json_parse(buf_view(&r->call[i].args), &d, NULL);
        assert(st == CAIRN_OK && json_typeof(json_root(d)) == JSON_OBJ);
        (void)st;
        json_free(d);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    size_t n_families = 0;
    while (tool_family_at(n_families)) n_families++;
    cairn_str text = {(const char *)data + 2, size - 2}, prompt = {0};
    const char *nul = memchr(text.ptr, '\0', text.len);
    if (nul) {
        prompt = str_sub(text, 0, (size_t)(nul - text.ptr));
        text = str_sub(text, prompt.len + 1, text.len - prompt.len - 1);
    }
    const cairn_reply_opts o = {.struct_size = sizeof o,
                                .family = tool_family_at(data[0] % n_families)->name,
                                .tools = {tools, sizeof tools - 1},
                                .any_tool = data[1] & 1,
                                .prompt = prompt};
    static record whole, cut; /* too big for a stack */
    record_init(&whole);
    record_init(&cut);
    record_run(&whole, &o, text, 0);
    check(&whole, text);
    record_run(&cut, &o, text, data[1] & 2 ? 1 : -1 - data[1]);
    assert(record_same(&whole, &cut));
    record_deinit(&whole);
    record_deinit(&cut);
    return 0;
}
