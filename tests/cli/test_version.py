"""--version: the program's own line, then a line for each library with the version that runs."""
import os
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN  # noqa: E402

# What --version calls a library, and how its file begins.
LIBRARIES = {"simdjson": "libsimdjson", "xxhash": "libxxhash", "oniguruma": "libonig", "utf8proc": "libutf8proc",
             "curl": "libcurl", "libzip": "libzip", "openssl": "libssl", "libedit": "libedit", "glibc": "libc"}


def linked():
    """The files that the program's own header names, by the part of their names before the first dot."""
    said = subprocess.run(["ldd", CAIRN], check=True, capture_output=True, text=True).stdout
    return {os.path.basename(p).split(".")[0]: p for p in re.findall(r"=> (/\S+)", said)}


def package_version(path):
    """Upstream's part of the version of the Debian package that the file is of; None: there is none."""
    for p in (os.path.realpath(path), os.path.realpath(path).replace("/usr/lib", "/lib")):
        r = subprocess.run(["dpkg-query", "-S", p], capture_output=True, text=True)
        if r.returncode == 0:
            name = r.stdout.split(": ")[0]
            v = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], check=True, capture_output=True, text=True)
            return re.sub(r"^\d+:", "", v.stdout).split("+")[0].split("-")[0]
    return None


def lines():
    r = subprocess.run([CAIRN, "--version"], capture_output=True, text=True)
    assert r.returncode == 0 and r.stderr == ""
    return r.stdout.splitlines()


def test_lines():
    first, *rest = lines()
    assert re.fullmatch(r"cairn \d+\.\d+\.\d+\S*", first)
    assert [line.split(" ")[0] for line in rest] == list(LIBRARIES)
    for line in rest:
        assert re.fullmatch(r"\S+ \d+\.\d+\S*( \(.+\))?|libedit \(.+\)", line), line


@pytest.mark.skipif(not shutil.which("dpkg-query") or not shutil.which("ldd"), reason="no dpkg here")
def test_versions_are_those_of_the_files():
    files = linked()
    said = dict(line.split(" ", 1) for line in lines()[1:])
    seen = 0
    for name, text in said.items():
        version = package_version(files[LIBRARIES[name]])
        if version is None or name == "libedit":
            continue
        assert text.split(" ")[0] == version, (name, text, version)
        seen += 1
    assert seen or not os.path.exists("/etc/debian_version")
