/* Steps inside a call's markup: white space and literals, names, and arguments that are passed on as
   they come. */
#include "base/str.h"
#include "text/reply_priv.h"

static const tool_arm *otherwise(const tool_state *s)
{
    for (const tool_arm *a = s->arm; a->lit; a++)
        if (!a->lit[0]) return a;
    return NULL;
}

void reply_step_skip(reply *r, const tool_state *s, char c)
{
    const tool_arm *arm;
    const reply_match m = reply_match_byte(r, s, c, &arm);
    if (m == MATCH_PART) return;
    if (m == MATCH_FULL) {
        reply_take_arm(r, arm);
        return;
    }
    if (r->n_pend == 1 && scan_is_space(c)) {
        r->n_pend = 0;
        reply_took(r, &c, 1);
        return;
    }
    arm = otherwise(s);
    if (!arm) {
        reply_fail(r, r->pend, r->n_pend);
        return;
    }
    reply_unread(r, r->pend, r->n_pend);
    r->n_pend = 0;
    reply_take_arm(r, arm);
}

static bool name_byte(char c)
{
    const unsigned char u = (unsigned char)c;
    return u >= 128 || (u >= '0' && u <= '9') || ((u | 32) >= 'a' && (u | 32) <= 'z') ||
           (c && strchr("_-.:/ \n\t\r", c));
}

static bool word_byte(reply *r, const tool_state *s, char c)
{
    if (s->op == TOOL_DROP) return ++r->n_dropped <= CAIRN_REPLY_MAX_HEADER;
    if (r->n_word == sizeof r->word || (s->op != TOOL_KEY && !name_byte(c))) return false;
    r->word[r->n_word++] = c;
    return true;
}

/* "functions.NAME:INDEX" → NAME, and the whole is the id. */
static cairn_str kimi_name(reply *r, cairn_str word)
{
    static const char prefix[] = "functions.";
    size_t n = word.len;
    memcpy(r->id, word.ptr, word.len);
    r->n_id = word.len;
    while (n && str_is_digit(word.ptr[n - 1])) n--;
    if (n && n < word.len && word.ptr[n - 1] == ':') word.len = n - 1;
    if (str_starts(word, STR_LIT(prefix)))
        word = str_sub(word, sizeof prefix - 1, word.len - (sizeof prefix - 1));
    return word;
}

static void keep_word(reply *r, const tool_state *s)
{
    cairn_str w = {r->word, r->n_word};
    if (s->op == TOOL_DROP) return;
    if (s->op == TOOL_KEY) {
        reply_open_key(r, w);
        return;
    }
    w = str_trim(w);
    if (s->op == TOOL_ID) {
        memcpy(r->id, w.ptr, w.len);
        r->n_id = w.len;
        return;
    }
    if (s->flags & TOOL_KIMI) w = kimi_name(r, w);
    memcpy(r->name, w.ptr, w.len);
    r->n_name = w.len;
}

void reply_step_word(reply *r, const tool_state *s, char c)
{
    const tool_arm *arm;
    const reply_match m = reply_match_byte(r, s, c, &arm);
    if (m == MATCH_PART) return;
    if (m == MATCH_FULL) {
        keep_word(r, s);
        reply_take_arm(r, arm);
        return;
    }
    const char first = r->pend[0];
    if (!word_byte(r, s, first)) {
        reply_fail(r, r->pend, r->n_pend);
        return;
    }
    (void)reply_first(r);
    reply_took(r, &first, 1);
}

static void args_done(reply *r, const tool_state *s)
{
    r->args_whole = true;
    if (s->flags & TOOL_END) (void)reply_end(r, CAIRN_CALL_DONE);
    reply_enter(r, s->next);
}

void reply_step_json(reply *r, const tool_state *s, char c)
{
    char esc[6];
    if (scan_fresh(&r->scan)) {
        if (scan_is_space(c)) {
            reply_took(r, &c, 1);
            return;
        }
        if (c != '{' || !reply_begin(r)) {
            reply_fail(r, &c, 1);
            return;
        }
    }
    const bool in_string = scan_in_string(&r->scan);
    const scan_result res = scan_feed(&r->scan, c);
    if (res == SCAN_BAD) {
        reply_fail(r, &c, 1);
        return;
    }
    const cairn_str raw = {&c, 1};
    const bool control = in_string && (unsigned char)c < 32;
    reply_out_args(r, control ? (cairn_str){esc, scan_escape(c, esc)} : raw, raw);
    if (res == SCAN_DONE) args_done(r, s);
}

/* One byte into the converter; what it wrote leaves as arguments. */
static scan_result convert(reply *r, char c, cairn_str raw)
{
    buf_cut(&r->json, 0);
    const scan_result res = literal_feed(&r->literal, c, !r->marks_special || r->special, &r->json);
    if (buf_status(&r->json) != CAIRN_OK) r->no_memory = true;
    if (res == SCAN_BAD) return res;
    const cairn_str none = {0};
    reply_out_args(r, buf_view(&r->json), res == SCAN_AFTER ? none : raw);
    return res;
}

void reply_step_gemma(reply *r, const tool_state *s, char c)
{
    if (!r->begun && (c != '{' || !reply_begin(r))) {
        reply_fail(r, &c, 1);
        return;
    }
    const scan_result res = convert(r, c, (cairn_str){&c, 1});
    if (res == SCAN_BAD) reply_fail(r, &c, 1);
    if (res == SCAN_DONE) args_done(r, s);
}

enum { KW_FIRST, KW_NAME, KW_EQUAL, KW_VALUE, KW_AFTER };

static bool kwargs_end(reply *r, const tool_state *s, char c)
{
    if (c != ')' || !reply_begin(r)) return false;
    reply_took(r, &c, 1);
    args_done(r, s);
    return true;
}

static bool kwargs_value(reply *r, const tool_state *s, char c)
{
    const scan_result res = convert(r, c, (cairn_str){&c, 1});
    if (res == SCAN_MORE) return true;
    r->kwargs = KW_AFTER;
    if (res == SCAN_DONE) return true;
    if (res == SCAN_BAD) return false;
    reply_step_kwargs(r, s, c);
    return true;
}

/* The name waits in `pend`: without a "=" after it, it is no name. */
static bool kwargs_name(reply *r, char c)
{
    if (c != '=' && !scan_is_space(c)) {
        if (!name_byte(c) || r->n_pend == sizeof r->pend) return false;
        r->pend[r->n_pend++] = c;
        return true;
    }
    if (!reply_begin(r)) return false;
    reply_open_key(r, (cairn_str){r->pend, r->n_pend});
    reply_took(r, r->pend, r->n_pend);
    r->n_pend = 0;
    literal_init(&r->literal, LITERAL_PYTHON);
    r->kwargs = c == '=' ? KW_VALUE : KW_EQUAL;
    reply_took(r, &c, 1);
    return true;
}

static bool kwargs_byte(reply *r, const tool_state *s, char c)
{
    if (r->kwargs == KW_VALUE) return kwargs_value(r, s, c);
    if (r->kwargs == KW_NAME) return kwargs_name(r, c);
    if (scan_is_space(c)) {
        reply_took(r, &c, 1);
        return true;
    }
    if (c == ')' && r->kwargs != KW_EQUAL) return kwargs_end(r, s, c);
    if (r->kwargs == KW_FIRST && name_byte(c)) {
        r->kwargs = KW_NAME;
        return kwargs_name(r, c);
    }
    if (r->kwargs == KW_EQUAL && c == '=')
        r->kwargs = KW_VALUE;
    else if (r->kwargs == KW_AFTER && c == ',')
        r->kwargs = KW_FIRST;
    else
        return false;
    reply_took(r, &c, 1);
    return true;
}

void reply_step_kwargs(reply *r, const tool_state *s, char c)
{
    if (kwargs_byte(r, s, c)) return;
    reply_unread(r, &c, 1);
    reply_fail(r, r->pend, r->n_pend);
}
