/* Any bytes as a template, rendered with a fixed conversation: neither a crash nor a leak. */
#include "base/json.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char context[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":"
        "[{\"type\":\"text\",\"text\":\"h\\u00e9\"}]},{\"role\":\"assistant\",\"content\":null,"
        "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5,true]}}}]}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}]}";
    cairn_str text = {(const char *)data, size};
    cairn_str mark = {"", 0};
    json_doc *d = NULL;
    chat *c = NULL;
    cairn_diag dg;
    buf out;

    if (json_parse((cairn_str){context, sizeof context - 1}, &d, &dg) != CAIRN_OK) __builtin_trap();
    buf_init(&out, MEM_TEXT);
    if (chat_open(text, mark, mark, (json_val){0}, "fuzz", &c, &dg) == CAIRN_OK) {
        json_val root = json_root(d);
        (void)chat_render(c, json_get(root, "messages"), json_get(root, "tools"), (json_val){0},
                          true, &out, &dg);
    }
    buf_deinit(&out);
    chat_close(c);
    json_free(d);
    return 0;
}
