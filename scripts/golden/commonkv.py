"""Second implementation of CommonKV, in NumPy: tests/data/engine/commonkv_runs.json.

  max_tokens, eos
  full_rank_error  largest key_error or value_error with groups of one layer and full rank
  prompts: name -> a list of
      policy         in the syntax of the command line
      layer_step, rank, sinks, recent, unlike, scope
      groups         layers of each group
      own_tokens     ascending positions per group whose latents are stored per layer
      similarity_margin  smallest gap between the similarities at a cut
      rank_margin    smallest relative gap between the singular values at the cut
      bytes          (L) stored numbers of the prompt; a group's common latents count for its first layer
      key_error      (L, G) 2-norm of rebuilt minus true keys over the prompt's tokens, relative to the true keys
      value_error    (L, G) the same for values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json

Everything is in float64. For the layers of a group, W = [W_K of all; W_V of all] = U S V^T. A token's latent in a layer is
S_r^1/2 V_r^T x, where x is the input of the layer's projections. Keys and values share the latent: they are the layer's rows
of U_r S_r^1/2 times the latent. The latents of a group are replaced by their mean, except for the first `sinks` tokens, the
last `recent` tokens, and the least similar tokens: those with the lowest cosine between their latents in the group's first
and last layer. There are floor(unlike * N) of these in each group or, with scope = model, floor(unlike * groups * N) over all
groups. Both numbers include the first and last tokens. Ties go to the earlier group, then to the lower position.
"""

import numpy as np

from runs import rounded
from stored import cache_errors, exact_model, projection_inputs, projection_weights, replaced, run_cases, write_runs

CASES = {
    "short": [
        ("commonkv:rank=448,scope=model", (4, 448, 4, 128, 0.4, "model")),
        ("commonkv:rank=448,scope=group", (4, 448, 4, 128, 0.4, "group")),
    ],
    "rewrite": [
        ("commonkv:rank=512,recent=16,scope=model", (4, 512, 4, 16, 0.4, "model")),
        ("commonkv:layer_step=2,rank=512,recent=16,scope=group", (2, 512, 4, 16, 0.4, "group")),
    ],
}


def groups_of(n_layers, layer_step):
    """Splits the layers into groups; the last group may be smaller."""
    return [list(range(first, min(first + layer_step, n_layers))) for first in range(0, n_layers, layer_step)]


def factors(weights, rank):
    """Returns the common projection (rank, hidden), each layer's two factors (G * d, rank), and the relative gap at `rank`."""
    parts = [weight for kind in (0, 1) for weight in (pair[kind] for pair in weights)]
    u, sigma, right = np.linalg.svd(np.concatenate(parts), full_matrices=False)
    gap = (sigma[rank - 1] - sigma[rank]) / sigma[rank] if rank < sigma.size else np.inf
    root = np.sqrt(sigma[:rank])
    rows = np.split(u[:, :rank] * root, np.cumsum([len(part) for part in parts])[:-1])
    return root[:, None] * right[:rank], list(zip(rows[: len(weights)], rows[len(weights) :])), gap


def cosine(a, b):
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def least(similarity, share):
    """Returns a mask of the floor(share * size) lowest elements of the flattened array, and the gap at the cut."""
    order = np.argsort(similarity, kind="stable")
    cut = int(share * order.size)
    chosen = np.zeros(order.size, bool)
    chosen[order[:cut]] = True
    gap = similarity[order[cut]] - similarity[order[cut - 1]] if 0 < cut < order.size else np.inf
    return chosen, gap


def unlike_tokens(latents, groups, unlike, scope):
    """Returns a mask (groups, N) and the margin. latents: (N, rank) per layer"""
    similarity = np.array([cosine(latents[group[0]], latents[group[-1]]) for group in groups])
    if scope == "model":
        chosen, margin = least(similarity.ravel(), unlike)
        return chosen.reshape(similarity.shape), margin
    found = [least(row, unlike) for row in similarity]
    return np.array([chosen for chosen, _ in found]), min(gap for _, gap in found)


def store(exact, prepared, parameters):
    observation, inputs = prepared
    layer_step, rank, sinks, recent, unlike, scope = parameters
    n, weights = observation.n, projection_weights(exact)
    groups = groups_of(len(inputs), layer_step)
    latents, outputs, gaps = [], [], []
    for group in groups:
        common, rows, gap = factors([weights[layer] for layer in group], rank)
        latents += [inputs[layer] @ common.T for layer in group]
        outputs += rows
        gaps.append(gap)
    own, margin = unlike_tokens(latents, groups, unlike, scope)
    own[:, :sinks] = own[:, max(n - recent, 0) :] = True
    numbers = []
    for group, alone in zip(groups, own):
        alone |= len(group) == 1
        mean = np.mean([latents[layer] for layer in group], 0)
        for layer in group:
            latents[layer] = np.where(alone[:, None], latents[layer], mean)
            numbers.append(rank * int(alone.sum() if layer > group[0] else n))
    caches = [[latent @ rows[kind].T for latent, rows in zip(latents, outputs)] for kind in (0, 1)]
    changed = replaced(exact, observation, *caches)
    return changed, {
        "layer_step": layer_step, "rank": rank, "sinks": sinks, "recent": recent, "unlike": unlike, "scope": scope,
        "groups": groups,
        "own_tokens": [np.flatnonzero(row).tolist() for row in own],
        "similarity_margin": rounded(margin),
        "rank_margin": rounded(min(gaps)),
        "bytes": numbers,
        **cache_errors(observation, changed),
    }


def width_of(exact):
    """Returns the width of a layer's keys and values together."""
    return 2 * exact.config.num_key_value_heads * exact.config.hidden_size // exact.config.num_attention_heads


def main():
    exact = exact_model()
    checks = {"full_rank_error": 0}

    def prepare(exact, ids):
        prepared = projection_inputs(exact, ids)
        whole = store(exact, prepared, (1, width_of(exact), 0, 0, 0, "group"))[1]
        checks["full_rank_error"] = max(checks["full_rank_error"], *(rounded(np.max(whole[key]), 3) for key in ("key_error", "value_error")))
        assert checks["full_rank_error"] < 1e-12
        return prepared

    prompts = run_cases(exact, CASES, prepare, store)
    for name, cases in prompts.items():
        for case in cases:
            print(name, case["policy"], *(f"{key} {case[key]}" for key in ("similarity_margin", "rank_margin")),
                  "own tokens", [len(row) for row in case["own_tokens"]],
                  f"stored {np.mean(case['bytes']) / (case['bytes'][0] / case['rank'] * width_of(exact)):.3f}")
    write_runs("commonkv_runs.json", exact, prompts, "commonkv.py", **checks)


if __name__ == "__main__":
    main()
