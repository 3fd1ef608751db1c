#!/usr/bin/env python3
"""Make tiny random embedding models and the vectors that transformers and sentence-transformers compute with them.

    pip install torch transformers sentence-transformers safetensors numpy tokenizers gguf
    python make_embeddings.py [--llama-cpp DIR] [--out tests/golden/embed] [--only NAME,...]

For every entry OUT/NAME/ gets
    config.json, weights.json        the checkpoint, as make_goldens.py states
    modules.json, 1_Pooling/, …      the files of sentence-transformers; a dense module's weights are weights.json in its folder
    golden.safetensors               ids.K         i32 [T]       a text, K = 0, 1, …
                                     vector.K      f32 [dim]     its embedding: the reference's model, then the library's own modules
                                     hidden.K.L    f32 [3, d]    rows 0, T/2 and T-1 of what the reference calls hidden_states[L]
                                     text.J        f32 [dim]     of entry J of texts.json, if there is one: SentenceTransformer.encode
                                     metadata      f32_noise: the reference's own distance between f32 and f64
Entries of GGUFS become OUT/NAME.gguf/ (model.gguf by llama.cpp's converter, golden.safetensors), if --llama-cpp names its source.
"""
import argparse, json, os, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_goldens, make_ggufs, weights
import numpy as np, torch, transformers
from safetensors.torch import save_file, load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.base.modules import Dense, Normalize

LENGTHS = (2, 23, 301)  # beyond every window below, and past 256, where sums over positions are split
L4, S4 = make_goldens.L4, make_goldens.S4
IDENTITY, TANH, GELU = torch.nn.Identity, torch.nn.Tanh, torch.nn.GELU


def c(**kw):
    d = dict(vocab_size=120, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=3,
             max_position_embeddings=320, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    d.update(kw)
    return d


def dense(out, act=IDENTITY, bias=False, residual=False):
    return dict(out_features=out, activation_function=act(), bias=bias, use_residual=residual)


ALL = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
GEMMA = dict(head_dim=16, num_key_value_heads=1, num_hidden_layers=4, layer_types=[S4, S4, L4, S4], query_pre_attn_scalar=20,
             use_bidirectional_attention=True)
BERT = dict(type_vocab_size=2)
MODELS = {
    # name: (class that saves it: decides the names of tensors, model_type, config, pooling or None: no module files, dense, normalise)
    "bert": ("BertModel", "bert", c(**BERT), "mean", [], True),
    "bert_masked_cls": ("BertForMaskedLM", "bert", c(hidden_size=40, num_attention_heads=5, hidden_act="gelu_new", layer_norm_eps=1e-5), "cls",
                        [dense(24, TANH, True)], False),
    "bert_all_kinds": ("BertModel", "bert", c(num_hidden_layers=2, hidden_act="relu"), ALL,
                       [dense(40, GELU, True, True), dense(40, torch.nn.SiLU, False, True), dense(16, torch.nn.Sigmoid)], True),
    "xlm_roberta": ("XLMRobertaModel", "xlm-roberta", c(type_vocab_size=1, pad_token_id=1, bos_token_id=0), "cls", [], True),
    "roberta_masked": ("RobertaForMaskedLM", "roberta", c(type_vocab_size=1, pad_token_id=3, num_attention_heads=2), "max",
                       [dense(48, torch.nn.ReLU, True)], True),
    "modernbert": ("ModernBertModel", "modernbert", c(num_hidden_layers=5, local_attention=16, cls_token_id=1, sep_token_id=2), "mean", [], True),
    "modernbert_masked": ("ModernBertForMaskedLM", "modernbert", c(
        num_hidden_layers=4, local_attention=7, num_attention_heads=2, attention_bias=True, mlp_bias=True, norm_bias=True, cls_token_id=1,
        sep_token_id=2, hidden_activation="silu", layer_types=[S4, L4, S4, S4], norm_eps=1e-6), "cls", [], False),
    "embeddinggemma": ("Gemma3TextModel", "gemma3_text", c(sliding_window=16, **GEMMA), "mean", [dense(96), dense(48)], True),
    "embeddinggemma_narrow": ("Gemma3ForCausalLM", "gemma3_text", c(sliding_window=9, **(GEMMA | dict(num_attention_heads=6, num_key_value_heads=2,
                              head_dim=12))), "weightedmean", [dense(32, TANH, True)], False),
    "qwen3_embedding": ("Qwen3Model", "qwen3", c(head_dim=16, num_key_value_heads=1, tie_word_embeddings=False), "lasttoken", [], True),
    "qwen3_tied_mean": ("Qwen3ForCausalLM", "qwen3", c(head_dim=20, num_key_value_heads=3, tie_word_embeddings=True), ("mean", "lasttoken"), [], True),
    "llama_alone": ("LlamaForCausalLM", "llama", c(num_key_value_heads=1), None, [], False),
}
GGUFS = {
    "bert": ("BertModel", "bert", c(num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=2, vocab_size=64, **BERT), "mean", [], True),
    "xlm_roberta": ("RobertaModel", "roberta", c(num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=2, vocab_size=64,
                    type_vocab_size=1, pad_token_id=1), "cls", [], True),
    "modernbert": ("ModernBertModel", "modernbert", c(num_hidden_layers=4, hidden_size=32, intermediate_size=48, num_attention_heads=2, vocab_size=64,
                   local_attention=16, cls_token_id=1, sep_token_id=2), "cls", [], True),
    "embeddinggemma": ("Gemma3TextModel", "gemma3_text", c(hidden_size=32, intermediate_size=48, num_attention_heads=2, vocab_size=64, sliding_window=16,
                       **(GEMMA | dict(num_hidden_layers=6, layer_types=[S4] * 5 + [L4], query_pre_attn_scalar=16))), "mean",
                       [dense(64), dense(32)], True),
    "qwen3_embedding": ("Qwen3ForCausalLM", "qwen3", c(num_hidden_layers=2, hidden_size=32, intermediate_size=48, num_attention_heads=2, vocab_size=64,
                        head_dim=16, num_key_value_heads=1, tie_word_embeddings=True), "lasttoken", [], True),
}


OLD_NAMES = ("bert_masked_cls",)  # as the first checkpoints spell the LayerNorms


def manifest(d, seed, model_type, old_names=False):
    """model.safetensors in d → weights.json, and the weights that it stands for."""
    path = os.path.join(d, "model.safetensors"); made = load_file(path)
    if old_names: made = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in made.items()}
    tensors = {k: {"dtype": "BF16", "shape": list(v.shape), "draw": make_goldens.rule(k, v.shape, v, model_type)} for k, v in made.items()}
    with open(os.path.join(d, "weights.json"), "w") as f:
        f.write('{"seed": %d, "tensors": {\n' % seed + ",\n".join(json.dumps(k) + ": " + json.dumps(v) for k, v in sorted(tensors.items())) + "\n}}\n")
    weights.materialize(d)


def write_modules(d, seed, hidden, pooling, layers, normalise, include_prompt=True):
    """The library's own files, by its own writers; answers the modules as it reads them back."""
    kinds = (pooling,) if isinstance(pooling, str) else pooling
    mods = [("0", "", "sentence_transformers.models.Transformer")]
    width = hidden * len(kinds); out = []
    def add(cls, name, module):
        n = len(mods); folder = f"{n}_{name}"; p = os.path.join(d, folder); os.makedirs(p, exist_ok=True)
        module.save(p)
        if name == "Dense": manifest(p, seed + n, "dense")
        mods.append((str(n), folder, f"sentence_transformers.models.{name}"))
        out.append(cls.load(d, subfolder=folder))
        if name == "Dense": os.remove(os.path.join(p, "model.safetensors"))
        if not os.listdir(p): os.rmdir(p)
    add(Pooling, "Pooling", Pooling(hidden, kinds, include_prompt))
    for spec in layers:
        add(Dense, "Dense", Dense(width, **spec)); width = spec["out_features"]
    if normalise: add(Normalize, "Normalize", Normalize())
    with open(os.path.join(d, "modules.json"), "w") as f:
        json.dump([dict(idx=int(i), name=i, path=p, type=t) for i, p, t in mods], f, indent=2)
    return out


def default_modules(config, hidden):
    """What the library adds to a checkpoint without module files."""
    return [Pooling(hidden, "lasttoken" if config.architectures[0].endswith("ForCausalLM") else "mean")]


def embed(model, modules, ids, dtype):
    with torch.no_grad():
        o = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        features = {"token_embeddings": o.last_hidden_state, "attention_mask": torch.ones(1, len(ids), dtype=torch.int64)}
        for m in modules: features = m.to(dtype)(features)
    return features["sentence_embedding"][0], [h[0] for h in o.hidden_states]


def make(name, spec, out, seed):
    saver, model_type, cfg, pooling, layers, normalise = spec
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(model_type, **cfg)
    d = os.path.join(out, name); os.makedirs(d, exist_ok=True)
    getattr(transformers, saver)(config).to(torch.bfloat16).save_pretrained(d)
    for f in os.listdir(d):
        if f not in ("config.json", "model.safetensors") and os.path.isfile(os.path.join(d, f)): os.remove(os.path.join(d, f))
    manifest(d, seed, model_type, name in OLD_NAMES)
    model = transformers.AutoModel.from_pretrained(d, dtype=torch.float32, attn_implementation="eager").eval()
    hidden = model.config.hidden_size
    modules = write_modules(d, seed, hidden, pooling, layers, normalise) if pooling else default_modules(model.config, hidden)
    t, noise = {}, 0.0
    for k, n in enumerate(LENGTHS):
        ids = [4 + int(w % np.uint64(config.vocab_size - 4)) for w in weights.words(seed, f"ids{k}", n)]
        v, hs = embed(model.float(), modules, ids, torch.float32)
        assert torch.isfinite(v).all(), name
        t[f"ids.{k}"] = torch.tensor(ids, dtype=torch.int32); t[f"vector.{k}"] = v.contiguous()
        for i, h in enumerate(hs): t[f"hidden.{k}.{i}"] = h[[0, n // 2, n - 1]].contiguous().clone()
        noise = max(noise, float((embed(model.double(), modules, ids, torch.float64)[0] - v).abs().max()))
    model.float()
    ids = t["ids.1"].tolist(); v = t["vector.1"]; dead = []
    with torch.no_grad():
        parts = [("", model)] + [(f"{i + 1}.", m) for i, m in enumerate(modules)]
        for prefix, part in parts:
            for pn, p in part.float().named_parameters():
                keep = p.detach().clone(); p.add_(torch.randn_like(p) * 0.3 * (p.std() if p.numel() > 1 else 1))
                if (embed(model, modules, ids, torch.float32)[0] - v).abs().max() < 1e-3 * v.std(): dead.append(prefix + pn)
                p.copy_(keep)
    if name in TEXTS and spec is MODELS[name]: t |= make_texts(d, *TEXTS[name])
    save_file(t, os.path.join(d, "golden.safetensors"),
              {"reference": f"transformers {transformers.__version__}, torch {torch.__version__}", "f32_noise": f"{noise:.3e}"})
    print(f"{name:24s} dim {len(v):4d}  std {v.std():.4f}  f32 noise {noise:.1e}" + (f"  NO EFFECT: {dead}" if dead else ""), flush=True)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + "the a sea tide rose and fell ##s ##ing ##ed walk stone on shore query document : , . red ##der moon".split()
PROMPTS = {"query": "query : ", "document": "document : ", "plain": ""}
TEXTS = {
    # whole files of a model with a tokenizer: settings, texts (text, prompt name or None)
    "bert": (dict(prompts=PROMPTS, default_prompt_name="document"), 12,
             [("The tide rose, and fell.", None), ("the tide rose , and fell .", "plain"), ("Walking on the shore", "query"),
              ("the moon walked on the stones and the sea rose and the sea fell and the tide", "query")]),
}


def make_texts(d, settings, most, texts):
    """A word-piece tokenizer and the library's settings; vectors of whole texts, cut to `most` tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, decoders
    tok = Tokenizer(models.WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(); tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer(); tok.decoder = decoders.WordPiece()
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    transformers.PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
                                         mask_token="[MASK]", model_max_length=320).save_pretrained(d)
    json.dump(dict(max_seq_length=most, do_lower_case=True), open(os.path.join(d, "sentence_bert_config.json"), "w"), indent=2)
    json.dump(settings, open(os.path.join(d, "config_sentence_transformers.json"), "w"), indent=2)
    json.dump([dict(text=t, prompt_name=p) for t, p in texts], open(os.path.join(d, "texts.json"), "w"), indent=2)
    model = SentenceTransformer(d, device="cpu", model_kwargs=dict(dtype=torch.float32, attn_implementation="eager"))
    return {f"text.{i}": torch.tensor(model.encode(t, prompt_name=p)) for i, (t, p) in enumerate(texts)}


def make_gguf(name, spec, out, seed, llama_cpp):
    sys.path[:0] = [llama_cpp, os.path.join(llama_cpp, "gguf-py")]
    import gguf
    from pathlib import Path
    from conversion import get_model_class
    with tempfile.TemporaryDirectory() as tmp:
        make(name, spec, tmp, seed)
        src, dst = os.path.join(tmp, name), os.path.join(out, name + ".gguf")
        weights.materialize(src)
        for f in os.listdir(src):
            if f.endswith("_Dense"): weights.materialize(os.path.join(src, f))
        if spec[1] == "modernbert":  # fields of the published configs, which the converter reads
            path = os.path.join(src, "config.json"); cfg = json.load(open(path))
            json.dump(cfg | dict(layer_norm_eps=cfg["norm_eps"], global_attn_every_n_layers=3), open(path, "w"))
        make_ggufs.write_vocab(src, spec[2]["vocab_size"])
        os.makedirs(dst, exist_ok=True)
        arch = json.load(open(os.path.join(src, "config.json")))["architectures"][0]
        model = get_model_class(arch)(Path(src), gguf.LlamaFileType.MOSTLY_BF16, Path(os.path.join(dst, "model.gguf")), model_name="tiny",
                                      sentence_transformers_dense_modules=True)
        model.set_vocab = model._set_vocab_none
        model.write()
        os.replace(os.path.join(src, "golden.safetensors"), os.path.join(dst, "golden.safetensors"))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--llama-cpp"); a.add_argument("--out", default="tests/golden/embed"); a.add_argument("--only")
    a = a.parse_args()
    wanted = lambda name: not a.only or name in a.only.split(",")
    for i, (name, spec) in enumerate(MODELS.items()):
        if not wanted(name): continue
        make(name, spec, a.out, 5000 + 10 * i)
        os.remove(os.path.join(a.out, name, "model.safetensors"))
    for i, (name, spec) in enumerate(GGUFS.items()):
        if a.llama_cpp and wanted(name + ".gguf"): make_gguf(name, spec, a.out, 6000 + 10 * i, a.llama_cpp)


if __name__ == "__main__":
    main()
