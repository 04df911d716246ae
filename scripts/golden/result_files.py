"""Writes tests/data/results: files with results as kvpress and lm-eval write them, and the scores of all samples.

The saving code, the scorers and the metrics are the originals': evaluation/ of kvpress at commit 8bb29b9, and lm-eval 0.4.13.
Models are replaced by lists of answers, and kvpress's presses by classes without methods. Packages of these programs that
saving does not need are replaced by empty modules.

    python3 -m venv VENV; VENV/bin/pip install lm_eval==0.4.13 pandas==2.3.3 pyyaml rouge==1.0.1 jieba==0.42.1 fuzzywuzzy==0.18.0
    VENV/bin/python scripts/golden/result_files.py --kvpress FOLDER
"""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import warnings

import numpy
import pandas

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "results"
COMMIT = "8bb29b9"
MODEL = "org/tiny-model"


class Press:
    def __init__(self, *presses, **fields):
        self.presses = presses
        self.__dict__.update(fields)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items() if value)})"


@dataclasses.dataclass
class SnapKVPress:
    compression_ratio: float = 0.0
    window_size: int = 64
    kernel_size: int = 5


@dataclasses.dataclass
class DMSPress:
    press: object = None
    threshold: float = 0.0


class Stub(types.ModuleType):
    """A module in which every name is a class."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "inference_mode":
            return lambda: lambda function: function
        made = type(name, (Press,), {})
        setattr(self, name, made)
        return made


def stub(*names):
    for name in names:
        sys.modules[name] = Stub(name)


def texts(*strings):
    """A list of strings as a data set of Hugging Face gives it to pandas."""
    return numpy.array(strings, dtype=object)


RULER = pandas.DataFrame([
    {"context": "c0", "question": "What is the special magic number for \"a, b\"?\n", "answer_prefix": "The special magic",
     "answer": texts("1234567"), "task": "niah_single_1", "max_new_tokens": 128},
    {"context": "c1", "question": "What are all\nthe special magic numbers?", "answer_prefix": "The special magic",
     "answer": texts("7654321", "Ünï"), "task": "niah_multiquery", "max_new_tokens": 128},
    {"context": "c2", "question": "Question: Find all variables", "answer_prefix": "Answer:",
     "answer": texts("VAR ONE", "it's", 'say "x"', "both ' and \""), "task": "vt", "max_new_tokens": 30},
    {"context": "c3", "question": "Answer the question", "answer_prefix": "Answer:",
     "answer": texts(*[f"a rather long answer number {i}" for i in range(6)]), "task": "qa_1", "max_new_tokens": 32},
    {"context": "c4", "question": "", "answer_prefix": "Answer:", "answer": texts("the end\\of"), "task": "qa_2", "max_new_tokens": 32},
])
RULER_ANSWERS = {
    "no_press": [" 1234567.", "It is 7654321, and ÜNÏ", "var one, it's, say \"x\", both ' and \"", "A RATHER LONG ANSWER NUMBER 3", "THE END\\OF\n"],
    "snapkv": ["123\n4567", "7654\x0b321 \r\n ünï", "VAR\tONE it's", "none, of them", "the end\\of"],  # control characters
    "kvzap_mlp": ["1234568", "", "VAR ONE", "a rather long answer number 0", "x"],
}
CLASSES = texts("Number of something", "Other number", "Date", "Other")
TREC = pandas.DataFrame([{"question": f"Question {i}", "context": f"t{i}", "answers": texts(answer), "length": 4000 + 3000 * i,
                          "dataset": "trec", "language": "en", "all_classes": CLASSES, "_id": f"id{i}", "answer_prefix": "Type:",
                          "task": "trec", "max_new_tokens": 84} for i, answer in enumerate(["Date", "Other number", "Date"])])
TREC_ANSWERS = ["\n  Date\nQuestion: more", " Other number of something", "Number of something, Date"]
LCC = pandas.DataFrame([{"question": "", "context": f"l{i}", "answers": texts("    return value"), "length": 10, "dataset": "lcc",
                         "language": "python", "all_classes": None, "_id": f"id{i}", "answer_prefix": "", "task": "lcc",
                         "max_new_tokens": 84} for i in range(3)])
LCC_ANSWERS = ["    return value", "\n# a comment\n    return x", "    `` \n return values"]
QASPER = pandas.DataFrame([{"question": f"Q{i}", "context": f"q{i}", "answers": texts("the keeper", "a letter"), "length": length,
                            "dataset": "qasper", "language": "en", "all_classes": None, "_id": f"id{i}", "answer_prefix": "Answer:",
                            "task": "qasper", "max_new_tokens": 148} for i, length in enumerate([10, 3999, 4000, 9000])])
QASPER_ANSWERS = ["The keeper.", "a long letter", "nothing", "keeper keeper"]
V2 = pandas.DataFrame([{"_id": f"v{i}", "domain": "d", "sub_domain": "s", "difficulty": difficulty, "length": length, "question": "Q",
                        "choice_A": "a", "choice_B": "b", "choice_C": "c", "choice_D": "d", "answer": "B", "context": f"v{i}",
                        "max_new_tokens": 16, "answer_prefix": ""}
                       for i, (difficulty, length) in enumerate([("easy", "short"), ("hard", "long"), ("hard", "short")])])
V2_ANSWERS = ["The correct answer is **(B)**", "The correct answer is B", "The correct answer is (C)"]
NEEDLE = pandas.DataFrame([{"context": "n0", "needle": "The best thing is to eat a sandwich.", "needle_depth": 50, "question": "What is best?",
                            "answer_prefix": "The best", "max_new_tokens": 50}])
NEEDLE_ANSWERS = ["thing is to eat a sandwich in a park."]


def write_kvpress(folder):
    """Returns the scores of the samples of each folder."""
    stub("torch", "datasets", "fire", "transformers", "nltk", "nltk.translate", "nltk.translate.bleu_score",
         "nltk.translate.meteor_score", "bert_score", "kvpress")
    sys.modules["kvpress"].SnapKVPress, sys.modules["kvpress"].DMSPress = SnapKVPress, DMSPress
    sys.path.insert(0, str(folder / "evaluation"))
    import evaluate  # pylint: disable=import-outside-toplevel
    from benchmarks.longbench import calculate_metrics as longbench  # pylint: disable=import-outside-toplevel
    from benchmarks.longbenchv2 import calculate_metrics as longbench_v2  # pylint: disable=import-outside-toplevel
    from benchmarks.ruler import calculate_metrics as ruler  # pylint: disable=import-outside-toplevel
    scores = {}

    def score_of(dataset, row):
        if dataset == "ruler":
            (task,) = ruler.calculate_metrics(pandas.DataFrame([row])).values()
            return task["string_match"] / 100
        if dataset == "longbench":
            return longbench.calculate_metrics(pandas.DataFrame([row])) / 100
        if dataset == "longbench-e":
            of_bucket = longbench.calculate_metrics_e(pandas.DataFrame([row]))
            return next(value for value in of_bucket.values() if not numpy.isnan(value)) / 100
        if dataset == "longbench-v2":
            return float(longbench_v2.score(row["predicted_answer"], row["answer"]))
        return None

    def write(frame, answers, **settings):
        config = evaluate.EvaluationConfig(model=MODEL, output_dir=".", **settings)
        runner = evaluate.EvaluationRunner.__new__(evaluate.EvaluationRunner)
        runner.config, runner.df = config, frame.copy()
        place = config.get_results_dir(FOLDER / "kvpress")
        runner._setup_press()  # pylint: disable=protected-access
        runner.df["predicted_answer"] = answers
        runner.df["compression_ratio"] = 0.72 if config.threshold else config.compression_ratio
        if config.query_aware:
            runner.df["question"] = ""
        scores[place.relative_to(FOLDER).as_posix()] = [score_of(config.dataset, row) for _, row in runner.df.iterrows()]
        runner._save_results(place / "predictions.csv")  # pylint: disable=protected-access
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # means of no numbers
            runner._calculate_and_save_metrics(place / "metrics.json")  # pylint: disable=protected-access
        config.save_config(place / "config.yaml")
        return place

    ruler_settings = {"dataset": "ruler", "data_dir": "4096"}
    write(RULER, RULER_ANSWERS["no_press"], press_name="no_press", **ruler_settings)
    write(RULER, RULER_ANSWERS["snapkv"], press_name="snapkv", compression_ratio=0.5, **ruler_settings)
    write(RULER, RULER_ANSWERS["kvzap_mlp"], press_name="kvzap_mlp", threshold=-4.0, **ruler_settings)
    write(RULER, RULER_ANSWERS["no_press"], press_name="snapkv", compression_ratio=0.7, query_aware=True, **ruler_settings)
    write(TREC, TREC_ANSWERS, dataset="longbench", data_dir="trec", press_name="snapkv", compression_ratio=0.5)
    write(LCC, LCC_ANSWERS, dataset="longbench", data_dir="lcc", press_name="snapkv", compression_ratio=0.5)
    write(QASPER, QASPER_ANSWERS, dataset="longbench-e", data_dir="qasper_e", press_name="snapkv", compression_ratio=0.5)
    write(V2, V2_ANSWERS, dataset="longbench-v2", data_dir="0shot", press_name="snapkv", compression_ratio=0.5)
    needle = write(NEEDLE, NEEDLE_ANSWERS, dataset="needle_in_haystack", press_name="snapkv", compression_ratio=0.5, needle_depth=50,
                   max_context_length=2000)
    metrics = json.loads((needle / "metrics.json").read_text())
    scores[needle.relative_to(FOLDER).as_posix()] = [sample["rouge-l"]["f"] for sample in metrics]
    sys.path.pop(0)  # lm-eval needs another module `evaluate`
    for name in [name for name in sys.modules if isinstance(sys.modules[name], Stub) or name.split(".")[0] in ("evaluate", "benchmarks")]:
        del sys.modules[name]
    return scores


GENERATION = """
task: colors
dataset_path: json
dataset_kwargs: {data_files: {test: colors.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: false, ignore_punctuation: true}]
filter_list:
  - {name: strict-match, filter: [{function: regex, regex_pattern: "It is (\\\\w+)"}, {function: take_first}]}
  - {name: flexible-extract, filter: [{function: regex, regex_pattern: "(red|green|blue)"}, {function: take_first}]}
"""
CHOICE = """
task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: choices.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{question}}"
doc_to_choice: ["left", "right", "up"]
doc_to_target: label
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}, {metric: acc_norm, aggregation: mean, higher_is_better: true}]
"""
NEEDLES = """
task: niah_single_1
dataset_path: json
dataset_kwargs: {data_files: {test: needles.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "{{input}}"
doc_to_target: "{{outputs}}"
process_results: !function needles.process_results
metric_list:
  - {metric: "4096", aggregation: !function needles.aggregate_metrics, higher_is_better: true}
  - {metric: "8192", aggregation: !function needles.aggregate_metrics, higher_is_better: true}
"""
NEEDLE_FUNCTIONS = """
import sys
import types
sys.modules["transformers"] = types.ModuleType("transformers")
sys.modules["transformers"].AutoTokenizer = None
from lm_eval.tasks.ruler.common_utils import aggregate_metrics, process_results
del sys.modules["transformers"]
"""
COLORS = [("What color is grass?", "green", "It is green."), ("The sky?", "blue", "The sky is blue"), ("\"Blood\"?", "red", "It is blue")]
CHOICES = [("Which side?", 1, [-3.0, -1.5, -2.0]), ("And then?", 0, [-3.0, -1.5, -2.0])]
NUMBERS = [("Find a", ["123", "456"], 4096, "123 and 45\x0b6"), ("Find b", ["789"], 8192, " 789"), ("Find c", ["1"], 8192, "none")]


def write_lm_eval():
    import lm_eval  # pylint: disable=import-outside-toplevel
    from lm_eval.api.model import LM  # pylint: disable=import-outside-toplevel
    from lm_eval.loggers import EvaluationTracker  # pylint: disable=import-outside-toplevel
    from lm_eval.tasks import TaskManager  # pylint: disable=import-outside-toplevel

    answers = {question: answer for question, _, answer in COLORS} | {question: answer for question, _, _, answer in NUMBERS}
    likelihoods = {question: of for question, _, of in CHOICES}

    class Answers(LM):
        def generate_until(self, requests):  # pylint: disable=arguments-differ
            return [answers[request.args[0]] for request in requests]

        def loglikelihood(self, requests):
            choices = ["left", "right", "up"]
            return [(likelihoods[request.args[0]][choices.index(request.args[1].strip())], False) for request in requests]

        def loglikelihood_rolling(self, requests):
            raise NotImplementedError

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        for task, text in ("colors", GENERATION), ("choices", CHOICE), ("needles", NEEDLES):
            (folder / f"{task}.yaml").write_text(text)
        (folder / "needles.py").write_text(NEEDLE_FUNCTIONS)
        lines = lambda records: "".join(json.dumps(record) + "\n" for record in records)
        (folder / "colors.jsonl").write_text(lines({"question": question, "answer": answer} for question, answer, _ in COLORS))
        (folder / "choices.jsonl").write_text(lines({"question": question, "label": label} for question, label, _ in CHOICES))
        (folder / "needles.jsonl").write_text(lines({"input": question, "outputs": outputs, "max_length": length}
                                                    for question, outputs, length, _ in NUMBERS))
        tracker = EvaluationTracker(output_path=str(FOLDER / "lm-eval"))
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        results = lm_eval.simple_evaluate(model=Answers(), model_args=f"pretrained={MODEL},dtype=float", tasks=["colors", "choices", "niah_single_1"],
                                          task_manager=manager, log_samples=True, evaluation_tracker=tracker, random_seed=7)
        os.chdir(FOLDER)
    samples = results.pop("samples")
    results["pretty_env_info"] = "left out"  # describes the machine
    for config in results["configs"].values():
        config.pop("process_results", None)  # source text
        config["metadata"].pop("config_source")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=samples[task])
    return {task: {filter_name: [{key: value for key, value in sample.items() if key in sample["metrics"]}
                                 for sample in of_task if sample["filter"] == filter_name]
                   for filter_name in {sample["filter"] for sample in of_task}} for task, of_task in samples.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvpress", type=pathlib.Path, required=True, help="kvpress's repository")
    folder = parser.parse_args().kvpress.resolve()
    commit = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert commit.startswith(COMMIT), f"{folder} is at {commit}, not at {COMMIT}"
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    document = {"about": "scripts/golden/result_files.py", "kvpress": write_kvpress(folder), "lm_eval": write_lm_eval()}
    (FOLDER / "scores.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
