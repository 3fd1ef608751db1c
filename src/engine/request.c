/* Requests: checking and copying what was asked; the table of states. */
#include "engine/request.h"

#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/num.h"
#include "engine/cohort.h"

/* row: from; column: to */
static const bool moves[REQ_STATE_COUNT][REQ_STATE_COUNT] = {
    [REQ_QUEUED] = {[REQ_RESTORE] = true, [REQ_DONE] = true},
    [REQ_RESTORE] = {[REQ_PREFILL] = true, [REQ_DONE] = true},
    [REQ_PREFILL] = {[REQ_DECODE] = true, [REQ_DONE] = true},
    /* back: the sequence grew past a rotary table's range and is computed anew */
    [REQ_DECODE] = {[REQ_RESTORE] = true, [REQ_DONE] = true},
};

bool request_may(request_state from, request_state to)
{
    return moves[from][to];
}

void request_move(request *r, request_state to)
{
    assert(request_may(r->state, to));
    r->state = to;
}

static cairn_status check_ids(const cairn_request *q, const request_env *env, cairn_diag *dg)
{
    if (!q->ids || q->n_ids == 0)
        return diag_set(dg, CAIRN_E_ARG, "the prompt has no ids; expected at least one");
    if (q->n_ids >= (size_t)env->ctx_len + q->prompt_only)
        return diag_set(dg, CAIRN_E_LIMIT,
                        "the prompt has %zu tokens; the context of %d leaves room for %d", q->n_ids,
                        env->ctx_len, env->ctx_len - !q->prompt_only);
    for (size_t i = 0; i < q->n_ids; i++)
        if (q->ids[i] < 0 || q->ids[i] >= env->vocab)
            return diag_set(dg, CAIRN_E_ARG, "prompt id %d at %zu; expected 0 to %d", q->ids[i], i,
                            env->vocab - 1);
    return CAIRN_OK;
}

static cairn_status check(const cairn_request *q, const request_env *env, cairn_diag *dg)
{
    TRY(check_ids(q, env, dg));
    if (q->max_tokens < 0)
        return diag_set(dg, CAIRN_E_ARG, "max_tokens is %d; expected 0 or more", q->max_tokens);
    if (q->n_logprobs < -1 || q->n_logprobs > CAIRN_MAX_LOGPROBS)
        return diag_set(dg, CAIRN_E_ARG, "n_logprobs is %d; expected -1 to %d", q->n_logprobs,
                        CAIRN_MAX_LOGPROBS);
    if (q->prompt_logprobs && q->n_logprobs < 0)
        return diag_set(dg, CAIRN_E_ARG, "prompt_logprobs beside n_logprobs %d; expected 0 to %d",
                        q->n_logprobs, CAIRN_MAX_LOGPROBS);
    if (q->priority < -CAIRN_MAX_PRIORITY || q->priority > CAIRN_MAX_PRIORITY)
        return diag_set(dg, CAIRN_E_ARG, "priority is %d; expected %d to %d", q->priority,
                        -CAIRN_MAX_PRIORITY, CAIRN_MAX_PRIORITY);
    if (q->n_marks > CAIRN_MAX_MARKS)
        return diag_set(dg, CAIRN_E_ARG, "%zu marks; expected at most %d", q->n_marks,
                        CAIRN_MAX_MARKS);
    for (size_t i = 0; i < q->n_marks; i++)
        if (q->marks[i] < (i ? q->marks[i - 1] : 0) || (size_t)q->marks[i] > q->n_ids)
            return diag_set(dg, CAIRN_E_ARG, "mark %zu is %d; expected a rising list, to %zu", i,
                            q->marks[i], q->n_ids);
    if (q->n_stop && !q->stop)
        return diag_set(dg, CAIRN_E_ARG, "stop has %zu strings and no array", q->n_stop);
    return sample_check(&q->sampling, env->vocab, dg);
}

/* Each part at its limit; blocks of an arena grow by doubling, so that up to half of the last is unused. */
uint64_t request_worst_bytes(const tok *t, int32_t ctx_len)
{
    const uint64_t n = (uint64_t)ctx_len;
    const uint64_t ids = n * sizeof(int32_t) + n / KV_BLOCK * sizeof(uint64_t);
    const uint64_t stops = CAIRN_MAX_STOP * CAIRN_MAX_STOP_BYTES * (1 + sizeof(int32_t));
    const uint64_t lists = CAIRN_MAX_BIAS * sizeof(cairn_bias) +
                           CAIRN_MAX_BREAKERS * (sizeof(cairn_str) + CAIRN_MAX_BREAKER_BYTES);
    return sizeof(request) + 2 * (ids + stops + lists) + stream_worst_bytes(t, n) +
           think_worst_bytes(t, n);
}

cache_ns request_space(const store_origin *o, cairn_str name)
{
    store_origin mine = *o;
    mine.space = name;
    return store_root(&mine);
}

static bool copy_sampling(request *r, const cairn_sampling *q)
{
    cairn_bias *bias = arena_alloc(&r->a, q->n_bias * sizeof *bias);
    cairn_str *breakers = arena_alloc(&r->a, q->n_dry_breakers * sizeof *breakers);
    cairn_knot *curve = arena_alloc(&r->a, q->n_curve * sizeof *curve);
    if (!bias || !breakers || !curve) return false;
    if (q->n_bias) memcpy(bias, q->bias, q->n_bias * sizeof *bias);
    if (q->n_curve) memcpy(curve, q->curve, q->n_curve * sizeof *curve);
    for (size_t i = 0; i < q->n_dry_breakers; i++) {
        const cairn_str b = q->dry_breakers[i];
        char *bytes = arena_alloc(&r->a, b.len);
        if (!bytes) return false;
        memcpy(bytes, b.ptr, b.len);
        breakers[i] = (cairn_str){bytes, b.len};
    }
    r->how.bias = bias;
    r->how.curve = curve;
    r->how.dry_breakers = breakers;
    r->drawn = sample_begin(q);
    return true;
}

static cairn_status copy(request *r, const cairn_request *q, const request_env *env, cairn_diag *dg)
{
    r->ids = arena_alloc(&r->a, (size_t)r->max_ids * sizeof *r->ids);
    if (!r->ids || !copy_sampling(r, &q->sampling))
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a request of %d tokens", r->max_ids);
    memcpy(r->ids, q->ids, q->n_ids * sizeof *r->ids);
    for (size_t i = 0; i <= CAIRN_MAX_MARKS; i++)
        r->mark[i] = i < q->n_marks ? q->marks[i] : INT32_MAX;
    r->ns = request_space(env->origin, q->cache_space);
    r->any_seed = q->any_seed;
    r->no_checkpoint = !env->text_files     ? "off"
                       : q->n_logprobs >= 0 ? "logprobs"
                       : q->pin             ? "pin"
                       : q->prompt_only     ? "no answer"
                                            : NULL;
    if (!r->no_checkpoint) r->key = resume_key(q, r, *env->text_files);
    if (cohort_prepare(r) != CAIRN_OK)
        return diag_set(dg, CAIRN_E_NOMEM, "no memory for a prompt of %d tokens", r->n_prompt);
    const size_t n_new = (size_t)(r->max_ids - r->n_prompt);
    TRY(stream_init(&r->stream, env->tok, q->keep_special, q->stop, q->n_stop, n_new, &r->a, dg));
    return think_init(&r->think, env->tok, env->vocab, q->think_budget, q->reply, n_new, dg);
}

cairn_status request_new(const cairn_request *q, const request_env *env, cairn_event_fn fn,
                         void *ctx, request **out, cairn_diag *dg)
{
    TRY(check(q, env, dg));
    request *r = mem_calloc(1, sizeof *r, MEM_ENGINE);
    if (!r) return diag_set(dg, CAIRN_E_NOMEM, "no memory for a request");
    const int32_t room = env->ctx_len - (int32_t)q->n_ids;
    *r = (request){.fn = fn,
                   .ctx = ctx,
                   .reader = q->reader,
                   .how = q->sampling,
                   .choice = q->choice,
                   .n_prompt = (int32_t)q->n_ids,
                   .n_ids = (int32_t)q->n_ids,
                   .n_logprobs = q->n_logprobs,
                   .ignore_eos = q->ignore_eos,
                   .want_progress = q->want_progress,
                   .pin = q->pin,
                   .prompt_logprobs = q->prompt_logprobs,
                   .prompt_only = q->prompt_only,
                   .n_scored = 1,
                   .priority = q->priority,
                   .deadline_ms = q->deadline_ms ? q->deadline_ms : env->deadline_ms,
                   .i_out = -1};
    r->max_ids = r->n_prompt + (q->max_tokens ? min_i32(q->max_tokens, room) : room);
    if (r->prompt_only) r->max_ids = r->n_prompt;
    arena_init(&r->a, MEM_ENGINE);
    const cairn_status st = copy(r, q, env, dg);
    if (st != CAIRN_OK) {
        request_free(r);
        return st;
    }
    const exec_need need = {r->n_prompt, r->max_ids, r->no_checkpoint};
    r->plan = exec_plan_make(env->can, &need);
    r->bytes = sizeof *r + arena_bytes(&r->a) + stream_bytes(&r->stream) + think_bytes(&r->think);
    *out = r;
    return CAIRN_OK;
}

void request_free(request *r)
{
    if (!r) return;
    stream_deinit(&r->stream);
    think_deinit(&r->think);
    arena_deinit(&r->a);
    mem_free(r);
}
