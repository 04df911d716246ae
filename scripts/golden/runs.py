"""Effects of compression on the output, by brute force: tests/data/engine/runs.json.

    runs.py [prompt ...]    computes only these prompts; the other results do not change

  max_tokens, eos
  prompts: name ->
    full: {output_ids}             greedy ids, including the end-of-text token
    cases: a list of
      policy, budget
      step_kl            (T) KL(full || compressed) in nats on the full run's T tokens
      step_agreement     (T) 1 if the greedy token is the same
      agreement_margin   smallest gap between the best and second logit on the full run's tokens
      output_ids         greedy ids of the compressed run
      output_margin      smallest gap between the best and second logit of these ids
      attention_kept     (L, H) share of the window's (w = 32) full attention on kept entries
      output_error       (L, H) mean over the T tokens of |o_c - o_f| / |o_f|: both runs read the full run's tokens, and the full
                         run's query of each token attends to both caches, including the token's own entry

Everything is in float64. For a policy with the same number of entries in each row, decoding with a mask is compared with
unmodified transformers in float32, whose cache contains only the kept entries.
"""

import copy
import json
import sys

import numpy as np
import torch
from transformers import DynamicCache

from observe import attend, decode, make_exact, observe
from policies import Selector
from reference_model import DATA, Reference, load_prompts

MAX_TOKENS = 64
CASES = {
    "short": [("snapkv", 64), ("streaming-llm", 64), ("ada-snapkv", 64)],
    "rewrite": [("snapkv", 64), ("h2o", 64), ("ada-snapkv:window=8", 48), ("aperturekv", 48), ("pyramidkv", 64)],
    "demo": [("snapkv", 64), ("streaming-llm", 256), ("aperturekv", 128)],
}


def rounded(x, digits=7):
    if isinstance(x, (list, tuple, np.ndarray)):
        return [rounded(v, digits) for v in x]
    return float(f"{float(x):.{digits}g}")


def masks(reference, decision, n):
    """Returns a mask (H, N) per layer. A row of the decision is a KV head or a query head."""
    heads = reference.config.num_attention_heads
    result = []
    for rows in decision.kept:
        mask = torch.zeros(len(rows), n, dtype=torch.bool)
        for row, positions in enumerate(rows):
            mask[row, torch.as_tensor(positions)] = True
        result.append(mask.repeat_interleave(heads // len(rows), 0))
    return result


def generate(reference, observation, kept=None, limit=MAX_TOKENS, start=()):
    """Returns at most `limit` greedy ids, including end-of-text, and the smallest margin.

    start: known first ids, read in one step
    """
    cache, logits, tokens, margin = copy.deepcopy(observation.cache), observation.logits, [], float("inf")
    known = decode(reference, cache, list(start), kept) if start else None
    while True:
        best = logits.topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens.append(int(best.indices[0]))
        if tokens[-1] == reference.eos or len(tokens) == limit:
            return tokens, margin
        if len(tokens) <= len(start):
            assert tokens[-1] == start[len(tokens) - 1]
            logits = known[len(tokens) - 1]
        else:
            logits = decode(reference, cache, tokens[-1:], kept)[-1]


def forced(reference, observation, tokens, kept=None):
    """Reads all T tokens. Returns the logits (T, vocab) that predict the tokens, and each layer's (q, k, v)."""
    logits, decoded = decode(reference, copy.deepcopy(observation.cache), tokens, kept, record=True)
    return torch.cat((observation.logits[None], logits[:-1])), decoded


def divergence(full, logits):
    """Returns step_kl, step_agreement and agreement_margin for the logits (T, vocab) of two runs."""
    full_log, log = torch.log_softmax(full, -1), torch.log_softmax(logits, -1)
    best = logits.topk(2).values
    return {
        "step_kl": rounded((full_log.exp() * (full_log - log)).sum(1).clamp(min=0).tolist()),
        "step_agreement": (full.argmax(1) == logits.argmax(1)).int().tolist(),
        "agreement_margin": rounded((best[:, 0] - best[:, 1]).min()),
    }


def output_errors(full, compressed, kept, n):
    """Returns output_error (L, H). full, compressed: q, k and v per layer of two runs; kept: masks of the prompt's entries"""
    errors = []
    for (layer, q, k, v), (_, _, other_k, other_v) in zip(full, compressed):
        steps, total = q.shape[1], k.shape[1]
        causal = torch.arange(total)[None, :] <= torch.arange(total - steps, total)[:, None]
        causal = causal.expand(q.shape[0], steps, total)
        whole, _ = attend(q, k, v, causal)
        mask = causal.clone()
        mask[:, :, :n] &= kept[layer][:, None, :]
        part, _ = attend(q, other_k, other_v, mask)
        errors.append(((part - whole).norm(dim=2) / whole.norm(dim=2)).mean(1).tolist())
    return errors


def gathered_logits(stock, ids, decision, tokens):
    """Returns logits of unmodified transformers: prefill, reduce the cache to the kept entries, decode from position N."""
    cache = DynamicCache()
    with torch.inference_mode():
        stock.model(torch.tensor([ids]), past_key_values=cache, logits_to_keep=1)
        for layer, rows in zip(cache.layers, decision.kept):
            index = torch.tensor(np.array(rows))[None, :, :, None].expand(-1, -1, -1, layer.keys.shape[3])
            layer.keys, layer.values = layer.keys.gather(2, index), layer.values.gather(2, index)
        logits = []
        for t, token in enumerate(tokens[:-1]):
            position = torch.tensor([[len(ids) + t]])
            logits.append(stock.model(torch.tensor([[token]]), past_key_values=cache, position_ids=position).logits[0, -1])
    return torch.stack(logits)


def main():
    stock, exact = Reference(), Reference()
    make_exact(exact)
    path = DATA / "engine" / "runs.json"
    prompts = json.loads(path.read_text())["prompts"] if path.exists() else {}
    for name, cases in CASES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        ids = load_prompts()[name]["ids"]
        observation = observe(exact, ids)
        selector = Selector(observation, exact.config)
        tokens, margin = generate(exact, observation)
        full, full_decoded = forced(exact, observation, tokens)
        print(name, len(tokens), repr(exact.text(tokens)), "margin", margin)
        results = []
        for policy, budget in cases:
            decision = selector.select(policy, budget)
            kept = masks(exact, decision, len(ids))
            logits, decoded = forced(exact, observation, tokens, kept)
            if policy.partition(":")[0] in ("snapkv", "streaming-llm", "h2o") and name != "demo":
                difference = (gathered_logits(stock, ids, decision, tokens) - logits[1:]).abs().max().item()
                assert difference < 2e-3, (policy, difference)
            steps = divergence(full, logits)
            own, own_margin = generate(exact, observation, kept)
            attention = [
                (layer.window_attention * mask).sum(1).tolist() for layer, mask in zip(observation.layers, kept)
            ]
            results.append(
                {
                    "policy": policy,
                    "budget": budget,
                    **steps,
                    "output_ids": own,
                    "output_margin": rounded(own_margin),
                    "attention_kept": rounded(attention, 6),
                    "output_error": rounded(output_errors(full_decoded, decoded, kept, len(ids)), 6),
                }
            )
            print(f"  {policy} {budget}: mean KL {np.mean(steps['step_kl']):.4f} margin {own_margin:.4f} {exact.text(own)!r}", flush=True)
        prompts[name] = {"full": {"output_ids": tokens, "output_margin": rounded(margin)}, "cases": results}
        write(path, exact, prompts)


def write(path, exact, prompts):
    document = {"about": "scripts/golden/runs.py", "max_tokens": MAX_TOKENS, "eos": exact.eos, "prompts": prompts}
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
