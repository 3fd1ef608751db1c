/* Tokenizer, chat template and streaming detokenizer of a model.  A cairn_text is immutable and may
   be used from any thread; a cairn_stream belongs to one at a time.

   Texts are UTF-8; where they are not, bytes that are no character stand for U+FFFD.  Lengths count
   bytes, of ids tokens.  Out-parameters are written on success alone; the caller frees what a function
   gives (cairn_bytes_free, cairn_ids_free).  Any may answer E_NOMEM, beside what is said. */
#ifndef CAIRN_TEXT_H
#define CAIRN_TEXT_H

#include "cairn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_text cairn_text;
typedef struct cairn_stream cairn_stream;

/* From a directory with tokenizer.json (others optional) or a GGUF with a vocabulary; `path` is not kept.
   E_NOTFOUND: nothing there, or no tokenizer in it; E_CORRUPT, E_UNSUPPORTED, E_LIMIT: of a file, whose
   name and field the message has.  A chat template that does not compile is no failure here:
   cairn_text_check_template tells.  Ends in cairn_text_close. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_open(const char *path, cairn_text **out,
                                                      cairn_diag *dg);
CAIRN_API void cairn_text_close(cairn_text *t); /* NULL is fine; not those borrowed from a model */

enum {
    CAIRN_TOK_ADD_SPECIAL = 1,  /* BOS/EOS as the model's files say */
    CAIRN_TOK_PARSE_SPECIAL = 2 /* special tokens written in the text become their ids */
};
/* `flags`: CAIRN_TOK_* or 0.  E_LIMIT: a text of over 256 MiB; E_ARG: a word that the vocabulary cannot
   spell and that has no unknown token. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_tokenize(const cairn_text *t, cairn_str s,
                                                          uint32_t flags, cairn_ids *out,
                                                          cairn_diag *dg);
/* `keep_special`: special tokens appear as their text.  Exact bytes.  E_ARG: a negative id; ids
   beyond the vocabulary are empty. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_detokenize(const cairn_text *t, const int32_t *ids,
                                                            size_t n, bool keep_special,
                                                            cairn_bytes *out, cairn_diag *dg);

/* Where in that text each id stands: spans[2i] to spans[2i + 1], in bytes; `spans` has room for 2n.  Ids
   that share a character share its span. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_spans(const cairn_text *t, const int32_t *ids,
                                                       size_t n, bool keep_special, size_t *spans,
                                                       cairn_diag *dg);

enum { CAIRN_MAX_PROMPT_BYTES = 16 << 20 }; /* of what a template writes */

typedef struct cairn_render_opts { /* borrowed during the call */
    uint32_t struct_size;          /* set by cairn_render_opts_init */
    cairn_str messages;            /* JSON array of OpenAI messages; used unchanged */
    cairn_str tools;               /* JSON array, or empty */
    cairn_str kwargs;              /* JSON object merged over the defaults, or empty */
    cairn_str template_text; /* replaces the model's own when not empty; the name of one of several
                                that the model has (tool_use, rag, …) selects it */
    bool no_generation_prompt;
    uint32_t
        max_steps; /* of the template, and one more for each byte that it is given; 0: 1,048,576, which is
                           beyond what any needs */
} cairn_render_opts;
CAIRN_API void cairn_render_opts_init(cairn_render_opts *o);
/* `t` may be NULL when `template_text` is given.  E_NOTFOUND: no template; E_ARG: arguments of another
   kind, or what the template itself raises or cannot do, with its line; E_CORRUPT: JSON that does not
   parse; E_LIMIT: depth or output beyond what any template needs, or steps beyond max_steps. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_render(const cairn_text *t,
                                                        const cairn_render_opts *o,
                                                        cairn_bytes *out, cairn_diag *dg);
/* The same with the parts that {% generation %} blocks wrote: `spans` holds pairs of size_t, begin and end
   in bytes of `out`, in the order in which the blocks ended. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_render_spans(const cairn_text *t,
                                                              const cairn_render_opts *o,
                                                              cairn_bytes *out, cairn_bytes *spans,
                                                              cairn_diag *dg);
/* What a server does to a request first, and a render never: role developer → system, arrays of text
   parts → one string, tool call arguments in a JSON string → the object; a type for every node of a
   tool's schema.  JSON arrays in and out; docs/chat.md has the list.  E_ARG: no array, or an element that
   is no object; E_CORRUPT: no JSON. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_normalise_messages(cairn_str messages, cairn_bytes *out,
                                                               cairn_diag *dg);
CAIRN_API CAIRN_MUST_USE cairn_status cairn_normalise_tools(cairn_str tools, cairn_bytes *out,
                                                            cairn_diag *dg);
/* OpenAI messages → ids ready for a request: render, encode without doubling BOS.  Fails as
   cairn_text_render and cairn_text_tokenize do; E_ARG for a NULL `t`. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_prompt(const cairn_text *t,
                                                        const cairn_render_opts *o, cairn_ids *out,
                                                        cairn_diag *dg);
/* The second half of it: a rendered text → ids. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_encode_prompt(const cairn_text *t, cairn_str text,
                                                               cairn_ids *out, cairn_diag *dg);
/* Where later prompts of this conversation are likely to part from its prompt, whose ids these are, for
   cairn_request.marks: before its last message, and where the next turn goes on.  Renders and encodes the prompt twice more; answers
   how many marks there are, 0 where the template refuses to be asked. */
CAIRN_API size_t cairn_text_marks(const cairn_text *t, const cairn_render_opts *o,
                                  const int32_t *ids, size_t n, int32_t marks[2]);
/* No text of these bytes makes fewer ids than this; 0 where that cannot be told without encoding, and for
   a NULL `t`.  One look at each byte. */
CAIRN_API size_t cairn_text_least_ids(const cairn_text *t, cairn_str text);
CAIRN_API bool cairn_text_has_template(const cairn_text *t); /* false for NULL */
/* The text of the model's own template that a render with or without tools takes; empty when there is
   none.  Borrowed: valid as long as `t`. */
CAIRN_API cairn_str cairn_text_template(const cairn_text *t, bool tools);
/* E_NOTFOUND: there is none (or no `t`); another failure: why the model's own does not compile. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_text_check_template(const cairn_text *t,
                                                                cairn_diag *dg);
/* Ids are 0 … this - 1.  The model's logits may have more rows: padding that no text needs. */
CAIRN_API int32_t cairn_text_vocab(const cairn_text *t);
CAIRN_API bool cairn_text_is_eos(const cairn_text *t,
                                 int32_t id); /* ends an answer; any id is fine */
/* The token's own bytes (a byte-level piece decoded), which may be part of a character.  Borrowed: valid
   as long as `t`.  Empty if unknown. */
CAIRN_API cairn_str cairn_text_piece(const cairn_text *t, int32_t id);
CAIRN_API size_t cairn_text_longest_piece(const cairn_text *t); /* bytes; known, not looked for */

/* Streaming: joined, the bytes of cairn_text_detokenize of all ids; never half a character at a time.
   `t` must outlive the stream; *out ends in cairn_stream_free.  E_NOMEM alone. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_stream_new(const cairn_text *t, bool keep_special,
                                                       cairn_stream **out);
/* `text`: what the id releases, possibly nothing; borrowed until the next call.  E_ARG: a negative id. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_stream_feed(cairn_stream *s, int32_t id,
                                                        cairn_str *text);
/* What is held leaves, whole or not; borrowed until the stream is freed.  Once, last. */
CAIRN_API CAIRN_MUST_USE cairn_status cairn_stream_end(cairn_stream *s, cairn_str *text);
CAIRN_API void cairn_stream_free(cairn_stream *s); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
