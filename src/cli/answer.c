/* The engine's events arrive on its own thread and must not block: they go into a buffer under a
   lock, and the calling thread writes that to standard output.  A reader slower than the model makes
   the buffer grow by the text of one answer at most, which max_tokens and the context bound. */
#include "cli/answer.h"

#include <signal.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "base/thread.h"
#include "cli/cli.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
    (void)sig;
    interrupted = 1;
}

void answer_catch_interrupt(void)
{
    struct sigaction a = {.sa_handler = on_interrupt};
    (void)sigaction(SIGINT, &a, NULL);
}

bool answer_interrupted(void)
{
    const bool was = interrupted != 0;
    interrupted = 0;
    return was;
}

bool answer_filled_context(const answer_result *r, int32_t max_tokens)
{
    return r->finish == CAIRN_FINISH_LENGTH && !(max_tokens && r->n_generated >= max_tokens);
}

typedef struct inbox {
    mutex mu;
    cond ready;
    /* guarded by mu */
    buf text;
    bool done;
    cairn_status status;
    char message[400];
    answer_result result;
} inbox;

static void on_event(void *ctx, const cairn_event *ev)
{
    inbox *in = ctx;
    mutex_lock(&in->mu);
    buf_str(&in->text, ev->text);
    if (ev->kind == CAIRN_EV_DONE) {
        in->done = true;
        in->result = (answer_result){ev->finish,      ev->n_prompt,        ev->n_cached,
                                     ev->n_generated, ev->prefill_seconds, ev->decode_seconds};
        if (ev->finish == CAIRN_FINISH_ERROR) {
            const cairn_str m = str_of(ev->message ? ev->message : "");
            const size_t n = m.len < sizeof in->message ? m.len : sizeof in->message - 1;
            in->status = ev->status;
            memcpy(in->message, m.ptr, n);
        }
    }
    cond_signal(&in->ready);
    mutex_unlock(&in->mu);
}

/* Moves what came into `out`; true when it was the last.  `lost`: memory did not suffice for it. */
static bool take_text(inbox *in, buf *out, bool *lost)
{
    enum { LOOK_MS = 50 }; /* how soon Ctrl-C is seen */
    mutex_lock(&in->mu);
    if (!in->done && in->text.len == 0) (void)cond_wait_ms(&in->ready, &in->mu, LOOK_MS);
    buf_str(out, buf_view(&in->text));
    *lost = buf_status(&in->text) != CAIRN_OK || buf_status(out) != CAIRN_OK;
    buf_clear(&in->text);
    const bool done = in->done;
    mutex_unlock(&in->mu);
    return done;
}

/* Writes what came, the last of it when `done`. */
static cairn_status put(const buf *piece, answer_show *show, bool done, cairn_diag *dg)
{
    if (!show) return piece->len ? cli_write_out(piece->ptr, piece->len, dg) : CAIRN_OK;
    cairn_status st = answer_show_feed(show, buf_view(piece));
    if (st == CAIRN_OK && done) st = answer_show_end(show);
    if (st != CAIRN_OK) return diag_set(dg, st, "no memory for the answer's text");
    if (show->out.len) st = cli_write_out(show->out.ptr, show->out.len, dg);
    buf_clear(&show->out);
    return st;
}

static cairn_status pump(cairn_engine *e, cairn_request_id id, inbox *in, answer_show *show,
                         cairn_diag *dg)
{
    cairn_status st = CAIRN_OK;
    bool stopped = false; /* whoever stops an answer has seen enough of it */
    buf piece;
    buf_init(&piece, MEM_MISC);
    for (bool done = false; !done;) {
        bool lost;
        buf_clear(&piece);
        done = take_text(in, &piece, &lost);
        if (answer_interrupted()) {
            stopped = true;
            cairn_engine_cancel(e, id);
        }
        if (stopped) buf_clear(&piece);
        if (st != CAIRN_OK) continue;
        st = put(&piece, show, done, dg);
        if (st == CAIRN_OK && lost)
            st = diag_set(dg, CAIRN_E_NOMEM, "no memory for the answer's text");
        if (st != CAIRN_OK) cairn_engine_cancel(e, id); /* nobody reads on */
    }
    buf_deinit(&piece);
    return st;
}

cairn_status answer_stream(cairn_engine *e, const cairn_request *r, answer_show *show,
                           answer_result *out, cairn_diag *dg)
{
    inbox in = {0};
    cairn_request_id id;
    cairn_request q = *r;
    if (show && answer_show_special(show)) q.keep_special = true;
    mutex_init(&in.mu);
    cond_init(&in.ready);
    buf_init(&in.text, MEM_MISC);
    (void)answer_interrupted();
    cairn_status st = cairn_engine_submit(e, &q, on_event, &in, &id, dg);
    if (st == CAIRN_OK) {
        st = pump(e, id, &in, show, dg);
        const cairn_str reset = show ? answer_show_reset(show) : (cairn_str){0};
        if (reset.len) (void)cli_write_out(reset.ptr, reset.len, NULL);
        if (st == CAIRN_OK && in.status != CAIRN_OK) st = diag_set(dg, in.status, "%s", in.message);
        *out = in.result;
    }
    buf_deinit(&in.text);
    cond_deinit(&in.ready);
    mutex_deinit(&in.mu);
    return st;
}
