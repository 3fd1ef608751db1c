/* What OpenAI's `input` and `prompt` may be: a text, a list of token ids, or a list of either. */
#ifndef SERVE_OPENAI_INPUT_H
#define SERVE_OPENAI_INPUT_H

#include "serve/openai_read.h"

typedef struct input_list {
    size_t n;
    cairn_str *texts; /* [n], the document's; or NULL: `lists` */
    cairn_ids *lists; /* [n], none empty */
    bool many;        /* it was a list of them */
} input_list;

enum { INPUT_NAME = 48 }; /* bytes of the name of an element */

/* v, which is called `name`: at most `most` of them, ids below n_vocab.  The fault names the element that
   is wrong.  Always followed by input_deinit, also after a failure. */
cairn_status input_read(input_list *in, json_val v, const char *name, int32_t n_vocab, size_t most,
                        chat_fault *f);
/* v is one list of ids, not empty. */
cairn_status input_read_ids(input_list *in, json_val v, const char *name, int32_t n_vocab,
                            chat_fault *f);
void input_deinit(input_list *in); /* zeroed is fine */
/* name[i], or name where there is one alone. */
void input_name(const input_list *in, const char *name, size_t i, char out[INPUT_NAME]);

#endif
