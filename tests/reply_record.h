/* Records what a reply gives out, so that two ways of feeding it can be compared: texts that follow
   each other are one, wherever they were cut. */
#ifndef TESTS_REPLY_RECORD_H
#define TESTS_REPLY_RECORD_H

#include "text/reply.h"

enum { RECORD_MAX_CALLS = 64 };

typedef struct record {
    buf raw; /* all raw bytes, in order */
    buf log; /* one canonical text of everything but the markup */
    buf thought, answer;
    struct record_call {
        char name[CAIRN_REPLY_MAX_NAME + 1], id[CAIRN_REPLY_MAX_NAME + 1];
        buf args;
        int end; /* -1: none came */
    } call[RECORD_MAX_CALLS];
    int n_calls;
    int last;          /* kind of the last entry of `log` */
    const char *wrong; /* an order of events that must not be */
} record;

void record_init(record *r);
void record_deinit(record *r);
void record_event(void *ctx, const cairn_reply_event *ev);
/* Feeds `text` in pieces of `piece` bytes (0: at once; a negative number seeds random ones) and ends. */
void record_run(record *r, const cairn_reply_opts *o, cairn_str text, int piece);
/* Runs it at once and byte by byte; false: not the same, a byte lost, or an order that must not be. */
bool record_twice(record *r, const cairn_reply_opts *o, cairn_str text);
bool record_same(const record *a, const record *b);

#endif
