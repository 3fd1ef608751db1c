/* Anthropic's tools as a chat template takes them. */
#ifndef SERVE_ANTHROPIC_TOOLS_H
#define SERVE_ANTHROPIC_TOOLS_H

#include "base/buf.h"
#include "serve/left_out.h"

/* `tools` of the body, checked, as OpenAI's into out; nothing if there are none.  Those that Anthropic runs, or that
   show pictures, are left out. */
cairn_status anthropic_tools_read(json_val root, buf *out, left_out *left, chat_fault *f);

#endif
