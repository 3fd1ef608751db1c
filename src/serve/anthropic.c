/* Anthropic's endpoints: the parts that they are made of. */
#include "serve/anthropic.h"

#include "serve/anthropic_format.h"
#include "serve/anthropic_read.h"
#include "serve/endpoint.h"

static void make(prompt *p, const models *m, cairn_str body)
{
    prompt_make(p, m, anthropic_ask_read, body);
}

static void count(prompt *p, const models *m, cairn_str body)
{
    prompt_count(p, m, anthropic_count_read, body);
}

void anthropic_messages_serve(cairn_server *s, http_req *rq)
{
    static const endpoint messages = {.format = &anthropic_format, .make = make, .direct = true};

    endpoint_serve(s, rq, &messages);
}

void anthropic_count_serve(cairn_server *s, http_req *rq)
{
    static const endpoint counted = {.format = &anthropic_format, .make = count, .just_text = true};

    endpoint_serve(s, rq, &counted);
}
