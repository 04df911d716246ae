"""Prompts and scores of HELMET's own code: tests/data/helmet/golden.json.

The prompts, the selected samples and the scores are those of data.py, model_utils.py and utils.py at commit 4526dfb, with
rouge-score 0.1.2, pytrec-eval-terrier 0.5.11 (the module pytrec_eval) and datasets 5.2.0, and the default model's tokenizer
in the package `tokenizers`. This script also writes small files of samples in HELMET's formats into the same folder. Their
field `line` is not HELMET's.

  prompts       a list of {file, demos, set, samples, shots, max_length, items: [{line, text, answers}]}
  texts         a list of {set, begin, pairs: [[prediction, answers, scores by name of the metric]]}
  recall        a list of [prediction, answers, ruler_recall], with the text `begin` before each prediction
  rankings      {begin, labels, pairs: [[prediction, IDs in the order of their scores, NDCG@10]]}
  permutations  a list of [n, seed, first numbers] of NumPy
  stems         a list of [word, stem] of NLTK

usage: python scripts/golden/helmet.py --helmet FOLDER --model FILE.gguf
           # a clone of https://github.com/princeton-nlp/HELMET and the default model
"""

import argparse
import importlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types

os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp()

import datasets  # pylint: disable=wrong-import-position,unused-import  # looks for torch, so before the replacements
import numpy as np  # pylint: disable=wrong-import-position
from nltk.stem.porter import PorterStemmer  # pylint: disable=wrong-import-position

from longbench import changed, default_tokenizer, qa_pair, story, words  # pylint: disable=wrong-import-position

COMMIT = "4526dfb"
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/data/helmet"
N_PAIRS = 220
METRICS = ("substring_exact_match", "exact_match", "f1", "rougeL_f1", "rougeL_recall")
RULER_FILES = {"ruler_niah_mk_2": "niah_multikey_2", "ruler_niah_mv": "niah_multivalue", "ruler_vt": "vt",
               "ruler_cwe": "cwe", "ruler_fwe": "fwe", "ruler_qa_1": "qa_1"}
N_NEW = {"json_kv": 100, "msmarco_rerank_psg": 200, "ruler_cwe": 100, **{f"kilt_{name}": 20 for name in ("nq", "popqa_3")}}
SUFFIXES = """ s es ies ied eed ed ing y ational tional enci anci izer bli abli alli entli eli ousli ization ation ator alism
iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible ant
ement ment ent sion tion ion ou ism ate iti ous ive ize e le ll lle ly ally fully alliing yed ying""".split(" ")
ROOTS = """hop hopp tann fail fil siz happ sky cr fl di d t tr agr plast bl mot sing conflat troubl rat controll roll wise oper
feudal decis hope callous form sensit sens hypothet trip electr good reviv allow infer airlin gyroscop adjust defens irrit
replac depend adopt hom commun activ angular effect bowdler prob cease yy ay yoyo oy b ab abc 42 a1 news inning outing canning
howe proceed exceed succeed ly dy li geo apo""".split()


def load_modules(folder):
    """Returns data.py and model_utils.py, without torch and transformers, which the used functions do not need."""
    torch, data_of_torch, transformers = (types.ModuleType(name) for name in ("torch", "torch.utils.data", "transformers"))
    torch.no_grad = lambda: lambda function: function
    data_of_torch.Dataset = object
    for name in ("AutoTokenizer", "PreTrainedTokenizer"):
        setattr(transformers, name, type(name, (), {}))
    transformers.set_seed = None
    replaced = {"torch": torch, "torch.utils": types.ModuleType("torch.utils"), "torch.utils.data": data_of_torch,
                "transformers": transformers}
    sys.modules.update(replaced)
    sys.path.insert(0, str(folder))
    data, models = importlib.import_module("data"), importlib.import_module("model_utils")
    for name in replaced:  # for `datasets`, which uses torch if it is loaded
        del sys.modules[name]
    data.logger.setLevel("ERROR")
    data.datasets.disable_progress_bars()
    return data, models


class Tokenizer:
    """The part of transformers' interface that HELMET's function `tokenize` uses."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, texts, return_tensors=None, return_offsets_mapping=False):
        encodings = [self.tokenizer.encode(text) for text in texts]
        if return_offsets_mapping:
            return {"offset_mapping": [encoding.offsets for encoding in encodings]}
        return types.SimpleNamespace(input_ids=np.array([encoding.ids for encoding in encodings]).view(Sized))


class Sized(np.ndarray):
    def size(self, axis):  # pylint: disable=invalid-overridden-method
        return self.shape[axis]


def write(name, records):
    lines = "".join(json.dumps({**record, "line": i}, ensure_ascii=False) + "\n" for i, record in enumerate(records, 1))
    (FOLDER / f"{name}.jsonl").write_text(lines)


def documents(rng, n):
    return [{"title": story(rng, 1)[:12], "text": story(rng, rng.randint(1, 2)) + rng.choice(["", " {context} {0} <|im_end|>"])}
            for _ in range(n)]


def questions(rng, n, n_depths, n_documents, fields=lambda i: {}):
    for i in range(n):
        question = f"who {words(rng, 3).strip()} {i}?"
        for _ in range(n_depths):
            yield {"question": question, "answers": [words(rng, 2).strip(), f"a {i}"], "ctxs": documents(rng, n_documents),
                   **fields(i)}


def rankings(rng, qids, n_documents):
    for qid in qids:
        ids = [str(i) for i in rng.sample(range(1, 40), n_documents)]
        yield {"qid": qid, "query": story(rng, 1),
               "ctxs": [{"id": i, "text": story(rng, 1), "label": rng.randint(0, 3)} for i in ids]}


def write_samples():
    rng = random.Random(1)
    def key_values(n):
        return {f"{rng.getrandbits(64):016x}": f"{rng.getrandbits(64):016x}" for _ in range(n)}
    def of_json(n):
        pairs = key_values(n)
        key = rng.choice(list(pairs))
        return {"context": "JSON data:\n" + json.dumps(pairs), "question": key, "answer": pairs[key], "num_kvs": n,
                "demos": [list(pair) for pair in key_values(3).items()]}
    write("json_kv", [of_json(9) for _ in range(7)])
    write("nq", questions(rng, 7, 2, 3))
    write("nq_demos", questions(rng, 6, 3, 2))
    popularity = lambda first: lambda i: {"id": first + i, "s_pop": [12, 999, 1000, 5][i % 4]}
    write("popqa", questions(rng, 9, 1, 3, popularity(98)))
    write("popqa_demos", questions(rng, 9, 2, 2, popularity(98)))
    write("msmarco", rankings(rng, ["q1", "q2", "q3", "q4"], 12))
    write("msmarco_demos", rankings(rng, ["q2", "q3", "q5", "q6", "q7", "q7", "q8"], 4))
    needle = lambda: {"context": story(rng, 8), "query": "tall-tree", "type_needle_v": "numbers", "outputs": ["12", "345"]}
    write("niah_multikey_2", [{**needle(), "type_needle_v": "number"} for _ in range(3)])
    write("niah_multivalue", [needle() for _ in range(3)])
    write("vt", [{"context": story(rng, 8), "query": "97", "num_v": 5, "example": rng.choice(["", "An example."]),
                  "outputs": ["AB", "CD"]} for _ in range(3)])
    write("cwe", [{"context": "1. a 2. b", "example": "Another example.", "outputs": ["a", "b"]} for _ in range(2)])
    write("fwe", [{"context": "aaa .... bbb", "answer": ["aaa", "bbb"]} for _ in range(2)])
    write("qa_1", [{"context": story(rng, 6), "question": "Where?", "outputs": ["the keeper", "Ærø"]} for _ in range(2)])


def prompts_of(modules, tokenizer, name, file, demos=None, *, samples=100, shots=2, max_length=100_000):
    data, models = modules
    random.seed(42)
    arguments = types.SimpleNamespace(max_test_samples=samples, shots=shots, seed=42)
    loaded = data.load_data(arguments, name, str(FOLDER / f"{file}.jsonl"), str(FOLDER / f"{demos}.jsonl"))
    items = []
    for sample in loaded["data"]:
        sample = dict(sample)
        models.tokenize(sample, loaded, Tokenizer(tokenizer), max_length, N_NEW.get(name, 50))
        answers = sample["answer"] if isinstance(sample["answer"], list) else [sample["answer"]]
        items.append({"line": sample["line"], "text": loaded["prompt_template"].format(**sample), "answers": answers})
    items.sort(key=lambda item: item["line"])
    return {"file": file, "demos": demos, "set": name, "samples": samples, "shots": shots, "max_length": max_length,
            "items": items}


def all_prompts(modules, tokenizer):
    with_demos = (("kilt_nq", "nq"), ("kilt_popqa_3", "popqa"), ("msmarco_rerank_psg", "msmarco"))
    for name, file in with_demos:
        for options in ({}, {"samples": 3}, {"samples": 1, "max_length": 700}, {"samples": 2, "shots": 0}):
            yield prompts_of(modules, tokenizer, name, file, f"{file}_demos", **options)
    for options in ({}, {"samples": 3}, {"shots": 3, "max_length": 500}, {"samples": 2, "shots": 0}):
        yield prompts_of(modules, tokenizer, "json_kv", "json_kv", **options)
    for name, file in RULER_FILES.items():
        for options in ({}, {"samples": 2, "max_length": 180}):
            yield prompts_of(modules, tokenizer, name, file, **options)


def text_pair(rng):
    prediction, answers, _ = qa_pair(rng)
    if rng.random() < 0.3:
        prediction, answers = rng.choice(["yes", "No.", "no answer", "the yes"]), [rng.choice(["yes", "no", "noanswer"])]
    if rng.random() < 0.3:
        said = [rng.choice(ROOTS) + rng.choice(SUFFIXES) for _ in range(rng.randint(1, 6))]
        answers = [" ".join(changed(rng, word) if rng.random() < 0.3 else word for word in said)]
        prediction = " ".join(rng.choice(said) for _ in range(rng.randint(0, 6)))
    marks = ["", "", "Answer:", "answer: ", "ANSWER:answer:", "An\u017fwer: ", "Corresponding value: ", "correspond\u0131ng VALUE:",
             "\n", " \n", "\x1c", "corresponding value: corresponding value:", "answers: "]
    return rng.choice(marks) + prediction + rng.choice(["", "\n", "\nmore text", "\nAnswer: " + answers[0]]), answers


def text_scores(data):
    for name, begin in (("kilt_nq", "Answer:"), ("json_kv", "Corresponding value:")):
        rng, pairs = random.Random(name), []
        process = data.default_post_process if name == "kilt_nq" else data.load_json_kv(
            str(FOLDER / "json_kv.jsonl"), 2)["post_process"]
        while len(pairs) < N_PAIRS:
            prediction, answers = text_pair(rng)
            scores, _ = process({"output": begin + prediction}, {"answer": answers})
            pairs.append([prediction, answers, [float(scores[metric]) for metric in METRICS]])
        for i, metric in enumerate(METRICS):
            print(name, metric, "mean", sum(pair[2][i] for pair in pairs) / N_PAIRS, "distinct", len({pair[2][i] for pair in pairs}))
        yield {"set": name, "begin": begin, "pairs": pairs}


def recall_scores(data):
    rng = random.Random(5)
    begin, process = "The numbers are ΟΔΟΣ", data.load_ruler("ruler_niah_mv", str(FOLDER / "niah_multivalue.jsonl"))["post_process"]
    for _ in range(N_PAIRS):
        answers = [rng.choice(["12", "345", "ΟΔΟΣ", "are", "İ", "i\u0307", "straße", "STRASSE", words(rng, 1).strip()])
                   for _ in range(rng.randint(1, 4))]
        prediction = " ".join(rng.choice([answer, answer.upper(), answer.lower(), words(rng, 1)]) for answer in answers)
        prediction = prediction[: rng.randint(0, 2 * len(prediction))]
        scores, _ = process({"output": begin + prediction}, {"answer": answers})
        yield [prediction, answers, scores["ruler_recall"]]


def ranking_scores(data):
    rng = random.Random(6)
    loaded = data.load_msmarco_rerank(str(FOLDER / "msmarco.jsonl"), str(FOLDER / "msmarco_demos.jsonl"))
    example = loaded["data"][0]
    ids = [i for i, _ in example["qrel"]]
    pairs = []
    while len(pairs) < N_PAIRS:
        said = rng.sample(ids, rng.randint(0, 12)) + [rng.choice(["99", "٣", "07", "iidd1", "x"]) for _ in range(rng.randint(0, 2))]
        if rng.random() < 0.3:
            said = sorted(said, key=lambda i: -dict(example["qrel"]).get(i, "0").__len__())
        form = rng.choice(["{}", "ID{}", "[{}]", "[ID: {}]", "id {}", "Doc {}"])
        text = rng.choice([" > ", ">", "\n>", "> ", " ,", " >\u3000"]).join(form.format(i) for i in said)
        prediction = rng.choice(["", " ", "12 > 13 ", "Ranking: ", "2024. "]) + text + rng.choice(["", ">", "\n1 > 2", " > and 5"])
        scores, others = loaded["post_process"]({"output": "Ranking:" + prediction}, example)
        ranked = others["parsed_output"]
        pairs.append([prediction, sorted(ranked, key=lambda i: -ranked[i]), scores["NDCG@10"]])
    print("NDCG@10 mean", sum(pair[2] for pair in pairs) / N_PAIRS, "distinct", len({pair[2] for pair in pairs}))
    return {"begin": "Ranking:", "labels": [[i, int(label)] for i, label in example["qrel"]], "pairs": pairs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helmet", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    head = ["git", "-C", str(arguments.helmet), "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout
    assert commit.startswith(COMMIT), f"{arguments.helmet} is at {commit}, not at {COMMIT}"

    FOLDER.mkdir(exist_ok=True)
    write_samples()
    modules = load_modules(arguments.helmet)
    document = {"about": "scripts/golden/helmet.py",
                "prompts": list(all_prompts(modules, default_tokenizer(arguments.model))),
                "texts": list(text_scores(modules[0])), "metrics": METRICS,
                "recall": {"begin": "The numbers are ΟΔΟΣ", "pairs": list(recall_scores(modules[0]))},
                "rankings": ranking_scores(modules[0]),
                "permutations": [[n, seed, np.random.default_rng(seed).permutation(n)[:8].tolist()]
                                 for n, seed in ((1, 0), (2, 42), (9, 1), (1000, 42), (70_000, 2**31 - 1), (33, 2**40))],
                "stems": sorted({(root + suffix, PorterStemmer().stem(root + suffix)) for root in ROOTS for suffix in SUFFIXES})}
    print(len(document["prompts"]), "options,", sum(len(one["items"]) for one in document["prompts"]), "prompts,",
          len(document["stems"]), "stems")
    (FOLDER / "golden.json").write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
