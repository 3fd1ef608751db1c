"""build/cairn.pc is enough to build and run a program of one's own, from any folder."""
import os
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, SANITIZED  # noqa: E402

BUILD = os.path.dirname(CAIRN)
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


@pytest.mark.skipif(SANITIZED, reason="needs the sanitizer's flags")
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config here")
def test_links(tmp_path):
    assert os.path.exists(BUILD + "/libcairn.a")
    env = dict(os.environ, PKG_CONFIG_PATH=BUILD)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cairn"], env=env, check=True,
                           capture_output=True, text=True).stdout.split()
    (tmp_path / "own.c").write_text(PROGRAM)
    subprocess.run(["cc", "own.c", "-o", "own", *flags], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "own"], capture_output=True, text=True, check=True).stdout
    version = subprocess.run(["pkg-config", "--modversion", "cairn"], env=env, check=True,
                             capture_output=True, text=True).stdout.strip()
    assert said == version + " 1\n"
