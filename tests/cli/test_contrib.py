"""contrib/: the unit's and the container's flags are the program's, and the container installs what the program needs."""
import os
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, SANITIZED  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BASE = {"libc6", "libgcc-s1", "libstdc++6"}  # of Debian's own base: apt could not run without them


def text_of(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def flags_of_serve():
    said = subprocess.run([CAIRN, "serve", "--help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"(?m)^\s+(?:-\w, )?(--[a-z][a-z0-9-]*)", said))


def flags_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def commands_of_unit():
    return re.findall(r"(?m)^Exec\w+=(.*)$", text_of("contrib/cairn.service"))


def test_flags_of_the_unit():
    known = flags_of_serve()
    start = commands_of_unit()[0].split()
    assert start[0].endswith("/cairn") and start[1] == "serve"
    assert flags_in(" ".join(start)) and flags_in(" ".join(start)) <= known
    comments = "\n".join(re.findall(r"(?m)^#.*$", text_of("contrib/cairn.service")))
    assert flags_in(comments) and flags_in(comments) <= known


def test_flags_of_the_container():
    entry = re.search(r"(?m)^ENTRYPOINT \[(.*)\]$", text_of("contrib/Containerfile")).group(1)
    words = re.findall(r'"([^"]*)"', entry)
    assert words[:2] == ["cairn", "serve"]
    assert flags_in(" ".join(words)) and flags_in(" ".join(words)) <= flags_of_serve()


def test_the_file_of_flags_in_the_documents():
    """Each line of the example names a flag."""
    page = text_of("docs/operations.md")
    example = re.search(r"```\n# /etc/cairn/serve.conf\n(.*?)```", page, re.S).group(1)
    names = {line.split()[0] for line in example.splitlines() if line and not line.startswith("#")}
    assert names and {"--" + n for n in names - {"model"}} <= flags_of_serve()


def installed_in_container():
    """The packages of the last stage."""
    stage = re.split(r"(?m)^FROM ", text_of("contrib/Containerfile"))[-1]
    words = re.search(r"apt-get install -y --no-install-recommends ([^&]*)&&", stage).group(1)
    return set(words.replace("\\\n", " ").split())


def needed():
    """The libraries that the program itself names: others come with them, as their packages say."""
    said = subprocess.run(["objdump", "-p", CAIRN], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"NEEDED\s+(\S+)", said))


def package_of(path):
    real = os.path.realpath(path)
    for p in (path, path.replace("/lib/", "/usr/lib/", 1), real, real.replace("/usr/lib/", "/lib/", 1)):
        r = subprocess.run(["dpkg-query", "-S", p], capture_output=True, text=True)
        if r.returncode == 0:
            return r.stdout.split(":")[0]
    return None


def debian_12():
    try:
        with open("/etc/os-release") as f:
            return 'VERSION_ID="12"' in f.read()
    except OSError:
        return False


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's library is no part of the program")
@pytest.mark.skipif(not debian_12() or not shutil.which("objdump"), reason="packages have Debian 12's names")
def test_packages_of_the_container():
    said = subprocess.run(["ldd", CAIRN], check=True, capture_output=True, text=True).stdout
    path = dict(re.findall(r"(\S+) => (/\S+)", said))
    names = {n for n in needed() if not n.startswith("ld-linux")}
    assert names and names <= set(path)
    packages = {n: package_of(path[n]) for n in names}
    assert None not in packages.values(), packages
    # libcurl's package asks for libssl3 too, but the program does itself
    assert installed_in_container() - {"ca-certificates"} == set(packages.values()) - BASE
