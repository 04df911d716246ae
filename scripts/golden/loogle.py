"""Prompts and scores of LooGLE's own code: tests/data/loogle/golden.json.

The scores are those of automatic_metrics.py, with nltk 3.10.4 and rouge 1.0.1. The prompts follow pred_opensource_models.py,
whose function also runs the model: they are made here, from task2prompt.json, with the default model's tokenizer. This script
also writes small files of samples in LooGLE's formats into the same folder.

  texts     a list of [prediction, answer, bleu1, bleu4, recall of rouge-1, rouge-2 and rouge-l]. An exception gives 0
  masks     a list of [prediction, names by mask, exact match, partial match], as shares of the masks. An exception gives 0
  literals  a list of [text, value of the Python literal or null]
  prompts   a list of {id, max_length, n_tokens (before the cut), text, evidence (parts of the text)}
  n_new     largest number of answer tokens, by set

usage: python scripts/golden/loogle.py --loogle REPOSITORY --model FILE.gguf
           # a git repository, also without a work tree: bigai-nlco/LooGLE
"""

import argparse
import ast
import json
import pathlib
import random
import re
import types
import warnings

from nltk.translate.bleu_score import sentence_bleu
from rouge import Rouge

from longbench import changed, cut, default_tokenizer, sentences, story, words
from reference_code import functions_of, source

COMMIT = "6734382"
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/loogle"
N = 220  # answers per list
MAX_LENGTHS = (150, 333, 100_000)
NAMES = ["Bob", "Bethel Horizon", "the Horizon", "Ann", "ann", "", " ", "Bob Bob", "Zoë", "O'Neil", "Gorrosion\tMagazine", "東京"]
LITERALS = re.split(r" \|\s", """'a' | "a'b" | 'a\\'b' | '''a
b''' | r'a\\nb' | 'a\\nb\\t\\x41\\u00e9\\U0001F600\\101\\7' | 'a\\qb' | 'a' 'b' "c" | u'a' | 'a | 'a
b' | a | True | None | [1, -2, +3.5, 1e3, .5, 0] | [1, 2,] | [,] | [1 2] | (1) | (1,) | () | (1, 2) | {'a': 1} | {'a': 1,} | {'a'} |
{'a': [{'b': ('c', None)}], 'd': {}} | {1: 'a', 'b': 2} | {[1]: 2} | {'a': 1, 'a': 2} | {"a": true} | {'a': 1 # comment
, 'b': 2} | {'a': 1} | {'a': 1} x | {'a' 1} | {'a': } | {: 1} | {'a': 1 'b': 2} | {'a': 1 | [ | ] | 1 2 | - | -- 3 | 'a\\
b' | '\\x4' | '\\u12' | # c | '' | ''''a''' | {'a', 1: 2} | {(1, 2): 3, 'x': 'y'} | {([],): 3} | 007 | 1_0 | ['a', 'b' 'c'] | "東京 \\\\ é" | {'S': ["It's \\"so\\""], 'Q': "Who's?"} | {{1}} | {{}: 1} | 0 | 00 | 1_000.5 | 1_ | 1__0 | 1e | --- 2""")


def text_pair(rng):
    answer = rng.choice([sentences(rng, rng.randint(1, 3)), words(rng, rng.randint(1, 6)), "None", "."])
    prediction = rng.choice([changed(rng, answer), changed(rng, answer), sentences(rng, rng.randint(0, 3)), answer, "",
                             " ".join(answer.split()[:3]), answer.replace(" ", "\n"), "...", " . "])
    return prediction, answer or "x"


def mask_pair(rng):
    names = {f"<mask-{i}>": rng.choice(NAMES[:4] + NAMES[7:]) for i in range(rng.randint(1, 4))}
    said = {mask: rng.choice([name, name, name.upper(), name + " x", rng.choice(NAMES)]) for mask, name in names.items()}
    for _ in range(rng.randint(0, 2)):
        change = rng.choice([{"<mask-9>": "x"}, {"<mask-0>": rng.choice([5, None, ["Bob"], ("Bob",)])}, {1: "x"}, {}])
        said.update(change)
    if rng.random() < 0.2:
        said.pop(rng.choice(list(said)))
    written = rng.choice([repr, repr, lambda value: json.dumps({str(k): v for k, v in value.items()}, ensure_ascii=False)])(said)
    before = rng.choice(["", "", "", " ", "\t", "\n", "\n ", " \n\n", "Answer: ", "# c\n", "["])
    after = rng.choice(["", "", "", "\n", " # done", "\n\n", ",", ".", "\nQuestion: x", "]", "\n# c"])
    return before + (written if rng.random() < 0.9 else rng.choice(["", "None", "{}", "[]", "{'<mask-0>'}", "Bob", "{"])) + after, names


def scores_of_text(metrics, prediction, answer):
    said = prediction or "None"  # automatic_eval.py
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bleu = metrics["get_bleu_score"]("", answer, said, "")
    try:
        rouge = metrics["get_rouge_score"]("", answer, said, "")
    except ValueError:  # no sentence
        rouge = (0.0, 0.0, 0.0)
    return [*map(float, bleu), *rouge]


def share(metric, prediction, names):
    try:
        n_right, n = metric("", names, prediction or "None", "")
    except (AttributeError, TypeError):  # a name that is no text
        return 0.0
    return n_right / n


def value_of(text):
    """The value as JSON; keys that are no texts are left out."""
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if isinstance(key, str)}
        return [plain(item) for item in value] if isinstance(value, (list, tuple, set)) else value

    try:
        return plain(eval(text, {"__builtins__": {}}))  # pylint: disable=eval-used
    except (NameError, SyntaxError, TypeError):
        return None


EVIDENCE = "The keeper of the lighthouse wrote a letter."


def files(rng):
    """Records by file. Each file has a short and a long document."""
    def pair(question, answer, evidence, **more):
        return {"Q": question, "A": answer, "S": evidence, **more}

    short, long = story(rng, 3) + " " + EVIDENCE + "\nIt's {so} far. <|im_end|>", EVIDENCE + " " + story(rng, 40) + " " + EVIDENCE
    questions = [[pair("Who wrote {it}?", "The keeper's friend.", EVIDENCE), pair("What's far?", 'It is "so" far.', "It's {so} far.")],
                 [pair("Who wrote?", "The keeper wrote a letter.", "Nothing here says so.")]]
    of_long = [[{**one, "S": [one["S"], "Not in the text."], "type": "computation"} for one in some] for some in questions]
    masked = [[{"Q": "<mask-0> met <mask-1>.", "S": EVIDENCE, "A": {"<mask-0>": "Bob", "<mask-1>": "Ann O'Neil"}}],
              [{"Q": "<mask-0> left.", "S": EVIDENCE, "A": {"<mask-0>": "Zoë"}}]]

    def lines(pairs, write):
        return [{"input": text, "title": f"Made {i}", "qa_pairs": write(one), "output": "none"}
                for i, (text, one) in enumerate(zip((short, long), pairs))]

    yield "shortdep_qa", lines(questions, repr)
    yield "longdep_qa", lines(of_long, lambda value: value)
    yield "shortdep_cloze", lines(masked, repr)
    yield "longdep_summarization", [{"input": text, "title": "Made", "qa_pairs": "none", "output": "A keeper wrote."}
                                    for text in (short, long)]
    yield "flat", [{"context": text, "question": one["Q"], "answer": one["A"], "evidence": [one["S"]], "title": "Made"}
                   for text, some in zip((short, long), questions) for one in some]


def all_prompts(formats, tokenizer):
    found = []
    for name, records in files(random.Random(1)):
        (FOLDER / f"{name}.jsonl").write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records))
        for max_length in MAX_LENGTHS:
            for line, record in enumerate(records, 1):
                if name == "flat":
                    pairs = [{"Q": record["question"], "S": record["evidence"]}]
                elif record["qa_pairs"] == "none":
                    pairs = [{}]
                else:
                    pairs = record["qa_pairs"] if isinstance(record["qa_pairs"], list) else ast.literal_eval(record["qa_pairs"])
                for number, pair in enumerate(pairs, 1):
                    text = record["context" if name == "flat" else "input"]
                    prompt = formats["shortdep_qa" if name == "flat" else name].format(input=text, Q=pair.get("Q"))
                    n, cut_prompt = cut(tokenizer, prompt, max_length)
                    evidence = pair.get("S", [])
                    evidence = [evidence] if isinstance(evidence, str) else evidence
                    found.append({"id": f"{name}-{line}-{number}", "max_length": max_length, "n_tokens": n, "text": cut_prompt,
                                  "evidence": [one for one in evidence for _ in range(cut_prompt.count(one))]})
    print(len(found), "prompts, cut:", sum(one["n_tokens"] > one["max_length"] for one in found))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loogle", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    def text(path):
        return source(arguments.loogle, COMMIT, path)

    metrics = functions_of(text("Evaluation/automatic_metrics.py"), sentence_bleu=sentence_bleu, Rouge=Rouge, np=types.SimpleNamespace())
    rng = random.Random(2)
    texts = [[*pair, *scores_of_text(metrics, *pair)] for pair in (text_pair(rng) for _ in range(N))]
    warnings.simplefilter("ignore")
    masks = [[said, names, share(metrics["get_exact_match"], said, names), share(metrics["get_partial_match"], said, names)]
             for said, names in (mask_pair(rng) for _ in range(N + 40))]
    literals = [[one, value_of(one)] for one in LITERALS]
    print("texts with scores above 0:", [sum(row[i] > 1e-300 for row in texts) for i in range(2, 7)])
    print("masks:", {"none right": sum(row[3] == 0 for row in masks), "all right": sum(row[2] == 1 for row in masks),
                     "partial above exact": sum(row[3] > row[2] for row in masks)})
    print("literals:", len(literals), "of which not read:", sum(row[1] is None for row in literals))
    FOLDER.mkdir(exist_ok=True)
    prompts = all_prompts(json.loads(text("config/task2prompt.json")), default_tokenizer(arguments.model))
    document = {"about": "scripts/golden/loogle.py", "n_new": json.loads(text("config/task2maxlen.json")), "texts": texts,
                "masks": masks, "literals": literals, "prompts": prompts}
    (FOLDER / "golden.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
