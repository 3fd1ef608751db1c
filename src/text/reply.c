/* The machine that walks a family's table: its life, its loop over bytes, and the states of text.
   Steps inside calls are in reply_call.c, reply_object.c and reply_value.c.  Invariant: a byte that is read is
   accounted for before the next is (reply_priv.h says where), and every failure gives out at least
   one byte or leaves a call, so that reading again always ends. */
#include "text/reply.h"

#include "base/diag.h"
#include "base/str.h"
#include "text/reply_priv.h"

void reply_enter(reply *r, uint8_t to)
{
    const tool_state *s = &r->fam->state[to];
    r->state = to;
    switch (s->op) {
    case TOOL_ANSWER:
    case TOOL_THOUGHT:
        reply_commit(r);
        r->at_start = true;
        break;
    case TOOL_NAME:
        r->n_name = r->n_word = 0;
        break;
    case TOOL_ID:
    case TOOL_KEY:
    case TOOL_DROP:
        r->n_word = r->n_dropped = 0;
        break;
    case TOOL_VALUE:
        reply_enter_value(r, s);
        break;
    case TOOL_NEST:
        reply_enter_nest(r, s);
        break;
    case TOOL_JSON:
        scan_init(&r->scan);
        break;
    case TOOL_OBJECT:
        r->n_name = r->n_id = 0;
        r->object = (reply_object){0};
        buf_cut(&r->value, 0);
        break;
    case TOOL_GEMMA:
        literal_init(&r->literal, s->flags & TOOL_ESCAPE ? LITERAL_ESCAPE : LITERAL_GEMMA);
        break;
    case TOOL_KWARGS:
        r->kwargs = 0;
        break;
    case TOOL_SKIP:
        break;
    }
}

static cairn_reply_kind kind_of(const reply *r, uint8_t state)
{
    return r->fam->state[state].op == TOOL_THOUGHT ? CAIRN_REPLY_THOUGHT : CAIRN_REPLY_ANSWER;
}

void reply_fail(reply *r, const char *p, size_t n)
{
    reply_unread(r, p, n);
    r->n_pend = 0;
    if (r->begun) {
        (void)reply_end(r, CAIRN_CALL_BROKEN);
        reply_enter(r, r->fam->answer);
        return;
    }
    if (!r->holding || r->held.len == 0) {
        r->holding = false;
        reply_enter(r, r->fam->answer);
        return;
    }
    const size_t lead = r->held_lead, keep = lead < r->held.len ? lead + 1 : lead;
    /* Held bytes of the special token that is being fed; the others are read again as plain ones. */
    const size_t own = r->special && r->fed_now > n ? r->fed_now - n : 0;
    r->holding = false;
    r->n_name = r->n_id = 0;
    if (r->marks_special) r->n_plain = r->held.len > own + keep ? r->held.len - own - keep : 0;
    reply_out_text(r, kind_of(r, r->home), r->held.ptr, keep);
    reply_unread(r, r->held.ptr + keep, r->held.len - keep);
    buf_cut(&r->held, 0);
    reply_enter(r, r->home);
    r->at_start = false;
}

static void flush_space(reply *r, cairn_reply_kind kind)
{
    reply_out_text(r, kind, r->space, r->n_space);
    r->n_space = 0;
}

static void text_byte(reply *r, const tool_state *s, char c)
{
    const cairn_reply_kind kind = kind_of(r, r->state);
    if (scan_is_space(c)) {
        if (r->at_start && (s->flags & TOOL_TRIM)) {
            reply_took(r, &c, 1);
            return;
        }
        if (r->n_space == REPLY_MAX_SPACE) flush_space(r, kind);
        r->space[r->n_space++] = c;
        return;
    }
    flush_space(r, kind);
    r->at_start = false;
    reply_out_text(r, kind, &c, 1);
}

void reply_step_text(reply *r, const tool_state *s, char c)
{
    const tool_arm *arm;
    const reply_match m = reply_match_byte(r, s, c, &arm);
    if (m == MATCH_PART) return;
    if (m == MATCH_FULL) {
        reply_take_arm(r, arm);
        return;
    }
    const char first = reply_first(r);
    text_byte(r, s, first);
}

static void step(reply *r, char c)
{
    const tool_state *s = reply_state(r);
    switch (s->op) {
    case TOOL_ANSWER:
    case TOOL_THOUGHT:
        reply_step_text(r, s, c);
        break;
    case TOOL_SKIP:
        reply_step_skip(r, s, c);
        break;
    case TOOL_NAME:
    case TOOL_ID:
    case TOOL_KEY:
    case TOOL_DROP:
        reply_step_word(r, s, c);
        break;
    case TOOL_VALUE:
        reply_step_value(r, s, c);
        break;
    case TOOL_NEST:
        reply_step_nest(r, s, c);
        break;
    case TOOL_JSON:
        reply_step_json(r, s, c);
        break;
    case TOOL_OBJECT:
        reply_step_object(r, s, c);
        break;
    case TOOL_GEMMA:
        reply_step_gemma(r, s, c);
        break;
    case TOOL_KWARGS:
        reply_step_kwargs(r, s, c);
        break;
    }
    const size_t limit = s->op == TOOL_OBJECT ? CAIRN_REPLY_MAX_HELD : CAIRN_REPLY_MAX_HEADER;
    if (r->holding && r->held.len > limit) reply_fail(r, r->pend, r->n_pend);
}

/* Bytes of a text at once: none of them can begin a literal, and white space at their end waits. */
static size_t text_run(reply *r, const tool_state *s, const char *p, size_t n)
{
    size_t i = 0;
    if (r->at_start) return 0;
    while (i < n && !tool_starts_arm(s, p[i])) i++;
    while (i > 0 && scan_is_space(p[i - 1])) i--;
    if (i == 0) return 0;
    flush_space(r, kind_of(r, r->state));
    reply_out_text(r, kind_of(r, r->state), p, i);
    return i;
}

/* As many bytes as a state takes without a look at each: what `step` would do with them. */
static size_t plain_run(reply *r, const char *p, size_t n)
{
    const tool_state *s = reply_state(r);
    if (r->n_pend || n < 2) return 0;
    if (tool_is_text(s)) return text_run(r, s, p, n);
    if (s->op == TOOL_VALUE) return reply_value_run(r, s, p, n);
    return s->op == TOOL_JSON || s->op == TOOL_OBJECT ? reply_json_run(r, p, n) : 0;
}

static void run(reply *r, const char *p, size_t n, bool special)
{
    size_t i = 0;
    if (n == 0) p = "";
    r->fed_now = 0;
    while (!r->no_memory) {
        if (r->replay_at < r->replay.len) {
            r->special = special && r->n_plain == 0;
            if (r->n_plain) r->n_plain--;
            step(r, r->replay.ptr[r->replay_at++]);
            continue;
        }
        buf_cut(&r->replay, 0);
        r->replay_at = r->n_plain = 0;
        i += plain_run(r, p + i, n - i);
        if (i == n) break;
        r->special = special;
        r->fed_now = i + 1;
        step(r, p[i++]);
    }
    reply_out_flush(r);
}

static cairn_status status_of(const reply *r)
{
    return r->no_memory ? CAIRN_E_NOMEM : CAIRN_OK;
}

cairn_status reply_feed(reply *r, cairn_str bytes, bool special)
{
    run(r, bytes.ptr, bytes.len, special);
    return status_of(r);
}

cairn_status reply_skip(reply *r, cairn_str bytes)
{
    r->quiet = true;
    run(r, bytes.ptr, bytes.len, false);
    r->quiet = false;
    return status_of(r);
}

/* White space at the end of a text, and half a marker, are the text's own. */
static void end_text(reply *r)
{
    reply_out_text(r, kind_of(r, r->state), r->space, r->n_space);
    reply_out_text(r, kind_of(r, r->state), r->pend, r->n_pend);
    r->n_space = r->n_pend = 0;
}

static void end_call(reply *r)
{
    reply_took(r, r->pend, r->n_pend);
    r->n_pend = 0;
    (void)reply_end(r, r->args_whole ? CAIRN_CALL_DONE : CAIRN_CALL_CUT);
}

cairn_status reply_finish(reply *r)
{
    for (;;) {
        const tool_state *s = reply_state(r);
        const tool_arm *arm =
            s->op == TOOL_VALUE || s->op == TOOL_NEST ? NULL : reply_match_end(r, s);
        if (arm)
            reply_take_arm(r, arm);
        else if (tool_is_text(s))
            end_text(r);
        else if (r->begun)
            end_call(r);
        else if (r->holding || r->n_pend)
            reply_fail(r, r->pend, r->n_pend);
        if (r->no_memory) break;
        if (r->replay_at < r->replay.len)
            run(r, NULL, 0, false);
        else if (tool_is_text(reply_state(r)) ? !r->n_pend && !r->n_space
                                              : !r->holding && !r->begun)
            break;
    }
    reply_out_flush(r);
    return status_of(r);
}

static uint8_t start_state(const tool_family *f, cairn_str prompt)
{
    size_t best = 0;
    uint8_t state = f->start;
    cairn_str end = prompt;
    while (end.len && scan_is_space(end.ptr[end.len - 1])) end.len--;
    for (const tool_tail *t = f->tail; t->lit; t++) {
        const cairn_str lit = str_of(t->lit);
        if (lit.len <= best || !str_ends(end, lit)) continue;
        best = lit.len;
        state = t->state;
    }
    return state;
}

static cairn_status read_tools(cairn_str tools, json_doc **out, cairn_diag *dg)
{
    if (!tools.len) return CAIRN_OK;
    TRY(json_parse_any(tools, out, dg));
    const json_type t = json_typeof(json_root(*out));
    if (t == JSON_ARR || t == JSON_NULL) return CAIRN_OK;
    return diag_set(dg, CAIRN_E_ARG, "tools must be an array, found %s", json_type_name(t));
}

enum { N_BUF = 6 };
static buf *buf_at(reply *r, size_t i)
{
    buf *const all[N_BUF] = {&r->held, &r->replay, &r->text, &r->raw, &r->value, &r->json};
    return all[i];
}

cairn_status reply_new(const cairn_reply_opts *o, cairn_reply_fn fn, void *ctx, reply **out,
                       cairn_diag *dg)
{
    const tool_family *f =
        o->family ? tool_family_find(o->family) : reply_find_family(o->template_text, o->hint);
    if (!f) return diag_set(dg, CAIRN_E_NOTFOUND, "no family of replies is called %s", o->family);
    reply *r = mem_calloc(1, sizeof *r, MEM_TEXT);
    if (!r) return diag_set(dg, CAIRN_E_NOMEM, "reply");
    r->fam = f;
    r->fn = fn;
    r->ctx = ctx;
    r->id_seed = o->id_seed;
    r->marks_special = o->marks_special;
    r->any_tool = o->any_tool;
    for (size_t i = 0; i < N_BUF; i++) buf_init(buf_at(r, i), MEM_TEXT);
    const cairn_status st = read_tools(o->tools, &r->tools, dg);
    if (st != CAIRN_OK) {
        reply_free(r);
        return st;
    }
    reply_enter(r, start_state(f, o->prompt));
    r->holding = !tool_is_text(reply_state(r));
    r->home = f->answer;
    *out = r;
    return CAIRN_OK;
}

cairn_status reply_reserve(reply *r, size_t most)
{
    for (size_t i = 0; i < N_BUF; i++) {
        TRY(buf_reserve(buf_at(r, i), most));
        buf_at(r, i)->max = most;
    }
    return CAIRN_OK;
}

size_t reply_bytes(const reply *r)
{
    return sizeof *r + r->held.cap + r->replay.cap + r->text.cap + r->raw.cap + r->value.cap +
           r->json.cap;
}

void reply_free(reply *r)
{
    if (!r) return;
    for (size_t i = 0; i < N_BUF; i++) buf_deinit(buf_at(r, i));
    json_free(r->tools);
    mem_free(r);
}

cairn_str reply_thought_end(const reply *r)
{
    return str_of(r->fam->thought_end ? r->fam->thought_end : "");
}

void reply_look(const reply *r, cairn_reply_look *out)
{
    const tool_state *s = reply_state(r);
    const bool thought = s->op == TOOL_THOUGHT;
    out->where = thought                  ? CAIRN_IN_THOUGHT
                 : s->op == TOOL_ANSWER   ? CAIRN_IN_ANSWER
                 : r->begun || r->holding ? CAIRN_IN_CALL
                                          : CAIRN_IN_MARKUP;
    out->thought_bytes = r->thought_bytes;
    out->thought_end = thought ? reply_thought_end(r) : STR_LIT("");
    out->family = r->fam->name;
    out->keep_special = r->fam->special;
    out->n_calls = r->n_calls;
}
