/* Everything about text that lies beside (or in) a model's weights: tokenizer, chat template,
   generation defaults. */
#ifndef FORMAT_TEXTFILES_H
#define FORMAT_TEXTFILES_H

#include "cairn/status.h"
#include "text/chat.h"
#include "text/tok.h"

typedef struct textfiles {
    tok *tok;             /* never NULL */
    chat *chat;           /* NULL: no template, or one that does not compile */
    cairn_diag chat_diag; /* why it does not */
} textfiles;

/* From a directory with tokenizer.json (tokenizer_config.json, chat_template.jinja or .json,
   generation_config.json, config.json optional) or a GGUF with a vocabulary.  As in the reference
   (transformers), chat_template.jinja wins over the `chat_template` key of tokenizer_config.json;
   chat_template.json comes last.  Several named templates (a list or object there, the files of
   additional_chat_templates, tokenizer.chat_template.NAME of a GGUF) are all kept: text/chat.h says
   which one a render takes.  EOS ids are the
   union of config's, generation's and tokenizer's.  E_NOTFOUND when there is no vocabulary at
   all. */
cairn_status textfiles_open(const char *path, textfiles *out, cairn_diag *dg);
/* Whether textfiles_open would find a chat template (that it compiles is not looked at); reads no
   tokenizer.json. */
cairn_status textfiles_has_template(const char *path, bool *out, cairn_diag *dg);
void textfiles_close(textfiles *t);

enum { TEXTFILES_MAX_NAMES = 24 };
/* The names that a vocabulary's files may have in a directory; answers how many. */
size_t textfiles_names(const char *out[TEXTFILES_MAX_NAMES]);

#endif
