/* Texts of content blocks, and checks of their members.  Each fault names the place, which starts at p. */
#ifndef SERVE_ANTHROPIC_TEXTS_H
#define SERVE_ANTHROPIC_TEXTS_H

#include "base/buf.h"
#include "base/json.h"
#include "cairn/status.h"
#include "serve/body_path.h"
#include "serve/openai_read.h"

/* A fault: v stands at p where `what` is expected. */
cairn_status anthropic_want(chat_fault *f, body_path p, const char *what, json_val v);
/* The string `key` of v, which stands at p; the second: not an empty one. */
cairn_status anthropic_want_str(chat_fault *f, json_val v, body_path p, const char *key,
                                cairn_str *out);
cairn_status anthropic_want_name(chat_fault *f, json_val v, body_path p, const char *key,
                                 cairn_str *out);
/* A fault: a block of a type that is not supported here. */
cairn_status anthropic_no_such_block(chat_fault *f, body_path p, cairn_str type);
/* The block's type, its cache_control checked; no string is a fault. */
cairn_status anthropic_block_type(chat_fault *f, json_val block, body_path p, cairn_str *type);

/* `cache_control` of a body, a block or a tool, which stands at p. */
cairn_status anthropic_cache_check(json_val of, body_path p, chat_fault *f);

/* The rest appends to out, whose status says whether there was memory.  The string `key`, if it is there, as a line. */
cairn_status anthropic_put_line(chat_fault *f, json_val v, body_path p, const char *key, buf *out);
/* A string, or an array of blocks of type text, joined by newlines. */
cairn_status anthropic_put_texts(chat_fault *f, json_val v, body_path p, buf *out);
/* One block that is a text; and a string, or an array of such blocks, joined by newlines. */
cairn_status anthropic_put_block(chat_fault *f, json_val block, body_path p, buf *out);
cairn_status anthropic_put_content(chat_fault *f, json_val v, body_path p, buf *out);

#endif
