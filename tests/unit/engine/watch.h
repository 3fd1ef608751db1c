/* Follows one request: what its events said. */
#ifndef TESTS_WATCH_H
#define TESTS_WATCH_H

#include "cairn/engine.h"

enum { WATCH_IDS = 600 };

typedef struct watch {
    cairn_request_id id;
    int32_t n, ids[WATCH_IDS]; /* TOKEN events */
    int32_t n_replayed;        /* of them, all before the others */
    int32_t n_done_events, n_progress, last_progress;
    cairn_finish finish;
    cairn_status status;
    int32_t n_generated, n_prompt, n_cached;
    bool pinned;
    char message[200];
    char text[2000]; /* of all events */
    size_t n_text;
    int32_t n_top;
    float logprob;
    double prefill_seconds, decode_seconds;
} watch;

/* Asserts the order of events; a cairn_event_fn. */
void watch_event(void *ctx, const cairn_event *ev);
cairn_request watch_request(const int32_t *ids, int32_t n, int32_t max_tokens); /* greedy */

#endif
