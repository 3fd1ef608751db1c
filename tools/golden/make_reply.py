#!/usr/bin/env python3
"""Makes tests/text/reply_cases.json: what real chat templates write for an assistant's turn whose
thought, content and calls are known.  The reference is the template itself, rendered as transformers
renders it: reading the turn again must give the message.

    make_reply.py TEMPLATES_DIR --mlx DIR

TEMPLATES_DIR holds *.jinja (llama.cpp's models/templates), DIR mlx_lm's source: its parsers read the
same calls, what they disagree on is printed; and they are the reference for notations of which there
is no template."""
import argparse
import ast
import glob
import importlib.util
import json
import os
import random
import re
import sys
import types

from jinja2.sandbox import SandboxedEnvironment
from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "tests", "text", "reply_cases.json")


def tool(name, properties):
    return {"type": "function", "function": {"name": name, "description": name, "parameters": {
        "type": "object", "required": [], "additionalProperties": False, "properties": properties}}}


TOOLS = [
    tool("get_weather", {
        "city": {"type": "string", "description": "where"},
        "days": {"type": "integer", "description": "how many"},
        "opts": {"type": "object", "description": "more", "required": [], "additionalProperties": False,
                 "properties": {"deep": {"type": "boolean", "description": "d"}}}}),
    tool("run-code", {"code": {"type": "string", "description": "source"}}),
    tool("ping", {}),
]

THOUGHT = "First, I look.\n\nThen I act."
CONTENT = "Let me see: 3 < 4 & {5}."
WEATHER = ("get_weather", {"city": "Köln", "days": 3, "opts": {"deep": True, "l": [1, 2.5, "x"]}})
NASTY = ("run-code", {"code": "if (a[\"b\"] < 1) {\n\treturn '\\n</x>' + \"}}]\" // 世界 😀\n}"})
PLAIN = ("run-code", {"code": "print(1)\nprint(2)"})
NUMBER_LIKE = ("get_weather", {"city": "12", "days": -1, "opts": {}})
PING = ("ping", {})



def odd(seed, n):
    """Text of pieces that parsers stumble over; none of them ends a value in the notations that cannot say so."""
    rng = random.Random(seed)
    pieces = ["{", "}", "[", "]", "\"", "'", "\\", "\\n", "\n", "\t", "\x01", " ", "</tool_call>", "<tool_call>", "\"}}", "}]", "[TOOL_CALLS]",
              "[ARGS]", "<|tool_call_end|>", "<|tool_call>", "<think>", "</think>", "<|end|>", "<function=", "日本", "😀", "é", "a", "0",
              "null", ",", ":", "```", ">>>all", "<｜tool▁call▁end｜>", "</", "<|", "<｜", "]]", "<![", "&lt;"]
    return "x" + "".join(rng.choice(pieces) for _ in range(n)) + "x"


ODD_CODE = ("run-code", {"code": odd(1, 60)})
ODD_MORE = ("get_weather", {"city": odd(2, 30), "opts": {"k" + odd(3, 4): [odd(4, 12), {"deep": None}]}})

# name: thought, content, calls
VARIANTS = {
    "answer": ("", CONTENT, []),
    "thought": (THOUGHT, CONTENT, []),
    "one": ("", "", [WEATHER]),
    "thought_one": (THOUGHT, "", [WEATHER]),
    "content_one": ("", CONTENT, [PLAIN]),
    "two": (THOUGHT, CONTENT, [WEATHER, PLAIN]),
    "nasty": (THOUGHT, "", [NASTY]),
    "number": ("", "", [NUMBER_LIKE]),
    "none": ("", "", [PING]),
    "odd": (THOUGHT, "", [ODD_CODE]),
    "odder": (THOUGHT, "", [ODD_MORE, ODD_CODE]),
}

# What a template cannot write so that anything could read it.
LOSSY = {
    ("LFM2.5-8B-A1B.jinja", "nasty"): "strings between quotes that are not escaped",
    ("LFM2.5-8B-A1B.jinja", "odd"): "likewise",
    ("LFM2.5-8B-A1B.jinja", "odder"): "likewise",
    ("google-gemma-4-31B-it.jinja", "odder"): "keys are bare: a colon or bracket in one cannot be told",
    ("google-gemma-4-31B-it-interleaved.jinja", "odder"): "likewise",
    ("openai-gpt-oss-120b.jinja", "content_one"): "what comes with a call is written as analysis",
    ("NVIDIA-Nemotron-Nano-v2.jinja", "content_one"): "the call is a turn of its own",
    ("NVIDIA-Nemotron-Nano-v2.jinja", "two"): "likewise",
    ("MiniMax-M3.jinja", "odder"): "a null is left out, a bracket in a key cannot be told",
}

ENDS = ["<|im_end|>", "<EOS>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|END_OF_TURN_TOKEN|>",
        "<end_of_turn>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "<|call|>", "<|return|>", "[e~[",
        "<seed:eos>", "<SPECIAL_12>", "</assistant>", "<|role_end|>", "<sep>", "<end_of_sentence>",
        "<|message_sep|>", "<|calls|>", "<|end|>", "<|eot|>", "<|end_of_msg|>", "<|assistant_end|>",
        "<｜hy_eos:opensource｜>"]
THINKS = ["<think", "</think", "<|START_THINKING", "<|channel>", "<seed:think", "Here are my reasoning", "<mm:think",
          "</mm:think", "<|open|>think", "[THINK]"]


def compile_template(source):
    template = _compile_jinja_template(source)
    if ".append(" not in source:
        return template
    old = template.environment  # some templates change lists, which the immutable sandbox refuses
    env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                               extensions=[type(e) for e in old.extensions.values()])
    env.filters.update(old.filters)
    env.globals.update(old.globals)
    return env.from_string(source)


def message(thought, content, calls, as_text, blocks, none):
    m = {"role": "assistant", "content": None if none and calls and not content else content}
    if blocks and thought:
        m["content"] = [{"type": "thinking", "thinking": thought}] + ([{"type": "text", "text": content}] if content else [])
    elif thought:
        m.update(reasoning_content=thought, reasoning=thought, thinking=thought)
    if calls:
        m["tool_calls"] = [{"id": "id%07d" % i, "type": "function", "function": {
            "name": n, "arguments": json.dumps(a, ensure_ascii=False) if as_text else a}}
            for i, (n, a) in enumerate(calls)]
    return m


STOPS = ["<｜end▁of▁sentence｜>", "<|im_end|>", "<EOS>", "<|eot_id|>", "<|END_OF_TURN_TOKEN|>", "<end_of_turn>", "<turn|>",
         "<SPECIAL_12>", "<|role_end|>", "<seed:eos>"]
OPENERS = ["<think>", "<seed:think>", "[THINK]", "<|START_THINKING|>", "<|open|>think<|sep|>", "<|channel>thought",
           "<think:opensource>", "Here are my reasoning steps:"]
CLOSERS = ["</think", "</seed:think", "<|END_THINKING", "<|close|>think", "<channel|>"]


def strip_end(text):
    """The text up to where the engine stops: nothing after that is the model's."""
    text = text[:min([text.find(s) for s in STOPS if s in text], default=len(text))]
    for _ in range(4):
        bare = text.rstrip()
        end = next((e for e in ENDS if bare.endswith(e)), None)
        if end is None:
            return text
        text = bare[:-len(end)]
    return text


def turns(template, variant, form, kwargs):
    """prompt and assistant's text, or None."""
    thought, content, calls = variant
    user = [{"role": "user", "content": "Hi there"}]
    base = {"tools": TOOLS, "bos_token": "<BOS>", "eos_token": "<EOS>", "functions": "[]", "datetime": "today", **kwargs}
    full = template.render(messages=user + [message(thought, content, calls, *form)],
                           add_generation_prompt=False, **base)
    prompt = template.render(messages=user, add_generation_prompt=True, **base)
    bare = template.render(messages=user, add_generation_prompt=False, **base)
    if full.startswith(prompt):
        return prompt, full[len(prompt):]
    if prompt.startswith(bare) and full.startswith(bare):
        head = prompt[len(bare):]
        cuts = [head.find(t) for t in THINKS if t in head]
        if cuts and full.startswith(bare + head[:min(cuts)]):
            cut = bare + head[:min(cuts)]
            text = full[len(cut):]
            # The thought's opening may be written by the prompt alone.
            begins = any(text.lstrip().startswith(t) for t in THINKS) or not text.startswith(thought or "\0")
            return (cut if begins else prompt), text
    if "<|CHATBOT_TOKEN|>" in full and not full.startswith(bare):
        cut = full.find("<|CHATBOT_TOKEN|>") + len("<|CHATBOT_TOKEN|>")
        return full[:cut], full[cut:].split("<|START_OF_TURN_TOKEN|>")[0]
    return None


def words_of(source):
    """The template's markup: tags, short strings.  Enough to tell the family."""
    found = re.findall(r"<[^<>\s{}]{1,48}>|<[a-z]+ name=\"|<｜[^｜]{1,40}｜>?|\[[A-Z_/ ]{3,32}\]|>>>\w*|<\|?\w+[|>]", source)
    strings = [a or b for a, b in re.findall(r"'([^'\n]*)'|\"([^\"\n]*)\"", source)]
    found += [w for w in strings if 3 <= len(w) <= 24]
    found += ["recipient"] if "recipient" in source else []
    return sorted(set(found))


# Arguments as text, thought as a block, none for a content that is empty.
FORMS = [(False, False, False), (True, False, False), (False, True, False), (True, True, False), (True, False, True)]
KWARGS = [{}, {"enable_thinking": True, "thinking": True}, {"enable_thinking": False, "thinking": False}]
# Their list of tools is a generator that jinja2 cannot print: the turn is rendered without.
NO_TOOLS = {"llama-cpp-deepseek-r1.jinja"}


def case_of(name, label, variant, prompt, text):
    """None: not a turn that a model could write after this prompt."""
    thought, content, calls = variant
    text = strip_end(text)
    if not all(n in text for n, _ in calls):
        return None
    want = {"thought": thought if thought in text else "", "content": content if content in text else ""}
    if not calls:
        text = text.rstrip()
        if not want["content"]:
            return None
    if text.startswith(" " + CONTENT):
        want["content"] = " " + CONTENT
    opened = any(prompt.rstrip().endswith(o) for o in OPENERS)
    if opened and not want["thought"] and not any(text.lstrip().startswith(c) for c in CLOSERS):
        return None  # the template forgets old thoughts
    want["calls"] = [{"name": n, "arguments": a, **({"id": "id%07d" % i} if "id%07d" % i in text else {})}
                     for i, (n, a) in enumerate(calls)]
    return {"name": f"{name} {label}", "prompt": prompt[-64:], "text": text, **want}


def find_case(name, source, label, variant):
    template = compile_template(source)
    error = best = None
    for kwargs in [{"tools": None}] if name in NO_TOOLS else KWARGS:
        for form in FORMS:
            try:
                got = turns(template, variant, form, kwargs)
            except Exception as e:  # whatever a template raises: it does not support this turn
                error = e
                continue
            case = case_of(name, label, variant, *got) if got else None
            if case and case["thought"] == variant[0]:
                return case
            best = best or case
    return best or error


def python_values(n):
    """[text, value]: what ast.literal_eval reads, with JSON's words too."""
    rng = random.Random(7)

    def value(depth):
        kind = rng.randrange(9 if depth else 6)
        if kind < 2:
            return "".join(rng.choice("ab'\"\\\n\t é世😀{}[],:<") for _ in range(rng.randrange(8)))
        if kind == 2:
            return rng.choice([0, -1, 17, 123456789012345678, 1.5, -2e-7, 1e300])
        if kind < 6:
            return rng.choice([True, False, None])
        if kind == 6:
            return {str(i) + "k": value(depth - 1) for i in range(rng.randrange(4))}
        return [value(depth - 1) for _ in range(rng.randrange(4))]
    out = []
    for i in range(n):
        v = value(3)
        text = repr(v) if i % 2 else json.dumps(v, ensure_ascii=i % 4 == 0)
        if i % 2:
            assert ast.literal_eval(text) == v
        out.append([text, v])
    fixed = ["(1, 'a')", "[1,]", "{'a': 1,}", "'\\x41\\u00e9\\n'", "( )", " [ ] "]
    out += [[t, json.loads(json.dumps(ast.literal_eval(t.strip())))] for t in fixed]
    return out


def not_values():
    """Neither Python nor JSON reads these as values."""
    texts = ["", "3 days", "[1", "{'a', 'b': 1}", "{'a': }", "[1 2]", "'a", "1.2.3", "truthy", "{1: 2]", "]", "007", "'a' 'b", "[,]", ","]
    for t in texts:
        try:
            ast.literal_eval(t)
        except Exception:
            continue
        raise AssertionError(t)
    return texts


def json_texts(n):
    """[object's text, whether json.loads reads it]."""
    rng = random.Random(11)
    bases = [json.dumps(a, ensure_ascii=False) for _, a in (WEATHER, NASTY, NUMBER_LIKE)]
    bases += ['{"a": [1, -2.5e+3, 0.1], "b": {"c": []}, "d": "\\u00e9\\ud83d\\ude00\\/"}', '{ "x" : [ ] , "y":{ } }']
    out = []
    for i in range(n):
        t = rng.choice(bases)
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(t) - 1) + 1
            t = t[:at] + rng.choice(['"', "{", "}", "[", "]", ",", ":", "0", "-", "e", ".", "\\", " ", "", "t", "\n"]) + t[at + rng.randrange(2):]
        try:
            json.loads(t, strict=False)
            ok = True
        except ValueError:
            ok = False
        out.append([t, ok])
    return out


MLX = {"hermes": "json_tools", "qwen3-coder": "qwen3_coder", "glm": "glm47", "gemma4": "gemma4", "minimax-m2": "minimax_m2",
       "mistral": "mistral", "kimi-k2": "kimi_k2", "lfm2": "pythonic", "minicpm5": "minicpm5", "kimi-k3": "kimi_k3"}


def mlx_parser(folder, name):
    package = types.ModuleType("mlx_tool_parsers")
    package.__path__ = [os.path.join(folder, "mlx_lm", "tool_parsers")]
    sys.modules["mlx_tool_parsers"] = package
    spec = importlib.util.find_spec("mlx_tool_parsers." + name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mlx_reads(module, text):
    start, end = module.tool_call_start, module.tool_call_end
    calls, at = [], text.find(start)
    while at >= 0:
        stop = text.find(end, at) if end else len(text)
        got = module.parse_tool_call(text[at + len(start):stop], TOOLS)
        calls += got if isinstance(got, list) else [got]
        at = text.find(start, stop)
    return [(c["name"], c["arguments"]) for c in calls]


# Families without a template here: mlx_lm's parser says what the calls are.
BY_PARSER = [
    ("functiongemma", "function_gemma", "<start_function_call>call:get_weather{city:<escape>a {b}, c: \"d\"<escape>,days:3}<end_function_call>".replace("{b}", "(b)")),
    ("functiongemma", "function_gemma", "Now.<start_function_call>call:ping{}<end_function_call>"),
    ("longcat", "longcat", "<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>12</longcat_arg_value>\n"
     "<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>3</longcat_arg_value>\n<longcat_arg_key>opts</longcat_arg_key>\n"
     "<longcat_arg_value>{\"deep\": true}</longcat_arg_value>\n</longcat_tool_call>"),
    ("lfm2", "pythonic", "<|tool_call_start|>[get_weather(city=\"a, b\", days=-3, opts={'deep': True, 'l': [None, 1.5]}), ping()]<|tool_call_end|>"),
    ("lfm2", "pythonic", "Hm.<|tool_call_start|>[get_weather(city='it\\'s \\u00e9\\n', days=2)]<|tool_call_end|>"),
    ("mistral", "mistral", "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"x\"}[TOOL_CALLS]ping[ARGS]{}"),
    ("mistral", "mistral", "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": \"{\\\"days\\\": 1}\"}, {\"name\": \"ping\", \"arguments\": {}}]"),
    ("kimi-k2", "kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>get_weather:4<|tool_call_argument_begin|> {\"days\": 1} <|tool_call_end|><|tool_calls_section_end|>"),
    ("gemma4", "gemma4", "<|tool_call>call:get_weather{city:<|\"|>a}{<b|c<|\"|>,opts:{deep:true,l:[1,<|\"|>x<|\"|>]}}<tool_call|>"),
    ("minimax-m2", "minimax_m2", "<minimax:tool_call><invoke name=\"get_weather\"><parameter name=\"days\">3</parameter><parameter name=\"city\">5</parameter></invoke></minimax:tool_call>"),
]


def parsed_cases(folder):
    for i, (family, name, text) in enumerate(BY_PARSER):
        module = mlx_parser(folder, name)
        yield {"name": f"{name} {i}", "prompt": "", "text": text, "thought": "", "content": text[:text.find(module.tool_call_start)],
               "calls": [{"name": n, "arguments": a} for n, a in mlx_reads(module, text)], "family": family}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("templates")
    ap.add_argument("--mlx", required=True)
    args = ap.parse_args()
    cases, families, agreed = [], {}, 0
    with open(os.path.join(HERE, "reply_families.json"), encoding="utf-8") as f:
        known = json.load(f)
    for path in sorted(glob.glob(os.path.join(args.templates, "*.jinja"))):
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as f:
            source = f.read()
        family = known[name]  # every template has its line
        families[name] = {"family": family, "words": words_of(source)}
        for label, variant in VARIANTS.items():
            if (name, label) in LOSSY:
                continue
            case = find_case(name, source, label, variant)
            if not isinstance(case, dict):
                if case is not None:
                    print(f"{name} {label}: {str(case)[:90]}", file=sys.stderr)
                continue
            case["family"] = family
            cases.append(case)
            if family in MLX and case["calls"]:
                want = [(c["name"], c["arguments"]) for c in case["calls"]]
                try:
                    got = mlx_reads(mlx_parser(args.mlx, MLX[family]), case["text"])
                except Exception as e:
                    got = repr(e)
                agreed += got == want
                if got != want:
                    print(f"mlx {MLX[family]} on {case['name']}: {got}", file=sys.stderr)
    cases += parsed_cases(args.mlx)
    with open(OUT, "w", encoding="utf-8") as f:
        f.write(json.dumps({"tools": TOOLS, "families": families}, ensure_ascii=False)[:-1] + ',"cases":[\n')
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n],\n")
        f.write('"values":' + json.dumps(python_values(400), ensure_ascii=False) + ",\n")
        f.write('"not_values":' + json.dumps(not_values()) + ",\n")
        f.write('"json":' + json.dumps(json_texts(600), ensure_ascii=False) + "}\n")
    print(f"{len(cases)} cases of {len(families)} templates; mlx agrees on {agreed}")


if __name__ == "__main__":
    main()
