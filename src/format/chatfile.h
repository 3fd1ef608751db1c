/* A checkpoint's chat template and the token texts that templates see.  Private to format/. */
#ifndef FORMAT_CHATFILE_H
#define FORMAT_CHATFILE_H

#include "base/buf.h"
#include "base/json.h"
#include "base/meta.h"
#include "cairn/status.h"
#include "format/textfiles.h"

/* Of tokenizer_config.json: with every added token spelt out it has under 2 MB. */
enum { CHATFILE_MAX_CONFIG = 8 << 20 };

/* From a directory; `config` is the root of tokenizer_config.json, or JSON_NONE.  Leaves t->chat
   NULL where there is no template, and fills t->chat_diag where it does not compile. */
cairn_status chatfile_from_dir(const char *dir, json_val config, textfiles *t, cairn_diag *dg);
/* Whether the directory has one. */
cairn_status chatfile_in_dir(const char *dir, bool *out, cairn_diag *dg);
/* From a GGUF's keys; t->tok is open. */
cairn_status chatfile_from_gguf(const char *path, const meta_view *v, textfiles *t, cairn_diag *dg);

/* DIR/NAME into `text` when it exists.  Python's dialect is made JSON (pyjson.h) when `json`. */
cairn_status chatfile_read(const char *dir, const char *name, size_t max, bool json, buf *text,
                           bool *found, cairn_diag *dg);

#endif
