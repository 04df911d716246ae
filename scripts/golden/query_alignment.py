"""Cosines between the queries of pseudo tokens and of the true answer: tests/data/engine/query_alignment.json.

DapQ, Table 1: the default model answers the prompt `short` greedily. Then pseudo tokens replace the answer after the prompt.
They are the answer's or other tokens, at the answer's or at other positions. Everything is in float64.

  answer       the greedy answer's token ids
  cases        a list of
    ids, positions    of the pseudo tokens, which see the prompt and earlier pseudo tokens
    after_rope        mean cosine over tokens, heads and layers
    before_rope       the same for the output of the projections
"""

import json

import numpy as np
import torch
from transformers import DynamicCache

from observe import _Recorder, make_exact
from reference_model import DATA, Reference, load_prompts

LENGTH = 24


def read(reference, ids, positions, n):
    """Reads all ids in one pass. Returns queries (L, H, n, d) of the last n before and after RoPE, and the last logits."""
    model, heads = reference.model, reference.config.num_attention_heads
    plain = []

    def keep(module, inputs, output):
        plain.append(output[0, -n:].reshape(n, heads, -1).transpose(0, 1).clone())

    hooks = [block.self_attn.q_proj.register_forward_hook(keep) for block in model.model.layers]
    _Recorder.decoded = []
    try:
        with torch.inference_mode():
            logits = model(torch.tensor([ids]), position_ids=torch.tensor([positions]),
                           past_key_values=DynamicCache(), logits_to_keep=1).logits[0, -1]
        rotated = [q[:, -n:] for _, q, _, _ in _Recorder.decoded]
    finally:
        _Recorder.decoded = None
        for hook in hooks:
            hook.remove()
    return torch.stack(plain), torch.stack(rotated), logits


def main():
    reference = Reference()
    make_exact(reference)
    reference.config._attn_implementation = reference.model.config._attn_implementation = "observed"
    prompt = load_prompts()["short"]["ids"]
    n = len(prompt)

    # Generates the answer with one pass per token over all earlier tokens.
    answer, plain, rotated = [], [], []
    _, _, logits = read(reference, prompt, list(range(n)), 1)
    while len(answer) < LENGTH and int(logits.argmax()) != reference.eos:
        answer.append(int(logits.argmax()))
        ids = prompt + answer
        p, r, logits = read(reference, ids, list(range(len(ids))), 1)
        plain.append(p)
        rotated.append(r)
    plain, rotated = torch.cat(plain, 2), torch.cat(rotated, 2)
    length = len(answer)

    random = np.random.default_rng(5)
    drawn = [random.integers(reference.config.vocab_size, size=length).tolist() for _ in range(2)]
    phrase = (prompt[3:10] * length)[:length]
    cases = []
    for ids, start in ((answer, n), (phrase, n), (answer, 0), (phrase, 0), (drawn[0], n), (drawn[1], 17), (answer, n - 40)):
        positions = list(range(start, start + length))
        p, r, _ = read(reference, prompt + ids, list(range(n)) + positions, length)
        cosine = torch.nn.functional.cosine_similarity
        cases.append({"ids": ids, "positions": positions,
                      "after_rope": float(f"{cosine(r, rotated, dim=3).mean().item():.9g}"),
                      "before_rope": float(f"{cosine(p, plain, dim=3).mean().item():.9g}")})
        print(start, cases[-1]["after_rope"], cases[-1]["before_rope"])
    document = {"about": "scripts/golden/query_alignment.py; float64 throughout", "answer": answer, "cases": cases}
    (DATA / "engine" / "query_alignment.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
