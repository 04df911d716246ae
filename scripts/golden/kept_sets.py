"""Kept sets of every policy on the default model: tests/data/policies_reference/{demo,short}.json, and importance.json for
headkv.

    scripts/golden/python scripts/golden/kept_sets.py [POLICY ...]

computes all cases, or only those of the named policies; other cases in the files do not change. Structure of a file:
  about, prompt, n_tokens, n_layers
  cases: a list of
    policy      in the syntax of the command line, e.g. "ada-snapkv:window=8,lambda=0.45"; files by path in tests/data
    budget      entries per KV head and layer
    kept        n_layers strings; each contains the layer's rows separated by a blank; a row is a list of ascending
                positions, encoded by vlq.py
    near        "layer.row" -> positions, in the same code, whose membership depends on rounding: the score is within
                1e-5 (relative) of the row's cutoff, or the membership changes when all attention weights are perturbed
                by 1e-5 (which also finds near ties of joint allocations); rows without such positions are absent
    head_jsd    for aperturekv with JSD: n_layers lists, the upper triangle row by row
"""

import json
import sys

import numpy as np

import policies
import vlq
from observe import make_exact, observe
from reference_model import DATA, Reference, load_prompts

IMPORTANCE = "importance=policies_reference/importance.json"
MAIN = [
    "streaming-llm",
    "h2o",
    "snapkv",
    "pyramidkv",
    "ada-snapkv",
    "ada-pyramidkv",
    "aperturekv",
    "k-vec",
    f"headkv:{IMPORTANCE}",
    "lacache",
    "longcache",
    "random",
]
VARIANTS = [
    "streaming-llm:sinks=32",
    "h2o:recent=32",
    "snapkv:window=8",
    "snapkv:lambda=0.45",
    "snapkv:pooling=avg,kernel=5",
    "snapkv:pooling=none",
    "snapkv:reduce=max",
    "snapkv:granularity=query_head",
    "pyramidkv:beta=5",
    "ada-snapkv:window=8",
    "ada-snapkv:window=8,lambda=0.45",
    "ada-snapkv:alpha=0",
    "ada-snapkv:normalize=on",
    "aperturekv:lambda=0",
    "aperturekv:raba=off",
    "aperturekv:divergence=kl",
    "aperturekv:divergence=cross-entropy",
    "aperturekv:sharpen=none",
    "aperturekv:sharpen=temperature,tau=0.01",
    "aperturekv:alpha=0.2",
    "k-vec:cross_head=off",
    "k-vec:cross_layer=off",
    "k-vec:delta=1,criterion=entropy",
    "k-vec:lambda=2,beta=0.5",
    "k-vec:pooling=none,reduce=max",
    f"headkv:{IMPORTANCE},beta=1.005,temperature=2",
    f"headkv:{IMPORTANCE},granularity=query_head",
    "lacache:span=8,overlap=4",
    "lacache:span=4,sinks=8",
    "longcache:chunk=8",
    "longcache:sinks=16,recent=8,granularity=query_head",
    "random:shared=on,recent=8",
]
CASES = {
    "demo": [(p, b) for p in MAIN for b in (64, 256)] + [(p, 64) for p in VARIANTS],
    "short": [(p, b) for p in MAIN for b in (64, 240)] + [(p, 128) for p in VARIANTS],
}
NEAR = 1e-5


def case(observation, config, policy, budget):
    selector = policies.Selector(observation, config)
    decision = selector.select(policy, budget)
    entry = {"policy": policy, "budget": budget}
    entry["kept"] = [" ".join(vlq.encode(row) for row in layer) for layer in decision.kept]
    near = {}
    if decision.ranked:
        ties = policies.near_ties(decision, NEAR)
        moving = policies.unstable(observation, config, policy, budget, decision, NEAR)
        for layer, (a, b) in enumerate(zip(ties, moving)):
            for row, (x, y) in enumerate(zip(a, b)):
                if len(both := np.union1d(x, y)):
                    near[f"{layer}.{row}"] = vlq.encode(both)
    entry["near"] = near
    if decision.divergence and policies.parse(policy)[1]["divergence"] == "jsd":
        upper = np.triu_indices(decision.divergence[0].shape[0], 1)
        entry["head_jsd"] = [[float(f"{v:.9g}") for v in matrix[upper]] for matrix in decision.divergence]
    return entry


def check_totals(config, n, entry):
    """Checks the numbers of entries that the methods guarantee for any selection."""
    name, parameters = policies.parse(entry["policy"])
    sizes = np.array([[len(vlq.decode(row)) for row in layer.split(" ")] for layer in entry["kept"]])
    expected = min(entry["budget"], n) * sizes.shape[1]
    totals = sizes.sum(axis=1)
    assert totals.sum() == expected * config.num_hidden_layers, entry["policy"]
    assert "pyramid" in name or name == "headkv" or (totals == expected).all(), entry["policy"]
    window = parameters.get("window", 0)
    for layer in entry["kept"]:
        for row in layer.split(" "):
            positions = vlq.decode(row)
            assert positions == sorted(set(positions)) and positions[-1] < n
            assert positions[len(positions) - window :] == list(range(n - window, n)), entry["policy"]


def write_importance(config):
    """Writes an invented importance file in HeadKV's format: a few heads are important, many are not."""
    random = np.random.default_rng(20241025)
    document = {}
    for layer in range(config.num_hidden_layers):
        for head in range(config.num_attention_heads):
            weight = random.exponential() ** 3 * (random.random() < 0.5)
            document[f"{layer}-{head}"] = [round(float(weight * random.random()), 4) for _ in range(3)]
    (DATA / "policies_reference/importance.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


def main():
    chosen = set(sys.argv[1:])
    if unknown := chosen - policies.DEFAULTS.keys():
        raise SystemExit(f"unknown policy: {', '.join(sorted(unknown))}")
    reference = Reference()
    make_exact(reference)
    write_importance(reference.config)
    for name, cases in CASES.items():
        path = DATA / "policies_reference" / f"{name}.json"
        earlier = {}
        if chosen:
            earlier = {(c["policy"], c["budget"]): c for c in json.loads(path.read_text())["cases"]
                       if policies.parse(c["policy"])[0] not in chosen}
        ids = load_prompts()[name]["ids"]
        observation = observe(reference, ids)
        document = {
            "about": "scripts/golden/kept_sets.py; float64 throughout",
            "prompt": name,
            "n_tokens": len(ids),
            "n_layers": reference.config.num_hidden_layers,
            "cases": [],
        }
        for policy, budget in cases:
            entry = earlier.get((policy, budget)) or case(observation, reference.config, policy, budget)
            check_totals(reference.config, len(ids), entry)
            document["cases"].append(entry)
            print(name, policy, budget, "rows with near ties:", len(entry["near"]), flush=True)
        path.write_text(json.dumps(document, indent=0, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
