#!/usr/bin/env python3
"""Commands that print to stdout, in every format; spellings and help."""

import json
import re
import unittest

import h5py
import numpy

from program import (FIGURE_FILES, GGUF_MODEL, HF_MODEL, MODELS, NEEDS_ENGINE, POLICY_FILES, SOURCE, TEXT, ProgramTest,
                     csv_rows, json_rows, jsonl_rows, markdown_rows)


def stored_weights(folder):
    """Returns name -> f32 array for the bf16, f16 and f32 tensors of a model's safetensors files."""
    weights = {}
    for path in folder.glob("*.safetensors"):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:8 + size]).items():
            if name == "__metadata__":
                continue
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            if entry["dtype"] == "BF16":
                values = (numpy.frombuffer(data[first:last], "<u2").astype("<u4") << 16).view("<f4")
            else:
                values = numpy.frombuffer(data[first:last], {"F16": "<f2", "F32": "<f4"}[entry["dtype"]]).astype("<f4")
            weights[name] = values.reshape(entry["shape"])
    return weights


class AllForms(ProgramTest):
    def rows(self, *arguments):
        """Returns the rows, after checking that json, jsonl and csv are equal, and the output in Markdown."""
        answers = {form: self.made(*arguments, "--format", form).stdout for form in ("json", "jsonl", "csv", "md")}
        rows = json_rows(answers["json"])
        self.assertGreater(len(rows), 0)
        self.assertEqual(jsonl_rows(answers["jsonl"]), rows)
        from_csv = csv_rows(answers["csv"])
        self.assertEqual(len(from_csv), len(rows))
        for ours, theirs in zip(from_csv, rows):
            self.assertEqual(list(ours), list(theirs))
            for name, value in theirs.items():
                if isinstance(value, str):
                    self.assertEqual(ours[name], value)
                elif isinstance(value, (int, float)):
                    self.assertEqual(float(ours[name]), value)
                else:
                    self.assertEqual(ours[name], "")
        return rows, answers["md"]


class Answers(AllForms):
    def test_figures(self):
        rows, markdown = self.rows("figures")
        self.assertEqual([row["figure"] for row in rows], FIGURE_FILES)
        self.assertEqual(len(markdown_rows(markdown)), len(rows))

    def test_policies(self):
        rows, _ = self.rows("policies")
        names = [row["policy"] for row in rows]
        self.assertEqual(names, sorted(names))
        self.assertEqual(sorted(name.replace("-", "_").replace("+", "_plus") for name in names), POLICY_FILES)
        self.assertTrue(self.made("policies", "--format", "tex").stdout.rstrip().endswith(r"\end{tabular}"))

    def test_the_policies_page_is_what_the_program_says(self):
        page = (SOURCE / "docs" / "policies.md").read_text(encoding="utf-8")
        self.assertEqual(self.made("policies", "--format", "md").stdout, page)

    def test_one_policy(self):
        rows, markdown = self.rows("policies", "aperturekv")
        found = {row["parameter"]: row["default"] for row in rows}
        self.assertEqual((found["window"], found["lambda"], found["divergence"]), ("8", "0.45", "jsd"))
        self.assertEqual(len(markdown_rows(markdown)), len(rows))

    def test_models(self):
        rows, markdown = self.rows("models", MODELS)
        self.assertEqual(rows[0]["origin"], "default")
        self.assertEqual(rows[0]["path"], str(GGUF_MODEL))
        found = {row["name"]: row for row in rows[1:]}
        self.assertEqual(set(found), {p.parent.name for kind in ("config.json", "*.gguf") for p in MODELS.glob(f"*/{kind}")})
        self.assertEqual([found["llama3-gqa-sharded"][name] for name in ("n_layers", "n_heads", "n_kv_heads",
                                                                         "head_dim", "context")], [2, 4, 2, 16, 512])
        self.assertEqual(len(markdown_rows(markdown)), len(rows))

    def test_a_broken_model_is_listed_as_such(self):
        broken = self.path("models/broken")
        broken.mkdir(parents=True)
        (broken / "config.json").write_text("{")
        rows = json_rows(self.made("models", self.path("models"), "--format", "json").stdout)
        self.assertEqual(rows[1]["name"], "broken")
        self.assertIn("cannot be used", rows[1]["family"])
        self.assertIn("config.json", rows[1]["family"])

    def test_inspect_a_directory(self):
        rows, _ = self.rows("inspect", HF_MODEL)
        weights = stored_weights(HF_MODEL)
        self.assertEqual({row["name"] for row in rows}, set(weights))
        self.assertEqual(sum(row["elements"] for row in rows), sum(w.size for w in weights.values()))

    def test_inspect_a_gguf_file(self):
        rows, _ = self.rows("inspect", GGUF_MODEL)
        self.assertGreater(len(rows), 20)
        text = self.made("inspect", GGUF_MODEL).stdout
        for part in ("2 layers, 4 heads, 2 KV heads of 16", "context 512", "chat template: yes"):
            self.assertIn(part, text)
        self.assertRegex(text, r"fingerprint [0-9a-f]{64}")


@NEEDS_ENGINE
class Analyze(AllForms):
    def check(self):
        rows, _ = self.rows("analyze", HF_MODEL, "-q")
        weights = stored_weights(HF_MODEL)
        self.assertEqual(len(rows), 2 * 3)
        for row in rows:
            w = weights[f"model.layers.{row['layer']}.self_attn.{row['projection']}_proj.weight"].astype("f8")
            eigenvalues = numpy.linalg.svd(w, compute_uv=False) ** 2
            self.assertAlmostEqual(row["largest"] / eigenvalues[0], 1, places=5)
            self.assertAlmostEqual(row["sum"] / eigenvalues.sum(), 1, places=5)
            self.assertEqual(row["modes"], len(eigenvalues))
            share = numpy.cumsum(eigenvalues) / eigenvalues.sum()
            self.assertEqual(row["modes_90"], int(numpy.argmax(share >= 0.9)) + 1)

    def test_spectra_are_those_of_the_weights(self):
        self.check()
        self.assertTrue(any(self.cache.rglob("*")), "the cache is empty")
        self.check()

    def test_spectra_are_drawn_and_their_numbers_written(self):
        said = ("analyze", HF_MODEL, "-q")
        for extension, begin in (("pdf", b"%PDF-1."), ("svg", b"<?xml"), ("png", b"\x89PNG")):
            output = self.path(f"spectra.{extension}")
            self.assertEqual(self.made(*said, "-o", output).stdout, "")
            self.assertTrue(output.read_bytes().startswith(begin))
        drawn = self.path("spectra.svg").read_text()
        self.assertIn("fingerprint", drawn)
        self.assertNotIn("model.h5", drawn)
        self.made(*said, "-o", self.path("again.svg"))
        self.assertEqual(self.path("again.svg").read_text(), drawn)
        self.made(*said, "-o", self.path("spectra.csv"))
        self.assertEqual(self.path("spectra.csv").read_text(), self.made(*said, "--format", "csv").stdout)
        self.refuses(1, ["spectra.csv", "--force"], *said, "-o", self.path("spectra.csv"))
        self.refuses(2, ["spectra.xyz"], *said, "-o", self.path("spectra.xyz"))

    def test_a_trace_of_the_model_alone(self):
        trace = self.path("model.h5")
        self.made("analyze", HF_MODEL, "-q", "-o", trace)
        self.made("inspect", trace)  # reports no problem
        with h5py.File(trace, "r") as file:
            weights = stored_weights(HF_MODEL)["model.layers.1.self_attn.k_proj.weight"].astype("f8")
            eigenvalues = numpy.linalg.svd(weights, compute_uv=False) ** 2
            stored = file["model/spectrum/k"][1]
            numpy.testing.assert_allclose(stored[:len(eigenvalues)], eigenvalues, rtol=1e-4, atol=1e-5 * eigenvalues[0])
            self.assertEqual(file["model"].attrs["n_layers"], 2)
        before = trace.read_bytes()
        self.assertIn("nothing to do", self.made("analyze", HF_MODEL, "-o", trace).stderr)
        self.assertEqual(trace.read_bytes(), before)
        self.made("export", trace, "--figure", "spectrum", "--source", "cumulative", "-o", self.path("shares.csv"))
        self.path("other.h5").write_text("no trace")
        self.refuses(1, ["other.h5"], "analyze", HF_MODEL, "-q", "-o", self.path("other.h5"))
        self.assertEqual(self.path("other.h5").read_text(), "no trace")


@NEEDS_ENGINE
class Queries(AllForms):
    def test_queries_by_content_and_position(self):
        rows, _ = self.rows("analyze", HF_MODEL, "--queries", "-p", TEXT, "-n", 6, "--trials", 3, "--offsets", 2,
                            "--dtype", "f32", "-q")
        self.assertEqual([row["condition"] for row in rows],
                         ["SC & SP", "DC & SP", "SC & DP", "DC & DP"] + ["DC & SP"] + ["SC & DP"] * 2 + ["DC & DP"] * 2 +
                         ["SC & DP", "SC & SP"])
        for row in (rows[0], rows[-1]):
            self.assertAlmostEqual(row["after_rope"], 1, places=4)
            self.assertAlmostEqual(row["before_rope"], 1, places=4)
        self.assertEqual(rows[2]["after_rope"], rows[-2]["after_rope"])
        self.assertLess(rows[4]["after_min"], rows[4]["after_median"])
        self.assertIsNone(rows[3]["after_min"])

    def test_queries_are_drawn_and_their_numbers_written(self):
        said = ("analyze", HF_MODEL, "--queries", "-p", TEXT, "-n", 6, "--trials", 3, "--offsets", 3, "--dtype", "f32",
                "-q")
        for extension, begin in (("pdf", b"%PDF-1."), ("svg", b"<?xml"), ("png", b"\x89PNG")):
            output = self.path(f"queries.{extension}")
            self.assertEqual(self.made(*said, "-o", output).stdout, "")
            self.assertTrue(output.read_bytes().startswith(begin))
        self.assertIn("fingerprint", self.path("queries.svg").read_text())
        self.made(*said, "-o", self.path("queries.csv"))
        self.assertEqual(self.path("queries.csv").read_text(), self.made(*said, "--format", "csv").stdout)
        self.refuses(1, ["queries.csv", "--force"], *said, "-o", self.path("queries.csv"))
        self.made(*said, "-o", self.path("queries.csv"), "--force")
        self.refuses(2, ["queries.xyz"], *said, "-o", self.path("queries.xyz"))

    def test_queries_need_a_prompt_and_a_prompt_needs_queries(self):
        self.refuses(2, ["no prompt to compare", "-p", "-f"], "analyze", HF_MODEL, "--queries")
        self.refuses(2, ["--queries"], "analyze", HF_MODEL, "-p", TEXT)
        self.refuses(2, ["context is 512"], "analyze", HF_MODEL, "--queries", "-p", TEXT, "-n", 500, "-q")


@NEEDS_ENGINE
class Traces(AllForms):
    @classmethod
    def prepare(cls):
        cls.make_trace("t.h5", "--policy", "snapkv:window=8", "--policy", "h2o", "--budget", "20,30", "--question",
                       "One?", "--question", "Two?", "--query-aware", "off")

    def test_inspect_lists_the_runs_of_all_prompts(self):
        table = [self.made("inspect", "t.h5", "--format", form).stdout for form in ("csv", "jsonl", "md")]
        rows = csv_rows(table[0])
        self.assertEqual(len(rows), 2 * 5)
        self.assertEqual([row["prompt"] for row in rows], ["0"] * 5 + ["1"] * 5)
        self.assertEqual(len(jsonl_rows(table[1])), 10)
        self.assertEqual(len(markdown_rows(table[2])), 10)
        with h5py.File(self.path("t.h5"), "r") as trace:
            for row in rows:
                run = trace[f"prompts/{row['prompt']}/runs/{row['run']}"]
                self.assertEqual(row["label"], run.attrs["label"])
                self.assertEqual(int(row["cache_bytes"]), int(run["cache_bytes"][:].sum()))
                self.assertEqual(int(row["cache_bytes_predicted"]), int(run["cache_bytes_predicted"][:].sum()))
                self.assertAlmostEqual(float(row["kl_mean"]), float(run["step_kl"][:].astype("f8").mean()), places=6)

    def test_inspect_as_json_lists_the_tree(self):
        answer = json.loads(self.made("inspect", "t.h5", "--format", "json").stdout)
        found = {node["path"] for node in answer["tree"]}
        with h5py.File(self.path("t.h5"), "r") as trace:
            names = {"/"}
            trace.visit(lambda name: names.add("/" + name) and None)
        self.assertLessEqual(names, found)
        linked = [node for node in answer["tree"] if node["path"] == "/prompts/1/runs/1/kept_indices"]
        self.assertEqual(linked[0]["link_to"], "/prompts/0/runs/1/kept_indices")

    def test_inspect_shows_the_exact_prompt_on_request(self):
        with h5py.File(self.path("t.h5"), "r") as trace:
            text = trace["prompts/0"].attrs["text"]
        self.assertNotIn(text, self.made("inspect", "t.h5").stdout)
        self.assertIn(text, self.made("inspect", "t.h5", "--prompt-text").stdout)

    def test_no_text_of_a_model_commands_the_terminal(self):
        """The random model's answers contain many control characters."""
        with h5py.File(self.path("t.h5"), "r+") as trace:
            answer = "red \x1b[31m bell \x07 del \x7f"
            trace["prompts/0/runs/0"].attrs["output_text"] = answer
            rows = trace["results/prompts"][:]
            rows["prediction"][0] = answer
            trace["results/prompts"][:] = rows
        shown = self.made("inspect", "t.h5").stdout
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", shown))
        self.assertIn("red ␛[31m bell ␇ del ␡", shown)


class Help(ProgramTest):
    def test_every_command_has_help_with_an_example(self):
        listed = re.findall(r"^  (\w+) {2,}\w", self.made("--help").stdout.split("Subcommands:")[1], re.M)
        self.assertGreaterEqual(set(listed), {"export", "figures", "inspect", "models", "policies"})
        for command in listed:
            with self.subTest(command):
                shown = self.made(command, "--help").stdout
                self.assertIn(f"kvscope {command}", shown.split("Examples:")[1])

    def test_version(self):
        self.assertRegex(self.made("--version").stdout, r"^kvscope \d+\.\d+\.\d+ \(commit \w+\)\n.*HDF5 1\.\d+\.\d+.*\n.+ kernels\n$")

    def test_wrong_commands_and_missing_arguments(self):
        for arguments, named in ((["bogus"], "bogus"), (["export"], "trace"), (["export", "t.h5"], "--figure"),
                                 (["inspect"], "file"), (["inspect", "a", "b"], "b"), (["figures", "--colour"], "--colour"),
                                 (["policies", "--format", "xml"], "xml"), (["policies", "snapkx"], "snapkv"),
                                 (["models", "no-such-folder"], "no-such-folder")):
            with self.subTest(arguments):
                self.refuses(2, [named], *arguments)

    @NEEDS_ENGINE
    def test_missing_arguments_of_run(self):
        self.refuses(2, ["--output"], "run")
        self.refuses(2, ["-p", "-f"], "run", "-o", "new.h5")
        self.refuses(2, ["--bogus"], "run", "-o", "new.h5", "--bogus")
        self.refuses(2, ["-n"], "run", "-o", "new.h5", "-p", "x", "-n", "many")
        self.assertFalse(self.path("new.h5").exists())

    @NEEDS_ENGINE
    def test_dashes_and_underscores_are_alike(self):
        """Both spellings give the same recipe, so the second command has nothing to do."""
        self.path("p.txt").write_text("The fox and the hen, over_and-over again.")
        common = ["-m", HF_MODEL, "-t", 1, "-o", "t.h5"]
        self.made("run", "--prompt-file", "p.txt", "--query-aware", "off", "--question", "Who_is-it?", "--policy",
                  "streaming-llm", "--policy", "ada-snapkv:window=8,granularity=query_head", "--budget", 20,
                  "--n-predict", 3, *common)
        done = self.made("run", "--prompt_file=p.txt", "--query_aware=off", "--question=Who_is-it?", "--policy",
                         "streaming_llm", "--policy=ada_snapkv:window=8,granularity=query-head", "--budget", 20,
                         "--n_predict", 3, *common)
        self.assertIn("nothing to do", done.stderr)
        with h5py.File(self.path("t.h5"), "r") as trace:
            self.assertEqual(trace["prompts/0"].attrs["question"], "Who_is-it?")
            self.assertIn("over_and-over", trace["prompts/0"].attrs["text"])


if __name__ == "__main__":
    unittest.main()
