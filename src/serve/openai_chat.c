/* OpenAI's chat completions, and the prompt that one would be given. */
#include "serve/openai_chat.h"

#include "serve/endpoint.h"
#include "serve/openai_chat_format.h"

static void make(prompt *p, const models *m, cairn_str body)
{
    prompt_make(p, m, chat_ask_read, body);
}

static void render(prompt *p, const models *m, cairn_str body)
{
    prompt_render(p, m, chat_ask_read, body);
}

void openai_chat_serve(cairn_server *s, http_req *rq)
{
    static const endpoint chat = {.format = &openai_chat_format, .make = make, .direct = true};

    endpoint_serve(s, rq, &chat);
}

void openai_chat_render(cairn_server *s, http_req *rq)
{
    static const endpoint template = {
        .format = &openai_chat_format, .make = render, .just_text = true};

    endpoint_serve(s, rq, &template);
}
