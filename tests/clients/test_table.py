"""docs/clients.md: every test that its table names is there, and every client's tests of tests/clients stand in it."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FILES = ["test_openai_client.py", "test_anthropic_client.py", "test_ollama.py", "test_litellm.py", "test_langchain.py",
         "test_pydantic_ai.py", "test_claude_agent.py", "test_codex.py"]  # of the columns, in their order


def names_in(name):
    for folder in "serve", "clients":
        path = os.path.join(ROOT, "tests", folder, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                return set(re.findall(r"^def (test_\w+)", f.read(), re.M))
    raise AssertionError("no " + name)


def test_names():
    with open(os.path.join(ROOT, "docs/clients.md"), encoding="utf-8") as f:
        rows = [line.split("|")[2:-1] for line in f if line.count("|") == len(FILES) + 2]
    assert len(rows) > 12
    named = set()
    for row in rows[2:]:
        for own, cell in zip(FILES, row):
            for name in re.findall(r"`([^`]+)`", cell):
                file, test = name.split("::") if "::" in name else (own, name)
                assert test in names_in(file), name
                named.add((file, test))
    for own in FILES[3:]:
        missing = {t for t in names_in(own) if (own, t) not in named}
        assert missing <= {"test_call_that_fails"}, (own, missing)
