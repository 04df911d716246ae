"""Tiny token classifiers of the kinds that LLMLingua-2 uses, with reference results for some texts.

    scripts/golden/python scripts/golden/token_classifiers.py

writes tests/data/classifiers/:
  bert/, xlm-roberta/   Hugging Face directories with random weights: BertForTokenClassification with a WordPiece
                        tokenizer, XLMRobertaForTokenClassification with a Unigram tokenizer, whose normalizer is a
                        character map compiled by SentencePiece from the rules below
  tokens.json           texts and their tokens from the library `tokenizers` (ids, and the bytes of the text for each), for these
                        two and for other settings of their stages (JSON merge patches)
  logits.json           texts and transformers' logits, special tokens included
  prompts.json          prompts as tokens of tests/data/models/llama3-gqa-sharded and in pieces of random length: windows,
                        words, the probability of each token, and the kept tokens, computed here

The tokenizers are trained here. The trainers break ties at random, so each run gives slightly different files.
"""
import io
import json
import pathlib
import random
import re
import shutil
import string
import tempfile

import sentencepiece
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForTokenClassification,
    XLMRobertaConfig,
    XLMRobertaForTokenClassification,
)

from tiny_models import MODELS, REPOSITORY, SPECIAL, byte_alphabet, floats
from tokenizer_ids import TEXTS, corpus, merge_patch, random_texts

OUT = REPOSITORY / "tests" / "data" / "classifiers"
POSITIONS = 64

# Normalization rules of the Unigram tokenizer: full-width letters, ligatures, composed letters, white space, removals.
RULES = {"ﬁ": "fi", "ﬂ": "fl", "…": "...", "½": "1⁄2", "²": "2", "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ",
         "\u3000": " ", "\u2009": " ", "e\u0301": "é", "A\u030a": "Å", "n\u0303": "ñ", "o\u0302\u0301": "ố", "Ⅻ": "XII",
         "\u212b": "Å", "\u200b": "", "\u00ad": ""}
RULES.update({chr(0xFF01 + i): chr(0x21 + i) for i in range(94)})

STORIES = {
    "english": ("The quick brown fox jumps over the lazy dog. It was 1984, and nobody knew. The key of the vault is "
                "4711-X; keep it.\nA second line follows, without much to say. Then a third one comes along and goes "
                "on, for a while, about nothing in particular: lamps, ropes, a kettle. The end"),
    "no sentence ends": ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
                         "sixteen seventeen eighteen nineteen twenty and so on and on and on without any stop " * 2),
    "mixed": "Zürich, 2024: naïve café — ﬁne “quotes” … (42%)!? 中文测试,日本語。 한국어 🦙 Ａｂｃ e\u0301te\u0301 x² ½\n\n\tend. a b",
}


def merged_texts():
    return {**TEXTS, **random_texts(20), **STORIES}


# ---------------------------------------------------------------- tokenizers

def bert_tokenizer():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None,
                                                      lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=420, limit_alphabet=120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(list(STORIES.values()) * 20 + list(corpus())[:40], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return json.loads(tokenizer.to_str())


def xlm_roberta_tokenizer():
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "rules.tsv"
        rules.write_text("".join(" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new) + "\n"
                                 for old, new in RULES.items()), encoding="utf-8")
        model = io.BytesIO()
        sentences = [line for text in list(STORIES.values()) * 20 + list(corpus())[:40] for line in text.splitlines() if line]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=model, vocab_size=380, character_coverage=0.995,
            model_type="unigram", normalization_rule_tsv=str(rules), minloglevel=2)
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    vocabulary = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + pieces[3:] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return json.loads(tokenizer.to_str())


PATCHES = {
    "lower case": ("bert", {"normalizer": {"lowercase": True}}),
    "accents stay in lower case": ("bert", {"normalizer": {"lowercase": True, "strip_accents": False}}),
    "no cleaning": ("bert", {"normalizer": {"clean_text": False, "handle_chinese_chars": False}}),
    "short words": ("bert", {"model": {"max_input_chars_per_word": 4}}),
    "newer converter": ("xlm-roberta", {
        "normalizer": {"type": "Sequence", "normalizers": [
            None, {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}}),
}


def load(description):
    tokenizer = Tokenizer.from_str(json.dumps(description))
    tokenizer.encode_special_tokens = True  # special tokens in a user's text are plain text
    return tokenizer


def byte_offsets(text, offsets):
    """Converts pairs of character offsets to byte offsets."""
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[begin], at[end]] for begin, end in offsets]


def encoded(tokenizer, text):
    out = tokenizer.encode(text, add_special_tokens=False)
    return {"ids": out.ids, "offsets": byte_offsets(text, out.offsets)}


# ---------------------------------------------------------------- models

def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "LayerNorm.weight" in name:
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.2 * noise)
            elif "embeddings" in name:
                parameter.copy_(0.5 * noise)
            else:
                parameter.copy_(1.5 / parameter.shape[-1] ** 0.5 * noise)
    return model.eval()


def write_classifier(name, model, description):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    (folder / "tokenizer.json").write_text(json.dumps(description, ensure_ascii=False, separators=(",", ":")) + "\n",
                                           encoding="utf-8")


# ---------------------------------------------------------------- LLMLingua-2, as described in its paper

class Reference:
    def __init__(self, name, model, description):
        self.name, self.model, self.tokenizer = name, model, load(description)
        self.first, self.last = (2, 3) if name == "bert" else (0, 2)
        self.room = POSITIONS - 2

    def begins_word(self, token, is_first):
        if self.name == "bert":
            return is_first or not token.startswith("##")
        return is_first or token.startswith("▁") or token in string.punctuation

    def windows(self, spelt):
        """Splits into windows of at most `room` tokens. A window ends at its last sentence end, or after its last whole word."""
        begin, out = 0, []
        while len(spelt) - begin > self.room:
            end = begin + self.room
            stops = [i + 1 for i in range(begin, end) if spelt[i] in (".", "\n")]
            words = [i for i in range(begin + 1, end + 1) if self.begins_word(spelt[i], False)]
            cut = stops[-1] if stops else words[-1] if words else end
            out.append((begin, cut))
            begin = cut
        return out + [(begin, len(spelt))] if begin < len(spelt) else out

    @torch.no_grad()
    def logits(self, ids):
        return self.model(torch.tensor([[self.first, *ids, self.last]])).logits[0]

    def words(self, text, token_to_word="mean", force_tokens=(), force_digits=False):
        """Returns (begin byte, end byte, probability) of each word, and the windows."""
        out = self.tokenizer.encode(text, add_special_tokens=False)
        offsets = byte_offsets(text, out.offsets)
        windows = self.windows(out.tokens)
        words = []
        for begin, end in windows:
            keep = torch.softmax(self.logits(out.ids[begin:end]).double(), -1)[1:-1, 1].tolist()
            for i in range(begin, end):
                p = keep[i - begin]
                if force_digits and re.search(r"\d", text.encode()[offsets[i][0]:offsets[i][1]].decode()):
                    p = 1.0
                if self.begins_word(out.tokens[i], i == begin):
                    words.append([*offsets[i], [p]])
                else:
                    words[-1][1] = max(words[-1][1], offsets[i][1])
                    words[-1][2].append(p)
        return [(b, e, p[0] if token_to_word == "first" else sum(p) / len(p)) for b, e, p in words], windows

    def of_spans(self, text, spans, force_tokens=(), **options):
        """Returns the probability of each span: the mean over its bytes that are in words, or 0 if there are none."""
        words, windows = self.words(text, **options)
        of_byte = [None] * len(text.encode())
        for begin, end, p in words:
            for i in range(begin, end):
                of_byte[i] = p
        for forced in force_tokens:
            pattern = (r"(?<!\w)" if re.match(r"\w", forced[0]) else "") + re.escape(forced) + (
                r"(?!\w)" if re.match(r"\w", forced[-1]) else "")
            for match in re.finditer(pattern, text):
                begin, end = byte_offsets(text, [match.span()])[0]
                of_byte[begin:end] = [1.0] * (end - begin)
        for i, byte in enumerate(text.encode()[:-1]):  # a space belongs to the next word
            if byte == 0x20 and of_byte[i] is None and text.encode()[i + 1] != 0x20:
                of_byte[i] = of_byte[i + 1]
        means = []
        for begin, end in spans:
            known = [p for p in of_byte[begin:end] if p is not None]
            means.append(sum(known) / len(known) if known else 0.0)
        return means, windows


def kept(probabilities, budget):
    """Returns the best positions. Ties go to the earlier position. Positions without a probability are always kept."""
    forced = [i for i, p in enumerate(probabilities) if p is None]
    free = sorted((-p, i) for i, p in enumerate(probabilities) if p is not None)
    return sorted(forced + [i for _, i in free[:budget - len(forced)]])


SETTINGS = [{}, {"token_to_word": "first"}, {"force_digits": True},
            {"force_tokens": ["\n", ".", "and", "key of"], "force_digits": True}]
QUESTION = "What is the key?"


def prompts(references, model_tokenizer):
    byte_of = {c: b for b, c in enumerate(byte_alphabet())}
    cases = []
    for reference in references:
        for name, text in STORIES.items():
            rng = random.Random(name)
            data, cuts = text.encode(), [0]
            while cuts[-1] < len(data):
                cuts.append(min(len(data), cuts[-1] + rng.randrange(1, 9)))
            spans = list(zip(cuts, cuts[1:]))
            for settings in SETTINGS:
                means, windows = reference.of_spans(text, spans, **settings)
                cases.append({"classifier": reference.name, "text": text, "settings": settings, "windows": windows,
                              "ends": cuts[1:], "probabilities": means})
    runs = []
    context = STORIES["english"]
    for reference in references:
        head, tail = f"{SPECIAL[1]}user\n", f"\n\n{QUESTION}{SPECIAL[2]}\n{SPECIAL[1]}assistant\n"
        tokens = []  # (id, bytes): the text up to the question and the rest, tokenized separately
        for part in (head + context + "\n\n", tail[2:]):
            for i in model_tokenizer.encode(part, add_special_tokens=False).ids:
                spelt = model_tokenizer.id_to_token(i)
                tokens.append((i, spelt.encode() if spelt in SPECIAL else bytes(byte_of[c] for c in spelt)))
        begin, end = len(head.encode()), len((head + context).encode())
        at, spans = 0, []
        for _, piece in tokens:
            spans.append((at, at + len(piece)))
            at += len(piece)
        inside = [i for i, (b, e) in enumerate(spans) if b >= begin and e <= end]
        means, _ = reference.of_spans(context, [(spans[i][0] - begin, spans[i][1] - begin) for i in inside])
        probabilities = [None] * len(spans)
        for i, p in zip(inside, means):
            probabilities[i] = p
        runs.append({"classifier": reference.name, "context": context, "question": QUESTION,
                     "ids": [i for i, _ in tokens], "probabilities": probabilities,
                     "kept": {str(b): kept(probabilities, b) for b in (120, 160, 240)}})
    return {"cases": cases, "runs": runs}


def nine_digits(node):
    if isinstance(node, float):
        return float(f"{node:.9g}")
    if isinstance(node, dict):
        return {k: nine_digits(v) for k, v in node.items()}
    return [nine_digits(v) for v in node] if isinstance(node, (list, tuple)) else node


def write(name, value):
    path = OUT / name
    path.write_text(json.dumps(nine_digits(value), separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{name}: {path.stat().st_size / 1024:.0f} KiB")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    descriptions = {"bert": bert_tokenizer(), "xlm-roberta": xlm_roberta_tokenizer()}
    sizes = {name: Tokenizer.from_str(json.dumps(d)).get_vocab_size() for name, d in descriptions.items()}
    common = dict(num_hidden_layers=2, num_labels=2)
    built = {
        "bert": randomise(BertForTokenClassification(BertConfig(
            **common, vocab_size=sizes["bert"], hidden_size=32, num_attention_heads=4, intermediate_size=40,
            max_position_embeddings=POSITIONS)), 1),
        "xlm-roberta": randomise(XLMRobertaForTokenClassification(XLMRobertaConfig(
            **common, vocab_size=sizes["xlm-roberta"], hidden_size=24, num_attention_heads=3, intermediate_size=32,
            max_position_embeddings=POSITIONS + 2, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1)), 2),
    }
    for name, model in built.items():
        write_classifier(name, model, descriptions[name])
    references = [Reference(name, built[name], descriptions[name]) for name in built]

    texts = merged_texts()
    cases = {name: {"classifier": name, "rows": {k: encoded(load(d), t) for k, t in texts.items()}}
             for name, d in descriptions.items()}
    for name, (base, patch) in PATCHES.items():
        patch = json.loads(json.dumps(patch))
        if patch.get("normalizer", {}).get("type") == "Sequence":
            patch["normalizer"]["normalizers"][0] = descriptions[base]["normalizer"]
            description = {**descriptions[base], **patch}
        else:
            description = merge_patch(descriptions[base], patch)
        cases[name] = {"classifier": base, "patch": patch, "rows": {k: encoded(load(description), t) for k, t in texts.items()}}
    write("tokens.json", {"texts": texts, "cases": cases})

    logits = []
    for reference in references:
        for text in ["The quick brown fox", STORIES["mixed"], "x"]:
            ids = reference.tokenizer.encode(text, add_special_tokens=False).ids[:reference.room]
            logits.append({"classifier": reference.name, "ids": [reference.first, *ids, reference.last],
                           "logits": floats(reference.logits(ids))})
    write("logits.json", logits)
    write("prompts.json", prompts(references, Tokenizer.from_file(str(MODELS / "llama3-gqa-sharded" / "tokenizer.json"))))
    for name in built:
        for path in sorted((OUT / name).iterdir()):
            print(f"{name}/{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
