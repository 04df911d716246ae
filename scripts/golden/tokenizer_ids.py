#!/usr/bin/env python3
"""Reference ids for the tokenizer tests, from the library `tokenizers` and from llama.cpp.

    scripts/golden/python scripts/golden/tokenizer_ids.py

Writes tests/data/checkpoint/tokenizers/:
  <family>.json   small BPE tokenizers, trained here with the published configuration of each family of models (the trainer breaks
                  ties at random, so each run gives slightly different files)
  cases.json      texts and their ids from `tokenizers`, also after changes (JSON merge patches) to those files
  real.json       the same for vocabularies of real size: the configuration of a family with the vocabulary of a GGUF file from
                  llama.cpp; the test combines the two files in the same way
  default.json    ids of the default model from llama.cpp, through llama_tokens.c
"""
import json
import pydoc_data.topics
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Regex

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/checkpoint/tokenizers"

LLAMA3_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")

TEXTS = {
    "empty": "",
    "plain": "The quick brown fox jumps over the lazy dog, doesn't it? I'M SURE IT'LL, they've; we're: he'd.",
    "case of contractions": "IT'S it'S 'S 'K O'REILLY 'll'LL'Ll 'tis",
    "cjk": "中文测试，日本語のテキスト。한국어 텍스트! 𠀀𪜀 々〆ヶ",
    "emoji": "🦙 👩‍👩‍👧‍👦 👍🏽 🇨🇭🇫🇷 ❤️ ☃ 1️⃣",
    "combining": "e\u0301 A\u030a n\u0303 o\u0302\u0301 \u1100\u1161\u11a8 q\u0307\u0323 \u0344 \u212b \u2126",
    "line ends": "a\r\nb\rc\nd\n\ne\r\n\r\nf\r\r\ng \r\n h\n \n i\n",
    "only line ends": "\r\n\r\n\n\r",
    "tabs": "\tindented\t\ttwice \t mixed\t \t\n\t",
    "spaces": "one  two   three    four" + " " * 17 + "end  ",
    "only spaces": "     ",
    "one space": " ",
    "digits": "7 42 123 1234 1234567890123456789012345678901234567890 3.14159 1,000,000 ٣٤٥ Ⅻ ½ ² 零一二",
    "special": ("<|im_start|>user\nhello<|im_end|> <s>[INST] x </s><|begin_of_text|><|endoftext|><unk> <|nothing|> "
                "<0x41>"),
    "special without spaces": "a<|im_end|>b <|im_end|> c<|im_end|>",
    "partly special": "<|im_star t|> <|im_start| <<|im_start|>> <s <s>s>",
    "rtl": "שלום עולם مرحبا بالعالم ‏(test)‎ نص",
    "no-break spaces": "a\u00a0b\u202fc\u2009d\u3000e\u200bf\ufeffg\u180eh\u0085i\u2028j\u2029k",
    "null bytes": "a\0b\0\0c \x01\x02\x7f\x1b[0m",
    "apostrophes": "'s ''s 's's it's ’s don’t 'tis `quoted' \"x\"",
    "punctuation": "!?... --- ((())) #$%^&*_+={}[]|\\/~`<>;: €£¥ «» „“ … — –",
    "underscores": "▁a ▁▁b _c ▁ a▁b",
    "code": "def f(x):\n    if x > 0:\n        return x ** 2  # ok\n\treturn None\n\n\nclass A:\r\n    pass\n",
    "json": '{"a": [1, 2.50, -3e10], "b": null, "κλειδί": "значение"}',
    "thai and hindi": "ภาษาไทย हिन्दी में லொறி ქართული",
    "long word": "a" * 300 + "ab" * 200 + "é" * 50 + "中" * 50,
    "long spaces": " " * 200 + "x" + "\n" * 100 + "\t" * 70 + "y",
    "url": "https://example.org/a/b?c=d&e=%20f#g user@example.org",
    "case": "camelCase PascalCase SNAKE_CASE kebab-case ǅ ß ẞ İi ſ",
    "astral": "𝒜𝓁𝓅𝒽𝒶 𝟙𝟚𝟛 🀄 \U0010ffff \ue000 \uffff",
}


def random_texts(count):
    rng = random.Random(7)
    parts = ["a", "b", "The", "ing", "'s", "'", " ", "  ", "\n", "\r\n", "\r", "\t", "1", "23", "4567", ".", ",", "!?",
             "é", "e\u0301", "中", "文", "🦙", "\u200d", "👩", "\u00a0", "▁", "<s>", "</s>", "<|im_start|>", "<|im_end|>",
             "<", "|", ">", "\0", "ñ", "ß", "Ω", "ا", "ש", "\u0301", "x" * 9, "-", "_", "(", ")", "\u2028", "½"]
    return {f"random {i}": "".join(rng.choices(parts, k=rng.randrange(1, 40))) for i in range(count)}


def corpus():
    yield from (text for _, text in sorted(pydoc_data.topics.topics.items()))
    for text in TEXTS.values():
        if "random" not in text:
            yield from [text] * 3


def special(*contents):
    return [AddedToken(content, special=True, normalized=False) for content in contents]


def train_byte_level(pre_tokenizer, specials, size=620, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens(special(*specials))
    return json.loads(tokenizer.to_str())


def byte_level_families():
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    bytes_alone = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    gpt2 = train_byte_level(byte_level, ["<|endoftext|>"])
    gpt2["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}

    llama3 = train_byte_level(
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3_REGEX), "isolated"), bytes_alone]),
        ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    llama3["model"]["ignore_merges"] = True
    bos = next(t["id"] for t in llama3["added_tokens"] if t["content"] == "<|begin_of_text|>")
    llama3["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        {"type": "TemplateProcessing",
         "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                  {"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
         "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [bos],
                                                  "tokens": ["<|begin_of_text|>"]}}}]}

    qwen2 = train_byte_level(
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2_REGEX), "isolated"), bytes_alone]),
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], normalizer=normalizers.NFC())

    smollm2 = train_byte_level(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level]),
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return {"gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "smollm2": smollm2}


def byte_fallback_families():
    """Trains tokenizers like Llama 2's and Mistral's: SentencePiece vocabularies that begin with <unk>, <s>, </s> and 256 bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    first = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=640, special_tokens=first, limit_alphabet=110, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    base = json.loads(tokenizer.to_str())
    base["added_tokens"] = [token for token in base["added_tokens"] if token["id"] < 3]
    template = {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                         {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    llama2 = dict(base)
    llama2["post_processor"] = template
    llama2["pre_tokenizer"] = None
    llama2["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    llama2["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return {"llama2": llama2}


# Changes to the file of a family, as JSON merge patches.
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
PATCHES = {
    "mistral v0.3: Metaspace, first": ("llama2", {
        "normalizer": None, "pre_tokenizer": METASPACE, "decoder": METASPACE}),
    "Metaspace, always, split": ("llama2", {
        "normalizer": None, "pre_tokenizer": {**METASPACE, "prepend_scheme": "always", "split": True},
        "decoder": {**METASPACE, "prepend_scheme": "always", "split": True}}),
    "Metaspace, never, split": ("llama2", {
        "normalizer": None, "pre_tokenizer": {**METASPACE, "prepend_scheme": "never", "split": True},
        "decoder": {**METASPACE, "prepend_scheme": "never", "split": True}}),
    "unknown tokens apart, no byte fallback": ("llama2", {"model": {"byte_fallback": False, "fuse_unk": False}}),
    "unknown tokens fused, no byte fallback": ("llama2", {"model": {"byte_fallback": False, "fuse_unk": True}}),
    "no unknown token, no byte fallback": ("llama2", {"model": {"byte_fallback": False, "unk_token": None}}),
    "no decoder": ("gpt2", {"decoder": None}),
    "prefix space": ("gpt2", {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True,
                                                "trim_offsets": True}}),
    "lower case, stripped": ("gpt2", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Lowercase"}]}}),
    "NFKC": ("qwen2", {"normalizer": {"type": "NFKC"}}),
    "NFD": ("qwen2", {"normalizer": {"type": "NFD"}}),
    "NFKD": ("qwen2", {"normalizer": {"type": "NFKD"}}),
    "replacing by a pattern": ("gpt2", {
        "normalizer": {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}}),
    "digits in runs": ("smollm2", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": True}]}}),
    "word characters": ("gpt2", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"\w+|[^\w\s]+"}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}]}}),
    **{f"split, {behavior}, invert {invert}": ("gpt2", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"String": "a"} if invert else {"Regex": r"\s"}, "behavior": behavior,
         "invert": invert},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}]}})
       for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
       for invert in [False, True]},
}


def added_token_patch(base, **options):
    """Returns a patch with the family's special tokens and three more with the given options."""
    assert "fox" not in base["model"]["vocab"]
    highest = max(max(base["model"]["vocab"].values()), max(t["id"] for t in base["added_tokens"]))
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    more = [{"id": highest + 1 + i, "content": content, **plain, **options}
            for i, content in enumerate(["fox", "<|nothing|>", "  ", "e\u0301"])]
    return {"added_tokens": base["added_tokens"] + more}


def merge_patch(target, patch):
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge_patch(target.get(key), value)
    return target


FIELDS = ["normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding", "added_tokens"]


def load(description):
    # The library needs every field, but the test's merge patch omits fields that are null.
    full = {**{field: None for field in FIELDS}, "version": "1.0", **description}
    full["model"].setdefault("unk_token", None)
    return Tokenizer.from_str(json.dumps(full))


def outputs(tokenizer, texts, add_special, parse_special, decode=True):
    """Returns each text's ids, and also the decoded text if decoding changes the text."""
    tokenizer.encode_special_tokens = not parse_special
    rows = {}
    for name, text in texts.items():
        ids = tokenizer.encode(text, add_special_tokens=add_special).ids
        rows[name] = {"ids": ids}
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        plain = tokenizer.decode(ids, skip_special_tokens=True)
        if decode and decoded != text:
            rows[name]["decoded"] = decoded
        if decode and plain != decoded:
            rows[name]["decoded_plain"] = plain
    return rows


def write(name, value):
    # One case per line, so that a diff shows the changed cases.
    def lines(node, depth):
        if isinstance(node, dict) and depth > 0:
            inner = ",\n".join(json.dumps(k, ensure_ascii=True) + ": " + lines(v, depth - 1) for k, v in node.items())
            return "{\n" + inner + "\n}"
        return json.dumps(node, ensure_ascii=True, separators=(",", ":"))

    (OUT / name).write_text(lines(value, 3) + "\n", encoding="utf-8")
    print(f"{name}: {(OUT / name).stat().st_size / 1024:.0f} KiB")


def small_cases():
    families = {**byte_level_families(), **byte_fallback_families()}
    for name, description in families.items():
        description.pop("truncation", None)
        description.pop("padding", None)
        text = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
        (OUT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{name}.json: {len(text) / 1024:.0f} KiB")

    changes = dict(PATCHES)
    for flag in ["single_word", "lstrip", "rstrip", "normalized", "special"]:
        changes[f"added tokens, {flag}"] = ("qwen2", added_token_patch(families["qwen2"], **{flag: True}))
    changes["added tokens, normalized, byte fallback"] = (
        "llama2", added_token_patch(families["llama2"], normalized=True))

    few = {name: TEXTS[name] for name in ["plain", "cjk", "combining", "line ends", "spaces", "only spaces", "digits",
                                          "special", "no-break spaces", "null bytes", "underscores", "case"]}
    few.update(random_texts(8))
    all_texts = {**TEXTS, **random_texts(40)}
    cases = {}
    for name, description in families.items():
        cases[name] = {"family": name, "add_special": True, "parse_special": True,
                       "rows": outputs(load(description), all_texts, True, True)}
        cases[f"{name}, special tokens as text"] = {
            "family": name, "add_special": False, "parse_special": False,
            "rows": outputs(load(description), {k: all_texts[k] for k in all_texts if "special" in k}, False, False)}
    for name, (family, patch) in changes.items():
        description = merge_patch(families[family], patch)
        cases[name] = {"family": family, "patch": patch, "add_special": True, "parse_special": True,
                       "rows": outputs(load(description), few, True, True, decode="decoder" in patch)}
        if "decoder" not in patch:
            cases[name]["ids_only"] = True
    write("cases.json", {"texts": all_texts, "cases": cases})


def gguf_vocabulary(path):
    """Returns the fields of tokenizer.json from a GGUF file. The test reads them in the same way."""
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    control = [i for i, kind in enumerate(kinds) if kind == 3]
    return {
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": fields["tokenizer.ggml.merges"].contents()},
        "added_tokens": [{"id": i, "content": tokens[i], "special": True, "normalized": False, "single_word": False,
                          "lstrip": False, "rstrip": False} for i in control],
    }


def real_cases(llama_source):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}

    def split(regex):
        return {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False},
            {**byte_level, "use_regex": False}]}

    families = {
        "gpt-2": {"pre_tokenizer": {**byte_level, "use_regex": True}},
        "llama-bpe": {"pre_tokenizer": split(LLAMA3_REGEX), "model": {"ignore_merges": True}},
        "qwen2": {"pre_tokenizer": split(QWEN2_REGEX), "normalizer": {"type": "NFC"}},
    }
    cases = {}
    for name, patch in families.items():
        patch["decoder"] = {**byte_level, "use_regex": True}
        description = merge_patch(gguf_vocabulary(llama_source / f"models/ggml-vocab-{name}.gguf"), patch)
        cases[name] = {"patch": patch, "rows": outputs(load(description), TEXTS, False, True)}
    write("real.json", {"texts": TEXTS, "cases": cases})


def default_model(llama, model):
    """Returns the ids of the default model from llama.cpp, through a C program."""
    texts = {**TEXTS, **random_texts(40)}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "llama_tokens"
        libraries = [str(llama / "lib" / f"lib{name}.a") for name in ["llama", "ggml", "ggml-cpu", "ggml-base"]]
        subprocess.run(["cc", "-O1", "-I", str(llama / "include"), str(ROOT / "scripts/golden/llama_tokens.c"),
                        *libraries, "-lstdc++", "-lgomp", "-lpthread", "-ldl", "-lm", "-o", str(program)], check=True)
        cases = {}
        for flag, parse in [("1", True), ("0", False)]:
            rows = {}
            for name, text in texts.items():
                done = subprocess.run([str(program), str(model), "1", flag], input=text.encode(), check=True,
                                      capture_output=True)
                rows[name] = {"ids": [int(word) for word in done.stdout.split()]}
            cases[f"special tokens {'parsed' if parse else 'as text'}"] = {
                "add_special": True, "parse_special": parse, "rows": rows}
    write("default.json", {"texts": texts, "cases": cases})


def fetched(thing):
    done = subprocess.run([sys.executable, str(ROOT / "cmake/fetch.py"), thing], check=True, capture_output=True,
                          text=True)
    return Path(done.stdout.strip())


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    small_cases()
    real_cases(fetched("llama-source"))
    default_model(fetched("llama"), fetched("model"))


if __name__ == "__main__":
    main()
