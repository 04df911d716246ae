"""What storing something else than whole keys and values does to the output: tests/data/engine/stored_runs.json.

  max_tokens, eos
  prompts: name -> a list of
      policy         as on the command line
      channels       (L, G) the key channels that are dropped, ascending
      channel_margin smallest relative gap between the scores on either side of the cut
      key_error      (L, G) 2-norm of what the keys lose over that of the keys
      step_kl, step_agreement, agreement_margin, output_ids, output_margin, output_error   as in runs.json

Everything in float64. A dropped channel is a zero here, which gives the same attention as one that is gone.
"""

import copy
import json

import numpy as np
import torch

from observe import make_exact, observe
from reference_model import DATA, Reference, load_prompts
from runs import MAX_TOKENS, divergence, forced, generate, output_errors, rounded

CASES = {"short": [("think:ratio=0.4", 0.4, 32)], "rewrite": [("think:ratio=0.6,recent=5", 0.6, 5)]}


def think(observation, ratio, recent):
    """The observation with thinner keys, and per layer and KV head (dropped channels, margin, key error)."""
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


def main():
    exact = Reference()
    make_exact(exact)
    prompts = {}
    for name, cases in CASES.items():
        ids = load_prompts()[name]["ids"]
        observation = observe(exact, ids)
        tokens, _ = generate(exact, observation)
        full, full_decoded = forced(exact, observation, tokens)
        heads = exact.config.num_attention_heads
        everything = [torch.ones(heads, len(ids), dtype=torch.bool) for _ in observation.layers]
        prompts[name] = []
        for policy, ratio, recent in cases:
            thin, facts = think(observation, ratio, recent)
            logits, decoded = forced(exact, thin, tokens)
            own, own_margin = generate(exact, thin)
            rows = observation.layers[0].keys.shape[0]
            by_layer = [facts[i : i + rows] for i in range(0, len(facts), rows)]
            steps = divergence(full, logits)
            prompts[name].append(
                {
                    "policy": policy,
                    "channels": [[fact[0] for fact in layer] for layer in by_layer],
                    "channel_margin": rounded(min(fact[1] for fact in facts)),
                    "key_error": rounded([[fact[2] for fact in layer] for layer in by_layer], 6),
                    **steps,
                    "output_ids": own,
                    "output_margin": rounded(own_margin),
                    "output_error": rounded(output_errors(full_decoded, decoded, everything, len(ids)), 6),
                }
            )
            print(name, policy, "mean KL", np.mean(steps["step_kl"]), "channel margin", prompts[name][-1]["channel_margin"],
                  "margin", own_margin, repr(exact.text(own)), flush=True)
    document = {"about": "scripts/golden/stored_runs.py", "max_tokens": MAX_TOKENS, "eos": exact.eos, "prompts": prompts}
    (DATA / "engine" / "stored_runs.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
