#!/usr/bin/env python3
"""`kvscope run`, end to end: every policy at two budgets, with the trace read by h5py."""

import json
import unittest
import zlib

import h5py
import numpy

from program import GGUF_MODEL, HF_MODEL, MODELS, NEEDS_ENGINE, ProgramTest

WINDOW = 16
SMALL, LARGE = 40, 1000  # below and above the prompt's length
POLICIES = ["streaming-llm", "h2o", f"snapkv:window={WINDOW}", f"pyramidkv:window={WINDOW},beta=4",
            f"ada-snapkv:window={WINDOW}", f"ada-pyramidkv:window={WINDOW},beta=4", "aperturekv:window=8"]
OVER_THE_MODEL = {"pyramidkv", "ada-pyramidkv"}  # their budget is for the sum over layers


def rows_of(run):
    """Returns the kept positions of each row as arrays."""
    offsets, indices = run["kept_offsets"][:], run["kept_indices"][:]
    return [indices[first:last] for first, last in zip(offsets[:-1], offsets[1:])]


class Whole:
    """The checks for one model."""

    model = None
    layers, heads, kv_heads, head_dim = 2, 4, 2, 16

    @classmethod
    def prepare(cls):
        arguments = [argument for policy in POLICIES for argument in ("--policy", policy)]
        cls.done = cls.make_trace("t.h5", *arguments, "--budget", f"{SMALL},{LARGE}", model=cls.model)
        cls.trace = h5py.File(cls.folder / "t.h5", "r")
        cls.addClassCleanup(cls.trace.close)
        cls.prompt = cls.trace["prompts/0"]
        cls.n = int(cls.prompt.attrs["n_tokens"])
        cls.runs = [cls.prompt[f"runs/{j}"] for j in range(len(cls.prompt["runs"]))]

    def of_budget(self, budget):
        runs = [run for run in self.runs[1:] if run.attrs["label"].endswith(f"@ {budget}")]
        self.assertEqual(len(runs), len(POLICIES))
        return runs

    def test_inspect_finds_no_errors(self):
        done = self.made("inspect", "t.h5")
        self.assertIn("no errors", done.stdout)
        for run in self.runs:
            self.assertIn(run.attrs["label"], done.stdout)
        problems = json.loads(self.made("inspect", "t.h5", "--format", "json").stdout)["problems"]
        self.assertEqual(problems, [])

    def test_every_chunk_is_what_hdf5s_filters_would_have_made(self):
        seen = 0

        def look(name, data_set):
            nonlocal seen
            if not isinstance(data_set, h5py.Dataset) or data_set.chunks is None or data_set.dtype.hasobject:
                return
            whole = data_set[...]
            self.assertEqual((data_set.compression, data_set.shuffle), ("gzip", True), name)
            for i in range(data_set.id.get_num_chunks()):
                place = data_set.id.get_chunk_info(i)
                self.assertEqual(place.filter_mask, 0, name)
                packed = data_set.id.read_direct_chunk(place.chunk_offset)[1]
                size = data_set.dtype.itemsize
                planes = numpy.frombuffer(zlib.decompress(packed), "u1").reshape(size, -1)
                chunk = planes.T.tobytes()
                part = whole[tuple(slice(at, at + n) for at, n in zip(place.chunk_offset, data_set.chunks))]
                found = numpy.frombuffer(chunk, data_set.dtype).reshape(data_set.chunks)
                inside = found[tuple(slice(0, n) for n in part.shape)]
                self.assertEqual(inside.tobytes(), part.tobytes(), name)
                seen += 1

        self.trace.visititems(look)
        self.assertGreater(seen, 100)

    def test_the_table_and_the_answers_end_it(self):
        shown = self.made("inspect", "t.h5").stdout
        self.assertNotIn("prompt 0", self.done.stdout)  # there is only one prompt
        for run in self.runs:
            lines = [line for line in self.done.stdout.splitlines() if run.attrs["label"] in line]
            self.assertGreaterEqual(len(lines), 2, run.attrs["label"])  # in the table and before its answer
            for line in lines:
                self.assertIn(line, shown.splitlines())
        again = self.make_trace(
            "t.h5", *[argument for policy in POLICIES for argument in ("--policy", policy)], "--budget",
            f"{SMALL},{LARGE}", model=self.model)
        self.assertEqual(again.stdout, self.done.stdout, "output for an existing trace")

    def test_the_results_of_several_questions_are_by_prompt(self):
        asked = ("--question", "Who?", "--question", "When?", "--query-aware", "off", "--policy", "snapkv")
        said = self.make_trace("two.h5", *asked, "--budget", SMALL, model=self.model).stdout
        self.assertRegex(said, r"(?s)prompt 0 .*asked: Who\?.*snapkv.*prompt 1 .*asked: When\?.*snapkv")
        self.assertEqual(self.make_trace("q.h5", "-q", "--policy", "snapkv", "--budget", SMALL).stdout, "")

    def test_of_several_prompts_each_is_counted_and_budgets_name_theirs(self):
        (self.folder / "short.txt").write_text("The fox finds the hen in the garden.")
        (self.folder / "long.txt").write_text("The fox finds the hen in the garden, and then another one. " * 3)
        given = ("-f", "short.txt", "-f", "long.txt", "--policy", "h2o", "--budget", "30%")
        said = self.make_trace("batch.h5", *given, model=self.model, prompt=None).stderr
        self.assertRegex(said, r"(?m)^1/2 short: [\d.]+ s; about \d\d:\d\d remaining$")
        self.assertRegex(said, r"(?m)^short, budget 30 %: \d+ of \d+ entries kept")
        self.assertIn("Counts and shares above are for short; they differ for the other prompts", said)
        alone = self.make_trace("alone.h5", *given[2:], model=self.model, prompt=None).stderr
        self.assertRegex(alone, r"(?m)^budget 30 %: \d+ of \d+ entries kept")
        self.assertNotRegex(alone, r"(?m)^1/|remaining|other prompts")

    def test_the_part_folder_is_gone(self):
        self.assertFalse(self.path("t.h5.part").exists())
        self.assertEqual(int(self.trace.attrs["complete"]), 1)

    def test_kept_and_removed_are_both_shown(self):
        kept = f"{SMALL} of {self.n} entries kept"
        self.assertEqual(self.done.stderr.count(kept), 1, "once for each budget, not for each policy")
        self.assertIn(f"{self.n - SMALL} removed", self.done.stderr)

    def test_full_is_there_and_keeps_everything(self):
        full = self.runs[0]
        self.assertEqual((full.attrs["policy"], full.attrs["budget"]), ("full", self.n))
        for row in rows_of(full):
            self.assertEqual(row.tolist(), list(range(self.n)))

    def test_model_and_prompt(self):
        model = self.trace["model"].attrs
        self.assertEqual([int(model[a]) for a in ("n_layers", "n_heads", "n_kv_heads", "head_dim")],
                         [self.layers, self.heads, self.kv_heads, self.head_dim])
        self.assertEqual(model["dtype"], "f32")
        self.assertRegex(model["fingerprint"], "^[0-9a-f]{64}$")
        self.assertEqual(self.prompt["token_ids"].shape, (self.n,))
        self.assertEqual(self.prompt["token_text"].shape, (self.n,))
        self.assertTrue(self.prompt.attrs["text"].startswith("<|im_start|>user\nThe quick brown fox"))
        self.assertIn("<|im_start|>", self.prompt.attrs["template"])
        self.assertIn(2, list(self.prompt.attrs["eos_ids"]))
        self.assertEqual(int(self.prompt.attrs["truncated"]), 0)

    def test_full_measures(self):
        attention = self.prompt["full/window_attention"][:]
        self.assertEqual(attention.shape, (self.layers, self.heads, self.n))
        numpy.testing.assert_allclose(attention.sum(axis=2), 1, atol=1e-4)
        jsd = self.prompt["full/head_jsd"][:]
        self.assertEqual(jsd.shape, (self.layers, self.heads, self.heads))
        numpy.testing.assert_allclose(jsd, jsd.transpose(0, 2, 1), atol=1e-6)
        self.assertTrue((jsd >= -1e-7).all() and (jsd <= numpy.log(2) + 1e-6).all())
        self.assertGreater(jsd.max(), 1e-3)

    def test_budgets_are_exact(self):
        for run in self.of_budget(SMALL):
            with self.subTest(run.attrs["label"]):
                lengths = numpy.array([len(row) for row in rows_of(run)]).reshape(self.layers, self.kv_heads)
                allowed = SMALL * self.kv_heads
                if run.attrs["policy"] in OVER_THE_MODEL:
                    self.assertEqual(lengths.sum(), allowed * self.layers)
                else:
                    self.assertEqual(lengths.sum(axis=1).tolist(), [allowed] * self.layers)
                self.assertEqual(run.attrs["budget"], SMALL)
                self.assertAlmostEqual(run.attrs["budget_fraction"], SMALL / self.n)

    def test_kept_sets_are_ascending_positions_and_hold_the_window(self):
        for run in self.runs:
            with self.subTest(run.attrs["label"]):
                rows = rows_of(run)
                self.assertEqual(len(rows), self.layers * self.kv_heads)
                self.assertEqual(int(run["kept_offsets"][0]), 0)
                self.assertEqual(int(run["kept_offsets"][-1]), len(run["kept_indices"]))
                window = int(run.attrs["window"])
                for row in rows:
                    self.assertTrue((numpy.diff(row.astype("i8")) > 0).all())
                    self.assertLess(int(row[-1]), self.n)
                    self.assertEqual(row[len(row) - window:].tolist(), list(range(self.n - window, self.n)))

    def test_streaming_llm_keeps_sinks_and_the_most_recent(self):
        run = next(r for r in self.of_budget(SMALL) if r.attrs["policy"] == "streaming-llm")
        for row in rows_of(run):
            self.assertEqual(row.tolist(), [0, 1, 2, 3, *range(self.n - SMALL + 4, self.n)])

    def test_snapkv_keeps_the_best_of_its_scores(self):
        run = next(r for r in self.of_budget(SMALL) if r.attrs["policy"] == "snapkv")
        scores = run["scores"][:].reshape(self.layers * self.kv_heads, -1)
        prefix = self.n - WINDOW
        for row, score in zip(rows_of(run), scores):
            best = numpy.argsort(-score[:prefix], kind="stable")[:SMALL - WINDOW]
            self.assertEqual(row.tolist(), sorted(best.tolist()) + list(range(prefix, self.n)))

    def test_bytes_held_are_bytes_predicted(self):
        entry = 2 * self.head_dim * 4
        for run in self.runs:
            with self.subTest(run.attrs["label"]):
                lengths = numpy.array([len(row) for row in rows_of(run)]).reshape(self.layers, self.kv_heads)
                predicted = (lengths.sum(axis=1) * entry).tolist()
                self.assertEqual(run["cache_bytes_predicted"][:].tolist(), predicted)
                self.assertEqual(run["cache_bytes"][:].tolist(), predicted)
                self.assertEqual(run["head_bytes"][:].tolist(), (lengths * entry).tolist())

    def test_a_budget_above_the_prompt_decodes_as_full(self):
        full = self.runs[0]
        for run in self.of_budget(LARGE):
            with self.subTest(run.attrs["label"]):
                self.assertEqual(len(run["kept_indices"]), len(full["kept_indices"]))
                self.assertEqual(run["output_ids"][:].tolist(), full["output_ids"][:].tolist())
                self.assertEqual(run.attrs["output_text"], full.attrs["output_text"])
                numpy.testing.assert_allclose(run["step_kl"][:], 0, atol=1e-5)
                self.assertTrue((run["step_agreement"][:] == 1).all())
                numpy.testing.assert_allclose(run["attention_kept"][:], 1, atol=1e-4)
                numpy.testing.assert_allclose(run["output_error"][:], 0, atol=1e-4)

    def test_a_budget_above_the_prompt_is_told_of(self):
        shown = self.made("inspect", "t.h5").stdout
        line = [line for line in shown.splitlines() if line.startswith("budgets that keep all")]
        self.assertEqual(len(line), 1, shown)
        for run in self.runs[1:]:
            self.assertEqual(run.attrs["label"] in line[0], run.attrs["budget"] == LARGE, line)

    def test_a_small_budget_is_compared_with_full(self):
        steps = len(self.runs[0]["output_ids"])
        self.assertEqual(steps, 8)
        for run in self.of_budget(SMALL):
            with self.subTest(run.attrs["label"]):
                kl = run["step_kl"][:]
                self.assertEqual(kl.shape, (steps,))
                self.assertLess(abs(kl[0]), 1e-5)  # both follow the same prefill
                self.assertGreater(kl[1:].max(), 1e-3)
                self.assertTrue((run["output_error"][:] > 0).any())
                kept = run["attention_kept"][:]
                self.assertTrue((kept > 0).all() and (kept < 1).all())

    def test_attention_kept_is_the_windows_attention_on_kept_entries(self):
        attention = self.prompt["full/window_attention"][:]
        group = self.heads // self.kv_heads
        for run in self.of_budget(SMALL):
            rows = rows_of(run)
            expected = [[attention[layer, head, rows[layer * self.kv_heads + head // group]].sum()
                         for head in range(self.heads)] for layer in range(self.layers)]
            numpy.testing.assert_allclose(run["attention_kept"][:], expected, atol=1e-5)

    def test_parameters_are_all_there(self):
        run = next(r for r in self.runs if r.attrs["policy"] == "aperturekv")
        parameters = json.loads(run.attrs["parameters_json"])
        self.assertEqual(parameters["window"], 8)
        self.assertEqual(parameters["lambda"], 0.45)
        self.assertEqual(parameters["divergence"], "jsd")


@NEEDS_ENGINE
class HuggingFaceDirectory(Whole, ProgramTest):
    model = HF_MODEL


@NEEDS_ENGINE
class GgufFile(Whole, ProgramTest):
    model = GGUF_MODEL


@NEEDS_ENGINE
class Options(ProgramTest):
    def outputs(self, name):
        with h5py.File(self.path(name), "r") as trace:
            runs = trace["prompts/0/runs"]
            return {run.attrs["label"]: run["output_ids"][:].tolist() for run in runs.values()}

    def test_budgets_as_shares_and_ranges(self):
        self.make_trace("shares.h5", "--policy", "streaming-llm", "--budget", "25%,0.5,20-80*2")
        with h5py.File(self.path("shares.h5"), "r") as trace:
            prompt = trace["prompts/0"]
            n = int(prompt.attrs["n_tokens"])
            budgets = [int(prompt[f"runs/{j}"].attrs["budget"]) for j in range(1, len(prompt["runs"]))]
        self.assertEqual(budgets, [int(0.25 * n + 0.5), int(0.5 * n + 0.5), 20, 40, 80])

    def test_same_window(self):
        policies = ["snapkv,k-vec", "aperturekv:window=4", "streaming-llm"]
        options = [word for policy in policies for word in ("--policy", policy)]
        self.make_trace("same.h5", *options, "--budget", 40, "--same-window", 8)
        self.make_trace("each.h5", "--policy", "snapkv:window=8", "--policy", "k-vec:window=8", "--policy", "aperturekv:window=4",
                        "--policy", "streaming-llm", "--budget", 40)
        self.assertEqual(self.outputs("same.h5"), self.outputs("each.h5"))
        self.assertEqual(list(self.outputs("same.h5"))[1], "snapkv:window=8 @ 40")
        said = self.make_trace("no.h5", "--policy", "random", "--budget", 40, "--same-window", 8)
        self.assertIn("--same-window 8 has no effect: none of the policies has a window", said.stderr)

    def test_sampling_depends_on_the_seed_alone(self):
        common = ["--policy", "h2o", "--budget", 30, "--temp", 5]
        for name, seed in (("a.h5", 1), ("b.h5", 1), ("c.h5", 2)):
            self.make_trace(name, *common, "--seed", seed, n=16)
        self.assertEqual(self.outputs("a.h5"), self.outputs("b.h5"))
        self.assertNotEqual(self.outputs("a.h5"), self.outputs("c.h5"))

    def test_without_a_template_the_text_stands_alone(self):
        self.make_trace("plain.h5", "--no-template", prompt="Just this.")
        with h5py.File(self.path("plain.h5"), "r") as trace:
            self.assertEqual(trace["prompts/0"].attrs["text"], "Just this.")
            self.assertEqual(trace["prompts/0"].attrs["template"], "")

    def test_a_prompt_from_a_file_and_from_standard_input(self):
        self.path("prompt.txt").write_text("A text of the file.", encoding="utf-8")
        self.make_trace("file.h5", "-f", "prompt.txt", prompt=None)
        self.made("run", "-m", HF_MODEL, "-f", "-", "-n", 2, "-t", 1, "-o", "stdin.h5", text="A text of the pipe.")
        for name, text in (("file.h5", "A text of the file."), ("stdin.h5", "A text of the pipe.")):
            with h5py.File(self.path(name), "r") as trace:
                self.assertIn(text, trace["prompts/0"].attrs["text"])

    def test_bf16_is_half_the_bytes(self):
        for dtype in ("f32", "bf16"):
            self.made("run", "-m", HF_MODEL, "-p", "Half as much.", "-n", 2, "-t", 1, "--dtype", dtype, "-o",
                      f"{dtype}.h5")
        with h5py.File(self.path("f32.h5"), "r") as f32, h5py.File(self.path("bf16.h5"), "r") as bf16:
            self.assertEqual(bf16["model"].attrs["dtype"], "bf16")
            self.assertEqual(f32["prompts/0/runs/0/cache_bytes"][:].tolist(),
                             (2 * bf16["prompts/0/runs/0/cache_bytes"][:]).tolist())

    def test_a_vocabulary_padded_beyond_the_tokenizer(self):
        """The model may draw an id without a token, which soon happens with nearly equal logits. The id has no text."""
        self.make_trace("padded.h5", "--temp", 1000, model=MODELS / "qwen2-biases", prompt="Some words.",
                        n=150)
        with h5py.File(self.path("padded.h5"), "r") as trace:
            self.assertGreaterEqual(trace["prompts/0/runs/0/output_ids"][:].max(), 264)

    def test_timings(self):
        self.make_trace("timed.h5", "--timings", "timings.json")
        timings = json.loads(self.path("timings.json").read_text())
        self.assertEqual((timings["n_runs"], timings["n_generated"]), (1, 8))

    def test_spectra_are_those_of_the_weights(self):
        self.make_trace("spectra.h5", "--analyze", n=1)
        with h5py.File(self.path("spectra.h5"), "r") as trace:
            spectrum = trace["model/spectrum/q"][:]
        self.assertEqual(spectrum.shape[0], 2)
        self.assertTrue((numpy.diff(spectrum, axis=1) <= 1e-6).all())
        self.assertTrue((spectrum[:, 0] > 0).all())

    def test_the_gradients_alignment_is_recorded_where_it_is_asked_for(self):
        self.make_trace("aligned.h5", "--alignment", n=1)
        self.make_trace("unaligned.h5", n=1)
        with h5py.File(self.path("aligned.h5"), "r") as aligned, h5py.File(self.path("unaligned.h5"), "r") as plain:
            for name in ("c11", "c12", "c22"):
                cosines = aligned["prompts/0/full/gradient_alignment"][name][:]
                self.assertEqual(cosines.shape, (aligned["model"].attrs["n_layers"], aligned["model"].attrs["n_heads"]))
                self.assertTrue((abs(cosines) <= 1).all())
            self.assertNotIn("gradient_alignment", plain["prompts/0/full"])
            self.assertNotIn("alignment", plain.attrs["recipe_json"])
        self.assertIn("no errors", self.made("inspect", "aligned.h5").stdout)


if __name__ == "__main__":
    unittest.main()
