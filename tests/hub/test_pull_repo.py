"""cairn pull org/name against a host on loopback: layout, resume, checks, refusals."""
import json
import os
import random
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub_server import COMMIT, PULL_S, Host, failed  # noqa: E402

CAIRN = os.environ.get("CAIRN_BIN", os.path.join(os.path.dirname(__file__), "../../build/cairn"))
BYTES = random.Random(1).randbytes
WEIGHTS = BYTES(3_000_000)
FILES = {
    "config.json": b'{"model_type": "llama"}',
    "tokenizer.json": BYTES(100_000),
    "tokenizer_config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "consolidated.safetensors": b"the same again",
    "README.md": b"no need",
    "original/params.json": b"{}",
    "pytorch_model.bin": b"no",
}
TAKEN = {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


@pytest.fixture
def host():
    h = Host(FILES)
    yield h
    h.close()


@pytest.fixture
def pull(host, tmp_path):
    def run(word="org/name", verb=("pull",), **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        env.update(HF_ENDPOINT=host.url, HF_HUB_CACHE=str(tmp_path / "hub"),
                   XDG_CACHE_HOME=str(tmp_path / "xdg"), HF_TOKEN="secret-1", **more)
        return subprocess.run([CAIRN, *verb, word], env=env, capture_output=True, text=True,
                              timeout=PULL_S, check=False)
    run.repo = tmp_path / "hub" / "models--org--name"
    run.snapshot = run.repo / "snapshots" / COMMIT
    return run


def fetched(p, path):
    assert p.returncode == 0, p.stderr
    assert p.stdout == "%s\n" % path


def test_fetches_what_it_takes_to_run(host, pull):
    fetched(pull(), pull.snapshot)
    assert {p.name for p in pull.snapshot.iterdir()} == TAKEN
    for name in TAKEN:
        link = os.readlink(pull.snapshot / name)
        assert link.startswith("../../blobs/")
        assert (pull.snapshot / name).read_bytes() == FILES[name]
    assert (pull.repo / "refs" / "main").read_text() == COMMIT
    assert all(a == "Bearer secret-1" for _, _, a in host.asked)
    n = len(host.asked)
    fetched(pull(), pull.snapshot)
    assert len(host.asked) == n + 1  # the list alone


def test_hugging_face_tools_read_the_cache(host, pull, tmp_path):
    hf = pytest.importorskip("huggingface_hub")
    fetched(pull(), pull.snapshot)
    found = hf.try_to_load_from_cache("org/name", "model.safetensors", cache_dir=tmp_path / "hub")
    assert open(found, "rb").read() == WEIGHTS


def test_goes_on_within_a_run(host, pull):
    host.cut = [None, None, None, 1_000_000]
    host.files = {k: FILES[k] for k in sorted(TAKEN - {"model.safetensors"})}
    host.files["model.safetensors"] = WEIGHTS
    fetched(pull(), pull.snapshot)
    assert host.ranges("model.safetensors") == [None, "bytes=1000000-"]


def test_goes_on_in_the_next_run(host, pull):
    host.files = {"model.safetensors": WEIGHTS}
    host.cut = [1_000_000, 0, 0, 0]
    failed(pull(), "org/name: model.safetensors")
    assert not (pull.repo / "refs").exists()
    part = [p for p in (pull.repo / "blobs").iterdir()]
    assert len(part) == 1 and part[0].name.endswith(".incomplete")
    assert part[0].read_bytes() == WEIGHTS[:1_000_000]
    host.cut, host.asked = [], []
    fetched(pull(), pull.snapshot)
    assert host.ranges("model.safetensors") == ["bytes=1000000-"]
    assert (pull.snapshot / "model.safetensors").read_bytes() == WEIGHTS


def test_a_host_without_ranges(host, pull):
    host.files = {"model.safetensors": WEIGHTS}
    host.no_range, host.cut = True, [1_000_000]
    fetched(pull(), pull.snapshot)
    assert (pull.snapshot / "model.safetensors").read_bytes() == WEIGHTS


def test_wrong_bytes_are_deleted(host, pull):
    host.corrupt = {"model.safetensors"}
    failed(pull(), "SHA-256", "expected")
    assert not [p for p in (pull.repo / "blobs").iterdir() if p.name.endswith(".incomplete")]
    assert not (pull.repo / "refs").exists()
    host.corrupt = set()
    fetched(pull(), pull.snapshot)


def test_a_longer_file_than_listed_is_deleted(host, pull):
    body = json.loads(host.list_json())
    host.listing = json.dumps(body).encode()
    host.files["config.json"] = b"x" * 5000
    failed(pull(), "grows over")
    assert not [p for p in (pull.repo / "blobs").iterdir() if p.name.endswith(".incomplete")]


@pytest.mark.parametrize("code,says", [(404, "expected one that is there"), (401, "HF_TOKEN"),
                                       (403, "accept its terms"), (418, "HTTP 418; expected 200")])
def test_refusals(host, pull, code, says):
    host.status["list"] = code
    failed(pull(), says)
    assert "secret-1" not in pull().stderr


def test_a_gated_file(host, pull):
    host.status["model.safetensors"] = 403
    failed(pull(), "HF_TOKEN")


def test_a_file_that_went_away(host, pull):
    host.status["model.safetensors"] = 404
    failed(pull(), "model.safetensors", "404")


def test_a_server_in_trouble_is_asked_again(host, pull):
    host.status["list"] = 503
    failed(pull(), "503")
    assert len(host.asked) == 3


def test_redirects_within_the_host(host, pull):
    host.redirect["model.safetensors"] = "/elsewhere/org/name/resolve/%s/model.safetensors" % COMMIT
    fetched(pull(), pull.snapshot)


def test_redirects_keep_the_token_home(host, pull):
    other = Host(FILES)
    try:
        host.redirect["model.safetensors"] = "%s/org/name/resolve/%s/model.safetensors" % (
            other.url, COMMIT)
        fetched(pull(), pull.snapshot)
        assert other.asked and all(a is None for _, _, a in other.asked)
    finally:
        other.close()


@pytest.mark.parametrize("to", ["http://192.0.2.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x",
                                "http://user:pw@127.0.0.1/x", "http://127.0.0.1.example.invalid/x"])
def test_redirects_that_are_refused(host, pull, to):
    host.redirect["model.safetensors"] = to
    failed(pull(), "expected an https:// address")


def test_redirects_without_end(host, pull):
    host.redirect["model.safetensors"] = "/org/name/resolve/%s/model.safetensors" % COMMIT
    failed(pull(), "redirects")


@pytest.mark.parametrize("name", ["tokenizer/../../../x", "../tokenizer.json", "/tokenizer.json",
                                  "tokenizer\x00.json", "tokenizer\n.json"])
def test_hostile_file_names(host, pull, tmp_path, name):
    host.extra = [{"rfilename": name, "size": 2, "blobId": "0" * 40}]
    before = sorted(tmp_path.rglob("*"))
    p = pull()
    if p.returncode == 0:  # not of those that are taken
        assert {x.name for x in pull.snapshot.iterdir()} == TAKEN
    else:
        failed(p, "expected a file's name")
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("change", [{"blobId": "../../x"}, {"size": -1}, {"size": "2"},
                                    {"size": 1 << 60}, {"blobId": None}])
def test_hostile_entries(host, pull, change):
    host.extra = [{"rfilename": "tokenizer.model", "size": 2, "blobId": "0" * 40, **change}]
    failed(pull(), "expected a size and a hash")


@pytest.mark.parametrize("listing", [b"", b"{", b"[]", b'{"sha": "../..", "siblings": []}',
                                     b'{"sha": "%s"}' % COMMIT.encode(), b" " * (9 << 20)])
def test_hostile_lists(host, pull, listing):
    host.listing = listing
    failed(pull(), "org/name" if len(listing) < 100 else "expected")


@pytest.mark.parametrize("word", ["../x/y", "a/../b", "a/b/c", "a/..", "./b", "a/b@../c", "a/b@",
                                  "a/b:", "a/b:../x.gguf", "a/b:x.bin", "/etc", "a--b/c", "-a/b",
                                  "a/" + "b" * 100, "a/b\n"])
def test_hostile_words(host, pull, word):
    p = pull(word, ("pull", "--"))
    failed(p, "expected")
    assert host.asked == []


def test_endpoints_that_are_refused(host, pull, tmp_path):
    for url in ("http://192.0.2.1", "ftp://127.0.0.1", "x", "http://u:p@127.0.0.1"):
        env = dict(os.environ, HF_ENDPOINT=url, HF_HUB_CACHE=str(tmp_path / "hub"))
        p = subprocess.run([CAIRN, "pull", "org/name"], env=env, capture_output=True, text=True,
                           timeout=PULL_S, check=False)
        failed(p, "HF_ENDPOINT")


def test_no_network(host, pull):
    host.close()
    assert failed(pull(), "org/name").count("\n") == 0


def test_one_gguf(host, pull):
    host.files = {"x.gguf": b"GGUF1", "README.md": b""}
    fetched(pull(), pull.snapshot / "x.gguf")


def test_several_ggufs(host, pull):
    host.files = {"x-Q4.gguf": b"GGUF1", "x-Q8.gguf": b"GGUF2",
                  "big/x-00001-of-00002.gguf": b"GGUF3", "big/x-00002-of-00002.gguf": b"GGUF4"}
    failed(pull(), "3 GGUF models", "org/name:")
    fetched(pull("org/name:x-Q8.gguf"), pull.snapshot / "x-Q8.gguf")
    assert {p.name for p in pull.snapshot.iterdir()} == {"x-Q8.gguf"}
    fetched(pull("org/name:big/x-00001-of-00002.gguf"),
            pull.snapshot / "big" / "x-00001-of-00002.gguf")
    assert (pull.snapshot / "big" / "x-00002-of-00002.gguf").read_bytes() == b"GGUF4"
    failed(pull("org/name:z.gguf"), "no file z.gguf in it; expected one from its list")


def test_other_verbs_know_what_was_fetched(host, pull):
    failed(pull(verb=("info",)), "cairn pull org/name")
    fetched(pull(), pull.snapshot)
    failed(pull(verb=("info",)), str(pull.snapshot))  # opened; these weights are noise
    p = pull("ls", ("pull",))
    assert p.returncode == 0 and "org/name" in p.stdout
    assert pull(verb=("pull", "rm")).returncode == 0
    assert not pull.repo.exists()
    failed(pull(verb=("pull", "rm")), "nothing to remove")
