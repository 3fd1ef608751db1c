"""Real files against the reference's recorded distributions (see distance.py)."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

from distance import MODELS, divergence, load, prompts

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
CAIRN = os.environ.get("CAIRN_BIN", str(ROOT / "build" / "cairn"))

# Minutes under a sanitizer, and the same answers from every compiler: the plain build stands for all.
pytestmark = pytest.mark.skipif(
    pathlib.Path(CAIRN).parent.name != "build", reason="real models run in the plain build"
)


def model_path(name):
    path = CACHE / "cairn" / "models" / MODELS[name][0]
    if not path.exists():
        pytest.skip(f"{path} is not here: tools/get-models {name} fetches it")
    return str(path)


def cairn_logits(path, ids, compute, where):
    (where / "ids.json").write_text(json.dumps([int(i) for i in ids]))
    out = where / "logits.npy"
    subprocess.run(
        [CAIRN, "logits", path, "--ids", where / "ids.json", "--out", out, "--compute", compute],
        check=True,
    )
    return np.load(out)


def measure(name, compute, where):
    path, golden = model_path(name), load(ROOT / "tests/golden/real" / (MODELS[name][1] + ".safetensors"))
    kls, flipped = [], 0
    for p in prompts(golden):
        kl, flips = divergence(p, cairn_logits(path, p["ids"], compute, where))
        kls.append(kl)
        flipped += int(flips.sum())
    kls = np.concatenate(kls)
    print(f"{name} {compute}: {len(kls)} positions, mean {kls.mean():.6f}, worst {kls.max():.6f} nats")
    return kls, flipped


@pytest.mark.parametrize("name", MODELS)
def test_f32_equals_the_reference(name, tmp_path):
    kls, flipped = measure(name, "f32", tmp_path)
    assert kls.max() <= 1e-3
    assert kls.mean() <= 1e-4
    assert flipped == 0


@pytest.mark.parametrize("name", MODELS)
def test_fast_stays_near_the_reference(name, tmp_path):
    kls, _ = measure(name, "fast", tmp_path)
    assert kls.mean() <= MODELS[name][2]


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_never_held_twice(name):
    """What was resident at most: tiles and file pages that they came from together, and what the program needs besides (20 MB)."""
    path = model_path(name)
    run = subprocess.run([CAIRN, "bench", path, "-p", "8", "-n", "2", "-r", "1", "--json"], check=True, stdout=subprocess.PIPE)
    held, size = json.loads(run.stdout)["peak_rss_bytes"], os.path.getsize(path)
    print(f"{name}: {held / 1e6:.0f} MB for a file of {size / 1e6:.0f}")
    assert held <= 1.03 * size + (40 << 20)


@pytest.mark.parametrize("name", MODELS)
def test_tokenizer_makes_the_recorded_ids(name):
    golden = load(ROOT / "tests/golden/real" / (MODELS[name][1] + ".safetensors"))
    for k, file in enumerate(("tide.txt", "mixed.txt")):
        out = subprocess.run(
            [CAIRN, "tokenize", model_path(name), "-f", ROOT / "tests/golden/prompts" / file],
            check=True, capture_output=True,
        )
        assert json.loads(out.stdout) == golden[f"{k}.ids"].tolist()


@pytest.mark.parametrize("name", MODELS)
def test_greedy_text_equals_the_reference(name, tmp_path):
    """Teacher-forced over prompt and recorded continuation: every best token is the next one."""
    golden = load(ROOT / "tests/golden/real" / (MODELS[name][1] + ".safetensors"))
    ids, greedy, margin = golden["0.ids"], golden["0.greedy"], golden["0.margin"]
    logits = cairn_logits(model_path(name), np.concatenate([ids, greedy]), "f32", tmp_path)
    best = logits[len(ids) - 1 : -1].argmax(axis=1)
    sure = margin > 0.05
    assert sure.any()
    assert (best[sure] == greedy[sure]).all()
