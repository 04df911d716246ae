"""Effects of storing less than whole keys and values on the output: tests/data/engine/stored_runs.json.

  max_tokens, eos
  prompts: name -> a list of
      policy         in the syntax of the command line
      channels       (L, G) ascending dropped key channels
      channel_margin smallest relative gap between the scores at the cut
      key_error      (L, G) 2-norm of the change of the keys, relative to the keys
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json

Everything is in float64. A dropped channel is set to zero here, which gives the same attention as removing it.
"""

import copy

import numpy as np
import torch

from observe import observe
from runs import rounded
from stored import exact_model, run_cases, write_runs

CASES = {"short": [("think:ratio=0.4", (0.4, 32))], "rewrite": [("think:ratio=0.6,recent=5", (0.6, 5))]}


def think(observation, ratio, recent):
    """Returns an observation with fewer key channels, and a list of (dropped channels, margin, key error) per KV head."""
    thin, facts = copy.deepcopy(observation), []
    for layer, cached in zip(observation.layers, thin.cache.layers):
        heads, n, d = layer.keys.shape
        group = layer.queries.shape[0] // heads
        n_dropped = int(ratio * d)
        for head in range(heads):
            queries = layer.queries[head * group : (head + 1) * group].numpy()
            keys = layer.keys[head].numpy()
            scores = (queries**2).mean((0, 1)) * (keys**2).mean(0)
            order = np.argsort(-scores, kind="stable")
            cut = d - n_dropped
            margin = (scores[order[cut - 1]] - scores[order[cut]]) / scores[order[cut]]
            dropped = np.sort(order[cut:])
            lost = keys[: n - recent][:, dropped]
            facts.append((dropped.tolist(), margin, np.linalg.norm(lost) / np.linalg.norm(keys)))
            cached.keys[0, head, : n - recent, torch.as_tensor(dropped)] = 0
    return thin, facts


def store(exact, prepared, parameters):
    thin, facts = think(prepared[0], *parameters)
    heads = exact.config.num_key_value_heads
    by_layer = [facts[i : i + heads] for i in range(0, len(facts), heads)]
    return thin, {
        "channels": [[fact[0] for fact in layer] for layer in by_layer],
        "channel_margin": rounded(min(fact[1] for fact in facts)),
        "key_error": rounded([[fact[2] for fact in layer] for layer in by_layer], 6),
    }


def main():
    exact = exact_model()
    prompts = run_cases(exact, CASES, lambda exact, ids: (observe(exact, ids),), store)
    write_runs("stored_runs.json", exact, prompts, "stored_runs.py")


if __name__ == "__main__":
    main()
