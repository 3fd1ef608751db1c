/* Messages name files by their paths: first, "PATH, line N: …" or "PATH: …", and anywhere.  Clients are told the names
   alone. */
#ifndef SERVE_WITHOUT_FOLDERS_H
#define SERVE_WITHOUT_FOLDERS_H

#include "cairn/status.h"

typedef struct bare_message {
    char text[sizeof((cairn_diag *)0)->message];
} bare_message;

const char *without_folders_in(const char *message, bare_message *out); /* out->text */

/* Valid to the end of the block it is in. */
#define without_folders(message) without_folders_in((message), &(bare_message){{0}})

#endif
