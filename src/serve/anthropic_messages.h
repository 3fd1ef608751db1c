/* Anthropic's messages as a chat template takes them. */
#ifndef SERVE_ANTHROPIC_MESSAGES_H
#define SERVE_ANTHROPIC_MESSAGES_H

#include "base/buf.h"
#include "cairn/status.h"
#include "serve/body_path.h"
#include "serve/left_out.h"
#include "serve/openai_read.h"

/* `system` and `messages` of the body, checked, as a JSON array of OpenAI's messages into out; blocks that say nothing
   to a model are left out. */
cairn_status anthropic_messages_read(json_val root, buf *out, left_out *left, chat_fault *f);

#endif
