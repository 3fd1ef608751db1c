/* Pasted text arrives at the line editor as part of one line, line ends and all. */
#ifndef CLI_PASTE_H
#define CLI_PASTE_H

#include <stdbool.h>

#include "base/buf.h"

/* One thread, the line editor's: before its first line, and once after the last.  Asks the terminal to
   mark what is pasted; one that cannot leaves every line end a line's end. */
void paste_begin(void);
void paste_end(void);
/* The read of a line ended by Ctrl-C; asked once. */
bool paste_interrupted(void);
void paste_library(buf *out); /* the line editor; it tells no version */

#endif
