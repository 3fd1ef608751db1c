/* How Ollama's routes write answers and errors. */
#ifndef SERVE_OLLAMA_FORMAT_H
#define SERVE_OLLAMA_FORMAT_H

#include "base/json.h"
#include "serve/served_answer.h"

extern const answer_format ollama_chat_format, ollama_generate_format;

/* {"error": message}; a field at fault that the message does not name goes before it. */
void ollama_refuse(http_req *rq, int status, const char *param, const char *code,
                   const char *message);
/* The reply to who asks nothing, into body: `why` is "load", or "unload". */
void ollama_put_loaded(const char *model, bool chat, const char *why, buf *body);
/* "KEY": the time of day, as RFC 3339 has it. */
void ollama_write_time(json_writer *w, const char *key, int64_t unix_s);

#endif
