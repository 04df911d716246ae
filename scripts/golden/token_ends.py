#!/usr/bin/env python3
"""Byte offset in a text at which each token ends, from the library `tokenizers`: tests/data/checkpoint/tokenizers/ends.json.

    scripts/golden/python scripts/golden/token_ends.py

The tokenizers and texts are some of those in cases.json (made by tokenizer_ids.py). `ends` counts bytes of UTF-8, as kvscope
does, whereas the library counts characters. Post-processors are left out, because they trim white space off the offsets. Texts
with characters without tokens are left out, because the library does not count these characters.
"""
import json
from pathlib import Path

from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parents[2] / "tests/data/checkpoint/tokenizers"
CASES = ("gpt2", "llama3", "qwen2", "smollm2", "llama2", "mistral v0.3: Metaspace, first", "Metaspace, always, split",
         "Metaspace, never, split", "unknown tokens apart, no byte fallback", "unknown tokens fused, no byte fallback",
         "prefix space", "lower case, stripped", "NFKC", "NFD",
         "replacing by a pattern", "split, Removed, invert False", "added tokens, lstrip", "added tokens, rstrip",
         "added tokens, normalized, byte fallback")
TEXTS = ("plain", "cjk", "emoji", "combining", "line ends", "spaces", "special", "special without spaces",
         "no-break spaces", "underscores", "code")
# Prompts with a context, an empty line and a question.
PROMPTS = {"question": "The code is 58-21-94.\n\nWhat is the code?", "who": "A report of the year.\n\n\nWho signed it?",
           "line end last": "One line.\n\n\n\nAnd what?", "markup": "<s>[INST] A text.\n\nWho?[/INST]</s>"}


def merged(target, patch):
    """Applies a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


def main():
    golden = json.loads((HERE / "cases.json").read_text())
    texts = {name: golden["texts"][name] for name in TEXTS} | PROMPTS
    cases = {}
    for name in CASES:
        case = golden["cases"][name]
        description = json.loads((HERE / f"{case['family']}.json").read_text())
        description = merged(description, case.get("patch") or {})
        description["post_processor"] = None
        tokenizer = Tokenizer.from_str(json.dumps(description))
        rows = {}
        for text_name, text in texts.items():
            bytes_before = [0]
            for character in text:
                bytes_before.append(bytes_before[-1] + len(character.encode()))
            encoding = tokenizer.encode(text)
            rows[text_name] = {"ids": encoding.ids, "ends": [bytes_before[end] for _, end in encoding.offsets]}
        cases[name] = {"family": case["family"], "patch": case.get("patch") or {}, "rows": rows}
    (HERE / "ends.json").write_text(json.dumps({"texts": texts, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
