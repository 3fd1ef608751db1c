/* A test double of the engine: one owner thread replays scripted answers at a settable pace.  Words in the prompt direct
   it (fake_words.h).  It checks what it is given as the real one promises to, and counts for cairn_engine_get_stats. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/thread.h"
#include "serve/fake_engine.h"
#include "serve/fake_words.h"

enum { MAX_REPLY = 1 << 16 };

typedef struct job {
    struct job *next;
    cairn_request_id id;
    cairn_event_fn fn;
    void *ctx;
    char *reply;
    size_t n_reply, n_ids;
    size_t n_out, n_tokens, n_released, stop_at; /* n_out: bytes */
    size_t max_tokens, fail_after, step, cut;
    uint64_t pace_ns, prefill_ns, due_ns;
    int32_t n_logprobs, n_cached, stop;
    size_t n_steps, n_stepped; /* of the prefill, that are told */
    bool want_progress, active, cancelled, stopped, late, eos;
    char *asked; /* the prompt, one byte an id, until it is told; NULL: nobody wants that */
    char until[WORD_PATH_BYTES]; /* "": no file is waited for (any more) */
} job;

struct cairn_engine {
    mutex mu;
    cond more;
    thread owner;
    job *jobs; /* oldest first */
    cairn_request_id last_id;
    int32_t max_seqs, max_queue, ctx;
    cairn_engine_stats st;
    bool closing;
};

bool cairn_engine_wants_marks(const cairn_engine *e)
{
    return e != NULL;
}

const cairn_model *cairn_engine_model(const cairn_engine *e)
{
    (void)e;
    return fake_model();
}

/* The samplers after the plain ones. */
static int tell_more(const cairn_sampling *s, char *out, size_t size)
{
    int n = snprintf(
        out, size, " windows=%d/%d typical=%g xtc=%g/%g mirostat=%d/%g/%g dry=%g/%g/%d/%d",
        s->presence_window, s->frequency_window, (double)s->typical_p, (double)s->xtc_probability,
        (double)s->xtc_threshold, s->mirostat, (double)s->mirostat_tau, (double)s->mirostat_eta,
        (double)s->dry_multiplier, (double)s->dry_base, s->dry_allowed_length, s->dry_window);

    for (size_t i = 0; i < s->n_dry_breakers; i++)
        n += snprintf(out + n, size - (size_t)n, " breaker:%.*s", STR_ARG(s->dry_breakers[i]));
    for (size_t i = 0; i < s->n_curve; i++)
        n += snprintf(out + n, size - (size_t)n, " knot:%g=%g", (double)s->curve[i].x,
                      (double)s->curve[i].y);
    return n;
}

static void tell_sampling(const cairn_request *r, char *out, size_t size)
{
    const cairn_sampling *s = &r->sampling;
    int n = snprintf(out, size,
                     "temperature=%g top_k=%d top_p=%g min_p=%g repetition=%g/%d presence=%g "
                     "frequency=%g seed=%llu choice=%u max_tokens=%d logprobs=%d ignore_eos=%d "
                     "keep_special=%d think_budget=%d marks=%zu priority=%d",
                     (double)s->temperature, s->top_k, (double)s->top_p, (double)s->min_p,
                     (double)s->repetition_penalty, s->repetition_window,
                     (double)s->presence_penalty, (double)s->frequency_penalty,
                     (unsigned long long)s->seed, r->choice, r->max_tokens, r->n_logprobs,
                     r->ignore_eos, r->keep_special, r->think_budget, r->n_marks, r->priority);

    n += tell_more(s, out + n, size - (size_t)n);
    for (size_t i = 0; i < s->n_bias; i++)
        n += snprintf(out + n, size - (size_t)n, " bias:%d=%g", s->bias[i].id,
                      (double)s->bias[i].value);
}

static bool script(job *j, const cairn_request *r, const char *prompt)
{
    char echo[4096];
    const char *p = word_after(prompt, "@reply=");
    size_t want;
    buf text;

    buf_init(&text, MEM_ENGINE);
    if (strstr(prompt, "@prompt")) {
        buf_puts(&text, prompt);
    } else if (strstr(prompt, "@echo")) {
        tell_sampling(r, echo, sizeof echo);
        buf_puts(&text, echo);
    } else if (p) {
        buf_put(&text, p, strcspn(p, "\n"));
    } else if (!word_quoted(prompt, "@says=", &text)) {
        buf_puts(&text, "Hello from the test double.");
    }
    want = word_number(prompt, "@n=", text.len);
    if (want > MAX_REPLY) want = MAX_REPLY;
    j->reply = buf_status(&text) == CAIRN_OK ? mem_alloc(want + 1, MEM_ENGINE) : NULL;
    if (j->reply) {
        for (size_t i = 0; i < want; i++) j->reply[i] = text.ptr[i % text.len];
        j->reply[want] = 0;
    }
    buf_deinit(&text);
    if (!j->reply) return false;
    j->n_reply = want;
    j->step = word_number(prompt, "@step=", 1);
    j->cut = word_number(prompt, "@cut=", 0);
    j->pace_ns = word_number(prompt, "@pace=", 0) * 1000000;
    j->prefill_ns = word_number(prompt, "@prefill=", 0) * 1000000;
    word_path(prompt, "@until=", j->until);
    j->eos = word_after(prompt, "@eos") != NULL;
    if (j->eos) want = j->n_reply = 0;
    j->late = word_after(prompt, "@late") != NULL;
    j->fail_after = word_number(prompt, "@fail=", SIZE_MAX);
    j->n_cached = (int32_t)word_number(prompt, "@cached=", 0);
    j->n_steps = r->want_progress ? word_number(prompt, "@progress=", 0) : 0;
    j->stop_at = SIZE_MAX;
    j->stop = -1;
    for (size_t i = 0; i < r->n_stop; i++) {
        const char *s = memmem(j->reply, want, r->stop[i].ptr, r->stop[i].len);
        size_t at = s ? (size_t)(s - j->reply) : SIZE_MAX;
        if (at >= j->stop_at) continue;
        j->stop_at = at;
        j->stop = (int32_t)i;
    }
    if (j->stop_at < j->n_reply) j->n_reply = j->stop_at + 1; /* ends at the stop's first byte */
    return true;
}

void cairn_engine_opts_init(cairn_engine_opts *o)
{
    *o = (cairn_engine_opts){.struct_size = sizeof *o};
}

void cairn_request_init(cairn_request *r)
{
    *r = (cairn_request){.struct_size = sizeof *r, .n_logprobs = -1, .think_budget = -1};
    r->sampling = (cairn_sampling){.top_p = 1, .repetition_penalty = 1, .typical_p = 1};
}

/* Bytes of the token that comes next. */
static size_t token_bytes(const job *j)
{
    const size_t left = j->n_reply - j->n_out;
    const size_t n = j->cut == 0 ? j->step : j->n_tokens == 0 ? j->cut : left;

    return n < left ? n : left;
}

/* Engine thread, without the lock: so much of the prefill is done. */
static void emit_progress(const job *j, size_t step, size_t of)
{
    const size_t cached = (size_t)j->n_cached;
    const cairn_event ev = {.kind = CAIRN_EV_PROGRESS,
                            .request = j->id,
                            .n_prompt = (int32_t)j->n_ids,
                            .n_cached = j->n_cached,
                            .n_done = (int32_t)(cached + (j->n_ids - cached) * step / of)};

    j->fn(j->ctx, &ev);
}

/* Engine thread, without the lock: of each pair of ids the even one is the likelier. */
static void emit_prompt(job *j)
{
    cairn_logprob top[CAIRN_MAX_LOGPROBS];

    for (size_t k = 1; j->asked && k < j->n_ids && !j->cancelled; k++) {
        const int32_t id = (uint8_t)j->asked[k], even = id & ~1;
        for (int32_t i = 0; i < j->n_logprobs; i++)
            top[i] = (cairn_logprob){(even + i) % FAKE_VOCAB, -0.25F - (float)i};
        const cairn_event ev = {.kind = CAIRN_EV_PROMPT,
                                .request = j->id,
                                .id = id,
                                .logprob = -0.25F - (float)(id - even),
                                .top = top,
                                .n_top = j->n_logprobs};
        j->fn(j->ctx, &ev);
    }
    if (j->asked && j->eos) {
        const cairn_event ev = {.kind = CAIRN_EV_TOKEN, .request = j->id, .logprob = -0.125F};
        j->fn(j->ctx, &ev);
    }
    mem_free(j->asked);
    j->asked = NULL;
}

/* Engine thread, without the lock. */
static void emit_token(job *j)
{
    cairn_logprob top[CAIRN_MAX_LOGPROBS];
    const int32_t id = (uint8_t)j->reply[j->n_out];
    size_t end;
    cairn_event ev = {.kind = CAIRN_EV_TOKEN, .request = j->id, .id = id, .logprob = -0.5F};

    j->n_out += token_bytes(j);
    j->n_tokens++;
    end = j->n_out < j->stop_at ? j->n_out : j->stop_at;
    for (int32_t i = 0; i < j->n_logprobs; i++)
        top[i] = (cairn_logprob){(id + i) % FAKE_VOCAB, -0.5F - (float)i};
    ev.top = top;
    ev.n_top = j->n_logprobs > 0 ? j->n_logprobs : 0;
    while (end > j->n_released && end < j->n_reply && ((uint8_t)j->reply[end] & 0xC0) == 0x80)
        end--; /* hold back the bytes of a character that goes on */
    if (end > j->n_released && ((uint8_t)j->reply[end] & 0xC0) == 0x80) end = j->n_released;
    ev.text = (cairn_str){j->reply + j->n_released, end - j->n_released};
    j->n_released = end;
    j->fn(j->ctx, &ev);
}

static void emit_done(job *j)
{
    cairn_event ev = {.kind = CAIRN_EV_DONE,
                      .request = j->id,
                      .n_prompt = (int32_t)j->n_ids,
                      .n_cached = j->n_cached,
                      .n_generated = (int32_t)j->n_tokens};

    ev.finish = j->n_out >= j->n_reply ? CAIRN_FINISH_STOP : CAIRN_FINISH_LENGTH;
    if (j->n_tokens >= j->fail_after) {
        ev.finish = CAIRN_FINISH_ERROR;
        ev.status = j->late ? CAIRN_E_CANCELLED : CAIRN_E_INTERNAL;
        ev.message = "the test double was told to fail";
    }
    if (j->cancelled) ev.finish = CAIRN_FINISH_CANCELLED;
    ev.stop = ev.finish == CAIRN_FINISH_STOP ? j->stop : -1;
    j->fn(j->ctx, &ev);
}

static bool job_over(const job *j)
{
    return j->cancelled || j->n_out >= j->n_reply || j->n_tokens >= j->max_tokens ||
           j->n_tokens >= j->fail_after;
}

/* Under the lock. Starts what there is room for; answers when something is due. */
static uint64_t admit(cairn_engine *e, uint64_t now)
{
    uint64_t due = now + 1000000000;

    e->st.n_active = e->st.n_queued = 0;
    for (job *j = e->jobs; j; j = j->next) {
        if (!j->active && !j->cancelled && e->st.n_active < e->max_seqs) {
            j->active = true;
            j->due_ns = now + j->prefill_ns;
        }
        if (j->active)
            e->st.n_active++;
        else
            e->st.n_queued++;
        if (j->cancelled) due = now;
        if (j->active && j->due_ns < due) due = j->due_ns;
    }
    return due;
}

/* Under the lock; takes it off the list. */
static void retire(cairn_engine *e, job *j)
{
    job **p = &e->jobs;

    while (*p != j) p = &(*p)->next;
    *p = j->next;
    e->st.n_cancelled += j->cancelled;
    e->st.n_failed += j->n_tokens >= j->fail_after;
}

/* One turn over the jobs, each at most one token. */
static void turn(cairn_engine *e)
{
    job *next;

    for (job *j = e->jobs; j; j = next) {
        bool over, due = j->active && clock_ns() >= j->due_ns;

        if (due && !j->cancelled && j->n_stepped < j->n_steps) {
            mutex_unlock(&e->mu);
            emit_progress(j, j->n_stepped++, j->n_steps);
            mutex_lock(&e->mu);
            j->due_ns = clock_ns() + WORD_GATE_MS * 1000000;
            due = false;
        }
        if (due && !j->cancelled && *j->until) {
            if (word_is_there(j->until))
                *j->until = '\0';
            else
                j->due_ns = clock_ns() + WORD_GATE_MS * 1000000;
            due = !*j->until;
        }
        if (due || j->cancelled) {
            over = job_over(j);
            mutex_unlock(&e->mu);
            if (due && j->want_progress) emit_progress(j, 1, 1);
            j->want_progress = false;
            emit_prompt(j);
            if (!over) emit_token(j);
            mutex_lock(&e->mu);
            j->due_ns += j->pace_ns;
            e->st.generated_tokens += !over;
        }
        next = j->next;
        over = (due || j->cancelled) && job_over(j);
        if (!over) continue;
        retire(e, j);
        mutex_unlock(&e->mu);
        emit_done(j);
        mem_free(j->asked);
        mem_free(j->reply);
        mem_free(j);
        mutex_lock(&e->mu);
        next = e->jobs ? next : NULL;
    }
    e->st.steps++;
}

static void *owner(void *ctx)
{
    cairn_engine *e = ctx;

    mutex_lock(&e->mu);
    while (!e->closing || e->jobs) {
        uint64_t now = clock_ns(), due;

        for (job *j = e->jobs; e->closing && j; j = j->next) j->cancelled = true;
        due = admit(e, now);
        if (due > now) cond_wait_ms(&e->more, &e->mu, (uint32_t)((due - now + 999999) / 1000000));
        turn(e);
        admit(e, clock_ns());
    }
    mutex_unlock(&e->mu);
    return NULL;
}

cairn_status fake_engine_new(int32_t max_seqs, int32_t max_queue, int32_t ctx, cairn_engine **out)
{
    cairn_engine *e = mem_calloc(1, sizeof *e, MEM_ENGINE);

    if (!e) return CAIRN_E_NOMEM;
    mutex_init(&e->mu);
    cond_init(&e->more);
    e->max_seqs = max_seqs;
    e->max_queue = max_queue;
    e->ctx = ctx;
    TRY(thread_start(&e->owner, "fake", owner, e));
    *out = e;
    return CAIRN_OK;
}

void cairn_engine_close(cairn_engine *e)
{
    if (!e) return;
    mutex_lock(&e->mu);
    e->closing = true;
    cond_signal(&e->more);
    mutex_unlock(&e->mu);
    thread_join(&e->owner);
    cond_deinit(&e->more);
    mutex_deinit(&e->mu);
    mem_free(e);
}

static job *job_new(const cairn_engine *e, const cairn_request *r, cairn_event_fn fn, void *ctx)
{
    job *j = mem_calloc(1, sizeof *j, MEM_ENGINE);
    char *prompt = mem_alloc(r->n_ids + 1, MEM_ENGINE);
    bool ok = j && prompt;

    if (ok) {
        for (size_t i = 0; i < r->n_ids; i++) prompt[i] = (char)r->ids[i];
        prompt[r->n_ids] = 0;
        *j = (job){.fn = fn, .ctx = ctx, .n_ids = r->n_ids, .n_logprobs = r->n_logprobs};
        j->want_progress = r->want_progress;
        j->max_tokens = (size_t)e->ctx - r->n_ids;
        if (r->max_tokens && (size_t)r->max_tokens < j->max_tokens)
            j->max_tokens = (size_t)r->max_tokens;
        if (r->prompt_only) j->max_tokens = 0;
        ok = script(j, r, prompt);
    }
    if (ok && r->prompt_logprobs) {
        j->asked = prompt;
        return j;
    }
    mem_free(prompt);
    if (ok) return j;
    mem_free(j);
    return NULL;
}

cairn_status cairn_engine_submit(cairn_engine *e, const cairn_request *r, cairn_event_fn fn,
                                 void *ctx, cairn_request_id *out, cairn_diag *dg)
{
    int32_t n = 0;
    job **p, *j;

    for (size_t i = 0; i < r->sampling.n_bias; i++)
        if (r->sampling.bias[i].id >= FAKE_VOCAB)
            return diag_set(dg, CAIRN_E_ARG, "bias for id %d, the vocabulary has %d",
                            r->sampling.bias[i].id, FAKE_VOCAB);
    if (r->n_marks > 1 || (r->n_marks && (size_t)r->marks[0] != r->n_ids / 2))
        return diag_set(dg, CAIRN_E_ARG, "%zu marks of a chat", r->n_marks);
    if (r->prompt_logprobs && r->n_logprobs < 0)
        return diag_set(dg, CAIRN_E_ARG, "prompt_logprobs without n_logprobs");
    if (r->n_ids >= (size_t)e->ctx + r->prompt_only)
        return diag_set(dg, CAIRN_E_LIMIT, "%zu tokens in a context of %d", r->n_ids, e->ctx);
    j = job_new(e, r, fn, ctx);
    if (!j) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a job");
    mutex_lock(&e->mu);
    for (p = &e->jobs; *p; p = &(*p)->next) n++;
    if (n >= e->max_seqs + e->max_queue) {
        mutex_unlock(&e->mu);
        mem_free(j->asked);
        mem_free(j->reply);
        mem_free(j);
        return diag_set(dg, CAIRN_E_BUSY, "%d requests are waiting", n);
    }
    *out = j->id = ++e->last_id;
    *p = j;
    e->st.n_requests++;
    e->st.prompt_tokens += r->n_ids;
    admit(e, clock_ns());
    mutex_unlock(&e->mu);
    cond_signal(&e->more);
    return CAIRN_OK;
}

void cairn_engine_cancel(cairn_engine *e, cairn_request_id id)
{
    mutex_lock(&e->mu);
    for (job *j = e->jobs; j; j = j->next)
        if (j->id == id) j->cancelled = true;
    cond_signal(&e->more);
    mutex_unlock(&e->mu);
}

void cairn_engine_stop(cairn_engine *e, cairn_request_id id)
{
    cairn_engine_cancel(e, id);
}

void cairn_flush_init(cairn_flush *f)
{
    *f = (cairn_flush){.struct_size = sizeof *f};
}

/* A running request is what is not on disk yet. */
void cairn_engine_flush(cairn_engine *e, uint32_t wait_ms, cairn_flush *out)
{
    (void)wait_ms;
    mutex_lock(&e->mu);
    for (const job *j = e->jobs; j; j = j->next) out->pending++;
    out->durable = (uint32_t)e->st.n_requests - out->pending;
    mutex_unlock(&e->mu);
}

void cairn_engine_stats_init(cairn_engine_stats *s)
{
    *s = (cairn_engine_stats){.struct_size = sizeof *s};
}

void cairn_engine_get_stats(cairn_engine *e, cairn_engine_stats *out)
{
    mutex_lock(&e->mu);
    *out = e->st;
    out->struct_size = sizeof *out;
    out->max_seqs = e->max_seqs;
    out->ctx_len = e->ctx;
    out->max_queue = e->max_queue;
    out->kv_codec = "f16";
    mutex_unlock(&e->mu);
}
