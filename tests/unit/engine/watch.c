/* The checks of watch.h. */
#include "watch.h"

#include "sample/sample.h"
#include "test.h"

static void take_text(watch *w, cairn_str t)
{
    assert_true(w->n_text + t.len < sizeof w->text);
    if (t.len) memcpy(w->text + w->n_text, t.ptr, t.len);
    w->n_text += t.len;
}

void watch_event(void *ctx, const cairn_event *ev)
{
    watch *w = ctx;
    assert_int_equal(w->n_done_events, 0); /* DONE is the last */
    if (w->id) assert_int_equal(ev->request, w->id);
    take_text(w, ev->text);
    if (ev->kind == CAIRN_EV_PROGRESS) {
        assert_int_equal(w->n, 0);
        if (w->n_progress == 0)
            assert_int_equal(ev->n_done, ev->n_cached);
        else
            assert_true(ev->n_done > w->last_progress && ev->n_done <= ev->n_prompt);
        w->last_progress = ev->n_done;
        w->n_progress++;
    } else if (ev->kind == CAIRN_EV_TOKEN) {
        assert_true(w->n < WATCH_IDS);
        if (ev->replayed) assert_int_equal(w->n_replayed++, w->n);
        w->ids[w->n++] = ev->id;
        w->n_top = ev->n_top;
        w->logprob = ev->logprob;
        assert_int_equal(ev->n_generated, w->n);
    } else {
        w->n_done_events++;
        w->finish = ev->finish;
        w->status = ev->status;
        w->n_generated = ev->n_generated;
        w->n_prompt = ev->n_prompt;
        w->n_cached = ev->n_cached;
        w->pinned = ev->pinned;
        w->prefill_seconds = ev->prefill_seconds;
        w->decode_seconds = ev->decode_seconds;
        strncpy(w->message, ev->message, sizeof w->message - 1);
        assert_int_equal(ev->n_generated, w->n);
    }
}

cairn_request watch_request(const int32_t *ids, int32_t n, int32_t max_tokens)
{
    return (cairn_request){.struct_size = sizeof(cairn_request),
                           .ids = ids,
                           .n_ids = (size_t)n,
                           .max_tokens = max_tokens,
                           .sampling = sample_neutral(),
                           .n_logprobs = -1};
}
