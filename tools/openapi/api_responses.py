"""OpenAI's responses.  tests/serve/responses_conform.py holds the order of events to the official client's types besides."""
from sampling import EFFORT, KWARGS, MODEL, OPENAI, SAMPLING, STOP, STREAM, VERBOSITY
from shapes import ANY, BOOL, COUNT, INT, NULL, NUM, STR, arr, asked, const, either, enum, events, json_reply, null_or, obj, ref, route, whole

TAG = "OpenAI"
STATUS = enum("in_progress", "completed", "incomplete")
PIECE = {"token": STR, "logprob": NUM, "bytes": arr(whole(0, 255))}
LOGPROBS = arr(obj({**PIECE, "top_logprobs": arr(obj(PIECE))}))
TEXT = obj({"type": const("output_text"), "text": STR, "annotations": arr(ANY, maxItems=0), "logprobs": LOGPROBS})
THOUGHT = obj({"type": const("reasoning_text"), "text": STR})
SUMMARY = obj({"type": const("summary_text"), "text": STR})


def item(kind, **more):
    return {"id": STR, "type": const(kind), "status": STATUS, **more}


ITEM = either(
    obj(item("message", role=const("assistant"), content=arr(TEXT, maxItems=1))),
    obj(item("reasoning", summary=arr(SUMMARY, maxItems=1)), {"content": arr(THOUGHT, maxItems=1)}),
    obj(item("function_call", call_id=STR, name=STR, arguments=STR), {"namespace": STR}),
    obj(item("custom_tool_call", call_id=STR, name=STR, input=STR), {"namespace": STR}))
# What a client sent is kept as it sent it, with an id and a type.
SENT = obj({"id": STR, "type": enum(
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "local_shell_call",
    "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output", "file_search_call",
    "code_interpreter_call", "mcp_call", "tool_search_call", "tool_search_output", "program", "program_output", "computer_call", "web_search_call",
    "image_generation_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "additional_tools", "configuration_update", "compaction",
    "compaction_trigger")}, {"status": ANY}, more=True)
ECHO = {"instructions": null_or(either(STR, arr({"type": "object"}))), "max_output_tokens": null_or(INT), "max_tool_calls": null_or(INT),
        "previous_response_id": null_or(STR), "prompt_cache_key": null_or(STR), "safety_identifier": null_or(STR), "user": null_or(STR),
        "metadata": {"type": "object", "additionalProperties": STR}, "background": const(False), "store": BOOL, "parallel_tool_calls": BOOL,
        "reasoning": obj({"effort": null_or(STR), "summary": null_or(enum("auto", "concise", "detailed"))}), "service_tier": STR, "temperature": null_or(NUM),
        "top_p": null_or(NUM), "text": obj({"format": obj({"type": const("text")}), "verbosity": enum("low", "medium", "high")}), "tool_choice": either(STR, {"type": "object"}),
        "tools": arr({"type": "object"}), "top_logprobs": whole(0, 20), "truncation": const("disabled")}


def event(kind, **more):
    return obj({"type": const("response." + kind), "sequence_number": COUNT, "output_index": COUNT, **more})


def part_event(kind, index, **more):
    return event(kind, item_id=STR, **{index: const(0)}, **more)


RESPONSE = ("created", "in_progress", "completed", "incomplete", "failed")
INCLUDED = ("file_search_call.results", "web_search_call.results", "web_search_call.action.sources", "message.input_image.image_url", "computer_call_output.output.image_url",
            "code_interpreter_call.outputs", "reasoning.encrypted_content", "message.output_text.logprobs")
REASONING = obj({}, {"effort": null_or(EFFORT), "context": null_or(enum("auto", "current_turn")), "mode": null_or(enum("standard")),
                     **{name: null_or(enum("auto", "concise", "detailed", "none")) for name in ("summary", "generate_summary")}}, more=True)
FIELDS = {**MODEL, **SAMPLING, "instructions": STR, "previous_response_id": STR, "store": BOOL, **STREAM, "return_progress": BOOL, "max_output_tokens": whole(1), "tools": arr({"type": "object"}),
          "tool_choice": ANY, "parallel_tool_calls": BOOL, "reasoning": REASONING, "text": obj({}, {"format": null_or(obj({"type": const("text")}, more=True)), "verbosity": null_or(VERBOSITY)}, more=True),
          "include": arr(enum(*INCLUDED)), "top_logprobs": whole(0, 20), "max_tool_calls": whole(1), "stop": STOP, "reasoning_effort": EFFORT, "chat_template_kwargs": KWARGS,
          "truncation": enum("disabled"), "background": enum(False), "image": {"type": "object"}, **OPENAI}

SCHEMAS = {
    "ResponseRequest": asked({}, {**FIELDS, "input": either({"type": "string"}, arr({"type": "object"}))}),
    "Response": obj({"id": STR, "object": const("response"), "created_at": INT, "status": enum("in_progress", "completed", "incomplete", "failed"), "model": STR, "output": arr(ITEM),
                     "error": null_or(obj({"code": STR, "message": STR})), "incomplete_details": null_or(obj({"reason": const("max_output_tokens")})), "usage": null_or(ref("ResponseUsage")),
                     "completed_at": null_or(INT), **ECHO}),
    "ResponseUsage": obj({"input_tokens": COUNT, "input_tokens_details": obj({"cached_tokens": COUNT, "cache_write_tokens": COUNT}), "output_tokens": COUNT,
                          "output_tokens_details": obj({"reasoning_tokens": COUNT}), "total_tokens": COUNT}),
    "ResponseEvent": either(
        obj({"type": enum(*("response." + n for n in RESPONSE)), "sequence_number": COUNT, "response": ref("Response")}),
        event("output_item.added", item=ITEM), event("output_item.done", item=ITEM),
        *(part_event("content_part." + when, "content_index", part=either(TEXT, THOUGHT)) for when in ("added", "done")),
        *(part_event("reasoning_summary_part." + when, "summary_index", part=SUMMARY) for when in ("added", "done")),
        part_event("output_text.delta", "content_index", delta=STR, logprobs=LOGPROBS), part_event("output_text.done", "content_index", text=STR, logprobs=LOGPROBS),
        part_event("reasoning_text.delta", "content_index", delta=STR), part_event("reasoning_text.done", "content_index", text=STR),
        part_event("reasoning_summary_text.delta", "summary_index", delta=STR), part_event("reasoning_summary_text.done", "summary_index", text=STR),
        event("function_call_arguments.delta", item_id=STR, delta=STR), event("function_call_arguments.done", item_id=STR, arguments=STR),
        event("custom_tool_call_input.delta", item_id=STR, delta=STR), event("custom_tool_call_input.done", item_id=STR, input=STR),
        obj({"type": const("error"), "sequence_number": COUNT, "code": null_or(STR), "message": STR, "param": null_or(STR)},
            description="Before there is a response: its model could not be loaded, say")),
    "ResponseItems": obj({"object": const("list"), "data": arr(SENT, maxItems=100), "has_more": BOOL, "first_id": STR, "last_id": STR}),
    "ResponseDeleted": obj({"id": STR, "object": const("response"), "deleted": const(True)}),
    "ResponseCounted": obj({"object": const("response.input_tokens"), "input_tokens": COUNT}),
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
