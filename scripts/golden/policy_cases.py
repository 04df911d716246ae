"""Every policy on a small random cache: tests/data/policies/cases.json, and importance.json for headkv.

The decisions come from policies.py, the second implementation of the methods. Queries and keys are random multiples of 1/4,
so that the file stores them exactly. Needs only NumPy:

    python3 scripts/golden/policy_cases.py

Structure of the file:
  about, n_layers, n_heads, n_kv_heads, head_dim, n_tokens
  queries   n_layers lists of (n_heads, n_tokens, head_dim) integers, row by row; a value is the integer / 4
  keys      n_layers lists of (n_kv_heads, n_tokens, head_dim), the same
  cases     policy (in the syntax of the command line, files by path in tests/data), budget, kept [layer][row] -> positions, and for aperturekv
            head_jsd [layer] -> (rows, rows)
A policy whose decision depends on less than 1e-6 (relative) of a score is refused, because the C++ code ranks in float32, and
a test should not depend on the last bit of a score.
"""

import json
import math
import sys
import types
from pathlib import Path

import numpy as np

# policies.py imports observe.py, which needs torch. This script computes its own observations, so an empty module replaces
# observe.py.
sys.modules.setdefault("observe", types.SimpleNamespace(attend=None))
import policies  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "tests/data/policies"
L, H, G, D, N = 3, 6, 3, 8, 61

WINDOW = "window=8"
IMPORTANCE = "importance=policies/importance.json"
POLICIES = [
    "streaming-llm",
    "streaming-llm:sinks=0",
    "h2o",
    "h2o:recent=3",
    "h2o:recent=0,reduce=max",
    f"snapkv:{WINDOW}",
    f"snapkv:{WINDOW},pooling=avg,kernel=5",
    f"snapkv:{WINDOW},pooling=none",
    f"snapkv:{WINDOW},reduce=max",
    f"snapkv:{WINDOW},reduce=sum,lambda=0.45",
    f"snapkv:{WINDOW},granularity=query_head",
    f"pyramidkv:{WINDOW}",
    f"pyramidkv:{WINDOW},beta=3",
    f"ada-snapkv:{WINDOW}",
    f"ada-snapkv:{WINDOW},alpha=0",
    f"ada-snapkv:{WINDOW},lambda=0.3,granularity=query_head",
    f"ada-snapkv:{WINDOW},normalize=on",
    f"ada-pyramidkv:{WINDOW},beta=4",
    "aperturekv",
    "aperturekv:lambda=0",
    "aperturekv:qd=off,divergence=kl",
    "aperturekv:raba=off",
    "aperturekv:divergence=cross-entropy,alpha=0.3",
    "aperturekv:sharpen=none",
    "aperturekv:sharpen=temperature,tau=0.02",
    f"k-vec:{WINDOW}",
    f"k-vec:{WINDOW},delta=1",
    f"k-vec:{WINDOW},delta=1,criterion=entropy,extended_window=20",
    f"k-vec:{WINDOW},cross_head=off",
    f"k-vec:{WINDOW},cross_layer=off",
    f"k-vec:{WINDOW},cross_head=off,cross_layer=off",
    f"k-vec:{WINDOW},lambda=2,pooling=none",
    f"k-vec:{WINDOW},beta=0.75,reduce=max",
    f"k-vec:{WINDOW},beta=0,pooling=avg,kernel=3",
    f"headkv:{WINDOW},{IMPORTANCE}",
    f"headkv:{WINDOW},{IMPORTANCE},beta=1.005,temperature=3",
    f"headkv:{WINDOW},{IMPORTANCE},beta=10,pooling=none",
    f"headkv:{WINDOW},{IMPORTANCE},granularity=query_head",
    "lacache",
    "lacache:span=1",
    "lacache:span=1,sinks=2",
    "lacache:span=2",
    "lacache:span=2,overlap=1,sinks=0",
    "longcache",
    "longcache:chunk=5",
    "longcache:sinks=0,recent=3,chunk=4,reduce=max",
    "longcache:chunk=3,granularity=query_head",
    "random",
    "random:shared=on,recent=5",
]
BUDGETS = [9, 16, 30]


class Array:
    """An array with the two tensor methods that policies.py calls."""

    def __init__(self, values):
        self.values = values

    def double(self):
        return self

    def numpy(self):
        return self.values


def observed_layer(queries, keys):
    """Returns the observations of a prefill for (H, N, D) and (G, N, D), with exact attention sums over all queries."""
    logits = queries @ np.repeat(keys, H // G, axis=0).swapaxes(1, 2) / math.sqrt(D)
    causal = np.tril(np.ones((N, N), dtype=bool))
    sums = policies.softmax(np.where(causal, logits, -np.inf)).sum(axis=1)
    return types.SimpleNamespace(queries=Array(queries), keys=Array(keys), attention_sums=Array(sums))


def require_clear(decision, policy, budget):
    for layer in policies.near_ties(decision, 1e-6):
        if any(len(row) for row in layer):
            raise SystemExit(f"{policy} at {budget}: a near tie; choose another seed")


def main():
    random = np.random.default_rng(20240611)
    queries = random.integers(-5, 6, (L, H, N, D))
    # Some tokens have a common direction in all heads, so that the heads agree in part.
    keys = random.integers(-5, 6, (L, G, N, D)) + (random.random((L, 1, N, 1)) < 0.1) * random.integers(-6, 7, (L, G, 1, D))
    queries[:, :, -8:] += random.integers(-4, 5, (L, H, 1, D))
    layers = [observed_layer(q / 4.0, k / 4.0) for q, k in zip(queries, keys)]
    observation = types.SimpleNamespace(n=N, layers=layers)
    config = types.SimpleNamespace(num_hidden_layers=L, num_key_value_heads=G, num_attention_heads=H)
    # HeadKV's format: a list for each head. A few heads are important and many are not.
    draws = np.random.default_rng(7).exponential(0.02, (L, H, 3)) * (np.random.default_rng(8).random((L, H, 1)) < 0.6)
    importance = {f"{layer}-{head}": draws[layer, head, : 1 + head % 3].round(4).tolist()
                  for layer in range(L) for head in range(H)}
    (DATA / "importance.json").write_text(json.dumps(importance, indent=1) + "\n")
    selector = policies.Selector(observation, config)
    cases = []
    for policy in POLICIES:
        for budget in BUDGETS:
            decision = selector.select(policy, budget)
            require_clear(decision, policy, budget)
            case = {"policy": policy, "budget": budget,
                    "kept": [[np.asarray(row).tolist() for row in layer] for layer in decision.kept]}
            if decision.divergence and "divergence" not in policy:
                case["head_jsd"] = decision.divergence and [m.round(12).ravel().tolist() for m in decision.divergence]
            cases.append(case)
    data = {
        "about": "made by scripts/golden/policy_cases.py",
        "n_layers": L, "n_heads": H, "n_kv_heads": G, "head_dim": D, "n_tokens": N,
        "queries": [q.ravel().tolist() for q in queries],
        "keys": [k.ravel().tolist() for k in keys],
        "cases": cases,
    }
    (DATA / "cases.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
