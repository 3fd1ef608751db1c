/* Thinking as a template has it: which variables it reads, and what to give them.  A variable counts
   if an identifier of that name stands in a tag or expression, is no attribute and in no string. */
#include "base/json.h"
#include "base/str.h"
#include "text/reply.h"

static bool ident(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || str_is_digit(c);
}

/* The end of the tag or expression that begins at `at`, and whether it reads `name`. */
static size_t scan_tag(cairn_str t, size_t at, cairn_str name, bool *reads)
{
    char quote = '\0';
    for (; at + 1 < t.len; at++) {
        const char c = t.ptr[at];
        if (quote) {
            if (c == '\\') at++;
            if (c == quote) quote = '\0';
            continue;
        }
        if (c == '"' || c == '\'') quote = c;
        if ((c == '%' || c == '}') && t.ptr[at + 1] == '}') break;
        if (!str_starts(str_sub(t, at, t.len - at), name)) continue;
        const char before = t.ptr[at - 1];
        const bool whole = at + name.len < t.len && !ident(t.ptr[at + name.len]);
        if (whole && !ident(before) && before != '.') *reads = true;
    }
    return at;
}

static bool reads(cairn_str t, const char *variable)
{
    const cairn_str name = str_of(variable);
    bool found = false;
    for (size_t i = 0; i + 1 < t.len && !found; i++) {
        if (t.ptr[i] != '{') continue;
        if (t.ptr[i + 1] == '#') {
            const size_t end = str_find(t, STR_LIT("#}"), i);
            if (end == SIZE_MAX) return false;
            i = end;
        } else if (t.ptr[i + 1] == '%' || t.ptr[i + 1] == '{') {
            i = scan_tag(t, i + 2, name, &found);
        }
    }
    return found;
}

static const char *const efforts[] = {"none",   "no_think", "minimal", "low",
                                      "medium", "high",     "xhigh",   "max"};
enum { N_EFFORTS = sizeof efforts / sizeof efforts[0] };

static bool quotes(cairn_str t, const char *word)
{
    char quoted[16];
    const size_t n = strlen(word);
    memcpy(quoted + 1, word, n);
    for (int i = 0; i < 2; i++) {
        quoted[0] = quoted[n + 1] = i ? '"' : '\'';
        if (str_find(t, (cairn_str){quoted, n + 2}, 0) != SIZE_MAX) return true;
    }
    return false;
}

/* A template that compares with "low" and "high" knows some levels only: the nearest above, else
   below.  Others take any word. */
static cairn_str level(cairn_str t, cairn_str effort)
{
    size_t at = 0;
    if (!quotes(t, "low") || !quotes(t, "high")) return effort;
    while (at < N_EFFORTS && !str_is(effort, efforts[at])) at++;
    if (at == N_EFFORTS) return effort;
    for (size_t i = at; i < N_EFFORTS; i++)
        if (quotes(t, efforts[i])) return str_of(efforts[i]);
    while (at > 0 && !quotes(t, efforts[at])) at--;
    return str_of(efforts[at]);
}

cairn_status reply_kwargs(cairn_str t, int think, cairn_str effort, buf *out)
{
    static const char *const flags[] = {"enable_thinking", "thinking", "reasoning"};
    static const char *const levels[] = {"reasoning_effort", "thinking_effort"};
    json_writer w = json_write(out);
    const bool none = str_is(effort, "none");
    if (think < 0 && effort.len) think = !none;
    if (think == 0 && !effort.len) effort = STR_LIT("none");
    json_w_obj(&w);
    for (size_t i = 0; think >= 0 && i < sizeof flags / sizeof flags[0]; i++)
        if (reads(t, flags[i])) json_w_kbool(&w, flags[i], think != 0);
    if (think >= 0 && reads(t, "thinking_mode"))
        json_w_kstr(&w, "thinking_mode", str_of(think ? "enabled" : "disabled"));
    if (think == 0 && reads(t, "thinking_budget")) json_w_kint(&w, "thinking_budget", 0);
    for (size_t i = 0; effort.len && i < sizeof levels / sizeof levels[0]; i++)
        if (reads(t, levels[i])) json_w_kstr(&w, levels[i], level(t, effort));
    json_w_end_obj(&w);
    return buf_status(out);
}
