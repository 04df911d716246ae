#!/usr/bin/env python3
"""`kvscope inspect`: every problem of a trace is reported and the rest is shown; answers and parameters.

inspect_damage_test.cpp tests every kind of damage within one process.
"""

import json
import shutil
import unittest

import h5py

from program import (HF_MODEL, NEEDS_ENGINE, SOURCE, TEXT, ProgramTest, csv_rows, jsonl_rows)

GOOD = SOURCE / "tests" / "data" / "trace" / "v1.0.h5"


class Damage(ProgramTest):
    def copy(self):
        path = self.path("t.h5")
        shutil.copy(GOOD, path)
        path.chmod(0o644)
        return path

    def still_inspected(self, path):
        """Text and JSON end with 0 or 1, and the text contains every problem of the JSON."""
        listed = self.run_program("inspect", path, "--format", "json")
        self.assertIn(listed.returncode, (0, 1), listed.stderr)
        text = self.run_program("inspect", path)
        self.assertEqual(text.returncode, listed.returncode, text.stderr)
        if not listed.stdout:  # the file is unreadable: both report why
            self.assertEqual(listed.returncode, 1)
            self.assertIn(path.name, listed.stderr)
            return []
        problems = json.loads(listed.stdout)["problems"]
        for problem in problems:
            self.assertIn(problem["path"], text.stdout)
        self.assertEqual(listed.returncode, 1 if any(p["severity"] == "error" for p in problems) else 0)
        return problems

    def test_memory_of_another_text_and_model(self):
        with h5py.File(GOOD) as trace:
            model = trace["model"].attrs
            own = 2 * model["n_layers"] * model["n_kv_heads"] * model["head_dim"] * (4 if model["dtype"] == "f32" else 2)
        rows = csv_rows(self.made("inspect", GOOD, "--memory-at", "1000", "--format", "csv").stdout)
        full = next(row for row in rows if row["policy"] == "full")
        self.assertEqual(int(full["bytes_at"]), 1000 * own)
        rows = csv_rows(self.made("inspect", GOOD, "--memory-at", "131072", "--memory-model", "Llama-3.1-8B", "--format", "csv").stdout)
        full = next(row for row in rows if row["policy"] == "full")
        self.assertEqual(int(full["bytes_at"]), 131072 * 2 * 32 * 8 * 128 * 2)  # 16 GiB
        snapkv = next(row for row in rows if row["policy"] == "snapkv")
        grown = csv_rows(self.made("inspect", GOOD, "--memory-at", "131072", "--memory-model", "Llama-3.1-8B", "--budgets-grow",
                                   "--format", "csv").stdout)
        self.assertGreater(int(next(row for row in grown if row["label"] == snapkv["label"])["bytes_at"]),
                           100 * int(snapkv["bytes_at"]))
        for wrong in ("--memory-at", "0"), ("--memory-model", "Llama-3.1-8B"), ("--memory-at", "9", "--memory-model", "none"):
            self.assertEqual(self.run_program("inspect", GOOD, *wrong).returncode, 2)

    def test_the_card_that_a_trace_was_computed_on_is_named(self):
        path = self.copy()
        self.assertNotIn("computed on", self.made("inspect", path).stdout)
        with h5py.File(path, "r+") as trace:
            trace.attrs["recipe_json"] = json.dumps({**json.loads(trace.attrs["recipe_json"]), "device": "cuda:1"})
        self.assertIn("computed on cuda:1", self.made("inspect", path).stdout)

    def test_a_run_that_answered_nothing_says_so(self):
        path = self.copy()
        with h5py.File(path, "r+") as trace:
            attributes = trace["prompts/0/runs/1"].attrs
            attributes["output_text"] = ""
            label = attributes["label"]
        self.assertIn(f"\n{label} answered nothing\n", self.run_program("inspect", path).stdout)

    def test_options_of_traces(self):
        for option in ("--memory-at", "9"), ("--prompt-text",):
            refused = self.run_program("inspect", HF_MODEL, *option)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"{option[0]} applies to traces", refused.stderr)

    def test_steps_of_different_numbers(self):
        for with_full_run in (True, False):
            for name in ("step_kl", "step_agreement"):
                with self.subTest(f"{name} {with_full_run}"):
                    path = self.copy()
                    with h5py.File(path, "r+") as trace:
                        run = trace["prompts/0/runs/1"]
                        values = run[name][:]
                        del run[name]
                        run[name] = values[:-1]
                        if not with_full_run:
                            del trace["prompts/0/runs/0"]
                    problems = self.still_inspected(path)
                    self.assertTrue(any(p["path"].startswith("/prompts/0/runs/1/step_") for p in problems), problems)
                    shown = self.run_program("inspect", path).stdout
                    self.assertIn("/prompts/0/runs/1/step_", shown)
                    self.assertIn("Label", shown, "the table of runs is missing")
                    self.assertEqual(self.run_program("inspect", path, "--format", "csv").returncode, 1)


@NEEDS_ENGINE
class Answers(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.make_trace("t.h5", "--policy", "snapkv:window=8", "--budget", 20, "--temp", "0.75", "--top-p", "0.5", "-s", 3,
                       "--sampling-seed", 4)

    def runs(self):
        with h5py.File(self.path("t.h5"), "r") as trace:
            return [dict(trace[f"prompts/0/runs/{run}"].attrs) for run in range(2)]

    def test_answers_and_parameters_for_programs(self):
        as_json = json.loads(self.made("inspect", "t.h5", "--format", "json").stdout)["runs"]
        as_lines = jsonl_rows(self.made("inspect", "t.h5", "--format", "jsonl").stdout)
        as_csv = csv_rows(self.made("inspect", "t.h5", "--format", "csv").stdout)
        self.assertEqual(as_json, as_lines)
        for expected, row, text in zip(self.runs(), as_json, as_csv, strict=True):
            self.assertEqual(row["answer"], expected["output_text"])
            self.assertEqual(row["parameters"], json.loads(expected["parameters_json"]))
            self.assertEqual(json.loads(text["parameters"]), row["parameters"])
        self.assertEqual(as_json[1]["parameters"]["window"], 8)

    def test_how_answers_were_drawn_is_shown(self):
        self.assertIn("temperature 0.75, top-p 0.5, seed 4 of the answers, seed 3 of the policies",
                      self.made("inspect", "t.h5").stdout)
        self.make_trace("greedy.h5")
        self.assertIn("temperature 0.0 (greedy)", self.made("inspect", "greedy.h5").stdout)


class MoreTokensThanEmbeddings(ProgramTest):
    """transformers also loads such a model, because the extra tokens need not be used."""

    @classmethod
    def prepare(cls):
        cls.model = cls.folder / "model"
        shutil.copytree(HF_MODEL, cls.model)
        tokenizer = json.loads((cls.model / "tokenizer.json").read_text())
        n = json.loads((cls.model / "config.json").read_text())["vocab_size"]
        ids = list(tokenizer["model"]["vocab"].values()) + [token["id"] for token in tokenizer["added_tokens"]]
        cls.n_embeddings = n
        for i in range(max(ids) + 1, n + 5):
            tokenizer["added_tokens"].append({"id": i, "content": f"<|unused{i}|>", "special": True, "single_word": False,
                                              "lstrip": False, "rstrip": False, "normalized": False})
        (cls.model / "tokenizer.json").write_text(json.dumps(tokenizer))

    def said(self):
        return f"the tokenizer has {self.n_embeddings + 5} tokens, but the model has {self.n_embeddings} embeddings"

    def test_inspect_says_so(self):
        self.assertIn(self.said(), self.made("inspect", self.model).stdout)
        self.assertIn(self.said(), self.made("inspect", self.model, "--format", "csv").stderr)
        self.assertNotIn("embeddings", self.made("inspect", HF_MODEL).stdout)

    @NEEDS_ENGINE
    def test_it_runs_as_the_model_without_them(self):
        done = self.make_trace("more.h5", model=self.model)
        self.assertIn(self.said(), done.stderr)
        self.make_trace("less.h5")
        with h5py.File(self.path("more.h5"), "r") as more, h5py.File(self.path("less.h5"), "r") as less:
            self.assertEqual(more["prompts/0/runs/0/output_ids"][:].tolist(),
                             less["prompts/0/runs/0/output_ids"][:].tolist())

    @NEEDS_ENGINE
    def test_a_prompt_with_such_a_token_is_refused(self):
        token = f"<|unused{self.n_embeddings + 2}|>"
        self.path("special.txt").write_text(TEXT + token)
        self.refuses(2, ["special.txt", token, str(self.n_embeddings + 2), "embeddings"],
                     "run", "-m", self.model, "-f", "special.txt", "-n", 2, "-o", "t.h5")
        self.assertFalse(self.path("t.h5").exists())


if __name__ == "__main__":
    unittest.main()
