"""Anthropic's messages."""
from sampling import MODEL, SAMPLING
from shapes import ANY, BOOL, COUNT, INT, NULL, STR, arr, asked, const, either, enum, events, json_reply, null_or, obj, ref, route, whole

TAG = "Anthropic"
REASON = enum("end_turn", "max_tokens", "model_context_window_exceeded", "stop_sequence", "tool_use")
BLOCK = either(
    obj({"type": const("text"), "text": STR}),
    obj({"type": const("thinking"), "thinking": STR, "signature": STR}),
    obj({"type": const("tool_use"), "id": STR, "name": STR, "input": {"type": "object"}}))
ENDED = {"stop_reason": REASON, "stop_sequence": null_or(STR)}
MESSAGE = {"id": STR, "type": const("message"), "role": const("assistant"), "model": STR}
CACHE = {"cache_control": null_or(obj({"type": const("ephemeral")}, {"ttl": null_or(enum("5m", "1h"))}, more=True))}
TEXT_BLOCK = obj({"type": const("text"), "text": STR}, CACHE, more=True)
NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"}
TEXTS = either(STR, arr(TEXT_BLOCK, minItems=1))
ASK = {**MODEL, "system": either(STR, arr(TEXT_BLOCK)), 
       "tools": arr(obj({"name": NAME, "input_schema": {"type": "object"}}, {
           "type": null_or(const("custom")), "description": null_or(STR), **{name: null_or(BOOL) for name in ("strict", "defer_loading", "eager_input_streaming")},
           **{name: null_or(arr(ANY)) for name in ("allowed_callers", "input_examples")}, **CACHE}, more=True)),
       "tool_choice": obj({"type": enum("auto", "none")}, {"disable_parallel_tool_use": null_or(BOOL)}, more=True),
       "thinking": obj({"type": enum("enabled", "adaptive", "disabled")}, {"display": null_or(enum("summarized", "omitted"))}, more=True),
       "output_config": obj({}, {"effort": null_or(enum("low", "medium", "high", "xhigh", "max")), "format": NULL}, more=True),
       "metadata": obj({}, {"user_id": null_or(STR)}, more=True), "service_tier": enum("auto", "standard_only"), "inference_geo": STR, "cache_control": CACHE["cache_control"],
       "context_management": obj({}, {"edits": null_or(arr(ANY))}, more=True), "diagnostics": obj({}, {"previous_message_id": null_or(STR)}, more=True), "billing_policy": {"type": "object"}, "fallback_credit_token": STR, "speed": enum("standard")}
# What only a generation reads.
DRAWN = {**SAMPLING, **ASK, "stream": BOOL, "return_progress": BOOL, "stop_sequences": arr({"type": "string", "minLength": 1}, maxItems=16)}
ASKED = arr(obj({"role": enum("user", "assistant", "system"), "content": either(STR, arr(obj({"type": STR}, more=True), minItems=1))}, more=True), minItems=1)

SCHEMAS = {
    "AnthropicError": obj({"type": const("error"), "error": obj({"type": STR, "message": STR})}, {"request_id": STR}),
    "AnthropicUsage": obj({"input_tokens": COUNT, "cache_creation_input_tokens": COUNT, "cache_read_input_tokens": COUNT, "output_tokens": COUNT}),
    "MessageRequest": asked({"messages": ASKED, "max_tokens": whole(1)}, DRAWN),
    "CountRequest": asked({"messages": ASKED}, ASK),
    "Message": obj({**MESSAGE, **ENDED, "content": arr(BLOCK, minItems=1), "usage": ref("AnthropicUsage")}),
    "MessageEvent": either(
        obj({"type": const("message_start"), "message": obj({**MESSAGE, "content": arr(BLOCK, maxItems=0), "stop_reason": NULL, "stop_sequence": NULL, "usage": ref("AnthropicUsage")})}),
        obj({"type": const("ping")}, {"prompt_progress": ref("Progress")}),
        obj({"type": const("content_block_start"), "index": COUNT, "content_block": BLOCK}),
        obj({"type": const("content_block_delta"), "index": COUNT, "delta": either(
            obj({"type": const("text_delta"), "text": STR}), obj({"type": const("thinking_delta"), "thinking": STR}),
            obj({"type": const("signature_delta"), "signature": STR}), obj({"type": const("input_json_delta"), "partial_json": STR}))}),
        obj({"type": const("content_block_stop"), "index": COUNT}),
        obj({"type": const("message_delta"), "delta": obj(ENDED), "usage": ref("AnthropicUsage")}),
        obj({"type": const("message_stop")})),
    "Counted": obj({"input_tokens": COUNT}),
}

ID = {"request-id": STR}
message = events(json_reply(ref("Message"), headers=ID), ref("MessageEvent"), ref("AnthropicError"), "message_stop")
ALL = (400, 401, 404, 405, 408, 413, 429, 500, 503)

ROUTES = [
    route("post", "/v1/messages", "A conversation's next message", {200: message}, body=ref("MessageRequest"), tag=TAG, fails=ALL, error="AnthropicError"),
    route("post", "/v1/messages/count_tokens", "How many tokens a request's prompt has", {200: json_reply(ref("Counted"), headers=ID)}, body=ref("CountRequest"), tag=TAG,
          fails=ALL, error="AnthropicError"),
]
