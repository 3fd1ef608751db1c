/* cairn_text behind the public name. */
#ifndef API_TEXT_H
#define API_TEXT_H

#include "cairn/text.h"
#include "format/textfiles.h"

struct cairn_text {
    textfiles f;
};

/* cairn_text_tokenize, which may stop when the text itself has made `enough` ids (text/tok.h). */
cairn_status text_tokenize_some(const cairn_text *t, cairn_str s, uint32_t flags, size_t enough,
                                cairn_ids *out, cairn_diag *dg);

#endif
