/* Where later prompts of a conversation will part from this one.  No template says so; but it can be asked
   how the next turn would begin, and the turn before this one, and the ids compared. */
#include "base/json.h"
#include "base/str.h"
#include "cairn/text.h"

/* The conversation without its last message, or with an answer and a question more. */
static cairn_status probe_messages(json_val messages, bool shorter, buf *out)
{
    json_writer w = json_write(out);
    json_iter it = json_each(messages);
    json_val v;
    size_t left = json_size(messages);
    json_w_arr(&w);
    while (json_next(&it, &v))
        if (left-- > 1 || !shorter) json_w_val(&w, v);
    for (int i = 0; i < 2 && !shorter; i++) {
        json_w_obj(&w);
        json_w_kstr(&w, "role", str_of(i == 0 ? "assistant" : "user"));
        json_w_kstr(&w, "content", STR_LIT("A"));
        json_w_end_obj(&w);
    }
    json_w_end_arr(&w);
    return buf_status(out);
}

static size_t common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t i = 0;
    while (i < n_a && i < n_b && a[i] == b[i]) i++;
    return i;
}

/* How many of the prompt's ids a probe begins with; 0 where the template refuses it. */
static size_t agrees(const cairn_text *t, const cairn_render_opts *o, json_val messages,
                     bool shorter, const int32_t *ids, size_t n)
{
    cairn_render_opts probe = *o;
    cairn_ids found = {0};
    size_t same = 0;
    buf b;
    buf_init(&b, MEM_TEXT);
    cairn_status st = probe_messages(messages, shorter, &b);
    probe.messages = buf_view(&b);
    probe.no_generation_prompt = true;
    if (st == CAIRN_OK) st = cairn_text_prompt(t, &probe, &found, NULL);
    if (st == CAIRN_OK) same = common(ids, n, found.ptr, found.len);
    cairn_ids_free(&found);
    buf_deinit(&b);
    return same;
}

size_t cairn_text_marks(const cairn_text *t, const cairn_render_opts *o, const int32_t *ids,
                        size_t n, int32_t marks[2])
{
    json_doc *d = NULL;
    size_t n_marks = 0;
    if (!t || !o || json_parse(o->messages, &d, NULL) != CAIRN_OK) return 0;
    const size_t before = agrees(t, o, json_root(d), true, ids, n);
    const size_t next = agrees(t, o, json_root(d), false, ids, n);
    json_free(d);
    if (before > 0) marks[n_marks++] = (int32_t)before;
    if (next > before) marks[n_marks++] = (int32_t)next;
    return n_marks;
}
