"""Second implementation of the merges of KVSlimmer and AsymKV, in NumPy.

    python3 scripts/golden/kvslimmer_merges.py    tests/data/policies/merges.json

merges.json: random layers and the result of one merge
  n_heads, n_kv_heads, head_dim
  cases: n_entries, n_merges, sinks, keys and values (integers / 4, (G, n, d)), masses (n), attention ((H, n), integers
         / 4096), outputs (integers / 4, (H, d)); first (first entries of the pairs), merged ((pairs, G, d)),
         outside (number of weights outside [0, 1]); gradients (integers / 64, (G, n, d)) and asymkv (AsymKV's merged keys
         of the same pairs)

  published: two merges in one layer with `weights = published`, sinks = 2: n_chunks (read before), n_entries, keys,
         values, masses, attention and outputs as above, for the entries left by the first merge plus new entries;
         first, merged
"""

import json
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tests/data"
GAMMA = 4096 / np.log(512)


def scores_of(attention, masses, sinks):
    """Returns the first entries of all pairs and the logarithms of their scores."""
    mass = attention.sum(0)
    index = np.arange(sinks, mass.size - 1)
    with np.errstate(divide="ignore"):
        return index, np.log((mass[index] + mass[index + 1]) * (masses[index] + masses[index + 1])) - (index - sinks + 1) / GAMMA


def pairs_of(attention, masses, n_merges, sinks, jitter=None):
    """Returns the ascending first entries of the merged pairs. attention: (H, n)"""
    n = masses.size
    index, score = scores_of(attention, masses, sinks)
    if jitter is not None:
        score = score + jitter.uniform(-1e-5, 1e-5, score.size)
    taken, chosen = np.zeros(n, bool), []
    for i in index[np.argsort(score, kind="stable")]:
        if len(chosen) == n_merges:
            break
        if not taken[i] and not taken[i + 1]:
            taken[[i, i + 1]] = True
            chosen.append(int(i))
    return sorted(chosen)


def pair_gap(first, attention, masses, sinks):
    """Returns the smallest difference of log scores between an unmerged and a merged pair. Each unmerged pair is compared with
    the lowest merged pair that overlaps it, or with the highest merged pair if none overlaps it."""
    index, score = scores_of(attention, masses, sinks)
    goes = np.isin(index, first)
    beside = np.where(goes, score, np.inf)
    beside = np.minimum(np.append(beside[1:], np.inf), np.append(np.inf, beside[:-1]))
    above = score - np.where(np.isinf(beside), score[goes].max(), beside)
    return above[~goes].min(initial=np.inf)


def weights_of(alpha, value, mass, output):
    """Returns a pair's two weights by Eq. 33, and their denominator relative to |c11| + |c22|.

    alpha: (2); mass: (2); value: sums of values (2, d); output: (d)
    """
    mean = value / mass[:, None]
    c11 = np.linalg.norm(alpha[0] * (1 - 2 * alpha[0]) * (mean[0] - output))
    c22 = np.linalg.norm(alpha[1] * (1 - 2 * alpha[1]) * (mean[1] - output))
    c12 = np.linalg.norm(-alpha[0] * alpha[1] * (mean[0] + mean[1] - 2 * output))
    total, whole = c11 - 2 * c12 + c22, c11 + c22
    if total <= 1e-6 * whole:
        return np.array([0.5, 0.5]), total / whole if whole > 0 else 0
    return np.array([c11 - c12, c22 - c12]) / total, total / whole


def merged_keys(first, keys, values, masses, attention, outputs):
    """Returns merged keys (pairs, G, d), weights (pairs, G, 2) and relative denominators (pairs, G).

    keys, values: (G, n, d); attention: (H, n); outputs: (H, d)
    """
    heads = keys.shape[0]
    group = attention.shape[0] // heads
    alpha = attention.reshape(heads, group, -1).mean(1)
    output = outputs.reshape(heads, group, -1).mean(1)
    merged, weights, shares = [], [], []
    for i in first:
        found = [weights_of(alpha[g, i : i + 2], values[g, i : i + 2], masses[i : i + 2], output[g]) for g in range(heads)]
        weights.append([one for one, _ in found])
        shares.append([share for _, share in found])
        merged.append([weights[-1][g] @ keys[g, i : i + 2] for g in range(heads)])
    return np.array(merged), np.array(weights), np.array(shares)


def fisher_keys(first, keys, gradients):
    """Returns merged keys (pairs, G, d), weighted by squared gradients. keys, gradients: (G, n, d)"""
    one, two = np.array(first), np.array(first) + 1
    a, b = gradients[:, one] ** 2, gradients[:, two] ** 2
    weight = np.where(a + b > 0, a / np.where(a + b > 0, a + b, 1), 0.5)
    return (weight * keys[:, one] + (1 - weight) * keys[:, two]).transpose(1, 0, 2)


class Published:
    """Computes weights as in KVSlimmer's published code, from h (G, n) of the entries so far.

    The published code does not merge after the prompt. Entries of generated tokens get the last query's h, and old
    entries keep theirs.
    """

    def __init__(self, sinks):
        self.sinks, self.h, self.last_look, self.least_denominator = sinks, None, None, np.inf

    def merged(self, first, n_chunks, keys, values, masses, attention, outputs, after_prompt=False):
        heads, n, _ = keys.shape
        alpha = attention.reshape(heads, -1, n).mean(1)
        alpha[:, : self.sinks] = 0
        alpha /= alpha.sum(1, keepdims=True)
        distance = np.abs(values - (alpha[:, :, None] * values).sum(1, keepdims=True)).sum(2)
        h = alpha * (1 - 2 * alpha) * distance
        if (n_chunks, after_prompt) == self.last_look:  # merging is repeated
            h = self.h
        elif self.h is not None:
            known = self.h.shape[1]
            h[:, :known] = self.h if after_prompt else h[:, :known] / n_chunks + self.h * (n_chunks - 1) / n_chunks
        self.last_look = n_chunks, after_prompt
        one, two = np.array(first), np.array(first) + 1
        x = h / (alpha * (1 - 2 * alpha) + 1e-21)
        c12 = alpha[:, one] * alpha[:, two] * (x[:, one] + x[:, two])
        a, b = h[:, one] - c12, h[:, two] - c12
        self.least_denominator = min(self.least_denominator, (np.abs(a + b) / (np.abs(a) + np.abs(b))).min())
        a, b = a / (a + b), b / (a + b)
        h[:, one] = a**2 * h[:, one] + b**2 * h[:, two]
        self.h = np.delete(h, two, 1)
        return (a[:, :, None] * keys[:, one] + b[:, :, None] * keys[:, two]).transpose(1, 0, 2)


def published_looks(heads, kv_heads, d):
    random, weights, looks = np.random.default_rng(9), Published(2), []
    for n, n_merges, n_chunks in ((20, 5, 3), (22, 6, 4)):  # seven entries are appended between the merges
        keys, values = random.integers(-16, 17, (2, kv_heads, n, d))
        masses = random.integers(1, 6, n)
        attention = random.integers(1, 4096 // n, (heads, n))
        attention[:, 6] = 1800  # more than half
        given = keys / 4, values / 4, masses.astype(float), attention / 4096, np.zeros((heads, d))
        first = pairs_of(given[3], given[2], n_merges, 2)
        merged = weights.merged(first, n_chunks, *given)
        looks.append(
            {
                "n_chunks": n_chunks, "n_entries": n, "n_merges": n_merges,
                "keys": keys.ravel().tolist(), "values": values.ravel().tolist(), "masses": masses.tolist(),
                "attention": attention.ravel().tolist(), "outputs": [0] * heads * d,
                "first": first, "merged": [float(f"{x:.9g}") for x in merged.ravel()],
            }
        )
        print("published,", n, "entries,", len(first), "pairs")
    return looks


def merge(first, keys, values, masses, positions, new_keys, cap):
    """Returns the layer with each pair merged into one entry."""
    gone = np.array(first) + 1
    keys, values, masses, positions = keys.copy(), values.copy(), masses.copy(), positions.copy()
    for pair, i in enumerate(first):
        keys[:, i] = new_keys[pair]
        values[:, i] += values[:, i + 1]
        masses[i] = min(masses[i] + masses[i + 1], cap)
        positions[i] = positions[i + 1]
    return np.delete(keys, gone, 1), np.delete(values, gone, 1), np.delete(masses, gone), np.delete(positions, gone)


def write_merges():
    random, of_gradients = np.random.default_rng(7), np.random.default_rng(8)
    heads, kv_heads, d = 6, 3, 8
    cases = []
    for n, n_merges, sinks in ((12, 3, 2), (40, 11, 4), (40, 19, 0), (9, 8, 0), (120, 30, 32)):
        keys = random.integers(-16, 17, (kv_heads, n, d))
        masses = random.integers(1, 6, n)
        values = random.integers(-16, 17, (kv_heads, n, d)) * masses[:, None]
        attention = random.integers(1, 4096 // n, (heads, n))
        attention[:, 5] = 2600  # so that some weights can leave [0, 1]
        outputs = random.integers(-8, 9, (heads, d))
        given = keys / 4, values / 4, masses.astype(float), attention / 4096, outputs / 4
        first = pairs_of(given[3], given[2], n_merges, sinks)
        merged, weights, _ = merged_keys(first, *given)
        gradients = of_gradients.integers(-3, 4, keys.shape)
        cases.append(
            {
                "n_entries": n, "n_merges": n_merges, "sinks": sinks,
                "keys": keys.ravel().tolist(), "values": values.ravel().tolist(), "masses": masses.tolist(),
                "attention": attention.ravel().tolist(), "outputs": outputs.ravel().tolist(),
                "first": first, "merged": [float(f"{x:.9g}") for x in merged.ravel()],
                "gradients": gradients.ravel().tolist(),
                "asymkv": [float(f"{x:.9g}") for x in fisher_keys(first, keys / 4, gradients / 64).ravel()],
                "outside": int(((weights < 0) | (weights > 1)).any(2).sum()),
            }
        )
        print(n, "entries,", len(first), "of", n_merges, "pairs,", cases[-1]["outside"], "weights outside [0, 1]")
    document = {"about": "scripts/golden/kvslimmer_merges.py", "n_heads": heads, "n_kv_heads": kv_heads, "head_dim": d, "cases": cases,
                "published": published_looks(heads, kv_heads, d)}
    (DATA / "policies" / "merges.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    write_merges()
