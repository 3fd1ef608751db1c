/* A chat's custom tools, which take a text: to templates they are functions of one text, `input` (custom_call.h: what
   becomes of a call). */
#ifndef SERVE_OPENAI_CUSTOM_H
#define SERVE_OPENAI_CUSTOM_H

#include "base/buf.h"
#include "base/map.h"
#include "serve/body_path.h"
#include "serve/openai_read.h"

/* `parameters` of such a function, as JSON. */
#define OPENAI_CUSTOM_PARAMETERS                                                                   \
    "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\"required\":["         \
    "\"input\"]}"

/* The `syntax` and `definition` of a grammar, at `at`, as a sentence for the model: nothing enforces it. */
cairn_status openai_grammar_told(json_val grammar, body_path at, buf *out, chat_fault *f);
/* A tool of type custom, which stands at p; the name is none of those `seen`, among which it then is. */
cairn_status openai_custom_check(json_val tool, body_path p, map *seen, chat_fault *f);
/* The same, checked, as a function. */
void openai_custom_put(json_val tool, json_writer *w);
/* The value of a call of type custom, at `where`, is one. */
cairn_status openai_custom_called(json_val call, const char *where, chat_fault *f);
/* A message as it came, but its custom calls are ones of functions. */
void openai_custom_message(json_val m, json_writer *w);

#endif
