"""While nothing is known of an answer, something is sent on every route that streams: requests in their prefill, those
that wait for a place, and those whose model is being loaded."""
import json

import pytest
import util

TEXT = "@prefill=%d" % util.HOUR
SAID = {"model": "fake-model", "stream": True, "messages": [{"role": "user", "content": TEXT}]}
ROUTES = {
    "/v1/chat/completions": (SAID, b": waiting\n\n"), "/v1/completions": ({"model": "fake-model", "stream": True, "prompt": TEXT}, b": waiting\n\n"),
    "/v1/responses": ({"model": "fake-model", "stream": True, "input": TEXT}, b"event: response.in_progress"),
    "/v1/messages": (dict(SAID, max_tokens=9), b": waiting\n\n"), "/api/chat": (SAID, b'"content":""},"done":false}\n'),
    "/api/generate": ({"model": "fake-model", "prompt": TEXT}, b'"response":"","done":false}\n'),
}


@pytest.mark.parametrize("places", [12])
def test_every_stream(places, tmp_path):
    """All at once, as each beat takes its nine seconds: half of them are in their prefill, half wait for those, and as many
    for a model behind a gate, of which no response is known yet."""
    (tmp_path / "open-fake-model").touch()
    with util.serving("--models", 3, "--gate", tmp_path, "--seqs", places // 2, "--queue", places) as s:
        assert s.chat()[0] == 200  # its model is there now
        held = []
        for path, (body, beat) in ROUTES.items():
            c = s.connect()
            c.sendall(util.build("POST", path, dict(body, model="third")))
            held.append((c, "", b"\r\n1\r\n \r\n" if path[:4] == "/api" else b": waiting\n\n"))
        for _ in range(2):
            for path, (body, beat) in ROUTES.items():
                c = s.connect()
                c.sendall(util.build("POST", path, body))
                held.append((c, path, beat))
        s.wait_rows(places // 2, places // 2)
        for c, path, beat in held:
            said = util.read_until(c, beat)
            while path == "/v1/responses" and said.count(beat) < 2:  # the first is no beat
                more = c.recv(65536)
                assert more, said
                said += more
            if path[:4] == "/api":  # clients ask each line for these
                line = json.loads(said[:said.index(beat) + len(beat)].rsplit(b"\r\n", 1)[1])
                assert line["model"] == "fake-model" and line["created_at"], line
            c.close()
        s.wait_rows()
        assert {m["id"]: m["state"] for m in s.stats()["known_models"]}["third"] == "loading"
        (tmp_path / "open").touch()
