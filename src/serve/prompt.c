/* From the body of a chat request to its prompt: reads it, finds the model, renders the template, refuses
   what surely cannot fit before encoding it, encodes.  All of it takes time that grows with the body,
   so it runs on a worker (jobs.h) and touches nothing but its arguments; the models are immutable.

   What a client is told names no path of this machine; the log does. */
#include "serve/prompt.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/openai_messages.h"
#include "serve/openai_wire.h"
#include "serve/random.h"
#include "serve/volatile.h"
#include "serve/without_folders.h"

/* Of a prompt that is made at once: well below a millisecond.  2^20 steps of the slowest filters took 24 ms on Sapphire
   Rapids, so these 0.2; a model's template takes some hundred for a tiny body, and writes little more than that has. */
enum { STEPS_AT_ONCE = 8 << 10, BYTES_AT_ONCE = 8 << 10 };

bool prompt_refuse(prompt *p, int status, const char *param, const char *code, const char *fmt, ...)
{
    va_list ap;

    p->fault.status = status;
    p->fault.code = code;
    (void)snprintf(p->fault.param, sizeof p->fault.param, "%s", param ? param : "");
    va_start(ap, fmt);
    (void)vsnprintf(p->fault.message, sizeof p->fault.message, fmt, ap);
    va_end(ap);
    return false;
}

bool prompt_no_memory(prompt *p)
{
    return prompt_refuse(p, 503, NULL, "out_of_memory", "no memory for the request");
}

bool prompt_refuse_as(prompt *p, cairn_status st, const char *param, const char *message)
{
    if (st == CAIRN_E_NOMEM) return prompt_no_memory(p);
    return prompt_refuse(p, openai_status(st), param, "invalid_value", "%s", message);
}

static bool no_prompt(prompt *p, cairn_status st, const cairn_diag *dg)
{
    log_event(LOG_INFO, "prompt_build_failed", "model=%s message=\"%s\"", p->model->id,
              dg->message);
    return prompt_refuse(p, st == CAIRN_E_NOMEM ? 503 : 400, p->ask.prompt_field,
                         "prompt_build_failed", "prompt build failed: %s",
                         without_folders(dg->message));
}

bool prompt_refuse_body(prompt *p, cairn_status st, const chat_fault *f)
{
    return prompt_refuse(p, openai_status(st), f->param,
                         st == CAIRN_E_UNSUPPORTED            ? "unsupported_parameter"
                         : st == CAIRN_E_NOTFOUND             ? "not_found"
                         : f->param[0] && st == CAIRN_E_LIMIT ? "context_length_exceeded"
                         : st == CAIRN_E_LIMIT                ? "request_too_large"
                         : f->param[0]                        ? "invalid_value"
                                                              : "invalid_json",
                         "%s", f->dg.message);
}

bool prompt_read(prompt *p, ask_read_fn *read, cairn_str body)
{
    chat_fault f;
    const cairn_status st = read(&p->ask, body, &f);

    return st == CAIRN_OK || prompt_refuse_body(p, st, &f);
}

bool prompt_find_model(prompt *p, const models *m, cairn_str name)
{
    const served_model *found = NULL;
    const bool waited = p->client.waited;
    const model_found got = models_take(m, name, p->client.held, &found);
    model_fault f;

    if (got == MODEL_TAKEN) {
        p->model = found;
        if (p->ask.has_keep) served_model_keep(found, p->ask.keep_ms);
        return true;
    }
    if (got == MODEL_AWAY && !waited) {
        p->awaits = found;
        p->awaits_stream = p->ask.stream;
    }
    models_fault(m, got, waited, name, found, &f);
    p->fault.retry_s = f.retry_s;
    return prompt_refuse(p, f.status, f.param, f.code, "%s", f.message);
}

bool prompt_find_engine(prompt *p, const models *m)
{
    if (!prompt_find_model(p, m, p->ask.model)) return false;
    return p->model->engine || prompt_refuse(p, 400, "model", "invalid_value",
                                             "the model `%s` only embeds", p->model->id);
}

static bool find_chat(prompt *p, const models *m)
{
    cairn_diag dg = {0};

    if (!prompt_find_engine(p, m)) return false;
    if (cairn_text_check_template(served_model_text(p->model), &dg) != CAIRN_OK)
        return prompt_refuse(p, 400, p->ask.prompt_field, "no_chat_template",
                             "the model `%s` cannot chat: %s", p->model->id,
                             without_folders(dg.message));
    /* else the template drops them, and nobody hears of it */
    if (p->ask.tools.len && !served_about_takes_tools(p->model->about))
        return prompt_refuse(p, 400, "tools", "unsupported_parameter",
                             "`tools` are given, and the model `%s` does not support tools",
                             p->model->id);
    return true;
}

/* Of the model's vocabulary, which the body's reader does not know. */
bool prompt_check_bias(prompt *p)
{
    const cairn_sampling *s = &p->ask.rq.sampling;
    cairn_model_info info;

    cairn_model_info_init(&info);
    cairn_model_get_info(cairn_engine_model(p->model->engine), &info);
    for (size_t i = 0; i < s->n_bias; i++)
        if (s->bias[i].id >= info.vocab)
            return prompt_refuse(p, 400, "logit_bias", "invalid_value",
                                 "`logit_bias` takes token ids from 0 to %d, found %d",
                                 info.vocab - 1, s->bias[i].id);
    return true;
}

static cairn_str template_of(const prompt *p)
{
    return cairn_text_template(served_model_text(p->model), p->ask.tools.len > 0);
}

static bool has_member(json_val object, cairn_str key)
{
    json_iter it = json_each(object);
    cairn_str k;
    json_val v;

    while (json_next_member(&it, &k, &v))
        if (str_eq(k, key)) return true;
    return false;
}

static void put_members(json_writer *w, json_val from, json_val except)
{
    json_iter it = json_each(from);
    cairn_str k;
    json_val v;

    while (json_next_member(&it, &k, &v)) {
        if (has_member(except, k)) continue;
        json_w_key_str(w, k);
        json_w_val(w, v);
    }
}

/* What the client set goes over what the wish to think implies for this template. */
static void merge(json_val implied, json_val set, buf *out)
{
    json_writer w = json_write(out);

    json_w_obj(&w);
    put_members(&w, implied, set);
    put_members(&w, set, (json_val){0});
    json_w_end_obj(&w);
}

static bool make_kwargs(prompt *p)
{
    const chat_ask *a = &p->ask;
    cairn_bytes text = {0};
    json_doc *implied = NULL;
    cairn_status st;

    if (a->think < 0 && a->effort.len == 0 && json_size(a->kwargs) == 0) return true;
    buf_init(&p->kwargs, MEM_SERVE);
    st = cairn_reply_kwargs(template_of(p), a->think, a->effort, &text);
    if (st == CAIRN_OK) st = json_parse((cairn_str){text.ptr, text.len}, &implied, NULL);
    if (st == CAIRN_OK) {
        merge(json_root(implied), a->kwargs, &p->kwargs);
        json_free(implied);
        st = buf_status(&p->kwargs);
    }
    cairn_bytes_free(&text);
    return st == CAIRN_OK || prompt_no_memory(p);
}

static cairn_render_opts render_opts(const prompt *p, cairn_str messages)
{
    cairn_render_opts o;

    cairn_render_opts_init(&o);
    o.messages = messages;
    o.tools = buf_view(&p->ask.tools);
    o.kwargs = buf_view(&p->kwargs);
    o.no_generation_prompt = p->ask.no_generation_prompt;
    o.max_steps = p->client.at_once ? STEPS_AT_ONCE : 0;
    return o;
}

static cairn_status render_these(const prompt *p, cairn_str messages, cairn_bytes *out,
                                 cairn_diag *dg)
{
    const cairn_render_opts o = render_opts(p, messages);

    return cairn_text_render(served_model_text(p->model), &o, out, dg);
}

/* A template that met a limit with so much to write: the request is too long, not the template at fault. */
static bool too_long(prompt *p, const cairn_diag *dg)
{
    const size_t sent = p->ask.messages.len + p->ask.tools.len;

    if (dg->status != CAIRN_E_LIMIT || sent <= CAIRN_MAX_PROMPT_BYTES) return false;
    (void)prompt_refuse(
        p, 400, p->ask.prompt_field, "context_length_exceeded",
        "the messages and tools are %zu bytes of JSON, and a prompt has at most %d: %s", sent,
        CAIRN_MAX_PROMPT_BYTES, without_folders(dg->message));
    return true;
}

/* A template that takes many steps, or writes much, for a tiny body: others' tokens do not wait for it. */
static bool too_slow(prompt *p, cairn_status st, const cairn_bytes *text)
{
    if (!p->client.at_once) return false;
    if (st != CAIRN_E_LIMIT && (st != CAIRN_OK || text->len <= BYTES_AT_ONCE)) return false;
    p->too_slow = true;
    (void)prompt_refuse(p, 503, NULL, NULL, "the prompt takes long to make");
    return true;
}

/* A template may read the content of a message that has none, as a reply with calls alone: then again with
   an empty one.  Not at once, since others tell calls by a content that is none. */
static bool render(prompt *p, cairn_bytes *out)
{
    cairn_diag dg = {0};
    cairn_status st = render_these(p, buf_view(&p->ask.messages), out, &dg), again = st;
    buf filled;

    if (too_slow(p, st, out)) return false;
    if (st == CAIRN_OK) return true;
    if (too_long(p, &dg)) return false;
    buf_init(&filled, MEM_SERVE);
    if (st != CAIRN_E_NOMEM) again = chat_messages_fill(buf_view(&p->ask.messages), &filled);
    if (again == CAIRN_OK && !str_eq(buf_view(&filled), buf_view(&p->ask.messages)))
        st = render_these(p, buf_view(&filled), out, NULL);
    if (too_slow(p, st, out)) {
        buf_deinit(&filled);
        return false;
    }
    if (st == CAIRN_OK) { /* what was rendered is what was said */
        buf_deinit(&p->ask.messages);
        p->ask.messages = filled;
        return true;
    }
    buf_deinit(&filled);
    return no_prompt(p, st, &dg);
}

bool prompt_fits(prompt *p, const char *param, const char *at_least, size_t n_ids)
{
    const int32_t ctx = served_model_ctx(p->model);

    if (n_ids < (size_t)ctx + p->ask.rq.prompt_only) return true;
    return prompt_refuse(p, 400, param, "context_length_exceeded",
                         "`%s` makes %s%zu tokens, and the context holds %d positions%s", param,
                         at_least, n_ids, ctx,
                         p->ask.rq.prompt_only ? "" : ", of which the answer needs at least one");
}

/* Whether answers outlive a crash of the server, their seeds with them. */
static bool may_resume(const prompt *p)
{
    cairn_engine_stats s;

    cairn_engine_stats_init(&s);
    cairn_engine_get_stats(p->model->engine, &s);
    return s.checkpoint_every > 0;
}

/* Ids of calls are a function of the seed and the prompt: the same for the same request, and others in
   the next turn of a conversation that keeps its seed.  A seed of nobody's is not known yet where the answer
   may go on from a checkpoint. */
static bool make_readers(prompt *p, cairn_str text)
{
    chat_ask *a = &p->ask;
    cairn_model_info info;
    cairn_reply_opts o;
    cairn_diag dg = {0};
    cairn_status st;

    cairn_model_info_init(&info);
    cairn_model_get_info(p->model->model, &info);
    cairn_reply_opts_init(&o);
    o.template_text = template_of(p);
    o.hint = str_of(info.family ? info.family : "");
    o.tools = buf_view(&a->tools);
    o.prompt = text;
    o.id_seed = hash64(text.ptr, text.len, a->has_seed || !may_resume(p) ? a->rq.sampling.seed : 0);
    st = readers_new(&o, (uint32_t)a->n, a->one_call, &p->readers, &dg);
    if (st != CAIRN_OK)
        return prompt_refuse(p, openai_status(st), "tools",
                             st == CAIRN_E_NOMEM ? "out_of_memory" : "invalid_value", "%s",
                             dg.message);
    if (readers_keep_special(p->readers)) a->rq.keep_special = true;
    if (a->rq.think_budget >= 0) {
        const size_t n = text.len < sizeof p->tail ? text.len : sizeof p->tail;
        memcpy(p->tail, text.ptr + text.len - n, n);
        p->reply = o;
        p->reply.prompt = (cairn_str){p->tail, n};
        a->rq.reply = &p->reply;
    }
    return true;
}

static void find_marks(prompt *p)
{
    const cairn_render_opts o = render_opts(p, buf_view(&p->ask.messages));

    if (!cairn_engine_wants_marks(p->model->engine)) return;
    p->ask.rq.marks = p->marks;
    p->ask.rq.n_marks =
        cairn_text_marks(served_model_text(p->model), &o, p->ids[0].ptr, p->ids[0].len, p->marks);
}

static bool encode_any(prompt *p, cairn_str text)
{
    cairn_diag dg = {0};
    cairn_status st;

    p->ids = mem_calloc(1, sizeof *p->ids, MEM_SERVE);
    if (!p->ids) return prompt_no_memory(p);
    p->n_ids = 1;
    st = cairn_text_encode_prompt(served_model_text(p->model), text, &p->ids[0], &dg);
    if (st == CAIRN_OK && p->ids[0].len == 0)
        st = diag_set(&dg, CAIRN_E_ARG, "the prompt is empty");
    return st == CAIRN_OK || no_prompt(p, st, &dg);
}

static bool encode(prompt *p, cairn_str text)
{
    if (!prompt_fits(p, p->ask.prompt_field, "at least ",
                     cairn_text_least_ids(served_model_text(p->model), text)))
        return false;
    if (!encode_any(p, text)) return false;
    if (!p->ask.has_seed) p->ask.rq.sampling.seed = random_seed();
    p->ask.rq.any_seed = !p->ask.has_seed;
    if (!prompt_fits(p, p->ask.prompt_field, "", p->ids[0].len)) return false;
    find_marks(p);
    return make_readers(p, text);
}

static bool count(prompt *p, cairn_str text)
{
    json_writer w;

    if (!encode_any(p, text)) return false;
    buf_init(&p->text, MEM_SERVE);
    w = json_write(&p->text);
    json_w_obj(&w);
    json_w_kuint(&w, "input_tokens", p->ids[0].len);
    json_w_end_obj(&w);
    return true; /* memory is checked where it is sent */
}

static bool write_text(prompt *p, cairn_str text)
{
    json_writer w;

    buf_init(&p->text, MEM_SERVE);
    p->text.max = p->client.most_text;
    w = json_write(&p->text);
    json_w_obj(&w);
    json_w_kstr(&w, "prompt", text);
    json_w_end_obj(&w);
    return buf_status(&p->text) == CAIRN_OK || p->text.over_limit || /* endpoint.c says that */
           prompt_refuse(p, 503, NULL, "out_of_memory", "no memory for the answer");
}

static bool strip_volatile(prompt *p, const models *m)
{
    buf stripped;

    if (m->keep_volatile) return true;
    buf_init(&stripped, MEM_SERVE);
    const cairn_status st = volatile_strip(buf_view(&p->ask.messages), &stripped);
    if (st == CAIRN_OK && stripped.len > 0) {
        buf_deinit(&p->ask.messages);
        p->ask.messages = stripped;
        return true;
    }
    buf_deinit(&stripped);
    return st == CAIRN_OK || prompt_no_memory(p);
}

static bool no_more(prompt *p)
{
    (void)p;
    return true;
}

static void make(prompt *p, const models *m, ask_read_fn *read, prompt_more_fn *more,
                 cairn_str body, bool (*finish)(prompt *p, cairn_str text))
{
    cairn_bytes text = {0};

    *p = (prompt){.client = p->client};
    if (prompt_read(p, read, body) && more(p) && strip_volatile(p, m) && find_chat(p, m) &&
        prompt_check_bias(p) && make_kwargs(p) && render(p, &text))
        (void)finish(p, (cairn_str){text.ptr, text.len});
    cairn_bytes_free(&text);
    if (p->fault.status) prompt_deinit(p); /* here, as freeing much takes long too */
}

void prompt_make(prompt *p, const models *m, ask_read_fn *read, cairn_str body)
{
    make(p, m, read, no_more, body, encode);
}

void prompt_render(prompt *p, const models *m, ask_read_fn *read, cairn_str body)
{
    make(p, m, read, no_more, body, write_text);
}

void prompt_count(prompt *p, const models *m, ask_read_fn *read, cairn_str body)
{
    make(p, m, read, no_more, body, count);
}

void prompt_make_more(prompt *p, const models *m, ask_read_fn *read, prompt_more_fn *more,
                      cairn_str body)
{
    make(p, m, read, more, body, encode);
}

void prompt_count_more(prompt *p, const models *m, ask_read_fn *read, prompt_more_fn *more,
                       cairn_str body)
{
    make(p, m, read, more, body, count);
}

void prompt_deinit(prompt *p)
{
    served_model_let_go(p->model);
    p->model = NULL;
    chat_ask_deinit(&p->ask);
    for (size_t i = 0; i < p->n_ids; i++) cairn_ids_free(&p->ids[i]);
    for (size_t i = 0; p->echo && i < p->n_ids; i++) cairn_bytes_free(&p->echo[i]);
    mem_free(p->ids);
    mem_free(p->echo);
    p->ids = NULL;
    p->echo = NULL;
    p->n_ids = 0;
    readers_free(p->readers);
    p->readers = NULL;
    buf_deinit(&p->kwargs);
    buf_deinit(&p->text);
}
