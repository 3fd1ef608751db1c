/* What tokenizer_config.json adds to vocabularies that say less than a tokenizer.json: SentencePiece's,
   tiktoken's. */
#ifndef TEXT_TOK_CONFIG_H
#define TEXT_TOK_CONFIG_H

#include "text/tok_priv.h"

/* *doc NULL for an empty text. */
cairn_status config_parse(cairn_str text, const char *where, json_doc **doc, cairn_diag *dg);
/* One more than the largest id of `added_tokens_decoder`; 0 without. */
int32_t config_vocab(json_val config);
/* Control pieces and `added_tokens_decoder` become added tokens; t is indexed. */
cairn_status config_added(tok *t, json_val config, const char *where, cairn_diag *dg);
/* Names of BOS, EOS and so on, and which stand around a text where the file does not say. */
cairn_status config_specials(tok *t, json_val config, bool add_bos, bool add_eos, cairn_diag *dg);

#endif
