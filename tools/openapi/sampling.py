"""Fields that every API's generating routes have."""
from shapes import BOOL, STR, arr, between, either, enum, null_or, obj, whole

SAMPLING = {
    "temperature": between(0, 2), "top_p": between(0, 1), "top_k": whole(-1), "min_p": between(0, 1), "typical_p": between(0, 1),
    "xtc_probability": between(0, 1), "xtc_threshold": between(0, 1), "mirostat": whole(0, 2), "mirostat_tau": between(0, 100),
    "mirostat_eta": between(0, 10), "dry_multiplier": between(0, 100), "dry_base": between(1, 100), "dry_allowed_length": whole(0, 10000),
    "dry_penalty_last_n": whole(-1), "dry_sequence_breakers": arr({"type": "string", "minLength": 1, "maxLength": 64}, maxItems=32),
    "repetition_penalty": between(0.01, 10), "repeat_penalty": between(0.01, 10), "repetition_context_size": whole(0), "repeat_last_n": whole(-1),
    "presence_penalty": between(-2, 2), "presence_context_size": whole(0), "frequency_penalty": between(-2, 2), "frequency_context_size": whole(0),
    "seed": {"type": "integer", "minimum": -2**63, "maximum": 2**64 - 1}, "logit_bias": {"type": "object", "propertyNames": {"pattern": "^[0-9]{1,9}$"}, "additionalProperties": between(-100, 100), "maxProperties": 4096},
    "priority": whole(-8, 8), "service_tier": enum("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"), "ignore_eos": BOOL, "skip_special_tokens": BOOL,
}
STOP = either({"type": "string", "minLength": 1}, arr({"type": "string", "minLength": 1}, maxItems=16))
STREAM = {"stream": BOOL, "stream_options": {"type": "object", "properties": {"include_usage": null_or(BOOL), "include_obfuscation": null_or(enum(False))}}}
MODEL = {"model": STR}
EFFORT = enum("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITY = enum("low", "medium", "high")
# What OpenAI's APIs have and nobody here acts on.
OPENAI = {
    "metadata": {"type": "object", "maxProperties": 16, "propertyNames": {"maxLength": 64}, "additionalProperties": {"type": "string", "maxLength": 512}},
    "user": STR, "safety_identifier": STR, "prompt_cache_key": STR, "prompt_cache_retention": enum("in_memory", "in-memory", "24h"),
    "prompt_cache_options": obj({}, {"mode": null_or(enum("implicit", "explicit"))}, more=True),
}
KWARGS = obj({}, {"enable_thinking": null_or(BOOL)}, more=True)
N = whole(1, 128)
