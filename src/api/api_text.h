/* cairn_text behind the public name. */
#ifndef API_TEXT_H
#define API_TEXT_H

#include "cairn/text.h"
#include "format/textfiles.h"

struct cairn_text {
    textfiles f;
};

#endif
