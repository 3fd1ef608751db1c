"""Pictures to a model that reads text alone: a 400 in the shape of the API that was asked, which names the place."""
import json

import pytest

PNG = "aGk="
OPENAI = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}}
FETCHED = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest"}}
INPUT = {"type": "input_image", "image_url": "data:image/png;base64," + PNG}
ANTHROPIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
BY_URL = {"type": "image", "source": {"type": "url", "url": "http://169.254.169.254/latest"}}


def said(*content):
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, *content]}]}


def tool_result(content):
    return {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
                         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [content]}]}]}


ASKS = [
    ("/v1/chat/completions", said(OPENAI), "messages[0].content[1]"),
    ("/v1/chat/completions", said(FETCHED), "messages[0].content[1]"),
    ("/apply-template", said(OPENAI), "messages[0].content[1]"),
    ("/v1/responses", {"input": [{"role": "user", "content": [INPUT]}]}, "input[0].content[0]"),
    ("/v1/responses/input_tokens", {"input": [{"role": "user", "content": [INPUT]}]}, "input[0].content[0]"),
    ("/v1/responses", {"input": [{"role": "user", "content": "x"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                                 {"type": "function_call_output", "call_id": "c", "output": [INPUT]}]}, "input[2].output[0]"),
    ("/v1/messages", {"max_tokens": 9, **said(ANTHROPIC)}, "messages.0.content.1"),
    ("/v1/messages", {"max_tokens": 9, **said(BY_URL)}, "messages.0.content.1"),
    ("/v1/messages", {"max_tokens": 9, **tool_result(ANTHROPIC)}, "messages.2.content.0.content.0"),
    ("/v1/messages/count_tokens", said(ANTHROPIC), "messages.0.content.1"),
    ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": [PNG]}]}, "messages[0].images"),
    ("/api/generate", {"prompt": "x", "images": [PNG]}, "images"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path, body, at", ASKS)
def test_refused_by_name(server, path, body, at, stream):
    status, _, reply = server.request("POST", path, dict(body, model="fake-model", stream=stream))
    reply = json.loads(reply)
    error = reply["error"]
    message = error if path.startswith("/api/") else error["message"]
    assert status == 400 and "`%s` is" % at in message and "the model reads text alone" in message, reply
    if path.startswith("/v1/messages"):
        assert reply["type"] == "error" and error["type"] == "invalid_request_error"
    elif not path.startswith("/api/"):
        assert error["param"] == at and error["code"] == "unsupported_parameter"


def test_models_say_so(server):
    assert [m["vision"] for m in json.loads(server.request("GET", "/v1/models")[2])["data"]] == [False]
    shown = json.loads(server.request("POST", "/api/show", {"model": "fake-model"})[2])
    assert "vision" not in shown["capabilities"]
