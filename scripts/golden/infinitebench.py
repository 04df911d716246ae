"""Prompts and scores of InfiniteBench's and kvpress's own code: tests/data/infinitebench/golden.json.

The scores are those of compute_scores.py, whose summaries need rouge-score 0.1.2 through the package `evaluate`, and of kvpress.
The prompts are those of create_prompt() for `yarn-mistral`, cut by truncate_by_tokens() of eval_yarn_mistral.py with the
default model's tokenizer. This script also writes small files of samples in InfiniteBench's format into the same folder.

  scores   a list of {set, pairs}; a pair has a prediction, the answers as texts, the score, and kvpress's score.
           A comparison that ends with an exception has the score 0
  prompts  a list of {set, number, max_length, n_tokens (before the cut), text}
  n_new    largest number of answer tokens, by set

usage: python scripts/golden/infinitebench.py --infinitebench REPOSITORY --kvpress REPOSITORY --model FILE.gguf
           # git repositories, also without a work tree: OpenBMB/InfiniteBench, NVIDIA/kvpress
"""

import argparse
import collections
import contextlib
import io
import json
import pathlib
import random
import re
import string
import types

from rouge_score.rouge_scorer import RougeScorer

from longbench import changed, chinese_text, default_tokenizer, sentences, story, words
from reference_code import functions_of, source

COMMITS = {"infinitebench": "88b3daa", "kvpress": "8bb29b9"}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/infinitebench"
N_PAIRS = 220  # of predictions and answers, per set
MAX_LENGTHS = (150, 333, 100_000)
LETTERS = "ABCD"
FUNCTIONS = ["read_all", "is_open", "Acme", "B", "test_x", "Option", "parse"]
CHOICES = ["Walking Georgie", "A", "The Answer is 5", "two", "Dairy work", "é", "BC"]
PEOPLE = [["ACE", "ACE ROTHSTEIN"], ["ZOË"], ["STRASSE"], ["O'NEIL"], ["Ace"], ["NICKY SANTORO"], ["MR. T"]]
MARKS = ["", " ", "\n", ".", ",", ":", "!", "?", '"', "'", "{", "}", "`", "*", "-", "\u00a0", "\u3000"]


def noisy(rng, parts, n=4):
    return "".join(rng.choice(MARKS) + rng.choice(parts) + rng.choice(MARKS) for _ in range(rng.randint(0, n)))


def pair_of_digits(rng):
    right = str(rng.randint(0, 99999)).zfill(5)
    said = [right, right, right[:-1], "0" + right, "٣", "1", f"{right}.5", "The pass key is", "x" + right, f"{right[:2]},{right[2:]}"]
    return noisy(rng, said), right


def pair_of_words(rng):
    right = f"{rng.randint(0, 16**4):04x}-{rng.randint(0, 99)}"
    said = [right, right, right + "x", right.upper(), "abcd-1", "The value is", right[:-1], f"[{right}]", f"({right})"]
    return noisy(rng, said), right


def pair_of_people(rng):
    names = rng.choice(PEOPLE)
    said = [*names, *(name.lower() for name in names), "Straße", "zoë", "Ace", "Nicky", "Mr. T", "the dealer", names[0] + "S"]
    return noisy(rng, said), names


def pair_of_choices(rng):
    options = rng.sample(CHOICES, 4)
    right = rng.randrange(4)
    said = [LETTERS[right], LETTERS[right], rng.choice("ABCDE"), options[right], rng.choice(options), "The answer is", "answer:",
            "The option is", "answer is:", "I think", "a", f"{LETTERS[right]}. {options[right]}", f"({LETTERS[right]})", "ABC", "BAD"]
    return rng.choice(["", " ", "\n"]) + noisy(rng, said), [options[right], LETTERS[right]]


def pair_of_functions(rng):
    options = rng.sample(FUNCTIONS, 4)
    right = rng.randrange(4)
    said = [LETTERS[right], rng.choice("ABCDEJ"), options[right], rng.choice(options), "answer is:", "The error is:", "answer:",
            "correct option is:", "Option", "the option", f"{LETTERS[right]}. {options[right]}", f"{LETTERS[right]}:", "I", "def f"]
    return rng.choice(["", " ", "\n", "**"]) + noisy(rng, said), [options[right], LETTERS[right]]


def pair_of_last_integers(rng):
    right = rng.randint(-20, 20)
    said = [str(right), str(right), f"+{right}", f"0{abs(right)}", f"{right}.0", "1_0", "_1", "1_", "--3", "func_1(3)", "is", f"={right}",
            f"{right}a"]
    return noisy(rng, said), right


def pair_of_first_numbers(rng):
    right = rng.choice([rng.randint(0, 99), rng.randint(0, 99) / 2, rng.randint(-9, -1), 7.0])
    said = [str(right), str(right), f"{right}.5", f"0{right}", str(int(right)), "number", ".5", "1.", "-", "3.5.7", "1e3"]
    return noisy(rng, said, 3), right


def pair_of_lists(rng):
    right = [rng.randint(-30, 60) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.7:
        right = [abs(number) for number in right]
    said = list(right)
    for _ in range(rng.randint(0, 2)):
        at = rng.randrange(len(said) + 1)
        said[at:at + rng.randint(0, 1)] = rng.choice([[], [rng.randint(0, 9)], ["x"], ["00"], [1.5]])
        said = said or [1]
    return rng.choice(["[", "", "Values: "]) + rng.choice([", ", " ", "\n"]).join(map(str, said)) + rng.choice(["]", "", "]."]), right


def pair_of_questions(rng):
    answers = [words(rng, rng.randint(1, 4)).strip() for _ in range(rng.randint(1, 3))]
    return rng.choice([changed(rng, rng.choice(answers)), words(rng, rng.randint(0, 8))]), answers


def pair_in_chinese(rng):
    answers = [chinese_text(rng) for _ in range(rng.randint(1, 2))]
    return rng.choice([changed(rng, rng.choice(answers)), chinese_text(rng), rng.choice(answers)[: rng.randint(0, 30)]]), answers


def pair_of_summaries(rng):
    def lines(n):
        return "\n".join(sentences(rng, rng.randint(0, 2)) for _ in range(n))

    answers = [lines(rng.randint(1, 4)) for _ in range(rng.choice([1, 1, 2]))]
    return rng.choice([changed(rng, answers[0]), lines(rng.randint(0, 4)), answers[-1][::-1], "\n".join(answers[0].split("\n")[::-1]),
                       answers[0].replace(" ", "\n", 3)]), answers


PAIRS = {"passkey": pair_of_digits, "number_string": pair_of_digits, "kv_retrieval": pair_of_words,
         "longdialogue_qa_eng": pair_of_people, "longbook_sum_eng": pair_of_summaries, "longbook_choice_eng": pair_of_choices,
         "longbook_qa_eng": pair_of_questions, "longbook_qa_chn": pair_in_chinese, "math_find": pair_of_first_numbers,
         "math_calc": pair_of_lists, "code_run": pair_of_last_integers, "code_debug": pair_of_functions}


class Rouge:
    """The metric `rouge` of the package `evaluate`, with its default options."""

    def compute(self, predictions, references, use_aggregator):
        assert not use_aggregator
        scorer = RougeScorer(["rougeLsum"])
        return {"rougeLsum": [scorer.score_multi(reference, prediction)["rougeLsum"].fmeasure
                              for prediction, reference in zip(predictions, references)]}


def all_scores(upstream, kvpress):
    found = []
    for name, pair_of in PAIRS.items():
        rng, pairs = random.Random(name), []
        for _ in range(N_PAIRS):
            prediction, right = pair_of(rng)
            answers = [str(answer) for answer in (right if isinstance(right, list) else [right])]
            scores = []
            for module in (upstream, kvpress):
                try:
                    scores.append(module["get_score_one"](prediction, right, name, "yarn-mistral"))
                except ValueError:  # int("3.5") in math_find
                    scores.append(0.0)
                except AssertionError:  # kvpress does not score summaries
                    scores.append(scores[0])
            pairs.append({"prediction": prediction, "answers": answers, "score": scores[0], "as_kvpress": scores[1]})
        found.append({"set": name, "pairs": pairs})
        print(name, {"right": sum(pair["score"] == 1 for pair in pairs), "partly": sum(0 < pair["score"] < 1 for pair in pairs),
                     "kvpress differs": sum(pair["score"] != pair["as_kvpress"] for pair in pairs)})
    return found


def records(name, rng):
    """Two records of a set: one whose prompt is always whole, and one that is cut."""
    for number, n in enumerate((2, 40)):
        text = story(rng, n, "zh" if name == "longbook_qa_chn" else "en") + (" {context} {input} <|im_end|>" if n == 40 else "")
        one = {"id": number, "context": text, "input": story(rng, 1), "answer": ["a letter"], "options": []}
        if name in ("passkey", "number_string"):
            key = f"{rng.randint(0, 99999):05}"
            one.update(context=f"{text} The key is {key}. Remember {key}. {text}", input="What is the key?", answer=[key])
        elif name == "kv_retrieval":
            one.update(context='JSON data:\n{"ab-1": "cd-2", "ef-3": "gh-4"}' + text, answer=["cd-2"],
                       input='\nKey: "ab-1"\nThe value associated with the specified key is: ')
        elif name == "longdialogue_qa_eng":
            one.update(input="Which character is $$MASK$$ ?", answer=["ZOË", "ZOË MILL"])
        elif name in ("longbook_choice_eng", "code_debug"):
            one.update(options=["read_all", "{B}", "keep {A}", "last"], answer=[["read_all"], ["last", "D"]][number])
        elif name == "math_find":
            one.update(context=str([rng.randint(0, 99) for _ in range(20 * n)]), answer=[[88], [4.5]][number],
                       input=["You should answer with only one number, no other words. The largest number of the list is:",
                              "Note of a keeper.\nWhat? The Second Largest Number of the list of ships is:"][number])
        elif name == "math_calc":
            one.update(context=" + ".join(str(rng.randint(1, 99)) for _ in range(20 * n)), answer=[[3, 7, -1]], input="")
        elif name == "code_run":
            one.update(input=f"Please give me the exact number of the return value of func_{number}x(3) and func_{number}(-7).", answer=[-4])
        yield one


def cut_prompts(upstream, cutting, tokenizer):
    adapter = types.SimpleNamespace(encode=lambda text: tokenizer.encode(text).ids,
                                    decode=lambda ids, skip_special_tokens: tokenizer.decode(ids))
    found = []
    for name in PAIRS:
        samples = list(records(name, random.Random(name)))
        (FOLDER / f"{name}.jsonl").write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in samples))
        for max_length in MAX_LENGTHS:
            for number, sample in enumerate(samples, 1):
                prompt = upstream["create_prompt"](sample, name, "yarn-mistral", ".")
                n_tokens = len(adapter.encode(prompt))
                with contextlib.redirect_stdout(io.StringIO()):
                    text = cutting["truncate_by_tokens"](prompt, adapter, max_length)
                # The original also removes control tokens from prompts that it does not cut; kvscope keeps them.
                found.append({"set": name, "number": number, "max_length": max_length, "n_tokens": n_tokens,
                              "text": text if n_tokens > max_length else prompt})
    print(len(found), "prompts, cut:", sum(one["n_tokens"] > one["max_length"] for one in found))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--infinitebench", type=pathlib.Path, required=True)
    parser.add_argument("--kvpress", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    def text(name, path):
        return source(getattr(arguments, name), COMMITS[name], path)

    packages = {"re": re, "string": string, "Counter": collections.Counter, "json": json, "Path": pathlib.Path}
    templates = functions_of(text("infinitebench", "src/prompt.py"))
    prompts = functions_of(text("infinitebench", "src/eval_utils.py"), **packages, **templates)
    cutting = functions_of(text("infinitebench", "src/eval_yarn_mistral.py"))
    scores = functions_of(text("infinitebench", "src/compute_scores.py"), **packages,
                          evaluate=types.SimpleNamespace(load=lambda name: Rouge()))
    kvpress = functions_of(text("kvpress", "evaluation/benchmarks/infinite_bench/calculate_metrics.py"), **packages)
    FOLDER.mkdir(exist_ok=True)
    document = {"about": "scripts/golden/infinitebench.py", "n_new": prompts["DATA_NAME_TO_MAX_NEW_TOKENS"],
                "scores": all_scores(scores, kvpress), "prompts": cut_prompts(prompts, cutting, default_tokenizer(arguments.model))}
    (FOLDER / "golden.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
