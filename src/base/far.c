/* How far ahead threads fetch: one word each. */
#include "base/far.h"

_Thread_local uintptr_t far_ahead = FAR_AHEAD;
