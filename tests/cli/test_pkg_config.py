"""build/cairn.pc, or that of an installed cairn, is enough to build and run a program of one's own, from any folder."""
import os
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, SANITIZED  # noqa: E402

BUILD = os.path.dirname(CAIRN)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """#include <stdio.h>
#include "cairn/cairn.h"
int main(void)
{
    cairn_diag dg = {0};
    cairn_model *m = NULL;
    cairn_model_opts o;
    cairn_model_opts_init(&o);
    printf("%s %d\\n", cairn_version(), cairn_model_open("/none", &o, &m, &dg) != CAIRN_OK);
    return 0;
}
"""


pytestmark = [
    pytest.mark.skipif(SANITIZED, reason="needs the sanitizer's flags"),
    pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config here"),
]


def build_and_run(folder, pc):
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cairn"], env=env, check=True,
                           capture_output=True, text=True).stdout.split()
    (folder / "own.c").write_text(PROGRAM)
    subprocess.run(["cc", "own.c", "-o", "own", *flags], cwd=folder, check=True)
    said = subprocess.run([folder / "own"], capture_output=True, text=True, check=True).stdout
    version = subprocess.run(["pkg-config", "--modversion", "cairn"], env=env, check=True,
                             capture_output=True, text=True).stdout.strip()
    assert said == version + " 1\n"
    return flags


def test_links(tmp_path):
    assert os.path.exists(BUILD + "/libcairn.a")
    build_and_run(tmp_path, BUILD)


def make(target, *knobs):
    """Of what is built already; a make above us has knobs of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    subprocess.run(["make", "-s", "-o", "all", target, "B=" + BUILD, *knobs], cwd=ROOT, env=env, check=True)


def files_of(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_installs(tmp_path):
    prefix, stage = tmp_path / "usr", tmp_path / "stage"
    make("install", "PREFIX=%s" % prefix)
    headers = {"include/cairn/" + h for h in os.listdir(ROOT + "/include/cairn")}
    assert files_of(prefix) == headers | {"bin/cairn", "lib/libcairn.a", "lib/pkgconfig/cairn.pc"}
    work = tmp_path / "work"
    work.mkdir()
    assert "-I%s/include" % prefix in build_and_run(work, prefix / "lib/pkgconfig")
    assert subprocess.run([prefix / "bin/cairn", "--version"], check=True, capture_output=True).stdout
    make("uninstall", "PREFIX=%s" % prefix)
    assert not prefix.exists()
    make("uninstall", "PREFIX=%s" % prefix)  # of nothing
    make("install", "PREFIX=/usr", "DESTDIR=%s" % stage)
    assert "bin/cairn" in files_of(stage / "usr")
    assert "prefix=/usr\n" in (stage / "usr/lib/pkgconfig/cairn.pc").read_text()


def test_uninstall_leaves_what_others_share(tmp_path):
    share = tmp_path / "share"
    share.mkdir()
    make("install", "PREFIX=%s" % tmp_path)
    make("uninstall", "PREFIX=%s" % tmp_path)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["bin", "include", "lib", "share"]
    share.rmdir()
    (tmp_path / "lib" / "other.a").write_text("")
    (tmp_path / "lib" / "pkgconfig").mkdir()
    (tmp_path / "lib" / "pkgconfig" / "other.pc").write_text("")
    make("install", "PREFIX=%s" % tmp_path)
    make("uninstall", "PREFIX=%s" % tmp_path)
    assert files_of(tmp_path) == {"lib/other.a", "lib/pkgconfig/other.pc"}
    assert (tmp_path / "bin").is_dir() and not (tmp_path / "include" / "cairn").exists()
