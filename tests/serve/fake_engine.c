/* A test double of the engine, text and model API: one owner thread replays scripted answers at a
   settable pace.  Ids are bytes; the "template" is lines of "role: content".  Words in the prompt
   direct it (the last of each kind counts):
     @reply=TEXT     to the end of the line; else a greeting
     @n=N            the answer repeated to N tokens        @pace=MS     between tokens
     @prefill=MS     before the first                       @fail=N      an engine error after N tokens
     @late           that error is a deadline's
     @cached=N       reported as n_cached                   @echo        the answer tells the sampling
     @until=PATH     not before that file is there: nothing is said
     @render=PATH    the same of the prompt           @template-error the template refuses
     @says="JSON"    the answer, escaped      @ends="JSON" the prompt's end instead of "assistant: "
     @step=N         bytes of text to a token @cut=N      so many in the first token, the rest in one
     @prompt         the answer is the prompt @eos        it ends at once
     @steps          the template takes more steps than any limit that a render is given
     @progress=N     the prefill is told in N steps, the last one when its end is due; else only that
   It checks what it is given as the real one promises to, and counts for cairn_engine_get_stats. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "base/thread.h"
#include "cairn/embed.h"
#include "cairn/engine.h"
#include "cairn/fit.h"
#include "cairn/score.h"
#include "serve/fake_engine.h"

enum {
    VOCAB = 256,
    MAX_REPLY = 1 << 16,
    PATH_BYTES = 400,
    GATE_MS = 2,        /* between two looks for a file */
    RENDER_MS = 600000, /* at most: nobody hangs for ever */
};

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
    char until[PATH_BYTES]; /* "": no file is waited for (any more) */
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

void cairn_render_opts_init(cairn_render_opts *o)
{
    *o = (cairn_render_opts){.struct_size = sizeof *o};
}

cairn_status cairn_text_check_template(const cairn_text *t, cairn_diag *dg)
{
    return t ? CAIRN_OK : diag_set(dg, CAIRN_E_NOTFOUND, "no tokenizer");
}

static char pieces[VOCAB];

cairn_str cairn_text_piece(const cairn_text *t, int32_t id)
{
    (void)t;
    return id >= 0 && id < VOCAB ? (cairn_str){&pieces[id], 1} : (cairn_str){0};
}

size_t cairn_text_longest_piece(const cairn_text *t)
{
    (void)t;
    return 1;
}

/* Where the last `word` ends in s; NULL if it is not there. */
static const char *after_last(const char *s, const char *word)
{
    const char *found = NULL;

    for (const char *p = strstr(s, word); p; p = strstr(p + 1, word)) found = p + strlen(word);
    return found;
}

static size_t number(const char *s, const char *word, size_t otherwise)
{
    const char *p = after_last(s, word);

    return p ? strtoul(p, NULL, 10) : otherwise;
}

/* The path after the last `word`, up to a blank; "" if there is none. */
static void path_after(const char *s, const char *word, char path[PATH_BYTES])
{
    const char *p = after_last(s, word);

    (void)snprintf(path, PATH_BYTES, "%.*s", p ? (int)strcspn(p, " \n") : 0, p ? p : "");
}

static bool is_there(const char *path)
{
    return !*path || access(path, F_OK) == 0;
}

/* The JSON string after the last `word`; false if there is none. */
static bool quoted(const char *s, const char *word, buf *out)
{
    const char *p = after_last(s, word);
    json_doc *doc = NULL;

    if (!p || json_parse((cairn_str){p, strcspn(p, "\n")}, &doc, NULL) != CAIRN_OK) return false;
    buf_str(out, json_str(json_root(doc)));
    json_free(doc);
    return true;
}

static const char *the_template = "";

void fake_engine_template(const char *text)
{
    the_template = text;
}

cairn_str cairn_text_template(const cairn_text *t, bool tools)
{
    (void)t;
    (void)tools;
    return str_of(the_template);
}

static void end_prompt(buf *out)
{
    buf end;

    buf_init(&end, MEM_TEXT);
    if (out->len && quoted(out->ptr, "@ends=", &end))
        buf_str(out, buf_view(&end));
    else
        buf_puts(out, "assistant: ");
    if (buf_status(&end) != CAIRN_OK) out->no_memory = true;
    buf_deinit(&end);
}

static void put_after(const char *before, json_val v, buf *out)
{
    if (json_typeof(v) != JSON_STR) return;
    buf_puts(out, before);
    buf_str(out, json_str(v));
}

static void render_message(json_val m, buf *out)
{
    const json_val calls = json_get(m, "tool_calls");
    json_writer w;

    buf_str(out, json_str(json_get(m, "role")));
    put_after(" ", json_get(m, "tool_call_id"), out);
    put_after(" ", json_get(m, "name"), out);
    buf_puts(out, ": ");
    buf_str(out, json_str(json_get(m, "content")));
    if (json_typeof(calls) != JSON_NONE) {
        w = json_write(out);
        json_w_val(&w, calls);
    }
    put_after(" thought: ", json_get(m, "reasoning_content"), out);
    buf_byte(out, '\n');
}

static cairn_status render(const cairn_render_opts *o, buf *out, cairn_diag *dg)
{
    json_doc *doc = NULL;
    json_val m;
    json_iter it;

    TRY(json_parse(o->messages, &doc, dg));
    if (o->tools.len) buf_printf(out, "tools: %.*s\n", (int)o->tools.len, o->tools.ptr);
    if (o->kwargs.len) buf_printf(out, "kwargs: %.*s\n", (int)o->kwargs.len, o->kwargs.ptr);
    it = json_each(json_root(doc));
    while (json_next(&it, &m)) {
        render_message(m, out);
    }
    json_free(doc);
    if (out->len && memmem(out->ptr, out->len, "@template-error", 15))
        return diag_set(
            dg, CAIRN_E_ARG,
            "/srv/models of/fake/chat_template.jinja, line 3: use and/or: roles must alternate");
    if (o->max_steps && out->len && memmem(out->ptr, out->len, "@steps", 6))
        return diag_set(dg, CAIRN_E_LIMIT, "more than %u steps", (unsigned)o->max_steps);
    if (!o->no_generation_prompt) end_prompt(out);
    if (out->ptr && out->len < 10000) {
        char path[PATH_BYTES];
        path_after(out->ptr, "@render=", path);
        for (int ms = 0; ms < RENDER_MS && !is_there(path); ms += GATE_MS) poll(NULL, 0, GATE_MS);
    }
    return buf_status(out);
}

cairn_status cairn_text_render(const cairn_text *t, const cairn_render_opts *o, cairn_bytes *out,
                               cairn_diag *dg)
{
    buf b;
    cairn_status st;

    (void)t;
    buf_init(&b, MEM_TEXT);
    st = render(o, &b, dg);
    if (st == CAIRN_OK) st = buf_take(&b, out);
    buf_deinit(&b);
    return st;
}

cairn_status cairn_text_encode_prompt(const cairn_text *t, cairn_str text, cairn_ids *out,
                                      cairn_diag *dg)
{
    int32_t *ids = mem_alloc(text.len * sizeof *ids, MEM_TEXT);

    (void)t;
    for (size_t i = 0; ids && i < text.len; i++) ids[i] = (uint8_t)text.ptr[i];
    *out = (cairn_ids){ids, ids ? text.len : 0};
    return ids ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "ids");
}

cairn_status cairn_text_detokenize(const cairn_text *t, const int32_t *ids, size_t n,
                                   bool keep_special, cairn_bytes *out, cairn_diag *dg)
{
    buf b;

    (void)t, (void)keep_special, (void)dg;
    buf_init(&b, MEM_TEXT);
    for (size_t i = 0; i < n; i++) buf_byte(&b, (char)ids[i]);
    return buf_take(&b, out);
}

cairn_status cairn_text_tokenize(const cairn_text *t, cairn_str s, uint32_t flags, cairn_ids *out,
                                 cairn_diag *dg)
{
    cairn_ids ids = {0};

    TRY(cairn_text_encode_prompt(t, s, &ids, dg));
    /* BOS is a "^", and special tokens are "<x>", one id. */
    *out = (cairn_ids){mem_alloc((ids.len + 1) * sizeof *ids.ptr, MEM_TEXT), 0};
    if (out->ptr && flags & CAIRN_TOK_ADD_SPECIAL) out->ptr[out->len++] = '^';
    for (size_t i = 0; out->ptr && i < ids.len; i++) {
        const bool special = i + 2 < ids.len && memcmp(s.ptr + i, "<x>", 3) == 0;
        out->ptr[out->len++] = special && flags & CAIRN_TOK_PARSE_SPECIAL ? 1 : ids.ptr[i];
        if (special && flags & CAIRN_TOK_PARSE_SPECIAL) i += 2;
    }
    cairn_ids_free(&ids);
    return out->ptr ? CAIRN_OK : diag_set(dg, CAIRN_E_NOMEM, "ids");
}

struct cairn_stream {
    char held[4];
    size_t n_held;
};

cairn_status cairn_stream_new(const cairn_text *t, bool keep_special, cairn_stream **out)
{
    (void)t, (void)keep_special;
    *out = mem_calloc(1, sizeof **out, MEM_TEXT);
    return *out ? CAIRN_OK : CAIRN_E_NOMEM;
}

/* Well-formed text: a character is whole when its first byte says so. */
cairn_status cairn_stream_feed(cairn_stream *s, int32_t id, cairn_str *text)
{
    const uint8_t first = (uint8_t)(s->n_held ? s->held[0] : id);
    const size_t n = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

    s->held[s->n_held++] = (char)id;
    *text = (cairn_str){s->held, s->n_held == n ? n : 0};
    if (s->n_held == n) s->n_held = 0;
    return CAIRN_OK;
}

void cairn_stream_free(cairn_stream *s)
{
    mem_free(s);
}

int32_t cairn_text_vocab(const cairn_text *t)
{
    (void)t;
    return VOCAB;
}

size_t cairn_text_marks(const cairn_text *t, const cairn_render_opts *o, const int32_t *ids,
                        size_t n, int32_t marks[2])
{
    (void)t;
    marks[0] = (int32_t)(n / 2);
    return o->messages.len && ids ? 1 : 0;
}

/* As if the longest piece had ten bytes. */
size_t cairn_text_least_ids(const cairn_text *t, cairn_str text)
{
    (void)t;
    return text.len / 10;
}

void cairn_model_info_init(cairn_model_info *info)
{
    *info = (cairn_model_info){.struct_size = sizeof *info};
}

void cairn_model_get_info(const cairn_model *m, cairn_model_info *info)
{
    (void)m;
    *info = (cairn_model_info){.struct_size = sizeof *info,
                               .format = "fake",
                               .family = "fake",
                               .name = "fake",
                               .quant = "F32",
                               .vocab = VOCAB,
                               .n_params = 42};
}

/* Opaque to their users: any address will do. */
static const char the_model, the_text;

/* The double chats, and embeds nothing: tests/serve/test_embeddings.py asks the real program. */
void cairn_embed_info_init(cairn_embed_info *info)
{
    *info = (cairn_embed_info){.struct_size = sizeof *info};
}

void cairn_embed_get_info(const cairn_model *m, cairn_embed_info *info)
{
    (void)m;
    (void)info;
}

void cairn_score_opts_init(cairn_score_opts *o)
{
    *o = (cairn_score_opts){.struct_size = sizeof *o};
}

/* Logit i is -i/4 from the last id on. */
cairn_status cairn_score(const cairn_model *m, const int32_t *ids, size_t n,
                         const cairn_score_opts *o, cairn_logits_fn fn, void *ctx, cairn_diag *dg)
{
    float logits[VOCAB];

    (void)m;
    if (o->first != (int32_t)n - 1) return diag_set(dg, CAIRN_E_ARG, "more than the last");
    for (int32_t i = 0; i < VOCAB; i++) logits[(ids[n - 1] + i) % VOCAB] = -(float)i / 4;
    (void)fn(ctx, o->first, logits);
    return CAIRN_OK;
}

void cairn_embed_opts_init(cairn_embed_opts *o)
{
    *o = (cairn_embed_opts){.struct_size = sizeof *o};
}

cairn_status cairn_embed(const cairn_model *m, const cairn_str *texts, size_t n,
                         const cairn_embed_opts *o, cairn_embed_fn fn, void *ctx, cairn_diag *dg)
{
    (void)m, (void)texts, (void)n, (void)o, (void)fn, (void)ctx;
    return diag_set(dg, CAIRN_E_UNSUPPORTED, "no embeddings here");
}

cairn_status cairn_embed_ids(const cairn_model *m, const cairn_ids *texts, size_t n,
                             const cairn_embed_opts *o, cairn_embed_fn fn, void *ctx,
                             cairn_diag *dg)
{
    (void)m, (void)texts, (void)n, (void)o, (void)fn, (void)ctx;
    return diag_set(dg, CAIRN_E_UNSUPPORTED, "no embeddings here");
}

bool cairn_engine_wants_marks(const cairn_engine *e)
{
    return e != NULL;
}

const cairn_model *cairn_engine_model(const cairn_engine *e)
{
    (void)e;
    return (const cairn_model *)(const void *)&the_model;
}

const struct cairn_text *cairn_model_text(const cairn_model *m)
{
    (void)m;
    return (const struct cairn_text *)(const void *)&the_text;
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
    const char *p = after_last(prompt, "@reply=");
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
    } else if (!quoted(prompt, "@says=", &text)) {
        buf_puts(&text, "Hello from the test double.");
    }
    want = number(prompt, "@n=", text.len);
    if (want > MAX_REPLY) want = MAX_REPLY;
    j->reply = buf_status(&text) == CAIRN_OK ? mem_alloc(want + 1, MEM_ENGINE) : NULL;
    if (j->reply) {
        for (size_t i = 0; i < want; i++) j->reply[i] = text.ptr[i % text.len];
        j->reply[want] = 0;
    }
    buf_deinit(&text);
    if (!j->reply) return false;
    j->n_reply = want;
    j->step = number(prompt, "@step=", 1);
    j->cut = number(prompt, "@cut=", 0);
    j->pace_ns = number(prompt, "@pace=", 0) * 1000000;
    j->prefill_ns = number(prompt, "@prefill=", 0) * 1000000;
    path_after(prompt, "@until=", j->until);
    j->eos = after_last(prompt, "@eos") != NULL;
    if (j->eos) want = j->n_reply = 0;
    j->late = after_last(prompt, "@late") != NULL;
    j->fail_after = number(prompt, "@fail=", SIZE_MAX);
    j->n_cached = (int32_t)number(prompt, "@cached=", 0);
    j->n_steps = r->want_progress ? number(prompt, "@progress=", 0) : 0;
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
            top[i] = (cairn_logprob){(even + i) % VOCAB, -0.25F - (float)i};
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
        top[i] = (cairn_logprob){(id + i) % VOCAB, -0.5F - (float)i};
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
            j->due_ns = clock_ns() + GATE_MS * 1000000;
            due = false;
        }
        if (due && !j->cancelled && *j->until) {
            if (is_there(j->until))
                *j->until = '\0';
            else
                j->due_ns = clock_ns() + GATE_MS * 1000000;
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
    for (int i = 0; i < VOCAB; i++) pieces[i] = (char)i;
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
        if (r->sampling.bias[i].id >= VOCAB)
            return diag_set(dg, CAIRN_E_ARG, "bias for id %d, the vocabulary has %d",
                            r->sampling.bias[i].id, VOCAB);
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

void cairn_fit_opts_init(cairn_fit_opts *o)
{
    *o = (cairn_fit_opts){.struct_size = sizeof *o};
}

void cairn_fit_report_init(cairn_fit_report *r)
{
    *r = (cairn_fit_report){.struct_size = sizeof *r};
}

/* One row. */
cairn_status cairn_fit(const cairn_model *m, const cairn_fit_opts *o, cairn_fit_fn fn, void *ctx,
                       cairn_fit_report *out, cairn_diag *dg)
{
    const cairn_fit_row row = {.ctx_len = 2048, .max_seqs = 1, .needed_bytes = 9, .fits = true};

    (void)m;
    (void)o;
    (void)dg;
    fn(ctx, &row);
    out->max_ctx = 2048;
    return CAIRN_OK;
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
