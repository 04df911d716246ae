#!/usr/bin/env python3
"""How transformers reads a model's files: added tokens, chat templates, windows and rotary parameters.

    scripts/golden/python scripts/golden/model_files.py

writes tests/data/checkpoint/model_files.json:

  tokens      tokenizer folders (a family of tests/data/checkpoint/tokenizers/ with changes as JSON merge patches, and other
              files), texts, and their ids from PreTrainedTokenizerFast.from_pretrained
  templates   folders with chat templates, and the text or error of apply_chat_template
  configs     config.json of several models, with each layer's window and the rotary parameters from AutoConfig
"""

import json
import math
import tempfile
from pathlib import Path

from transformers import AutoConfig, PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parents[2]
TOKENIZERS = ROOT / "tests/data/checkpoint/tokenizers"
OUT = ROOT / "tests/data/checkpoint/model_files.json"

TEXTS = [
    "a<|user|>b <|user|> c  <|user|>\n\nd",
    "<|tool|>x <|tool|> y<|tool|>",
    "fox foxes <|im_start|> fox<|im_end|>",
    " <|user|><|tool|> <image> é <audio> ",
]


def token(content, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": False, **flags}


def token_cases(base):
    """Returns a dictionary from case names to the files beside tokenizer.json. All cases belong to the family qwen2."""
    highest = max(max(base["model"]["vocab"].values()), max(t["id"] for t in base["added_tokens"]))
    own = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in base["added_tokens"]}
    new, other = str(highest + 1), str(highest + 2)
    im_start = next(str(t["id"]) for t in base["added_tokens"] if t["content"] == "<|im_start|>")
    in_vocabulary = "ing"
    assert in_vocabulary in base["model"]["vocab"]
    cases = {
        "added_tokens_decoder": {"tokenizer_config.json": {"added_tokens_decoder": {
            **own, new: token("<|user|>", special=True), other: token("fox")}}},
        "added_tokens_decoder changes flags": {"tokenizer_config.json": {"added_tokens_decoder": {
            **own, im_start: token("<|im_start|>", special=True, lstrip=True, rstrip=True)}}},
        "added_tokens.json": {"added_tokens.json": {"<|user|>": highest + 1, "<|tool|>": highest + 2}},
        "added_tokens.json, one of them special": {
            "added_tokens.json": {"<|user|>": highest + 1, "<|tool|>": highest + 2},
            "special_tokens_map.json": {"additional_special_tokens": ["<|tool|>"]}},
        "added_tokens.json beside added_tokens_decoder": {
            "added_tokens.json": {"<|user|>": highest + 1},
            "tokenizer_config.json": {"added_tokens_decoder": own}},
        "special_tokens_map.json, named": {"special_tokens_map.json": {
            # This token is always special, and transformers refuses the key "special" here.
            "bos_token": {k: v for k, v in token("<|user|>", lstrip=True).items() if k != "special"},
            "eos_token": "<|tool|>"}},
        "additional_special_tokens": {"tokenizer_config.json": {
            "additional_special_tokens": ["<|tool|>", "<|user|>"]}},
        "additional_special_tokens beside added_tokens_decoder": {"tokenizer_config.json": {
            "additional_special_tokens": ["<|tool|>", "<|user|>"], "added_tokens_decoder": own}},
        "extra_special_tokens, a list": {"tokenizer_config.json": {"extra_special_tokens": ["<|tool|>", "<|user|>"]}},
        "extra_special_tokens, an object": {"tokenizer_config.json": {
            "extra_special_tokens": {"image_token": "<image>", "audio_token": "<audio>"}}},
        "a model's own name": {"tokenizer_config.json": {"image_token": "<image>", "audio_token": "<audio>",
                                                         "pad_token": "<|user|>"}},
        "a named token of the vocabulary": {"tokenizer_config.json": {"unk_token": in_vocabulary}},
    }
    for flag in ["lstrip", "rstrip", "single_word", "normalized"]:
        cases[f"added_tokens_decoder, {flag}"] = {"tokenizer_config.json": {"added_tokens_decoder": {
            **own, new: token("<|user|>", **{flag: True}), other: token("fox", **{flag: True})}}}
        cases[f"a named token, {flag}"] = {"tokenizer_config.json": {
            "sep_token": {"__type": "AddedToken", **token("<|user|>", **{flag: True})}}}
    return cases


ONE = "one {{ messages[0].content }}{{ eos_token }}"
TEMPLATE_CASES = {
    "a text": {"tokenizer_config.json": {"chat_template": ONE, "eos_token": "<|im_end|>"}},
    "a list with default": {"tokenizer_config.json": {"chat_template": [
        {"name": "rag", "template": "two"}, {"name": "default", "template": ONE}]}},
    "a list without default": {"tokenizer_config.json": {"chat_template": [
        {"name": "rag", "template": "two"}, {"name": "tool_use", "template": "three"}]}},
    "an object": {"tokenizer_config.json": {"chat_template": {"default": ONE, "rag": "two"}}},
    "a file and others": {"chat_template.jinja": ONE, "additional_chat_templates/rag.jinja": "two",
                          "tokenizer_config.json": {"chat_template": "four"}},
    "other files alone": {"additional_chat_templates/rag.jinja": "two",
                          "tokenizer_config.json": {"chat_template": "four"}},
}

BASE = {"vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 2, "eos_token_id": 2, "max_position_embeddings": 4096}
MISTRAL = {**BASE, "model_type": "mistral", "architectures": ["MistralForCausalLM"]}
MINISTRAL = {**BASE, "model_type": "ministral", "architectures": ["MinistralForCausalLM"]}
LLAMA = {**BASE, "model_type": "llama", "architectures": ["LlamaForCausalLM"]}
QWEN3 = {**BASE, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
TYPES = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5}
CONFIG_CASES = {
    "mistral": {**MISTRAL, "sliding_window": 7},
    "mistral, layer_types": {**MISTRAL, "sliding_window": 7, "layer_types": TYPES},
    "mistral, layer_types all full": {**MISTRAL, "sliding_window": 7, "layer_types": ["full_attention"] * 4},
    "ministral": {**MINISTRAL, "sliding_window": 7},
    "ministral, layer_types": {**MINISTRAL, "sliding_window": 7, "layer_types": TYPES},
    "ministral, no window": {**MINISTRAL, "sliding_window": None},
    "qwen3, layer_types": {**QWEN3, "sliding_window": 7, "use_sliding_window": True, "layer_types": TYPES},
    "empty rope_scaling": {**LLAMA, "rope_scaling": {}, "rope_parameters": LINEAR},
    "rope_scaling null": {**LLAMA, "rope_scaling": None, "rope_parameters": LINEAR},
    "rope_scaling wins": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": LINEAR,
                          "rope_theta": 2e4},
    "both empty": {**LLAMA, "rope_scaling": {}, "rope_parameters": {}, "rope_theta": 3e4},
    "Infinity and NaN": {**LLAMA, "rope_theta": 2e4, "router_jitter": math.nan, "time_step_limit": [0.0, math.inf],
                         "floor": -math.inf},
}


def write_files(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def load_tokenizer(files, base):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, {"tokenizer.json": base, **files})
        return PreTrainedTokenizerFast.from_pretrained(folder)


def windows(config):
    types = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None) or 0
    n = config.num_hidden_layers
    return [window if types is None or types[i] == "sliding_attention" else 0 for i in range(n)]


def config_row(config):
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), {"config.json": config})
        read = AutoConfig.from_pretrained(name)
    rope = read.rope_parameters
    return {"config": json.dumps(config), "class": type(read).__name__, "windows": windows(read),
            "rope_theta": rope["rope_theta"], "rope_type": rope["rope_type"], "factor": rope.get("factor", 1.0)}


def main():
    full = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None}
    base = {**full, **json.loads((TOKENIZERS / "qwen2.json").read_text(encoding="utf-8"))}
    tokens = {}
    for name, files in token_cases(base).items():
        tokenizer = load_tokenizer(files, base)
        rows = [tokenizer(text, add_special_tokens=False).input_ids for text in TEXTS]
        tokens[name] = {"files": files, "ids": rows, "n": len(tokenizer)}
    templates = {}
    for name, files in TEMPLATE_CASES.items():
        tokenizer = load_tokenizer(files, base)
        try:
            text = tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}], tokenize=False)
            templates[name] = {"files": files, "text": text}
        except ValueError as error:
            templates[name] = {"files": files, "error": str(error)}
    configs = {name: config_row(config) for name, config in CONFIG_CASES.items()}
    golden = {"family": "qwen2", "texts": TEXTS, "tokens": tokens, "templates": templates, "configs": configs}
    OUT.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")
    print(f"{OUT.name}: {len(tokens)} tokenizers, {len(templates)} templates, {len(configs)} configurations")


if __name__ == "__main__":
    main()
