#!/usr/bin/env python3
"""Renders whole chat templates with the reference and with `test_jinja --batch`, and compares.

  compare_templates.py TEST_JINJA PATH…     PATH: a .jinja file, a tokenizer_config.json, or a folder of them

Needs transformers and jinja2; says so and passes where they or the paths are missing.  The reference is the
environment that transformers builds, rendered with the very same variables."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather \"now\" <in> a city, é & ü.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Name"},
                                         "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
                                         "days": {"type": "integer", "minimum": 1},
                                         "opts": {"type": "object", "properties": {"x": {"type": "number"}}},
                                         "list": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"]}, "return": {"type": "string", "description": "text"}}},
    {"type": "function", "function": {"name": "noop", "description": "Nothing", "parameters": {"type": "object", "properties": {}}}},
]


def call(name, args, cid="call00001"):
    return {"id": cid, "type": "function", "function": {"name": name, "arguments": args}}


def conversations():
    sys_ = {"role": "system", "content": "You are  terse.\n"}
    user = {"role": "user", "content": "Hi there"}
    bot = {"role": "assistant", "content": "Hello!"}
    uni = {"role": "user", "content": "  Grüße 世界 😀 \"quoted\" <tag> {{ x }} \n\n"}
    parts = {"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "text", "text": "part two"}]}
    image = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what?"}]}
    think = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nDone."}
    reason = {"role": "assistant", "content": "Done.", "reasoning_content": "Let me see.\n"}
    tcall = {"role": "assistant", "content": "", "tool_calls": [call("get_weather", {"city": "Zürich", "days": 2, "opts": {"x": 1.5}, "list": ["a"], "unit": None, "b": True})]}
    tcall2 = {"role": "assistant", "content": "Calling.", "tool_calls": [call("get_weather", {"city": "A"}), call("noop", {}, "call00002")]}
    tstr = {"role": "assistant", "content": None, "tool_calls": [call("get_weather", "{\"city\": \"A\"}")]}
    tres = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"t\": 3}"}
    tres2 = {"role": "tool", "tool_call_id": "call00002", "name": "noop", "content": "ok"}
    base = [
        [user], [sys_, user], [user, bot, user], [sys_, user, bot, uni], [uni], [parts], [sys_, parts, bot, image], [user, think, user],
        [user, reason, user, reason], [sys_, user, tcall, tres], [user, tcall, tres, bot, user], [user, tcall2, tres, tres2],
        [user, tstr, tres], [user, dict(tcall, reasoning_content="why"), tres], [{"role": "developer", "content": "Dev."}, user],
        [user, user], [bot], [{"role": "user", "content": ""}], [sys_, sys_, user], [{"role": "other", "content": "x"}], [],
        [user, {"role": "assistant", "tool_calls": tcall["tool_calls"]}, tres, {"role": "assistant", "content": "It is 3."}, user],
        [{"role": "user", "content": "/no_think go"}], [user, {"role": "assistant", "content": "a", "thinking": "t"}, user],
        [dict(sys_, content="Reply. /think"), user, think], [user] + [bot, user] * 12,
    ]
    out = []
    for m in base:
        out.append(dict(messages=m, tools=None, add_generation_prompt=True))
        out.append(dict(messages=m, tools=None, add_generation_prompt=False))
        out.append(dict(messages=m, tools=TOOLS, add_generation_prompt=True))
        out.append(dict(messages=m, tools=None, add_generation_prompt=True, enable_thinking=False))
        out.append(dict(messages=m, tools=TOOLS, add_generation_prompt=False, enable_thinking=True, thinking=True, reasoning_effort="high"))
    return out


def token(v):
    return v["content"] if isinstance(v, dict) else v


def load(path):
    """(name, template, variables) of every template in a file."""
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as f:
            cfg = json.load(f)
        names = ("bos_token", "eos_token", "unk_token", "pad_token")
        extra = {k: token(cfg[k]) for k in names if cfg.get(k)}
        t = cfg.get("chat_template")
        many = t if isinstance(t, list) else [{"name": "default", "template": t}] if t else []
        return [(f"{path}:{x['name']}", x["template"], extra) for x in many]
    with open(path, encoding="utf-8") as f:
        return [(path, f.read(), {"bos_token": "<s>", "eos_token": "</s>"})]


def paths(args):
    for a in args:
        if os.path.isdir(a):
            yield from sorted(glob.glob(os.path.join(a, "**", "*.jinja"), recursive=True) +
                              glob.glob(os.path.join(a, "**", "tokenizer_config.json"), recursive=True))
        elif os.path.exists(a):
            yield a


def main():
    try:
        from transformers.utils.chat_template_utils import _compile_jinja_template
    except ImportError as e:
        print("skipped:", e)
        return 0
    files = list(paths(sys.argv[2:]))
    if not files:
        print("skipped: no templates at", " ".join(sys.argv[2:]))
        return 0
    cases, want = [], []
    refused = {}
    for path in files:
        for name, text, extra in load(path):
            for conv in conversations():
                ctx = dict(extra, documents=None, **conv)
                try:
                    got = _compile_jinja_template(text).render(**json.loads(json.dumps(ctx)))
                except Exception as e:
                    got = None
                    refused.setdefault(name, []).append(f"{type(e).__name__}: {e}")
                cases.append({"template": text, "context": ctx})
                want.append((name, got))
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(cases, f, ensure_ascii=False)
        f.flush()
        lines = subprocess.run([sys.argv[1], "--batch", f.name], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    wrong = {}
    for (name, ref), case, line in zip(want, cases, lines):
        ours = json.loads(line)
        if ref != ours.get("result"):
            wrong.setdefault(name, []).append((ref, ours, case))
    for name, l in wrong.items():
        ref, ours, case = l[0]
        print(f"{name}: {len(l)} differ; first: {json.dumps(case['context'])[:300]}\n  want {ref!r:.600}\n  got  {ours!r:.600}")
    always = [n for n in refused if len(refused[n]) == len(conversations())]
    for n in always:
        print(f"the reference refuses every conversation: {n}: {refused[n][0]}")
    failed = sum(len(v) for v in refused.values())
    print(f"{len({n for n, _ in want})} templates, {len(cases)} renders ({failed} refused by the reference), "
          f"{sum(len(v) for v in wrong.values())} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
