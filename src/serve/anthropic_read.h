/* The bodies of Anthropic's messages API, read and checked. */
#ifndef SERVE_ANTHROPIC_READ_H
#define SERVE_ANTHROPIC_READ_H

#include "serve/openai_read.h"

/* Both as chat_ask_read. */
cairn_status anthropic_ask_read(chat_ask *a, cairn_str body, chat_fault *f);
/* The same body for its count: nothing is generated, and `max_tokens` need not be there. */
cairn_status anthropic_count_read(chat_ask *a, cairn_str body, chat_fault *f);

#endif
