/* A response as OpenAI's Responses API writes it. */
#ifndef SERVE_RESPONSES_FORMAT_H
#define SERVE_RESPONSES_FORMAT_H

#include "serve/served_answer.h"

/* Of prompts whose ask.more is a responses_ask. */
extern const answer_format responses_format;

#endif
