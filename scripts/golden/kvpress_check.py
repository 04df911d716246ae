"""Compares the NumPy policies with kvpress where both define the same method, and prints the differences.

Writes no file. docs/evidence.md records the output.
"""

import logging

import kvpress
import numpy as np
import torch
from transformers import DynamicCache

import policies
from observe import make_exact, observe
from reference_model import Reference, load_prompts

BUDGETS = (64, 256)


def press_run(model, press, ids):
    """Returns the kept positions [layer][row] of a kvpress run, found by matching kept keys with full ones."""
    full, cut = DynamicCache(), DynamicCache()
    with torch.inference_mode():
        model(torch.tensor([ids]), past_key_values=full, logits_to_keep=1)
        with press(model):
            model(torch.tensor([ids]), past_key_values=cut, logits_to_keep=1)
    kept = []
    for index, (whole, part) in enumerate(zip(full.layers, cut.layers)):
        module = model.model.layers[index].self_attn
        masked = getattr(module, "masked_key_indices", None)
        rows = []
        for head in range(whole.keys.shape[1]):
            if masked is not None:
                gone = masked[2][masked[1] == head].numpy()
                rows.append(np.setdiff1d(np.arange(len(ids)), gone))
                continue
            same = (part.keys[0, head][:, None] == whole.keys[0, head][None]).all(-1)
            assert (same.sum(1) == 1).all(), "the full cache does not contain a kept key"
            rows.append(np.sort(same.int().argmax(1).numpy()))
        kept.append(rows)
        module.masked_key_indices = None
    return kept


def differing(ours, theirs):
    pairs = [(a, b) for x, y in zip(ours, theirs) for a, b in zip(x, y)]
    return sum(len(np.setdiff1d(b, a)) for a, b in pairs), sum(len(b) for _, b in pairs)


def report(name, budget, ours, theirs):
    wrong, total = differing(ours, theirs)
    print(f"{name}, B = {budget}: {wrong} of {total} entries differ", flush=True)


def main():
    logging.disable(logging.WARNING)
    ids = load_prompts()["demo"]["ids"]
    n = len(ids)
    exact = Reference()
    make_exact(exact)
    selector = policies.Selector(observe(exact, ids), exact.config)
    del exact.model
    stock = Reference(attention="sdpa")
    average = "pooling=avg,kernel=7"
    for budget in BUDGETS:
        ratio = 1 - (budget + 1e-6) / n
        snap = lambda: kvpress.SnapKVPress(compression_ratio=ratio, window_size=32, kernel_size=7)
        report("snapkv:" + average + " against SnapKVPress", budget,
               selector.select("snapkv:" + average, budget).kept, press_run(stock.model, snap(), ids))
        report("streaming-llm against StreamingLLMPress", budget, selector.select("streaming-llm", budget).kept,
               press_run(stock.model, kvpress.StreamingLLMPress(compression_ratio=ratio, n_sink=4), ids))
        report("ada-snapkv:alpha=0," + average + " against AdaKVPress without safeguard", budget,
               selector.select("ada-snapkv:alpha=0," + average, budget).kept,
               press_run(stock.model, kvpress.AdaKVPress(snap(), alpha_safeguard=0.0), ids))
        report("ada-snapkv:" + average + " against AdaKVPress with its own safeguard", budget,
               selector.select("ada-snapkv:" + average, budget).kept,
               press_run(stock.model, kvpress.AdaKVPress(snap(), alpha_safeguard=0.2), ids))
    for budget in (256, 768):  # at 256, kvpress's smallest layer is below the window and falls back to SnapKV
        ratio = 1 - (budget + 1e-6) / n
        pyramid = press_run(stock.model, kvpress.PyramidKVPress(compression_ratio=ratio, window_size=32, kernel_size=7), ids)
        report("pyramidkv:" + average + " against PyramidKVPress", budget,
               selector.select("pyramidkv:" + average, budget).kept, pyramid)
        counts = [len(rows[0]) for rows in pyramid]
        ours = [selector.select("snapkv:" + average, count).kept[layer] for layer, count in enumerate(counts)]
        report("the same with PyramidKVPress's own layer sizes", budget, ours, pyramid)
        print("  layer sizes of PyramidKVPress:", counts[0], "...", counts[-1], "mean", np.mean(counts))
    del stock
    # For H2O's sums, undo kvpress's division by the number of queries that see a key. kvpress protects no tokens.
    eager = Reference()
    seen = {}

    class Sums(kvpress.ObservedAttentionPress):
        def score(self, module, hidden_states, keys, values, attentions, kwargs):
            scores = super().score(module, hidden_states, keys, values, attentions, kwargs)
            seen[module.layer_idx] = scores[0] * torch.arange(n, 0, -1)
            return scores

    with torch.inference_mode(), Sums(compression_ratio=0.5)(eager.model):
        eager.model(torch.tensor([ids]), past_key_values=DynamicCache(), logits_to_keep=1)
    worst = 0.0
    for index, layer in enumerate(selector.observation.layers):
        ours = policies.grouped(layer.attention_sums.numpy(), seen[index].shape[0], "mean")
        worst = max(worst, float(np.max(np.abs(seen[index].numpy() - ours) / ours)))
    print(f"attention sums against ObservedAttentionPress x queries: largest relative difference {worst:.1e}")


if __name__ == "__main__":
    main()
