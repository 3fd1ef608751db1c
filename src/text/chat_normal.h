/* What a server does to a request's messages and tools before a template sees them; `render` does none
   of it.  docs/chat.md lists it for users. */
#ifndef TEXT_CHAT_NORMAL_H
#define TEXT_CHAT_NORMAL_H

#include "base/buf.h"
#include "base/json.h"

/* The messages (array) as JSON, appended to `out`:
   - role "developer" becomes "system";
   - a content array of text and refusal parts alone becomes one string, nothing between the parts;
     one with other parts (images, audio) stays an array;
   - tool_calls[].function.arguments, a string that holds a JSON object, becomes that object; any
     other string stays, since models do write broken arguments; none, null and "" become {}.
   Every other member and number stays as written. */
cairn_status chat_normal_messages(json_val messages, buf *out, cairn_diag *dg);

/* The tools (array) as JSON, appended to `out`: each node of a parameter schema gets a "type" where it
   has none, as its enum, const, properties, items or alternatives say: templates use it unasked. */
cairn_status chat_normal_tools(json_val tools, buf *out, cairn_diag *dg);

#endif
