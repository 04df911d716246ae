"""A prefill of the reference model that records everything that the policies and full/* measures use.

Attention is softmax(q k^T / sqrt(d)) in the model's type, without optimizations: one layer at a time, with its whole N x N
matrix in memory. In float64, the model's norms and rotary angles are also computed in float64, so that the result is exact for
the given weights.
"""

from dataclasses import dataclass, field

import torch
from transformers import DynamicCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama import modeling_llama

MAX_WINDOW = 32


@dataclass
class Layer:
    queries: torch.Tensor = None  # (H, w, d) post-RoPE, of the last 32 tokens
    keys: torch.Tensor = None  # (G, N, d) post-RoPE
    values: torch.Tensor = None  # (G, N, d)
    attention_sums: torch.Tensor = None  # (H, N) float64, over all prompt queries
    window_attention: torch.Tensor = None  # (H, N) float64, mean over the last 32 queries
    adjacent: dict = field(default_factory=dict)  # "q" | "k" | "v" -> mean cosine, before RoPE


@dataclass
class Observation:
    ids: list
    layers: list
    logits: torch.Tensor  # (vocab) of the last prompt token
    cache: DynamicCache

    @property
    def n(self):
        return len(self.ids)


def attend(query, key, value, mask=None):
    """Returns the outputs (H, n, d) and weights (H, n, N) of attention. keys and values: (G, N, d); mask: True = visible"""
    group = query.shape[0] // key.shape[0]
    keys, values = key.repeat_interleave(group, 0), value.repeat_interleave(group, 0)
    logits = query @ keys.transpose(1, 2) / query.shape[-1] ** 0.5
    if mask is not None:
        logits = logits.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(logits, -1)
    return weights @ values, weights


class _Recorder:
    """An attention function for transformers that records its inputs and weights."""

    layers = None  # a list during an observed prefill
    kept = None  # mask (H, N) per layer over the prompt's entries, while a compressed cache decodes
    decoded = None  # list of (layer, q (H, n, d), k, v) during a recorded decode

    @classmethod
    def attention(cls, module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
        q, k, v = query[0], key[0], value[0]
        n, total = q.shape[1], k.shape[1]
        position = torch.arange(total - n, total)[:, None]
        mask = (torch.arange(total)[None, :] <= position).expand(q.shape[0], n, total)
        if cls.kept is not None:
            prompt = cls.kept[module.layer_idx]
            mask = mask.clone()
            mask[:, :, : prompt.shape[1]] &= prompt[:, None, :]
        if cls.decoded is not None:
            cls.decoded.append((module.layer_idx, q.clone(), k.clone(), v.clone()))
        output, weights = attend(q, k, v, mask)
        if cls.layers is not None:
            layer = cls.layers[module.layer_idx]
            window = min(MAX_WINDOW, n)
            layer.queries = q[:, -window:].clone()
            layer.keys, layer.values = k.clone(), v.clone()
            layer.attention_sums = weights.sum(1, dtype=torch.float64)
            layer.window_attention = weights[:, -window:].mean(1, dtype=torch.float64)
        return output.transpose(0, 1)[None].contiguous(), None


ALL_ATTENTION_FUNCTIONS.register("observed", _Recorder.attention)


def make_exact(reference):
    """Converts the model to float64: weights, norms, rotary angles."""
    model = reference.model.double()

    def norm(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    for module in model.modules():
        if isinstance(module, modeling_llama.LlamaRMSNorm):
            module.forward = norm.__get__(module)
    exact_rotary(reference)


def exact_rotary(reference):
    """Computes rotary angles in float64 for any type of the model."""
    d = reference.config.hidden_size // reference.config.num_attention_heads
    base = reference.config.rope_parameters["rope_theta"]
    frequencies = torch.tensor([base ** (-2 * i / d) for i in range(d // 2)], dtype=torch.float64)

    def rotary(self, x, position_ids):
        angles = position_ids[0].double()[:, None] * frequencies
        angles = torch.cat((angles, angles), -1)[None]
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    module = reference.model.model.rotary_emb
    module.forward = rotary.__get__(module)


def mean_adjacent_cosine(x, n_heads):
    """Returns the mean cosine of adjacent tokens over heads, for x (N, heads * d)."""
    heads = x.reshape(x.shape[0], n_heads, -1).double()
    return torch.nn.functional.cosine_similarity(heads[:-1], heads[1:], dim=-1).mean().item()


def observe(reference, ids) -> Observation:
    config = reference.config
    layers = [Layer() for _ in range(config.num_hidden_layers)]
    hooks = []
    for index, block in enumerate(reference.model.model.layers):
        for name, heads in (("q", config.num_attention_heads), ("k", config.num_key_value_heads), ("v", config.num_key_value_heads)):
            def hook(module, inputs, output, layer=layers[index], name=name, heads=heads):
                layer.adjacent[name] = mean_adjacent_cosine(output[0], heads)

            hooks.append(getattr(block.self_attn, name + "_proj").register_forward_hook(hook))
    config._attn_implementation = "observed"
    reference.model.config._attn_implementation = "observed"
    cache = DynamicCache()
    try:
        _Recorder.layers = layers
        with torch.inference_mode():
            logits = reference.model(torch.tensor([ids]), past_key_values=cache, logits_to_keep=1).logits[0, -1]
    finally:
        _Recorder.layers = None
        for hook in hooks:
            hook.remove()
    return Observation(list(ids), layers, logits, cache)


def decode(reference, cache, tokens, kept=None, record=False, first=None):
    """Appends `tokens` to the cache, at their true positions or at positions from `first` on. Returns logits (n, vocab).

    kept: None, or one mask (H, N) per layer. It marks the prompt's entries that each query head may see. Masking an entry
    gives the same attention as removing it, but the cache stays complete.
    """
    _Recorder.kept, _Recorder.decoded = kept, [] if record else None
    try:
        with torch.inference_mode():
            positions = None if first is None else torch.arange(first, first + len(tokens))[None]
            logits = reference.model(torch.tensor([tokens]), past_key_values=cache, position_ids=positions).logits[0]
        return (logits, _Recorder.decoded) if record else logits
    finally:
        _Recorder.kept = _Recorder.decoded = None
