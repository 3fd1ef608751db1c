"""Every flag that takes a number, at and beyond its edges: wrong usage is status 2 and one line."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny import CAIRN, PATIENCE, line_of, make, refused, run  # noqa: E402

# verb, words before, flag, values that are refused beside the usual ones, values that are fine
FLAGS = [
    ("run", "-n", ["-2", "16777217"], ["0", "-1", "1"]),
    ("run", "--temp", ["-0.1", "101"], ["0"]),
    ("run", "--top-k", ["-1"], ["0", "1"]),
    ("run", "--top-p", ["-0.1", "1.1"], ["0", "1"]),
    ("run", "--min-p", ["-0.1", "1.1"], ["0", "1"]),
    ("run", "--repetition-penalty", ["0", "-1", "101"], ["1"]),
    ("run", "--typical-p", ["-0.1", "1.1"], ["0", "0.5"]),
    ("run", "--xtc-probability", ["-0.1", "1.1"], ["1"]),
    ("run", "--xtc-threshold", ["-0.1", "1.1"], ["0"]),
    ("run", "--mirostat", ["-1", "3"], ["1", "2"]),
    ("run", "--mirostat-tau", ["-1", "101"], ["0"]),
    ("run", "--mirostat-lr", ["-1", "11"], ["10"]),
    ("run", "--presence-penalty", ["-101", "101"], ["-100"]),
    ("run", "--frequency-penalty", ["-101", "101"], ["100"]),
    ("run", "--repeat-last-n", ["-2", "16777217"], ["-1", "0", "5"]),
    ("run", "--dry-multiplier", ["-1", "1000001"], ["1000000"]),
    ("run", "--dry-base", ["0.9", "1000001"], ["1000000"]),
    ("run", "--dry-allowed-length", ["-1", "10001"], ["0"]),
    ("run", "--dry-penalty-last-n", ["-2", "16777217"], ["-1", "0", "5"]),
    ("run", "--seed", ["99999999999999999999"], ["0", "-1"]),
    ("run", "--ctx", ["0", "-1", "16777217"], ["64"]),
    ("run", "-t", ["0", "-1", "1024"], ["1"]),
    ("run", "--think-budget", ["-2", "16777217"], []),
    ("serve", "--port", ["-1", "65536"], []),
    ("serve", "--ctx", ["0", "-1"], []),
    ("serve", "--memory", ["0", "-1", "1X", "G", "9999999T"], []),
    ("serve", "--ssd-cache-max", ["0", "-1", "1X", "G", "9999999T"], []),
    ("serve", "--generation-checkpoint", ["0", "-1", "16777217"], []),
    ("serve", "--prompt-cache", ["-1", "1X", "G", "9999999T"], []),
    ("serve", "--parallel", ["0", "-1", "100000000"], []),
    ("serve", "--queue", ["0", "-1", "100000000000"], []),
    ("serve", "--max-gap", ["0", "1", "-3", "1001", "x"], []),
    ("serve", "--timeout", ["-1", "86401"], []),
    ("serve", "--drain", ["-1", "86401"], []),
    ("serve", "--rate", ["-1", "1000001"], []),
    ("serve", "--connections", ["0", "-1", "100001"], []),
    ("serve", "--keep", ["0", "-1", "31536001", "x"], []),
    ("serve", "--model-pool", ["0", "-1", "9", "x"], []),
    ("serve", "--max-body", ["0", "1023", "5G", "1X"], []),
    ("serve", "-t", ["0", "-1"], []),
    ("logits", "--top", ["0", "-1"], []),
    ("logits", "--chunk", ["0", "-1"], []),
    ("logits", "-t", ["0", "-1"], []),
    ("bench", "-p", ["-1", "16777217"], ["0"]),
    ("bench", "-n", ["-1", "16777217"], ["0"]),
    ("bench", "-d", ["-1", "16777217"], []),
    ("bench", "-b", ["0", "-1"], []),
    ("bench", "-r", ["0", "-1", "100000"], []),
    ("bench", "-t", ["0", "-1"], []),
    ("score", "--ctx", ["0", "1", "-1"], []),
    ("score", "-t", ["0", "-1"], []),
    ("check-numerics", "-t", ["0", "-1"], []),
]
ALWAYS = ["", "x", "1x", " 1", "0x1", "1e99", "nan", "inf", "--"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make(tmp_path_factory.mktemp("m"))


@pytest.mark.parametrize("verb,flag,bad,fine", FLAGS, ids=[f[0] + f[1] for f in FLAGS])
def test_values(model, verb, flag, bad, fine):
    for value in ALWAYS + bad:
        line = refused(run(verb, model, flag, value), code=2)
        assert re.search(r'cairn: -\S+: found "%s"; expected ' % re.escape(value), line), line
    refused(run(verb, model, flag), "needs a value", code=2)
    small = {"run": ["-p", "w1", "-n", 1, "--raw", "-t", 1],
             "bench": ["-p", 4, "-n", 2, "-r", 1, "-t", 1]}
    for value in fine:
        r = run(verb, model, *small[verb], flag, value)
        assert r.code == 0 and "nan" not in r.out.decode().lower(), (value, r.err, r.out)


WORDS = [
    ("run", ("--compute", "f16"), "expected one of fast|f32"),
    ("render", ("--messages", "/dev/null", "--kwargs", "[1]"), "--kwargs: found an array; expected an object"),
    ("render", ("--messages", "/dev/null", "--kwargs", "{"), "--kwargs: "),
    ("pull", ("--yes",), "expected them with gc alone"),
    ("run", ("--logit-bias", "5"), '--logit-bias: found "5"; expected ID+B or ID-B'),
    ("run", ("--logit-bias", "5+x"), "--logit-bias: "), ("run", ("--logit-bias", "-5+1"), "--logit-bias: "),
    ("serve", ("--alias", "x"), '--alias: found "x"; expected NAME=ID'), ("serve", ("--alias", "x="), "expected NAME=ID"),
    ("serve", ("--alias", "=x"), "expected NAME=ID"),
    ("run", ("--dry-sequence-breaker", ""), "--dry-sequence-breaker: "),
    ("run", ("--dry-sequence-breaker", "x" * 65), "expected 1 to 64 bytes"),
]


@pytest.mark.parametrize("verb,words,says", WORDS)
def test_words(model, verb, words, says):
    assert says in refused(run(verb, model, *words), code=2)


def test_no_tokens_are_none(model):
    r = run("run", model, "-p", "w1 w2", "-n", 0, "--raw")
    assert (r.code, r.out) == (0, b"\n")
    assert b"0: none, -1: what the context holds" in run("run", "--help").out
    some = run("run", model, "-p", "w1 w2", "-n", 3, "--raw", "--temp", 0)
    assert len(some.out) > 1


def test_sampling_of_a_seed(model):
    """All of it at once: the same seed, the same text; and each switch changes it."""
    many = ("--temp", 1.5, "--top-k", 40, "--typical-p", 0.9, "--xtc-probability", 0.5, "--dry-multiplier", 0.8,
            "--dry-sequence-breaker", "\\n", "--dry-sequence-breaker", "w3", "--presence-penalty", 0.5)

    def text(*words):
        r = run("run", model, "-p", "w1 w2", "-n", 60, "--raw", "-t", 1, "--min-p", 0, *words)
        assert r.code == 0, r.err
        return r.out

    assert text("--seed", 7, *many) == text("--seed", 7, *many) != text("--seed", 8, *many)
    low = [text("--seed", 7, "--mirostat", version, "--mirostat-tau", 1) for version in (0, 1, 2)]
    assert low[0] != low[1] and low[0] != low[2]
    assert text("--temp", 0, "--logit-bias", "9+100", "--repeat-last-n", 0).split() == [b"w7"] * 60
    assert set(text("--temp", 0, "--logit-bias", "9+30", "--presence-penalty", 100).split()) - {b"w7"}
    # w7 alone is likely, and a breaker: then it is never punished
    dry = ("--temp", 0, "--logit-bias", "9+30", "--dry-multiplier", 100, "--dry-allowed-length", 0)
    assert set(text(*dry).split()) - {b"w7"}
    assert text(*dry, "--dry-sequence-breaker", "w7").split() == [b"w7"] * 60
    assert text(*dry, "--dry-penalty-last-n", 0).split() == [b"w7"] * 60


def test_every_number_is_in_the_table(model):
    """A flag that takes a number and is not tried above fails here."""
    tried = {(v, f) for v, f, _, _ in FLAGS}
    for verb in {v for v, _, _, _ in FLAGS}:
        for line in run(verb, "--help").out.decode().split("\n"):
            m = re.match(r"  (--[a-z-]+)(?:, (--?[a-z-]+))? ([BEKMNPRSTV]|BYTES) ", line)
            if m:
                assert (verb, m[1]) in tried or (verb, m[2]) in tried, line
    assert os.path.exists(CAIRN)


def test_serve_warns_of_a_model_that_cannot_chat(tmp_path):
    m = make(tmp_path)
    for missing in ("chat_template", "tokenizer"):
        p = subprocess.Popen([CAIRN, "serve", m, "--port", "0", "-t", "1"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        assert line_of(p).startswith("listening on ")
        p.send_signal(signal.SIGTERM)
        assert "cairn: no_%s model=" % missing in p.communicate(timeout=PATIENCE)[1] and p.returncode == 0
        (tmp_path / "tokenizer.json").unlink(missing_ok=True)


def bench(model, *words):
    r = run("bench", model, "-r", 2, "-t", 1, *words)
    assert r.code == 0, r.err
    return r.out.decode()


@pytest.mark.parametrize("out,phase,share", [("-p", "prefill", "prefill_share_of_peak"),
                                             ("-n", "decode", "decode_share_of_bandwidth")])
def test_a_phase_left_out_has_no_speed(model, out, phase, share):
    few = ("-p", 4, "-n", 2)
    told = json.loads(bench(model, *few, out, 0, "--json"))
    assert told[phase + "_tokens_per_second"] is None and told[phase + "_runs"] == [] and told[share] is None
    told = json.loads(bench(model, *few, "--json"))
    assert told[phase + "_tokens_per_second"] > 0 and len(told[phase + "_runs"]) == 2 and told[share] > 0
    text = bench(model, *few, out, 0)
    assert "median " + phase not in text and re.search(phase + " +- ", text), text
    assert "median " + phase in bench(model, *few)


def test_bench_of_weights_that_fit_in_a_cache(model):
    """These 300 KB never come from memory, whatever share of its bandwidth they reach."""
    assert json.loads(bench(model, "-p", 0, "-n", 2, "--json"))["decode_weights_in_cache"] is True
    assert "% of the read bandwidth of memory, but the weights lie in caches" in bench(model, "-p", 0, "-n", 2)
    assert json.loads(bench(model, "-p", 2, "-n", 0, "--json"))["decode_weights_in_cache"] is False


def test_bench_of_weights_too_few_to_time(model):
    told = json.loads(bench(model, "-p", 0, "-n", 2, "--json"))
    assert told["weights_read_gbs"] == 0 and told["decode_share_of_weights_read"] is None
    assert "of reading the weights alone" not in bench(model, "-p", 0, "-n", 2)


def test_bench_op_by_op(model):
    r = run("bench", model, "-p", 4, "-n", 2, "-r", 1, "-t", 1, "--ops", "--json")
    assert r.code == 0, r.err
    ops = json.loads(r.out)["ops"]
    for phase in "prefill", "decode":
        mine = [o for o in ops if o["phase"] == phase]
        assert {o["op"].split()[0] for o in mine} >= {"LINEAR", "ATTEND", "RMS_NORM", "(between"}
        lost = [o["seconds"] - o["limit_seconds"] for o in mine]
        assert lost == sorted(lost, reverse=True)
        products = [o for o in mine if o["op"].startswith("LINEAR")]
        assert all(o["limit_seconds"] > 0 and o["int_ops"] + o["float_ops"] > 0 for o in products)
