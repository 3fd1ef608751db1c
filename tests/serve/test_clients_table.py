"""docs/clients.md: each cell of its table names tests that are there, or says why there is none, and every client's tests of
tests/clients stand in it."""
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


def table():
    """Its rows: what, and a cell for each of FILES."""
    with open(os.path.join(ROOT, "docs/clients.md"), encoding="utf-8") as f:
        rows = [[c.strip() for c in line.split("|")[1:-1]] for line in f if line.count("|") == len(FILES) + 2]
    assert len(rows) > 20
    return rows[2:]


def test_cells():
    for what, *cells in table():
        for own, cell in zip(FILES, cells):
            assert re.fullmatch("(refused: )?`[^`]+`(, `[^`]+`)*|— [^`|]+", cell), (what, own, cell)


def test_names():
    named = set()
    for _, *cells in table():
        for own, cell in zip(FILES, cells):
            for name in re.findall(r"`([^`]+)`", cell):
                file, test = name.split("::") if "::" in name else (own, name)
                assert test in names_in(file), name
                named.add((file, test))
    for own in [*FILES[3:], "test_sdks.py"]:
        missing = {t for t in names_in(own) if (own, t) not in named}
        assert not missing, (own, missing)
