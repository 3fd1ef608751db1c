#include "base/cpulist.h"

#include <stdlib.h>

bool cpulist_next(const char **at, long most, long *first, long *last)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    *first = *last = strtol(*at, &end, 10);
    if (*end == '-') {
        const char *from = end + 1;
        if (*from < '0' || *from > '9') return false;
        *last = strtol(from, &end, 10);
    }
    *at = *end == ',' ? end + 1 : end;
    return *first <= *last && *last < most;
}
