#!/usr/bin/env python3
"""`kvscope eval`: messages about policies that cannot run, and samples added to finished ones."""

import json
import shlex
import signal
import time
import unittest

import h5py

from program import HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG, SOURCE, TEXT, ProgramTest, clock_model, csv_rows


def n_results(part):
    """Returns the number of finished samples in a .part folder."""
    try:
        return len(list(part.glob("results-*.h5")))
    except FileNotFoundError:  # the program replaces the folder while Python lists it
        return 0


@NEEDS_ENGINE
class Failures(ProgramTest):
    SAID = ("eval", "-m", HF_MODEL, "--lengths", 300, "--depths", 0.5, "--samples", 2, "--policy", "streaming-llm",
            "--policy", "headkv:importance=missing.json", "--budget", 64, "-n", 4, "-o", "needles.h5", "-q")

    def test_why_a_policy_cannot_run_is_said_once_and_under_the_table(self):
        done = self.run_program(*self.SAID)
        self.assertEqual(done.returncode, 1, "the exit code also reports a failed run")
        self.assertEqual(done.stderr.count("missing.json"), 1 + done.stderr.count("headkv:importance=missing.json"))
        self.assertEqual(done.stderr.count("headkv"), 1)
        self.assertRegex(done.stdout, r"headkv:importance=missing\.json @ 64 failed in all 2 samples: .*missing\.json")
        again = self.run_program(*self.SAID)
        self.assertEqual(again.returncode, 1)
        self.assertEqual(again.stdout, done.stdout, "the finished trace reports the same")
        as_csv = self.run_program(*self.SAID, "--format", "csv")
        self.assertIn("failed in all 2 samples", as_csv.stderr)
        self.assertNotIn("failed in", as_csv.stdout)


    def test_a_sample_on_which_no_policy_can_run_is_finished(self):
        """The budget keeps all of the short samples, but is smaller than the sinks for the long ones."""
        said = ("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", 1, "--policy",
                "streaming-llm:sinks=250", "--budget", 240, "-n", 4, "-o", "longer.h5")
        for again in (False, True):
            with self.subTest(again=again):
                done = self.run_program(*said)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("streaming-llm:sinks=250", done.stdout)
                self.assertRegex(done.stdout, r"failed in 1 of 2 samples \(niah-300-0\.5-0\)")
                self.assertRegex(done.stderr, r"streaming-llm:sinks=250 @ 240 failed")
                if not again:
                    self.assertRegex(done.stderr, r"2/2 niah-300-0\.5-0: full \w+, 0 of 1 other runs correct")
        self.assertFalse(self.path("longer.h5.part").exists())


@NEEDS_ENGINE
class Tables(ProgramTest):
    def test_budgets_ascend_and_full_stands_in_each_column(self):
        shown = self.made("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", 1, "--policy", "h2o", "--policy",
                          "think", "--budget", "0.8,0.6", "-n", 2, "-q", "-o", "shares.h5", "--format", "md").stdout
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines() if line.startswith("|")]
        self.assertEqual(rows[0], ["Policy", "60 %", "80 %"])
        self.assertEqual(rows[2][0], "full")
        self.assertEqual(rows[2][1], rows[2][2])


@NEEDS_ENGINE
class BothWays(ProgramTest):
    """`--query-aware both` answers each sample with the question seen and hidden."""

    def evaluate(self, name, query_aware, samples=1):
        return self.made("eval", "-m", HF_MODEL, "--lengths", 150, "--depths", 0.5, "--samples", samples, "--policy", "h2o", "--budget",
                         32, "-n", 4, "--query-aware", query_aware, "-o", name)

    def rows(self, name):
        timed = ("seconds", "prefill_s", "select_s", "first_token_s", "decode_s", "tokens_per_s", "peak_bytes")
        with h5py.File(self.path(name)) as trace:
            table = trace["results/niah"]
            return [{key: row[key] for key in table.dtype.names if key not in timed and key != "data_hash"} for row in table[:]]

    def test_both_tables_in_one(self):
        self.evaluate("seen.h5", "on", 2)
        self.evaluate("hidden.h5", "off", 2)
        self.evaluate("both.h5", "on")
        done = self.evaluate("both.h5", "both", 2)
        self.assertIn("extending both.h5 from 1 sample ", done.stderr)
        self.assertIn("niah-150-0.5-1, question hidden: ", done.stderr)
        self.assertRegex(done.stdout, r"h2o, question hidden +\d")
        both = self.rows("both.h5")
        for seen, alone in ((1, "seen.h5"), (0, "hidden.h5")):
            self.assertEqual(repr([row for row in both if row["question_seen"] == seen]), repr(self.rows(alone)))
        self.assertIn("already contains", self.evaluate("both.h5", "both", 2).stderr)
        for name, seen in (("niah-150-0.5-1", 1), ("niah-150-0.5-1, question hidden", 0)):
            with self.subTest(name):
                self.made("run", "-m", HF_MODEL, "--prompt-from", f"both.h5:{name}", "--policy", "h2o", "--budget", 32, "-n", 4,
                          "-o", f"sample-{seen}.h5", "-q")
                with h5py.File(self.path(f"sample-{seen}.h5")) as trace:
                    of_sample = trace["results/prompts"][:]
                    self.assertEqual(int(trace["prompts/0"].attrs["query_aware"]), seen)
                in_task = [row for row in both if row["question_seen"] == seen and row["sample_id"] == b"niah-150-0.5-1"]
                for column in ("prediction", "prompt_hash", "sample_hash", "kept_share", "coverage", "answers_json", "evidence_kept",
                               "evidence_gone", "metric", "scored_as", "score"):
                    self.assertEqual([row[column] for row in of_sample], [row[column] for row in in_task], column)
                self.assertLess(of_sample[1]["evidence_kept"], 1)
        self.refuses(2, ["no sample is named 'niah-1'", "niah-150-0.5-0"], "run", "-m", HF_MODEL, "--prompt-from", "both.h5:niah-1",
                     "--policy", "h2o", "--budget", 32, "-o", "none.h5")
        self.refuses(2, ["no sample is named 'niah-150-0.5-0, question hidden'"], "run", "-m", HF_MODEL, "--prompt-from",
                     "seen.h5:niah-150-0.5-0, question hidden", "--policy", "h2o", "--budget", 32, "-o", "none.h5")
        self.made("export", "both.h5", "--figure", "results-table", "-o", "both.csv")
        for figure in "results-table", "results-curves", "task-scores":
            self.made("export", "both.h5", "--figure", figure, "--run", "h2o, question seen", "-o", f"{figure}.csv")
            self.assertNotIn("hidden", self.path(f"{figure}.csv").read_text())
        self.made("export", "both.h5", "--figure", "results-curves", "-o", "curves.csv")
        self.assertEqual({row["question"] for row in csv_rows(self.path("curves.csv").read_text())},
                         {"question seen", "question hidden"})
        self.made("export", "both.h5", "--figure", "results-table", "--cells", "score", "--against", "h2o, question seen", "-o",
                  "against.csv")
        compared = {(row["policy"], row["question"]): row["comparison"] for row in csv_rows(self.path("against.csv").read_text())}
        self.assertEqual(compared["h2o", "question seen"], "reference")
        self.assertNotEqual(compared["h2o", "question hidden"], "")
        ranked = json.loads(self.made("export", "both.h5", "--ranking", "samples", "--run", "h2o, question hidden @ 32", "--format",
                                      "json").stdout)
        self.assertEqual([row["policy"] for row in ranked], ["h2o, question hidden"] * 2)
        self.assertTrue(all(row["sample"].endswith(", question hidden") for row in ranked))
        self.assertEqual({row["answer"] for row in ranked},
                         {row["prediction"].decode() for row in both if row["question_seen"] == 0 and row["policy"] == b"h2o"})
        self.assertIn("question hidden", self.path("both.csv").read_text())
        self.assertIn("the labels say whether policies saw the question", self.made("inspect", "both.h5").stdout)
        said = self.refuses(1, ["both.h5", "the command omits --query-aware both"], "eval", "-m", HF_MODEL, "--lengths", 150,
                            "--depths", 0.5, "--samples", 2, "--policy", "h2o", "--budget", 32, "-n", 4, "-o", "both.h5")
        self.assertNotIn("omits the prompt", said)
        # Recipes of earlier versions lack the evidence.
        with h5py.File(self.path("hidden.h5"), "r+") as trace:
            recipe = json.loads(trace.attrs["recipe_json"])
            self.assertTrue(all(entry.pop("evidence") for entry in recipe["prompts"]))
            trace.attrs["recipe_json"] = json.dumps(recipe)
        self.assertIn("already contains", self.evaluate("hidden.h5", "off", 2).stderr)
        # A trace whose questions are hidden gains the samples whose questions policies see, and further samples.
        self.evaluate("grown.h5", "off")
        before = self.rows("grown.h5")
        self.assertIn("extending grown.h5 from 1 sample ", self.evaluate("grown.h5", "both").stderr)
        self.assertIn("already contains", self.evaluate("grown.h5", "both").stderr)
        self.evaluate("grown.h5", "both", 2)
        grown = self.rows("grown.h5")
        self.assertEqual(repr(grown[:2]), repr(before))
        self.assertEqual(sorted(map(repr, grown)), sorted(map(repr, both)))
        self.assertIn("no errors", self.made("inspect", "grown.h5").stdout)


@NEEDS_ENGINE
class Samples(ProgramTest):
    """What `run` and `inspect` say about a trace of samples."""

    def test_a_trace_of_samples_has_no_prompts(self):
        evaluation = ("-m", HF_MODEL, "--policy", "h2o", "--budget", "24,32", "-n", 2, "-q", "-o", "samples.h5")
        self.made("eval", "--lengths", 150, "--depths", 0.5, "--samples", 1, *evaluation)
        self.refuses(2, ["the trace has no prompts, only samples of niah: name one, such as samples.h5:niah-150-0.5-0"],
                     "run", "-m", HF_MODEL, "--prompt-from", "samples.h5", "--policy", "h2o", "--budget", 32, "-o", "none.h5")
        self.refuses(1, ["samples.h5 exists", "it was written by eval; run cannot extend it"], "run", "-p", "a text", *evaluation)
        said = self.made("inspect", "samples.h5", "--commands", "-m", HF_MODEL).stdout
        self.assertEqual(said.count("\n"), 1, said)
        command = shlex.split(said)
        self.assertEqual(command[command.index("--prompt-from") + 1], "samples.h5:niah-150-0.5-0")
        self.assertEqual(command[command.index("--budget") + 1], "24,32")
        self.made(*command[1:])
        with h5py.File(self.path("samples.h5")) as trace, h5py.File(self.path(command[-1])) as again:
            rows, repeated = trace["results/niah"][:], again["results/prompts"][:]
        for column in ("policy", "budget", "prediction", "prompt_hash", "kept_share"):
            self.assertEqual(list(rows[column]), list(repeated[column]), column)

    def test_a_trace_of_rows_has_no_commands(self):
        self.made("run", "-m", HF_MODEL, "-p", TEXT, "--policy", "h2o", "--budget", 24, "-n", 2, "--record", "rows", "-o", "rows.h5")
        self.assertIn("stores only rows of results", self.made("inspect", "rows.h5", "--commands").stdout)

    def test_the_help_of_one_task(self):
        whole, niah = (self.made("eval", *task, "--help").stdout for task in ((), ("--task", "niah")))
        self.assertIn("(ruler)", whole)
        self.assertIn("--lengths", niah)
        self.assertIn("--query-aware", niah)
        for other in ("(niah)", "(ruler)", "--subsets"):
            self.assertNotIn(other, niah)
        self.assertEqual(niah.count("{upstream,kvpress"), 1, niah)
        self.assertIn("{upstream,kvpress}", niah)
        self.assertIn("--file FILE=none", whole)
        self.assertNotIn("none or none", whole)
        self.assertIn("part I of N of the samples", niah)


@NEEDS_ENGINE
class Figures(ProgramTest):
    def test_a_trace_of_scores_alone_says_what_it_holds_and_which_figure_draws_it(self):
        self.made("eval", "-m", HF_MODEL, "--lengths", 150, "--depths", 0.5, "--samples", 1, "--policy", "h2o", "--budget", 32,
                  "-n", 2, "-q", "-o", "scores.h5")
        said = self.refuses(1, ["scores of niah", "--figure task-scores"], "export", "scores.h5", "--figure", "retention", "-o", "r.pdf")
        self.assertNotIn("yet", said)
        self.made("export", "scores.h5", "--figure", "all", "-o", "all.csv")
        self.assertTrue(self.path("all-task-scores.csv").exists())


@NEEDS_ENGINE
class OwnSamples(ProgramTest):
    def eval(self, name, output, *more):
        return ("eval", "-m", HF_MODEL, "--task", "jsonl", "--file", name, "-n", 2, "-o", output, "--format", "csv", "-q", *more)

    def write(self, name, *answers):
        lines = [json.dumps({"context": "a b c d", "question": "e?", "answers": [answer]}) for answer in answers]
        self.path(name).write_text("\n".join(lines))

    def test_changed_answers_are_refused(self):
        self.write("s.jsonl", "x", "y")
        first = self.made(*self.eval("s.jsonl", "s.h5")).stdout
        self.assertEqual(self.made(*self.eval("s.jsonl", "s.h5")).stdout, first)
        self.write("s.jsonl", "x", "z")
        self.refuses(1, ["s.h5", "answers", '"y"', '"z"'], *self.eval("s.jsonl", "s.h5"))
        self.write("s.jsonl", "x", "y", "z")
        self.assertEqual(len(csv_rows(self.made(*self.eval("s.jsonl", "s.h5")).stdout)), len(csv_rows(first)))

    def test_names_of_files(self):
        self.write(b"\xff.jsonl".decode(errors="surrogateescape"), "x")
        self.made(*self.eval(b"\xff.jsonl".decode(errors="surrogateescape"), "bytes.h5"))
        done = self.run_program(*self.eval("-", "stdin.h5"), text="no object")
        self.assertIn("standard input:1: expected an object", done.stderr)

    def test_a_broken_line_is_left_out(self):
        self.write("broken.jsonl", "x")
        self.path("broken.jsonl").write_text(self.path("broken.jsonl").read_text() + "\n{\n")
        done = self.run_program(*self.eval("broken.jsonl", "broken.h5"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("broken.jsonl:2: expected an object", done.stderr)
        with h5py.File(self.path("broken.h5")) as trace:
            self.assertEqual(trace["results/jsonl"]["sample_id"].tolist(), [b"broken-1"])

    def test_a_sample_longer_than_the_context_is_left_out(self):
        samples = [{"context": "a b c d " * n, "question": "e?", "answers": ["x"]} for n in (1, 1000, 2)]
        self.path("long.jsonl").write_text("\n".join(map(json.dumps, samples)))
        done = self.run_program(*self.eval("long.jsonl", "long.h5"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"'long-2': the prompt has \d+ tokens .*\. This sample is left out")
        with h5py.File(self.path("long.h5")) as trace:
            self.assertEqual(trace["results/jsonl"]["sample_id"].tolist(), [b"long-1", b"long-3"])
        self.path("long.jsonl").write_text(json.dumps(samples[1]))
        self.refuses(2, ["'long-1': the prompt has"], *self.eval("long.jsonl", "only.h5"))

    def test_ranges_are_checked_with_the_other_options(self):
        for option in ("--lengths", "--samples"):
            self.refuses(2, [f"{option}: ", "found 0", "eval --help"], "eval", "-m", HF_MODEL, option, "0", "-o", "r.h5")


@NEEDS_ENGINE
class Ruler(ProgramTest):
    def eval(self, *more):
        return ("eval", "-m", HF_MODEL, "--task", "ruler", "--lengths", 500, "--no-template", "--policy",
                "h2o", "--budget", 64, "-q", "-o", "ruler.h5", *more)

    def rows(self):
        with h5py.File(self.path("ruler.h5")) as trace:
            return trace["results/ruler"][:]

    def test_a_subset_has_its_own_number_of_answer_tokens(self):
        """The model's context is 512, so that the prompt leaves space for 50 tokens but not for 127."""
        self.made(*self.eval("--subsets", "fwe", "--samples", 1))
        first = self.rows()
        self.made(*self.eval("--subsets", "fwe", "--samples", 2))
        rows = self.rows()
        for column in "sample_id", "prompt_hash", "prediction", "score", "seconds":
            self.assertEqual(rows[column][:2].tolist(), first[column].tolist())
        self.assertEqual([row["sample_id"] for row in rows[::2]], [b"fwe-500-0", b"fwe-500-1"])
        self.assertEqual({(row["subset"], row["metric"], row["scored_as"], row["length"]) for row in rows},
                         {(b"fwe", b"string_match_all", b"ruler", 500)})
        self.refuses(2, ["fwe-500-0", "127 new tokens"], *self.eval("--subsets", "fwe", "--samples", 1, "-n", 127, "--force"))

    def test_a_missing_file_is_named(self):
        self.refuses(2, ["qa_1", "dev-v2.0.json", "rajpurkar", "--squad"], *self.eval("--subsets", "qa_1"))


@NEEDS_ENGINE
class LongBench(ProgramTest):
    SAMPLES = SOURCE / "tests" / "data" / "longbench"

    @classmethod
    def prepare(cls):
        cls.of_set = {json.loads(line)["dataset"]: line for line in reversed((cls.SAMPLES / "samples.jsonl").read_text().splitlines())}

    def eval(self, task, file, output, *more):
        return ("eval", "-m", HF_MODEL, "--task", task, "--file", file, "--max_length", 300, "-n", 4, "--policy", "h2o", "--budget",
                64, "-t", 1, "-o", output, *more)

    def rows(self, trace, task):
        with h5py.File(self.path(trace)) as file:
            return file[f"results/{task}"][:]

    def test_a_broken_line_is_left_out_and_the_others_are_answered(self):
        lines = [self.of_set["qasper"], self.of_set["trec"][:-9], self.of_set["samsum"], json.dumps({"dataset": "lcc"}),
                 self.of_set["trec"], self.of_set["qasper_e"]]
        self.path("mixed.jsonl").write_text("\n".join(lines))
        for again in (False, True):
            with self.subTest(again=again):
                done = self.run_program(*self.eval("longbench", "mixed.jsonl", "mixed.h5"))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("mixed.jsonl:2: expected an object", done.stderr)
                self.assertIn('mixed.jsonl:4: expected the field "answers"', done.stderr)
                self.assertEqual(done.stderr.count("This sample is left out"), 2)
                self.assertIn("h2o", done.stdout)
        rows = self.rows("mixed.h5", "longbench")
        self.assertEqual([row["sample_id"].decode() for row in rows[::2]], ["mixed-1", "mixed-3", "mixed-5", "mixed-6"])
        self.assertEqual([(row["subset"], row["metric"]) for row in rows[::2]],
                         [(b"qasper", b"qa_f1_score"), (b"samsum", b"rouge_score"), (b"trec", b"classification_score"),
                          (b"qasper_e/4-8k", b"qa_f1_score")])
        self.assertEqual({(row["scored_as"], row["status"]) for row in rows}, {(b"longbench", b"complete")})

    def test_a_sample_that_is_run_again_has_the_score_of_the_task(self):
        """The scorer of trec depends on the sample's classes, so other predictions than the task's have no score."""
        self.path("trec.jsonl").write_text(self.of_set["trec"])
        self.made(*self.eval("longbench", "trec.jsonl", "trec.h5"), "-q")
        again = ("run", "-m", HF_MODEL, "-n", 4, "-t", 1, "--policy", "h2o", "--budget", 64, "-q")
        self.made(*again, "--prompt-from", "trec.h5:trec-1", "--policy", "streaming-llm", "-o", "trec-again.h5")
        self.made(*again, "--prompt-from", "trec-again.h5:0", "--record", "rows", "-o", "trec-third.h5")
        of_task = self.rows("trec.h5", "longbench")
        for name in "trec-again.h5", "trec-third.h5":
            with self.subTest(name):
                rows = self.rows(name, "prompts")
                for column in ("prediction", "metric", "scored_as", "score", "answers_json"):
                    self.assertEqual(rows[column][:2].tolist(), of_task[column].tolist(), column)
                for row in rows[2:]:
                    self.assertEqual(row["score"] != row["score"], row["prediction"] not in of_task["prediction"])

    def test_a_folder_of_sets(self):
        self.path("data").mkdir()
        for name in ("qasper", "samsum"):
            self.path(f"data/{name}.jsonl").write_text(self.of_set[name])
        self.made(*self.eval("longbench", "data", "folder.h5", "--score-as", "kvpress"))
        rows = self.rows("folder.h5", "longbench")
        self.assertEqual([row["sample_id"] for row in rows[::2]], [b"qasper-1", b"samsum-1"])
        self.assertEqual({row["scored_as"] for row in rows}, {b"longbench as in kvpress"})
        self.refuses(1, ["folder.h5", "scored_as"], *self.eval("longbench", "data", "folder.h5"))
        self.refuses(2, ["dureader", "jieba"], *self.eval("longbench", "data", "zh.h5", "--subsets", "dureader"))
        self.refuses(1, ["data is a folder"], *self.eval("longbench-v2", "data", "v2.h5"))

    def test_version_2_and_files_of_the_other_version(self):
        self.made(*self.eval("longbench-v2", self.SAMPLES / "v2.json", "v2.h5"))
        rows = self.rows("v2.h5", "longbench-v2")
        self.assertEqual([row["subset"] for row in rows[::2]], [b"easy/short", b"hard/medium", b"hard/long"])
        self.assertEqual({(row["metric"], row["scored_as"]) for row in rows}, {(b"accuracy", b"longbench-v2")})
        self.refuses(2, ["looks like LongBench-v2", "--task longbench-v2"], *self.eval("longbench", self.SAMPLES / "v2.json", "x.h5"))
        self.refuses(2, ["data.zip", "THUDM/LongBench"], "eval", "-m", HF_MODEL, "--task", "longbench", "-o", "x.h5")

    def test_help_names_source_layout_and_licence(self):
        for task, words in (("longbench", ("data.zip", "all_classes", "licence")), ("longbench-v2", ("data.json", "choice_A", "Apache"))):
            shown = self.made("tasks", task).stdout
            for word in words:
                self.assertIn(word, shown)


@NEEDS_ENGINE
class OtherBenchmarks(ProgramTest):
    """Files in the formats of benchmarks: folder in tests/data, file, task, and metric and rules of the first sample."""

    FILES = (("mathematics", "gsm8k.jsonl", "gsm8k", b"accuracy", b"gsm8k"),
             ("mathematics", "math500.jsonl", "math500", b"accuracy", b"math"),
             ("mathematics", "aime2025.json", "aime", b"accuracy", b"aime as in kvpress"),
             ("infinitebench", "kv_retrieval.jsonl", "infinitebench", b"accuracy", b"infinitebench"),
             ("loogle", "shortdep_cloze.jsonl", "loogle", b"exact_match_score", b"loogle"))

    def test_files_are_answered_and_scored(self):
        for folder, file, task, metric, scored_as in self.FILES:
            with self.subTest(task=task):
                path = SOURCE / "tests" / "data" / folder / file
                self.made("eval", "-m", HF_MODEL, "--task", task, "--file", path, "-n", 2, "--samples", 1, "--policy", "h2o",
                          "--budget", 32, "-t", 1, "-o", f"{task}.h5", "-q")
                with h5py.File(self.path(f"{task}.h5")) as trace:
                    row = trace[f"results/{task}"][0]
                self.assertEqual((row["metric"], row["scored_as"], row["status"]), (metric, scored_as, b"complete"))
                self.made("run", "-m", HF_MODEL, "--prompt-from", f"{task}.h5:{row['sample_id'].decode()}", "-n", 2, "--policy",
                          "streaming-llm", "--budget", 32, "-t", 1, "-o", f"{task}-again.h5", "-q")
                with h5py.File(self.path(f"{task}-again.h5")) as trace:
                    again = trace["results/prompts"][:]
                for column in "prediction", "metric", "scored_as", "score":
                    self.assertEqual(again[0][column], row[column], column)
                self.assertEqual(set(again["metric"]), {metric})
                if task in ("gsm8k", "math500", "aime"):  # the scorer does not depend on the sample
                    self.assertEqual(again["score"].tolist(), [0, 0])

    def test_an_option_has_the_choices_of_its_task(self):
        path = SOURCE / "tests" / "data" / "loogle" / "shortdep_qa.jsonl"
        command = ("eval", "-m", HF_MODEL, "--task", "loogle", "--file", path, "-n", 2, "--samples", 1, "-o", "choice.h5", "-q", "--metric")
        self.made(*command, "bleu1")
        self.refuses(2, ["metric", "bleu1, bleu4", "f1"], *command, "f1")

    def test_help_names_source_layout_and_licence(self):
        for task, words in (("gsm8k", ("grade-school-math", "MIT", "answer", "####")), ("math500", ("HuggingFaceH4/MATH-500", "MIT", "unique_id")),
                            ("aime", ("opencompass/AIME2025", "copyright", "Problem")),
                            ("infinitebench", ("xinrongzhang2022/InfiniteBench", "MIT", "passkey.jsonl")),
                            ("loogle", ("bigai-nlco/LooGLE", "CC BY-SA", "qa_pairs"))):
            shown = self.made("tasks", task).stdout
            for word in words:
                self.assertIn(word, shown)


@NEEDS_ENGINE
class Helmet(ProgramTest):
    SAMPLES = SOURCE / "tests" / "data" / "helmet"

    def test_samples_are_answered_and_scored_without_a_chat_template(self):
        self.made("eval", "-m", HF_MODEL, "--task", "helmet", "--file", self.SAMPLES / "niah_multikey_2.jsonl", "--samples", 2,
                  "--max-length", 300, "-n", 4, "--policy", "h2o", "--budget", 64, "-t", 1, "-o", "helmet.h5")
        with h5py.File(self.path("helmet.h5")) as file:
            rows = file["results/helmet"][:]
        self.assertEqual({(row["subset"], row["metric"], row["scored_as"], row["status"]) for row in rows},
                         {(b"ruler_niah_mk_2", b"ruler_recall", b"helmet", b"complete")})
        self.assertTrue(all(row["length"] <= 300 for row in rows))

    def test_help_names_source_layout_and_licence(self):
        shown = self.made("tasks", "helmet").stdout
        for word in ("data.tar.gz", "s_pop", "licence", "msmarco_rerank_psg", "max_length"):
            self.assertIn(word, shown)


@NEEDS_ENGINE
class Scbench(ProgramTest):
    FILE = SOURCE / "tests" / "data" / "scbench" / "scbench_vt.jsonl"

    def rows(self, mode, output, *more):
        self.made("eval", "-m", HF_MODEL, "--task", "scbench", "--file", self.FILE, "--samples", 1, "--turns", 2, "--mode", mode,
                  "--max-length", 150, "-n", 4, "--query-aware", "off", "--policy", "h2o", "--budget", 32, "-t", 1, "-o", output, *more)
        with h5py.File(self.path(output)) as file:
            return file["results/scbench"][:]

    def test_questions_of_a_context_are_answered_in_both_modes(self):
        rows = self.rows("multi-turn", "turns.h5")
        self.assertEqual([row["sample_id"] for row in rows[::2]], [b"scbench_vt-1-1", b"scbench_vt-1-2"])
        self.assertEqual({row["subset"] for row in rows}, {b"scbench_vt/turn 1", b"scbench_vt/turn 2"})
        self.assertEqual({(row["metric"], row["scored_as"], row["status"]) for row in rows},
                         {(b"string_match_all", b"scbench", b"complete")})
        self.assertEqual(len({row["context_hash"] for row in rows}), 1)
        self.assertGreater(rows[2]["length"], rows[0]["length"], "the second question follows the first and its answer")
        apart = self.rows("multi-request", "apart.h5", "--score-as", "whole")
        self.assertEqual({row["subset"] for row in apart}, {b"scbench_vt"})
        self.assertEqual({row["scored_as"] for row in apart}, {b"scbench with whole answers"})

    def test_a_choice_of_another_task_is_refused(self):
        self.refuses(2, ["--score-as: expected one of upstream, whole; found 'kvpress'"], "eval", "-m", HF_MODEL, "--task", "scbench", "--file", self.FILE,
                     "--score-as", "kvpress", "-o", "x.h5")

    def test_help_names_source_layout_and_licence(self):
        shown = self.made("tasks", "scbench").stdout
        for word in ("microsoft/SCBench", "multi_turns", "MIT", "scbench_many_shot", "multi-request"):
            self.assertIn(word, shown)


@NEEDS_ENGINE
class SharedContext(ProgramTest):
    """Questions about one context, of which policies see nothing."""

    LINES = [json.dumps({"context": context, "question": question, "answers": ["e"]}) for context, question in (
        ("The keeper counted the ships of the harbor twice.", "Who?"),
        ("The keeper counted the ships of the harbor twice.", "How often did the keeper count the ships?"),
        ("Nobody counted the ships that left in the night.", "Who?"))]

    def rows(self, name, lines, *more):
        self.path(f"{name}.jsonl").write_text("\n".join(lines))
        self.made("eval", "-m", HF_MODEL, "--task", "jsonl", "--file", f"{name}.jsonl", "--policy", "h2o", "--policy", "random", "--budget",
                  12, "-n", 4, "-t", 1, "-o", f"{name}.h5", "-q", *more)
        with h5py.File(self.path(f"{name}.h5")) as file:
            return file["results/jsonl"][:]

    def test_they_share_prefill_and_caches_and_have_the_results_of_separate_evaluations(self):
        together = self.rows("together", self.LINES, "--query-aware", "off")
        alone = [row for i in range(3) for row in self.rows(f"alone{i}", self.LINES[i:i + 1], "--query-aware", "off")]
        self.assertEqual(len(together), 9)
        for column in ("policy", "prediction", "score", "kept_share", "kl", "agreement", "bytes", "status"):
            self.assertEqual([str(row[column]) for row in together], [str(row[column]) for row in alone], column)
        self.assertGreater(together[0]["prefill_s"], 0)
        self.assertEqual(together[0]["prefill_s"], together[3]["prefill_s"], "the same prefill")
        self.assertNotEqual(together[0]["prefill_s"], together[6]["prefill_s"])
        self.assertTrue(all(row["seconds"] > 0 for row in together))

    def test_they_share_nothing_that_would_depend_on_other_questions(self):
        for name, more in (("seen", ()), ("oracle", ("--query-aware", "off", "--policy", "oracle"))):
            with self.subTest(name=name):
                rows = self.rows(name, self.LINES[:2], *more)
                self.assertNotEqual(rows[0]["prefill_s"], rows[len(rows) // 2]["prefill_s"])

    def test_more_questions_are_added(self):
        self.rows("more", self.LINES, "--query-aware", "off", "--samples", 1)
        more = self.rows("more", self.LINES, "--query-aware", "off")
        together = self.rows("whole", self.LINES, "--query-aware", "off")
        self.assertEqual([(row["sample_id"][-2:], row["prediction"]) for row in more],
                         [(row["sample_id"][-2:], row["prediction"]) for row in together])


@NEEDS_ENGINE
class WrongUsage(ProgramTest):
    NEEDLES = ("eval", "-m", HF_MODEL, "--lengths", 300, "--depths", 0.5, "--samples", 1, "--policy", "snapkv", "-n", 2, "-q",
               "-o", "w.h5")

    def test_what_was_wrong_does_not_stand_in_the_way_of_what_is_right(self):
        self.refuses(2, ["snapkv"], *self.NEEDLES, "--budget", 16)  # below its window
        self.assertFalse(self.path("w.h5.part").exists())
        self.made(*self.NEEDLES, "--budget", 64)

    def test_facts_and_haystack_of_the_user(self):
        self.path("essays").mkdir()
        for name in "ba":
            self.path(f"essays/{name}.txt").write_text(f"The essay {name} is short. " * 9)
        self.made(*self.NEEDLES[:-1], "essays.h5", "--budget", 64, "--haystack", "essays", "--haystack-order", "text",
                  "--values", "words", "--n-values", 2)
        with h5py.File(self.path("essays.h5")) as trace:
            rows = trace["results/niah"][:]
        answers = json.loads(rows[0]["answers_json"])
        self.assertEqual(len(set(answers)), 2)
        for word in answers:
            self.assertRegex(word, "^[a-z.' ]+-[a-z.' -]+$")
        self.path("essays/a.txt").rename(self.path("essays/a.md"))
        self.path("essays/b.txt").unlink()
        self.refuses(2, ["essays: the haystack is empty", "a folder with .txt files"], *self.NEEDLES, "--budget", 64,
                     "--haystack", "essays")

    def test_an_empty_haystack(self):
        for name, text in (("empty.txt", ""), ("blank.txt", " \n\t\n")):
            self.path(name).write_text(text)
            self.refuses(2, [name, "empty"], *self.NEEDLES, "--budget", 64, "--haystack", name)


@NEEDS_ENGINE
class MoreSamples(ProgramTest):
    def evaluate(self, n_samples, output, *arguments):
        return self.run_program("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", n_samples,
                                "--policy", "h2o", "--budget", 32, "-n", 4, "--dtype", "f32", "-t", 1, "-o", output, *arguments)

    def test_a_share_that_only_short_samples_are_too_short_for(self):
        """A budget of 17 % of the short samples is not above the window; that of the long samples is."""
        command = ("eval", "-m", HF_MODEL, "--lengths", "100,250", "--depths", 0.5, "--samples", 1, "--policy", "snapkv:window=32",
                   "--budget", "17%", "-n", 4, "-t", 1, "-o", "share.h5")
        done = self.run_program(*command)
        self.assertEqual(done.returncode, 1, done.stderr)  # because of the failed run
        with h5py.File(self.path("share.h5")) as trace:
            status = [row["status"].decode() for row in trace["results/niah"][:] if row["policy"] == b"snapkv"]
        self.assertTrue(status[0].startswith("failed: "), status)
        self.assertEqual(status[1], "complete")
        self.assertEqual(done.stderr.count("17 %"), 1, done.stderr)  # the reason is printed once

    def test_a_forced_evaluation_resumes_although_its_template_contains_the_time(self):
        command = ("eval", "-m", clock_model(self.path("clock")), "--lengths", 200, "--depths", 0.5, "--samples", 40, "--policy",
                   "h2o", "--budget", 32, "-n", 4, "-t", 1, "-o", "forced.h5", "--force")
        process = self.start(*command)
        parts = self.path("forced.h5.part")
        while process.poll() is None and n_results(parts) < 3:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(process.returncode, -signal.SIGINT)
        time.sleep(1.1)  # another second, and therefore another prompt with today's date
        self.assertIn("resuming forced.h5", self.made(*command).stderr)

    def results(self, name):
        """Returns (sample, policy, prediction, seconds) of each row. Changed seconds mean that the row was computed again."""
        with h5py.File(self.path(name), "r") as trace:
            rows = trace["results/niah"][:]
        return [(row["sample_id"], row["policy"], row["prediction"], row["seconds"]) for row in rows]

    def more(self, few, many):
        name = f"{few}-{many}.h5"
        self.assertEqual(self.evaluate(few, name).returncode, 0)
        before = self.results(name)
        done = self.evaluate(many, name)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = self.results(name)
        self.assertEqual(len(after), 2 * 2 * many)
        self.assertLessEqual(set(before), set(after), "finished samples are kept")
        self.assertEqual(self.evaluate(many, "at-once.h5", "--force").returncode, 0)
        self.assertEqual([row[:3] for row in after], [row[:3] for row in self.results("at-once.h5")])
        return done

    def test_more_samples_go_on_with_those_that_are_finished(self):
        done = self.more(1, 2)
        self.assertIn("from 2 samples with 2 runs each to 4 samples", done.stderr)
        self.more(2, 5)

    def test_more_policies_and_budgets(self):
        def columns(rows):
            return sorted((row[0], row[1], row[2]) for row in rows)
        more = ("--policy", "random", "--budget", "48")
        self.assertEqual(self.evaluate(2, "runs.h5").returncode, 0)
        before = self.results("runs.h5")
        for n_samples in (2, 4):
            done = self.evaluate(n_samples, "runs.h5", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            after = self.results("runs.h5")
            self.assertEqual(len(after), 2 * n_samples * 5)
            self.assertLessEqual(set(before), set(after), "finished samples are kept")
            self.assertEqual(self.evaluate(n_samples, "runs-at-once.h5", *more, "--force").returncode, 0)
            self.assertEqual(columns(after), columns(self.results("runs-at-once.h5")))
        self.assertIn("already contains these results", self.evaluate(4, "runs.h5", *more).stderr)
        again = self.evaluate(4, "runs.h5")  # runs that are not requested stay
        self.assertIn("already contains these results", again.stderr)
        self.assertIn("random", again.stdout)

    def test_results_of_an_earlier_version_are_of_other_tokens(self):
        self.assertEqual(self.evaluate(1, "earlier.h5").returncode, 0)
        with h5py.File(self.path("earlier.h5"), "r+") as trace:
            recipe = json.loads(trace.attrs["recipe_json"])
            for prompt in recipe["prompts"]:
                del prompt["tokens"]
            trace.attrs["recipe_json"] = json.dumps(recipe)
        before = self.path("earlier.h5").read_bytes()
        for n_samples in (1, 2):
            done = self.evaluate(n_samples, "earlier.h5")
            self.assertEqual(done.returncode, 1, done.stderr)
            for words in ("earlier.h5", "tokenized context and question separately", "--force"):
                self.assertIn(words, done.stderr)
        self.assertEqual(self.path("earlier.h5").read_bytes(), before)

    def test_policies_and_samples_at_once_after_a_kill(self):
        self.assertEqual(self.evaluate(1, "killed.h5").returncode, 0)
        before = self.results("killed.h5")
        more = ("--policy", "random", "--budget", 48)
        process = self.start("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", 60, "--policy", "h2o",
                             "--budget", 32, "-n", 4, "--dtype", "f32", "-t", 1, "-o", "killed.h5", *more)
        part = self.path("killed.h5.part")
        while process.poll() is None and n_results(part) < 5:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(self.results("killed.h5"), before)
        done = self.evaluate(60, "killed.h5", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        after = self.results("killed.h5")
        self.assertEqual(len(after), 2 * 60 * 5)
        self.assertLessEqual(set(before), set(after))

    def test_an_unfinished_trace_is_gone_on_with_too(self):
        self.assertEqual(self.evaluate(2, "t.h5").returncode, 0)
        part = self.path("u.h5.part")
        process = self.start("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", 100, "--policy",
                             "h2o", "--budget", 32, "-n", 4, "--dtype", "f32", "-t", 1, "-o", "u.h5")
        while process.poll() is None and not (part / "results-niah-2.h5").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        kept = (part / "results-niah-0.h5").stat().st_mtime_ns
        process = self.start("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", 101, "--policy",
                             "h2o", "--budget", 32, "-n", 4, "--dtype", "f32", "-t", 1, "-o", "u.h5")
        n_before = n_results(part)
        while process.poll() is None and n_results(part) < n_before + 2:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual((part / "results-niah-0.h5").stat().st_mtime_ns, kept)
        self.assertEqual(json.loads(json.loads((part / "trace.json").read_text())["recipe_json"])["prompts"][-1]["name"][:5],
                         "niah-")

    def test_a_sample_of_another_number_is_another_sample(self):
        """The samples of one length are also among those of two lengths, but with other numbers, so number 0 is another sample."""
        def evaluate(lengths, seed):
            return ("eval", "-m", HF_MODEL, "--lengths", lengths, "--depths", 0.5, "--samples", 3, "--seed", seed, "--policy", "h2o",
                    "--budget", 32, "-n", 100, "--dtype", "f32", "-t", 1, "-o", "numbers.h5")

        def prompts():
            with h5py.File(self.path("numbers.h5"), "r") as trace:
                return json.loads(trace.attrs["recipe_json"])["prompts"]
        self.made(*evaluate("150,300", 0))
        of_two = prompts()
        self.path("numbers.h5").unlink()
        self.made(*evaluate("300", of_two[3]["number"]))
        of_one = prompts()
        self.assertEqual([prompt["number"] for prompt in of_one], [0, 1, 2])
        self.assertEqual([prompt["text"] for prompt in of_one], [prompt["text"] for prompt in of_two[3:]])
        self.path("numbers.h5").unlink()
        process = self.start(*evaluate("300", of_two[3]["number"]))
        part = self.path("numbers.h5.part")
        while process.poll() is None and not (part / "results-niah-0.h5").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        done = self.run_program(*evaluate("150,300", 0))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--force", done.stderr)

    def test_an_unfinished_replacement_is_named_as_what_is_in_the_way(self):
        self.evaluate(1, "whole.h5", "--policy", "random").check_returncode()
        self.evaluate(1, "other.h5", "--policy", "streaming-llm").check_returncode()
        before = self.path("whole.h5").read_bytes()
        with h5py.File(self.path("other.h5"), "r") as other:
            record = {name: str(other.attrs[name]) for name in ("format", "version", "generator", "created_utc", "recipe_json")}
        self.path("whole.h5.part").mkdir()
        self.path("whole.h5.part/trace.json").write_text(json.dumps(record))
        done = self.evaluate(1, "whole.h5", "--policy", "random", "--policy", "streaming-llm")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("whole.h5.part contains an unfinished replacement of whole.h5", done.stderr)
        self.assertNotIn("--force", done.stderr)
        self.assertEqual(self.path("whole.h5").read_bytes(), before)

    def test_further_samples_need_the_files_of_all_runs(self):
        importance = self.path("importance.json")
        importance.write_text(json.dumps({f"{layer}-{head}": [0.1 + head / 10] for layer in range(2) for head in range(4)}))
        self.evaluate(1, "file.h5", "--policy", f"headkv:window=8,importance={importance}").check_returncode()
        importance.unlink()
        self.evaluate(1, "file.h5", "--policy", "random").check_returncode()
        done = self.evaluate(2, "file.h5")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{importance}, which is missing", done.stderr)
        self.assertNotIn("--force", done.stderr)

    def test_a_budget_that_drops_nothing_is_told(self):
        said = ("eval", "-m", HF_MODEL, "--lengths", "150,300", "--depths", 0.5, "--samples", 1, "--policy", "h2o", "--budget",
                "32,256", "-n", 2, "-q", "-o", "untouched.h5")
        self.assertIn("1 of 2 samples at 256", self.made(*said).stdout)
        self.assertIn("1 of 2 samples at 256", self.made("inspect", "untouched.h5").stdout)

    def test_anything_else_is_refused(self):
        self.assertEqual(self.evaluate(2, "other.h5").returncode, 0)
        before = self.path("other.h5").read_bytes()
        for arguments in ((1,), (3, "-s", 1), (3, "--query-aware", "off"), (1, "--policy", "random")):
            done = self.evaluate(arguments[0], "other.h5", *arguments[1:])
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("--force", done.stderr)
        self.assertEqual(self.path("other.h5").read_bytes(), before)
        self.assertFalse(self.path("other.h5.part").exists())



@NEEDS_ENGINE
class Timing(ProgramTest):
    COMMAND = ("eval", "--task", "timing", "-m", HF_MODEL, "--lengths", "64-128*2", "--tokens", "4,8", "--policy", "snapkv:window=8",
               "--budget", 24, "--dtype", "f32", "-t", 1)

    def test_a_grid_of_lengths_and_steps(self):
        done = self.made(*self.COMMAND, "--repeat", 3, "-o", "t.h5", "--format", "json")
        table = json.loads(done.stdout)
        self.assertEqual([(row["length"], row["subset"], row["policy"]) for row in table],
                         [(length, f"{steps} new tokens", policy) for length in ("64", "128") for steps in (4, 8)
                          for policy in ("full", "snapkv:window=8")])
        with h5py.File(self.path("t.h5")) as trace:
            rows = trace["results/timing"][:]
        self.assertEqual(len(rows), 2 * 2 * 2 * 3)
        self.assertTrue((rows["first_token_s"] > 0).all() and (rows["tokens_per_s"] > 0).all())
        self.assertEqual(set(rows["metric"]), {b""})
        for row in table:
            self.assertEqual(row["n"], 3)
            times = sorted(one["first_token_s"] for one in rows if one["length"] == int(row["length"])
                           and one["subset"].decode() == row["subset"] and one["policy"].decode() == row["policy"].split(":")[0])
            self.assertEqual(row["first_token_s"], times[1])  # the median
            self.assertAlmostEqual(row["step_s"], 1 / row["tokens_per_s"])
        self.assertNotIn("wrong", done.stderr)  # there are no answers
        self.assertIn("Medians over n = 3 samples", self.made("inspect", "t.h5").stdout)

    def test_more_repeats_lengths_and_steps_extend_a_trace(self):
        command, times = self.COMMAND, {}
        for changes, n in ((("--lengths", 64, "--tokens", 4), 1), (("--lengths", "64,96", "--tokens", 4), 2),
                           (("--lengths", "64,96", "--tokens", "4,8"), 2), (("--lengths", "64,96,80", "--tokens", "4,8"), 3)):
            arguments = [*command[:5], *changes, *command[9:], "--repeat", n, "-o", "more.h5"]
            done = self.made(*arguments)
            if times:
                self.assertIn("extending more.h5 from", done.stderr)
            with h5py.File(self.path("more.h5")) as trace:
                found = {(row["sample_id"], row["policy"]): row["first_token_s"] for row in trace["results/timing"][:]}
            self.assertLess(len(times), len(found))
            self.assertEqual(times, {run: found[run] for run in times}, "finished runs are not repeated")
            times = found
        self.assertEqual(len(times), 3 * 2 * 3 * 2)

    def test_a_batch_of_equal_sequences(self):
        done = self.run_program(*self.COMMAND[:7], "--tokens", 8, "--batch", "1,3", *self.COMMAND[9:], "--policy",
                                "think:ratio=0.5", "--repeat", 1, "-o", "b.h5", "--format", "json")
        self.assertEqual(done.returncode, 1, done.stderr)  # because of think's batch
        with h5py.File(self.path("b.h5")) as trace:
            rows = trace["results/timing"][:]
        self.assertEqual(sorted(set(rows["batch"])), [1, 3])
        complete = rows[rows["status"] == b"complete"]
        alone, batch = (complete[complete["batch"] == n] for n in (1, 3))
        answers = {(row["length"], row["policy"]): row["prediction"] for row in alone}
        for row in batch:
            self.assertEqual(row["prediction"], answers[row["length"], row["policy"]])
            self.assertAlmostEqual(row["tokens_per_s"] * row["decode_s"], 3 * 7, msg="7 steps of 3 sequences")
        self.assertEqual({row["policy"] for row in batch}, {b"full", b"snapkv"})
        failed = rows[rows["status"] != b"complete"]
        self.assertEqual({(row["policy"], row["batch"]) for row in failed}, {(b"think", 3)})
        self.assertIn(b"would share", failed[0]["status"])
        table = json.loads(done.stdout)
        self.assertEqual({row["batch"] for row in table}, {"1", "3"})
        for row in table:
            if row["step_s"]:
                self.assertAlmostEqual(row["step_s"], int(row["batch"]) / row["tokens_per_s"])

    def test_answers_have_the_number_of_steps(self):
        self.made(*self.COMMAND, "--repeat", 1, "-o", "one.h5", "-q")
        done = self.made("export", "one.h5", "--figure", "results-table", "--cells", "step_s", "--columns", "length", "--blocks",
                         "subset", "-o", self.path("one.csv"))
        self.assertEqual(done.returncode, 0)
        rows = csv_rows(self.path("one.csv").read_text())
        self.assertEqual({row["subset"] for row in rows}, {"4 new tokens", "8 new tokens"})
        for name, command in (("inspect", ("inspect", "one.h5")), ("ranking", ("export", "one.h5", "--ranking", "samples"))):
            said = self.made(*command).stdout
            with self.subTest(name):
                self.assertIn("New tokens", said)
                self.assertNotIn("Subset", said)
        self.made("export", "one.h5", "--figure", "results-table", "--cells", "step_s", "--rows", "subset", "-o", "one.md")
        self.assertIn("|New tokens", self.path("one.md").read_text())
        table = csv_rows(self.made("inspect", "one.h5", "--format", "csv").stdout)
        self.assertEqual({row["n"] for row in table}, {"1"})
        self.refuses(1, ["timing has no scores"], "export", "one.h5", "--figure", "task-scores", "-o", "scores.csv")
        self.refuses(2, ["use --tokens 7"], *self.COMMAND, "-n", 7, "-o", "x.h5")
        self.refuses(2, ["range runs backwards"], "eval", "--task", "timing", "--lengths", "128-64", "-o", "x.h5")


if __name__ == "__main__":
    unittest.main()
