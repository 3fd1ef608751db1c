"""OpenAI's responses.  tests/serve/responses_conform.py holds items and the order of events to the official client's types;
here is what every one of them has."""
from sampling import MODEL, SAMPLING
from shapes import ANY, BOOL, COUNT, INT, STR, arr, asked, const, either, enum, events, json_reply, null_or, obj, ref, route, whole

TAG = "OpenAI"
ITEM = obj({"type": STR, "id": STR}, {"status": enum("in_progress", "completed", "incomplete")}, more=True)
RESPONSE = ("created", "in_progress", "completed", "incomplete", "failed")
FIELDS = {**MODEL, **SAMPLING, "instructions": STR, "previous_response_id": STR, "store": BOOL, "stream": BOOL, "max_output_tokens": whole(1), "tools": arr({"type": "object"}),
          "tool_choice": ANY, "parallel_tool_calls": BOOL, "reasoning": {"type": "object"}, "text": {"type": "object"}, "metadata": {"type": "object"}}

SCHEMAS = {
    "ResponseRequest": asked({}, {**FIELDS, "input": either({"type": "string"}, arr({"type": "object"}))}),
    "Response": obj({"id": STR, "object": const("response"), "created_at": INT, "status": enum("in_progress", "completed", "incomplete", "failed"), "model": STR, "output": arr(ITEM),
                     "error": null_or(obj({"code": STR, "message": STR})), "incomplete_details": null_or({"type": "object"}), "usage": null_or(ref("ResponseUsage"))}, more=True),
    "ResponseUsage": obj({"input_tokens": COUNT, "input_tokens_details": obj({"cached_tokens": COUNT, "cache_write_tokens": COUNT}), "output_tokens": COUNT,
                          "output_tokens_details": obj({"reasoning_tokens": COUNT}), "total_tokens": COUNT}),
    "ResponseEvent": either(
        obj({"type": enum(*("response." + n for n in RESPONSE)), "sequence_number": COUNT, "response": ref("Response")}),
        obj({"type": {"type": "string", "pattern": "^response\\.output_item\\.(added|done)$"}, "sequence_number": COUNT, "output_index": COUNT, "item": ITEM}),
        obj({"type": {"type": "string", "pattern": "^response\\.[a-z_.]+\\.(added|delta|done)$"}, "sequence_number": COUNT, "output_index": COUNT, "item_id": STR}, more=True),
        obj({"type": const("error"), "sequence_number": COUNT, "code": null_or(STR), "message": STR, "param": null_or(STR)},
            description="Before there is a response: its model could not be loaded, say")),
    "ResponseItems": obj({"object": const("list"), "data": arr({"type": "object"}), "has_more": BOOL, "first_id": null_or(STR), "last_id": null_or(STR)}),
    "ResponseDeleted": obj({"id": STR, "object": const("response"), "deleted": const(True)}),
    "ResponseCounted": obj({"object": STR, "input_tokens": COUNT}),
}

ALL = (400, 401, 404, 405, 408, 413, 429, 500, 503)
KEPT = [("response", "Its id")]
ENDS = ("response.completed", "response.incomplete", "response.failed")
answer = events(json_reply(ref("Response")), ref("ResponseEvent"), ref("Error"), "response.completed, response.incomplete, response.failed")

ROUTES = [
    route("post", "/v1/responses", "A response", {200: answer}, body=ref("ResponseRequest"), tag=TAG, fails=ALL),
    route("post", "/v1/responses/input_tokens", "How many tokens a request's prompt has", {200: json_reply(ref("ResponseCounted"))}, body=ref("ResponseRequest"), tag=TAG, fails=ALL),
    route("get", "/v1/responses/{response}", "One that is kept", {200: json_reply(ref("Response"))}, tag=TAG, fails=ALL, params=KEPT),
    route("delete", "/v1/responses/{response}", "Forgets it", {200: json_reply(ref("ResponseDeleted"))}, tag=TAG, fails=ALL, params=KEPT),
    route("get", "/v1/responses/{response}/input_items", "What it was asked", {200: json_reply(ref("ResponseItems"))}, tag=TAG, fails=ALL, params=KEPT),
    route("post", "/v1/responses/{response}/cancel", "Refused: none is made in the background", {}, body=ANY, need_body=False, tag=TAG, fails=ALL, params=KEPT),
]
