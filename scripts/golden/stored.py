"""What the references of the storing policies share: the prompt's projections, and what a changed cache does.

A reference replaces what the cache holds of the prompt by what would be rebuilt from the stored form, which
gives the same attention; decoded tokens are appended whole. Everything in float64.
"""

import copy
import json

import numpy as np
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from observe import make_exact, observe
from reference_model import DATA, Reference, load_prompts
from runs import MAX_TOKENS, divergence, forced, generate, output_errors, rounded


def exact_model():
    exact = Reference()
    make_exact(exact)
    return exact


def projection_inputs(exact, ids):
    """The observation of a prompt, and per layer the input (N, hidden) of its projections."""
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
    """Per layer (W_K, W_V), each (G * d, hidden)."""
    return [
        (block.self_attn.k_proj.weight.numpy(), block.self_attn.v_proj.weight.numpy()) for block in exact.model.model.layers
    ]


def rotated(exact, keys):
    """(N, G * d) before RoPE -> (G, N, d) at positions 0 ... N - 1."""
    heads = by_head(exact, keys)
    cos, sin = exact.model.model.rotary_emb(heads, torch.arange(len(keys))[None])
    return apply_rotary_pos_emb(heads[None], heads[None], cos, sin)[1][0]


def by_head(exact, x):
    """(N, G * d) -> (G, N, d)"""
    return torch.as_tensor(x).reshape(len(x), exact.config.num_key_value_heads, -1).transpose(0, 1)


def replaced(exact, observation, keys, values, layers=None):
    """The observation with another cache in `layers` (all). keys before RoPE, values: per layer (N, G * d)"""
    changed = copy.deepcopy(observation)
    for layer in range(len(keys)) if layers is None else layers:
        cached = changed.cache.layers[layer]
        cached.keys, cached.values = rotated(exact, keys[layer])[None], by_head(exact, values[layer]).contiguous()[None]
    return changed


def relative_error(approximation, truth):
    """(..., N, d) -> (...): 2-norm over tokens and channels of the difference over that of the truth."""
    difference, truth = np.asarray(approximation - truth), np.asarray(truth)
    return np.linalg.norm(difference, axis=(-2, -1)) / np.linalg.norm(truth, axis=(-2, -1))


def cache_errors(observation, changed):
    """key_error and value_error, each (L, G)"""
    pairs = list(zip(changed.cache.layers, observation.cache.layers))
    return {
        "key_error": rounded([relative_error(now.keys[0], was.keys[0]) for now, was in pairs], 6),
        "value_error": rounded([relative_error(now.values[0], was.values[0]) for now, was in pairs], 6),
    }


def run_cases(exact, cases, prepare, store):
    """prompt -> its cases' records. cases: prompt -> a list of (policy, parameters)

    prepare(exact, ids) -> what `store` works on, the observation first
    store(exact, prepared, parameters) -> (the observation with the stored cache, what to record of it)
    """
    prompts = {}
    for name, listed in cases.items():
        prepared = prepare(exact, load_prompts()[name]["ids"])
        observation = prepared[0]
        tokens, _ = generate(exact, observation)
        full, full_decoded = forced(exact, observation, tokens)
        heads = exact.config.num_attention_heads
        everything = [torch.ones(heads, observation.n, dtype=torch.bool) for _ in observation.layers]
        prompts[name] = []
        for policy, parameters in listed:
            changed, facts = store(exact, prepared, parameters)
            logits, decoded = forced(exact, changed, tokens)
            own, own_margin = generate(exact, changed)
            record = {
                "policy": policy,
                **facts,
                **divergence(full, logits),
                "output_ids": own,
                "output_margin": rounded(own_margin),
                "output_error": rounded(output_errors(full_decoded, decoded, everything, observation.n), 6),
            }
            prompts[name].append(record)
            print(f"{name} {observation.n} {policy}: mean KL {np.mean(record['step_kl']):.4f}",
                  f"agreement {np.mean(record['step_agreement']):.3f}",
                  *(f"{key} {np.mean(record[key]):.4f} (max {np.max(record[key]):.4f})" for key in ("key_error", "value_error") if key in record),
                  f"margins {record['agreement_margin']:.4f} {own_margin:.4f}", repr(exact.text(own)), flush=True)
    return prompts


def write_runs(name, exact, prompts, script, **facts):
    """tests/data/engine/`name`"""
    document = {"about": f"scripts/golden/{script}", "max_tokens": MAX_TOKENS, "eos": exact.eos, **facts, "prompts": prompts}
    (DATA / "engine" / name).write_text(json.dumps(document, separators=(",", ":")) + "\n")
