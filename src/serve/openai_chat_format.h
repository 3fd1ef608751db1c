/* Chat completions as OpenAI writes them. */
#ifndef SERVE_OPENAI_CHAT_FORMAT_H
#define SERVE_OPENAI_CHAT_FORMAT_H

#include "serve/served_answer.h"

extern const answer_format openai_chat_format;

#endif
