#!/usr/bin/env python3
"""Reads the turns of tests/text/reply_cases.json with SGLang's tool parsers, whole and in pieces, and
counts where they find the calls that were rendered: how far the cases are what others read too.

    compare_reply.py SGLANG_DIR      a folder with sglang/srt/function_call (from its wheel)

What the parsers import besides (server, grammar, environment) is replaced by empty stand-ins."""
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
import types
from typing import Any, Optional
from unittest.mock import MagicMock

from pydantic import BaseModel

HERE = os.path.dirname(os.path.abspath(__file__))
# Family: module and class of SGLang's parser.
PARSER = {"hermes": "qwen25_detector.Qwen25Detector", "qwen3-coder": "qwen3_coder_detector.Qwen3CoderDetector",
          "glm": "glm47_moe_detector.Glm47MoeDetector", "gemma4": "gemma4_detector.Gemma4Detector",
          "minimax-m2": "minimax_m2.MinimaxM2Detector", "mistral": "mistral_detector.MistralDetector",
          "kimi-k2": "kimik2_detector.KimiK2Detector", "lfm2": "lfm2_detector.Lfm2Detector",
          "minicpm5": "minicpm5_detector.MiniCPM5Detector", "kimi-k3": "kimik3_detector.KimiK3Detector",
          "llama3": "llama32_detector.Llama32Detector", "dsml": "deepseekv32_detector.DeepSeekV32Detector",
          "deepseek": "deepseekv31_detector.DeepSeekV31Detector", "apertus": "apertus2509_detector.Apertus2509Detector",
          "gigachat": "gigachat3_detector.GigaChat3Detector", "muse": "muse_glimmer_detector.MuseGlimmerDetector",
          "harmony": "gpt_oss_detector.GptOssDetector", "cohere": "cohere_command4_detector.CohereCommand4Detector"}
PIECES = (1, 4, 16)


class Function(BaseModel):
    name: str
    description: Optional[str] = None
    parameters: Optional[Any] = None
    strict: bool = False


class Tool(BaseModel):
    type: str = "function"
    function: Function


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.startswith(("xgrammar", "sglang.", "outlines", "msgspec")):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        if spec.name.endswith("openai.protocol"):
            module.Tool, module.Function = Tool, Function
        return module

    def exec_module(self, module):
        pass


def load(folder):
    for name in ("sglang", "sglang.srt", "sglang.srt.function_call", "sglang.srt.parser"):
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(folder, *name.split("."))]
        sys.modules[name] = package
    sys.meta_path.append(StandIns())
    for family, place in PARSER.items():
        module, name = place.split(".")
        try:
            yield family, getattr(importlib.import_module("sglang.srt.function_call." + module), name)
        except Exception as e:  # needs more of SGLang than stand-ins give
            print(f"{family}: {e!r:.100}", file=sys.stderr)


def whole(make, text, tools):
    return [(c.name, json.loads(c.parameters)) for c in make().detect_and_parse(text, tools).calls]


def in_pieces(make, text, tools, n):
    detector, calls = make(), {}
    for at in range(0, len(text), n):
        for c in detector.parse_streaming_increment(text[at:at + n], tools).calls:
            got = calls.setdefault(c.tool_index, ["", ""])
            got[0] += c.name or ""
            got[1] += c.parameters or ""
    return [(n, json.loads(a or "{}")) for n, a in calls.values()]


def main():
    parsers = dict(load(sys.argv[1]))
    with open(os.path.join(HERE, "..", "..", "tests", "text", "reply_cases.json"), encoding="utf-8") as f:
        data = json.load(f)
    tools = [Tool(**t) for t in data["tools"]]
    table = {}
    for case in data["cases"]:
        name = case["family"]
        make = parsers.get(name)
        if make is None or not case["calls"]:
            continue
        want = [(c["name"], c["arguments"]) for c in case["calls"]]
        row = table.setdefault(name, [0] * (2 + len(PIECES)))
        row[0] += 1
        ways = [lambda: whole(make, case["text"], tools)]
        ways += [lambda n=n: in_pieces(make, case["text"], tools, n) for n in PIECES]
        for i, way in enumerate(ways):
            try:
                row[1 + i] += way() == want
            except Exception as e:
                if i == 0:
                    print(f"{name} on {case['name']}: {e!r:.100}", file=sys.stderr)
    for name, row in sorted(table.items()):
        pieces = ", ".join(f"{r} by {n}" for r, n in zip(row[2:], PIECES))
        print(f"{name:14} {row[0]:3} turns with calls: {row[1]} read whole; {pieces} characters")


if __name__ == "__main__":
    main()
