/* Anthropic's messages and tools as a chat template takes them. */
#ifndef SERVE_ANTHROPIC_MESSAGES_H
#define SERVE_ANTHROPIC_MESSAGES_H

#include "base/buf.h"
#include "cairn/status.h"
#include "serve/openai_read.h"

/* `system` and `messages` of the body, checked, as a JSON array of OpenAI's messages into out. */
cairn_status anthropic_messages_read(json_val root, buf *out, chat_fault *f);
/* `tools`, checked, as OpenAI's into out; nothing if there are none. */
cairn_status anthropic_tools_read(json_val root, buf *out, chat_fault *f);

#endif
