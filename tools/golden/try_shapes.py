#!/usr/bin/env python3
"""Other shapes of every family, drawn at random, made by the reference and run by tests/golden/test_families.

    python try_shapes.py TEST [--seed N] [--count N] [--fields] [--keep DIR] [FAMILY ...]

TEST is the built test_families.  Each shape of shapes.py becomes a golden in a temporary folder, its config.json spelled anew: fields that hold
the class's default are left out, rotation is spelled as older files have it, each at random and only where the reference reads the same.
--fields instead changes one field at a time: each number, truth value and activation of the class, fields that only other classes have, and
each left out; the reference may ignore it or not, cairn must do as it does, or refuse it by name.

Result of each: ok; refused (an error that names a field of config.json); WRONG (other numbers, or an error about something else); or not a
config (the reference itself refuses).  --keep DIR (build/shapes) holds those that are not ok, with what the test said.  Ends in 1 if any is WRONG.
"""
import argparse, collections, copy, dataclasses, json, os, random, re, shutil, subprocess, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_goldens, shapes
import transformers

FEW = 2  # greedy steps: the logits of all positions are compared anyway
ACTS = ["silu", "gelu", "gelu_pytorch_tanh", "relu", "relu2"]
# Fields of training and of serving.  Mamba-2's loader scales weights anew by rescale_prenorm_residual, which is for training.
UNREAD = set("""initializer_range use_cache attention_dropout pretraining_tp output_router_logits router_aux_loss_coef vocab_size pad_token_id
bos_token_id eos_token_id num_hidden_layers residual_dropout resid_pdrop embd_pdrop hidden_dropout router_jitter_noise rescale_prenorm_residual return_dict
output_hidden_states output_attentions is_encoder_decoder chunk_size_feed_forward use_mamba_kernels num_logits_to_keep""".split())


def read(path):
    """What the reference takes config.json for, but for how it was written."""
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(path, d)
        got = transformers.AutoConfig.from_pretrained(d).to_dict()
    return {k: v for k, v in got.items() if k not in ("_name_or_path", "transformers_version")}


def older(cfg):
    """Rotation as files before rope_parameters have it."""
    block = cfg.pop("rope_parameters"); out = dict(cfg)
    for k in ("rope_theta", "partial_rotary_factor"):
        if k in block: out[k] = block.pop(k)
    block["type"] = block.pop("rope_type")
    return out | ({"rope_scaling": block} if block["type"] != "default" else {})


def alias(cfg):
    """Fields by other names that the class knows them by."""
    known = {v: k for k, v in transformers.CONFIG_MAPPING[cfg["model_type"]].attribute_map.items()}
    return {known.get(k, k): v for k, v in cfg.items()}


class Spelling:
    """The config.json of a folder, changed only where the reference reads the same."""
    def __init__(self, d):
        self.path = os.path.join(d, "config.json"); self.cfg = json.load(open(self.path)); self.law = read(self.path)

    def offer(self, new):
        with open(self.path, "w") as f: json.dump(new, f, indent=1)
        try: same = read(self.path) == self.law
        except Exception: same = False
        if same: self.cfg = new
        else:
            with open(self.path, "w") as f: json.dump(self.cfg, f, indent=1)

    def trim(self, r, p):
        for k in list(self.cfg):
            if k not in ("model_type", "architectures", "dtype") and r.random() < p: self.offer({a: b for a, b in self.cfg.items() if a != k})


def respell(r, d):
    s = Spelling(d)
    if r.random() < 0.3 and "rope_type" in (s.cfg.get("rope_parameters") or {}): s.offer(older(copy.deepcopy(s.cfg)))
    if r.random() < 0.3: s.offer(alias(s.cfg))
    if r.random() < 0.6: s.trim(r, 0.7)


def judge(test, root, name):
    p = subprocess.run([test, "--root", root, name], capture_output=True, text=True, env=os.environ | {"TMPDIR": root}); said = p.stdout + p.stderr
    if p.returncode == 0: return "ok", ""
    lines = [l for l in said.splitlines() if l.strip() and not l.startswith("[=") and not re.search(r"\[ +(RUN|OK|FAILED|PASSED)|FAILED TEST", l)]
    why = next((l for l in lines if "worst error" not in l and "test_families.c" not in l), said[-300:])
    why = re.sub(r"^(\[ +ERROR +\] --- |ERROR: )|/\S*/(?=config\.json|model)", "", why)[:300]
    return ("refused" if p.returncode == 1 and why.startswith("config.json: ") else "WRONG"), why


def run(a, name, model_type, cfg, seed, spell=None):
    with tempfile.TemporaryDirectory(prefix="shapes-") as root:
        try: make_goldens.make(name, model_type, copy.deepcopy(cfg), root, seed, n_greedy=FEW, audit=False)
        except Exception as e: return "not a config", f"{type(e).__name__}: {str(e)[:200]}".replace("\n", " ")
        d = os.path.join(root, name)
        if spell: spell(d)
        got, why = judge(a.test, root, name)
        if got != "ok":
            to = os.path.join(a.keep, name); shutil.rmtree(to, ignore_errors=True); shutil.copytree(d, to)
            with open(os.path.join(to, "said"), "w") as f: f.write(f"{got}: {why}\ndrawn: {cfg}\n")
    return got, why


def random_shapes(a, family):
    model_type, draw = shapes.FAMILIES[family]
    for i in range(a.count):
        for attempt in range(10):
            seed = f"{family} {a.seed} {i} {attempt}"; r = random.Random(seed)
            name = f"{family}.{a.seed}-{i:03d}"
            got = run(a, name, model_type, draw(r), a.seed * 1000 + i, lambda d: respell(r, d))
            if got[0] != "not a config": break
        yield name, *got


def others(v, name):
    """Values that a field with this one might have."""
    if name in ("hidden_act", "hidden_activation", "mlp_hidden_act", "mamba_hidden_act"): return [x for x in ACTS if x != v]
    if isinstance(v, bool) or (v is None and name.startswith("use_")): return [not v]
    if isinstance(v, float): return [round(v * 1.7, 9) if v else 0.3]
    if isinstance(v, int): return [v + 1, v * 2, v - 1, v // 2]
    return [3, 0.7, True] if v is None else []


def foreign(model_type):
    """Fields that other classes have and this one does not, away from their defaults."""
    out, own = {}, {f.name for f in dataclasses.fields(transformers.CONFIG_MAPPING[model_type])}
    for mt, _ in shapes.FAMILIES.values():
        for f in dataclasses.fields(transformers.CONFIG_MAPPING[mt]):
            if f.name in own | UNREAD or f.name in transformers.CONFIG_MAPPING[model_type].attribute_map: continue
            v = f.default
            if isinstance(v, bool): out[f.name] = not v
            elif isinstance(v, float): out[f.name] = 0.5
            elif f.name in ("sliding_window", "topk_group"): out[f.name] = 2
    return out


# Defaults of published models' sizes: too large here.
LARGE = {"vocab_size", "hidden_size", "num_hidden_layers", "vocab_size_per_layer_input", "linear_num_key_heads"}


def by_default(model_type):
    """The fields that a config may leave out, each left out once."""
    for f in dataclasses.fields(transformers.CONFIG_MAPPING[model_type]):
        v = f.default
        if f.name in LARGE | UNREAD or isinstance(v, (str, type(None))) or not isinstance(v, (int, float)): continue
        yield f.name, {f.name: v} | ({"num_attention_heads": 2 * v} if f.name == "num_key_value_heads" else {})


def one_field(a, family):
    model_type = shapes.FAMILIES[family][0]
    base = next(c for mt, c, *_ in list(make_goldens.FAMILIES.values()) + list(a.variants.values()) if mt == model_type)
    full = transformers.AutoConfig.for_model(model_type, **copy.deepcopy(base)).to_dict() | base
    fields = {f.name for f in dataclasses.fields(transformers.CONFIG_MAPPING[model_type])}
    trials = [(f, x) for f in sorted(fields - UNREAD) for x in others(full.get(f), f)]
    trials += [("rope_parameters", shapes.rope(random.Random(1), 16, [k], [0.5])) for k in set(shapes.KINDS)]
    strange = foreign(model_type); all_of_them = run(a, f"{family}.foreign", model_type, base | strange, 7)
    if all_of_them[0] != "ok": trials += list(strange.items())
    done = {}
    for n, (f, x) in enumerate(trials):
        if done.get(f) in ("ok", "refused") and f != "rope_parameters": continue  # one other value is enough
        name = f"{family}.{f}-{n:03d}"; got, why = run(a, name, model_type, base | {f: x}, 7)
        done[f] = got
        yield name, got, f"{x}: {why}"
    yield f"{family}.foreign", *all_of_them
    for f, more in by_default(model_type):
        name = f"{family}.{f}-default"; got, why = run(a, name, model_type, base | more, 7, lambda d: Spelling(d).trim(random.Random(0), 1.0))
        yield name, got, f"{more}: {why}"


def main():
    p = argparse.ArgumentParser(); p.add_argument("test"); p.add_argument("family", nargs="*"); p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=4); p.add_argument("--fields", action="store_true"); p.add_argument("--keep", default="build/shapes")
    a = p.parse_intermixed_args(); a.test = os.path.abspath(a.test); total = collections.Counter()
    import variants; a.variants = variants.FAMILIES
    for family in a.family or shapes.FAMILIES:
        count = collections.Counter()
        for name, got, why in (one_field if a.fields else random_shapes)(a, family):
            count[got] += 1
            if got != "ok" and not (a.fields and got == "not a config"): print(f"  {name}: {got}: {why}", flush=True)
        print(f"{family:14s} " + "  ".join(f"{v} {k}" for k, v in sorted(count.items())), flush=True); total += count
    print("in all: " + "  ".join(f"{v} {k}" for k, v in sorted(total.items())))
    if total["WRONG"]: sys.exit(1)


if __name__ == "__main__": main()
