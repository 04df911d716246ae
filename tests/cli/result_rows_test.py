#!/usr/bin/env python3
"""The tables /results/<task>: every run yields a row. Expected numbers are computed here from the recorded data."""

import hashlib
import json
import unittest

import h5py
import numpy

from program import GGUF_MODEL, HF_MODEL, NEEDS_ENGINE, TEXT, ProgramTest

MEASURES = ["kl", "kl_stderr", "agreement", "coverage", "attention_kept", "recall", "output_error", "bytes", "bytes_predicted",
            "system_dropped"]
COUNTS = ["kl_steps", "merged_keys", "merged_keys_outside"]
ATTRIBUTES = ["tied_heads"]
TIMES = ["prefill_s", "select_s", "first_token_s", "decode_s", "tokens_per_s", "peak_bytes"]
RUNS = ("--policy", "snapkv:window=16", "--policy", "think", "--policy", "asymkv", "--policy", "minicache", "--budget", "40,12,0.75")
QUESTIONS = ("--question", "Who?", "--question", "When?", "--query-aware", "off")


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def sample_hash(context, question="", answers=()):
    """Identifies a sample as docs/trace-format.md defines it."""
    return sha256(json.dumps([context, question, list(answers)], ensure_ascii=False, separators=(",", ":")))


def data_hash(samples):
    return sha256("".join(f"{sample}\n" for sample in sorted(samples)))


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def rows_of(path, task="prompts"):
    """Returns the rows of a table as dictionaries."""
    with h5py.File(path, "r") as trace:
        table = trace["results"][task][:]
    return [{name: text(row[name]) for name in table.dtype.names} for row in table]


def mean(values):
    values = numpy.asarray(values, "f8")
    values = values[~numpy.isnan(values)]
    return values.mean() if len(values) else numpy.nan


def held_rows(run, n_layers, n_rows):
    """Returns the set of tokens that each row of a cache holds, alone or in a merged entry."""
    if "merged/token_entry" in run:
        entries = run["merged/token_entry"][:].reshape(n_layers * n_rows, -1)
        return [set(numpy.flatnonzero(row >= 0)) for row in entries]
    offsets, indices = run["kept_offsets"][:], run["kept_indices"][:]
    return [set(indices[begin:end]) for begin, end in zip(offsets[:-1], offsets[1:])]


def share_of_tied_heads(run, n):
    """Returns the share of rows in which a kept position has the score of the best dropped position."""
    offsets, scores = run["kept_offsets"][:], run["scores"][:].reshape(-1, n)
    ties = 0
    for begin, end, row in zip(offsets[:-1], offsets[1:], scores, strict=True):
        kept = run["kept_indices"][begin:end]
        dropped = numpy.delete(row, kept)
        dropped = dropped[~numpy.isnan(dropped)]
        ties += len(dropped) > 0 and numpy.any(row[kept] == dropped.max())
    return ties / len(scores)


def expected_measures(model, n, n_system, run, full):
    """Computes the measures of a complete run as docs/trace-format.md defines them."""
    n_layers, n_kv_heads = int(model["n_layers"]), int(model["n_kv_heads"])
    n_rows = int(model["n_heads"]) if run.attrs["granularity"] == "query_head" else n_kv_heads
    held = held_rows(run, n_layers, n_rows)
    found = {"kl": numpy.mean(run["step_kl"][:], dtype="f8"), "agreement": run["step_agreement"][:].mean(),
             "coverage": len(set().union(*held)) / n, "output_error": mean(run["output_error"][:]),
             "kl_stderr": numpy.std(run["step_kl"][:], dtype="f8", ddof=1) / len(run["step_kl"]) ** 0.5,
             "kl_steps": len(run["step_kl"]), "bytes_predicted": float(run["cache_bytes_predicted"][:].sum()),
             "merged_keys": numpy.nan, "merged_keys_outside": numpy.nan,
             "bytes": float(run["cache_bytes"][:].sum()), "attention_kept": numpy.nan, "recall": numpy.nan,
             "kept_share": len(run["kept_indices"]) / (n_layers * n_rows * n)}
    of_system = sum(token < n_system for row in held for token in row)
    of_others = sum(map(len, held)) - of_system
    if n_system:
        found["system_dropped"] = (of_others / (n - n_system) - of_system / n_system) / len(held)
    if "merged/keys" in run:
        found |= {"merged_keys": run["merged/keys"][:].sum(), "merged_keys_outside": run["merged/keys_outside"][:].sum()}
    if run.attrs["policy"] == "full" or sum(map(len, held)) < n_layers * n_rows * n:
        found["attention_kept"] = mean(run["attention_kept"][:])
        shares = []
        for i, row in enumerate(held):
            layer, head = divmod(i, n_rows)
            attention = full["answer_attention"][layer, head * n_kv_heads // n_rows]
            best = sorted(range(n), key=lambda token: (-attention[token], token))[:int(run.attrs["budget"])]
            shares.append(len(row.intersection(best)) / len(best))
        found["recall"] = numpy.mean(shares)
    return found


class Rows(ProgramTest):
    def check_rows(self, name):
        """Compares /results/prompts with the recorded data of a trace. Returns the rows."""
        rows = rows_of(self.path(name))
        left = iter(rows)
        with h5py.File(self.path(name), "r") as trace:
            self.assertEqual(trace.attrs["version"], "1.2")
            model = trace["model"].attrs
            prompts = [trace["prompts"][str(i)] for i in range(len(trace["prompts"]))]
            of_data = data_hash(sample_hash(TEXT, prompt.attrs["question"]) for prompt in prompts)
            for prompt in prompts:
                runs = [prompt["runs"][str(j)] for j in range(len(prompt["runs"]))]
                n = int(prompt.attrs["n_tokens" if prompt.attrs["query_aware"] else "n_context"])
                for run in runs:
                    self.check_row(next(left), model, prompt, n, run, runs[0])
        self.assertEqual(next(left, None), None)
        self.assertEqual({row["data_hash"] for row in rows}, {of_data})
        self.assertIn("no errors", self.made("inspect", name).stdout)
        return rows

    def check_row(self, row, model, prompt, n, run, full):
        a = run.attrs
        failed = a["status"] == "failed"
        expected = {"sample_id": prompt.attrs["name"], "prompt_hash": sha256(prompt.attrs["text"]),
                    "sample_hash": sample_hash(TEXT, prompt.attrs["question"]), "policy": a["policy"],
                    "parameters_json": a["parameters_json"], "budget": a["budget"], "budget_fraction": a["budget_fraction"],
                    "length": prompt.attrs["n_tokens"], "prediction": a["output_text"], "answers_json": "[]", "metric": "",
                    "scored_as": "", "status": f"failed: {a['message']}" if failed else "complete", "model": model["name"],
                    "dtype": model["dtype"], "device": a["device"], "instructions": a["instructions"], "commit": a["commit"],
                    "seed": a["seed"], "question_seen": prompt.attrs["query_aware"], "repeat": 0, "batch": 1}
        for column, value in expected.items():
            self.assertEqual(row[column], value, f"{column} of {a['label']}")
        numbers = {column: numpy.nan for column in ("depth", "score", "seconds", *MEASURES, *COUNTS, *ATTRIBUTES, *TIMES)}
        if failed:
            numbers["kept_share"] = 0
        else:
            numbers |= expected_measures(model, n, prompt.attrs.get("n_system", 0), run, full)
            numbers |= {column: a.get(column, numpy.nan) for column in ATTRIBUTES + TIMES}
            if "tied_heads" in a:
                self.assertAlmostEqual(a["tied_heads"], share_of_tied_heads(run, n), delta=1e-12)
            numbers["tokens_per_s"] = a.get("decode_tokens_per_s", numpy.nan)
        for column, value in numbers.items():
            numpy.testing.assert_allclose(row[column], value, rtol=1e-9, err_msg=f"{column} of {a['label']}")


def without_times(rows):
    return repr([{name: value for name, value in row.items() if name not in TIMES} for row in rows])


@NEEDS_ENGINE
class Prompts(Rows):
    def test_rows_equal_the_recorded_data(self):
        done = self.run_program("run", "-m", HF_MODEL, "-n", 8, "--dtype", "f32", "-t", 1, "-p", TEXT, *RUNS, *QUESTIONS, "-s", 7,
                                "-o", "t.h5")
        self.assertIn("runs failed", done.stderr)
        rows = self.check_rows("t.h5")
        self.assertEqual(len(rows), 2 * (1 + 4 * 3))
        with h5py.File(self.path("t.h5")) as trace:
            prompt = trace["prompts/0"]
            before = "".join(prompt["token_text"].asstr()[:prompt.attrs["n_system"]])
            self.assertTrue(prompt.attrs["text"].startswith(before + TEXT[:20]), before)
        for column in [*MEASURES, *ATTRIBUTES]:
            self.assertGreater(len({row[column] for row in rows if row[column] == row[column]}), 1, f"{column} varies")
        self.assertTrue(any(row["status"].startswith("failed") for row in rows))
        self.assertTrue(any(numpy.isnan(row["recall"]) for row in rows if row["status"] == "complete"))
        self.assertEqual({(row["seed"], row["question_seen"]) for row in rows}, {(7, 0)})

    def test_origin_of_runs(self):
        self.make_trace("origin.h5", "--policy", "snapkv", "--budget", 40, "--isolated")
        rows = self.check_rows("origin.h5")
        version = self.made("--version").stdout
        for row in rows:
            self.assertIn(f"(commit {row['commit']})", version)
            self.assertIn(f"{row['instructions']} kernels", version)
            self.assertEqual(row["device"], "cpu")
            for column in TIMES:
                self.assertGreater(row[column], 0, column)

    def test_the_table_of_prompts_is_not_a_task(self):
        self.make_trace("no-task.h5", "--policy", "snapkv", "--budget", 40)
        self.refuses(1, ["the trace has no scores"], "export", "no-task.h5", "--figure", "task-scores", "-o", "no.svg")
        self.assertNotIn("scores of", self.made("inspect", "no-task.h5").stdout)

    def test_an_extended_trace_has_the_rows_of_one_that_is_written_at_once(self):
        more = ("--policy", "snapkv:window=16", "--policy", "asymkv", "--budget", 40)
        self.make_trace("extended.h5", "--policy", "snapkv:window=16", "--budget", 40, *QUESTIONS[:2])
        few = rows_of(self.path("extended.h5"))
        # An earlier commit, and an earlier version without the table
        with h5py.File(self.path("extended.h5"), "r+") as trace:
            for run in trace["prompts/0/runs"].values():
                run.attrs["commit"] = "0123abc"
            del trace["results"]
        self.make_trace("extended.h5", *more, *QUESTIONS[:2], "--question", "When?")
        rows = self.check_rows("extended.h5")
        self.assertEqual([row["commit"] for row in rows[:3]], ["0123abc", "0123abc", few[0]["commit"]])
        self.make_trace("at-once.h5", *more, *QUESTIONS[:2], "--question", "When?")
        for row in rows:
            row["commit"] = few[0]["commit"]
        self.assertEqual(without_times(rows), without_times(rows_of(self.path("at-once.h5"))))

    def test_a_resumed_trace_keeps_the_origin_of_its_runs(self):
        arguments = ("--policy", "snapkv:window=16", "--policy", "h2o", "--budget", 40)
        self.make_trace("once.h5", *arguments)
        once = rows_of(self.path("once.h5"))
        # The parts of a killed command: prompt and two of three runs
        part = self.path("resumed.h5.part")
        part.mkdir()
        with h5py.File(self.path("once.h5"), "r") as trace:
            root = {name: str(trace.attrs[name]) for name in ("format", "version", "generator", "created_utc", "recipe_json")}
            (part / "trace.json").write_text(json.dumps(root))
            for file, group in (("model", "model"), ("prompt-0", "prompts/0"), ("run-0-0", "prompts/0/runs/0"),
                                ("run-0-1", "prompts/0/runs/1")):
                with h5py.File(part / f"{file}.h5", "w", libver=("v110", "v110")) as copy:
                    copy.attrs.update(root, complete=0)
                    trace.copy(trace[group], copy, group)
                    if file == "prompt-0":
                        del copy["prompts/0/runs"]
                    elif "run" in file:
                        copy[group].attrs["commit"] = "0123abc"
        self.make_trace("resumed.h5", *arguments)
        rows = self.check_rows("resumed.h5")
        self.assertEqual([row["commit"] for row in rows], ["0123abc", "0123abc", once[2]["commit"]])
        for row in rows:
            row["commit"] = once[0]["commit"]
        self.assertEqual(without_times(rows), without_times(once))

    def test_only_runs_with_damaged_data_have_rows_without_measures(self):
        self.make_trace("damaged.h5", "--policy", "snapkv", "--budget", 40)
        sound = rows_of(self.path("damaged.h5"))
        with h5py.File(self.path("damaged.h5"), "r+") as trace:
            del trace["results"]
            kept = trace["prompts/0/runs/1/kept_indices"]
            indices = kept[:]
            indices[:2] = indices[1::-1]
            kept[...] = indices
        extend = ("run", "-m", HF_MODEL, "-n", 8, "--dtype", "f32", "-t", 1, "-p", TEXT, "--policy", "snapkv,h2o", "--budget", 40)
        done = self.run_program(*extend, "-o", "damaged.h5")
        self.assertIn("/results/prompts lacks measures of a damaged run", done.stderr)
        rows = rows_of(self.path("damaged.h5"))
        self.assertEqual([row["policy"] for row in rows], ["full", "snapkv", "h2o"])
        self.assertEqual([bool(numpy.isnan(row["coverage"])) for row in rows], [False, True, False])
        self.assertEqual(without_times(rows[:1]), without_times(sound[:1]))
        self.assertEqual(rows[1]["prefill_s"], sound[1]["prefill_s"])

    def test_equal_prompts_count_separately_in_the_hash(self):
        self.make_trace("equal.h5", "--policy", "snapkv", "--budget", 40, "--question", "Who?", "--question", "Who?")
        rows = rows_of(self.path("equal.h5"))
        self.assertEqual(rows[0]["data_hash"], data_hash(2 * [sample_hash(TEXT, "Who?")]))

    def test_the_hash_of_the_data_depends_on_the_texts_alone(self):
        self.path("a.txt").write_text(TEXT)
        self.path("b.txt").write_text(TEXT + ' "Ä"\n')
        expected = data_hash([sample_hash(TEXT, "Who?"), sample_hash(TEXT + ' "Ä"\n', "Who?")])
        for i, how in enumerate((("-f", "a.txt", "-f", "b.txt"), ("-f", "b.txt", "-f", "a.txt"),
                                 ("-f", "a.txt", "-f", "b.txt", "--no-template"),
                                 ("-m", GGUF_MODEL, "-f", "a.txt", "-f", "b.txt", "--query-aware", "off"))):
            with self.subTest(how):
                name = f"data-{i}.h5"
                self.make_trace(name, *how, "--question", "Who?", prompt=None)
                self.assertEqual({row["data_hash"] for row in rows_of(self.path(name))}, {expected})
        self.make_trace("again.h5", "--prompt-from", f"{self.path('data-0.h5')}:1", prompt=None)
        self.assertEqual(rows_of(self.path("again.h5"))[0]["data_hash"], data_hash([sample_hash(TEXT + ' "Ä"\n', "Who?")]))

    def test_problems_in_the_table_are_reported(self):
        self.make_trace("sound.h5", "--policy", "snapkv", "--budget", 40)
        for column, value, expected in (("coverage", 1.5, "from 0 to 1"), ("kl", -1, "or more"), ("question_seen", 2, "from -1 to 1"),
                                        ("repeat", -1, "0 or more"), ("kept_share", 2, "from 0 to 1")):
            with h5py.File(self.path("sound.h5"), "r+") as trace:
                before = trace["results/prompts"][:]
                changed = before.copy()
                changed[1][column] = value
                trace["results/prompts"][...] = changed
            done = self.run_program("inspect", "sound.h5")
            self.assertEqual(done.returncode, 1, column)
            self.assertIn(f"/results/prompts[1].{column}", done.stdout)
            self.assertIn(expected, done.stdout)
            with h5py.File(self.path("sound.h5"), "r+") as trace:
                trace["results/prompts"][...] = before
        for column, value, expected in (("status", "banana", "complete"), ("policy", "h2o", "snapkv"), ("dtype", "f16", "f32"),
                                        ("model", "other", text(before[1]["model"])), ("parameters_json", "{}", "window"), ("seed", 3, "0")):
            with h5py.File(self.path("sound.h5"), "r+") as trace:
                changed = before.copy()
                changed[1][column] = value
                trace["results/prompts"][...] = changed
            done = self.run_program("inspect", "sound.h5")
            self.assertEqual(done.returncode, 1, column)
            self.assertIn(f"/results/prompts[1].{column}", done.stdout)
            self.assertIn(expected, done.stdout)
        with h5py.File(self.path("sound.h5"), "r+") as trace:
            del trace["results/prompts"]
            trace["results"].create_dataset("prompts", data=before[:1], dtype=before.dtype)
        self.assertIn("2 rows, one per run of a prompt", self.run_program("inspect", "sound.h5").stdout)


@NEEDS_ENGINE
class Tasks(Rows):
    EVAL = ("eval", "-m", HF_MODEL, "--lengths", 150, "--depths", "0.2,0.8", "--policy", "h2o", "--budget", 32, "-n", 4, "--dtype",
            "f32", "-t", 1, "-q", "-s", 3)

    def test_rows_of_a_task(self):
        self.made(*self.EVAL, "--samples", 1, "-o", "few.h5")
        few = rows_of(self.path("few.h5"), "niah")
        self.made(*self.EVAL, "--samples", 2, "-o", "few.h5")
        rows = rows_of(self.path("few.h5"), "niah")
        self.made(*self.EVAL, "--samples", 2, "-o", "at-once.h5")
        at_once = rows_of(self.path("at-once.h5"), "niah")
        for table in (rows, at_once):
            for row in table:
                del row["seconds"]
        self.assertEqual(without_times(rows), without_times(at_once))
        self.assertNotEqual(few[0]["data_hash"], rows[0]["data_hash"])
        samples = {row["sample_hash"] for row in rows}
        self.assertEqual(len(samples), 4)
        version = self.made("--version").stdout
        with h5py.File(self.path("few.h5"), "r") as trace:
            recipe = json.loads(trace.attrs["recipe_json"])
            for row, prompt in zip(rows, [prompt for prompt in recipe["prompts"] for _ in range(2)]):
                self.assertEqual(row["prompt_hash"], sha256(prompt["text"]))
                self.assertEqual(row["data_hash"], data_hash(samples))
                self.assertEqual((row["model"], row["dtype"]), (trace["model"].attrs["name"], "f32"))
                self.assertEqual((row["device"], row["seed"], row["question_seen"], row["repeat"]), ("cpu", 0, 1, 0))
                self.assertIn(f"(commit {row['commit']})", version)
                self.assertGreater(row["bytes"], 0)
                self.assertGreater(row["prefill_s"], 0)
                self.assertTrue(numpy.isnan([row[name] for name in ("kl", "agreement", "recall", "output_error")]).all())
        self.assertEqual({row["coverage"] for row in rows if row["policy"] == "full"}, {1})
        self.path("mine.jsonl").write_text(json.dumps({"context": TEXT, "question": "Who?", "answers": ["Ä", "fox"]}))
        self.made("eval", "--task", "jsonl", "--file", "mine.jsonl", "-m", HF_MODEL, "-n", 4, "-q", "-o", "mine.h5")
        self.assertEqual(rows_of(self.path("mine.h5"), "jsonl")[0]["data_hash"],
                         data_hash([sample_hash(TEXT, "Who?", ["Ä", "fox"])]))
        self.assertTrue(all(row["coverage"] < 1 for row in rows if row["policy"] == "h2o"))

    def test_tables_with_fewer_and_with_other_columns(self):
        self.made(*self.EVAL, "--samples", 1, "-o", "old.h5")
        said = self.made("inspect", "old.h5").stdout
        with h5py.File(self.path("old.h5"), "r+") as trace:
            new = trace["results/niah"][:]
            names = list(new.dtype.names[:16])
            self.assertEqual(names[-1], "status")
            old_type = numpy.dtype([("other", "i4")] + [(name, new.dtype[name]) for name in names])
            old = numpy.zeros(len(new), old_type)
            for name in names:
                old[name] = new[name]
            del trace["results/niah"]
            trace["results"].create_dataset("niah", data=old, dtype=old_type)
        self.assertEqual(self.made("inspect", "old.h5").stdout, said)
        self.made(*self.EVAL, "--samples", 2, "-o", "old.h5")  # fills the columns that do not need the runs
        rows = rows_of(self.path("old.h5"), "niah")
        same = ("model", "dtype", "device", "instructions", "data_hash", "seed", "question_seen", "repeat")
        self.assertEqual(len({tuple(row[name] for name in same) for row in rows}), 1)
        self.assertEqual(rows[0]["data_hash"], data_hash({row["sample_hash"] for row in rows}))
        for row in rows[:2]:
            self.assertEqual(row["commit"], "")
            self.assertTrue(numpy.isnan(row["coverage"]))


if __name__ == "__main__":
    unittest.main()
