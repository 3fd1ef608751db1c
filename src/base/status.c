/* What every public header shares: texts of status codes, and release of what was given away. */
#include "cairn/status.h"

#include "base/alloc.h"

const char *cairn_status_text(cairn_status st)
{
    static const char *const text[] = {
#define STATUS_TEXT(name, text) text,
        CAIRN_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    };
    return (unsigned)st < CAIRN_STATUS_COUNT ? text[st] : "unknown status";
}

void cairn_bytes_free(cairn_bytes *b)
{
    if (!b) return;
    mem_free(b->ptr);
    *b = (cairn_bytes){NULL, 0};
}

void cairn_ids_free(cairn_ids *ids)
{
    if (!ids) return;
    mem_free(ids->ptr);
    *ids = (cairn_ids){NULL, 0};
}

const char *cairn_version(void)
{
    return "0.1.0";
}
