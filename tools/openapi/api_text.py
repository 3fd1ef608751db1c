"""Tokens, and what is seen of sampling."""
from sampling import MODEL, SAMPLING
from shapes import BOOL, COUNT, INT, STR, arr, asked, between, either, json_reply, obj, ref, route, whole

TAG = "text"
TEXT = {"type": "string", "minLength": 1}

SCHEMAS = {
    "TokenizeRequest": asked({"content": STR}, {**MODEL, "add_special": BOOL, "parse_special": BOOL, "with_pieces": BOOL}),
    "Tokens": obj({"tokens": arr(either(COUNT, obj({"id": COUNT, "piece": either(STR, arr(whole(0, 255)))})))}),
    "DetokenizeRequest": asked({"tokens": arr(whole(0))}, MODEL),
    "Detokenized": obj({"content": STR}),
    "SignalRequest": asked({"prompt": TEXT}, MODEL),
    "Signal": obj({"bins": arr(COUNT, minItems=80, maxItems=80), "vocab": COUNT}),
    "GenerateRequest": asked({"prompt": TEXT}, {
        **MODEL, "curve": arr(obj({"x_pct": between(0, 100), "y_pct": between(0, 100)}, more=True), minItems=2, maxItems=32), "n": whole(1, 8), "max_tokens": whole(1, 256), "seed": SAMPLING["seed"],
        "default": BOOL}),
    "Samples": obj({"samples": arr(obj({"text": STR, "junk": BOOL}), minItems=1, maxItems=8)}),
}

ALL = (400, 401, 404, 405, 408, 413, 429, 500, 503)

ROUTES = [
    route("post", "/tokenize", "A text's tokens", {200: json_reply(ref("Tokens"))}, body=ref("TokenizeRequest"), tag=TAG, fails=ALL),
    route("post", "/detokenize", "Tokens' text", {200: json_reply(ref("Detokenized"))}, body=ref("DetokenizeRequest"), tag=TAG, fails=ALL),
    route("post", "/signal", "A histogram of all tokens that may come next, by log-probability", {200: json_reply(ref("Signal"))}, body=ref("SignalRequest"), tag=TAG, fails=ALL),
    route("post", "/generate", "Short samples, drawn by a curve", {200: json_reply(ref("Samples"))}, body=ref("GenerateRequest"), tag=TAG, fails=ALL),
]
