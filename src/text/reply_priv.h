/* The machine's state, and what its files offer each other.  Every byte that was fed is in exactly
   one place: given out, in `space`, `held`, `pend`, or `replay`; or, as part of a parameter's value,
   given out as markup and copied to `value`. */
#ifndef TEXT_REPLY_PRIV_H
#define TEXT_REPLY_PRIV_H

#include "base/json.h"
#include "text/reply.h"
#include "text/tool/tool_literal.h"

/* White space that may turn out to be markup; a longer run is text. */
enum { REPLY_MAX_SPACE = 256 };

/* The call as one JSON object: where in it we are. */
typedef struct reply_object {
    uint8_t state;
    uint8_t key; /* which of its keys the value belongs to */
    bool named, has_args;
    unescape esc;
    scan scan;
} reply_object;

enum { V_STRING, V_NULLABLE, V_KEPT }; /* NULLABLE: a string, or null: not yet known */
typedef struct reply_value {
    uint8_t mode;
    bool newline;   /* one is held: markup if the value ends here */
    uint32_t depth; /* NEST: elements that are open */
    json_val schema;
} reply_value;

struct reply {
    const tool_family *fam;
    cairn_reply_fn fn;
    void *ctx;
    json_doc *tools;
    uint64_t id_seed;
    bool marks_special, any_tool;
    bool quiet;     /* no events: the prompt's own part */
    bool no_memory; /* sticky */

    uint8_t state;
    uint8_t home;  /* the text state that a call which is none goes back to */
    bool at_start; /* nothing but white space came in this text */
    bool holding;  /* a call may begin: its bytes are in `held` */
    bool begun;    /* CALL_BEGIN was given, CALL_END not */
    bool special;  /* a special token is being fed */
    size_t fed_now;
    size_t held_lead; /* bytes of white space at the beginning of `held` */
    uint32_t n_space, n_pend;
    char space[REPLY_MAX_SPACE];
    char pend[CAIRN_REPLY_MAX_NAME]; /* the beginning of a literal, perhaps */
    buf held;
    buf replay; /* bytes to read again, from replay_at on, before any more */
    size_t replay_at;
    size_t n_plain; /* of those, bytes that are no special token's */

    cairn_reply_kind out_kind;
    buf text, raw; /* the event being gathered */
    uint64_t thought_bytes;

    int32_t n_calls; /* begun */
    json_val schema; /* properties of the function's parameters */
    size_t n_args;   /* parameters written; the object is open when brace */
    bool brace, args_seen;
    bool args_whole; /* the arguments are complete, the call's end has not come */
    char name[CAIRN_REPLY_MAX_NAME];
    char id[CAIRN_REPLY_MAX_NAME];
    char word[CAIRN_REPLY_MAX_NAME]; /* name, id or key being read */
    size_t n_name, n_id, n_word;
    size_t n_dropped; /* bytes of a DROP */
    buf value;        /* a value, or arguments whose function is not known yet */
    buf json;         /* what a converter made of the last byte or value */
    scan scan;
    literal literal;
    reply_object object;
    reply_value val;
    uint8_t kwargs;
};

/* reply_out.c */
void reply_out_text(reply *r, cairn_reply_kind kind, const char *p, size_t n);
void reply_out_args(reply *r, cairn_str text, cairn_str raw);
void reply_out_flush(reply *r);
/* Markup: given out as such, or held while it is not sure. */
void reply_took(reply *r, const char *p, size_t n);
void reply_commit(reply *r); /* what is held is markup */
void reply_unread(reply *r, const char *p, size_t n);
/* False: no function of that name. */
bool reply_begin(reply *r);
bool reply_end(reply *r, cairn_call_end how); /* begins it first; writes {} where nothing came */

/* reply.c */
static inline const tool_state *reply_state(const reply *r)
{
    return &r->fam->state[r->state];
}
static inline bool tool_is_text(const tool_state *s)
{
    return s->op == TOOL_ANSWER || s->op == TOOL_THOUGHT;
}
static inline bool tool_starts_arm(const tool_state *s, char c)
{
    for (const tool_arm *a = s->arm; a->lit; a++)
        if (a->lit[0] == c) return true;
    return false;
}
void reply_enter(reply *r, uint8_t to);
/* This is no call after all, or a broken one.  The n bytes at p were read and not used. */
void reply_fail(reply *r, const char *p, size_t n);

/* reply_match.c: literals */
typedef enum reply_match { MATCH_NONE, MATCH_PART, MATCH_FULL } reply_match;
/* Adds c to `pend` and compares; a full match names its arm, bytes beyond it are unread. */
reply_match reply_match_byte(reply *r, const tool_state *s, char c, const tool_arm **arm);
char reply_first(reply *r); /* of `pend`, when nothing matched; the others are unread */
const tool_arm *reply_match_end(reply *r, const tool_state *s); /* the text ends: a whole arm */
void reply_take_arm(reply *r, const tool_arm *arm);

/* Steps: one byte in a state of that kind. */
void reply_step_text(reply *r, const tool_state *s, char c);
void reply_step_skip(reply *r, const tool_state *s, char c);
void reply_step_word(reply *r, const tool_state *s, char c);
void reply_step_value(reply *r, const tool_state *s, char c);
void reply_step_nest(reply *r, const tool_state *s, char c);
void reply_step_json(reply *r, const tool_state *s, char c);
void reply_step_object(reply *r, const tool_state *s, char c);
void reply_step_gemma(reply *r, const tool_state *s, char c);
void reply_step_kwargs(reply *r, const tool_state *s, char c);
/* Bytes inside a string that stand for themselves, at once; answers how many. */
size_t reply_value_run(reply *r, const tool_state *s, const char *p, size_t n);
bool reply_object_in_args(const reply *r); /* not those written as a string */
size_t reply_json_run(reply *r, const char *p, size_t n);
void reply_enter_value(reply *r, const tool_state *s);
void reply_enter_nest(reply *r, const tool_state *s);
void reply_open_key(reply *r, cairn_str key);

/* Values that have a text and a schema (reply_value.c). */
enum { T_STRING = 1, T_NULL = 2, T_ARRAY = 4, T_OBJECT = 8, T_OTHER = 16 };
unsigned reply_types_of(json_val schema); /* those that it admits; 0: it does not say */
json_val reply_member(json_val object, cairn_str key);
void reply_put_string(buf *out, cairn_str s); /* with its quotes */
/* What reads as a value, else a string; no text: an empty array or object where it must be one. */
void reply_put_value(buf *out, unsigned types, cairn_str text);
void reply_leave(reply *r, cairn_str raw); /* r->json, as arguments */

#endif
