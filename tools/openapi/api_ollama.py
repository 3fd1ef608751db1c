"""Ollama's routes, as far as clients ask for them (docs/ollama.md)."""
from shapes import BOOL, COUNT, INT, NUM, STR, arr, asked, const, either, enum, json_reply, null_or, obj, ref, route

TAG = "Ollama"
ASK = {"model": STR, "stream": BOOL, "think": either(BOOL, STR), "options": {"type": "object"}, "keep_alive": either(STR, NUM), "format": either(STR, {"type": "object"})}
TIME = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"}
DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
DETAILS = obj({"parent_model": STR, "format": STR, "family": STR, "families": arr(STR), "parameter_size": STR, "quantization_level": STR})
LISTED = {"name": STR, "model": STR, "size": COUNT, "digest": DIGEST, "details": DETAILS}
DONE = {"done_reason": enum("stop", "length", "load", "unload"), "total_duration": COUNT, "load_duration": COUNT, "prompt_eval_count": COUNT, "prompt_eval_duration": COUNT, "eval_count": COUNT, "eval_duration": COUNT}
SAID = obj({"role": const("assistant"), "content": STR}, {"thinking": STR, "tool_calls": arr(obj({"function": obj({"name": STR, "arguments": {"type": "object"}}, {"index": COUNT})}, {"id": STR}))})

SCHEMAS = {
    "OllamaError": obj({"error": STR}),
    "OllamaChatRequest": asked({"model": STR}, {**{k: v for k, v in ASK.items() if k != "model"}, "messages": arr({"type": "object"}), "tools": arr({"type": "object"})}),
    "OllamaGenerateRequest": asked({"model": STR}, {**{k: v for k, v in ASK.items() if k != "model"}, "prompt": STR, "system": STR, "suffix": STR, "raw": BOOL}),
    "OllamaChat": obj({"model": STR, "created_at": TIME, "message": SAID, "done": BOOL}, {**DONE}),
    "OllamaGenerated": obj({"model": STR, "created_at": TIME, "response": STR, "done": BOOL}, {**DONE, "thinking": STR}),
    "OllamaModels": obj({"models": arr(obj({**LISTED, "modified_at": TIME}))}),
    "OllamaRunning": obj({"models": arr(obj({**LISTED, "expires_at": TIME, "size_vram": COUNT, "context_length": COUNT}))}),
    "OllamaModel": obj({"modelfile": STR, "parameters": STR, "template": STR, "details": DETAILS, "modified_at": TIME,
                        "model_info": {"type": "object", "properties": {"general.architecture": STR, "general.parameter_count": COUNT},
                                       "required": ["general.architecture", "general.parameter_count"], "additionalProperties": COUNT},
                        "capabilities": arr(enum("completion", "tools", "thinking", "embedding"))}),
    "OllamaEmbedRequest": asked({"model": STR}, {"input": either(STR, arr(STR)), "truncate": BOOL, "dimensions": INT, "options": {"type": "object"}, "keep_alive": either(STR, NUM)}),
    "OllamaEmbeddings": obj({"embeddings": arr(arr(NUM)), "model": STR, "total_duration": COUNT, "load_duration": COUNT, "prompt_eval_count": COUNT}),
    "OllamaEmbeddingRequest": asked({"model": STR}, {"prompt": STR, "options": {"type": "object"}}),
    "OllamaEmbedding": obj({"embedding": arr(NUM)}),
}

ALL = (400, 401, 404, 405, 408, 413, 429, 500, 503)
LOOK = (401, 405, 408, 413, 503)


def lines(schema):
    """One object, or lines of them."""
    out = json_reply(schema)
    out["content"]["application/x-ndjson"] = {"schema": STR, "x-line": either(schema, ref("OllamaError"))}
    return out


def path(method, name, summary, reply, **more):
    return route(method, "/api/" + name, summary, {200: reply}, tag=TAG, error="OllamaError", **more)


ROUTES = [
    path("get", "version", "The protocol's version", json_reply(obj({"version": STR, "cairn": STR})), fails=LOOK),
    path("get", "tags", "The models", json_reply(ref("OllamaModels")), fails=LOOK),
    path("get", "ps", "The models that are open", json_reply(ref("OllamaRunning")), fails=LOOK),
    path("post", "show", "One model", json_reply(ref("OllamaModel")), body=asked({}, {"model": STR, "name": STR, "verbose": BOOL}), fails=ALL),
    path("post", "chat", "A chat's next message", lines(ref("OllamaChat")), body=ref("OllamaChatRequest"), fails=ALL),
    path("post", "generate", "An answer to a text", lines(ref("OllamaGenerated")), body=ref("OllamaGenerateRequest"), fails=ALL),
    path("post", "embed", "Vectors of texts", json_reply(ref("OllamaEmbeddings")), body=ref("OllamaEmbedRequest"), fails=ALL),
    path("post", "embeddings", "The vector of a text", json_reply(ref("OllamaEmbedding")), body=ref("OllamaEmbeddingRequest"), fails=ALL),
]
