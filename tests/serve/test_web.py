"""The page's files: headers, caching, size, nothing from elsewhere, scripts that parse, and the renderer of Markdown."""
import json
import os
import re
import shutil
import subprocess

import pytest
import util

WEB = os.path.join(util.ROOT, "src/serve/web")
FILES = sorted(os.listdir(WEB))
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
MOST = 150_000  # bytes of all files: on a phone's network the page is still there in a second


def source(name):
    with open(os.path.join(WEB, name), "rb") as f:
        return f.read()


@pytest.mark.parametrize("name", FILES)
def test_file(server, name):
    path = "/" if name == "index.html" else "/ui/" + name
    status, h, body = server.request("GET", path)
    assert (status, body) == (200, source(name))
    assert h["content-type"] == TYPES[os.path.splitext(name)[1]]
    assert h["x-content-type-options"] == "nosniff" and h["referrer-policy"] == "no-referrer"
    policy = dict(d.strip().split(" ", 1) for d in h["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in h["content-security-policy"]
    assert h["cache-control"] == "no-cache" and re.fullmatch(r'"[0-9a-f]{16}"', h["etag"])
    for known in (h["etag"], "W/" + h["etag"], '"x", %s' % h["etag"], "*"):
        status, again, body = server.request("GET", path, headers={"If-None-Match": known})
        assert (status, body) == (304, b"") and again["etag"] == h["etag"] and "content-length" not in again
    assert server.request("GET", path, headers={"If-None-Match": '"0000000000000000"'})[0] == 200
    status, head, body = server.request("HEAD", path)
    assert (status, body) == (200, b"") and int(head["content-length"]) == len(source(name))


def test_kept_connection(server):
    """A 304 has no body: what follows on the connection is the next answer."""
    etag = server.request("GET", "/")[1]["etag"]
    with server.connect() as s:
        s.sendall(util.build("GET", "/", headers={"If-None-Match": etag}))
        assert util.read_until(s, b"\r\n\r\n").startswith(b"HTTP/1.1 304 Not Modified\r\n")
        s.sendall(util.build("GET", "/health"))
        assert util.read_one(s)[2] == b'{"status": "ok"}'


@pytest.mark.parametrize("path, to", [("/chat", "/#/chat"), ("/status", "/#/status"), ("/curves", "/#/sampler")])
def test_other_addresses(server, path, to):
    """Each leads to a part of the page that there is."""
    status, h, body = server.request("GET", path)
    assert (status, h["location"], body) == (302, to, b"")
    assert 'id="page-%s"' % to[3:] in source("index.html").decode()


def test_no_key_is_asked():
    with util.serving("--key", "secret") as s:
        assert s.request("GET", "/")[0] == s.request("GET", "/ui/app.js")[0] == 200
        assert s.request("GET", "/stats")[0] == 401


@pytest.mark.parametrize("path", ["/ui/../router.c", "/ui/..%2findex.html", "/ui/%00", "/ui//index.html", "/ui/INDEX.HTML"])
def test_nothing_else(server, path):
    assert server.request("GET", path)[0] in (400, 404)


def test_size_and_sources():
    assert sum(len(source(n)) for n in FILES) < MOST
    for name in FILES:
        text = source(name).decode()
        addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`)]*", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, (name, addresses)
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"):
            assert word not in text, (name, word)
    html = source("index.html").decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", html)
    used = set(re.findall(r'(?:href|src)="/ui/([^"]+)"', html))
    for name in FILES:
        used |= set(re.findall(r'from "\./([^"]+)"', source(name).decode()))
    assert used | {"index.html"} == set(FILES)


node = pytest.mark.skipif(not shutil.which("node"), reason="no node")


def run_node(tmp_path, script):
    for name in FILES:
        if name.endswith(".js"):
            (tmp_path / name.replace(".js", ".mjs")).write_text(re.sub(r'from "\./(\w+)\.js"', r'from "./\1.mjs"', source(name).decode()))
    (tmp_path / "main.mjs").write_text(script)
    r = subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=2 * util.PATIENCE, check=False)
    assert r.returncode == 0, r.stderr
    return r.stdout


@node
def test_scripts_parse(tmp_path):
    run_node(tmp_path, "")
    for f in tmp_path.glob("*.mjs"):
        r = subprocess.run(["node", "--check", f], capture_output=True, text=True, timeout=2 * util.PATIENCE, check=False)
        assert r.returncode == 0, r.stderr


BLOCKS = [
    ("a\nb\n\nc", [{"type": "para", "text": "a\nb"}, {"type": "para", "text": "c"}]),
    ("## T ##", [{"type": "head", "level": 2, "text": "T"}]),
    ("```py x\n  a\n```", [{"type": "code", "lang": "py", "text": "  a", "open": False}]),
    ("~~~\n```", [{"type": "code", "lang": "", "text": "```", "open": True}]),
    ("---", [{"type": "rule"}]),
    ("> a\n> b", [{"type": "quote", "blocks": [{"type": "para", "text": "a\nb"}]}]),
    ("- [x] a\n- b\n  1. c", [{"type": "list", "ordered": False, "start": 1, "items": [
        {"task": True, "blocks": [{"type": "para", "text": "a"}]},
        {"task": None, "blocks": [{"type": "para", "text": "b"}, {"type": "list", "ordered": True, "start": 1, "items": [{"task": None, "blocks": [{"type": "para", "text": "c"}]}]}]}]}]),
    ("7) a", [{"type": "list", "ordered": True, "start": 7, "items": [{"task": None, "blocks": [{"type": "para", "text": "a"}]}]}]),
    ("a|b\n-|-:\n1|2|3", [{"type": "table", "head": ["a", "b"], "rows": [["1", "2"]], "align": ["left", "right"]}]),
    ("<b>x</b>", [{"type": "para", "text": "<b>x</b>"}]),
]
SPANS = [
    ("a **b** `c*d*` _e_", [{"type": "text", "text": "a "}, {"type": "strong", "spans": [{"type": "text", "text": "b"}]}, {"type": "text", "text": " "},
                            {"type": "code", "text": "c*d*"}, {"type": "text", "text": " "}, {"type": "em", "spans": [{"type": "text", "text": "e"}]}]),
    ("snake_case_name 2*3*4", [{"type": "text", "text": "snake_case_name 2"}, {"type": "em", "spans": [{"type": "text", "text": "3"}]}, {"type": "text", "text": "4"}]),
    ("[x](https://e.org/a_(b))", [{"type": "link", "url": "https://e.org/a_(b)", "spans": [{"type": "text", "text": "x"}]}]),
    ("[x](javascript:alert(1))", [{"type": "link", "url": None, "spans": [{"type": "text", "text": "x"}]}]),
    ("[x](data:text/html,a)", [{"type": "link", "url": None, "spans": [{"type": "text", "text": "x"}]}]),
    ("![p](https://e.org/p.png)", [{"type": "link", "url": "https://e.org/p.png", "spans": [{"type": "text", "text": "p"}]}]),
    (r"\*a\* <img src=x>", [{"type": "text", "text": "*a* <img src=x>"}]),
]


@node
def test_markdown(tmp_path):
    ask = json.dumps([[b[0] for b in BLOCKS], [s[0] for s in SPANS]])
    out = run_node(tmp_path, """
import { parse, inline, pieces } from "./markdown.mjs";
const [blocks, spans] = %s;
console.log(JSON.stringify([blocks.map((b) => parse(b)), spans.map((s) => inline(s))]));
// Whatever is written ends soon, and code is what it was.
const parts = ["*", "_", "`", "```", "[", "](", ")", "|", "-", "\\n", "\\n\\n", "> ", "1. ", "  ", "a", "#", "<", "\\\\", "~~", "https://a"];
let seed = 1;
const next = () => (seed = (seed * 48271) %% 2147483647);
for (let i = 0; i < 3000; i++) {
  let s = "";
  for (let k = 0; k < 40; k++) s += parts[next() %% parts.length];
  for (const b of parse(s)) inline(b.text || "");
  if (pieces(s, "js").map((p) => p[1]).join("") !== s) throw new Error(s);
}
// Were either quadratic in these by more than a little, the program's time limit would end it.
parse("> ".repeat(5000) + "- ".repeat(5000));
inline("*_[`".repeat(2500));
""" % ask)
    blocks, spans = json.loads(out)
    assert blocks == [b[1] for b in BLOCKS]
    assert spans == [s[1] for s in SPANS]


@node
def test_events(tmp_path):
    """A stream cut anywhere gives the same events."""
    run_node(tmp_path, """
globalThis.sessionStorage = globalThis.localStorage = { getItem: () => null };
const { Events } = await import("./api.mjs");
const text = ': beat\\n\\ndata: {"a": 1}\\n\\nevent: x\\ndata: b\\n\\ndata: [DONE]\\n\\n';
for (let cut = 0; cut <= text.length; cut++) {
  const e = new Events();
  const got = [...e.feed(text.slice(0, cut)), ...e.feed(text.slice(cut))];
  if (JSON.stringify(got) !== JSON.stringify(['{"a": 1}', "b", "[DONE]"])) throw new Error(cut + JSON.stringify(got));
}
""")
