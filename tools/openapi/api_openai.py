"""OpenAI's chat completions, completions and embeddings."""
from sampling import EFFORT, KWARGS, MODEL, N, OPENAI, SAMPLING, STOP, STREAM, VERBOSITY
from shapes import ANY, BOOL, COUNT, INT, NULL, NUM, STR, arr, asked, between, const, either, enum, events, json_reply, null_or, obj, ref, route, whole

TAG = "OpenAI"
TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
IDS = arr(whole(0), minItems=1)
TIER = enum("default", "flex", "priority")
FINISH = enum("stop", "length", "tool_calls")


def head(kind):
    return {"id": STR, "object": const(kind), "created": INT, "model": STR, "system_fingerprint": STR}


def piece(more=None):
    return obj({"token": STR, "logprob": NUM, "bytes": arr(whole(0, 255)), **(more or {})})


CALL = either(obj({"id": STR, "type": const("function"), "function": obj({"name": STR, "arguments": STR})}),
              obj({"id": STR, "type": const("custom"), "custom": obj({"name": STR, "input": STR})}))
CALL_DELTA = either(obj({"index": COUNT, "function": obj({"arguments": STR}, {"name": STR})}, {"id": STR, "type": const("function")}),
                    obj({"index": COUNT, "custom": obj({"input": STR}, {"name": STR})}, {"id": STR, "type": const("custom")}))
FUNCTION_TOOL = obj({"type": const("function"), "function": obj({"name": NAME}, {"description": null_or(STR), "parameters": null_or({"type": "object"}), "strict": null_or(BOOL)}, more=True)}, more=True)
CUSTOM_FORMAT = either(obj({"type": const("text")}, more=True), obj({"type": const("grammar"), "grammar": obj({"syntax": enum("lark", "regex"), "definition": STR}, more=True)}, more=True))
CUSTOM_TOOL = obj({"type": const("custom"), "custom": obj({"name": NAME}, {"description": null_or(STR), "format": null_or(CUSTOM_FORMAT)}, more=True)}, more=True)
OWN_TOOLS = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "file_search", "computer", "computer_use", "computer_use_preview",
             "code_interpreter", "programmatic_tool_calling", "image_generation", "mcp", "tool_search", "local_shell", "shell", "apply_patch")
PART = obj({"type": const("text"), "text": STR}, more=True)
CALLED = either(obj({"function": obj({"name": TEXT}, {"arguments": null_or(either(STR, {"type": "object"}))}, more=True)}, {"id": null_or(STR), "type": null_or(const("function"))}, more=True),
                obj({"type": const("custom"), "custom": obj({"name": TEXT, "input": STR}, more=True)}, {"id": null_or(STR)}, more=True))
SAID = {name: null_or(STR) for name in ("name", "refusal", "reasoning_content", "reasoning")}
CONTENT = either(STR, arr(PART, minItems=1))

SCHEMAS = {
    "Usage": obj({"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT, "prompt_tokens_details": obj({"cached_tokens": COUNT}), "completion_tokens_details": obj({"reasoning_tokens": COUNT})}),
    "TokenLogprob": piece({"top_logprobs": arr(piece())}),
    "Logprobs": obj({"content": arr(ref("TokenLogprob")), "refusal": NULL}),
    "ChatMessage": either(
        obj({"role": enum("system", "developer", "user"), "content": CONTENT}, {"name": null_or(STR)}, more=True),
        obj({"role": const("assistant"), "content": CONTENT}, {"tool_calls": null_or(arr(CALLED)), **SAID}, more=True),
        obj({"role": const("assistant"), "tool_calls": arr(CALLED, minItems=1)}, SAID, more=True),
        obj({"role": const("tool"), "content": CONTENT, "tool_call_id": TEXT}, more=True)),
    "ChatRequest": asked({"messages": arr(ref("ChatMessage"), minItems=1)}, {
        **MODEL, **SAMPLING, **STREAM, "return_progress": BOOL, "stop": STOP, "n": N, "max_tokens": whole(1), "max_completion_tokens": whole(1), "logprobs": BOOL,
        "top_logprobs": whole(0, 20), "tools": arr(either(FUNCTION_TOOL, CUSTOM_TOOL, obj({"type": enum(*OWN_TOOLS)}, more=True))), "tool_choice": either(enum("auto", "none"), obj({
            "type": const("allowed_tools"), "allowed_tools": obj({"mode": const("auto"), "tools": arr(ANY)}, more=True)}, more=True)), "parallel_tool_calls": BOOL, "reasoning_effort": EFFORT,
        "thinking_budget_tokens": whole(-1), "reasoning_budget_tokens": whole(-1), "chat_template_kwargs": KWARGS, "add_generation_prompt": BOOL, "verbosity": VERBOSITY,
        "prediction": obj({"type": const("content"), "content": either(STR, arr(ANY))}, more=True), **OPENAI}),
    "ChatCompletion": obj({**head("chat.completion"), "service_tier": TIER, "usage": ref("Usage"), "choices": arr(obj({
        "index": COUNT, "logprobs": null_or(ref("Logprobs")), "finish_reason": FINISH,
        "message": obj({"role": const("assistant"), "content": null_or(STR), "refusal": NULL},
                       {"reasoning_content": STR, "reasoning": STR, "tool_calls": arr(CALL, minItems=1)})}), minItems=1)}),
    "ChatChunk": obj({**head("chat.completion.chunk"), "service_tier": TIER, "choices": arr(obj({
        "index": COUNT, "logprobs": null_or(ref("Logprobs")), "finish_reason": null_or(FINISH),
        "delta": obj({}, {"role": const("assistant"), "content": STR, "refusal": NULL, "reasoning_content": STR, "reasoning": STR,
                          "tool_calls": arr(CALL_DELTA, minItems=1)})}),
        maxItems=1)}, {"usage": null_or(ref("Usage")), "prompt_progress": ref("Progress")}),
    "Progress": obj({"total": COUNT, "cache": COUNT, "processed": COUNT, "time_ms": COUNT}),
    "Rendered": obj({"prompt": STR}),
    "CompletionRequest": asked({"prompt": either(TEXT, IDS, arr(TEXT, minItems=1), arr(IDS, minItems=1))}, {
        **MODEL, **SAMPLING, **STREAM, "return_progress": BOOL, "stop": STOP, "n": N, "best_of": N, "max_tokens": whole(0), "echo": BOOL, "logprobs": whole(0, 20), "suffix": const(""), "user": STR}),
    "CompletionChoice": obj({"text": STR, "index": COUNT, "finish_reason": null_or(enum("stop", "length")), "logprobs": null_or(obj({
        "tokens": arr(STR), "token_logprobs": arr(null_or(NUM)), "top_logprobs": arr(null_or({"type": "object", "additionalProperties": NUM})), "text_offset": arr(COUNT)}))}),
    "Completion": obj({**head("text_completion"), "usage": ref("Usage"), "choices": arr(ref("CompletionChoice"), minItems=1)}),
    "CompletionChunk": obj({**head("text_completion"), "choices": arr(ref("CompletionChoice"), maxItems=1)}, {"usage": null_or(ref("Usage")), "prompt_progress": ref("Progress")}),
    "EmbeddingRequest": asked({"input": either(STR, IDS, arr(STR, minItems=1, maxItems=2048), arr(IDS, minItems=1, maxItems=2048))}, {
        **MODEL, "dimensions": whole(1), "encoding_format": enum("float", "base64"), "prompt_name": STR, "prompt": STR, "truncate": BOOL, "user": STR}),
    "Embeddings": obj({"object": const("list"), "model": STR, "usage": obj({"prompt_tokens": COUNT, "total_tokens": COUNT}),
                       "data": arr(obj({"object": const("embedding"), "index": COUNT, "embedding": either(arr(NUM), STR)}))}),
}

ALL = (400, 401, 404, 405, 408, 413, 429, 500, 503)
chat = events(json_reply(ref("ChatCompletion")), ref("ChatChunk"), ref("Error"), "[DONE]")
text = events(json_reply(ref("Completion")), ref("CompletionChunk"), ref("Error"), "[DONE]")

ROUTES = [
    route("post", "/v1/chat/completions", "A chat's next message", {200: chat}, body=ref("ChatRequest"), tag=TAG, fails=ALL),
    route("post", "/apply-template", "What the model would be given of a chat", {200: json_reply(ref("Rendered"))}, body=ref("ChatRequest"), tag=TAG, fails=ALL),
    route("post", "/v1/completions", "A text that goes on", {200: text}, body=ref("CompletionRequest"), tag=TAG, fails=ALL),
    route("post", "/v1/embeddings", "Vectors of texts", {200: json_reply(ref("Embeddings"))}, body=ref("EmbeddingRequest"), tag=TAG, fails=ALL),
]
