#!/usr/bin/env python3
"""Makes what the fuzzers start from: small valid files of each kind.

usage: make_seeds.py FOLDER [TEMPLATES]

Writes FOLDER/<reader>/… and, for the readers of JSON and templates, FOLDER/<reader>.dict with the words of their files.
TEMPLATES is a folder with chat templates (llama.cpp's models/templates); without it there are few.
"""

import io
import json
import pathlib
import random
import re
import struct
import sys
import zipfile

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
MODELS = DATA / "models"


def text(value):
    return struct.pack("<Q", len(value)) + value


def gguf():
    """A model of one layer with a vocabulary of a few tokens, in both kinds."""
    for kind in (b"gpt2", b"llama"):
        tokens = [b"<unk>", b"<s>", b"</s>", b"a", b"b", b"ab"] + [b"<0x%02X>" % byte for byte in range(256)]
        keys = []

        def key(name, number, value):
            keys.append(text(name) + struct.pack("<I", number) + value)

        def array(name, number, values):
            key(name, 9, struct.pack("<IQ", number, len(values)) + b"".join(values))

        key(b"general.architecture", 8, text(b"llama"))
        for name, value in ((b"block_count", 1), (b"context_length", 64), (b"embedding_length", 8),
                            (b"feed_forward_length", 8), (b"attention.head_count", 2), (b"attention.head_count_kv", 1)):
            key(b"llama." + name, 4, struct.pack("<I", value))
        key(b"llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5))
        key(b"tokenizer.ggml.model", 8, text(kind))
        array(b"tokenizer.ggml.tokens", 8, [text(token) for token in tokens])
        array(b"tokenizer.ggml.scores", 6, [struct.pack("<f", -i) for i in range(len(tokens))])
        array(b"tokenizer.ggml.token_type", 5, [struct.pack("<i", 3 if i < 3 else 6 if i > 5 else 1)
                                                for i in range(len(tokens))])
        array(b"tokenizer.ggml.merges", 8, [text(b"a b")])
        key(b"tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1))
        key(b"tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2))
        key(b"tokenizer.chat_template", 8, text(b"{{ bos_token }}{{ messages[0].content }}"))
        shapes = {b"token_embd.weight": (8, len(tokens)), b"output_norm.weight": (8,), b"blk.0.attn_norm.weight": (8,),
                  b"blk.0.ffn_norm.weight": (8,), b"blk.0.attn_q.weight": (8, 8), b"blk.0.attn_k.weight": (8, 4),
                  b"blk.0.attn_v.weight": (8, 4), b"blk.0.attn_output.weight": (8, 8), b"blk.0.ffn_gate.weight": (8, 8),
                  b"blk.0.ffn_up.weight": (8, 8), b"blk.0.ffn_down.weight": (8, 8)}
        infos, body = b"", b""
        for name, shape in shapes.items():
            infos += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
            infos += struct.pack("<IQ", 0, len(body))
            count = 1
            for extent in shape:
                count *= extent
            body += bytes(-(-4 * count // 32) * 32)
        head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys)) + b"".join(keys) + infos
        yield kind.decode(), head + bytes(-len(head) % 32) + body
    yield "quantised", (MODELS / "gguf-qwen3-q4_0" / "model.gguf").read_bytes()


def safetensors():
    for dtype, size in (("F32", 4), ("F16", 2), ("BF16", 2), ("I64", 8)):
        header = json.dumps({"__metadata__": {"format": "pt"},
                             "a": {"dtype": dtype, "shape": [2, 3], "data_offsets": [0, 6 * size]},
                             "b": {"dtype": "F32", "shape": [], "data_offsets": [6 * size, 6 * size + 4]}}).encode()
        yield dtype, struct.pack("<Q", len(header)) + header + bytes(range(6 * size + 4))


def small_tokenizers():
    bpe = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<s>": 3, "Ġ": 4, "▁": 5, "l": 6, "ll": 7}, "merges": ["a b", ["l", "l"]]}
    yield {"model": bpe}
    yield {"model": {**bpe, "byte_fallback": True, "unk_token": "a", "fuse_unk": True, "ignore_merges": True},
           "normalizer": {"type": "Sequence", "normalizers": [
               {"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "▁"}, {"type": "Strip"},
               {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
           "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"},
           "decoder": {"type": "Sequence", "decoders": [
               {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
               {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
           "post_processor": {"type": "TemplateProcessing",
                              "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                              "special_tokens": {"<s>": {"id": "<s>", "ids": [3]}}},
           "added_tokens": [{"id": 3, "content": "<s>", "special": True, "lstrip": True, "normalized": False},
                            {"id": 8, "content": "aa", "single_word": True, "rstrip": True}]}
    yield {"model": bpe,
           "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
               {"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|\\p{L}+|[^\\w]"}, "behavior": "MergedWithNext", "invert": True},
               {"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": True}]},
           "decoder": {"type": "ByteLevel"}}
    surround = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}],
                "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1]}}}
    yield {"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "[CLS]": 1, "h": 2, "##e": 3, "##llo": 4}, "unk_token": "[UNK]"},
           "normalizer": {"type": "BertNormalizer", "strip_accents": True}, "pre_tokenizer": {"type": "BertPreTokenizer"},
           "post_processor": surround}
    yield {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁", -1.5], ["a", -2.0], ["ll", -3.0]]},
           "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace"}]},
           "post_processor": surround}


def tokenizer_json():
    for i, tokenizer in enumerate(small_tokenizers()):
        yield str(i), json.dumps(tokenizer, ensure_ascii=False).encode()
    yield "model", (MODELS / "smollm2-tied" / "tokenizer.json").read_bytes()


def named(name):
    for folder in sorted(MODELS.glob("*")) + sorted((DATA / "classifiers").glob("*")):
        if (folder / name).is_file():
            yield folder.name, (folder / name).read_bytes()


def hf_config():
    yield from named("config.json")


def generation_config():
    yield from named("generation_config.json")


def tokenizer_config():
    yield from named("tokenizer_config.json")
    yield "templates", json.dumps({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": True,
                                   "chat_template": [{"name": "default", "template": "{{ bos_token }}"}]}).encode()


def chat_template(templates=None):
    small = ["{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{{ eos_token }}{% endfor %}",
             "{%- if messages[0].role == 'system' %}{% set ns = namespace(x=1, l=[]) %}{% endif -%}{{ ns.x + 1 }}",
             "{% macro f(a, b='c') %}{{ a ~ b | upper }}{% endmacro %}{{ f(1) }}{{ f('x', b=[1, 2][0]) }}",
             "{{ raise_exception('no') if messages | length > 5 else strftime_now('%Y') }}{# note #}",
             "{% for i in range(3) %}{{ loop.index }}{% if loop.last %}{% break %}{% endif %}{% else %}x{% endfor %}",
             "{{ {'a': [1, none, true]} | tojson(indent=2) }}{{ 'a-b'.split('-')[-1].startswith('b') }}{{ 7 // 2 % 3 }}",
             "{% set x %}block{% endset %}{% filter lower %}{{ x }}{% endfilter %}{% call f() %}y{% endcall %}"]
    for i, source in enumerate(small):
        yield str(i), source.encode()
    for path in sorted(pathlib.Path(templates).glob("*.jinja")) if templates else []:
        if path.stat().st_size < 6000:
            yield path.stem, path.read_bytes()


def trace():
    for path in sorted((DATA / "trace").glob("*.h5")):
        yield path.stem, path.read_bytes()


def trace_edits():
    for seed in range(40):
        yield str(seed), random.Random(seed).randbytes(30 + 5 * seed)


def workspace():
    state = {"kvscope_workspace": 1, "session": {"traces": [{"path": "t.h5", "prompt": 0, "hidden": [[0, 1]]}]}}
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", kind) as archive:
            archive.writestr("workspace.json", json.dumps(state))
            archive.writestr("traces/t.h5", b"no trace" * 20)
            archive.writestr("traces/t.h5.notes.json", "{}")
        yield str(kind), packed.getvalue()


def notes():
    yield "all", json.dumps({
        "kvscope_notes": 1, "pins": {"0": [1, 2]}, "notes": [{"prompt": 0, "tokens": [1, 2], "text": "here"}],
        "further_answers": [{"prompt": 0, "run": "full", "run_number": 0, "question": "Who?", "answer": "She"}],
        "what_ifs": [{"prompt": 0, "run": "snapkv", "run_number": 1, "parameters": {"window": 4}, "budget": 8}],
        "view": {"prompt": 0, "hidden": [[0, 1, "full"]], "mark": "x", "a": [0, 0, "full"], "selection": {
            "run": [0, 0, "full"], "layer": 1, "kv_head": 0, "query_head": 0, "tokens": [1, 2], "step": 0}}}).encode()


def importance():
    yield "good", json.dumps({f"{layer}-{head}": [0.5, 1] for layer in range(2) for head in range(2)}).encode()


def part_folder():
    yield "good", json.dumps({"format": "kvscope-trace", "version": "1.0", "generator": "kvscope", "created_utc":
                              "2026-01-01T00:00:00Z", "recipe_json": "{\"n_new\": 4}"}).encode()


def command_line():
    yield "lists", b"0,5,10-12\n3-1\n64,128\n64-512*2\n64-256+64\n0.1-0.5+0.1\n20%\n1e-3"
    yield "policies", (b"snapkv:window=16,kernel=5\naperturekv:lambda=0.3,raba\npyramidkv:beta=20\nlaq:lookahead=4\n"
                       b"dapq:content=fixed-phrase,phrase=a b\nllmlingua-2\nheadkv:importance=x.json\n"
                       b"{\"lambda\": 0.1, \"window\": \"auto\", \"raba\": true, \"x\": [1]}")


READERS = [gguf, safetensors, tokenizer_json, hf_config, generation_config, tokenizer_config, chat_template, trace,
           trace_edits, workspace, notes, importance, part_folder, command_line]
WITH_WORDS = {"tokenizer_json", "hf_config", "generation_config", "tokenizer_config", "chat_template", "notes",
              "part_folder", "command_line"}


def words_of(contents):
    words = set()
    for content in contents:
        words.update(re.findall(rb"[A-Za-z_][A-Za-z0-9_.-]{1,30}", content))
    return sorted(words)[:600]


def main():
    folder = pathlib.Path(sys.argv[1])
    for reader in READERS:
        name = reader.__name__
        seeds = list(reader(*sys.argv[2:3]) if reader is chat_template else reader())
        (folder / name).mkdir(parents=True, exist_ok=True)
        for seed, content in seeds:
            (folder / name / f"seed-{seed}").write_bytes(content)
        if name in WITH_WORDS:
            words = words_of(content for _, content in seeds)
            (folder / f"{name}.dict").write_text("".join(f'"{word.decode()}"\n' for word in words))


if __name__ == "__main__":
    main()
