"""Prompts and scores of SCBench's own code: tests/data/scbench/golden.json.

The prompts are those of eval_utils.py and run_scbench.py, without chat template, and the scores are those of
compute_scores.py, in the folder `scbench` of MInference at commit fb56c91. The module `evaluate` is replaced by
rouge-score 0.1.2, which it calls. The tokenizer is the default model's in the package `tokenizers`. This script also writes
small files of samples in SCBench's format into the same folder.

  prompts   a list of {set, mode, max_length, samples: [{line, turn, text, n_new}]}
  scores    a list of {set, pairs: [[turn, prediction, score]]}; a turn has input, answer and, by set, options or task
  upper     a list of [character, upper case], for characters whose upper case has several characters, and a few others

usage: python scripts/golden/scbench.py --minference FOLDER --model FILE.gguf
           # a clone of https://github.com/microsoft/MInference and the default model
"""

import argparse
import importlib
import json
import pathlib
import random
import subprocess
import sys
import types

from rouge_score import rouge_scorer

from longbench import chinese_text, changed, default_tokenizer, load_function, rouge_pair_of_lines, story, words

COMMIT = "fb56c91"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/scbench"
N_PAIRS = 220
PLAIN_SETS = ("kv", "prefix_suffix", "vt", "many_shot", "summary", "summary_with_needles")
SETS = PLAIN_SETS + ("qa_eng", "qa_chn", "choice_eng", "mf")


class Rouge:
    """The part of the metric "rouge" of the package evaluate that SCBench uses."""

    @staticmethod
    def compute(predictions, references, use_aggregator):
        assert not use_aggregator
        scorer = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=False)
        return {"rougeLsum": [scorer.score(reference, prediction)["rougeLsum"].fmeasure
                              for reference, prediction in zip(references, predictions)]}


def module(name, **contents):
    made = types.ModuleType(name)
    made.__dict__.update(contents)
    sys.modules[name] = made
    return made


def load_modules(folder):
    """Returns eval_utils.py and compute_scores.py, without the packages that the used functions do not need."""
    torch = module("torch")
    torch.profiler = module("torch.profiler")
    module("rouge", Rouge=None)
    module("transformers", GenerationConfig=None, SinkCache=None)
    module("evaluate", load=lambda name: Rouge())
    module("args", parse_args=None)
    module("repo_qa_utils", compute_score=None)
    sys.path.insert(0, str(folder / "scbench"))
    return importlib.import_module("eval_utils"), importlib.import_module("compute_scores")


def records(name):
    rng = random.Random(name)
    for n in (4, 40):
        turns = []
        for i in range(4):
            turn = {"input": story(rng, 1), "answer": words(rng, 2).strip()}
            if name == "scbench_vt":
                turn["answer"] = ["ABC", "it's", words(rng, 1).strip()]
            if name == "scbench_choice_eng":
                turn["options"] = [f"{words(rng, 1).strip()} {letter}" for letter in "wxyz"]
                turn["answer"] = turn["options"][i]
            if name == "scbench_mf":
                turn = {"input": f"The {words(rng, 1).strip()} island is the The Biggest {i} number is:", "answer": [7, 2.0, 0.25, 12][i]}
            if name == "scbench_summary_with_needles":
                turn["task"] = ["scbench_summary", "scbench_passkey"][i % 2]
            turns.append(turn)
        context = [rng.randint(0, 99) for _ in range(3 * n)] if name == "scbench_mf" else story(rng, n, "zh" if name == "scbench_qa_chn" else "en")
        yield {"id": n, "context": context, "multi_turns": turns}


def prompts_of(modules, tokenizer, truncate_input, name, mode, max_length):
    utils, _ = modules
    create = utils.create_multiturn_prompt if mode == "multi-turn" else utils.create_scdq_prompt
    samples = []
    for line, record in enumerate(records(name), 1):
        prompts = create(record, name, None, False)["prompts"]
        ids = tokenizer.encode(prompts[0]).ids
        kept = truncate_input(ids, max_length)
        text = prompts[0]
        if len(kept) < len(ids):
            text = tokenizer.decode(kept[: max_length // 2]) + tokenizer.decode(kept[-(max_length // 2):])
        for turn, of_record in enumerate(record["multi_turns"]):
            if mode == "multi-turn":
                whole = text + "".join(prompts[1: turn + 1])
            else:
                whole = text + prompts[turn + 1]
            n_new = utils.DATA_NAME_TO_MAX_NEW_TOKENS[name]
            samples.append({"line": line, "turn": turn + 1, "text": whole,
                            "n_new": n_new[of_record["task"]] if isinstance(n_new, dict) else n_new})
    return {"set": name, "mode": mode, "max_length": max_length, "samples": samples}


UPPER_TRAPS = ["straße", "STRASSE", "ﬁsh", "FISH", "ὖ", "ŉ", "i", "ı", "İ", "ǰ", "ᾳ", "ΑΙ", "s", "ſ"]


def said(rng, texts):
    """A prediction from some of the texts."""
    form = rng.choice([str, str.upper, str.lower, str.title])
    return rng.choice(["", " ", "\n", "\x1c"]) + rng.choice([" ", ", ", "", "\n"]).join(
        form(rng.choice(texts + [words(rng, 1)])) for _ in range(rng.randint(0, 4)))


def choice_pair(rng):
    options = [f"{words(rng, rng.randint(1, 2)).strip()}{i}" for i in range(4)]
    answer = rng.choice(options)
    if rng.random() < 0.1:
        options[2] = answer = rng.choice("BC")
    letter = rng.choice(["A", "B", "C", "D", "AB", "BD", "E", "a", answer, answer.lower()])
    begin = rng.choice(["", " ", "The answer is: ", "the answer is:", "answer:\u3000", "The answer is ", "My option is ", "So,\n\n",
                        "It must be (", "answer is", "\"", "Well. answer: answer is: "])
    return {"input": "?", "answer": answer, "options": options}, begin + letter + rng.choice(["", ".", ")", " because A", "\nB", "!", "\u2003"])


def find_pair(rng):
    answer = rng.choice([7, 12, 0, 2.0, 0.25, 3.5, 123456789012345678, [7]])
    number = rng.choice(["7", "12", "7.9", "0.25", ".25", "2", "3.5", "3.50", "٣", "٧", "𝟟", "1e3", "123456789012345678", "-7", "007", "3.",
                         "9" * 30])
    return {"input": "The x is", "answer": answer}, rng.choice(["", "It is ", "about", "٣.", "."]) + number + rng.choice(["", ".", " or 12", ".5.6", "%"])


def pair_of(name, rng):
    turn = {"input": "The x is", "answer": words(rng, rng.randint(1, 2)).strip()}
    if name == "scbench_choice_eng":
        return choice_pair(rng)
    if name == "scbench_mf":
        return find_pair(rng)
    if name == "scbench_vt":
        turn["answer"] = rng.choice([["ab", "Cd", "ΟΔΟΣ", "d"], ["İ", "x"], ["a", "b", "c"], "abc"])
        return turn, said(rng, list(turn["answer"]))
    if name == "scbench_qa_chn":
        text = chinese_text(rng) or "。"
        turn["answer"] = rng.choice([text, text[:2], [text, chinese_text(rng) or "x"], "Ａb c"])
        known = turn["answer"] if isinstance(turn["answer"], str) else turn["answer"][0]
        return turn, rng.choice([changed(rng, known), chinese_text(rng), known[:3], known[:1]])
    if name in ("scbench_qa_eng", "scbench_many_shot"):
        turn["answer"] = rng.choice([turn["answer"], rng.choice(UPPER_TRAPS)])
        return turn, said(rng, UPPER_TRAPS if rng.random() < 0.5 else [turn["answer"]])
    if name == "scbench_summary_with_needles":
        turn.update({"task": "scbench_passkey", "answer": rng.choice(["12345", "7", "0012"])})
        return turn, rng.choice(["", "It is ", "٣ ", "x1y", "-"]) + rng.choice([turn["answer"], "7", "0012."]) + rng.choice(["", " 7"])
    if name == "scbench_summary":
        prediction, answers, _ = rouge_pair_of_lines(rng)
        turn["answer"] = (answers[0] or "x").replace(". ", "\n", rng.randint(0, 2))
        return turn, prediction.replace(". ", ".\n")
    return turn, said(rng, [turn["answer"]])


def scores_of(modules, name):
    utils, scoring = modules
    rng, pairs = random.Random(name), []
    for _ in range(N_PAIRS):
        turn, prediction = pair_of(name, rng)
        label = utils.get_ground_truth({"multi_turns": [turn]}, name)[0]
        task = turn.get("task", name)
        task = scoring.Multiturnbench_to_Infinitebench.get(task, task)
        pairs.append([turn, prediction, scoring.get_score_one(prediction, label, task, "")])
    print(name, "mean", sum(pair[2] for pair in pairs) / N_PAIRS, "distinct", len({pair[2] for pair in pairs}))
    return {"set": name, "pairs": pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minference", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    head = ["git", "-C", str(arguments.minference), "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout
    assert commit.startswith(COMMIT), f"{arguments.minference} is at {commit}, not at {COMMIT}"

    FOLDER.mkdir(exist_ok=True)
    names = [f"scbench_{name}" for name in SETS]
    for name in names:
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records(name))
        (FOLDER / f"{name}.jsonl").write_text(lines)
    tokenizer = default_tokenizer(arguments.model)
    truncate_input = load_function(arguments.minference / "scbench/run_scbench.py", "truncate_input")
    modules = load_modules(arguments.minference)
    document = {"about": "scripts/golden/scbench.py",
                "prompts": [prompts_of(modules, tokenizer, truncate_input, name, mode, max_length) for name in names
                            for mode in ("multi-turn", "multi-request") for max_length in (100_000, 201)],
                "scores": [scores_of(modules, name) for name in names],
                "upper": [[chr(c), chr(c).upper()] for c in range(0x3000) if len(chr(c).upper()) > 1 or c % 97 == 0]}
    (FOLDER / "golden.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
