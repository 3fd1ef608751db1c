/* The bytes that an answer may keep until it is sent, out of what all answers of the server have (mailbox.most_kept; 0
   there: as many as they like).  What it keeps at worst is set aside before it begins, its text as one of usual tokens; where
   they are longer it takes more as it grows. */
#ifndef SERVE_ANSWER_ROOM_H
#define SERVE_ANSWER_ROOM_H

#include "cairn/status.h"
#include "serve/served_answer.h"

typedef struct answer_room { /* I/O thread; zeroed is one that has nothing */
    mailbox *mail;
    uint64_t kept;      /* of mail->kept */
    uint64_t text_kept; /* of that, what is for the text */
    uint64_t said;      /* bytes of the text so far, as JSON */
    uint64_t each;      /* bytes that one of them may take */
} answer_room;

/* How a client is told that there is no more room. */
typedef struct answer_lack {
    int status; /* 400: there never is so much; 429: others have it */
    const char *code;
    char message[200];
} answer_lack;

/* For all choices of all prompts of p; r is zeroed, and m outlives it.  E_ARG: more than all answers may keep; E_BUSY: than
   is left. */
cairn_status answer_room_take(answer_room *r, mailbox *m, const prompt *p, const answer_format *f,
                              cairn_diag *dg);
/* The text has grown by this much.  False: there is no room for it. */
bool answer_room_grow(answer_room *r, cairn_str text, answer_lack *why);
void answer_room_give(answer_room *r);

#endif
