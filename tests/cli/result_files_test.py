#!/usr/bin/env python3
"""`export --results` writes result files of kvpress and lm-eval.

tests/data/results has files that the programs' own code wrote (scripts/golden/result_files.py).
"""

import csv
import io
import json
import re
import unittest

import h5py

from program import HF_MODEL, NEEDS_ENGINE, SOURCE, TEXT, ProgramTest, csv_rows, jsonl_rows

DATA = SOURCE / "tests" / "data" / "results"


def text(value):
    return value.decode() if isinstance(value, bytes) else value.item()


def tables_of(path):
    """Returns the rows of each table of results as dictionaries."""
    with h5py.File(path) as trace:
        return {task: [{name: text(row[name]) for name in table.dtype.names} for row in table[:]]
                for task, table in trace["results"].items()}


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

    def test_kvpress(self):
        folders = sorted(folder.name for folder in self.path("kvpress").iterdir())
        self.assertEqual(len(folders), 2 * 5)  # lengths, runs
        self.assertIn("niah__100__llama3-gqa-sharded__no_press__0.00__query_aware", folders)
        self.assertIn("niah__200__llama3-gqa-sharded__h2o__0.50__query_aware", folders)
        rows = csv_rows((self.path("kvpress") / folders[0] / "predictions.csv").read_text())
        self.assertEqual(len(rows), 2)
        self.check_kvpress_files()

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
            self.assertAlmostEqual(metrics["niah"]["string_match"], 100 * mean, places=2)

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
