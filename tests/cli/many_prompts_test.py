#!/usr/bin/env python3
"""`kvscope run` with a folder, a JSONL file or several files: each file or line is one prompt."""

import json
import signal
import time
import unittest

import h5py
import numpy

from program import CONTEXT_LENGTH, HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG, TEXT, ProgramTest, csv_rows, json_rows

TIMES = {"prefill_s", "select_s", "first_token_s", "decode_s", "tokens_per_s", "peak_bytes", "data_hash"}
RUNS = ("-m", HF_MODEL, "--policy", "snapkv:window=8", "--policy", "h2o", "--budget", 24, "-n", 4, "--dtype", "f32", "-t", 1)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


@NEEDS_ENGINE
class ManyPrompts(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.folder.joinpath("texts", "deeper").mkdir(parents=True)
        for name, content in {"b.txt": TEXT, "a.md": TEXT[40:], "a.txt": TEXT[20:], ".hidden": "x", "deeper/c.txt": "x"}.items():
            cls.folder.joinpath("texts", name).write_text(content)

    def rows(self, name):
        with h5py.File(self.path(name)) as trace:
            table = trace["results/prompts"][:]
        return [{column: text(row[column]) for column in table.dtype.names} for row in table]

    def names(self, name):
        with h5py.File(self.path(name)) as trace:
            return [trace[f"prompts/{i}"].attrs["name"] for i in range(len(trace["prompts"]))]

    def write_records(self, name, *records):
        self.path(name).write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records))

    def test_a_folder(self):
        self.made("run", "texts", *RUNS, "-o", "folder.h5", "-q")
        self.assertEqual(self.names("folder.h5"), ["a", "a-2", "b"])  # in the order of file names
        # The rows of a prompt do not depend on the other prompts.
        self.made("run", "-f", "texts/b.txt", *RUNS, "-o", "alone.h5", "-q")
        for row, alone in zip(self.rows("folder.h5")[6:], self.rows("alone.h5"), strict=True):
            self.assertEqual(repr({k: v for k, v in row.items() if k not in TIMES}),
                             repr({k: v for k, v in alone.items() if k not in TIMES}))
        self.assertIn("no errors", self.made("inspect", "folder.h5").stdout)

    def test_records_with_questions_and_answers(self):
        self.write_records("q.jsonl", {"context": TEXT, "question": "Who jumps?", "answers": ["e"], "_id": 7}, "",
                           {"context": TEXT, "question": "", "answers": None}, {"context": TEXT, "answers": ["no such text"]})
        self.made("run", "q.jsonl", "--question", "And then?", *RUNS, "-o", "q.h5", "-q")
        self.assertEqual(self.names("q.h5"), ["q-1", "q-3", "q-4"])
        with h5py.File(self.path("q.h5")) as trace:
            self.assertEqual([trace[f"prompts/{i}"].attrs["question"] for i in range(3)],
                             ["Who jumps?", "And then?", "And then?"])
        rows = self.rows("q.h5")
        for row in rows[:3]:
            self.assertEqual(row["score"], float("e" in row["prediction"].lower()))
            self.assertEqual((row["metric"], row["answers_json"]), ("string_match_part", '["e"]'))
        for row in rows[3:6]:
            self.assertNotEqual(row["score"], row["score"])  # NaN, because no answer is known
            self.assertEqual(row["metric"], "")
        self.assertEqual([row["score"] for row in rows[6:]], [0, 0, 0])
        self.assertEqual(len({row["context_hash"] for row in rows}), 1)
        self.assertEqual(len({row["sample_hash"] for row in rows}), 3)
        self.assertIn("no errors", self.made("inspect", "q.h5").stdout)

    def test_answers_are_a_part_of_the_recipe(self):
        self.write_records("s.jsonl", {"context": TEXT, "answers": ["x"]})
        self.made("run", "s.jsonl", *RUNS, "-o", "s.h5", "-q")
        self.write_records("s.jsonl", {"context": TEXT, "answers": ["y"]})
        self.refuses(1, ["s.h5", "answers", '"x"', '"y"'], "run", "s.jsonl", *RUNS, "-o", "s.h5", "-q")
        self.made("run", "--prompt-from", "s.h5", *RUNS, "-o", "again.h5", "-q")
        self.assertEqual([row["answers_json"] for row in self.rows("again.h5")], 3 * ['["x"]'])

    def test_a_folder_gains_a_file(self):
        self.path("more").mkdir()
        self.path("more").joinpath("b.txt").write_text(TEXT)
        self.made("run", "more", *RUNS, "-o", "more.h5", "-q")
        before = self.rows("more.h5")
        self.path("more").joinpath("a.txt").write_text(TEXT[30:])  # before the other file in the folder's order
        self.made("run", "more", *RUNS, "-o", "more.h5", "-q")
        rows = self.rows("more.h5")
        self.assertEqual(self.names("more.h5"), ["b", "a"])
        self.assertEqual([row["prediction"] for row in rows[:3]], [row["prediction"] for row in before])

    def test_a_prompt_beyond_the_context_fails_alone(self):
        self.path("long.txt").write_text(TEXT * CONTEXT_LENGTH)
        command = ("run", "-f", "texts/a.txt", "-f", "long.txt", "-f", "texts/b.txt", *RUNS, "-o", "long.h5", "-q")
        for attempt in ("anew", "complete"):
            with self.subTest(attempt):
                self.refuses(1, ["long.txt", "This prompt is left out"], *command)
                self.assertEqual(self.names("long.h5"), ["a", "b"])
        self.refuses(2, ["long.txt"], "run", "-f", "long.txt", *RUNS, "-o", "none.h5", "-q")
        self.assertEqual(list(self.folder.glob("none.h5*")), [])

    def test_bad_records_fail_alone(self):
        self.write_records("bad.jsonl", "{broken", {"context": " "}, {"text": TEXT}, {"context": TEXT, "answers": "x"},
                           {"context": TEXT})
        self.refuses(1, ["bad.jsonl:1: expected an object", "bad.jsonl:2: expected a text that is not blank",
                         'bad.jsonl:3: expected the field "context", found only "text"',
                         "bad.jsonl:4: expected a list of texts"], "run", "bad.jsonl", *RUNS, "-o", "bad.h5", "-q")
        self.assertEqual(self.names("bad.h5"), ["bad-5"])

    def test_only_rows(self):
        arguments = (*RUNS, "--policy", "asymkv:sinks=4", "--policy", "oracle", "--question", "Who?", "--question", "And then?",
                     "--query-aware", "off", "-q", "-o")
        self.made("run", "texts", *arguments, "full.h5")
        self.made("run", "texts", *arguments, "rows.h5", "--record", "rows")
        full, rows = self.rows("full.h5"), self.rows("rows.h5")
        self.assertEqual(len(rows), 30)
        for row, other in zip(rows, full, strict=True):
            self.assertEqual(repr({k: v for k, v in row.items() if k not in TIMES - {"data_hash"}}),
                             repr({k: v for k, v in other.items() if k not in TIMES - {"data_hash"}}))
        with h5py.File(self.path("rows.h5")) as trace:
            self.assertEqual(len(trace.get("prompts", ())), 0)
        self.assertLess(self.path("rows.h5").stat().st_size, self.path("full.h5").stat().st_size / 3)
        said = self.made("inspect", "rows.h5").stdout
        self.assertIn("no errors", said)
        self.assertIn("means over 6 prompts", said)
        self.assertEqual(len(csv_rows(self.made("inspect", "rows.h5", "--format", "csv").stdout)), 5)
        ranked = json_rows(self.made("export", "rows.h5", "--ranking", "samples", "--format", "json").stdout)
        compared = [row for row in rows if row["policy"] != "full"]
        self.assertEqual(sorted(r["answer"] for r in ranked), sorted(row["prediction"] for row in compared))
        known = [row["kl"] for row in compared if row["kl"] == row["kl"]]
        self.assertEqual([r["kl"] for r in ranked if r["kl"] is not None], sorted(known, reverse=True))
        self.assertEqual(ranked, json_rows(self.made("export", "full.h5", "--ranking", "samples", "--format", "json").stdout))
        self.assertIn("nothing to do", self.made("run", "texts", *arguments[:-2], "-o", "rows.h5", "--record", "rows").stderr)
        self.refuses(1, ["rows.h5", "stored: existing --record rows, requested --record full"], "run", "texts", *arguments,
                     "rows.h5")
        self.refuses(1, ["rows.h5: the trace contains only rows of results", "--figure results-table", "--record full"],
                     "export", "rows.h5", "--figure", "cost", "-o", "cost.csv")
        self.refuses(1, ["spectrum", "The trace stores only rows of results"], "export", "rows.h5", "--figure", "spectrum", "-o", "s.csv")

    def check_measures(self, name, *arguments):
        """Compares the traces name-full.h5 and name-measures.h5 of one command."""
        self.made("run", *arguments, "-q", "-o", f"{name}-full.h5")
        self.made("run", *arguments, "-q", "--record", "measures", "-o", f"{name}-measures.h5")
        self.check_equal_measures(f"{name}-measures.h5", f"{name}-full.h5")

    def check_equal_measures(self, measures, full):
        self.assertEqual(len(self.rows(measures)), len(self.rows(full)))
        for row, expected in zip(self.rows(measures), self.rows(full), strict=True):
            for column in expected.keys() - TIMES - {"data_hash"}:
                if column == "recall":  # stored as f32 per head
                    numpy.testing.assert_allclose(row[column], expected[column], rtol=1e-6)
                else:
                    self.assertEqual(repr(row[column]), repr(expected[column]), column)
        left_out = {"window_attention", "query_similarity", "last_logits", "scores", "answer_attention", "kl_attention_lost"}
        with h5py.File(self.path(measures)) as trace, h5py.File(self.path(full)) as whole:
            names, all_names = [], []
            trace["prompts"].visit(names.append)
            whole["prompts"].visit(all_names.append)
            self.assertEqual({name for name in names if not name.endswith("/recall")},
                             {name for name in all_names if name.split("/")[-1] not in left_out})
            self.assertTrue(left_out & {name.split("/")[-1] for name in all_names})
            recalls = [name for name in names if name.endswith("/recall")]
            for name in recalls:
                self.assertTrue(numpy.all((0 <= trace["prompts"][name][:]) & (trace["prompts"][name][:] <= 1)))
            self.assertEqual(len(recalls), sum(not numpy.isnan(row["recall"]) for row in self.rows(full)))
        self.assertIn("no errors", self.made("inspect", measures).stdout)

    def test_only_measures(self):
        policies = ("--policy", "asymkv:sinks=4", "--policy", "h2o", "--policy", "palu:whitening=prompt", "--policy", "oracle")
        self.check_measures("seen", "texts", *RUNS, *policies)
        self.check_measures("hidden", "texts", *RUNS, *policies, "--question", "Who?", "--question", "And then?", "--query-aware",
                            "off")
        self.check_measures("alone", "texts/a.txt", *RUNS, *policies, "--isolated")
        self.assertLess(self.path("seen-measures.h5").stat().st_size, self.path("seen-full.h5").stat().st_size * 0.8)
        self.made("export", "seen-measures.h5", "--figure", "recall", "-o", "recall.csv")
        self.made("export", "seen-full.h5", "--figure", "recall", "-o", "recall-full.csv")
        recalls, expected = (csv_rows(self.path(name).read_text()) for name in ("recall.csv", "recall-full.csv"))
        self.assertEqual([{**row, "recall": ""} for row in recalls], [{**row, "recall": ""} for row in expected])
        numpy.testing.assert_allclose(*([float(row["recall"]) for row in rows] for rows in (recalls, expected)), rtol=1e-6)
        why = "The trace stores only measures (--record measures): make it again with --record full"
        self.refuses(1, ["seen-measures.h5", "window_attention", why], "export", "seen-measures.h5", "--figure", "heads", "-o", "a.csv")
        said = self.made("export", "seen-measures.h5", "--figure", "all", "-o", "all.csv").stderr
        omitted = {line.split(": ")[2]: line for line in said.splitlines() if line.startswith("kvscope: omitted: ")}
        of_tokens = {"curves", "head-statistics", "query-similarity", "token-attention"}
        self.assertLessEqual(of_tokens, set(omitted))
        for name, line in omitted.items():
            self.assertEqual(why in line, name in of_tokens, line)
        for ranking in ("kl-losses", "losses"):
            self.refuses(1, [why], "export", "seen-measures.h5", "--ranking", ranking)

    def test_only_measures_gain_runs_and_prompts(self):
        more = ("--policy", "streaming-llm", "--policy", "dapq")
        self.made("run", "texts/a.md", *RUNS, "-q", "--record", "measures", "-o", "gained.h5")
        self.made("run", "texts/a.md", *RUNS, *more, "-q", "--record", "measures", "-o", "gained.h5")
        self.made("run", "texts", *RUNS, *more, "-q", "--record", "measures", "-o", "gained.h5")
        self.made("run", "texts", *RUNS, *more, "-q", "-o", "whole.h5")
        self.check_equal_measures("gained.h5", "whole.h5")

    def test_only_rows_resume_and_gain_prompts(self):
        self.path("grown").mkdir()
        for i in range(12):
            self.path("grown").joinpath(f"{i:02}.txt").write_text(TEXT[i:])
        command = ("run", "grown", *RUNS, "--record", "rows", "-o", "grown.h5")
        process = self.start(*command)
        parts = self.path("grown.h5.part")
        while process.poll() is None and not (parts / "results-prompts-3.h5").exists():
            time.sleep(0.005)
        process.kill()
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertLessEqual(len(list(parts.glob("prompt-*.h5"))), 2)  # finished prompts are removed
        said = self.made(*command).stderr
        self.assertIn("resuming grown.h5", said)
        self.assertIn("12/12 11: ", said)
        self.path("grown").joinpath("0.txt").write_text(TEXT[50:])
        done = self.made(*command)
        self.assertIn("extending grown.h5", done.stderr)
        self.assertNotIn("2/13 00", done.stderr)  # the rows of earlier prompts are kept
        self.made("run", "grown", *RUNS, "--record", "rows", "-q", "-o", "once.h5")
        by_name = lambda row: (row["sample_id"], row["policy"])
        for row, other in zip(sorted(self.rows("grown.h5"), key=by_name), sorted(self.rows("once.h5"), key=by_name), strict=True):
            self.assertEqual(repr({k: v for k, v in row.items() if k not in TIMES}),
                             repr({k: v for k, v in other.items() if k not in TIMES}))

    def test_no_prompt(self):
        self.path("empty").mkdir()
        self.refuses(1, ["empty: the folder contains no file"], "run", "empty", *RUNS, "-o", "none.h5")
        self.refuses(1, ["nowhere does not exist"], "run", "nowhere", *RUNS, "-o", "none.h5")
        self.write_records("none.jsonl", {"contexts": TEXT})
        self.refuses(2, ["none.jsonl:1", 'found only "contexts"'], "run", "none.jsonl", *RUNS, "-o", "none.h5")


if __name__ == "__main__":
    unittest.main()
