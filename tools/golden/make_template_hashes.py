#!/usr/bin/env python3
"""Makes src/api/api_doctor_templates.inc: SHA-256 of chat templates that `cairn doctor` knows by name.

  make_template_hashes.py FOLDER…     folders with NAME.jinja (llama.cpp's models/templates) or
                                      NAME/tokenizer_config.json or NAME.gguf (the default model's:
                                      HuggingFaceTB-SmolLM2-135M-Instruct.gguf)

A template is hashed without the white space at its end.  BAD below is kept by hand: templates as published that
lose something of a conversation, seen by rendering the conversations of tests/text/conversations.py with the
reference; the reason says what."""
import glob
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BAD = {
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "leaves out the tools it is given and does not close a tool's result before a user's turn",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "leaves out the tools it is given and does not close a tool's result before a user's turn",
}


def found(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.jinja"))):
        with open(path, encoding="utf-8") as f:
            yield os.path.basename(path)[:-6], f.read()
    for path in sorted(glob.glob(os.path.join(folder, "*", "tokenizer_config.json"))):
        with open(path, encoding="utf-8") as f:
            t = json.load(f).get("chat_template")
        if isinstance(t, str):
            yield os.path.basename(os.path.dirname(path)), t
    for path in sorted(glob.glob(os.path.join(folder, "*.gguf"))):
        from gguf import GGUFReader  # the other kinds need no package
        field = GGUFReader(path).get_field("tokenizer.chat_template")
        if field:
            yield os.path.basename(path)[:-5], field.contents()


def main():
    seen, lines = {}, []
    for folder in sys.argv[1:]:
        for name, text in found(folder):
            h = hashlib.sha256(text.rstrip(" \t\r\n").encode()).hexdigest()
            if h not in seen:
                seen[h] = name
                lines.append((name.lower(), h, name))
    bad_hashes = {h: BAD[n] for h, n in seen.items() if n in BAD}
    path = os.path.join(HERE, "../../src/api/api_doctor_templates.inc")
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Chat templates by hash: name, and what is wrong with it or NULL.  Made by\n"
                "   tools/golden/make_template_hashes.py from llama.cpp's models/templates, tokenizer configurations and GGUF files. */\n")
        for _, h, name in sorted(lines):
            why = '"%s"' % bad_hashes[h] if h in bad_hashes else "NULL"
            f.write('{"%s",\n "%s", %s},\n' % (h, name, why))
    print(len(lines), "templates,", len(bad_hashes), "of them bad")


if __name__ == "__main__":
    main()
