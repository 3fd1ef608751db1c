/* Shapes of the Responses API.  An item has its text in one event after the other and then whole in three: the
   table says what these are called for each kind. */
#include "serve/responses_wire.h"

#include "base/clock.h"
#include "base/str.h"
#include "serve/sse.h"
#include "serve/text_of.h"

const item_words responses_words[] = {
    [ITEM_NONE] = {0},
    [ITEM_THOUGHT] = {"rs", "reasoning", "reasoning_text", "response.content_part.added",
                      "response.content_part.done", "content_index",
                      "response.reasoning_text.delta", "response.reasoning_text.done", "text"},
    [ITEM_SUMMARY] = {"rs", "reasoning", "summary_text", "response.reasoning_summary_part.added",
                      "response.reasoning_summary_part.done", "summary_index",
                      "response.reasoning_summary_text.delta",
                      "response.reasoning_summary_text.done", "text"},
    [ITEM_MESSAGE] = {"msg", "message", "output_text", "response.content_part.added",
                      "response.content_part.done", "content_index", "response.output_text.delta",
                      "response.output_text.done", "text"},
    [ITEM_FUNCTION] = {"fc", "function_call", NULL, NULL, NULL, NULL,
                       "response.function_call_arguments.delta",
                       "response.function_call_arguments.done", "arguments"},
    [ITEM_CUSTOM] = {"ctc", "custom_tool_call", NULL, NULL, NULL, NULL,
                     "response.custom_tool_call_input.delta",
                     "response.custom_tool_call_input.done", "input"},
};

static void write_usage(json_writer *w, const answer_usage *u)
{
    json_w_key(w, "usage");
    if (!u) {
        json_w_null(w);
        return;
    }
    json_w_obj(w);
    json_w_kint(w, "input_tokens", u->n_prompt);
    json_w_key(w, "input_tokens_details");
    json_w_obj(w);
    json_w_kint(w, "cached_tokens", u->n_cached);
    json_w_kint(w, "cache_write_tokens", 0); /* nobody pays for them */
    json_w_end_obj(w);
    json_w_kint(w, "output_tokens", u->n_generated);
    json_w_key(w, "output_tokens_details");
    json_w_obj(w);
    json_w_kint(w, "reasoning_tokens", u->n_thought);
    json_w_end_obj(w);
    json_w_kint(w, "total_tokens", (int64_t)u->n_prompt + u->n_generated);
    json_w_end_obj(w);
}

static void write_null(json_writer *w, const char *key)
{
    json_w_key(w, key);
    json_w_null(w);
}

static void write_error(json_writer *w, cairn_str message)
{
    json_w_key(w, "error");
    if (!message.ptr) {
        json_w_null(w);
        return;
    }
    json_w_obj(w);
    json_w_kstr(w, "code", STR_LIT("server_error"));
    json_w_kstr(w, "message", message);
    json_w_end_obj(w);
}

void responses_write(json_writer *w, const response_out *o, const char *status,
                     const answer_usage *u, cairn_str failed)
{
    const bool completed = strcmp(status, "completed") == 0;

    json_w_obj(w);
    json_w_kstr(w, "id", str_of(o->id));
    json_w_kstr(w, "object", STR_LIT("response"));
    json_w_kint(w, "created_at", o->created);
    json_w_kstr(w, "status", str_of(status));
    if (completed)
        json_w_kint(w, "completed_at", clock_unix_s());
    else
        write_null(w, "completed_at");
    write_error(w, failed);
    json_w_key(w, "incomplete_details");
    if (strcmp(status, "incomplete") == 0)
        json_w_raw(w, STR_LIT("{\"reason\":\"max_output_tokens\"}"));
    else
        json_w_null(w);
    json_w_kstr(w, "model", str_of(o->model));
    json_w_key(w, "output");
    json_w_arr(w);
    if (o->output.len) json_w_raw(w, buf_view(&o->output));
    json_w_end_arr(w);
    json_w_raw(w, buf_view(&o->ask->echo));
    write_usage(w, u);
    json_w_end_obj(w);
}

static json_writer open_event(response_out *o, const char *type, buf *frames)
{
    json_writer w = sse_open(frames, type);

    json_w_obj(&w);
    json_w_kstr(&w, "type", str_of(type));
    json_w_kint(&w, "sequence_number", o->sequence++);
    return w;
}

static void close_event(json_writer *w, buf *frames)
{
    json_w_end_obj(w);
    sse_close(frames);
}

void responses_put(response_out *o, const char *event, cairn_str response, buf *frames)
{
    json_writer w = open_event(o, event, frames);

    json_w_key(&w, "response");
    json_w_raw(&w, response);
    close_event(&w, frames);
}

void responses_put_error(const char *code, cairn_str message, buf *frames)
{
    json_writer w = sse_open(frames, "error");

    json_w_obj(&w);
    json_w_kstr(&w, "type", STR_LIT("error"));
    json_w_kint(&w, "sequence_number", 0);
    json_w_kstr(&w, "code", str_of(code ? code : "server_error"));
    json_w_kstr(&w, "message", message);
    json_w_key(&w, "param");
    json_w_null(&w);
    json_w_end_obj(&w);
    sse_close(frames);
}

static void write_list(json_writer *w, const char *key, const buf *elements)
{
    json_w_key(w, key);
    json_w_arr(w);
    if (elements && elements->len) json_w_raw(w, buf_view(elements));
    json_w_end_arr(w);
}

/* The part of the open item, with its text or, as it begins, without. */
static void write_part(json_writer *w, const response_out *o, bool whole)
{
    json_w_obj(w);
    json_w_kstr(w, "type", str_of(responses_words[o->open].part));
    json_w_kstr(w, "text", whole ? text_of(&o->said) : STR_LIT(""));
    if (o->open == ITEM_MESSAGE) {
        write_list(w, "annotations", NULL);
        write_list(w, "logprobs", whole ? &o->logprobs_of_item : NULL);
    }
    json_w_end_obj(w);
}

/* An array of the one part. */
static void write_parts(json_writer *w, const response_out *o, const char *key, bool whole)
{
    json_w_key(w, key);
    json_w_arr(w);
    if (whole) write_part(w, o, true);
    json_w_end_arr(w);
}

static void write_call(json_writer *w, const response_out *o, bool whole)
{
    const responses_tool *t = o->tool;

    json_w_kstr(w, "call_id", text_of(&o->call_id));
    json_w_kstr(w, "name", t ? t->name : text_of(&o->call_name));
    if (t && t->space.len) json_w_kstr(w, "namespace", t->space);
    json_w_kstr(w, responses_words[o->open].key, whole ? text_of(&o->said) : STR_LIT(""));
}

void responses_write_item(json_writer *w, const response_out *o, const char *status, bool whole)
{
    json_w_obj(w);
    json_w_kstr(w, "id", str_of(o->item));
    json_w_kstr(w, "type", str_of(responses_words[o->open].type));
    json_w_kstr(w, "status", str_of(status));
    switch (o->open) {
    case ITEM_NONE:
        break;
    case ITEM_THOUGHT:
        write_list(w, "summary", NULL);
        write_parts(w, o, "content", whole);
        break;
    case ITEM_SUMMARY:
        write_parts(w, o, "summary", whole);
        break;
    case ITEM_MESSAGE:
        json_w_kstr(w, "role", STR_LIT("assistant"));
        write_parts(w, o, "content", whole);
        break;
    case ITEM_FUNCTION:
    case ITEM_CUSTOM:
        write_call(w, o, whole);
        break;
    }
    json_w_end_obj(w);
}

static void put_item(response_out *o, const char *event, const char *status, bool whole,
                     buf *frames)
{
    json_writer w = open_event(o, event, frames);

    json_w_kint(&w, "output_index", o->index);
    json_w_key(&w, "item");
    responses_write_item(&w, o, status, whole);
    close_event(&w, frames);
}

/* An event about the open item, its part included where it has one. */
static json_writer open_item_event(response_out *o, const char *event, buf *frames)
{
    json_writer w = open_event(o, event, frames);

    json_w_kstr(&w, "item_id", str_of(o->item));
    json_w_kint(&w, "output_index", o->index);
    if (responses_words[o->open].part_index)
        json_w_kint(&w, responses_words[o->open].part_index, 0);
    return w;
}

static void put_part(response_out *o, const char *event, bool whole, buf *frames)
{
    json_writer w;

    if (!event) return;
    w = open_item_event(o, event, frames);
    json_w_key(&w, "part");
    write_part(&w, o, whole);
    close_event(&w, frames);
}

static void put_done(response_out *o, buf *frames)
{
    json_writer w = open_item_event(o, responses_words[o->open].done, frames);

    json_w_kstr(&w, responses_words[o->open].key, text_of(&o->said));
    if (o->open == ITEM_MESSAGE) write_list(&w, "logprobs", &o->logprobs_of_item);
    close_event(&w, frames);
}

void responses_put_added(response_out *o, buf *frames)
{
    put_item(o, "response.output_item.added", "in_progress", false, frames);
    put_part(o, responses_words[o->open].part_added, false, frames);
}

void responses_put_delta(response_out *o, cairn_str text, buf *frames)
{
    json_writer w = open_item_event(o, responses_words[o->open].delta, frames);

    json_w_kstr(&w, "delta", text);
    if (o->open == ITEM_MESSAGE) write_list(&w, "logprobs", &o->new_logprobs);
    close_event(&w, frames);
}

void responses_put_done(response_out *o, const char *status, buf *frames)
{
    put_done(o, frames);
    put_part(o, responses_words[o->open].part_done, true, frames);
    put_item(o, "response.output_item.done", status, true, frames);
}
