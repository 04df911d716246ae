#!/usr/bin/env python3
"""`import` reads result files of kvpress and lm-eval, and `export --results` writes them.

tests/data/results has files that the programs' own code wrote, and the scores of all samples (scripts/golden/result_files.py).
"""

import collections
import csv
import io
import json
import math
import re
import shutil
import unittest

import h5py

from program import HF_MODEL, NEEDS_ENGINE, SOURCE, TEXT, ProgramTest, csv_rows, jsonl_rows

DATA = SOURCE / "tests" / "data" / "results"
SCORES = json.loads((DATA / "scores.json").read_text(encoding="utf-8"))
MODEL = "org/tiny-model"


def text(value):
    return value.decode() if isinstance(value, bytes) else value.item()


def tables_of(path):
    """Returns the rows of each table of results as dictionaries."""
    with h5py.File(path) as trace:
        return {task: [{name: text(row[name]) for name in table.dtype.names} for row in table[:]]
                for task, table in trace["results"].items()}


def folder_of(row):
    """Returns the folder of tests/data/results from which a row was read."""
    press = {"full": "no_press"}.get(row["policy"], row["policy"])
    ratio = {"full": "0.00", "kvzap_mlp": "-4.00"}.get(row["policy"], f"{1 - row['budget_fraction']:.2f}")
    name = row["sample_id"].rsplit("-", 1)[0]
    ending = "__query_aware" if row["question_seen"] == 1 else ""
    if name.startswith("needle"):
        return f"kvpress/needle_in_haystack__org--tiny-model__{press}__{ratio}__max_context2000__needle_depth50"
    dataset, part = next((name[:len(known)], name[len(known) + 1:]) for known in ("longbench-v2", "longbench-e", "longbench", "ruler")
                         if name.startswith(known + "-"))
    return f"kvpress/{dataset}__{part}__org--tiny-model__{press}__{ratio}{ending}"


class Read(ProgramTest):
    """Files that the originals wrote."""

    @classmethod
    def prepare(cls):
        cls.said = cls.made("import", DATA / "kvpress", DATA / "lm-eval", "-o", "all.h5").stderr
        cls.tables = tables_of(cls.folder / "all.h5")

    def copy(self, part, name):
        shutil.copytree(DATA / part, self.path(name))
        return self.path(name)

    def test_every_score_of_kvpress(self):
        found = collections.defaultdict(dict)
        for rows in self.tables.values():
            for row in rows:
                if row["source"] == "kvpress":
                    found[folder_of(row)][int(row["sample_id"].rsplit("-", 1)[1])] = row
        self.assertEqual(sorted(found), sorted(SCORES["kvpress"]))
        for folder, expected in SCORES["kvpress"].items():
            with self.subTest(folder):
                self.assertEqual(sorted(found[folder]), list(range(len(expected))))
                for i, score in enumerate(expected):
                    self.assertAlmostEqual(found[folder][i]["score"], score, delta=5.1e-5, msg=found[folder][i]["prediction"])

    def test_rows_of_kvpress(self):
        rows = [row for row in self.tables["ruler"] if row["source"] == "kvpress"]
        self.assertEqual({row["model"] for row in rows}, {MODEL})
        self.assertEqual({row["length"] for row in rows}, {4096})
        self.assertEqual({(row["policy"], row["requested_budget"], row["question_seen"]) for row in rows},
                         {("full", "1", 0), ("snapkv", "0.5", 0), ("kvzap_mlp", "0.28", 0), ("snapkv", "0.3", 1)})
        self.assertEqual({row["subset"]: row["metric"] for row in rows},
                         {"niah_single_1": "string_match_all", "niah_multiquery": "string_match_all", "vt": "string_match_all",
                          "qa_1": "string_match_part", "qa_2": "string_match_part"})
        answers = {row["subset"]: json.loads(row["answers_json"]) for row in rows}
        self.assertEqual(answers["vt"], ["VAR ONE", "it's", 'say "x"', "both ' and \""])
        self.assertEqual(answers["niah_multiquery"], ["7654321", "Ünï"])
        self.assertEqual(answers["qa_1"], [f"a rather long answer number {i}" for i in range(6)])
        self.assertEqual(answers["qa_2"], ["the end\\of"])
        predictions = {row["prediction"] for row in rows if row["policy"] == "snapkv" and row["question_seen"] == 0}
        self.assertLessEqual({"123\n4567", "7654\x0b321 \r\n ünï", "VAR\tONE it's"}, predictions)
        self.assertEqual({row["scored_as"] for row in rows}, {"ruler as in kvpress"})
        press = next(json.loads(row["parameters_json"]) for row in rows if row["policy"] == "snapkv")
        self.assertEqual(press, {"press": "SnapKVPress(window_size=64, kernel_size=5)"})
        for row in rows:
            self.assertTrue(math.isnan(row["seconds"]))
        of_v2 = [row["subset"] for row in self.tables["longbench-v2"]]
        self.assertEqual(of_v2, ["easy/short", "hard/long", "hard/short"])
        self.assertEqual({row["subset"] for row in self.tables["longbench"]}, {"trec", "lcc", "qasper_e/0-4k", "qasper_e/4-8k", "qasper_e/8k+"})

    def test_the_rows_of_a_sample_are_consecutive(self):
        rows = [row for row in self.tables["ruler"] if row["source"] == "kvpress" and row["question_seen"] == 0]
        self.assertEqual([row["policy"] for row in rows[:3]], ["full", "kvzap_mlp", "snapkv"])
        self.assertEqual(len({row["sample_id"] for row in rows[:3]}), 1)

    def test_rows_of_lm_eval(self):
        rows = self.tables["colors"]
        self.assertEqual([row["score"] for row in rows], [sample["exact_match"] for sample in SCORES["lm_eval"]["colors"]["strict-match"]])
        self.assertEqual([row["prediction"] for row in rows], ["green", "[invalid]", "blue"])
        self.assertEqual([json.loads(row["answers_json"]) for row in rows], [["green"], ["blue"], ["red"]])
        self.assertEqual({(row["source"], row["model"], row["policy"], row["metric"], row["seed"]) for row in rows},
                         {("lm-eval", MODEL, "full", "exact_match", 7)})
        self.assertEqual([row["prediction"].strip() for row in self.tables["choices"]], ["right", "right"])
        self.assertEqual([row["score"] for row in self.tables["choices"]], [1, 0])
        needles = [row for row in self.tables["ruler"] if row["source"] == "lm-eval"]
        self.assertEqual([(row["length"], row["score"], row["subset"]) for row in needles],
                         [(4096, 0.5, "niah_single_1"), (8192, 1, "niah_single_1"), (8192, 0, "niah_single_1")])

    def test_the_metric_is_chosen(self):
        self.refuses(1, ["choices", "found none of the filter"], "import", DATA / "lm-eval", "--metric",
                     "exact_match,flexible-extract", "-o", "flexible.h5", "-q")  # the other tasks have no such filter
        rows = tables_of(self.path("flexible.h5"))["colors"]
        self.assertEqual([row["score"] for row in rows],
                         [sample["exact_match"] for sample in SCORES["lm_eval"]["colors"]["flexible-extract"]])

    def test_the_trace_opens_like_others(self):
        said = self.made("inspect", "all.h5").stdout
        self.assertIn("no errors", said)
        self.assertNotIn("allow more tokens", said)  # -n is an option of kvscope
        self.assertIn(f"imported results of {MODEL}, computed by kvpress, lm-eval", said)
        self.assertIn("snapkv:window_size=64,kernel_size=5 (kvpress)", said)
        rows = csv_rows(self.made("inspect", "all.h5", "--format", "csv").stdout)
        self.assertTrue(rows)
        self.made("export", "all.h5", "--figure", "results-table", "-o", "all.pdf")
        self.made("export", "all.h5", "--figure", "results-table", "--rows", "policy,subset", "-o", "all.csv")
        table = csv_rows(self.path("all.csv").read_text())
        row = next(row for row in table if (row["task"], row["policy"], row["subset"], row["budget"]) ==
                   ("ruler", "snapkv:window_size=64,kernel_size=5 (kvpress)", "vt", "50 %"))
        self.assertAlmostEqual(float(row["mean"]), SCORES["kvpress"]["kvpress/ruler__4096__org--tiny-model__snapkv__0.50"][2], places=4)
        self.assertIn("program (kvpress, lm-eval)", row["differs"])
        self.assertIn("question", row["differs"])

    def test_questions(self):
        for folder in (DATA / "kvpress").iterdir():
            with self.subTest(folder.name):
                self.made("import", folder, "-o", "questions.h5", "--force")
                with open(folder / "predictions.csv", encoding="utf-8", newline="") as file:
                    expected = sorted((row["predicted_answer"], row["question"]) for row in csv.DictReader(file))
                of_full = ("--run", "full") if "no_press" in folder.name else ()
                self.made("export", "questions.h5", "--ranking", "samples", *of_full, "-o", "questions.csv", "--force")
                ranking = csv_rows(self.path("questions.csv").read_bytes().decode())
                self.assertEqual(sorted((row["answer"], row["question"]) for row in ranking), expected)

    def test_a_second_import(self):
        command = ("import", DATA / "kvpress", "-o", "again.h5")
        self.made(*command)
        before = self.path("again.h5").read_bytes()
        self.assertIn("nothing to do", self.made(*command).stderr)
        self.assertEqual(self.path("again.h5").read_bytes(), before)
        self.refuses(1, ["again.h5 exists", "--force"], "import", DATA / "lm-eval", "-o", "again.h5")

    def test_broken_and_missing_files_of_kvpress(self):
        press = "ruler__4096__org--tiny-model__snapkv__0.50"
        folder = self.copy("kvpress", "broken") / press
        whole = (folder / "predictions.csv").read_text(encoding="utf-8")

        def refused(*messages):
            self.refuses(1, [str(folder), *messages], "import", folder, "-o", "no.h5")
            self.assertFalse(self.path("no.h5").exists())

        (folder / "predictions.csv").write_text(whole.replace("predicted_answer", "pred"), encoding="utf-8")
        refused("expected a column predicted_answer")
        (folder / "predictions.csv").write_text(whole + "1,2\n", encoding="utf-8")
        refused("expected 7 fields", "found 2", "Copy the file again")
        (folder / "predictions.csv").write_text(whole + '"open', encoding="utf-8")
        refused("quotation mark")
        (folder / "predictions.csv").write_text("", encoding="utf-8")
        refused("predicted_answer")
        (folder / "predictions.csv").unlink()
        refused("predictions.csv", "found none")
        (folder / "predictions.csv").write_text(whole, encoding="utf-8")
        for config, messages in (("a: [", ["config.yaml", "YAML"]), ("text", ["config.yaml", "settings"]), ("dataset: ruler\n", ["model"]),
                                 ("dataset: a/b\nmodel: m\npress_name: p\n", ["a/b"]), ("[" * 5000, ["config.yaml"])):
            (folder / "config.yaml").write_text(config)
            refused(*messages)
        shutil.copy(DATA / "kvpress" / press / "config.yaml", folder)
        (folder / "metrics.json").write_text("{")
        refused("metrics.json", "JSON")
        (folder / "metrics.json").write_text('{"vt": {"string_match": 99.0}}')
        self.assertIn("the score of vt is 99.00, but the predictions give 25.00",
                      self.made("import", folder, "-o", "other.h5").stderr)
        (folder / "metrics.json").write_text('{"vt": {"string_match": 25.0}, "cwe": {"string_match": 1}, "fwe": {"string_match": 2}}')
        said = self.made("import", folder, "-o", "missing.h5").stderr
        self.assertIn("metrics.json: expected predictions of cwe, fwe in predictions.csv", said)
        (folder / "config.yaml").unlink()
        said = self.refuses(1, ["left out", "config.yaml"], "import", self.path("broken"), "-o", "rest.h5", "-q")
        self.assertEqual(said.count("left out"), 1)
        self.assertEqual(len([row for row in tables_of(self.path("rest.h5"))["ruler"] if row["policy"] == "snapkv"]), 5)

    def test_data_sets_without_a_scorer(self):
        folder = self.copy("kvpress", "unknown") / "ruler__4096__org--tiny-model__snapkv__0.50"
        config = (folder / "config.yaml").read_text()
        (folder / "config.yaml").write_text(config.replace("dataset: ruler", "dataset: zero_scrolls"))
        self.refuses(1, ["zero_scrolls", "5 of 5 predictions"], "import", folder, "-o", "no.h5")
        # kvscope's tasks of these names have scorers of sets, which options choose.
        for task in "scbench", "helmet", "infinitebench", "loogle", "niah", "gsm8k", "math500", "aime":
            with self.subTest(task):
                (folder / "config.yaml").write_text(config.replace("dataset: ruler", f"dataset: {task}"))
                self.refuses(1, [task, "5 of 5 predictions"], "import", folder, "-o", "no.h5")
        (folder / "config.yaml").write_text(config.replace("dataset: ruler", "dataset: jsonl"))
        self.made("import", folder, "-o", "jsonl.h5")
        self.assertEqual({row["metric"] for row in tables_of(self.path("jsonl.h5"))["jsonl"]}, {"string_match_part"})

    def test_numbers_that_no_integer_holds(self):
        folder = self.copy("kvpress", "numbers") / "ruler__4096__org--tiny-model__snapkv__0.50"
        config = (folder / "config.yaml").read_text()
        for length in "1e300", "1e18", "99999999999999999999", "-5":
            with self.subTest(length):
                (folder / "config.yaml").write_text(re.sub("data_dir: .*", f"data_dir: '{length}'", config))
                self.made("import", folder, "-o", "length.h5", "--force")
                self.assertEqual({row["length"] for row in tables_of(self.path("length.h5"))["ruler"]}, {0})
        self.made("export", "length.h5", "--figure", "results-table", "--rows", "length", "-o", "length.csv")
        self.assertEqual({row["length"] for row in csv_rows(self.path("length.csv").read_text())}, {""})
        self.made("export", "length.h5", "--figure", "results-table", "--rows", "policy", "--columns", "length", "-o", "length.json")
        self.assertEqual({row["length"] for row in json.loads(self.path("length.json").read_text())}, {None})
        ranking = csv_rows(self.made("export", "length.h5", "--ranking", "samples", "--format", "csv").stdout)
        self.assertEqual({row["length"] for row in ranking}, {""})
        for seed in "1e30", "18446744073709551616", "0.5":
            with self.subTest(seed):
                (folder / "config.yaml").write_text(re.sub("seed: .*", f"seed: {seed}", config))
                self.refuses(1, ["config.yaml: seed: expected a whole number", seed], "import", folder, "-o", "no.h5")
        (folder / "config.yaml").write_text(re.sub("seed: .*", "seed: 18446744073709551615", config))
        self.made("import", folder, "-o", "seed.h5")
        self.assertEqual({row["seed"] for row in tables_of(self.path("seed.h5"))["ruler"]}, {2**64 - 1})

    def test_an_interval_is_one_answer(self):
        folder = next(self.copy("lm-eval", "interval").iterdir())
        colors = next(folder.glob("samples_colors_*.jsonl"))
        samples = jsonl_rows(colors.read_text())
        for sample in samples:
            sample["target"] = {0: "[2,5)", 1: "[1, (2])", 2: "['a', ('b', 'c')]"}[sample["doc_id"]]
        colors.write_text("\n".join(map(json.dumps, samples)))
        self.made("import", folder, "-o", "interval.h5")
        self.assertEqual([json.loads(row["answers_json"]) for row in tables_of(self.path("interval.h5"))["colors"]],
                         [["[2,5)"], ["[1, (2])"], ["a", "b", "c"]])

    def test_a_reserved_name_of_a_task(self):
        folder = next(self.copy("lm-eval", "reserved").iterdir())
        results = next(folder.glob("results_*.json"))
        results.write_text(results.read_text().replace('"colors"', '"prompts"'))
        colors = next(folder.glob("samples_colors_*.jsonl"))
        colors.rename(folder / colors.name.replace("colors", "prompts"))
        self.refuses(1, ["samples_prompts_", "reserved", "Rename the task"], "import", results, "-o", "reserved.h5")
        self.assertEqual(sorted(tables_of(self.path("reserved.h5"))), ["choices", "ruler"])

    def test_presses_and_models_have_rows_of_their_own(self):
        """Presses that differ only in the press's text, and models, are not pooled."""
        name = "ruler__4096__org--tiny-model__snapkv__0.50"
        folder = self.copy("kvpress", "kinds") / name
        config = (folder / "config.yaml").read_text()
        self.assertIn("window_size=64", config)
        for kind, changed in (("window", config.replace("window_size=64", "window_size=8")), ("model", config.replace(MODEL, "org/other"))):
            shutil.copytree(folder, self.path(kind))
            (self.path(kind) / "config.yaml").write_text(changed)
        first, second = (f"snapkv:window_size={size},kernel_size=5 (kvpress)" for size in (64, 8))
        self.made("import", folder, "window", "-o", "window.h5")
        self.made("import", folder, "model", "-o", "model.h5")
        for trace, labels in (("window.h5", [first, second]), ("model.h5", [f"{first}, org/other", f"{first}, {MODEL}"])):
            with self.subTest(trace):
                rows = csv_rows(self.made("inspect", trace, "--format", "csv").stdout)
                self.assertEqual(sorted((row["policy"], row["samples"]) for row in rows), sorted((label, "5") for label in labels))
                self.made("export", trace, "--figure", "task-scores", "-o", "scores.csv", "--force")
                for label in labels:
                    self.assertIn(label, self.path("scores.csv").read_text())

    def test_broken_and_missing_files_of_lm_eval(self):
        folder = next(self.copy("lm-eval", "broken-lm").iterdir())
        results = next(folder.glob("results_*.json"))
        colors = next(folder.glob("samples_colors_*.jsonl"))
        lines = colors.read_text().splitlines()
        colors.write_text("\n".join([lines[0], "{broken", '{"doc_id": 1, "filter": "strict-match"}', *lines[1:]]))
        self.refuses(1, [f"{colors}:2", "doc_id", "1 more line"], "import", folder, "-o", "some.h5")
        self.assertEqual(len(tables_of(self.path("some.h5"))["colors"]), 3)
        colors.unlink()
        self.refuses(1, [colors.name, "--log_samples"], "import", results, "-o", "fewer.h5")
        self.assertEqual(sorted(tables_of(self.path("fewer.h5"))), ["choices", "ruler"])
        for broken in "{", "[]", '{"results": 1}':
            results.write_text(broken)
            self.refuses(1, [str(results), "results"], "import", results, "-o", "no.h5")
        results.unlink()
        self.refuses(1, ["samples_choices", "results_", "Copy it"], "import", folder, "-o", "no.h5")

    def test_other_files(self):
        self.refuses(1, ["nowhere does not exist"], "import", "nowhere", "-o", "no.h5")
        self.path("empty").mkdir()
        self.refuses(1, ["empty", "predictions.csv", "found neither"], "import", "empty", "-o", "no.h5")
        self.refuses(2, ["--output"], "import", "empty")

    def test_files_of_kvpress_are_written_again(self):
        """The same scores, answers and budgets after `import`, `export` and `import`."""
        self.made("import", DATA / "kvpress", "-o", "first.h5")
        self.made("export", "first.h5", "--results", "kvpress", "-o", "written")
        said = self.refuses(1, ["longbench__trec"], "import", "written", "-o", "second.h5", "-q")  # without all_classes
        self.assertEqual(said.count("left out"), 1)
        kept = ("policy", "requested_budget", "prediction", "answers_json", "score", "scored_as", "question_seen", "metric", "length")
        for task in "ruler", "longbench-v2", "needle_in_haystack":
            rows = [[{name: row[name] for name in kept if (task, name) != ("needle_in_haystack", "length")} |
                     {"press": json.loads(row["parameters_json"]).get("press")} for row in tables_of(self.path(name))[task]]
                    for name in ("first.h5", "second.h5")]
            key = lambda row: json.dumps(row, sort_keys=True)
            self.assertEqual(sorted(rows[0], key=key), sorted(rows[1], key=key))
        for name in "predictions.csv", "metrics.json", "config.yaml":
            press = "ruler__4096__org--tiny-model__snapkv__0.50"
            theirs, ours = ((folder / press / name).read_text(encoding="utf-8") for folder in (DATA / "kvpress", self.path("written")))
            with self.subTest(name):
                if name == "predictions.csv":
                    self.assertEqual(sorted(next(csv.reader(io.StringIO(theirs)))), sorted(next(csv.reader(io.StringIO(ours)))))
                elif name == "metrics.json":
                    self.assertEqual(theirs, ours)
                else:
                    keys = [[line.split(":")[0] for line in config.splitlines() if not line.startswith(" ")] for config in (theirs, ours)]
                    self.assertEqual(*keys)


@NEEDS_ENGINE
class Written(ProgramTest):
    """Results of a small evaluation, written and read again."""

    @classmethod
    def prepare(cls):
        run = ("-m", HF_MODEL, "--policy", "snapkv:window=8,kernel=5", "--policy", "h2o", "--budget", "24,50%", "--dtype", "f32", "-t", 1, "-n", 8, "-q")
        cls.made("eval", "--task", "niah", "--lengths", "100,200", "--depths", "0.2,0.8", "--samples", 1, *run, "-o", "niah.h5")
        cls.rows = tables_of(cls.folder / "niah.h5")["niah"]
        for program in "kvpress", "lm-eval":
            cls.made("export", "niah.h5", "--results", program, "-o", program)

    def compare(self, name, kept):
        found = tables_of(self.path(name))["niah"]
        key = lambda row: json.dumps(row, sort_keys=True)
        picked = [sorted(({column: row[column] for column in kept} for row in rows), key=key) for rows in (self.rows, found)]
        for row in picked[0]:
            row["requested_budget"] = "1" if row["policy"] == "full" else row["requested_budget"]
        self.assertEqual(sorted(picked[0], key=key), picked[1])
        self.assertEqual({row["source"] for row in found}, {""})
        self.assertIn("no errors", self.made("inspect", name).stdout)

    def test_questions(self):
        for folder in self.path("kvpress").iterdir():
            self.assertTrue(all("?" in row["question"] for row in csv_rows((folder / "predictions.csv").read_text())))
        for file in self.path("lm-eval").rglob("samples_*.jsonl"):
            self.assertTrue(all("?" in sample["doc"]["question"] for sample in jsonl_rows(file.read_text())))

    COLUMNS = ("policy", "parameters_json", "requested_budget", "prediction", "answers_json", "score", "metric", "scored_as", "length", "model",
               "dtype", "question_seen", "seed", "status")

    def test_kvpress(self):
        folders = sorted(folder.name for folder in self.path("kvpress").iterdir())
        self.assertEqual(len(folders), 2 * 5)  # lengths, runs
        self.assertIn("niah__100__llama3-gqa-sharded__no_press__0.00__query_aware", folders)
        self.assertIn("niah__200__llama3-gqa-sharded__h2o__0.50__query_aware", folders)
        rows = csv_rows((self.path("kvpress") / folders[0] / "predictions.csv").read_text())
        self.assertEqual(len(rows), 2)
        self.check_kvpress_files()
        self.made("import", "kvpress", "-o", "from-kvpress.h5")
        self.compare("from-kvpress.h5", (*self.COLUMNS, "sample_id", "sample_hash", "context_hash", "data_hash", "device"))
        # The same samples count once, also if their full runs follow each other in a table.
        self.made("import", "kvpress", "lm-eval", "-o", "twice.h5")
        self.made("export", "niah.h5", "twice.h5", "--figure", "results-table", "--against", "h2o", "-o", "twice.csv")
        rows = csv_rows(self.path("twice.csv").read_text())
        self.assertEqual({(row["n"], row["pairs"]) for row in rows if row["policy"] != "h2o"}, {("4", "4")})
        self.assertEqual({row["n"] for row in csv_rows(self.made("inspect", "twice.h5", "--format", "csv").stdout)
                          if "n" in row} - {"4"}, set())
        self.made("export", "niah.h5", "from-kvpress.h5", "--figure", "results-table", "-o", "once.csv")
        self.assertEqual({row["n"] for row in csv_rows(self.path("once.csv").read_text())}, {"4"})

    def test_scores_of_other_metrics(self):
        """A score that --score-as chose is written and read, not replaced by the task's default."""
        self.made("eval", "--task", "niah", "--lengths", 100, "--depths", "0.5", "--samples", 2, "--score-as", "kvpress", "-m", HF_MODEL,
                  "--policy", "h2o", "--budget", 24, "--dtype", "f32", "-t", 1, "-n", 8, "-q", "-o", "rouge.h5")
        self.made("export", "rouge.h5", "--results", "kvpress", "-o", "rouge")
        self.made("import", "rouge", "-o", "from-rouge.h5")
        before, after = ([(row["policy"], row["prediction"], row["metric"], row["scored_as"], row["score"])
                          for row in tables_of(self.path(name))["niah"]] for name in ("rouge.h5", "from-rouge.h5"))
        self.assertEqual(sorted(before), sorted(after))
        self.assertNotEqual({row[2] for row in before}, {"string_match_all"})
        for file in self.path("rouge").rglob("metrics.json"):
            self.assertEqual(list(json.loads(file.read_text())["niah"]), [before[0][2]])
            file.unlink()
        self.refuses(1, ["2 of 2 predictions of niah", "Export results of kvscope again"], "import", "rouge", "-o", "no.h5")

    def check_kvpress_files(self):
        """Names as in the originals' files, and the numbers of the trace."""
        theirs = DATA / "kvpress" / "ruler__4096__org--tiny-model__snapkv__0.50"
        for folder in self.path("kvpress").iterdir():
            columns = [next(csv.reader(io.StringIO((of / "predictions.csv").read_text(encoding="utf-8")))) for of in (theirs, folder)]
            self.assertEqual(*map(sorted, columns))
            keys = [[line.split(":")[0] for line in (of / "config.yaml").read_text().splitlines() if not line.startswith(" ")]
                    for of in (theirs, folder)]
            self.assertEqual(*keys)
            (command,) = re.findall(r"press_init_command: '?kvscope: ([^']*)", (folder / "config.yaml").read_text())
            policy, _, budget = command.partition(" @ ")
            wanted = [row for row in self.rows if str(row["length"]) == folder.name.split("__")[1] and row["policy"] == policy.split(":")[0]
                      and budget in ("", row["requested_budget"])]
            self.assertEqual(len(wanted), 2)
            self.assertEqual([row["predicted_answer"] for row in csv_rows((folder / "predictions.csv").read_text())],
                             [row["prediction"] for row in wanted])
            metrics = json.loads((folder / "metrics.json").read_text())
            mean = sum(row["score"] for row in wanted) / len(wanted)
            self.assertAlmostEqual(metrics["niah"]["string_match_all"], 100 * mean, places=2)

    def test_lm_eval(self):
        folders = list(self.path("lm-eval").iterdir())
        self.assertEqual(len(folders), 5)
        golden = next((DATA / "lm-eval").rglob("results_*.json"))
        theirs = json.loads(golden.read_text())
        their_sample = json.loads(next(golden.parent.glob("samples_colors_*")).read_text().splitlines()[0])
        for folder in folders:
            (file,) = folder.glob("results_*.json")
            ours = json.loads(file.read_text())
            self.assertEqual(folder.name, ours["model_name_sanitized"])
            self.assertLessEqual(set(theirs) - set(ours), {"tokenizer_pad_token", "tokenizer_eos_token", "tokenizer_bos_token",
                                                           "eot_token_id", "max_length", "groups", "start_time"})
            samples = jsonl_rows(folder.joinpath(file.name.replace("results_", "samples_niah_") + "l").read_text())
            self.assertLessEqual(set(their_sample) - {"exact_match"}, set(samples[0]))
            mean = sum(sample["string_match_all"] for sample in samples) / len(samples)
            self.assertAlmostEqual(ours["results"]["niah"]["string_match_all,none"], mean)
            self.assertIn("string_match_all_stderr,none", ours["results"]["niah"])
        self.made("import", "lm-eval", "-o", "from-lm-eval.h5")
        self.compare("from-lm-eval.h5", (*self.COLUMNS, "sample_id", "sample_hash", "context_hash", "data_hash", "prompt_hash", "depth", "subset",
                                         "budget_fraction", "kept_share"))

    def test_a_sample_with_a_damaged_hash_is_left_out(self):
        of_kvpress, of_lm_eval = self.path("damaged-kvpress"), self.path("damaged-lm-eval")
        shutil.copytree(next(self.path("kvpress").iterdir()), of_kvpress)
        shutil.copytree(next(self.path("lm-eval").iterdir()), of_lm_eval)
        metrics = of_kvpress / "metrics.json"
        whole = json.loads(metrics.read_text())
        (of_samples,) = (value for value in whole.values() if isinstance(value, list))
        hashes = [sample["sample_hash"] for sample in of_samples]
        samples_file = next(of_lm_eval.glob("samples_*"))
        lines = jsonl_rows(samples_file.read_text())
        for damaged in ("x" * 64, hashes[1].upper(), hashes[1][:63], hashes[1] + "0", "\x1b[31m"):
            with self.subTest(damaged):
                of_samples[1]["sample_hash"] = damaged
                metrics.write_text(json.dumps(whole))
                said = self.refuses(1, [f"{metrics}: sample 2: expected 64", "sample_hash"], "import", of_kvpress, "-o", "no.h5",
                                    "--force", "-q")
                self.assertNotIn("\x1b", said)
                self.assertEqual([row["sample_hash"] for row in tables_of(self.path("no.h5"))["niah"]], hashes[:1])
                lines[2]["doc"]["sample_hash"] = damaged
                samples_file.write_text("\n".join(map(json.dumps, lines)))
                self.refuses(1, [f"{samples_file}:3: expected 64", "sample_hash"], "import", of_lm_eval, "-o", "no.h5", "--force", "-q")
                self.assertEqual(len(tables_of(self.path("no.h5"))["niah"]), len(lines) - 1)
        for sample in of_samples:
            sample["sample_hash"] = "none"
        metrics.write_text(json.dumps(whole))
        self.refuses(1, ["sample 1: expected 64", "1 more samples"], "import", of_kvpress, "-o", "none.h5")
        self.assertFalse(self.path("none.h5").exists())

    def test_both_programs_in_one_table(self):
        self.made("import", DATA / "kvpress", "-o", "kvpress.h5", "-q")
        self.made("export", "niah.h5", "kvpress.h5", "--figure", "results-table", "-o", "both.csv")
        rows = csv_rows(self.path("both.csv").read_text())
        self.assertLessEqual({"snapkv:window_size=64,kernel_size=5 (kvpress)", "h2o", "full", "full (kvpress)"}, {row["policy"] for row in rows})
        self.assertIn("program (kvpress, kvscope)", rows[0]["differs"])
        self.assertIn("model", rows[0]["differs"])

    def test_usage(self):
        self.refuses(2, ["--run applies to figures"], "export", "niah.h5", "--results", "kvpress", "--run", 1, "-o", "no")
        self.refuses(2, ["-o FOLDER is missing"], "export", "niah.h5", "--results", "kvpress")
        self.refuses(1, ["predictions.csv", "--force"], "export", "niah.h5", "--results", "kvpress", "-o", "kvpress")
        self.made("export", "niah.h5", "--results", "kvpress", "-o", "kvpress", "--force")
        self.refuses(2, ["lm-eval"], "export", "niah.h5", "--results", "lmeval", "-o", "no")

    def test_prompts_of_a_trace_are_written(self):
        self.path("mine.jsonl").write_text(json.dumps({"context": TEXT, "question": "Who jumps?", "answers": ["fox"]}))
        self.made("run", "mine.jsonl", "-m", HF_MODEL, "--policy", "h2o", "--budget", 24, "-n", 4, "--dtype", "f32", "-q", "-o", "mine.h5")
        self.made("export", "mine.h5", "--results", "lm-eval", "-o", "mine")
        samples = [json.loads(file.read_text()) for file in self.path("mine").rglob("samples_prompts_*.jsonl")]
        self.assertEqual(len(samples), 2)
        for sample in samples:
            self.assertEqual(sample["doc"]["question"], "Who jumps?")
            self.assertIn(TEXT, sample["arguments"]["gen_args_0"]["arg_0"])


if __name__ == "__main__":
    unittest.main()
