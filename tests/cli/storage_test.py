#!/usr/bin/env python3
"""Policies that keep every token in a smaller form: budgets, trace and figures."""

import json
import math
import pathlib
import re
import shutil
import signal
import time
import unittest

import h5py
import numpy

from program import HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG, TEXT, ProgramTest, csv_rows

RUN = ["run", "-m", HF_MODEL, "-p", TEXT, "-n", 6, "--dtype", "f32", "-t", 1]


@NEEDS_ENGINE
class FewerChannels(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.done = cls.run_program(*RUN, "--policy", "think", "--policy", "think:ratio=0.5,recent=8", "--policy",
                                   "snapkv:window=8", "--budget", "0.75,64", "-o", "t.h5")
        cls.trace = h5py.File(cls.folder / "t.h5", "r")
        cls.addClassCleanup(cls.trace.close)
        cls.prompt = cls.trace["prompts/0"]
        cls.runs = {run.attrs["label"]: run for run in cls.prompt["runs"].values()}
        cls.n = int(cls.prompt.attrs["n_tokens"])

    def test_a_ratio_is_one_run_and_a_budget_that_cannot_be_met_fails_alone(self):
        self.assertEqual(self.done.returncode, 1, self.done.stderr)
        self.assertEqual(sorted(self.runs), ["full", "snapkv:window=8 @ 64", "snapkv:window=8 @ 75 %", "think @ 64",
                                             "think @ 75 %", "think:ratio=0.5,recent=8 @ 75 %"])
        failed = self.runs["think @ 64"].attrs
        self.assertEqual(failed["status"], "failed")
        self.assertIn("of the full cache is too small", failed["message"])
        told = self.done.stderr.index("think @ 64 cannot run on ")  # before the prefill, not after all other work
        self.assertLess(told, self.done.stderr.index("think @ 64 failed: "))
        self.assertEqual({run.attrs["status"] for label, run in self.runs.items() if label != "think @ 64"}, {"complete"})

    def test_a_share_is_in_per_cent_whatever_becomes_of_the_run(self):
        done = self.run_program(*RUN, "--policy", "think", "--policy", "snapkv:window=8", "--budget",
                                "0.16666666666666666,1.0", "-o", "sixth.h5")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("think, budget 16.67 %: every token kept, 16.7 % of", done.stderr)
        self.assertIn("think @ 16.67 % failed", done.stderr)
        self.assertNotIn("0.1666", done.stderr)
        with h5py.File(self.path("sixth.h5"), "r") as trace:
            found = {run.attrs["label"]: run.attrs["status"] for run in trace["prompts/0/runs"].values()}
        self.assertEqual(found, {"full": "complete", "think @ 16.67 %": "failed", "think @ 100 %": "complete",
                                 "snapkv:window=8 @ 16.67 %": "complete", "snapkv:window=8 @ 100 %": "complete"})
        for name in ("snapkv:window=8 @ 16.67 %", "snapkv:window=8 @ 0.1667", "snapkv:window=8 @ 16.67%"):
            self.made("export", "sixth.h5", "--figure", "budgets", "--run", name, "-o", "sixth.csv", "--force")
            rows = csv_rows(self.path("sixth.csv").read_text(encoding="utf-8"))
            self.assertEqual({row["label"] for row in rows}, {"snapkv:window=8 @ 16.67 %"})

    def test_kept_and_saved_are_both_printed(self):
        self.assertIn("think, budget 75 %: every token kept, 75.0 % of the full cache's bytes requested (25.0 % saved)",
                      self.done.stderr)
        self.assertIn(f"budget 64: 64 of {self.n} entries kept", self.done.stderr)

    def test_the_trace_says_what_is_stored(self):
        full = self.runs["full"]["cache_bytes"][:]
        # The other keys compensate for the whole keys at the end, unless a ratio is given.
        for label, recent, dropped in (("think @ 75 %", 32, math.ceil(0.5 * 16 * self.n / (self.n - 32))),
                                       ("think:ratio=0.5,recent=8 @ 75 %", 8, 8)):
            run = self.runs[label]
            self.assertEqual(run.attrs["budget_of"], "bytes")
            self.assertEqual(run.attrs["budget_fraction"], 0.75)
            kept = run["channels_kept"][:]
            self.assertEqual(kept.shape, (2, 2, 16))
            numpy.testing.assert_array_equal(kept.sum(2), 16 - dropped)
            # The channels with the highest scores are kept.
            scores = run["channel_scores"][:]
            self.assertTrue((numpy.where(kept == 1, scores, numpy.inf).min(2) >
                             numpy.where(kept == 0, scores, -numpy.inf).max(2)).all())
            self.assertEqual(len(run["kept_indices"]), 2 * 2 * self.n)
            numpy.testing.assert_array_equal(run["stored/entries"][:], self.n - recent)
            numpy.testing.assert_array_equal(run["stored/key_width"][:], 16 - dropped)
            numpy.testing.assert_array_equal(run["stored/value_error"][:], 0)
            self.assertTrue((run["stored/key_error"][:] > 0).all() and (run["stored/key_error"][:] < 1).all())
            saved = 2 * ((self.n - recent) * dropped * 4 - (16 - dropped) * 2)  # heads, channels of 4 bytes, indices of the channels
            numpy.testing.assert_array_equal(full - run["cache_bytes"][:], saved)
            numpy.testing.assert_array_equal(run["cache_bytes"][:], run["cache_bytes_predicted"][:])
            if "ratio" not in label:
                self.assertLess(run["cache_bytes"][:].sum(), 0.752 * full.sum())
            numpy.testing.assert_array_equal(
                run["stored/whole_bytes"][:] + run["stored/channel_bytes"][:], run["cache_bytes"][:])
            self.assertNotIn("merged", run)
        self.assertNotIn("stored", self.runs["full"])
        self.assertNotIn("budget_of", self.runs["snapkv:window=8 @ 64"].attrs)

    def test_the_trace_is_sound_and_inspect_does_not_warn(self):
        done = self.made("inspect", "t.h5")
        self.assertNotIn("warning", done.stdout + done.stderr)

    def test_the_error_by_layer_and_head(self):
        self.made("export", "t.h5", "--figure", "reconstruction", "-o", "r.csv")
        rows = csv_rows(self.path("r.csv").read_text(encoding="utf-8"))
        self.assertEqual(len(rows), 2 * 2 * 2)
        for row in rows:
            stored = self.runs[row["label"]]["stored/key_error"][int(row["layer"]), int(row["head"])]
            self.assertAlmostEqual(float(row["key_error"]), float(stored), places=6)
            self.assertEqual(float(row["value_error"]), 0)
        self.made("export", "t.h5", "--figure", "reconstruction", "-o", "r.svg")
        self.assertIn("<svg", self.path("r.svg").read_text(encoding="utf-8"))
        self.refuses(1, ["no chosen run of prompt 0 records a reconstruction error"], "export", "t.h5", "--figure", "reconstruction", "--run",
                     "snapkv", "-o", "none.csv")

    def test_the_channels_of_the_keys(self):
        self.made("export", "t.h5", "--figure", "channels", "-o", "c.csv")
        rows = csv_rows(self.path("c.csv").read_text(encoding="utf-8"))
        self.assertEqual(len(rows), 2 * 2 * 2 * 16)  # runs, layers, heads, channels
        for row in rows:
            run = self.runs[row["label"]]
            place = int(row["layer"]), int(row["head"]), int(row["channel"])
            self.assertEqual(int(row["kept"]), run["channels_kept"][place])
            self.assertAlmostEqual(float(row["score"]), float(run["channel_scores"][place]), places=4)
        self.made("export", "t.h5", "--figure", "channels", "--layer", 1, "-o", "c.svg")
        self.assertIn("Number of heads that keep each key channel", self.path("c.svg").read_text(encoding="utf-8"))
        self.refuses(1, ["no chosen run of prompt 0 drops key channels"], "export", "t.h5", "--figure", "channels", "--run",
                     "snapkv", "-o", "none.csv")

    def test_no_budget_is_needed_where_a_ratio_says_it(self):
        self.made(*RUN, "--policy", "think:ratio=0.4", "-o", "ratio.h5")
        with h5py.File(self.path("ratio.h5"), "r") as trace:
            run = trace["prompts/0/runs/1"]
            self.assertEqual(run.attrs["label"], "think:ratio=0.4 @ 80 %")
            numpy.testing.assert_array_equal(run["channels_kept"][:].sum(2), 10)
        self.refuses(2, ["needs a budget"], *RUN, "--policy", "think", "-o", "none.h5")

    def test_two_shares_that_are_one_number_of_entries_are_two_budgets(self):
        run = ["run", "-m", HF_MODEL, "-p", "The quick brown", "--no-template", "-n", 4, "--dtype", "f32", "-t", 1,
               "--policy", "think:recent=0,window=4"]
        self.made(*run, "--budget", "0.76,0.8", "-o", "one.h5")
        self.made(*run, "--budget", "0.8,0.76", "-o", "two.h5")
        self.made("export", "one.h5", "two.h5", "--figure", "cost", "--difference", "-o", "difference.csv")
        rows = csv_rows(self.path("difference.csv").read_text(encoding="utf-8"))
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["kl_mean_a"], row["kl_mean_b"], row)
        self.made("export", "one.h5", "two.h5", "--figure", "reconstruction", "--difference", "-o", "errors.csv")
        panels = {row["panel"] for row in csv_rows(self.path("errors.csv").read_text(encoding="utf-8"))}
        self.assertEqual(len(panels), 4, panels)
        self.made("export", "one.h5", "--figure", "step-kl", "-o", "kl.svg")
        self.assertIn("budget 76 % of the full cache", self.path("kl.svg").read_text(encoding="utf-8"))

    def test_a_measure_that_is_damaged_spoils_no_other_figure(self):
        shutil.copy(self.path("t.h5"), self.path("damaged.h5"))
        with h5py.File(self.path("damaged.h5"), "r+") as trace:
            for run in trace["prompts/0/runs"].values():
                if "stored" in run:
                    del run["stored/key_error"]
                    run["stored/key_error"] = numpy.zeros((2, 1), "f4")
        self.made("export", "damaged.h5", "--figure", "retention", "-o", "retention.csv")
        self.refuses(1, ["stored/key_error"], "export", "damaged.h5", "--figure", "reconstruction", "-o", "none.csv")

    def test_attributes_that_cannot_be_are_told(self):
        for name, value in (("budget_of", "zebra"), ("budget_fraction", float("nan")), ("budget_fraction", -3.0)):
            shutil.copy(self.path("t.h5"), self.path("odd.h5"))
            with h5py.File(self.path("odd.h5"), "r+") as trace:
                run = [run for run in trace["prompts/0/runs"].values() if run.attrs["label"] == "think @ 75 %"][0]
                run.attrs[name] = value
            self.refuses_with_output(1, f"@{name}", "inspect", "odd.h5")

    def refuses_with_output(self, code, message, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(message, done.stdout + done.stderr)

    def test_runs_that_keep_every_token_are_drawn_over_the_bytes_that_they_hold(self):
        self.made("export", "t.h5", "--figure", "cost", "--runs", "think", "-o", "cost.csv")
        rows = csv_rows(self.path("cost.csv").read_text(encoding="utf-8"))
        self.assertEqual(list(rows[0]), ["run", "label", "bytes_share", "kl_mean"])

    def test_isolated_keeps_the_same_channels_and_answers(self):
        self.made(*RUN, "--policy", "think:ratio=0.5,recent=8", "--isolated", "-o", "isolated.h5")
        shared = self.runs["think:ratio=0.5,recent=8 @ 75 %"]
        with h5py.File(self.path("isolated.h5"), "r") as trace:
            run = trace["prompts/0/runs/1"]
            for name in ("channels_kept", "output_ids", "cache_bytes"):
                numpy.testing.assert_array_equal(run[name][:], shared[name][:])


@NEEDS_ENGINE
class RebuiltLayers(ProgramTest):
    """EchoKV, from training its maps to its trace and figures."""

    @classmethod
    def prepare(cls):
        cls.text = cls.folder / "text.txt"
        cls.text.write_text("\n".join(f"{i}. {TEXT}" for i in range(40)))
        cls.trained = cls.made("train-echo", "-m", HF_MODEL, cls.text, "--dtype", "f32", "--sequence", 200,
                               "-o", "maps.safetensors")
        cls.done = cls.made(*RUN, "--policy", "echokv:maps=maps.safetensors,recent=20", "--policy", "snapkv:window=8",
                            "--budget", "0.75", "-o", "e.h5")
        cls.trace = h5py.File(cls.folder / "e.h5", "r")
        cls.addClassCleanup(cls.trace.close)
        cls.runs = {run.attrs["policy"]: run for run in cls.trace["prompts/0/runs"].values()}
        cls.n = int(cls.trace["prompts/0"].attrs["n_tokens"])

    def test_training_says_what_its_maps_miss_and_leaves_one_file(self):
        self.assertIn("the other layers 0 of 32; the cache needs 50.0 % of the full cache's bytes (requested: 50 %), "
                      "plus the bytes of tokens that stay exact", self.trained.stderr)
        self.assertRegex(self.trained.stderr, r"On the \d+ training tokens: mean error of rebuilt keys [\d.]+ %")
        self.assertRegex(self.trained.stderr, r"On the \d+ held-out tokens: mean error of rebuilt keys [\d.]+ %")
        self.assertEqual([path.name for path in self.folder.glob("maps*")], ["maps.safetensors"])

    def test_maps_that_know_their_text_alone_are_told_of(self):
        short = self.folder / "short_text.txt"
        short.write_text(self.text.read_text()[:150])
        done = self.made("train-echo", "-m", HF_MODEL, short, "--dtype", "f32", "--sequence", 40, "--held-out", "0.5",
                         "--ridge", "1e-6", "-o", "short.safetensors")
        self.assertRegex(done.stderr, r"their error on the held-out tokens is [\d.]+ times the training error")
        missed = [float(share) for share in re.findall(r"mean error of rebuilt keys ([\d.]+) %", done.stderr)]
        self.assertGreater(missed[1], missed[0])
        self.assertNotIn("times the training error", self.trained.stderr)

    def test_inspect_says_what_the_maps_are(self):
        said = self.made("inspect", "maps.safetensors").stdout
        self.assertIn("groups of 2 layers; a group's first layer stores all numbers, the other layers 0 of 32", said)
        self.assertIn(self.trace["model"].attrs["fingerprint"][:16], said)
        facts = {row["fact"]: row["value"] for row in json.loads(self.made("inspect", "maps.safetensors", "--format", "json").stdout)}
        self.assertEqual(facts["stage1"], "least-squares")
        self.assertEqual(facts["model_fingerprint"], self.trace["model"].attrs["fingerprint"])
        (self.folder / "cut_off.safetensors").write_bytes((self.folder / "maps.safetensors").read_bytes()[:-100])
        self.refuses(2, ["cut_off.safetensors", "cut off"], "inspect", "cut_off.safetensors")

    def test_the_maps_are_a_safetensors_file_tied_to_the_model(self):
        data = (self.folder / "maps.safetensors").read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        self.assertEqual(header["__metadata__"]["model_fingerprint"], self.trace["model"].attrs["fingerprint"])
        self.assertEqual(sorted(name for name in header if name != "__metadata__"), ["layers.1.keys", "layers.1.values"])
        self.assertEqual(header["layers.1.keys"]["shape"], [32, 32])
        self.assertEqual(len(data), 8 + length + 2 * 32 * 32 * 4)

    def test_the_trace_says_which_tokens_are_rebuilt(self):
        run = self.runs["echokv"]
        rebuilt = self.n - 24
        numpy.testing.assert_array_equal(run["stored/entries"][:], [[0, 0], [rebuilt, rebuilt]])
        whole = run["stored/is_whole"][:].reshape(2, 2, self.n)
        numpy.testing.assert_array_equal(whole[0], 1)
        numpy.testing.assert_array_equal(whole[1, 0], [int(i < 4 or i >= self.n - 20) for i in range(self.n)])
        numpy.testing.assert_array_equal(run["stored/key_width"][:], [[16, 16], [0, 0]])
        numpy.testing.assert_array_equal(run["cache_bytes"][:], run["cache_bytes_predicted"][:])
        full = self.runs["full"]["cache_bytes"][:]
        numpy.testing.assert_array_equal(run["cache_bytes"][:], [full[0], full[1] * 24 // self.n])
        self.assertTrue((run["stored/key_error"][1] > 0).all() and (run["stored/key_error"][0] < 1e-6).all())
        self.assertIn("no errors", self.made("inspect", "e.h5").stdout)

    def test_a_cache_that_changes_its_form_says_when(self):
        maps = "maps=maps.safetensors,recent=20"
        self.made(*RUN, "--policy", f"echokv:{maps},switches=1/3", "--policy", f"echokv:{maps},form=full", "--policy",
                  f"echokv-hybrid:{maps},form=full,switches=0", "--ignore-eos", "-o", "switched.h5")
        with h5py.File(self.path("switched.h5")) as trace:
            runs = [run for run in trace["prompts/0/runs"].values() if "echokv" in run.attrs["policy"]]
            switched = [run for run in runs if "switches=1/3" in run.attrs["label"]][0]
            numpy.testing.assert_array_equal(switched["switches/step"][:], [1, 3])
            numpy.testing.assert_array_equal(switched["switches/is_full"][:], [1, 0])
            whole = [run for run in runs if "stored" not in run]
            self.assertEqual(len(whole), 2)
            for run in whole:
                numpy.testing.assert_array_equal(run["cache_bytes"][:], trace["prompts/0/runs/0/cache_bytes"][:])
            always = [run for run in whole if "switches" not in run][0]
            self.assertEqual(always.attrs["policy"], "echokv")
            self.assertLess(always["step_kl"][:].max(), 1e-6)
            then = [run for run in whole if "switches" in run][0]
            numpy.testing.assert_array_equal(then["switches/is_full"][:], [0])
            self.assertLess(then["step_kl"][:2].max(), 1e-6)
            self.assertGreater(then["step_kl"][2:].max(), 1e-6)
        shown = self.made("inspect", "switched.h5").stdout
        self.assertIn("no errors", shown)
        self.assertIn("its cache became full after step 1 and compressed after step 3 of the answer", shown)
        done = self.run_program(*RUN, "--policy", f"echokv:{maps},switches=3/1", "-o", "odd.h5")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("expected ascending steps", done.stderr)

    def test_what_is_said_before_the_run_comes_of_it(self):
        policies = ["palu", "palu:whitening=prompt", "palu:whitening=off", "palu:rank_share=0.5", "think:ratio=0.5,recent=8",
                    "echokv:maps=maps.safetensors,recent=20", "echokv:maps=maps.safetensors,recent=20,form=full",
                    "echokv-hybrid:maps=maps.safetensors,recent=20"]
        done = self.made(*RUN, *[argument for policy in policies for argument in ("--policy", policy)], "--budget", "90%",
                         "-o", "said.h5")
        with h5py.File(self.path("said.h5")) as trace:
            runs = list(trace["prompts/0/runs"].values())
            full = runs[0]["cache_bytes"][:].sum()
            self.assertEqual(len(runs), len(policies) + 1)
            for run in runs[1:]:
                policy = run.attrs["label"].split(" @ ")[0]
                lines = [line for line in done.stderr.splitlines() if line.startswith((policy + ", ", policy + " (")) and
                         "bytes requested" in line]
                self.assertEqual(len(lines), 1, done.stderr)
                said = re.findall(r"([\d.]+) % including extra data", lines[0]) or re.findall(r"([\d.]+) % of the", lines[0])
                comes_to = 100 * run["cache_bytes"][:].sum() / full
                # A budget of bytes is rounded to whole ranks, of which the small model has few.
                delta = 3 if policy in ("palu", "palu:whitening=off") else 0.9
                self.assertAlmostEqual(float(said[0]), comes_to, delta=delta, msg=lines[0])
                change = abs(100 - float(said[0]))
                self.assertIn(f"({change:.1f} % {'more than the full cache' if comes_to > 100 else 'saved'})", lines[0])
        self.assertIn("% more than the full cache)", done.stderr)

    def test_the_hybrid_drops_channels_of_keys_and_rebuilds_values(self):
        self.made(*RUN, "--policy", "echokv-hybrid:maps=maps.safetensors,recent=20", "-o", "hybrid.h5")
        with h5py.File(self.path("hybrid.h5")) as trace:
            run = trace["prompts/0/runs/1"]
            full = trace["prompts/0/runs/0/cache_bytes"][:]
            numpy.testing.assert_array_equal(run["stored/key_width"][:], 8)
            numpy.testing.assert_array_equal(run["stored/value_width"][:], [[16, 16], [0, 0]])
            numpy.testing.assert_array_equal(run["channels_kept"][:].sum(2), 8)
            numpy.testing.assert_array_equal(run["channel_scores"].shape, (2, 2, 16))
            rebuilt = self.n - 24
            keys = 2 * (rebuilt * 8 * 4 + 8 * 2)  # heads, channels of 4 bytes, indices of the channels
            exact = full[0] * 24 // self.n
            numpy.testing.assert_array_equal(run["cache_bytes"][:], [exact + keys + 2 * rebuilt * 16 * 4, exact + keys])
        self.assertIn("no errors", self.made("inspect", "hybrid.h5").stdout)

    def test_maps_that_do_not_fit_fail_the_run_alone_and_say_why(self):
        damaged = (self.folder / "maps.safetensors").read_bytes()[:-100]
        (self.folder / "damaged.safetensors").write_bytes(damaged)
        done = self.run_program(*RUN, "--policy", "echokv:maps=damaged.safetensors", "--policy",
                                "echokv:maps=none.safetensors", "--policy", "snapkv:window=8", "--budget", "0.75", "-o", "failed.h5")
        self.assertEqual(done.returncode, 1, done.stderr)
        with h5py.File(self.folder / "failed.h5") as trace:
            runs = [run.attrs for run in trace["prompts/0/runs"].values()]
            messages = [attributes["message"] for attributes in runs if attributes["status"] == "failed"]
        self.assertEqual(len(messages), 2)
        self.assertIn("echokv:maps=none.safetensors failed: ", done.stderr)
        self.assertNotIn("@ 100 %", done.stderr, "a budget that the command does not name")
        self.assertTrue(any("cut off" in message for message in messages), messages)
        self.assertTrue(all("kvscope train-echo" in message for message in messages), messages)

    def test_a_policy_without_the_file_it_needs_is_refused_before_the_model_is_read(self):
        for policy, parameter in (("echokv", "maps"), ("echokv-hybrid", "maps"), ("headkv", "importance"), ("llmlingua-2", "model")):
            said = self.refuses(2, [f"{policy}:{parameter}=PATH"], "run", "-m", "no-such-model.gguf", "-p", TEXT, "--policy", policy,
                                "--budget", "0.5", "-o", "no.h5")
            self.assertNotIn("no-such-model", said)

    def test_tuning_says_how_much_of_the_attention_was_missed(self):
        done = self.made("train-echo", "-m", HF_MODEL, self.text, "--dtype", "f32", "--sequence", 100, "--tune", 12,
                         "-o", "tuned.safetensors")
        self.assertRegex(done.stderr, r"tuned in 12 steps: mean error of attention outputs [\d.]+ % in the first 6 steps, ")
        self.assertNotEqual((self.folder / "tuned.safetensors").read_bytes(), (self.folder / "maps.safetensors").read_bytes())

    def test_the_first_stage_by_gradient_descent_and_the_loss_of_both_stages(self):
        arguments = ["train-echo", "-m", HF_MODEL, self.text, "--dtype", "f32", "--sequence", 100, "--stage1", "adamw", "--steps", 8,
                     "--tune", 4, "--tune-loss", "qk_kl", "--loss", "loss.csv", "-o", "descent.safetensors"]
        done = self.made(*arguments)
        self.assertRegex(done.stderr, r"trained in 8 steps: mean error of keys and values [\d.]+ % in the first 4 steps, [\d.]+ %")
        self.assertRegex(done.stderr, r"tuned in 4 steps: mean divergence of attention \S+ nats in the first 2 steps, \S+ in the last")
        self.assertRegex(done.stderr, r"On the \d+ held-out tokens: .* error of attention outputs [\d.]+ %")
        rows = csv_rows((self.folder / "loss.csv").read_text())
        self.assertEqual([(row["stage"], row["loss_of"], row["step"]) for row in rows],
                         [("1", "keys-values", str(i + 1)) for i in range(8)] + [("2", "qk-kl", str(i + 1)) for i in range(4)])
        self.assertEqual([float(rows[0]["rate"]), float(rows[4]["rate"])], [5e-4, 2.5e-4])
        self.assertTrue(all(float(row["loss"]) > 0 and float(row["error"]) > 0 for row in rows), rows)
        self.assertEqual(sorted(path.name for path in self.folder.glob("descent*")), ["descent.safetensors"])
        self.refuses(1, ["descent.safetensors", "already"], *arguments)
        self.refuses(1, ["loss.csv", "already"], *arguments[:-1], "other.safetensors")

    def test_what_is_stopped_while_it_descends_goes_on(self):
        arguments = ["train-echo", "-m", HF_MODEL, self.text, "--dtype", "f32", "--sequence", 100, "--stage1", "adamw", "--steps",
                     200, "--tune", 300, "-t", 1, "-q", "-o"]
        self.made(*arguments, "whole.safetensors", "--loss", "whole.csv")
        curve = (self.folder / "whole.csv").read_text()
        self.assertEqual(len(csv_rows(curve)), 500)
        stage2 = self.folder / "stopped.safetensors.stage2"
        process = self.start(*arguments, "stopped.safetensors", "--loss", "stopped.csv")
        deadline = time.monotonic() + SECONDS_UNTIL_HUNG
        stage1 = self.folder / "stopped.safetensors.stage1"
        while process.poll() is None and not stage1.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=SECONDS_UNTIL_HUNG)[1]
        self.assertTrue(stage1.exists(), said)
        self.assertIn("stopped; the same command resumes where it stopped", said)
        self.assertFalse((self.folder / "stopped.safetensors").exists())
        begun = (self.folder / "stopped.csv.part").read_text()
        self.assertGreaterEqual(begun.count("\n"), 201, "the header and the steps of the first stage")
        self.assertTrue(curve.startswith(begun), begun)
        going_on = self.made(*[argument for argument in arguments if argument != "-q"], "stopped.safetensors", "--loss", "stopped.csv")
        self.assertIn("resuming after 200 of 200 steps", going_on.stderr)
        self.assertFalse(stage1.exists() or stage2.exists())
        self.assertEqual((self.folder / "stopped.safetensors").read_bytes(), (self.folder / "whole.safetensors").read_bytes())
        self.assertEqual((self.folder / "stopped.csv").read_text(), curve)
        self.assertFalse((self.folder / "stopped.csv.part").exists())

    def test_training_refuses_what_it_cannot_do(self):
        train = ["train-echo", "-m", HF_MODEL, self.text, "--dtype", "f32"]
        self.refuses(1, ["maps.safetensors", "already"], *train, "-o", "maps.safetensors")
        self.refuses(2, ["--ratio"], *train, "--ratio", "1.5", "-o", "no.safetensors")
        self.refuses(2, ["0.99", "rebuilds nothing"], *train, "--ratio", "0.99", "-o", "no.safetensors")
        self.refuses(2, ["groups of 10 layers", "2"], *train, "--ratio", "0.1", "-o", "no.safetensors")
        (self.folder / "mine.safetensors.moments").write_text("precious")
        self.refuses(2, ["mine.safetensors.moments", "move it away"], *train, "-o", "mine.safetensors")
        self.assertEqual((self.folder / "mine.safetensors.moments").read_text(), "precious")
        self.refuses(2, ["a step of --tune needs 200"], "train-echo", "-m", HF_MODEL, self.text, "--tokens", 190, "--sequence",
                     200, "--tune", 2, "-o", "no.safetensors")
        self.refuses(2, ["a step of --stage1 adamw needs 200"], "train-echo", "-m", HF_MODEL, self.text, "--tokens", 190,
                     "--sequence", 200, "--stage1", "adamw", "-o", "no.safetensors")
        descent = [*train, "--stage1", "adamw", "--steps", 2, "--sequence", 100]
        self.refuses(2, ["--loss", "the maps are written to this file"], *descent, "-o", "one.safetensors", "--loss", "./one.safetensors", "--force")
        (self.folder / "precious.csv.part").write_text("precious")
        self.refuses(2, ["precious.csv.part", "move it away"], *descent, "-o", "no.safetensors", "--loss", "precious.csv")
        self.assertEqual((self.folder / "precious.csv.part").read_text(), "precious")
        (self.folder / "link.csv").symlink_to("later.safetensors")
        self.refuses(2, ["--loss", "the maps are written to this file"], *descent, "-o", "later.safetensors", "--loss", "link.csv", "--force")
        self.refuses(2, ["--loss", "the maps are written to this file"], *descent, "-o", "curve.part", "--loss", "curve", "--force")
        before = pathlib.Path(self.text).read_bytes()
        self.refuses(2, ["--loss", "move it away"], *descent, "-o", "no.safetensors", "--loss", self.text, "--force")
        self.assertEqual(pathlib.Path(self.text).read_bytes(), before)
        self.refuses(2, ["--loss", "needs gradient descent"], *train, "--loss", "no.csv", "-o", "no.safetensors")
        self.refuses(2, ["--tune-loss", "--tune"], *train, "--tune-loss", "qk-kl", "-o", "no.safetensors")
        self.refuses(2, ["--steps", "--stage1"], *train, "--steps", 9, "-o", "no.safetensors")
        self.refuses(2, ["--steps", "adamw"], *train, "--stage1", "least-squares", "--steps", 9, "-o", "no.safetensors")
        self.refuses(2, ["--ridge", "least squares"], *train, "--stage1", "adamw", "--ridge", "0.1", "-o",
                     "no.safetensors")
        (self.folder / "other.safetensors.stage2").write_text("precious")
        self.refuses(2, ["other.safetensors.stage2", "move it away"], *train, "--sequence", 100, "--tune", 2, "-o",
                     "other.safetensors")
        self.assertFalse((self.folder / "other.safetensors.moments").exists())
        self.refuses(2, ["groups of", "the model has 2"], *train, "--ratio", "1e-10", "-o", "no.safetensors")
        (self.folder / "short.txt").write_text("A few words.")
        self.refuses(2, ["use a longer text"], "train-echo", "-m", HF_MODEL, "short.txt", "-o", "no.safetensors")
        (self.folder / "binary.txt").write_bytes(b"\xff\xfe\x00" * 100)
        self.refuses(2, ["binary.txt", "UTF-8"], "train-echo", "-m", HF_MODEL, "binary.txt", "-o", "no.safetensors")
        self.assertFalse((self.folder / "no.safetensors").exists())


@NEEDS_ENGINE
class MergedEntries(ProgramTest):
    def test_which_tokens_went_into_one_entry(self):
        self.made(*RUN, "--policy", "kvslimmer:sinks=2,chunk=16", "--policy", "snapkv:window=8", "--budget", "40", "-o", "m.h5")
        self.made("export", "m.h5", "--figure", "merging", "-o", "m.csv")
        rows = csv_rows(self.path("m.csv").read_text(encoding="utf-8"))
        expected = []
        with h5py.File(self.path("m.h5")) as trace:
            run = [run for run in trace["prompts/0/runs"].values() if run.attrs["policy"] == "kvslimmer"][0]
            token_entry, offsets = run["merged/token_entry"][:], run["kept_offsets"][:]
            cardinality = run["merged/cardinality"][:]
            for layer, head in numpy.ndindex(token_entry.shape[:2]):
                first = offsets[layer * token_entry.shape[1] + head]
                for entry in range(token_entry[layer, head].max() + 1):
                    tokens = numpy.flatnonzero(token_entry[layer, head] == entry)
                    if len(tokens) > 1:
                        expected.append((layer, head, tokens[0], tokens[-1], cardinality[first + entry]))
        self.assertTrue(expected)
        found = [(int(row["layer"]), int(row["head"]), int(row["first_token"]), int(row["last_token"]),
                  float(row["cardinality"])) for row in rows]
        self.made("export", "m.h5", "--figure", "retention", "-o", "r.csv")
        held = {"kvslimmer": numpy.zeros(token_entry.shape[0]), "snapkv": numpy.zeros(token_entry.shape[0])}
        for row in csv_rows(self.path("r.csv").read_text(encoding="utf-8")):
            held[row["label"].split(":")[0]][int(row["layer"])] += float(row["entries"])
        with h5py.File(self.path("m.h5")) as trace:
            for run in trace["prompts/0/runs"].values():
                entries = numpy.diff(run["kept_offsets"][:].astype(int)).reshape(token_entry.shape[:2]).sum(1)
                if run.attrs["policy"] in held:
                    numpy.testing.assert_allclose(held[run.attrs["policy"]], entries, rtol=1e-12)
        self.assertEqual(found, [tuple(float(x) if i == 4 else int(x) for i, x in enumerate(row)) for row in expected])
        self.made("export", "m.h5", "--figure", "merging", "-o", "m.svg")
        self.assertIn("Tokens that share an entry", self.path("m.svg").read_text(encoding="utf-8"))
        self.refuses(1, ["no chosen run of prompt 0 records which tokens share an entry"], "export", "m.h5", "--figure", "merging", "--run", "snapkv", "-o",
                     "none.csv")


if __name__ == "__main__":
    unittest.main()
