"""ThinK on keys and EchoKV on values, written a second time in NumPy: tests/data/engine/echokv_hybrid_runs.json.

The default model in float64; maps of values by the formula of echokv.py, whose layout gives the ratio.
  max_tokens, eos
  prompts: name -> a list of
      policy         as on the command line, but for the maps, which no file holds
      group_layers, local_dims, sinks, recent, window
      ratio          (D + local_dims (group_layers - 1)) / (D group_layers), D numbers of all KV heads: of a whole group
      n_dropped      floor((1 - ratio) d + 1e-6) of a head's d key channels
      kept_channels  (L, G, d - n_dropped) those that a token's key keeps once it is not exact, ascending
      channel_margin smallest gap between the scores of the last kept and the first dropped channel, over the latter's
      rebuilt_layers the layers that are not their group's first: of their values, the first local_dims numbers are stored
      exact_tokens   positions of the prompt that are exact in every layer at its end
      bytes          (L) how many numbers are stored of the prompt
      key_error      (L, G) 2-norm over the prompt's tokens of what the keys lose, over that of the keys
      value_error    (L, G) the same of the difference between rebuilt and true values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in echokv_runs.json

A channel's score in a KV head: mean over the prompt's last `window` queries, of all query heads of its group, of the
square of the query's channel, times mean over all of the prompt's keys of the square of theirs; both after RoPE. The
best are kept, in all layers alike many. A dropped channel is a zero here, which gives the same attention as one that is
gone. Tokens are reduced while decoding as in echokv.py, keys by the channels that the prompt chose. `short` with 32, 35
or 42 channels dropped has scores that differ by 1e-5 or less at the cut: no cases for an engine in float32.
"""

import numpy as np
import torch

from echokv import caches_of, check_full, exact_of, rebuild, rebuilt_layers, reduced_of
from runs import rounded
from stored import Ageing, by_head, cache_errors, exact_model, rotated, run_cases, write_runs

WINDOW = 32
CASES = {
    "short": [("echokv-hybrid:group_layers=4,local_dims=16,recent=0", (4, 16, 4, 0))],
    "rewrite": [("echokv-hybrid:group_layers=3,local_dims=64", (3, 64, 4, 128))],
}


def channels_of(layer, n_kept):
    """(G, n_kept) ascending, and the margin of each head."""
    heads = layer.keys.shape[0]
    queries = layer.queries[:, -WINDOW:].reshape(heads, -1, layer.keys.shape[2]).numpy()
    scores = (queries**2).mean(1) * (layer.keys.numpy() ** 2).mean(1)
    order = np.argsort(-scores, axis=1, kind="stable")
    last, first = (np.take_along_axis(scores, order[:, i : i + 1], 1) for i in (n_kept - 1, n_kept))
    return np.sort(order[:, :n_kept], 1), (last - first) / first


def store(exact, prepared, parameters):
    observation, keys, values = prepared
    group_layers, local_dims, sinks, recent = parameters
    n, width = keys[0].shape
    heads, _, d = observation.layers[0].keys.shape
    ratio = (width + local_dims * (group_layers - 1)) / (width * group_layers)
    n_dropped = int(np.floor((1 - ratio) * d + 1e-6))
    kept, margins = zip(*(channels_of(layer, d - n_dropped) for layer in observation.layers))
    missing = torch.ones(len(keys), heads, d, dtype=torch.bool)
    for layer, rows in enumerate(kept):
        for head, channels in enumerate(rows):
            missing[layer, head, torch.as_tensor(channels)] = False
    reduced = rebuilt_layers(len(keys), group_layers)

    def hold(cache, keys, values):
        exact_tokens = exact_of(len(keys[0]), sinks, recent)
        gone = torch.ones(len(keys[0]), dtype=torch.bool)
        gone[torch.as_tensor(exact_tokens)] = False
        values = rebuild(values, 1, group_layers, local_dims, exact_tokens)
        for layer, cached in enumerate(cache.layers):
            thin = rotated(exact, keys[layer]).masked_fill(missing[layer][:, None] & gone[None, :, None], 0)
            cached.keys, cached.values = thin[None], by_head(exact, values[layer]).contiguous()[None]

    run = Ageing(exact, prepared, hold, reduced_of(sinks, recent), range(len(keys)))
    exact_tokens = exact_of(n, sinks, recent)
    n_reduced = n - exact_tokens.size
    stored = [heads * (d - n_dropped) + (local_dims if layer in reduced else width) for layer in range(len(keys))]
    return run, {
        "group_layers": group_layers, "local_dims": local_dims, "sinks": sinks, "recent": recent, "window": WINDOW,
        "ratio": ratio,
        "n_dropped": n_dropped,
        "kept_channels": [rows.tolist() for rows in kept],
        "channel_margin": rounded(np.min(margins)),
        "rebuilt_layers": reduced,
        "exact_tokens": exact_tokens.tolist(),
        "bytes": [2 * exact_tokens.size * width + n_reduced * numbers for numbers in stored],
        **cache_errors(observation, run.changed),
    }


def main():
    exact = exact_model()
    check_full(exact, CASES, store)
    prompts = run_cases(exact, CASES, caches_of, store)
    write_runs("echokv_hybrid_runs.json", exact, prompts, "echokv_hybrid.py")


if __name__ == "__main__":
    main()
