/* What the body of a request becomes: the request that was asked for, and its prompt or prompts. */
#ifndef SERVE_PROMPT_H
#define SERVE_PROMPT_H

#include "base/buf.h"
#include "cairn/status.h"
#include "serve/models.h"
#include "serve/openai_read.h"
#include "serve/reply_reader.h"
#include "serve/responses_store.h"

/* An error reply that is yet to be sent. */
typedef struct prompt_fault {
    int status;       /* 0: there is none */
    char param[64];   /* empty: none */
    const char *code; /* static; NULL: none */
    int32_t retry_s;  /* when it may be otherwise; 0: that is not said */
    char message[sizeof((cairn_diag *)0)->message + 64];
} prompt_fault;

/* Who asks, and what is kept for them; set before a prompt is made. */
typedef struct prompt_client {
    owner by;
    responses_store *responses;
    size_t most_text;         /* bytes of a reply that is just text; 0: any */
    bool waited;              /* for its model, in vain unless it is held */
    bool at_once;             /* on the I/O thread: it ends early where it would take long */
    const served_model *held; /* a reference that the job has to the model it waited for, or NULL */
} prompt_client;

typedef struct prompt { /* zeroed is fine to deinit */
    prompt_client client;
    chat_ask ask;
    const served_model *model;  /* held until prompt_deinit */
    const served_model *awaits; /* it has to be loaded first: the fault is that nobody waits */
    bool awaits_stream;         /* for an answer that is streamed */
    bool too_slow;              /* to be made at once: the fault is that it was */
    cairn_ids *ids;             /* [n_ids], each one prompt */
    size_t n_ids;
    cairn_bytes *echo; /* [n_ids]: texts that the answers begin with; NULL: they begin with none */
    bool listed;       /* ids came as such: echo is their text, not they the ids of it */
    cairn_reply_opts reply; /* how it will be told, where thoughts have a budget: ask.rq.reply */
    char tail[128];         /* of the prompt: where the reply starts */
    /* Of what will be answered; ask.rq.keep_special is as they want it.  NULL: it is text alone. */
    readers *readers;
    buf kwargs;       /* JSON object for the template, or empty */
    buf text;         /* the body of the reply, of what answers without a generation */
    int32_t marks[2]; /* ask.rq.marks */
    prompt_fault fault;
} prompt;

/* Reads the body of an API's chat request. */
typedef cairn_status ask_read_fn(chat_ask *a, cairn_str body, chat_fault *fault);

/* Any thread; seconds, where the body is long.  Either the fault is set, and nothing else is held, or
   the rest is there.  Followed by prompt_deinit. */
void prompt_make(prompt *p, const models *m, ask_read_fn *read, cairn_str body); /* all but text */
/* text: {"prompt": what the model would be given} */
void prompt_render(prompt *p, const models *m, ask_read_fn *read, cairn_str body);
/* text: {"input_tokens": of the prompt}, whether it fits a context or not */
void prompt_count(prompt *p, const models *m, ask_read_fn *read, cairn_str body);
/* The first, and the last, of a body that is read in two steps: `more` goes on where `read` ended, and may set the
   fault: false. */
typedef bool prompt_more_fn(prompt *p);
void prompt_make_more(prompt *p, const models *m, ask_read_fn *read, prompt_more_fn *more,
                      cairn_str body);
void prompt_count_more(prompt *p, const models *m, ask_read_fn *read, prompt_more_fn *more,
                       cairn_str body);
void prompt_deinit(prompt *p);

/* For those who make other prompts.  Each sets the fault where it fails; prompt_refuse answers false. */
bool prompt_refuse(prompt *p, int status, const char *param, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool prompt_refuse_as(prompt *p, cairn_status st, const char *param, const char *message);
bool prompt_read(prompt *p, ask_read_fn *read, cairn_str body);
bool prompt_refuse_body(prompt *p, cairn_status st, const chat_fault *f); /* of a reader */
bool prompt_find_model(prompt *p, const models *m, cairn_str name); /* any; it may only embed */
bool prompt_find_engine(prompt *p, const models *m);                /* of ask.model */
bool prompt_check_bias(prompt *p);
/* Whether the prompt that is called `param` leaves room for an answer. */
bool prompt_fits(prompt *p, const char *param, const char *at_least, size_t n_ids);
bool prompt_no_memory(prompt *p);

#endif
