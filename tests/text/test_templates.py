"""cairn's templates beside jinja2: a fixed seed of random templates, the templates here over all conversations, the
spans of generation blocks, and the tables of what Jinja2 has."""
import json
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import compare_templates  # noqa: E402
import conversations  # noqa: E402
import fuzz_templates  # noqa: E402
import reference  # noqa: E402

DRIVER = os.path.join(os.path.dirname(os.environ["CAIRN_BIN"]), "tests/text/test_jinja")


def test_random_templates():
    total = bad = failed = 0
    for seed in (1, 2):
        n, b, f = fuzz_templates.compare(DRIVER, seed, 3000, 10)
        total, bad, failed = total + n, bad + b, failed + f
    assert total > 5000 and bad == 0 and failed < total / 2


@pytest.mark.parametrize("name", sorted(os.listdir(os.path.join(HERE, "templates"))))
def test_conversations(name):
    path = os.path.join(HERE, "templates", name)
    [(_, text, extra)] = compare_templates.load(path)
    n, failed, bad = compare_templates.compare(DRIVER, reference.compile_template, name, text, extra,
                                               conversations.contexts())
    assert n >= 5 * 40 and bad == 0 and 0 < failed < n


def test_settings_are_those_of_transformers():
    compile_theirs = reference.transformers_compile()
    if not compile_theirs:
        pytest.skip("transformers is not installed")
    for text in fuzz_templates.cases(7, 300):
        def both(compile_template):
            try:
                return compile_template(text).render(**json.loads(json.dumps(fuzz_templates.CONTEXT)))
            except Exception as e:  # noqa: BLE001
                return type(e)
        a, b = both(compile_theirs), both(reference.compile_template)
        assert a == b or " at 0x" in str(a).lower(), text


def test_every_filter_and_test_is_known():
    env = reference.plain_environment()
    filters, tests = sorted(env.filters), sorted(env.tests)
    texts = ["{{ %s is filter }}" % json.dumps(f) for f in filters] + ["{{ %s is test }}" % json.dumps(t) for t in tests]
    got = fuzz_templates.batch(DRIVER, {"context": {}, "templates": texts})
    assert [t for t, g in zip(texts, got) if g != {"result": "True"}] == []
    got = fuzz_templates.batch(DRIVER, {"context": {}, "templates": ["{{ 'x'|%s }}" % f for f in filters]})
    assert [f for f, g in zip(filters, got) if "not supported" in g.get("error", "")] == []


def test_every_method_is_known():
    """Methods of str, list, tuple and dict: there, refused by the sandbox, or not supported: never "undefined"."""
    cases = [(kind, m) for kind, value in (("'a'", "a"), ("[1]", [1]), ("(1,)", (1,)), ("{'a': 1}", {})) for m in dir(value)
             if not m.startswith("_")]
    texts = ["{{ (%s).%s is defined }}" % c for c in cases]
    got = fuzz_templates.batch(DRIVER, {"context": {}, "templates": texts})
    want = [reference.render(t, {})[0] for t in texts]
    assert [(c, w, g) for c, w, g in zip(cases, want, got) if g.get("result") != w] == []


@pytest.mark.parametrize("text", [
    "a{% generation %}é{% endgeneration %}b{% generation %}{% endgeneration %}",
    "x{% for i in [1, 2] %}<{% generation %}{{ i }}世{% endgeneration %}>{% endfor %}",
    "{% macro m() %}p{% generation %}q{% endgeneration %}{% endmacro %}ab{{ m() }}{{ m() }}",
    "ab{% set s %}c{% generation %}d{% endgeneration %}{% endset %}{{ s }}",
    "a{% generation %}b{% generation %}c{% endgeneration %}d{% endgeneration %}",
    "a{% filter upper %}b{% generation %}c{% endgeneration %}{% endfilter %}{% generation %}z{% endgeneration %}",
    None])
def test_spans_of_generation(text):
    contexts = [{}]
    if text is None:
        with open(os.path.join(HERE, "templates/turns.jinja"), encoding="utf-8") as f:
            text = f.read()
        contexts = [dict(c, bos_token="<é>") for c in conversations.contexts()]
    cases = [{"template": text, "context": c, "spans": True} for c in contexts]
    for case, got in zip(cases, fuzz_templates.batch(DRIVER, cases)):
        try:
            out, spans = reference.spans(text, json.loads(json.dumps(case["context"])))
        except Exception:  # noqa: BLE001
            assert "error" in got
            continue
        assert got["result"] == out
        at = [len(out[:i].encode()) for s in spans for i in s]
        assert got["spans"] == [list(x) for x in zip(at[::2], at[1::2])]


def test_commands_of_several_templates(tmp_path):
    """tool_use with tools, default without, any by its name: the rule of transformers' get_chat_template."""
    with open(os.path.join(HERE, "data/bytes_smollm.json"), encoding="utf-8") as f:
        (tmp_path / "tokenizer.json").write_text(json.dumps(json.load(f)["tokenizer"]), encoding="utf-8")
    (tmp_path / "m.json").write_text(json.dumps([{"role": "user", "content": "hi"}]))
    (tmp_path / "t.json").write_text(json.dumps(conversations.TOOLS))

    def render(*more):
        p = subprocess.run([os.environ["CAIRN_BIN"], "render", tmp_path, "--messages", tmp_path / "m.json", *more],
                           capture_output=True, check=False)
        return p.stdout.decode() if p.returncode == 0 else p.stderr.decode()

    def config(named):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(
            {"chat_template": [{"name": k, "template": v} for k, v in named.items()]}))
    config({"default": "D{{ messages[0].content }}", "tool_use": "T{{ tools|length }}", "rag": "R"})
    tools = ("--tools", tmp_path / "t.json")
    assert (render(), render(*tools)) == ("Dhi", "T2")
    (tmp_path / "rag.jinja").write_text("rag")
    assert render("--template", tmp_path / "rag.jinja") == "R"
    config({"tool_use": "T", "rag": "R"})
    assert render(*tools) == "T" and "none is the default: tool_use, rag" in render()
    (tmp_path / "chat_template.jinja").write_text("J")
    assert (render(), render(*tools)) == ("J", "J")  # the file replaces the whole list
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates/tool_use.jinja").write_text("A")
    assert (render(), render(*tools)) == ("J", "A")
    config({"default": "D", "tool_use": "{% if %}"})
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "additional_chat_templates/tool_use.jinja").unlink()
    assert "tool_use" in render()
