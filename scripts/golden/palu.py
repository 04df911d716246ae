"""Second implementation of Palu, in NumPy: tests/data/engine/palu_runs.json.

  max_tokens, eos
  full_rank_error  largest key_error or value_error with full rank, which is rounding only
  calibration      {tokens, sequence}: for the beginning of assets/training/english.txt
  whitening_error  largest difference between the projectors on two bases: the leading left singular vectors of W times a
                   square root of X^T X, and of the second moment of keys or values; X = inputs of the projections
  prompts: name -> a list of
      policy         in the syntax of the command line
      group_heads, rank_share, whitening
      ranks          per group; equal for keys and values and in all layers
      rank_margin    smallest relative gap between the singular values at the cut
      bytes          (L) stored numbers of the prompt, including bases computed from the prompt; bases computed from the
                     weights belong to the model
      key_error      (L, G) 2-norm of rebuilt minus true keys over the prompt's tokens, relative to the true keys
      value_error    (L, G) the same for values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json, with
                     the run's cache at each step

A decoded token attends to the cache and its own exact entry. After its attention in a layer, its key (before RoPE) and value
are projected on the bases chosen after the prompt.

Everything is in float64. Whitening uses the inputs of the projections for the calibration text, which the model reads in
separate sequences, or for the prompt. Decoded tokens use the same whitening.
"""

import numpy as np
from transformers import AutoTokenizer

from reference_model import REPOSITORY
from runs import rounded
from stored import Ageing, cache_errors, exact_model, projection_inputs, projection_weights, replace, run_cases, write_runs

CASES = {
    "short": [
        ("palu:rank_share=0.75,whitening=off", (4, 0.75, "off")),
        ("palu:rank_share=0.5,whitening=prompt", (4, 0.5, "prompt")),
        ("palu:rank_share=0.5", (4, 0.5, "calibration")),
    ],
    "rewrite": [
        ("palu:rank_share=0.5,whitening=off", (4, 0.5, "off")),
        ("palu:rank_share=0.5,group_heads=2,whitening=prompt", (2, 0.5, "prompt")),
        ("palu:rank_share=0.75,group_heads=2", (2, 0.75, "calibration")),
    ],
}
CALIBRATION_TOKENS, SEQUENCE = 4096, 1024


def calibration_inputs(exact):
    """Returns, per layer, a matrix X (rows, hidden) that replaces the projections' inputs for the calibration text: X^T X is the
    same, but X has fewer rows."""
    tokenizer = AutoTokenizer.from_pretrained(str(exact.path.parent), gguf_file=exact.path.name)
    text = (REPOSITORY / "assets" / "training" / "english.txt").read_bytes()[:32000].decode("utf-8")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"][:CALIBRATION_TOKENS]
    sequences = [projection_inputs(exact, ids[first : first + SEQUENCE])[1] for first in range(0, len(ids), SEQUENCE)]
    return [square_root(np.concatenate(of_layer)).T for of_layer in zip(*sequences)]


def groups_of(n_heads, group_heads):
    """Returns the heads [first, stop) of each group."""
    return [(first, min(first + group_heads, n_heads)) for first in range(0, n_heads, group_heads)]


def square_root(x):
    """Returns S with S S^T = X^T X. X may have fewer tokens than inputs."""
    _, sigma, right = np.linalg.svd(x, full_matrices=False)
    return right.T * sigma


def leading(matrix, rank):
    """Returns the first `rank` left singular vectors, and the relative gap between the singular values at the cut."""
    u, sigma, _ = np.linalg.svd(matrix, full_matrices=False)
    gap = (sigma[rank - 1] - sigma[rank]) / sigma[rank] if rank < sigma.size else np.inf
    return u[:, :rank], gap


def bases_of(x, weight, d, group_heads, rank_share, whitening):
    """Returns (coordinates, basis) for each group of a layer's keys or values, and the smallest gap between eigenvalues.
    x: inputs for whitening"""
    bases, gaps = [], []
    for first, stop in groups_of(weight.shape[0] // d, group_heads):
        rows = slice(first * d, stop * d)
        rank = int(rank_share * (stop - first) * d)
        basis, gap = leading(weight[rows] if whitening == "off" else weight[rows] @ square_root(x), rank)
        bases.append((rows, basis))
        gaps.append(gap)
    return bases, min(gaps)


def rebuild(true, bases):
    """Returns the projections (N, G * d) of the true vectors on the bases."""
    result = np.empty_like(true)
    for rows, basis in bases:
        result[:, rows] = (true[:, rows] @ basis) @ basis.T
    return result


def head_size(exact):
    return exact.config.hidden_size // exact.config.num_attention_heads


def store(exact, prepared, parameters):
    observation, inputs, calibration = prepared
    group_heads, rank_share, whitening = parameters
    true, bases, gaps = ([], []), ([], []), []
    text = calibration if whitening == "calibration" else inputs
    for x, of_text, weights in zip(inputs, text, projection_weights(exact)):
        for part, weight in enumerate(weights):
            found, gap = bases_of(of_text, weight, head_size(exact), *parameters)
            true[part].append(x @ weight.T)
            bases[part].append(found)
            gaps.append(gap)

    def hold(cache, *parts):
        replace(exact, cache, *([rebuild(*layer) for layer in zip(part, of_part)] for part, of_part in zip(parts, bases)))

    run = Ageing(exact, (observation, *true), hold, np.arange, range(len(inputs)))
    ranks = [basis.shape[1] for _, basis in bases[0][0]]
    of_prompt = sum(basis.size for _, basis in bases[0][0]) if whitening == "prompt" else 0
    return run, {
        "group_heads": group_heads, "rank_share": rank_share, "whitening": whitening,
        "ranks": ranks,
        "rank_margin": rounded(min(gaps)),
        "bytes": [2 * (observation.n * sum(ranks) + of_prompt)] * len(inputs),
        **cache_errors(observation, run.changed),
    }


def full_rank_error(exact, prepared):
    found = [store(exact, prepared, (4, 1.0, whitening))[1] for whitening in ("off", "prompt", "calibration")]
    return max(np.max(one[key]) for one in found for key in ("key_error", "value_error"))


def whitening_error(exact, prepared, rank_share=0.5):
    """Computes each whitened basis in two ways. Returns the largest difference of all layers, keys and values."""
    worst = 0
    for x, weights in zip(prepared[1], projection_weights(exact)):
        for weight in weights:
            rank = int(rank_share * weight.shape[0])
            long_way, _ = leading(weight @ square_root(x), rank)
            true = x @ weight.T
            short_way, _ = leading(true.T @ true, rank)
            worst = max(worst, np.abs(long_way @ long_way.T - short_way @ short_way.T).max())
    return worst


def main():
    exact = exact_model()
    calibration = calibration_inputs(exact)
    checks = {"full_rank_error": 0, "whitening_error": 0}

    def prepare(exact, ids):
        prepared = (*projection_inputs(exact, ids), calibration)
        for name, check in (("full_rank_error", full_rank_error), ("whitening_error", whitening_error)):
            checks[name] = max(checks[name], rounded(check(exact, prepared), 3))
        print(checks)
        assert checks["full_rank_error"] < 1e-12 and checks["whitening_error"] < 1e-8
        return prepared

    prompts = run_cases(exact, CASES, prepare, store)
    write_runs("palu_runs.json", exact, prompts, "palu.py", calibration={"tokens": CALIBRATION_TOKENS, "sequence": SEQUENCE},
               **checks)


if __name__ == "__main__":
    main()
