"""EchoKV, written a second time in NumPy: maps from a formula, and maps by least squares.

    echokv.py runs        tests/data/engine/echokv_runs.json alone
    echokv.py training    tests/data/engine/echo_training.json alone

echokv_runs.json: the default model in float64
  max_tokens, eos
  prompts: name -> a list of
      policy         as on the command line, but for the maps, which no file holds: map_of below
      group_layers, local_dims, sinks, recent
      rebuilt_layers the layers that are not their group's first
      exact_tokens   positions of the prompt that are exact in those layers at its end
      bytes          (L) how many numbers are stored of the prompt
      key_error      (L, G) 2-norm, over the prompt's tokens, of the difference between rebuilt and true keys, over that of
                     the true ones
      value_error    (L, G) the same of values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json, with
                     the run's cache as it is at each step

While decoding, too, the last `recent` tokens alone are exact beside the sinks: a token attends to the cache with
itself appended and nothing reduced on its account; behind its attention in a rebuilt layer the tokens from `sinks` on
that are not among the last `recent`, itself counted, are replaced by own first local_dims and map of what the first
layer of the group computed in this run. With recent=0 a token is so reduced right behind its own attention; where
the prompt is shorter than sinks + recent nothing is reduced at its end, and the first tokens are while decoding.

Element (i, j) of a layer's map, i the input row, j the output column, kind 0 for keys and 1 for values:
float32((i == j + local_dims ? 0.8 : 0) + 0.02 sin(0.37 (i + 1) (j + 1) + layer + 0.5 kind)), computed in float64.

echo_training.json: all tokens of a text count, sinks too
  text, held_out: prompt (name in prompt_ids.json), tokens (how many of its first ids; they start with the BOS token), ids
  ridge
  cases: group_layers, local_dims,
      layers   those that are rebuilt
      text, held_out: keys, values: (layers) |X W - Y| / |Y| over all tokens, X = [first layer ; own first dimensions],
               Y = the others, W = (X^T X + ridge mean(diag(X^T X)) I)^-1 X^T Y of `text`
      copied_text, copied_held_out: the same errors where the first layer's own dimensions are the prediction;
               predicting zero has an error of 1
"""

import json
import sys

import numpy as np

from reference_model import DATA, load_prompts
from runs import forced, generate, rounded
from stored import Ageing, cache_errors, exact_model, projection_inputs, projection_weights, replace, replaced, run_cases, write_runs

CASES = {
    "short": [
        ("echokv:group_layers=2,local_dims=0", (2, 0, 4, 128)),
        ("echokv:group_layers=3,local_dims=64,recent=16", (3, 64, 4, 16)),
        ("echokv:group_layers=2,local_dims=64,recent=0", (2, 64, 4, 0)),
    ],
    "rewrite": [
        ("echokv:group_layers=4,local_dims=16", (4, 16, 4, 128)),
        ("echokv:group_layers=2,local_dims=64,recent=254", (2, 64, 4, 254)),
    ],
}
TRAINED = [(2, 0), (4, 16)]
TEXT, HELD_OUT = ("demo", 512), ("short", None)
RIDGE = 1e-4


def map_of(layer, kind, width, local_dims):
    """(width + local_dims, width - local_dims), float32's values."""
    i, j = np.arange(width + local_dims)[:, None], np.arange(width - local_dims)[None, :]
    return (np.where(i == j + local_dims, 0.8, 0) + 0.02 * np.sin(0.37 * (i + 1) * (j + 1) + layer + 0.5 * kind)).astype(np.float32).astype(float)


def first_of(layer, group_layers):
    return layer - layer % group_layers


def inputs_of(caches, layer, group_layers, local_dims):
    """(N, D + local_dims)"""
    return np.concatenate((caches[first_of(layer, group_layers)], caches[layer][:, :local_dims]), 1)


def rebuilt_layers(n_layers, group_layers):
    return [layer for layer in range(n_layers) if layer % group_layers]


def rebuild(caches, kind, group_layers, local_dims, exact_tokens):
    """Per layer (N, D), from the true ones."""
    result = [cache.copy() for cache in caches]
    n, width = caches[0].shape
    gone = np.setdiff1d(np.arange(n), exact_tokens)
    for layer in rebuilt_layers(len(caches), group_layers):
        given = inputs_of(caches, layer, group_layers, local_dims)[gone]
        result[layer][gone, local_dims:] = given @ map_of(layer, kind, width, local_dims)
    return result


def caches_of(exact, ids):
    """The observation, and per layer keys before RoPE and values, each (N, D)."""
    observation, inputs = projection_inputs(exact, ids)
    weights = projection_weights(exact)
    keys, values = ([x @ w[part].T for x, w in zip(inputs, weights)] for part in (0, 1))
    unchanged = cache_errors(observation, replaced(exact, observation, keys, values))
    assert max(np.max(unchanged["key_error"]), np.max(unchanged["value_error"])) < 1e-12
    return observation, keys, values


def exact_of(n, sinks, recent):
    """Positions of the first n tokens that are exact."""
    return np.unique(np.r_[np.arange(min(sinks, n)), np.arange(max(n - recent, 0), n)])


def reduced_of(sinks, recent):
    return lambda n: np.setdiff1d(np.arange(n), exact_of(n, sinks, recent))


def store(exact, prepared, parameters):
    observation, keys, values = prepared
    group_layers, local_dims, sinks, recent = parameters
    n, width = keys[0].shape
    reduced = rebuilt_layers(len(keys), group_layers)

    def hold(cache, *parts):
        exact_tokens = exact_of(len(parts[0][0]), sinks, recent)
        parts = [rebuild(part, kind, group_layers, local_dims, exact_tokens) for kind, part in enumerate(parts)]
        replace(exact, cache, *parts, reduced)

    run = Ageing(exact, prepared, hold, reduced_of(sinks, recent), reduced)
    exact_tokens = exact_of(n, sinks, recent)
    whole, part = 2 * n * width, 2 * (exact_tokens.size * width + (n - exact_tokens.size) * local_dims)
    return run, {
        "group_layers": group_layers, "local_dims": local_dims, "sinks": sinks, "recent": recent,
        "rebuilt_layers": reduced,
        "exact_tokens": exact_tokens.tolist(),
        "bytes": [part if layer in reduced else whole for layer in range(len(keys))],
        **cache_errors(observation, run.changed),
    }


def check_full(exact, cases, store):
    """Where every token is recent, the run is the full one."""
    prepared = caches_of(exact, load_prompts()["short"]["ids"])
    tokens, _ = generate(exact, prepared[0], limit=4)
    full, full_decoded = forced(exact, prepared[0], tokens)
    run, facts = store(exact, prepared, (*cases["short"][0][1][:3], 1000))
    logits, errors = run.forced(tokens, full_decoded)
    assert (logits - full).abs().max() < 1e-9 and np.max(errors) < 1e-9 and np.max(facts["key_error"]) < 1e-12


def write_stored_runs(exact):
    check_full(exact, CASES, store)
    write_runs("echokv_runs.json", exact, run_cases(exact, CASES, caches_of, store), "echokv.py")


def least_squares(x, y):
    moment = x.T @ x
    return np.linalg.solve(moment + RIDGE * np.diag(moment).mean() * np.eye(len(moment)), x.T @ y)


def errors(predict, caches, group_layers, local_dims):
    """{"keys", "values"}: per rebuilt layer. predict(kind, layer, X) -> (N, D - local_dims)"""
    result = {}
    for kind, name in enumerate(("keys", "values")):
        result[name] = []
        for layer in rebuilt_layers(len(caches[kind]), group_layers):
            truth = caches[kind][layer][:, local_dims:]
            given = inputs_of(caches[kind], layer, group_layers, local_dims)
            result[name].append(np.linalg.norm(predict(kind, layer, given) - truth) / np.linalg.norm(truth))
    return result


def write_training(exact):
    texts, caches = {}, {}
    for role, (prompt, n) in (("text", TEXT), ("held_out", HELD_OUT)):
        ids = load_prompts()[prompt]["ids"][:n]
        texts[role] = {"prompt": prompt, "tokens": len(ids), "ids": ids}
        caches[role] = caches_of(exact, ids)[1:]
    cases = []
    for group_layers, local_dims in TRAINED:
        layers = rebuilt_layers(exact.config.num_hidden_layers, group_layers)
        maps = [
            {
                layer: least_squares(inputs_of(part, layer, group_layers, local_dims), part[layer][:, local_dims:])
                for layer in layers
            }
            for part in caches["text"]
        ]
        width = caches["text"][0][0].shape[1]
        found = {"group_layers": group_layers, "local_dims": local_dims, "layers": layers}
        for role in caches:
            for name, predict in (
                (role, lambda kind, layer, given: given @ maps[kind][layer]),
                ("copied_" + role, lambda kind, layer, given: given[:, local_dims:width]),
            ):
                measured = errors(predict, caches[role], group_layers, local_dims)
                found[name] = {part: rounded(values, 6) for part, values in measured.items()}
                print(f"S = {group_layers}, D_local = {local_dims}, {name}:",
                      *(f"{part} mean {np.mean(values):.4f} ({np.min(values):.4f} to {np.max(values):.4f})" for part, values in measured.items()))
        cases.append(found)
    document = {"about": "scripts/golden/echokv.py", **texts, "ridge": RIDGE, "cases": cases}
    (DATA / "engine" / "echo_training.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


def main():
    exact = exact_model()
    if sys.argv[1:] in ([], ["runs"]):
        write_stored_runs(exact)
    if sys.argv[1:] in ([], ["training"]):
        write_training(exact)


if __name__ == "__main__":
    main()
