"""What the server says of itself, and the page."""
from shapes import BOOL, COUNT, INT, NUM, STR, ANY, arr, const, either, enum, json_reply, null_or, obj, ref, route, says

TAG = "server"
NO_BODY = (401, 405, 408, 413, 503)
STATE = enum("unloaded", "loading", "loaded", "draining", "unloading", "failed")

SHAPES = {
    "batch": obj(dict({name: COUNT for name in ("configured", "active_rows", "pending_rows", "submitted_rows", "kv_bytes", "kv_budget_bytes")},
                      batched=BOOL, mode=enum("batch", "serial"))),
    "prompt_cache": obj({name: COUNT for name in ("entries", "bytes", "max_bytes", "hits", "misses")}),
    "kv_quant": obj({"mode": STR, "layers": COUNT, "attention": obj({"global": COUNT, "sliding_window": COUNT})}),
    "admission": obj({name: COUNT for name in ("max_safe_context", "memory_budget_bytes", "usable_bytes", "weights_bytes")}),
    "ssd_cache": null_or(obj(dict({name: COUNT for name in (
        "entries", "bytes", "max_bytes", "restores", "spills", "failed_spills", "dropped_spills", "evictions", "pending_spill_bytes")}, read_only=BOOL))),
}

SCHEMAS = {
    "Error": obj({"error": obj({"message": STR, "type": STR, "param": null_or(STR), "code": null_or(STR)})}),
    "Health": obj({"status": const("ok")}),
    "EngineStats": obj(dict(
        {name: COUNT for name in (
            "active_rows", "pending_rows", "configured", "context_window", "submitted_rows", "cancelled_rows", "failed_rows", "prompt_tokens",
            "generated_tokens", "steps", "kv_bytes", "kv_budget_bytes", "cached_tokens", "prefix_bytes", "prefix_budget_bytes", "disk_bytes",
            "disk_entries", "checkpoint_files", "checkpoint_bytes", "checkpoints_written", "checkpoints_failed", "checkpoints_refused",
            "resumed_requests", "replayed_tokens", "weights_bytes", "scratch_bytes")},
        id=STR, disk_read_only=BOOL, kv_codec=STR, busy_seconds=NUM, memory=ref("Budget"), plan=ref("Plan"), **SHAPES), description="Counters of one model's engine, since it was opened; bytes as they are now"),
    "Budget": obj({name: COUNT for name in (
        "budget_bytes", "reserved_bytes", "weights_bytes", "scratch_bytes", "cache_bytes", "table_bytes", "request_bytes", "request_used_bytes",
        "server_bytes", "other_bytes")}, description="One budget, and who has how much of it"),
    "Plan": obj(dict({name: STR for name in ("method", "cache_layout", "kv_codec", "program", "why_not_faster")}, program_rows=COUNT),
                description="How a request that asks for nothing is computed"),
    "Stats": obj({"server": obj({"owner": const("serve"), "model": says("The one that answers where none is named; where none does, the first", STR), "version": STR, "started_at": INT, "uptime_seconds": INT, "connections": COUNT, "requests": COUNT, "pending_prompts": COUNT}),
                  "response_store": obj({"entries": COUNT, "bytes": COUNT, "max_bytes": COUNT, "ttl_ms": COUNT}), "models": arr(ref("EngineStats")),
                  "known_models": arr(ref("KnownModel")), **{name: says("Of the model that answers where none is named; null while it is not loaded", null_or(shape)) for name, shape in SHAPES.items()}}),
    "KnownModel": obj({"id": STR, "state": STATE, "pinned": says("It is not unloaded for another, nor by time", BOOL), "uses": says("References of requests", COUNT),
                       "bytes": says("What it takes while it is loaded; 0: it has what there is", COUNT), "loads": COUNT, "failed_loads": COUNT},
                      description="A model, loaded or not, and what was loaded on demand since the server started"),
    "FitRow": obj(dict({name: COUNT for name in ("context_tokens", "parallel_requests", "needed_bytes", "cache_bytes", "table_bytes", "scratch_bytes", "request_bytes")},
                       fits=BOOL), description="What so many requests of so long a context would take, without prefixes"),
    "Fit": obj({"machine": obj({"cores": COUNT, "total_bytes": COUNT, "available_bytes": COUNT}), "models": arr(obj(dict({name: COUNT for name in (
        "model_context_tokens", "budget_bytes", "free_bytes", "total_bytes", "weights_bytes", "other_bytes", "decode_read_bytes", "max_context_tokens")},
        id=STR, cache_codec=STR, isa=STR, rows=arr(ref("FitRow")), prediction=says("Of one request of up to 8,192 tokens: bandwidth over what is read for a token is its speed", null_or(obj({
            "context_tokens": COUNT, "needed_bytes": COUNT, "decode_read_bytes": COUNT, "fits": BOOL}))))))}, description="The table of `cairn fit` for the models that are served"),
    "Flush": obj({"models": arr(obj(dict({name: COUNT for name in (
        "durable", "pending", "dropped", "failed", "longest_tokens", "checkpoints", "checkpoints_pending", "checkpoints_failed", "cleanups_failed")}, id=STR)))}),
    "Drain": obj({"draining": const(True), "requests": COUNT, "prompts": COUNT}),
    "Model": obj({"id": STR, "object": const("model"), "created": INT, "owned_by": STR, "context_window": COUNT, "family": STR, "quantization": STR,
                  "parameters": COUNT, "reasoning": says("Its template knows of thoughts", BOOL), "vision": BOOL, "embeds": says("It only embeds: it answers nothing", BOOL),
                  "state": STATE, "aliases": arr(STR)}),
    "Service": obj({"name": const("cairn"), "version": STR, "model": says("The one that answers where none is named; where none does, the first", STR), "endpoints": arr(says("METHOD PATH", STR), minItems=1)}),
    "AnthropicModel": obj({"type": const("model"), "id": STR, "display_name": STR, "created_at": STR, "lifecycle": const("active"), "max_input_tokens": COUNT,
                           "max_tokens": COUNT}, description="Of a request with the header anthropic-version"),
    "AnthropicModels": obj({"data": arr(ref("AnthropicModel"), maxItems=1000), "has_more": BOOL, "first_id": null_or(STR), "last_id": null_or(STR)}),
    "Models": obj({"object": const("list"), "data": arr(ref("Model"))}),
}


def page(types, text):
    headers = {name: {"required": True, "schema": {"type": "string"}} for name in (
        "ETag", "Cache-Control", "Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy")}
    return {200: {"description": text, "headers": headers, "content": {t: {"schema": {"type": "string"}} for t in types}},
            304: {"description": "It is what If-None-Match names", "headers": headers}}


flush = json_reply(ref("Flush"), "All that is known is on disk")
not_flushed = {"description": "Something is not on disk, or the server ends",
               "content": {"application/json": {"schema": {"anyOf": [ref("Flush"), ref("Error")]}}}}

ROUTES = [
    route("get", "/", "The page: chat, status, sampler", page(["text/html; charset=utf-8"], "The page"), tag=TAG, fails=(405, 408, 413, 503), open_to_all=True),
    route("get", "/ui/{file}", "A file of the page", page(["text/css; charset=utf-8", "text/html; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml"], "The file"),
          tag=TAG, fails=(404, 405, 408, 413, 503), params=[("file", "Its name")], open_to_all=True),
    *(route("get", path, "Leads to a part of the page", {302: {"description": "There", "headers": {"Location": {"required": True, "schema": STR}},
                                                            "content": {"text/plain": {"schema": const("")}}}}, tag=TAG, fails=(405, 408, 413, 503), open_to_all=True)
      for path in ("/chat", "/status", "/curves")),
    route("get", "/v1", "Who answers here, and what it may be asked", {200: json_reply(ref("Service"))}, tag=TAG, fails=NO_BODY),
    route("get", "/health", "Whether the server answers", {200: json_reply(ref("Health"))}, tag=TAG, fails=(405, 408, 413, 503), open_to_all=True),
    route("get", "/stats", "Counters as JSON", {200: json_reply(ref("Stats"))}, tag=TAG, fails=NO_BODY),
    route("get", "/metrics", "Counters for Prometheus", {200: {"description": "Prometheus' text format", "content": {"text/plain; version=0.0.4; charset=utf-8": {"schema": STR}}}},
          tag=TAG, fails=NO_BODY),
    route("get", "/fit", "What models take by context and parallel requests", {200: json_reply(ref("Fit"))}, tag=TAG, fails=NO_BODY),
    route("get", "/v1/models", "The models", {200: json_reply(either(ref("Models"), ref("AnthropicModels"))), 400: json_reply(ref("AnthropicError"), "A page that there is none of")}, tag=TAG, fails=NO_BODY),
    route("get", "/v1/models/{model}", "One model", {200: json_reply(either(ref("Model"), ref("AnthropicModel"))), 404: json_reply(either(ref("Error"), ref("AnthropicError")), "There is none such")}, tag=TAG, fails=(401, 404, 405, 408, 413, 503), params=[("model", "Its id; slashes may stand as they are")]),
    route("post", "/admin/cache/flush", "Writes what is known to disk, and waits for it", {200: flush, 503: not_flushed}, body=ANY, need_body=False, tag=TAG, fails=(404, 405, 408, 413), local=True),
    route("post", "/admin/drain", "Ends the server as SIGTERM does", {200: json_reply(ref("Drain"))}, body=ANY, need_body=False, tag=TAG, fails=(404, 405, 408, 413, 503), local=True),
]
