/* Messages → prompt text: the model's own Jinja template, rendered with the messages unchanged.
   (apply_chat_template of `transformers` first drops null keys and copies reasoning fields.) */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include "base/buf.h"
#include "base/json.h"

typedef struct chat chat;

/* Compiles a template.  `bos`, `eos`: texts given to the template as bos_token and eos_token;
   `extra`: more variables (object; pad_token, …) or JSON_NONE.  Everything is copied. */
cairn_status chat_open(cairn_str template_text, cairn_str bos, cairn_str eos, json_val extra,
                       const char *where, chat **out, cairn_diag *dg);
void chat_close(chat *c);
/* One more template, by name; before the chat is shared.  Of several, a render with tools takes
   "tool_use" where there is one, every other render the one that chat_open compiled: transformers'
   rule.  A chat may be opened without a text of its own (ptr NULL): then a render that needs it fails
   and lists the names. */
cairn_status chat_add_named(chat *c, cairn_str name, cairn_str template_text, const char *where,
                            cairn_diag *dg);
/* SHA-256 of the default template's text without the white space at its end, in hex; empty when there
   is none. */
const char *chat_sha256(const chat *c);
bool chat_has_named(const chat *c, cairn_str name);
/* The text that a render with or without tools takes; empty when there is none. */
cairn_str chat_source(const chat *c, bool tools);

/* messages: array; tools: array or JSON_NONE; kwargs: object or JSON_NONE, merged over everything
   (add_generation_prompt, enable_thinking, …).  Nothing in the messages is changed. */
cairn_status chat_render(const chat *c, json_val messages, json_val tools, json_val kwargs,
                         bool add_generation_prompt, buf *out, cairn_diag *dg);
typedef struct chat_how {
    cairn_str name; /* of a named template; empty: the one that the rule above gives */
    bool add_generation_prompt;
    uint32_t max_steps; /* as jinja_render has it */
    buf *spans;         /* gets a jinja_span for each generation block, or NULL */
} chat_how;
cairn_status chat_render_as(const chat *c, const chat_how *how, json_val messages, json_val tools,
                            json_val kwargs, buf *out, cairn_diag *dg);

#endif
