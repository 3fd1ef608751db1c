/* An error's type follows from its HTTP status.  The shape has no place for the field at fault, so the
   message names it. */
#include "serve/anthropic_error.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "serve/error_type.h"
#include "serve/random.h"
#include "serve/sse.h"

static const char *type_of(int status)
{
    static const error_type types[] = {
        {401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
        {413, "request_too_large"},    {429, "rate_limit_error"}, {500, "api_error"},
        {503, "overloaded_error"},
    };

    return error_type_of(types, sizeof types / sizeof types[0], status);
}

static void write_error(json_writer *w, int status, cairn_str message, const char *request_id)
{
    json_w_obj(w);
    json_w_kstr(w, "type", STR_LIT("error"));
    json_w_key(w, "error");
    json_w_obj(w);
    json_w_kstr(w, "type", str_of(type_of(status)));
    json_w_kstr(w, "message", message);
    json_w_end_obj(w);
    if (request_id) json_w_kstr(w, "request_id", str_of(request_id));
    json_w_end_obj(w);
}

void anthropic_put_fail(void *out, int status, const char *code, cairn_str message, buf *frames)
{
    json_writer w = sse_open(frames, "error");

    (void)out;
    (void)code; /* this API knows types alone */
    write_error(&w, status, message, NULL);
    sse_close(frames);
}

void anthropic_refuse(http_req *rq, int status, const char *param, const char *code,
                      const char *message)
{
    char id[32], text[700];
    json_writer w;
    buf b;

    (void)code;
    random_name(id, sizeof id, "req_", 24);
    http_set_header(rq, "request-id", id);
    if (status == 429) http_set_header(rq, "Retry-After", "1");
    (void)snprintf(text, sizeof text, "%s%s%s", param && !strstr(message, param) ? param : "",
                   param && !strstr(message, param) ? ": " : "", message);
    buf_init(&b, MEM_SERVE);
    w = json_write(&b);
    write_error(&w, status, str_of(text), id);
    http_reply(rq, status, "application/json",
               buf_status(&b) == CAIRN_OK ? buf_view(&b) : STR_LIT("{}"));
    buf_deinit(&b);
}
