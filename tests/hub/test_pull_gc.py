"""cairn pull gc: what no name leads to goes, everything else stays."""
import os
import fcntl
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hub_server import PULL_S  # noqa: E402

CAIRN = os.environ.get("CAIRN_BIN", os.path.join(os.path.dirname(__file__), "../../build/cairn"))
OLD, NEW, LONE = "a" * 40, "b" * 40, "c" * 40
MB = 1_000_000


class Cache:
    def __init__(self, path):
        self.path = path
        self.repo = path / "models--org--name"

    def blob(self, name, size, repo=None):
        b = (repo or self.repo) / "blobs"
        b.mkdir(parents=True, exist_ok=True)
        (b / name).write_bytes(b"x" * size)

    def link(self, commit, name, blob, repo=None):
        at = (repo or self.repo) / "snapshots" / commit / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to("../../blobs/" + blob)

    def ref(self, name, commit, repo=None):
        at = (repo or self.repo) / "refs" / name
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(commit)

    def gc(self, *more, code=0):
        env = dict(os.environ, HF_HUB_CACHE=str(self.path), XDG_CACHE_HOME=str(self.path / "xdg"))
        p = subprocess.run([CAIRN, "pull", "gc", *more], env=env, capture_output=True, text=True,
                           timeout=PULL_S, check=False)
        assert p.returncode == code, p.stderr
        return p.stdout

    def all(self):
        return sorted(os.path.join(d, f)[len(str(self.path)) + 1:]
                      for d, dirs, files in os.walk(self.path) for f in files + dirs)


@pytest.fixture
def cache(tmp_path):
    """An old snapshot and a new one that share a file, a blob of nobody, a download under way."""
    c = Cache(tmp_path / "hub")
    for name, size in [("shared", 2 * MB), ("old", 3 * MB), ("new", 4 * MB), ("lost", 5 * MB),
                       ("x.incomplete", MB), ("y.lock", 1)]:
        c.blob(name, size)
    c.link(OLD, "config.json", "shared")
    c.link(OLD, "model.safetensors", "old")
    c.link(NEW, "config.json", "shared")
    c.link(NEW, "model.safetensors", "new")
    c.ref("main", NEW)
    return c


def test_without_yes_nothing_changes(cache):
    before = cache.all()
    said = cache.gc()
    assert cache.all() == before
    assert said.strip().split("\n")[-1] == "3 entries, 8.0 MB would be freed; --yes deletes them"
    for gone in "snapshots/" + OLD, "blobs/old", "blobs/lost":
        assert "models--org--name/" + gone in said
    for kept in NEW, "blobs/new", "blobs/shared", "incomplete", "lock":
        assert kept not in said


def test_yes_deletes_just_those(cache):
    said = cache.gc("--yes")
    assert said.strip().split("\n")[-1] == "3 entries, 8.0 MB freed"
    assert not (cache.repo / "snapshots" / OLD).exists()
    assert sorted(os.listdir(cache.repo / "blobs")) == ["new", "shared", "x.incomplete", "y.lock"]
    assert (cache.repo / "snapshots" / NEW / "model.safetensors").stat().st_size == 4 * MB
    assert cache.gc("--yes") == "0 entries, 0.0 MB freed\n"


def test_only_copy_of_a_file_needs_force(cache):
    cache.blob("extra", MB)
    cache.link(OLD, "sub/mtp.safetensors", "extra")
    said = cache.gc("--yes")
    assert "kept" in said and "sub/mtp.safetensors" in said and "--force" in said
    assert (cache.repo / "snapshots" / OLD).exists()
    assert sorted(os.listdir(cache.repo / "blobs")) == ["extra", "new", "old", "shared",
                                                        "x.incomplete", "y.lock"]
    assert "9.0 MB" not in cache.gc("--force") and (cache.repo / "snapshots" / OLD).exists()
    cache.gc("--force", "--yes")
    assert not (cache.repo / "snapshots" / OLD).exists()
    assert sorted(os.listdir(cache.repo / "blobs")) == ["new", "shared", "x.incomplete", "y.lock"]


def test_every_ref_counts(cache):
    cache.ref("pr/1", OLD)
    assert "1 entry, 5.0 MB" in cache.gc("--yes")
    assert (cache.repo / "snapshots" / OLD / "model.safetensors").exists()


@pytest.mark.parametrize("ref", [None, LONE, "no commit", ""])
def test_a_repository_that_resolves_to_nothing_stays(cache, ref):
    os.unlink(cache.repo / "refs" / "main")
    if ref is not None:
        cache.ref("main", ref)
    before = cache.all()
    assert cache.gc("--yes", "--force") == "0 entries, 0.0 MB freed\n"
    assert cache.all() == before


def test_others_are_not_touched(cache):
    """Data sets, plain files and folders of other names in the cache."""
    (cache.path / "datasets--org--name" / "blobs").mkdir(parents=True)
    (cache.path / "datasets--org--name" / "blobs" / "z").write_text("z")
    (cache.path / "version.txt").write_text("1")
    (cache.path / "models--file").write_text("no folder")
    cache.gc("--yes")
    assert (cache.path / "datasets--org--name" / "blobs" / "z").exists()
    assert (cache.path / "version.txt").exists() and (cache.path / "models--file").exists()


def test_while_it_is_fetched_it_stays(cache):
    lock = cache.path / ".locks" / "models--org--name" / "new.lock"
    lock.parent.mkdir(parents=True)
    before = cache.all()
    with open(lock, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        said = cache.gc("--yes")
        assert "models--org--name: it is being fetched" in said
        assert cache.all() == sorted(before + [".locks/models--org--name/new.lock"])
    assert "8.0 MB freed" in cache.gc("--yes")


def test_links_out_of_the_cache_are_not_followed(cache, tmp_path):
    out = tmp_path / "outside"
    out.mkdir()
    (out / "dear").write_text("dear")
    (cache.repo / "snapshots" / LONE).symlink_to(out)
    (cache.repo / "blobs" / "link").symlink_to(out / "dear")
    cache.gc("--yes", "--force")
    assert (out / "dear").read_text() == "dear"


def test_no_cache_and_wrong_words(tmp_path):
    c = Cache(tmp_path / "none")
    assert c.gc() == "0 entries, 0.0 MB would be freed\n"
    c.gc("now", code=2)
    env = dict(os.environ, HF_HUB_CACHE=str(tmp_path))
    for words in (["ls", "--yes"], ["rm", "x", "--force"], ["gc", "--json"]):
        p = subprocess.run([CAIRN, "pull", *words], env=env, capture_output=True, check=False)
        assert p.returncode == 2, words
