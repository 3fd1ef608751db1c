"""Fields that every API's generating routes have."""
from shapes import ANY, BOOL, INT, NUM, STR, arr, between, either, enum, whole

SAMPLING = {
    "temperature": between(0, 2), "top_p": between(0, 1), "top_k": whole(-1), "min_p": between(0, 1), "typical_p": between(0, 1),
    "xtc_probability": between(0, 1), "xtc_threshold": between(0, 1), "mirostat": whole(0, 2), "mirostat_tau": between(0, 100),
    "mirostat_eta": between(0, 10), "dry_multiplier": between(0, 100), "dry_base": between(1, 100), "dry_allowed_length": whole(0, 10000),
    "dry_penalty_last_n": whole(-1), "dry_sequence_breakers": arr({"type": "string", "minLength": 1, "maxLength": 64}, maxItems=32),
    "repetition_penalty": between(0.01, 10), "repeat_penalty": between(0.01, 10), "repetition_context_size": whole(0), "repeat_last_n": whole(-1),
    "presence_penalty": between(-2, 2), "presence_context_size": whole(0), "frequency_penalty": between(-2, 2), "frequency_context_size": whole(0),
    "seed": INT, "logit_bias": {"type": "object", "propertyNames": {"pattern": "^[0-9]{1,9}$"}, "additionalProperties": between(-100, 100), "maxProperties": 4096},
    "priority": whole(-8, 8), "service_tier": STR, "ignore_eos": BOOL, "skip_special_tokens": BOOL,
}
STOP = either({"type": "string", "minLength": 1}, arr({"type": "string", "minLength": 1}, maxItems=16))
STREAM = {"stream": BOOL, "stream_options": {"type": "object", "properties": {"include_usage": either({"type": "null"}, BOOL)}}}
MODEL = {"model": STR}
N = whole(1, 128)
