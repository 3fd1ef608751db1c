"""The tables and plots of bench/speed-table and bench/scale, of made-up figures: what is missed is told, what no two points can
tell is left out, everything lies within its picture."""
import csv
import importlib.machinery
import importlib.util
import io
import os
import xml.etree.ElementTree as ET

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SVG = "{http://www.w3.org/2000/svg}"


def script(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "bench", name))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(made)
    return made


def inside(picture):
    """Every mark of it lies within."""
    wide, high = float(picture.get("width")), float(picture.get("height"))
    for e in picture.iter():
        for key, most in (("x", wide), ("x1", wide), ("x2", wide), ("cx", wide), ("y", high), ("y1", high), ("y2", high), ("cy", high)):
            assert 0 <= float(e.get(key, 0)) <= most, (e.tag, e.attrib)


@pytest.fixture(scope="module")
def scale():
    return script("scale")


def points(axis, law, values):
    return [{"axis": axis, "unit": "x", "value": v, "ms": law(v), "allowed_ms": 2 * law(v), "ratio": 0.5} for v in values]


def test_promise(scale):
    line = points("context", lambda v: 2 + 3e-3 * v, (0, 1000, 4000))
    assert scale.promise(line) == pytest.approx([2, 5, 14])
    share = points("batch", lambda v: 1 + 8 / v, (1, 2, 4, 8))
    assert scale.promise(share) == pytest.approx([9, 5, 3, 2])
    square = points("context", lambda v: 1 + 1e-6 * v * v, (0, 1000, 2000, 4000))
    assert square[-1]["ms"] / scale.promise(square)[-1] > 1.2  # what grows faster shows
    assert scale.promise(points("threads", lambda v: 4 / v, (1, 2))) == [None, None]


def test_scale_plot(scale):
    rows = points("context", lambda v: 2 + 3e-3 * v, (0, 1, 1000, 4000)) + points("threads", lambda v: 4 / v, (1, 2))
    for axis in ("context", "threads"):
        mine = [r for r in rows if r["axis"] == axis]
        for r, model in zip(mine, scale.promise(mine)):
            r["model_ms"] = model
    picture = ET.fromstring(scale.svg(rows, "about"))
    inside(picture)
    dots = [e.get("fill") for e in picture.iter(SVG + "circle")]
    colour = {key: style for key, style, _ in scale.DRAWN}
    assert [dots.count(colour[k]) for k in ("ms", "allowed_ms", "model_ms")] == [6, 6, 4]
    text = " ".join("".join(e.itertext()) for e in picture.iter(SVG + "text"))
    assert "about" in text and all(what in text for *_, what in scale.DRAWN) and " 4000" in text


def test_speed_table(capsys, monkeypatch, tmp_path):
    table = script("speed-table")
    runs = iter([(20.0, 10.0, 0.9), (50.0, 10.0, 0.8), (30.0, 10.0, 0.7), (10.0, 10.0, 0.5), (12.0, 10.0, 0.5), (11.0, 10.0, 0.5)])
    monkeypatch.setattr(table, "measures", lambda a, m: [("decode 32", lambda m: next(runs)), ("prefill 512", lambda m: next(runs))])
    monkeypatch.setattr(table, "contract", lambda a: [("GEMV", 0.9, 0.8)])
    monkeypatch.setattr("sys.argv", ["speed-table", "-r", "3", "--csv", str(tmp_path / "t.csv"), "--svg", str(tmp_path / "t.svg"), "a-1.5B.gguf"])
    table.main()
    out = capsys.readouterr().out.splitlines()
    assert out[2].split()[1:] == "decode 32 30.00 10.00 3.00 2.00-5.00 80 % 2.0 88 % missed".split(), out
    assert out[3].split()[1:6] == ["prefill", "512", "11.00", "10.00", "1.10"] and out[3].endswith("3.0 55 % missed"), out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert [(r["measure"], float(r["ratio"]), float(r["ratio_least"]), float(r["ratio_most"])) for r in rows] == [
        ("decode 32", 3, 2, 5), ("prefill 512", 1.1, 1, 1.2), ("GEMV", 0.9, 0.9, 0.9)]
    picture = ET.fromstring((tmp_path / "t.svg").read_text())
    inside(picture)
    assert sum(e.get("fill") == "#36c" for e in picture.iter(SVG + "rect")) == 2  # of two rows something is wanted
