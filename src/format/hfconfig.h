/* config.json and its kin as a meta_view by dotted path.  Private to format/ and its tests. */
#ifndef FORMAT_HFCONFIG_H
#define FORMAT_HFCONFIG_H

#include "base/json.h"
#include "base/meta.h"

typedef struct hfconfig hfconfig;

/* `text` is copied; `path` is for messages only.  The root must be an object. */
cairn_status hfconfig_parse(const char *path, cairn_str text, hfconfig **out, cairn_diag *dg);
cairn_status hfconfig_open(const char *path, hfconfig **out, cairn_diag *dg);
void hfconfig_close(hfconfig *c); /* NULL is fine */

/* Keys are dotted paths; a number is an array's index.  A key with dots of its own is found too
   (the longest name that exists is taken first).  What is not there is looked up under
   `text_config`, where multimodal checkpoints keep their language model. */
meta_view hfconfig_meta(const hfconfig *c);
/* The elements of an array of the view, one after the other: meta_at counts from the start each time.
   A null is of type META_NULL. */
json_iter hfconfig_each(const meta *arr);
bool hfconfig_next(json_iter *it, meta *out);

#endif
