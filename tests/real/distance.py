"""Distance between a program's logits and the reference's recorded distributions.

At a position: KL divergence over the reference's 32 best tokens plus one bin for the rest,
sum p (log p - log q) + (1-P) log((1-P)/(1-Q)).  The goldens come from tools/golden/make_real.py.
"""
import numpy as np
from safetensors.numpy import load_file

# file in the model cache, golden, mean allowed in the fast mode (nats)
MODELS = {
    "smollm2": ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1", 0.005),
    "gemma3-270m": ("gemma-3-270m-q4_k_m.gguf", "gemma-3-270m-q4_k_m", 0.010),
    "qwen2.5-coder-0.5b": (
        "Qwen2.5-Coder-0.5B-Instruct-AWQ.Q4_K_M.gguf",
        "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M",
        0.0015,
    ),
}


def prompts(golden):
    """The recorded prompts of one golden file, in order."""
    k = 0
    while f"{k}.ids" in golden:
        yield {n: golden[f"{k}.{n}"] for n in ("ids", "lse", "top", "top_ids")}
        k += 1


def log_softmax(logits):
    x = logits.astype(np.float64)
    top = x.max(axis=1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis=1, keepdims=True))


def divergence(prompt, logits):
    """KL at each position, and whether the best token flipped where the margin is over 0.05."""
    log_p = prompt["top"].astype(np.float64) - prompt["lse"].astype(np.float64)[:, None]
    log_q = np.take_along_axis(log_softmax(logits), prompt["top_ids"].astype(np.int64), axis=1)
    p, q = np.exp(log_p), np.exp(log_q)
    rest_p = np.maximum(1 - p.sum(axis=1), 0)
    rest_q = np.maximum(1 - q.sum(axis=1), 1e-300)
    rest = np.where(rest_p > 1e-9, rest_p * np.log(np.maximum(rest_p, 1e-300) / rest_q), 0)
    kl = (p * (log_p - log_q)).sum(axis=1) + rest
    margin = prompt["top"][:, 0] - prompt["top"][:, 1]
    flips = (logits.argmax(axis=1) != prompt["top_ids"][:, 0]) & (margin > 0.05)
    return kl, flips


def load(path):
    return load_file(path)
