"""Ollama's routes, as far as clients ask for them (docs/ollama.md)."""
from sampling import SAMPLING, STOP
from shapes import ANY, BOOL, COUNT, INT, NUM, STR, arr, asked, const, either, enum, json_reply, null_or, obj, ref, route, whole

TAG = "Ollama"
MACHINE = {**{name: null_or(whole(-2**31)) for name in ("num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread")},
           **{name: null_or(BOOL) for name in ("numa", "low_vram", "f16_kv", "vocab_only", "logits_all", "use_mmap", "use_mlock", "embedding_only", "penalize_newline")}}
NOT_HERE = ("priority", "service_tier", "ignore_eos", "skip_special_tokens")
OPTIONS = obj({}, {**{k: null_or(v) for k, v in SAMPLING.items() if k not in NOT_HERE}, "num_predict": null_or(whole(-2)), "num_ctx": null_or(whole(0, 1 << 24)), "stop": null_or(STOP),
                   "tfs_z": null_or(enum(1)), **MACHINE}, more=True)
ASK = {"return_progress": BOOL, "model": STR, "stream": BOOL, "think": either(BOOL, enum("low", "medium", "high")), "options": OPTIONS, "keep_alive": either(STR, NUM), "format": const(""),
       "truncate": BOOL, "shift": BOOL, "top_logprobs": whole(0, 20), "logprobs": enum(False)}
TIME = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$"}
DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
DETAILS = obj({"parent_model": STR, "format": STR, "family": STR, "families": arr(STR), "parameter_size": STR, "quantization_level": STR})
LISTED = {"name": STR, "model": STR, "size": COUNT, "digest": DIGEST, "details": DETAILS}
DONE = {"done_reason": enum("stop", "length", "load", "unload"), "total_duration": COUNT, "load_duration": COUNT, "prompt_eval_count": COUNT, "prompt_eval_duration": COUNT, "eval_count": COUNT, "eval_duration": COUNT}
SAID = obj({"role": const("assistant"), "content": STR}, {"thinking": STR, "tool_calls": arr(obj({"function": obj({"name": STR, "arguments": {"type": "object"}}, {"index": COUNT})}, {"id": STR}))})

SCHEMAS = {
    "OllamaError": obj({"error": STR}),
    "OllamaChatRequest": asked({}, {**ASK, "messages": arr({"type": "object"}), "tools": arr({"type": "object"})}),
    "OllamaGenerateRequest": asked({}, {**ASK, "prompt": STR, "system": STR, "suffix": const(""), "template": const(""), "raw": BOOL, "images": arr(ANY, maxItems=0), "context": arr(ANY, maxItems=0)}),
    "OllamaChat": obj({"model": STR, "created_at": TIME, "message": SAID, "done": BOOL}, {**DONE, "prompt_progress": ref("Progress")}),
    "OllamaGenerated": obj({"model": STR, "created_at": TIME, "response": STR, "done": BOOL}, {**DONE, "thinking": STR, "prompt_progress": ref("Progress")}),
    "OllamaModels": obj({"models": arr(obj({**LISTED, "modified_at": TIME}))}),
    "OllamaRunning": obj({"models": arr(obj({**LISTED, "expires_at": TIME, "size_vram": COUNT, "context_length": COUNT}))}),
    "OllamaModel": obj({"modelfile": STR, "parameters": STR, "template": STR, "details": DETAILS, "modified_at": TIME,
                        "model_info": {"type": "object", "properties": {"general.architecture": STR, "general.parameter_count": COUNT},
                                       "required": ["general.architecture", "general.parameter_count"], "additionalProperties": COUNT},
                        "capabilities": arr(enum("completion", "tools", "thinking", "embedding"))}),
    "OllamaEmbedRequest": asked({"input": either(STR, arr(STR, minItems=1, maxItems=2048), arr(COUNT, minItems=1), arr(arr(COUNT, minItems=1), minItems=1, maxItems=2048))}, {"model": STR, "truncate": BOOL, "dimensions": INT, "options": {"type": "object"}, "keep_alive": either(STR, NUM)}),
    "OllamaEmbeddings": obj({"embeddings": arr(arr(NUM)), "model": STR, "total_duration": COUNT, "load_duration": COUNT, "prompt_eval_count": COUNT}),
    "OllamaEmbeddingRequest": asked({"prompt": STR}, {"model": STR, "truncate": BOOL, "dimensions": INT, "options": {"type": "object"}, "keep_alive": either(STR, NUM)}),
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
