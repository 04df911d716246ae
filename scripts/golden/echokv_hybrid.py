"""Second implementation of ThinK on keys with EchoKV on values, in NumPy: tests/data/engine/echokv_hybrid_runs.json.

The default model in float64. The maps of values follow the formula of echokv.py. The ratio follows from their layout.
  max_tokens, eos
  prompts: name -> a list of
      policy         in the syntax of the command line, except the maps
      group_layers, local_dims, sinks, recent, window
      ratio          (D + local_dims (group_layers - 1)) / (D group_layers) for a whole group, D = width of all KV heads
      n_dropped      floor((1 - ratio) d + 1e-6) of the d key channels of a head
      kept_channels  (L, G, d - n_dropped) ascending channels that the key of a token keeps when it is reduced
      channel_margin smallest gap between the last kept and the first dropped channel's score, relative to the latter
      rebuilt_layers all layers except the first of each group; they store local_dims numbers of each value
      exact_tokens   positions that are exact in every layer after the prompt
      bytes          (L) stored numbers of the prompt
      key_error      (L, G) 2-norm of the change of the keys over the prompt's tokens, relative to the keys
      value_error    (L, G) the same for values
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in echokv_runs.json

A channel's score in a KV head is the mean square of the queries' channel times the mean square of the keys' channel, both
after RoPE. The queries are the prompt's last `window` queries in all query heads of the group; the keys are all keys of the
prompt. Each layer keeps the same number of channels, those with the highest scores. A dropped channel is set to zero here,
which gives the same attention as removing it. During decoding, tokens are reduced as in echokv.py, with the channels chosen
after the prompt. For `short`, n_dropped is never 32, 35 or 42, because float32 cannot separate the scores at these cuts.
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
    """Returns the ascending kept channels (G, n_kept) and the margin of each head."""
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
