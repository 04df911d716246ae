"""Samples and checksums of full/* and of the spectra of weights: tests/data/engine/full_measures.json.

  prompts: name ->
    window                 32
    window_attention_square_sum   (L, H)   sum over positions of A^2
    window_attention_centre       (L, H)   sum over positions of position * A
    window_attention_samples      [[layer, head, position, value], ...]
    query_similarity_mean         (L, H)   mean of the 32 x 32 cosines without the diagonal
    query_similarity_samples      [[layer, head, i, j, value], ...]
    head_jsd                      (L, H (H - 1) / 2)  upper triangle, row by row
    adjacent_similarity           {"q" | "k" | "v": (L)} mean cosine of adjacent tokens before RoPE
    mode_contribution             {"q" | "k" | "v": [[layer, head, [d values]], ...]} c_i of KVSlimmer's Eq. 8 from
                                  the singular value decomposition of a head's projection, mean over adjacent tokens
    mode_contribution_square_sum  {"q" | "k" | "v": (L, H or G)} sum over modes of c_i^2
    layer_similarity              {"k" | "v": (L (L - 1) / 2)} upper triangle, row by row: mean cosine of the same
                                  token's vectors before RoPE in the same head of two layers
    head_similarity               {"k" | "v": (L, G (G - 1) / 2)} the same for two heads of a layer
    gradient_alignment            {"c11" | "c12" | "c22": (L, H)} of `short`: mean of cos(E, c), E by backpropagation
    attention_sums_square_sum     (L, H)   sum of squares of H2O's attention sums over all queries
    attention_sums_samples        [[layer, head, position, value], ...]
  model:
    spectrum               {"q" | "k" | "v": (L, 8)} the 8 largest eigenvalues of W^T W
    spectrum_trace         {"q" | "k" | "v": (L)} sum of all eigenvalues
    head_spectrum          {"q" | "k" | "v": [[layer, head, [d values]], ...]} for some heads
"""

import json

import numpy as np
import torch

import policies
from observe import ALL_ATTENTION_FUNCTIONS, attend, make_exact, observe
from reference_model import DATA, Reference, load_prompts

SAMPLE_LAYERS = (0, 7, 15, 29)
SIMILARITY_TOKENS = 256


def rounded(x):
    if isinstance(x, (list, tuple, np.ndarray)):
        return [rounded(v) for v in x]
    return float(f"{float(x):.7g}")


def measures(observation):
    out = {"window": 32}
    n = observation.n
    layers = observation.layers
    attention = np.stack([layer.window_attention.numpy() for layer in layers])
    sums = np.stack([layer.attention_sums.numpy() for layer in layers])
    n_layers, n_heads, _ = attention.shape
    places = sorted({0, 1, 4, 5, 17, n // 3, n // 2, 2 * n // 3, n - 40, n - 33, n - 32, n - 31, n - 12, n - 2, n - 1})
    out["window_attention_square_sum"] = rounded((attention**2).sum(2))
    out["window_attention_centre"] = rounded((attention * np.arange(n)).sum(2))
    out["attention_sums_square_sum"] = rounded((sums**2).sum(2))
    for name, array in (("window_attention_samples", attention), ("attention_sums_samples", sums)):
        out[name] = [[l, h, j, rounded(array[l, h, j])] for l in SAMPLE_LAYERS for h in (0, 4, 8) for j in places]
    similarity = []
    for layer in layers:
        q = layer.queries.double()
        q = q / q.norm(dim=2, keepdim=True)
        similarity.append((q @ q.transpose(1, 2)).numpy())
    similarity = np.stack(similarity)
    w = similarity.shape[2]
    out["query_similarity_mean"] = rounded((similarity.sum((2, 3)) - w) / (w * (w - 1)))
    out["query_similarity_samples"] = [
        [l, h, i, j, rounded(similarity[l, h, i, j])]
        for l in SAMPLE_LAYERS for h in (0, 8) for i, j in ((0, 1), (0, 31), (13, 5), (30, 31), (7, 7))
    ]
    out["head_jsd"] = []
    for layer in range(n_layers):
        p = attention[layer, :, : n - w]
        p = p / p.sum(1, keepdims=True)
        out["head_jsd"].append(rounded([policies.jsd(p[a], p[b]) for a in range(n_heads) for b in range(a + 1, n_heads)]))
    out["adjacent_similarity"] = {k: rounded([layer.adjacent[k] for layer in layers]) for k in "qkv"}
    return out


class Projections:
    """Records the inputs and outputs of each layer's three projections during a prefill."""

    def __init__(self, reference):
        self.blocks = [block.self_attn for block in reference.model.model.layers]
        self.d = reference.config.hidden_size // reference.config.num_attention_heads
        self.inputs = [None] * len(self.blocks)
        self.outputs = {name: [None] * len(self.blocks) for name in "qkv"}

    def __enter__(self):
        self.hooks = []
        for layer, block in enumerate(self.blocks):
            for name in "qkv":
                def hook(module, inputs, output, layer=layer, name=name):
                    self.inputs[layer] = inputs[0][0].double().numpy()
                    self.outputs[name][layer] = output[0].double().numpy()

                self.hooks.append(getattr(block, name + "_proj").register_forward_hook(hook))
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()

    def heads(self, name, layer):
        """Returns a projection's output as (heads, N, d)."""
        rows = self.outputs[name][layer]
        return rows.reshape(len(rows), -1, self.d).swapaxes(0, 1)

    def contributions(self, name, layer):
        """Returns KVSlimmer's Eq. 8 for each head (heads, d), averaged over pairs. W = U S V^T, lambda = S^2, p = x U."""
        weight = getattr(self.blocks[layer], name + "_proj").weight.double().numpy()
        out = []
        for head in range(len(weight) // self.d):
            u, s, _ = np.linalg.svd(weight[head * self.d : (head + 1) * self.d].T, full_matrices=False)
            p = self.inputs[layer] @ u
            norms = np.sqrt((s**2 * p**2).sum(1))
            out.append((s**2 * p[:-1] * p[1:] / (norms[:-1] * norms[1:])[:, None]).mean(0))
        return np.array(out)


def similarities(projections):
    """Returns the similarities of keys and values before RoPE, at evenly spaced tokens."""
    n_layers = len(projections.blocks)
    n = len(projections.inputs[0])
    m = min(n, SIMILARITY_TOKENS)
    tokens = [(2 * i + 1) * n // (2 * m) for i in range(m)]
    out = {"layer_similarity": {}, "head_similarity": {}}
    for name in "kv":
        units = []
        for layer in range(n_layers):
            vectors = projections.heads(name, layer)[:, tokens]
            units.append(vectors / np.linalg.norm(vectors, axis=2, keepdims=True))
        units = np.array(units)  # (L, G, m, d)
        between = np.einsum("agtc,bgtc->ab", units, units) / (units.shape[1] * m)
        within = np.einsum("lgtc,lhtc->lgh", units, units) / m
        out["layer_similarity"][name] = rounded(between[np.triu_indices(n_layers, 1)])
        upper = np.triu_indices(units.shape[1], 1)
        out["head_similarity"][name] = rounded(within[:, upper[0], upper[1]])
    return out


def decompositions(projections):
    out = {"mode_contribution": {}, "mode_contribution_square_sum": {}}
    for name in "qkv":
        modes = [projections.contributions(name, layer) for layer in range(len(projections.blocks))]
        out["mode_contribution"][name] = [
            [layer, head, rounded(modes[layer][head])] for layer in SAMPLE_LAYERS for head in (0, len(modes[layer]) - 1)
        ]
        out["mode_contribution_square_sum"][name] = rounded([(m**2).sum(1) for m in modes])
    return out


class _Graph:
    """Attention function that records each layer's weights, values and outputs; the outputs stay in the autograd graph."""

    layers = []

    @classmethod
    def attention(cls, module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
        n = query.shape[2]
        mask = torch.ones(n, n, dtype=torch.bool).tril().expand(query.shape[1], n, n)
        output, weights = attend(query[0], key[0], value[0], mask)
        cls.layers.append((weights.detach().numpy(), value[0].detach().numpy(), output))
        return output.transpose(0, 1)[None].contiguous(), None


ALL_ATTENTION_FUNCTIONS.register("graph", _Graph.attention)


def alignment(reference, ids):
    """Returns each head's mean of cos(E, c) for c11, c12 and c22, over all queries and pairs of neighbors that a query sees."""
    reference.config._attn_implementation = reference.model.config._attn_implementation = "graph"
    _Graph.layers = []
    embedded = reference.model.model.embed_tokens(torch.tensor([ids])).detach().requires_grad_(True)
    logits = reference.model(inputs_embeds=embedded, use_cache=False).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]))
    gradients = torch.autograd.grad(loss, [output for _, _, output in _Graph.layers])
    out = {"c11": [], "c12": [], "c22": []}
    for (weights, values, output), gradient in zip(_Graph.layers, gradients):
        group = len(weights) // len(values)
        heads = {name: [] for name in out}
        for h in range(len(weights)):
            v, o, e = values[h // group], output[h].detach().numpy(), gradient[h].numpy()
            found = {name: [] for name in out}
            for i in range(1, len(ids) - 1):  # the last query predicts nothing, so its gradient is zero
                a, b = weights[h, i, :i, None], weights[h, i, 1 : i + 1, None]
                first, second = v[:i] - o[i], v[1 : i + 1] - o[i]
                vectors = {"c11": a * (1 - 2 * a) * first, "c22": b * (1 - 2 * b) * second, "c12": -a * b * (first + second)}
                for name, c in vectors.items():
                    found[name].append(c @ e[i] / (np.linalg.norm(c, axis=1) * np.linalg.norm(e[i])))
            for name in out:
                heads[name].append(np.concatenate(found[name]).mean())
        for name in out:
            out[name].append(rounded(heads[name]))
    return out


def spectra(reference):
    out = {"spectrum": {}, "spectrum_trace": {}, "head_spectrum": {}}
    d = reference.config.hidden_size // reference.config.num_attention_heads
    for name in "qkv":
        whole, trace, heads = [], [], []
        for index, block in enumerate(reference.model.model.layers):
            weight = getattr(block.self_attn, name + "_proj").weight.double()
            values = torch.linalg.svdvals(weight) ** 2
            whole.append(rounded(values[:8].tolist()))
            trace.append(rounded(values.sum()))
            if index in SAMPLE_LAYERS:
                for head in (0, weight.shape[0] // d - 1):
                    part = torch.linalg.svdvals(weight[head * d : (head + 1) * d]) ** 2
                    heads.append([index, head, rounded(part.tolist())])
        out["spectrum"][name], out["spectrum_trace"][name], out["head_spectrum"][name] = whole, trace, heads
    return out


def main():
    reference = Reference()
    make_exact(reference)
    prompts = {}
    for name in ("demo", "short"):
        ids = load_prompts()[name]["ids"]
        with Projections(reference) as projections:
            prompts[name] = measures(observe(reference, ids))
        prompts[name] |= decompositions(projections) | similarities(projections)
    prompts["short"]["gradient_alignment"] = alignment(reference, load_prompts()["short"]["ids"])
    document = {"about": "scripts/golden/full_measures.py; float64 throughout", "prompts": prompts, "model": spectra(reference)}
    (DATA / "engine" / "full_measures.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
