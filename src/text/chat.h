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

/* messages: array; tools: array or JSON_NONE; kwargs: object or JSON_NONE, merged over everything
   (add_generation_prompt, enable_thinking, …).  Nothing in the messages is changed. */
cairn_status chat_render(const chat *c, json_val messages, json_val tools, json_val kwargs,
                         bool add_generation_prompt, buf *out, cairn_diag *dg);

#endif
