"""Shared code for the references of the storing policies: projections of the prompt, and runs with a changed cache.

A reference replaces the prompt's cache by the cache rebuilt from the stored form, which gives the same attention. Decoded
tokens are appended unchanged. In an Ageing run, the cache is replaced again after each token. Everything is in float64.
"""

import copy
import json

import numpy as np
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from observe import attend, decode, make_exact, observe
from reference_model import DATA, Reference, load_prompts
from runs import MAX_TOKENS, divergence, forced, generate, output_errors, rounded


def exact_model():
    exact = Reference()
    make_exact(exact)
    return exact


def projection_inputs(exact, ids):
    """Returns the observation of a prompt and, per layer, the inputs (N, hidden) of its projections."""
    inputs = []
    hooks = [
        block.self_attn.k_proj.register_forward_hook(lambda module, given, output: inputs.append(given[0][0].numpy().copy()))
        for block in exact.model.model.layers
    ]
    try:
        return observe(exact, ids), inputs
    finally:
        for hook in hooks:
            hook.remove()


def projection_weights(exact):
    """Returns (W_K, W_V) per layer, each (G * d, hidden)."""
    return [
        (block.self_attn.k_proj.weight.numpy(), block.self_attn.v_proj.weight.numpy()) for block in exact.model.model.layers
    ]


def rotated(exact, keys):
    """Applies RoPE at positions 0 ... N - 1 to an array (N, G * d). Returns (G, N, d)."""
    heads = by_head(exact, keys)
    cos, sin = exact.model.model.rotary_emb(heads, torch.arange(len(keys))[None])
    return apply_rotary_pos_emb(heads[None], heads[None], cos, sin)[1][0]


def by_head(exact, x):
    """Reshapes (N, G * d) to (G, N, d)."""
    return torch.as_tensor(x).reshape(len(x), exact.config.num_key_value_heads, -1).transpose(0, 1)


def replaced(exact, observation, keys, values, layers=None):
    """Returns the observation with another cache in `layers` (default: all). keys before RoPE, values: (N, G * d) per layer"""
    changed = copy.deepcopy(observation)
    replace(exact, changed.cache, keys, values, layers)
    return changed


def replace(exact, cache, keys, values, layers=None):
    for layer in range(len(keys)) if layers is None else layers:
        cached = cache.layers[layer]
        cached.keys, cached.values = rotated(exact, keys[layer])[None], by_head(exact, values[layer]).contiguous()[None]


class Still:
    """A run whose cache of the prompt does not change when tokens are appended."""

    def __init__(self, exact, observation, changed):
        self.exact, self.n, self.changed = exact, observation.n, changed
        self.everything = [torch.ones(exact.config.num_attention_heads, self.n, dtype=torch.bool) for _ in observation.layers]

    def forced(self, tokens, full_decoded):
        """Returns the logits (T, vocab) that predict the tokens, and the output error (L, H)."""
        logits, decoded = forced(self.exact, self.changed, tokens)
        return logits, output_errors(full_decoded, decoded, self.everything, self.n)

    def generate(self):
        return generate(self.exact, self.changed)


class Ageing:
    """A run that reduces a token as soon as the token is not among the last `recent` tokens.

    The cache of the first n tokens depends only on n and on the keys and values that this run computed for them. So the cache
    is made anew after every token.

    hold(cache, keys, values): stores n tokens in the cache; keys before RoPE and values, (n, G * d) per layer, as computed
    by the run
    reduced_of(n): ascending positions among n tokens that are not exact in `reduced_layers` after the n-th token's attention
    """

    def __init__(self, exact, prepared, hold, reduced_of, reduced_layers):
        self.exact, self.prepared, self.hold = exact, prepared, hold
        self.reduced_of, self.reduced_layers = reduced_of, reduced_layers
        self.changed = copy.deepcopy(prepared[0])
        self.hold(self.changed.cache, *prepared[1:])

    def start(self):
        self.cache = copy.deepcopy(self.changed.cache)
        self.keys, self.values = (list(part) for part in self.prepared[1:])

    def feed(self, token):
        """Returns logits (vocab) and, per layer, the keys and values (G, n, d) that the token's attention saw."""
        new, hooks = {}, []
        for layer, block in enumerate(self.exact.model.model.layers):
            for part, module in enumerate((block.self_attn.k_proj, block.self_attn.v_proj)):
                def hook(module, given, output, at=(part, layer)):
                    new[at] = output[0].numpy().copy()

                hooks.append(module.register_forward_hook(hook))
        try:
            logits, decoded = decode(self.exact, self.cache, [token], record=True)
        finally:
            for hook in hooks:
                hook.remove()
        self.keys = [np.concatenate((old, new[0, layer])) for layer, old in enumerate(self.keys)]
        self.values = [np.concatenate((old, new[1, layer])) for layer, old in enumerate(self.values)]
        seen = [(k, v) for _, _, k, v in decoded]
        self.check(seen)
        self.hold(self.cache, self.keys, self.values)
        return logits[-1], seen

    def check(self, seen):
        """Checks that attention used exact keys and values of all tokens that were not reduced before, and of the newest token."""
        n = len(self.keys[0])
        for layer in range(len(seen)):
            wrong = (seen[layer][1] - by_head(self.exact, self.values[layer])).abs().amax((0, 2)).numpy()
            wrong = np.maximum(wrong, (seen[layer][0] - rotated(self.exact, self.keys[layer])).abs().amax((0, 2)).numpy())
            expected = self.reduced_of(n - 1) if layer in self.reduced_layers else []
            assert np.flatnonzero(wrong > 1e-9).tolist() == list(expected), (layer, n)

    def forced(self, tokens, full_decoded):
        """Returns the logits (T, vocab) that predict the tokens, and the output error (L, H)."""
        self.start()
        logits, errors = [self.changed.logits], []
        for t, token in enumerate(tokens):
            following, seen = self.feed(token)
            logits.append(following)
            errors.append([])
            for (_, q, k, v), now in zip(full_decoded, seen):
                n = k.shape[1] - len(tokens) + t + 1
                whole, _ = attend(q[:, t : t + 1], k[:, :n], v[:, :n])
                part, _ = attend(q[:, t : t + 1], *now)
                errors[-1].append(((part - whole).norm(dim=2) / whole.norm(dim=2))[:, 0].tolist())
        return torch.stack(logits[:-1]), np.mean(errors, 0)

    def generate(self):
        """Returns at most MAX_TOKENS greedy ids, including end-of-text, and the smallest margin."""
        self.start()
        logits, tokens, margin = self.changed.logits, [], float("inf")
        while True:
            best = logits.topk(2)
            margin = min(margin, (best.values[0] - best.values[1]).item())
            tokens.append(int(best.indices[0]))
            if tokens[-1] == self.exact.eos or len(tokens) == MAX_TOKENS:
                return tokens, margin
            logits, _ = self.feed(tokens[-1])


def relative_error(approximation, truth):
    """Returns the 2-norm of the difference over tokens and channels, relative to the truth: (..., N, d) -> (...)."""
    difference, truth = np.asarray(approximation - truth), np.asarray(truth)
    return np.linalg.norm(difference, axis=(-2, -1)) / np.linalg.norm(truth, axis=(-2, -1))


def cache_errors(observation, changed):
    """Returns key_error and value_error, each (L, G)."""
    pairs = list(zip(changed.cache.layers, observation.cache.layers))
    return {
        "key_error": rounded([relative_error(now.keys[0], was.keys[0]) for now, was in pairs], 6),
        "value_error": rounded([relative_error(now.values[0], was.values[0]) for now, was in pairs], 6),
    }


def run_cases(exact, cases, prepare, store):
    """Returns a dictionary from prompts to the records of their cases. cases: prompts with lists of (policy, parameters)

    prepare(exact, ids) returns the arguments of `store`, with the observation first.
    store(exact, prepared, parameters) returns the observation with the stored cache, or an Ageing run, and the data to record.
    """
    prompts = {}
    for name, listed in cases.items():
        prepared = prepare(exact, load_prompts()[name]["ids"])
        observation = prepared[0]
        tokens, _ = generate(exact, observation)
        full, full_decoded = forced(exact, observation, tokens)
        prompts[name] = []
        for policy, parameters in listed:
            run, facts = store(exact, prepared, parameters)
            if not isinstance(run, Ageing):
                run = Still(exact, observation, run)
            logits, errors = run.forced(tokens, full_decoded)
            own, own_margin = run.generate()
            record = {
                "policy": policy,
                **facts,
                **divergence(full, logits),
                "output_ids": own,
                "output_margin": rounded(own_margin),
                "output_error": rounded(errors, 6),
            }
            prompts[name].append(record)
            print(f"{name} {observation.n} {policy}: mean KL {np.mean(record['step_kl']):.4f}",
                  f"agreement {np.mean(record['step_agreement']):.3f}",
                  *(f"{key} {np.mean(record[key]):.4f} (max {np.max(record[key]):.4f})" for key in ("key_error", "value_error") if key in record),
                  f"margins {record['agreement_margin']:.4f} {own_margin:.4f}", repr(exact.text(own)), flush=True)
    return prompts


def write_runs(name, exact, prompts, script, **facts):
    """Writes tests/data/engine/`name`."""
    document = {"about": f"scripts/golden/{script}", "max_tokens": MAX_TOKENS, "eos": exact.eos, **facts, "prompts": prompts}
    (DATA / "engine" / name).write_text(json.dumps(document, separators=(",", ":")) + "\n")
