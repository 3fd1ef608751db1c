"""The Codex program against the server: a test double of the engine says what the model would, Codex does it."""
import os
import signal

import agent
import pytest
import silence
import util
from picture import png
from script import HELLO, LONG, call, says

codex = pytest.importorskip("codex_cli_bin")


def start(server, folder, prompt, model="fake-model", key="none"):
    (folder / "home").mkdir(exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    (folder / "home/config.toml").write_text(f"""
model = "{model}"
model_provider = "cairn"
[model_providers.cairn]
name = "cairn"
base_url = "{server.url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = {1000 * silence.IDLE_S}
env_key = "KEY"
""")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "CODEX_HOME": str(folder / "home"), "KEY": key}
    return agent.start([codex.bundled_codex_path(), "exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox",
                        "-C", folder / "work", "-"], None, env, prompt)


def finish(p):
    """The items that were completed, and the last event."""
    told = agent.told(p)
    return [e["item"] for e in told if e["type"] == "item.completed"], told[-1]


def of(items, kind, key="text"):
    return [i[key] for i in items if i["type"] == kind]


def test_edits_a_file(server, tmp_path):
    """Three turns; what each command prints says what the next turn does."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/code.txt").write_text("value = 1\n")
    (tmp_path / "work/one.txt").write_text(says("Two." + call("exec_command", {"cmd": "sed -i 's/1/2 # \"é\"/' code.txt; cat two.txt"})))
    (tmp_path / "work/two.txt").write_text(says("All done."))
    items, end = finish(start(server, tmp_path, says("<think>hm</think>I look." + call("exec_command", {"cmd": "cat one.txt"}))))
    assert end["type"] == "turn.completed" and end["usage"]["output_tokens"] > 0 and end["usage"]["reasoning_output_tokens"] > 0, end
    assert of(items, "reasoning") == ["hm"] and of(items, "agent_message") == ["I look.", "Two.", "All done."]
    assert of(items, "command_execution", "exit_code") == [0, 0]
    assert (tmp_path / "work/code.txt").read_text() == "value = 2 # \"é\"\n"


def test_patch(server, tmp_path):
    """Its own way to edit: a patch as a command, which it takes apart and applies by itself."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/code.txt").write_text("value = 1\n")
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: code.txt\n@@\n-value = 1\n+value = 2 # \"é\"\n*** End Patch\nEOF\n"
    (tmp_path / "work/one.txt").write_text(says("All done."))
    items, end = finish(start(server, tmp_path, says(call("exec_command", {"cmd": patch}) + call("exec_command", {"cmd": "cat one.txt"}))))
    assert (tmp_path / "work/code.txt").read_text() == "value = 2 # \"é\"\n", items
    assert end["type"] == "turn.completed" and [c["kind"] for i in of(items, "file_change", "changes") for c in i] == ["update"]


def test_call_that_fails(server, tmp_path):
    """A command's status goes back to the model."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/one.txt").write_text(says("Not there."))
    items, end = finish(start(server, tmp_path, says(
        call("exec_command", {"cmd": "cat none.txt"}) + call("exec_command", {"cmd": "cat one.txt"}))))
    assert end["type"] == "turn.completed" and of(items, "agent_message") == ["Not there."]
    assert sorted(of(items, "command_execution", "exit_code")) == [0, 1]


def test_image(server, tmp_path):
    """A picture that it looks at ends its turn, with words that say why."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/p.png").write_bytes(png())
    _, end = finish(start(server, tmp_path, says("I look." + call("view_image", {"path": str(tmp_path / "work/p.png")}))))
    assert end["type"] == "turn.failed" and "the model reads text alone" in end["error"]["message"], end


def test_unknown_model(server, tmp_path):
    _, end = finish(start(server, tmp_path, "hi", model="nope"))
    assert end["type"] == "turn.failed" and "nope" in end["error"]["message"], end


def test_failure_in_a_stream(server, tmp_path):
    _, end = finish(start(server, tmp_path, "@fail=3 "))
    assert end["type"] == "turn.failed" and "told to fail" in end["error"]["message"], end


def test_keys(locked, tmp_path):
    items, end = finish(start(locked, tmp_path, "hi", key="sesame"))
    assert end["type"] == "turn.completed" and of(items, "agent_message") == [HELLO]
    _, end = finish(start(locked, tmp_path, "hi", key="Sesame"))
    assert end["type"] == "turn.failed" and "API key" in end["error"]["message"], end


def test_long_prefill(server, tmp_path):
    """It hears of a prompt that takes longer than it bears silence."""
    gate = util.Gate(tmp_path)
    p = start(server, tmp_path, silence.held(gate))
    with agent.ending(p):
        silence.wait(server, gate, p.poll)
        items, end = finish(p)
        assert end["type"] == "turn.completed" and of(items, "agent_message") == [silence.AT_LAST]


def test_stopped(server, tmp_path):
    """A long answer that nobody waits for any more leaves nothing at the engine."""
    p = start(server, tmp_path, LONG)
    with agent.ending(p):
        server.wait_rows(1, 0)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=agent.MOST_SECONDS)
        server.wait_rows()
