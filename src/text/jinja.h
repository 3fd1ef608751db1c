/* The Jinja2 template language as chat templates use it: the sandbox of `transformers`
   (trim_blocks, lstrip_blocks, break/continue, generation blocks, tojson that keeps text).  Not there:
   other templates, blocks and `self`.
   A jinja is immutable once compiled and may be rendered from many threads at once. */
#ifndef TEXT_JINJA_H
#define TEXT_JINJA_H

#include "base/buf.h"
#include "base/json.h"

typedef struct jinja jinja;

/* A variable of the context.  The first kind whose member is set counts: `value` when its type is
   not JSON_NONE, then `text` when its pointer is set, else the boolean. */
typedef struct jinja_var {
    cairn_str name;
    json_val value;
    cairn_str text;
    bool flag, is_none;
} jinja_var;

/* `where` names the template in messages.  Everything is copied.  Errors: E_CORRUPT (syntax),
   E_UNSUPPORTED (inheritance, includes), E_LIMIT, E_NOMEM. */
cairn_status jinja_compile(cairn_str text, const char *where, jinja **out, cairn_diag *dg);
void jinja_free(jinja *t); /* NULL is fine */

typedef struct jinja_span { /* bytes of the output that a generation block wrote */
    size_t from, to;
} jinja_span;

/* Appends to `out`; on failure `out` is as before.  A later variable of the same name wins.  `spans`, if not
   NULL: the generation blocks' spans (jinja_span, counted from where `out` ended) are appended, as the
   library around chat templates counts them: a block inside a macro, set or filter block is placed where
   the part around it begins.
   E_ARG: the template raised or met a value it cannot work with; E_LIMIT: output, memory, steps or
   depth.  The variables are borrowed for the call.  `max_steps`: fewer than JINJA_MAX_STEPS; 0: so many. */
cairn_status jinja_render(const jinja *t, const jinja_var *vars, size_t n_vars, uint32_t max_steps,
                          buf *out, buf *spans, cairn_diag *dg);

#endif
