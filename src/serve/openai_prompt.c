/* From the body of a chat request to its prompt: reads it, finds the model, renders the template, refuses
   what surely cannot fit before encoding it, encodes.  All of it takes time that grows with the body,
   so it runs on a worker (jobs.h) and touches nothing but its arguments; the models are immutable.

   What a client is told names no path of this machine; the log does. */
#include "serve/openai_prompt.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "serve/openai_wire.h"

static bool fault(prompt *p, int status, const char *param, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static bool fault(prompt *p, int status, const char *param, const char *code, const char *fmt, ...)
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

/* Messages begin with the file that holds the template, "PATH, line N: …" or "PATH: …": from its name
   on. */
static const char *without_folders(const char *message)
{
    const char *end = strstr(message, ", line "), *from = message;

    if (!end) end = strstr(message, ": ");
    for (const char *s = message; end && s < end; s++)
        if (*s == '/') from = s + 1;
    return from;
}

static bool no_prompt(prompt *p, cairn_status st, const cairn_diag *dg)
{
    log_event(LOG_INFO, "prompt_build_failed", "model=%s message=\"%s\"", p->model->id,
              dg->message);
    return fault(p, st == CAIRN_E_NOMEM ? 503 : 400, "messages", "prompt_build_failed",
                 "prompt build failed: %s", without_folders(dg->message));
}

static bool read_body(prompt *p, cairn_str body)
{
    chat_fault f;
    const cairn_status st = chat_ask_read(&p->ask, body, &f);

    if (st == CAIRN_OK) return true;
    return fault(p, openai_status(st), f.param,
                 st == CAIRN_E_UNSUPPORTED ? "unsupported_parameter"
                 : f.param[0]              ? "invalid_value"
                                           : "invalid_json",
                 "%s", f.dg.message);
}

static bool find_model(prompt *p, const models *m)
{
    const cairn_str name = p->ask.model;
    cairn_diag dg = {0};

    p->model = models_find(m, name);
    if (!p->model && name.len)
        return fault(p, 404, "model", "model_not_found", "the model `%.*s` does not exist",
                     STR_ARG(name));
    if (!p->model)
        return fault(p, 400, "model", "invalid_value", "`model` is needed: there are several");
    if (cairn_text_check_template(served_model_text(p->model), &dg) == CAIRN_OK) return true;
    return fault(p, 400, "messages", "no_chat_template", "the model `%s` cannot chat: %s",
                 p->model->id, without_folders(dg.message));
}

static bool render(prompt *p, cairn_bytes *out)
{
    cairn_render_opts o;
    cairn_diag dg = {0};
    cairn_status st;

    cairn_render_opts_init(&o);
    o.messages = buf_view(&p->ask.messages);
    o.tools = buf_view(&p->ask.tools);
    o.kwargs = buf_view(&p->ask.kwargs);
    o.no_generation_prompt = p->ask.no_generation_prompt;
    st = cairn_text_render(served_model_text(p->model), &o, out, &dg);
    return st == CAIRN_OK || no_prompt(p, st, &dg);
}

static bool fits(prompt *p, const char *at_least, size_t n_ids)
{
    const int32_t ctx = served_model_ctx(p->model);

    if (n_ids < (size_t)ctx) return true;
    return fault(p, 400, "messages", "context_length_exceeded",
                 "the messages make %s%zu tokens, and the context holds %d positions, of which the "
                 "answer needs at least one",
                 at_least, n_ids, ctx);
}

static bool encode(prompt *p, cairn_str text)
{
    const struct cairn_text *t = served_model_text(p->model);
    cairn_diag dg = {0};
    cairn_status st;

    if (!fits(p, "at least ", cairn_text_least_ids(t, text))) return false;
    st = cairn_text_encode_prompt(t, text, &p->ids, &dg);
    if (st == CAIRN_OK && p->ids.len == 0) st = diag_set(&dg, CAIRN_E_ARG, "the prompt is empty");
    return st == CAIRN_OK ? fits(p, "", p->ids.len) : no_prompt(p, st, &dg);
}

static bool write_text(prompt *p, cairn_str text)
{
    json_writer w;

    buf_init(&p->text, MEM_SERVE);
    w = json_write(&p->text);
    json_w_obj(&w);
    json_w_kstr(&w, "prompt", text);
    json_w_end_obj(&w);
    return buf_status(&p->text) == CAIRN_OK ||
           fault(p, 503, NULL, "out_of_memory", "no memory for the answer");
}

static void make(prompt *p, const models *m, cairn_str body,
                 bool (*finish)(prompt *p, cairn_str text))
{
    cairn_bytes text = {0};

    *p = (prompt){0};
    if (read_body(p, body) && find_model(p, m) && render(p, &text))
        (void)finish(p, (cairn_str){text.ptr, text.len});
    cairn_bytes_free(&text);
    if (p->fault.status) prompt_deinit(p); /* here, as freeing much takes long too */
}

void prompt_make(prompt *p, const models *m, cairn_str body)
{
    make(p, m, body, encode);
}

void prompt_render(prompt *p, const models *m, cairn_str body)
{
    make(p, m, body, write_text);
}

void prompt_deinit(prompt *p)
{
    chat_ask_deinit(&p->ask);
    cairn_ids_free(&p->ids);
    buf_deinit(&p->text);
}
