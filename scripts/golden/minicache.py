"""Second implementation of MiniCache, in NumPy: tests/data/engine/minicache_runs.json.

  max_tokens, eos
  exact_error    largest key_error or value_error if every token is retained
  prompts: name -> a list of
      policy         in the syntax of the command line
      pairs          [shallower, deeper] merged layers, deepest first
      t, retained_share
      retained_keys, retained_values   (pairs, G) ascending positions that are not merged
      angle_margin   smallest gap between the angles at the cut, in radians
      smallest_angle, largest_angle    of merged vectors, in radians
      bytes          (L) stored numbers of the prompt: the shared direction counts for the deeper layer, the lengths of
                     merged vectors and the retained vectors for their own layers
      key_error      (L, G) 2-norm of rebuilt minus true keys over the prompt's tokens, relative to the true keys
      value_error    (L, G) the same for values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json

Everything is in float64. The keys of a pair have the same rotation, so merging before RoPE and merging after RoPE are the
same. Retained vectors are chosen per pair and KV head, separately for keys and values: the ceil(share * N) tokens with the
largest angle. Ties go to the lower position.
"""

import copy
import math

import numpy as np
import torch

from observe import observe
from runs import rounded
from stored import cache_errors, exact_model, run_cases, write_runs

T, RETAINED = 0.6, 0.05
CASES = {
    "short": [("minicache:pairs=8", 8)],
    "rewrite": [("minicache:pairs=3", 3)],
}


def angles(shallow, deep):
    """Returns the angles (N) between two arrays of vectors (N, d)."""
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (shallow, deep))
    return np.arccos(np.clip((a * b).sum(1), -1, 1))


def shared_direction(shallow, deep, t):
    """Returns the shared unit vectors (N, d)."""
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (shallow, deep))
    angle = angles(shallow, deep)[:, None]
    tiny = np.sin(angle) < 1e-6
    sine = np.where(tiny, 1, np.sin(angle))
    return np.where(tiny, (1 - t) * a + t * b, (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / sine)


def merge(shallow, deep, t, share):
    """Returns both layers' rebuilt vectors (N, d), the retained positions, their margin, and the merged angles."""
    angle = angles(shallow, deep)
    n = angle.size
    n_retained = math.ceil(share * n)
    order = np.argsort(-angle, kind="stable")
    retained, merged = np.sort(order[:n_retained]), order[n_retained:]
    margin = angle[order[n_retained - 1]] - angle[order[n_retained]] if 0 < n_retained < n else np.inf
    direction = shared_direction(shallow, deep, t)
    rebuilt = []
    for x in (shallow, deep):
        rebuilt.append(np.linalg.norm(x, axis=1, keepdims=True) * direction)
        rebuilt[-1][retained] = x[retained]
    return *rebuilt, retained.tolist(), margin, angle[merged]


def store(exact, prepared, n_pairs, t=T, share=RETAINED):
    observation, = prepared
    changed = copy.deepcopy(observation)
    n_layers = exact.config.num_hidden_layers
    heads, n, d = observation.layers[0].keys.shape
    pairs = [(deep - 1, deep) for deep in range(n_layers - 1, 0, -2)][:n_pairs]
    retained, margins, merged_angles = {"keys": [], "values": []}, [], []
    for pair in pairs:
        for part, listed in retained.items():
            listed.append([])
            for head in range(heads):
                given = [getattr(observation.cache.layers[layer], part)[0, head].numpy() for layer in pair]
                *rebuilt, positions, margin, angle = merge(*given, t, share)
                for layer, x in zip(pair, rebuilt):
                    getattr(changed.cache.layers[layer], part)[0, head] = torch.from_numpy(x)
                listed[-1].append(positions)
                margins.append(margin)
                merged_angles.extend(angle)
    n_retained = math.ceil(share * n)
    numbers = [2 * heads * n * d] * n_layers
    for shallow, deep in pairs:
        numbers[shallow] = 2 * heads * (n - n_retained + n_retained * d)
        numbers[deep] = numbers[shallow] + 2 * heads * (n - n_retained) * d
    return changed, {
        "pairs": pairs, "t": t, "retained_share": share,
        "retained_keys": retained["keys"], "retained_values": retained["values"],
        "angle_margin": rounded(min(margins)),
        "smallest_angle": rounded(min(merged_angles, default=0)), "largest_angle": rounded(max(merged_angles, default=0)),
        "bytes": numbers,
        **cache_errors(observation, changed),
    }


def main():
    exact = exact_model()
    checks = {"exact_error": 0}

    def prepare(exact, ids):
        prepared = observe(exact, ids),
        whole = store(exact, prepared, 15, share=1)[1]
        checks["exact_error"] = max(checks["exact_error"], np.max(whole["key_error"]), np.max(whole["value_error"]))
        assert checks["exact_error"] == 0
        return prepared

    prompts = run_cases(exact, CASES, prepare, store)
    for name, cases in prompts.items():
        for case in cases:
            print(name, case["policy"], *(f"{key} {case[key]}" for key in ("angle_margin", "smallest_angle", "largest_angle")))
    write_runs("minicache_runs.json", exact, prompts, "minicache.py", **checks)


if __name__ == "__main__":
    main()
