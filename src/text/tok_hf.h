/* Checked reads of tokenizer.json, shared by the files that read its parts.  A wrong value is E_CORRUPT
   "WHERE: PATH.KEY: found …; expected …". */
#ifndef TEXT_TOK_HF_H
#define TEXT_TOK_HF_H

#include "base/json.h"
#include "cairn/status.h"

typedef struct hf_obj {
    json_val v;
    const char *where; /* the file */
    const char *path;  /* of v in it; "": the root */
    cairn_diag *dg;
} hf_obj;

/* What is wrong with a value at a key, or with v itself (key NULL). */
cairn_status hf_wrong(const hf_obj *o, const char *key, json_val found, const char *expected);
/* The same for element i of the list that v is. */
cairn_status hf_wrong_at(const hf_obj *o, size_t i, json_val found, const char *expected);
/* Absent and null members leave *out alone. */
cairn_status hf_bool(const hf_obj *o, const char *key, bool *out);
cairn_status hf_text(const hf_obj *o, const char *key, cairn_str *out);
/* Must be there. */
cairn_status hf_list(const hf_obj *o, const char *key, json_val *out);
/* v must be an object with a text `type`. */
cairn_status hf_type(const hf_obj *o, cairn_str *type);

static inline bool hf_is_none(json_val v)
{
    return json_typeof(v) == JSON_NONE || json_typeof(v) == JSON_NULL;
}

#endif
