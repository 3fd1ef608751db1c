/* Messages, and the events of their streams, as Anthropic writes them. */
#ifndef SERVE_ANTHROPIC_FORMAT_H
#define SERVE_ANTHROPIC_FORMAT_H

#include "serve/served_answer.h"

extern const answer_format anthropic_format;

#endif
