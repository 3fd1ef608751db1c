/* Completions of text as OpenAI writes them. */
#ifndef SERVE_OPENAI_COMPLETION_FORMAT_H
#define SERVE_OPENAI_COMPLETION_FORMAT_H

#include "serve/served_answer.h"

extern const answer_format openai_completion_format;

#endif
