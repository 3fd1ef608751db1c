/* Invariant: nothing of a message is in `out` before it is done. */
#include "serve/turns.h"

#include "base/str.h"
#include "serve/text_of.h"

const char turns_user[] = "user", turns_assistant[] = "assistant", turns_system[] = "system";

void turns_init(turns *t, buf *out)
{
    *t = (turns){.w = json_write(out)};
    buf_init(&t->text, MEM_SERVE);
    buf_init(&t->thought, MEM_SERVE);
    buf_init(&t->calls, MEM_SERVE);
}

void turns_deinit(turns *t)
{
    buf_deinit(&t->text);
    buf_deinit(&t->thought);
    buf_deinit(&t->calls);
}

cairn_status turns_status(const turns *t)
{
    cairn_status st = buf_status(t->w.out);

    if (st == CAIRN_OK) st = buf_status(&t->text);
    if (st == CAIRN_OK) st = buf_status(&t->thought);
    return st == CAIRN_OK ? buf_status(&t->calls) : st;
}

void turns_flush(turns *t)
{
    if (!t->role) return;
    json_w_obj(&t->w);
    json_w_kstr(&t->w, "role", str_of(t->role));
    json_w_key(&t->w, "content");
    if (t->has_text || !t->calls.len)
        json_w_str(&t->w, text_of(&t->text));
    else
        json_w_null(&t->w);
    if (t->thought.len) json_w_kstr(&t->w, "reasoning_content", buf_view(&t->thought));
    if (t->calls.len) {
        json_w_key(&t->w, "tool_calls");
        json_w_arr(&t->w);
        json_w_raw(&t->w, buf_view(&t->calls));
        json_w_end_arr(&t->w);
    }
    json_w_end_obj(&t->w);
    buf_cut(&t->text, 0);
    buf_cut(&t->thought, 0);
    buf_cut(&t->calls, 0);
    t->has_text = false;
    t->role = NULL;
}

void turns_to(turns *t, const char *role)
{
    if (t->role == role) return;
    turns_flush(t);
    t->role = role;
}

void turns_text(turns *t, cairn_str text)
{
    if (t->has_text) buf_puts(&t->text, t->between);
    buf_str(&t->text, text);
    t->has_text = true;
    t->between = "\n";
}

void turns_thought(turns *t, cairn_str text)
{
    if (t->thought.len && text.len) buf_byte(&t->thought, '\n');
    buf_str(&t->thought, text);
}

json_writer turns_call(turns *t, cairn_str id, cairn_str name)
{
    json_writer w = json_write(&t->calls);

    if (t->calls.len) buf_byte(&t->calls, ',');
    json_w_obj(&w);
    json_w_kstr(&w, "id", id);
    json_w_kstr(&w, "type", STR_LIT("function"));
    json_w_key(&w, "function");
    json_w_obj(&w);
    json_w_kstr(&w, "name", name);
    json_w_key(&w, "arguments");
    return w;
}

void turns_called(json_writer *w)
{
    json_w_end_obj(w);
    json_w_end_obj(w);
}

void turns_result(turns *t, cairn_str id, cairn_str name, cairn_str text)
{
    turns_flush(t);
    json_w_obj(&t->w);
    json_w_kstr(&t->w, "role", STR_LIT("tool"));
    if (id.len) json_w_kstr(&t->w, "tool_call_id", id);
    if (name.len) json_w_kstr(&t->w, "name", name);
    json_w_kstr(&t->w, "content", text.len ? text : STR_LIT(""));
    json_w_end_obj(&t->w);
}
