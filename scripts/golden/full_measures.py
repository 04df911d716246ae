"""Samples and checksums of full/* and of the weights' spectra: tests/data/engine/full_measures.json.

  prompts: name ->
    window                 32
    window_attention_square_sum   (L, H)   sum over positions of A^2
    window_attention_centre       (L, H)   sum over positions of position * A
    window_attention_samples      [[layer, head, position, value], ...]
    query_similarity_mean         (L, H)   mean of the 32 x 32 cosines without the diagonal
    query_similarity_samples      [[layer, head, i, j, value], ...]
    head_jsd                      (L, H (H - 1) / 2)  upper triangle, row by row
    adjacent_similarity           {"q" | "k" | "v": (L)}
    attention_sums_square_sum     (L, H)   H2O's sums over all queries, squared and added up
    attention_sums_samples        [[layer, head, position, value], ...]
  model:
    spectrum               {"q" | "k" | "v": (L, 8)} the 8 largest eigenvalues of W^T W
    spectrum_trace         {"q" | "k" | "v": (L)} the sum of all of them
    head_spectrum          {"q" | "k" | "v": [[layer, head, [d values]], ...]} for some heads
"""

import json

import numpy as np
import torch

import policies
from observe import make_exact, observe
from reference_model import DATA, Reference, load_prompts

SAMPLE_LAYERS = (0, 7, 15, 29)


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
    prompts = {name: measures(observe(reference, load_prompts()[name]["ids"])) for name in ("demo", "short")}
    document = {"about": "scripts/golden/full_measures.py; float64 throughout", "prompts": prompts, "model": spectra(reference)}
    (DATA / "engine" / "full_measures.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
