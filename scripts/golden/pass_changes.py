"""Reference runs of the policies in pass_policies.py on the default model: tests/data/engine/pass_changes.json.

    pass_changes.py [policy ...]    computes only these policies; the other results do not change

  max_tokens, eos, n_layers
  prompts: name ->
    full: output_ids, output_margin
      answer_attention      "layer" -> (G, N) for some layers: attention summed over the answer's tokens except the last one,
                            which decoding never reads, and averaged over a KV head's query heads
    cases: a list of
      policy, budget
      kept, near            as in kept_sets.py
      step_kl, step_agreement, agreement_margin, output_ids, output_margin     as in runs.py
      kl_attention_lost     for budget 64 without parameters: "tokens" (N), the full answer's attention to tokens that a head
                            drops; each query is weighted with the KL of the step that it predicts, and heads and layers are
                            averaged; "layers" (L), the sums over tokens
      recall                (L, G) share of kept tokens among the `budget` tokens with the most answer attention
      pseudo_ids            for dapq
      lookahead_ids, lookahead_margin, draft_near_ties     for laq, laq++: the draft's tokens, its smallest gap between best and
                            second logit, the number of near ties in the draft
      draw_margin           for cam: smallest distance between a random draw and its probability

Everything is in float64 with seed 0. This script asserts that unmodified transformers in float32 gives the same logits for the
gathered kept entries (dapq) and for the filtered prompt (gemfilter).
"""

import json
import sys

import numpy as np
import torch
from transformers import DynamicCache

import policies
import vlq
from kept_sets import NEAR
from observe import make_exact, observe
from pass_policies import answer_attention, apply, attention_of
from policies import grouped, top
from reference_model import DATA, Reference, load_prompts
from runs import divergence, forced, gathered_logits, generate, rounded

MAX_TOKENS = 20
MAIN = ["dapq", "laq", "laq++", "gemfilter", "cam", "oracle"]
VARIANTS = [
    "dapq:content=fixed-phrase",
    "dapq:content=random-tokens",
    "dapq:content=random-span",
    "dapq:content=vocabulary",
    "dapq:first=8",
    "dapq:pseudo_tokens=16",
    "dapq:offset=-100",
    "dapq:reduce=max",
    "laq:lookahead=4",
    "laq:window=8",
    "gemfilter:layer=5",
    "gemfilter:kernel=1",
    "cam:recent=16",
    "cam:denominator=mean",
    "cam:merge=8",
    "oracle:reduce=max",
]
CASES = {
    "short": [(p, b) for b in (64, 128) for p in MAIN] + [(p, 64) for p in VARIANTS],
    "rewrite": [(p, 64) for p in MAIN],
}
SHOWN_LAYERS = (0, 1, 12, 29)


def filtered_logits(stock, ids, tokens):
    """Returns logits of unmodified transformers, which reads the filtered prompt from position 0 on, and then the tokens."""
    cache = DynamicCache()
    with torch.inference_mode():
        logits = [stock.model(torch.tensor([ids]), past_key_values=cache).logits[0, -1]]
        for token in tokens[:-1]:
            logits.append(stock.model(torch.tensor([[token]]), past_key_values=cache).logits[0, -1])
    return torch.stack(logits)


def check_with_stock(stock, ids, text, outcome, tokens, logits):
    if text == "gemfilter":
        difference = (filtered_logits(stock, outcome.source.ids, tokens) - logits).abs().max().item()
    else:
        difference = (gathered_logits(stock, ids, outcome.decision, tokens) - logits[1:]).abs().max().item()
    assert difference < 2e-3, (text, difference)
    print(f"{text}, {len(ids)} tokens: within {difference:.1e} of stock transformers", flush=True)


def kl_attention_lost(weights, kept, step_kl):
    """Returns kl_attention_lost (L, N). weights: (H, T, N) per layer; kept: positions of each row, per layer"""
    lost = []
    for of_layer, rows in zip(weights, kept):
        weighted = np.tensordot(np.asarray(step_kl)[1:], of_layer[:, :-1], axes=(0, 1))
        group = len(weighted) // len(rows)
        for head, of_head in enumerate(weighted):
            of_head[rows[head // group]] = 0
        lost.append(weighted.mean(axis=0))
    return np.array(lost)


def shown_loss(weights, kept, step_kl, text, budget):
    if ":" in text or budget != 64:
        return {}
    lost = kl_attention_lost(weights, kept, step_kl)
    return {"kl_attention_lost": {"tokens": rounded(lost.mean(axis=0), 5), "layers": rounded(lost.sum(axis=1), 5)}}


def main():
    exact = Reference()
    make_exact(exact)
    config = exact.config
    prompts, to_check = {}, []
    path = DATA / "engine" / "pass_changes.json"
    before = json.loads(path.read_text())["prompts"] if sys.argv[1:] else {}
    for name, cases in CASES.items():
        ids = load_prompts()[name]["ids"]
        observation = observe(exact, ids)
        tokens, margin = generate(exact, observation, limit=MAX_TOKENS)
        full, decoded = forced(exact, observation, tokens)
        attention = answer_attention(decoded, len(ids))
        weights = attention_of(decoded, len(ids))
        by_kv_head = [grouped(layer, config.num_key_value_heads, "mean") for layer in attention]
        print(name, len(tokens), repr(exact.text(tokens)), "margin", margin, flush=True)
        results = []
        known = {(one["policy"], one["budget"]): one for one in before.get(name, {"cases": []})["cases"]}
        for text, budget in cases:
            if text.partition(":")[0] not in sys.argv[1:] and (text, budget) in known:
                results.append(known[text, budget])
                continue
            outcome = apply(exact, observation, text, budget, attention)
            logits, _ = forced(exact, outcome.source, tokens, outcome.kept)
            if budget == 64 and text in ("dapq", "gemfilter"):
                to_check.append((ids, text, outcome, tokens, logits))
            agreed = int((logits.argmax(1) == full.argmax(1)).int().cumprod(0).sum())
            own, own_margin = generate(exact, outcome.source, outcome.kept, MAX_TOKENS, tokens[: min(agreed, len(tokens) - 1)])
            kept = outcome.decision.kept
            near = policies.near_ties(outcome.decision, NEAR)
            recall = [[len(np.intersect1d(top(gold, budget), row)) / budget for gold, row in zip(*pair)]
                      for pair in zip(by_kv_head, kept)]
            found = divergence(full, logits)
            entry = {
                "policy": text,
                "budget": budget,
                "kept": [" ".join(vlq.encode(row) for row in layer) for layer in kept],
                "near": {f"{i}.{j}": vlq.encode(row) for i, layer in enumerate(near) for j, row in enumerate(layer) if len(row)},
                **found,
                "output_ids": own,
                "output_margin": rounded(own_margin),
                "recall": rounded(recall, 6),
                **shown_loss(weights, kept, found["step_kl"], text, budget),
                **{key: rounded(value) if isinstance(value, float) else value for key, value in outcome.extra.items()},
            }
            results.append(entry)
            notes = {key: value for key, value in entry.items() if key.endswith("_margin") or key == "draft_near_ties"}
            print(f"  {text} {budget}: recall {np.mean(recall):.3f} mean KL {np.mean(entry['step_kl']):.4f} near rows "
                  f"{len(entry['near'])} {notes} {exact.text(own)!r}", flush=True)
        shown = {str(layer): rounded(by_kv_head[layer], 6) for layer in SHOWN_LAYERS}
        prompts[name] = {
            "full": {"output_ids": tokens, "output_margin": rounded(margin), "answer_attention": shown},
            "cases": results,
        }
    document = {"about": "scripts/golden/pass_changes.py", "max_tokens": MAX_TOKENS, "eos": exact.eos,
                "n_layers": config.num_hidden_layers, "prompts": prompts}
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print(path.stat().st_size, "bytes", flush=True)
    stock = Reference()
    for one in to_check:
        check_with_stock(stock, *one)


if __name__ == "__main__":
    main()
