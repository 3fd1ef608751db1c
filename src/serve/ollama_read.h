/* Ollama's bodies as what a chat request is here. */
#ifndef SERVE_OLLAMA_READ_H
#define SERVE_OLLAMA_READ_H

#include "cairn/status.h"
#include "serve/openai_read.h"

/* Faults that say how else the body is to be read: without messages or a prompt it asks for the model to be
   loaded (ollama_load_read), with `raw` its prompt is the model's text and no message (ollama_raw_read). */
#define OLLAMA_NOTHING "nothing is asked"
#define OLLAMA_RAW     "the prompt is no message"

/* As chat_ask_read. */
cairn_status ollama_chat_read(chat_ask *a, cairn_str body, chat_fault *f);
cairn_status ollama_generate_read(chat_ask *a, cairn_str body, chat_fault *f);
cairn_status ollama_raw_read(chat_ask *a, cairn_str body, chat_fault *f);
cairn_status ollama_load_read(chat_ask *a, cairn_str body, chat_fault *f);
/* `keep_alive` of a body: how long its model stays loaded.  *keep_ms: below 0 for good; untouched where there is none:
   then *has is false.  E_ARG, named. */
cairn_status ollama_keep_read(json_val root, bool *has, int64_t *keep_ms, cairn_diag *dg);
/* A model's name as Ollama's clients write it, without the tag that stands for none. */
cairn_str ollama_model_name(cairn_str name);

#endif
