"""The coding agent that claude-agent-sdk carries, over /v1/messages with a scripted model: files are read and edited, a command
is run, and the agent is told to stop.  It gets a home and an environment of its own: no settings or keys of the user's."""
import os
import signal

import agent
import pytest
import silence
import util
from picture import png
from script import HELLO, LONG, call, says

sdk = pytest.importorskip("claude_agent_sdk", reason="no claude-agent-sdk: make test-clients installs it")
PROGRAM = os.path.join(os.path.dirname(sdk.__file__), "_bundled", "claude")
pytestmark = pytest.mark.skipif(not os.path.exists(PROGRAM), reason="this claude-agent-sdk carries no program")


def start(server, folder, prompt, model="fake-model", **env):
    (folder / "home").mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none",
           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "0", **env}
    return agent.start([PROGRAM, "--bare", "-p", "--model", model, "--verbose", "--output-format", "stream-json",
                        "--max-turns", "9", "--allowedTools", "Read,Edit,Bash(cat *)"], folder, env, prompt)


def finish(p):
    """The messages that it told, the last of them the result."""
    told = agent.told(p)
    results = [m for m in told if m["type"] == "result"]
    assert len(results) == 1, told[-5:]
    return told, results[0]


def blocks(told, kind):
    return [b for m in told if m["type"] in ("assistant", "user") and isinstance(m["message"]["content"], list)
            for b in m["message"]["content"] if b["type"] == kind]


def test_edits_a_file(server, tmp_path):
    """Four turns, two calls in some; each file that is read says what the next turn does."""
    at = {n: str(tmp_path / n) for n in ("code.txt", "one.txt", "two.txt", "three.txt")}
    (tmp_path / "code.txt").write_text("value = 1\n")
    (tmp_path / "one.txt").write_text(says(
        call("Edit", {"file_path": at["code.txt"], "old_string": "value = 1", "new_string": "value = 2 # \"é\""}) +
        call("Read", {"file_path": at["two.txt"]})))
    (tmp_path / "two.txt").write_text(says(call("Bash", {"command": "cat code.txt three.txt", "description": "Shows it"})))
    (tmp_path / "three.txt").write_text(says("All done."))
    told, result = finish(start(server, tmp_path, says(
        "<think>hm</think>I look." + call("Read", {"file_path": at["code.txt"]}) + call("Read", {"file_path": at["one.txt"]}))))
    assert (result["subtype"], result["is_error"], result["result"]) == ("success", False, "All done."), result
    assert [b["name"] for b in blocks(told, "tool_use")] == ["Read", "Read", "Edit", "Read", "Bash"]
    results = blocks(told, "tool_result")
    assert {b["tool_use_id"] for b in results} == {b["id"] for b in blocks(told, "tool_use")}
    assert not any(b.get("is_error") for b in results), results
    assert (tmp_path / "code.txt").read_text() == "value = 2 # \"é\"\n"
    assert [b["thinking"] for b in blocks(told, "thinking")] == ["hm"]
    assert [b["text"] for b in blocks(told, "text")] == ["I look.", "All done."]
    assert result["usage"]["output_tokens"] > 0 and result["usage"]["input_tokens"] > 0


def test_call_that_fails(server, tmp_path):
    """A tool's error goes back to the model as one; the second result says what comes then."""
    (tmp_path / "one.txt").write_text(says("Not there."))
    told, result = finish(start(server, tmp_path, says(
        call("Read", {"file_path": str(tmp_path / "none.txt")}) + call("Read", {"file_path": str(tmp_path / "one.txt")}))))
    assert result["result"] == "Not there." and [bool(b.get("is_error")) for b in blocks(told, "tool_result")] == [True, False]


def test_image(server, tmp_path):
    """A picture that the agent reads ends its turn, with words that say why; nothing is asked again."""
    (tmp_path / "p.png").write_bytes(png())
    told, result = finish(start(server, tmp_path, says("I look." + call("Read", {"file_path": str(tmp_path / "p.png")}))))
    (sent,) = blocks(told, "tool_result")
    assert sent["content"][0]["type"] == "image", sent
    assert result["is_error"] and "`messages.2.content.0.content.0` is a block of type `image`" in result["result"], result
    assert "the model reads text alone" in result["result"]


def test_unknown_model(server, tmp_path):
    _, result = finish(start(server, tmp_path, "hi", model="nope"))
    assert result["is_error"] and "nope" in result["result"], result


def test_failure_in_a_stream(server, tmp_path):
    _, result = finish(start(server, tmp_path, "@fail=3 "))
    assert result["is_error"] and "told to fail" in result["result"], result


def test_keys(locked, tmp_path):
    _, result = finish(start(locked, tmp_path, "hi", ANTHROPIC_API_KEY="sesame"))
    assert (result["is_error"], result["result"]) == (False, HELLO), result
    _, result = finish(start(locked, tmp_path, "hi", ANTHROPIC_API_KEY="Sesame"))
    assert result["is_error"] and "API key" in result["result"], result


def test_long_prefill(server, tmp_path):
    """It is told to bear less silence than the prompt takes, before the first byte and after it, and to ask once."""
    limit = str(1000 * silence.IDLE_S)
    gate = util.Gate(tmp_path)
    p = start(server, tmp_path, silence.held(gate), CLAUDE_ENABLE_BYTE_WATCHDOG="1", CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=limit,
              CLAUDE_STREAM_FIRST_BYTE_TIMEOUT_MS=limit, API_TIMEOUT_MS=limit, CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK="1")
    with agent.ending(p):
        silence.wait(server, gate, p.poll)
        _, result = finish(p)
        assert (result["is_error"], result["result"]) == (False, silence.AT_LAST), result


def test_stopped(server, tmp_path):
    """A long answer that nobody waits for any more leaves nothing at the engine."""
    p = start(server, tmp_path, LONG)
    with agent.ending(p):
        server.wait_rows(1, 0)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=agent.MOST_SECONDS)
        server.wait_rows()
