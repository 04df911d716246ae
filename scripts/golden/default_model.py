"""Reference of the forward pass: tests/data/engine/default_model.json.

  prompts: name ->
    last_logits_top   the 20 best [token id, logit] after the prompt, from unmodified transformers in float32
    last_logits_exact logits of the same 20 ids in float64, to show the error of float32
    continuation      64 greedy tokens in float32, including tokens after end-of-text
    margins           gap between the best and second logit at each step
    top_per_step      the best 5 [id, logit] at steps 0, 15, 31, 47, 63
"""

import json

import torch
from transformers import DynamicCache

from observe import make_exact, observe
from reference_model import DATA, Reference, load_prompts

STEPS = 64


def rounded(x):
    return float(f"{x:.8g}")


def continuation(reference, ids):
    """Returns greedy ids, margins, and the logits of every step."""
    cache, tokens, margins, logits_by_step = DynamicCache(), [], [], []
    following = torch.tensor([ids])
    with torch.inference_mode():
        for _ in range(STEPS):
            logits = reference.model(following, past_key_values=cache, logits_to_keep=1).logits[0, -1]
            best = logits.topk(2)
            tokens.append(int(best.indices[0]))
            margins.append(rounded((best.values[0] - best.values[1]).item()))
            logits_by_step.append(logits)
            following = torch.tensor([[tokens[-1]]])
    return tokens, margins, logits_by_step


def main():
    stock, exact = Reference(), Reference()
    make_exact(exact)
    prompts = {}
    for name, prompt in load_prompts().items():
        ids = prompt["ids"]
        tokens, margins, logits = continuation(stock, ids)
        top = logits[0].topk(20)
        truth = observe(exact, ids).logits
        print(name, repr(stock.text(tokens)), "smallest margin", min(margins))
        print("  largest |float32 - float64|:", (logits[0] - truth).abs().max().item())
        prompts[name] = {
            "last_logits_top": [[int(i), rounded(v)] for v, i in zip(top.values.tolist(), top.indices)],
            "last_logits_exact": [rounded(truth[i].item()) for i in top.indices],
            "continuation": tokens,
            "margins": margins,
            "top_per_step": [
                [[int(i), rounded(v)] for v, i in zip(*(t.tolist() for t in logits[step].topk(5)))]
                for step in (0, 15, 31, 47, 63)
            ],
        }
    document = {"about": "scripts/golden/default_model.py: LlamaForCausalLM, eager, on the dequantised GGUF", "prompts": prompts}
    (DATA / "engine" / "default_model.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
