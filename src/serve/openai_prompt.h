/* What the body of a chat request becomes: the request that was asked for, and its prompt. */
#ifndef SERVE_OPENAI_PROMPT_H
#define SERVE_OPENAI_PROMPT_H

#include "base/buf.h"
#include "cairn/status.h"
#include "serve/models.h"
#include "serve/openai_read.h"
#include "serve/openai_reader.h"

/* An error reply that is yet to be sent. */
typedef struct prompt_fault {
    int status;       /* 0: there is none */
    char param[64];   /* empty: none */
    const char *code; /* static; NULL: none */
    char message[sizeof((cairn_diag *)0)->message + 64];
} prompt_fault;

typedef struct prompt { /* zeroed is fine to deinit */
    chat_ask ask;
    const served_model *model;
    cairn_ids ids;
    cairn_reply_opts reply; /* how it will be told, where thoughts have a budget: ask.rq.reply */
    char tail[128];         /* of the prompt: where the reply starts */
    readers *readers;       /* of what will be answered; ask.rq.keep_special is as they want it */
    buf kwargs;             /* JSON object for the template, or empty */
    buf text;               /* prompt_render: the body of the reply */
    int32_t marks[2];       /* ask.rq.marks */
    prompt_fault fault;
} prompt;

/* Any thread; seconds, where the body is long.  Either the fault is set, and nothing else is held, or
   the rest is there.  Followed by prompt_deinit. */
void prompt_make(prompt *p, const models *m, cairn_str body);   /* all but text */
void prompt_render(prompt *p, const models *m, cairn_str body); /* text */
void prompt_deinit(prompt *p);

#endif
