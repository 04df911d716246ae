"""Samples of the task niah: tests/data/niah/samples.json.

An independent implementation of the task draws facts and sentences with the tokenizer of tests/data/ruler. The depths
at intervals are those of the class LLMNeedleHaystackTester at commit 7b90d28, and the stems those of nltk 3.10.4, with
which rouge1 is computed as in rouge_score 0.1.2.

  depths    a list of {min, max, intervals, spacing, depths}
  samples   a list of {options, samples}; a sample has id, number, sha256 (of the context), question, answers, spans
            and n_new; the first also has the context

  rouge1    a list of {prediction, reference, score}
  stems     words and their stems, and the SHA-256 of the lines "word stem" of all words with all suffixes

usage: python scripts/golden/niah.py --niah FOLDER    # a clone of https://github.com/gkamradt/LLMTest_NeedleInAHaystack
"""

import argparse
import collections
import hashlib
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import types
import uuid

import tokenizers
from nltk.stem.porter import PorterStemmer

COMMIT = "7b90d28"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/niah"
TOKENIZER = tokenizers.Tokenizer.from_file(str(ROOT / "tests/data/ruler/tokenizer/tokenizer.json"))
MASK = 2**64 - 1
ITEMS = re.findall(r'"(\w+)"', (ROOT / "engine/tasks/api/item_names.h").read_text())
OWNERS = ["Alice", "Boris", "Clara", "David", "Elena", "Frank"]
NOISE = ["The grass is green.", "The sky is blue.", "The sun is yellow.", "Here we go.", "There and back again."]
NOUNS = {"numbers": "number", "words": "word", "uuids": "UUID"}
DEFAULTS = {"lengths": [300], "depths": [0.1, 0.5, 0.9], "samples": 1, "seed": 0, "needle": "retrieval", "keys": "items",
            "values": "numbers", "n_keys": 1, "n_values": 1, "n_queries": 1, "needle_text": "", "needle_question": "",
            "needle_answer": "", "filler": "noise", "haystack": "", "haystack_order": "shuffled"}
STORY = ("A ship left the port at dawn! It met no storm\nand no wind.  Was the crew afraid?\n\nNo: they sang.\tOne slept "
         "(as ever). The captain's map was 3.5 feet wide. Nobody could read it. At noon an island rose")
SANDWICH = {"needle_text": "The best thing to do in {key} is {value}.", "needle_question": "What is best in {key}?",
            "needle_answer": "eat a sandwich in the park", "depths": [0, 1]}
CASES = [{"lengths": [100, 1000], "samples": 4, "depths": [0, 0.3, 1]}, {"seed": 2**64 - 1}, {"needle": "reasoning"},
         {"haystack": STORY}, {"haystack": STORY, "haystack_order": "text", "lengths": [60, 300]},
         {"haystack": json.dumps({"text": STORY}), "lengths": [200]},
         *({"keys": keys, "values": values} for keys in ("words", "numbers", "uuids") for values in NOUNS),
         {"n_keys": 4, "n_queries": 2, "n_values": 3, "lengths": [800]}, {"n_queries": 3, "keys": "words"},
         {"n_values": 2, "values": "uuids"}, {"n_keys": 24, "lengths": [1200], "values": "words"},
         {"filler": "needles", "lengths": [150, 600]}, {"filler": "needles", "keys": "uuids", "values": "uuids", "n_keys": 3,
          "lengths": [700]},
         {"filler": "needles", "n_values": 2, "n_queries": 2}, SANDWICH,
         {"needle_text": "{key}: {value}!", "needle_question": "Say {key}.", "n_queries": 2, "filler": "needles"}]
DEPTHS = [(0, 100, 35, "linear"), (0, 100, 35, "sigmoid"), (20, 80, 7, "linear"), (10, 90, 11, "sigmoid"), (0, 100, 1, "linear"),
          (0, 100, 8, "linear"), (0, 50, 3, "sigmoid"), (0, 10, 41, "linear")]


class Random:
    """SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return int((self.next() >> 11) * 2.0**-53 * n)

    def choice(self, options):
        return options[self.below(len(options))]

    def shuffle(self, values):
        for i in range(len(values) - 1, 0, -1):
            j = self.below(i + 1)
            values[i], values[j] = values[j], values[i]

    def copy(self):
        return Random(self.state)


def all_words():
    nouns, adjectives = ((line.rstrip() for line in (ROOT / f"assets/wonderwords/{name}list.txt").read_text().splitlines())
                         for name in ("noun", "adjective"))
    return sorted({f"{a}-{n}" for a, n in itertools.product(set(adjectives), set(nouns))})


WORDS = []


def draw(random, kind, known=()):
    while True:
        if kind == "items":
            text = random.choice(ITEMS)
        elif kind == "words":
            WORDS or WORDS.extend(all_words())
            text = random.choice(WORDS)
        elif kind == "numbers":
            text = str(100000 + random.below(900000))
        else:
            high = random.next()
            text = str(uuid.UUID(int=high << 64 | random.next(), version=4))
        if text not in known:
            return text


def phrase(o, key):
    return f"the {key}" if o["keys"] == "items" else key


def statement(o, key, value):
    if o["needle_text"]:
        return o["needle_text"].replace("{key}", key).replace("{value}", value)
    begin = f"The special magic {NOUNS[o['values']]}" if o["n_values"] == 1 else f"One of the special magic {NOUNS[o['values']]}s"
    return f"{begin} of {phrase(o, key)} is {value}."


def listed(parts):
    return " and ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + ", and " + parts[-1]


def question(o, keys):
    if o["needle_question"]:
        return o["needle_question"].replace("{key}", listed(keys))
    noun, of = NOUNS[o["values"]], listed([phrase(o, key) for key in keys])
    if len(keys) * o["n_values"] == 1:
        return f"What is the special magic {noun} of {of}? Answer with the {noun}."
    return f"What are all the special magic {noun}s of {of}? Answer with the {noun}s."


def tokens(text):
    return len(TOKENIZER.encode(text, add_special_tokens=False).ids)


def sentence_tokens(sentence):
    return max(1, tokens(". " + sentence) - tokens("."))


def sentences_of(text):
    text = json.loads(text)["text"] if text.startswith("{") else text
    return [" ".join(one.split()) for one in re.split(r"(?<=[.!?])(?=[ \n\r])", text) if one.strip()]


def haystack(o, random, keys):
    if o["filler"] == "needles":
        while True:
            key = draw(random, o["keys"], keys)
            yield statement(o, key, draw(random, o["values"]))
    lines = sentences_of(o["haystack"]) if o["haystack"] else list(NOISE)
    while True:
        if o["haystack"] and o["haystack_order"] == "shuffled":
            random.shuffle(lines)
        yield from list(lines)


def make(o, length, depth, seed):
    random = Random(seed & MASK)
    n_keys = max(o["n_keys"], o["n_queries"])
    keys, values = [], []
    for _ in range(n_keys):
        keys.append(draw(random, o["keys"], keys))
        values.append([])
        for _ in range(o["n_values"]):
            values[-1].append(o["needle_answer"] or draw(random, o["values"], sum(values, [])))
    asked = list(range(n_keys))
    if o["n_queries"] < n_keys:
        random.shuffle(asked)
    asked = asked[:o["n_queries"]]
    needles = [(statement(o, keys[i], value), [0] if i in asked else []) for i in range(n_keys) for value in values[i]]
    ask, answers = question(o, [keys[i] for i in asked]), [value for i in asked for value in values[i]]
    if o["needle"] == "reasoning":
        owner = random.choice(OWNERS)
        owns = f"{owner} owns the {keys[0]}."
        needles = [(f"{owns} {needles[0][0]}", [0, len(owns) + 1])]
        ask = f"What is the special magic number of the thing that {owner} owns? Answer with the number."
    if len(needles) > 1:
        random.shuffle(needles)
    total, beside = sum(sentence_tokens(text) for text, _ in needles), []
    for sentence in haystack(o, random.copy(), keys):
        total += sentence_tokens(sentence)
        if total > length:
            break
        beside.append(sentence)
    while True:
        parts = [(one, []) for one in beside]
        places = [int((depth + i * (1 - depth) / len(needles)) * len(beside) + 0.5) for i in range(len(needles))]
        for place, needle in reversed(list(zip(places, needles))):
            parts.insert(place, needle)
        context = " ".join(text for text, _ in parts)
        if len(beside) == 1 or tokens(context) <= length:
            break
        beside.pop()
    spans, at = [], 0
    for text, facts in parts:
        ends = [fact - 1 for fact in facts[1:]] + [len(text)]
        spans += [[at + begin, at + end] for begin, end in zip(facts, ends)]
        at += len(text) + 1
    is_short = len(answers) == 1 and o["values"] != "uuids" and not o["needle_answer"]
    return {"sha256": hashlib.sha256(context.encode()).hexdigest(), "question": ask, "answers": answers, "spans": spans,
            "n_new": 24 if is_short else 128, "context": context}


def samples(changes):
    o = DEFAULTS | changes
    places, found = list(itertools.product(o["lengths"], o["depths"])), []
    for first in range(0, o["samples"], 3):
        for place, (length, depth) in enumerate(places):
            for i in range(first, min(first + 3, o["samples"])):
                number = first * len(places) + 3 * place + i - first
                sample = {"id": f"niah-{length}-{depth:g}-{i}", "number": number} | make(o, length, depth, o["seed"] + number)
                if found:
                    del sample["context"]
                found.append(sample)
    return {"options": changes, "samples": found}


SUFFIXES = ["", "s", "es", "ies", "ied", "ed", "eed", "ing", "ly", "ally", "ness", "iveness", "ational", "ization", "izer", "ement",
            "ability", "ology", "fully", "ation", "ying", "lling", "y", "e", "ates", "alism"]
SENTENCES = ["The special magic number of the lantern is 123456.", "The best thing to do in San Francisco is eat a sandwich!",
             "Skies were dying; the outings' news proceeded.", "\u00c9mile's caf\u00e9s are closing-early, aren't they?", "", "a b c"]


def words_with_suffixes():
    lists = [(ROOT / f"assets/wonderwords/{name}list.txt").read_text().splitlines() for name in ("noun", "adjective", "verb")]
    words = sorted({word.strip() for word in itertools.chain(*lists) if re.fullmatch("[a-z]+", word.strip())})
    return [word + suffix for word in words for suffix in SUFFIXES]


def rouge1(prediction, reference):
    stem = PorterStemmer().stem
    counts = [collections.Counter(stem(word) if len(word) > 3 else word for word in re.findall("[a-z0-9]+", text.lower()))
              for text in (prediction, reference)]
    common, (n_predicted, n_wanted) = (counts[0] & counts[1]).total(), (max(count.total(), 1) for count in counts)
    precision, recall = common / n_predicted, common / n_wanted
    return 2 * precision * recall / (precision + recall) if common else 0.0


def scores():
    choose, words, stem = random.Random(4), words_with_suffixes(), PorterStemmer().stem
    lines = "".join(f"{word} {stem(word)}\n" for word in words)
    pairs = list(itertools.product(SENTENCES, SENTENCES))
    for _ in range(220):
        common = choose.sample(words, 6)
        one, other = ([*choose.choices(common, k=choose.randint(0, 9)), *choose.choices(words, k=choose.randint(0, 3))] for _ in "ab")
        pairs.append((choose.choice([" ", ", ", "-"]).join(one).title(), " ".join(other)))
    return {"rouge1": [{"prediction": a, "reference": b, "score": rouge1(a, b)} for a, b in pairs],
            "stems": {"words": {word: stem(word) for word in choose.sample(words, 150)},
                      "sha256": hashlib.sha256(lines.encode()).hexdigest(), "suffixes": SUFFIXES}}


def tester_class(repository):
    """Returns the class whose constructor computes the depths, without the packages of its providers."""
    path = f"{COMMIT}:needlehaystack/llm_needle_haystack_tester.py"
    source = subprocess.run(["git", "-C", repository, "show", path], check=True, capture_output=True, text=True).stdout
    for name, members in {"golden": {}, "golden.evaluators": {"Evaluator": object},
                          "golden.providers": {"ModelProvider": object}}.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members, __path__=[])
    module = {"__name__": "golden.tester", "__package__": "golden"}
    exec(compile(source, path, "exec"), module)  # pylint: disable=exec-used
    return module["LLMNeedleHaystackTester"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--niah", required=True, help="clone of LLMTest_NeedleInAHaystack, or its git directory")
    tester = tester_class(parser.parse_args().niah)
    golden = {"depths": [], "samples": [samples(changes) for changes in CASES], **scores()}
    for low, high, n, spacing in DEPTHS:
        percentages = tester(model_to_test=types.SimpleNamespace(model_name=""), needle="n", retrieval_question="q",
                             document_depth_percent_min=low, document_depth_percent_max=high,
                             document_depth_percent_intervals=n,
                             document_depth_percent_interval_type=spacing).document_depth_percents
        golden["depths"].append({"min": low / 100, "max": high / 100, "intervals": n, "spacing": spacing,
                                 "depths": list(dict.fromkeys(float(one) / 100 for one in percentages))})
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "samples.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
