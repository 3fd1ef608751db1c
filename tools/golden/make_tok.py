#!/usr/bin/env python3
"""Makes tests/text/data/*.json: small tokenizers of many kinds with what `tokenizers` answers.

usage: make_tok.py [NAME...]      (pip install tokenizers)

Each file: the tokenizer.json, a tokenizer_config.json, "cases" with a text's ids for the four
combinations of (parse special, add special), and "decodes" with the text of ids with and without
special tokens.  Random texts come from tests/text/compare_tokenizers.py, by seed.
"""
import json
import os
import random
import sys

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "text"))
from compare_tokenizers import make_text  # noqa: E402

QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN.replace(r"\p{N}| ?", r"\p{N}{1,3}| ?")
QWEN35 = QWEN.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]+", r"[^\s\p{L}\p{M}\p{N}]+")
U, W = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
C = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{U}*{W}+{C}?|[^\r\n\p{{L}}\p{{N}}]?{U}+{W}*{C}?|\p{{N}}{{1,3}}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
            " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")

CORPUS = [
    "The harbour lights were lit at seven; nobody's boat had come back, and they'd waited since 1921.",
    "hello world, hello Hello HELLO, it's what we've said 123 times (1234567 to be exact)!!!",
    "for (int i = 0; i < n; i++) {\n\tsum += x[i];  // a comment\n}\n\n\n    return sum;\n",
    "def f(x: list[float]) -> float:\r\n    return sum(x) / len(x)\r\n",
    "Der Fluß fließt über die Brücke; la forêt où l'été s'achève. Ça va ? Où ça ?",
    "Москва и река, ночь без огней. Ελληνικά γράμματα και λέξεις. עברית וערבית العربية",
    "你好世界，今天天气很好。こんにちは世界。カタカナ 한국어 문장 입니다.",
    "हिन्दी में लिखा हुआ वाक्य ไทยไม่มีช่องว่าง e\u0301 a\u0323\u0307 \u212b \U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "\u2581\u2581a tokens \u2581like this", "aaaaaaaaaaaaaaaa abababab 0000000 ......   ---- ====",
]
BIG = [" ".join(CORPUS)] * 3 + CORPUS * 4


def bpe(pre=None, norm=None, dec=None, post=None, size=420, special=("<s>", "</s>"), **model):
    t = Tokenizer(models.BPE(**model))
    if norm:
        t.normalizer = norm
    if pre:
        t.pre_tokenizer = pre
    alphabet = pre_tokenizers.ByteLevel.alphabet() if "byte" in repr(pre).lower() else []
    initial = list(special)
    if model.get("byte_fallback"):
        initial += [f"<0x{i:02X}>" for i in range(256)]
        size += 256
    if model.get("unk_token"):
        initial.insert(0, model["unk_token"])
    extra = {k: model[k] for k in ("continuing_subword_prefix", "end_of_word_suffix") if model.get(k)}
    t.train_from_iterator(BIG, trainers.BpeTrainer(vocab_size=size, special_tokens=initial, show_progress=False,
                                                   initial_alphabet=alphabet, limit_alphabet=300, **extra))
    if model.get("byte_fallback"):  # the bytes are pieces of the model, not added tokens
        j = json.loads(t.to_str())
        j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
        t = Tokenizer.from_str(json.dumps(j))
    if dec:
        t.decoder = dec
    if post:
        t.post_processor = post(t)
    return t


def bytes_split(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns] +
                                   [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def template(t):
    return processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> $B </s>",
                                         special_tokens=[(x, t.token_to_id(x)) for x in ("<s>", "</s>")])


def bytes_of(p, **kw):
    return lambda: bpe(bytes_split(*p), dec=decoders.ByteLevel(), **kw)


def bytes_added():
    t = bpe(bytes_split(QWEN), normalizers.NFC(), decoders.ByteLevel(), template, size=600)
    t.add_special_tokens([AddedToken("<|im_start|>", normalized=False), AddedToken("<|im_end|>", rstrip=True),
                          AddedToken("<mask>", lstrip=True), AddedToken("<|im|>", lstrip=True, rstrip=True)])
    t.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("word", single_word=True),
                  AddedToken("\u00e9t\u00e9", normalized=True), AddedToken("<tool><tool>"), AddedToken("  ", normalized=False),
                  AddedToken("a b", lstrip=True, single_word=True)])
    return t


def llama2():
    norm = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    dec = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                             decoders.Strip(" ", 1, 0)])
    return bpe(None, norm, dec, template, special=("<s>", "</s>"), unk_token="<unk>", byte_fallback=True, fuse_unk=True)


def gemma():
    dec = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return bpe(pre_tokenizers.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "\u2581"), dec, None,
               unk_token="<unk>", byte_fallback=True, fuse_unk=True, size=500)


def unk(fuse):
    return lambda: bpe(pre_tokenizers.WhitespaceSplit(), None, decoders.BPEDecoder("</w>"), None, size=120,
                       unk_token="<unk>", fuse_unk=fuse, end_of_word_suffix="</w>")


def marked(pre, norm=None):
    """Words are visible: each ends in </w>."""
    return lambda: bpe(pre, norm, None, None, size=200, unk_token="<unk>", end_of_word_suffix="</w>")


def splits(behavior, invert):
    return marked(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"[aeiou\s]+|\d"), behavior, invert),
                                           pre_tokenizers.Split("l", behavior, invert)]))


def unigram(norm, pre, dec, **kw):
    def make():
        t = Tokenizer(models.Unigram())
        if norm:
            t.normalizer = norm
        t.pre_tokenizer = pre
        t.train_from_iterator(BIG, trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>", "<s>", "</s>"],
                                                           unk_token="<unk>", show_progress=False))
        j = json.loads(t.to_str())
        if kw.get("byte_fallback"):
            j["model"]["byte_fallback"] = True
            low = min(s for _, s in j["model"]["vocab"])
            j["model"]["vocab"] += [[f"<0x{i:02X}>", low - 5] for i in range(256)]
        t = Tokenizer.from_str(json.dumps(j))
        t.decoder = dec
        t.post_processor = template(t)
        return t
    return make


def wordpiece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(BIG, trainers.WordPieceTrainer(vocab_size=400, show_progress=False,
                                                         special_tokens=["[UNK]", "[CLS]", "[SEP]"]))
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]")))
    return t


def wordlevel():
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(BIG, trainers.WordLevelTrainer(vocab_size=200, show_progress=False, special_tokens=["[UNK]"]))
    return t


def roberta():
    pre = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return bpe(pre, None, decoders.ByteLevel(), lambda t: processors.RobertaProcessing(
        ("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))))


def falcon():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
                                   pre_tokenizers.Digits(True), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    return bpe(pre, None, decoders.ByteLevel())


def metaspace(scheme, split=True):
    return lambda: bpe(pre_tokenizers.Metaspace("\u2581", scheme, split), None, decoders.Metaspace("\u2581", scheme),
                       template, unk_token="<unk>")


S = pre_tokenizers
KINDS = {
    "bytes_qwen2": (bytes_added, 300), "fallback_llama2": (llama2, 300), "fallback_gemma": (gemma, 100),
    "bytes_llama3": (bytes_of([LLAMA3], ignore_merges=True), 100), "bytes_qwen35": (bytes_of([QWEN35]), 100),
    "bytes_o200k": (bytes_of([O200K]), 100),
    "bytes_deepseek3": (bytes_of([r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", DEEPSEEK]), 100),
    "bytes_roberta": (roberta, 80), "bytes_falcon": (falcon, 80),
    "bytes_smollm": (lambda: bpe(S.Sequence([S.Digits(True), S.ByteLevel(add_prefix_space=False)]), None, decoders.ByteLevel()), 80),
    "metaspace_first": (metaspace("first"), 60), "metaspace_always": (metaspace("always"), 60),
    "metaspace_never": (metaspace("never", False), 60),
    "suffix_fused": (unk(True), 50), "suffix": (unk(False), 50),
    "split_removed": (splits("removed", False), 40), "split_isolated_inv": (splits("isolated", True), 40),
    "split_previous": (splits("merged_with_previous", False), 40), "split_previous_inv": (splits("merged_with_previous", True), 40),
    "split_next": (splits("merged_with_next", False), 40), "split_next_inv": (splits("merged_with_next", True), 40),
    "split_contiguous": (splits("contiguous", False), 40),
    "pre_mix": (marked(S.Sequence([S.Whitespace(), S.Digits(False), S.Punctuation("merged_with_next"), S.CharDelimiterSplit("e")]),
                       normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), normalizers.Lowercase()])), 60),
    "norm_nfd": (marked(S.WhitespaceSplit(), normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])), 60),
    "norm_nfkd": (marked(S.WhitespaceSplit(), normalizers.Sequence([normalizers.NFKD(), normalizers.Replace(Regex(r"\s+"), " ")])), 60),
    "unigram": (unigram(normalizers.NFKC(), S.Metaspace(), decoders.Metaspace()), 80),
    "unigram_bytes": (unigram(None, S.Metaspace(), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
                              if False else decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]),
                              byte_fallback=True), 80),
    "wordpiece": (wordpiece, 80), "wordlevel": (wordlevel, 60),
}


def record(name, make, n):
    t = make()
    text = t.to_str()
    both = {p: Tokenizer.from_str(text) for p in (True, False)}
    both[False].encode_special_tokens = True
    special = [a.content for a in t.get_added_tokens_decoder().values()]
    rng = random.Random(name)
    cases, decodes = [], []
    fixed = CORPUS + ["", " ", "  x", "<s>", " <s> </s> x", "</s></s>", "<0x0A>"] + [f" a{x}  b" for x in special]
    for s in fixed + [make_text(rng, special, ()) for _ in range(n)]:
        ids = [both[p].encode(s, add_special_tokens=a).ids for p in (False, True) for a in (False, True)]
        cases.append([s] + [None if i and x == ids[0] else x for i, x in enumerate(ids)])
    size = t.get_vocab_size()
    for k in range(n // 2):
        ids = [rng.randrange(size) for _ in range(rng.randint(1, 20))]
        if k % 2:
            ids = rng.choice(cases)[1] or ids
        decodes.append([ids] + [t.decode(ids, skip_special_tokens=s) for s in (True, False)])
    doc = {"made_with": "tokenizers " + tokenizers.__version__, "tokenizer": json.loads(text),
           "config": {"bos_token": "<s>", "eos_token": {"content": "</s>"}}, "cases": cases, "decodes": decodes}
    path = os.path.join(ROOT, "tests", "text", "data", name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")
    print(f"{name}: {len(cases)} texts, {len(decodes)} decodes, {os.path.getsize(path)} bytes")


for key, (maker, count) in KINDS.items():
    if len(sys.argv) < 2 or key in sys.argv[1:]:
        record(key, maker, count)
