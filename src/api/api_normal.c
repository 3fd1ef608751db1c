/* The public face of what a server does to a request before it renders it.  Apart from api_text.c: who
   normalises needs no tokenizer. */
#include "base/alloc.h"
#include "base/diag.h"
#include "cairn/text.h"
#include "text/chat_normal.h"

static cairn_status normalise(cairn_str json, const char *what, bool tools, cairn_bytes *out,
                              cairn_diag *dg)
{
    json_doc *d = NULL;
    buf b;
    cairn_status st = json_parse_any(json, &d, dg);
    if (st != CAIRN_OK) return diag_prefix(dg, st, "%s", what);
    buf_init(&b, MEM_TEXT);
    st = (tools ? chat_normal_tools : chat_normal_messages)(json_root(d), &b, dg);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    json_free(d);
    return st;
}

cairn_status cairn_normalise_messages(cairn_str messages, cairn_bytes *out, cairn_diag *dg)
{
    return normalise(messages, "messages", false, out, dg);
}

cairn_status cairn_normalise_tools(cairn_str tools, cairn_bytes *out, cairn_diag *dg)
{
    return normalise(tools, "tools", true, out, dg);
}
