"""Intervals and p-values that SciPy computes: tests/data/analysis/statistics.json.

  intervals    a list of {values, mean, median, low, high}: percentile bootstrap of the mean, 95 %
  medians      the same for the median
  clusters     the same with cluster, the number of each value's cluster; NumPy draws the clusters
  pairs        a list of {a, b, mean, p}: permutation test of paired samples; exact for up to 17 of them
  exact_pairs  the same for up to 24 samples, of which at most 20 differ: NumPy enumerates all exchanges
  holm         {p, adjusted}, computed as in Holm (1979), Section 3

usage: python scripts/golden/statistics.py
"""

import json
import pathlib

import numpy as np
from scipy import stats

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests/data/analysis/statistics.json"
N_RESAMPLES = 200_000  # more than in the program, so that the differences are those of the program


def interval(values, statistic=np.mean):
    result = stats.bootstrap((values,), statistic, confidence_level=0.95, n_resamples=N_RESAMPLES, batch=1000,
                             method="percentile", random_state=np.random.default_rng(1))
    return {"values": list(values), "mean": float(np.mean(values)), "median": float(np.median(values)),
            "low": float(result.confidence_interval.low), "high": float(result.confidence_interval.high)}


def cluster_interval(values, cluster):
    values, cluster = np.asarray(values), np.asarray(cluster)
    random = np.random.default_rng(2)
    groups = [values[cluster == c] for c in np.unique(cluster)]
    sums, sizes = np.array([g.sum() for g in groups]), np.array([len(g) for g in groups])
    drawn = random.integers(len(groups), size=(N_RESAMPLES, len(groups)))
    means = sums[drawn].sum(1) / sizes[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return {"values": values.tolist(), "cluster": cluster.tolist(), "low": float(low), "high": float(high)}


def pair(a, b):
    result = stats.permutation_test((a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples",
                                    vectorized=True, n_resamples=N_RESAMPLES, batch=1000, alternative="two-sided",
                                    random_state=np.random.default_rng(3))
    return {"a": list(a), "b": list(b), "mean": float(np.mean(np.subtract(a, b))), "p": float(result.pvalue)}


def exact_pair(a, b):
    differences = np.subtract(a, b)
    signs = 1 - 2 * (np.arange(2 ** len(differences))[:, None] >> np.arange(len(differences)) & 1).astype(np.int8)
    size = np.rint(1000 * np.abs(differences)).astype(int) * np.sign(differences).astype(int)  # exact sums of thousandths
    sums = np.abs(signs.astype(np.int32) @ size.astype(np.int32))
    return {"a": list(a), "b": list(b), "mean": float(np.mean(differences)), "p": float(np.mean(sums >= abs(size.sum())))}


def exact_pairs():
    """14, 17 and 20 samples; 22 of which 20 differ; 20 whose differences often have equal sums."""
    random = np.random.default_rng(4)
    pairs = []
    for n, n_equal in ((14, 0), (17, 0), (20, 0), (20, 2)):
        b = random.random(n).round(3)
        a = (b + 0.1 + 0.3 * random.standard_normal(n)).round(3)
        pairs.append(exact_pair([*a.tolist(), *n_equal * [0.5]], [*b.tolist(), *n_equal * [0.5]]))
    pairs.append(exact_pair([0.1, 0.3, 0.7, 0.2, 0.9] * 4, [0.2, 0.1, 0.4, 0.1, 0.7] * 4))
    return pairs


def holm(p):
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1)))
    return {"p": list(p), "adjusted": adjusted.tolist()}


def main():
    random = np.random.default_rng(0)
    scores = [1.0] * 15 + [0.0] * 45  # a case whose quantiles are not between two possible means
    graded = np.round(random.beta(0.5, 0.5, 40), 3).tolist()
    cluster = np.repeat(np.arange(15), random.integers(1, 6, 15))
    per_cluster = np.clip(random.random(15)[cluster] + 0.2 * random.standard_normal(len(cluster)), 0, 1).round(3)
    a = np.clip(np.array(graded) + 0.1, 0, 1).round(3).tolist()
    golden = {"intervals": [interval(scores), interval(graded), interval([0.0] * 19 + [1.0])],
              "medians": [interval(graded, np.median), interval([0.41, 0.43, 0.4, 0.47, 1.9, 0.42], np.median)],
              "clusters": [cluster_interval(per_cluster, cluster)],
              "pairs": [pair(a, graded), pair(graded[:20], graded[20:]), pair([1.0, 1, 1, 0, 1, 1], [0.0, 0, 1, 0, 0, 0])],
              "exact_pairs": exact_pairs(),
              "holm": holm([0.01, 0.04, 0.03, 0.005, 0.04, 0.9])}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
