#!/usr/bin/env python3
"""Invalid prompts, budgets, policies and options give exit code 2 (files: 1), a message that names them, and no trace."""

import json
import unittest

import h5py

from program import CONTEXT_LENGTH, HF_MODEL, NEEDS_ENGINE, TEXT, ProgramTest


@NEEDS_ENGINE
class Refusals(ProgramTest):
    def bad(self, code, messages, *arguments, prompt=TEXT, n=4, output="t.h5", **options):
        given = [] if prompt is None else ["-p", prompt]
        said = self.refuses(code, messages, "run", "-m", HF_MODEL, *given, "-n", n, "--dtype", "f32", *arguments, "-o",
                            output, **options)
        self.assertEqual([p.name for p in self.folder.glob("t.h5*")], [])
        return said

    # ---- outputs

    def test_force_does_not_replace_a_text(self):
        self.path("prompt.txt").write_text(TEXT)
        self.refuses(1, ["prompt.txt", "not a trace"], "run", "-m", HF_MODEL, "-f", "prompt.txt", "-n", 2, "--force", "-o",
                     "prompt.txt")
        self.assertEqual(self.path("prompt.txt").read_text(), TEXT)

    def test_an_output_that_cannot_be_made(self):
        self.bad(1, ["nowhere/t.h5", "there is no folder nowhere"], output="nowhere/t.h5")
        self.bad(1, ["/proc/t.h5", "choose an output in another folder"], output="/proc/t.h5")
        self.refuses(1, ["nowhere/t.h5", "there is no folder nowhere"], "eval", "-m", HF_MODEL, "--policy",
                     "snapkv:window=8", "--budget", 24, "--lengths", 200, "--samples", 1, "-o", "nowhere/t.h5")

    def test_files_that_do_not_exist(self):
        for name, command in (("t.h5", ["inspect", "t.h5"]), ("t.h5", ["export", "t.h5", "--figure", "all", "-o", "a.pdf"]),
                              ("t.gguf", ["inspect", "t.gguf"]), ("t.txt", ["run", "-m", HF_MODEL, "-f", "t.txt", "-o", "a.h5"]),
                              ("t.h5", ["run", "-m", HF_MODEL, "--prompt-from", "t.h5", "-o", "a.h5"]),
                              ("t.gguf", ["run", "-m", "t.gguf", "-p", TEXT, "-o", "a.h5"])):
            self.refuses(1, [f"kvscope: {name} does not exist"], *command)

    # ---- instructions

    def test_instructions_that_the_processor_lacks_or_nobody_knows(self):
        for command in (["--version"], ["run", "-m", HF_MODEL, "-p", TEXT, "-o", "t.h5"]):
            self.refuses(2, ["KVSCOPE_SIMD is 'sse4'", "expected generic"], *command, variables={"KVSCOPE_SIMD": "sse4"})
        self.run_program("policies", variables={"KVSCOPE_SIMD": "sse4"}).check_returncode()
        self.run_program("--help", variables={"KVSCOPE_SIMD": "sse4"}).check_returncode()

    # ---- prompts

    def test_an_empty_prompt(self):
        self.bad(2, ["prompt"], prompt="")
        self.bad(2, ["empty"], prompt=" \n\t ")
        self.path("empty.txt").write_text("")
        self.bad(2, ["empty.txt", "empty"], "-f", "empty.txt", prompt=None)
        self.path("empty.jsonl").write_text("\n")
        self.bad(2, ["empty.jsonl: the file has no lines"], "-f", "empty.jsonl", prompt=None)
        self.bad(2, ["standard input", "empty"], "-f", "-", prompt=None, text=" ")
        self.bad(2, ["-p", "-f"], prompt=None)

    def test_an_empty_file_among_others_fails_alone(self):
        self.path("a.txt").write_text(TEXT)
        self.path("b.txt").write_text(TEXT + " And more.")
        self.path("empty.txt").write_text("")
        self.path("blank.txt").write_text(" \n")
        files = [word for name in ("a.txt", "empty.txt", "b.txt", "blank.txt") for word in ("-f", name)]
        command = ["run", "-m", HF_MODEL, *files, "-n", 2, "--dtype", "f32", "-o", "several.h5"]
        said = ["empty.txt: the prompt is empty. It is left out", "blank.txt: the prompt is empty. It is left out"]
        for attempt in ("anew", "complete"):
            with self.subTest(attempt):  # -q does not hide failures
                self.refuses(1, said, *command, "-q")
                with h5py.File(self.folder / "several.h5") as file:
                    self.assertEqual([file[f"prompts/{i}"].attrs["name"] for i in range(len(file["prompts"]))], ["a", "b"])
        self.assertIn("nothing to do", self.run_program(*command).stderr)
        self.bad(2, ["empty.txt: the prompt is empty"], "-f", "empty.txt", "-f", "blank.txt", prompt=None)

    def test_records_without_a_context(self):
        record = json.dumps({"input": "Who?", "outputs": ["x"]})
        self.path("set.jsonl").write_text(record + "\n" + record + "\n")
        self.bad(2, ["set.jsonl:1", 'expected the field "context"', 'found only "input", "outputs"'], "-f", "set.jsonl",
                 prompt=None)

    def test_a_text_in_a_file_named_as_records(self):
        self.path("plain.jsonl").write_text(TEXT)
        self.bad(2, ["plain.jsonl:1: expected an object", "text that is not JSON"], "-f", "plain.jsonl", prompt=None)

    def test_a_prompt_that_is_not_utf8(self):
        for name, data in {"latin-1": "Käse".encode("latin-1"), "cut": "Ende €".encode()[:-1],
                           "surrogate": b"x\xed\xa0\x80", "overlong": b"x\xc0\xaf"}.items():
            with self.subTest(name):
                self.path("bytes.txt").write_bytes(data)
                self.bad(2, ["bytes.txt", "UTF-8"], "-f", "bytes.txt", prompt=None)
        self.path("lines.txt").write_bytes(b"One\ntwo\nthr\xeee")
        self.bad(2, ["lines.txt", "0xEE", "line 3", "offset 11"], "-f", "lines.txt", prompt=None)
        self.path("wide.txt").write_bytes("Some text".encode("utf-16"))
        self.bad(2, ["wide.txt", "UTF-16"], "-f", "wide.txt", prompt=None)
        self.path("good.txt").write_text(TEXT)
        self.refuses(1, ["lines.txt", "0xEE", "It is left out"], "run", "-m", HF_MODEL, "-f", "good.txt", "-f",
                     "lines.txt", "-n", 1, "-o", "others.h5", "-q")
        with h5py.File(self.folder / "others.h5") as file:
            self.assertEqual(list(file["prompts"]), ["0"])
        self.refuses(2, ["lines.txt", "UTF-8"], "eval", "-m", HF_MODEL, "--haystack", "lines.txt", "-o", "t.h5")
        self.refuses(2, ["lines.txt", "UTF-8"], "profile-heads", HF_MODEL, "--haystack", "lines.txt", "-o", "t.json")
        self.refuses(2, ["lines.txt", "UTF-8"], "analyze", HF_MODEL, "--queries", "-f", "lines.txt", "-q")

    def test_a_prompt_over_the_context_length(self):
        said = self.bad(2, [f"context is {CONTEXT_LENGTH}", "-n"], prompt="x" * (CONTEXT_LENGTH + 10))
        self.assertRegex(said, r"has 5\d\d tokens")
        self.bad(2, [f"context for prompt and answer is {CONTEXT_LENGTH}"], n=CONTEXT_LENGTH)
        self.path("long.txt").write_text("x" * (CONTEXT_LENGTH + 10))
        self.bad(2, ["long.txt", f"context is {CONTEXT_LENGTH}"], "-f", "long.txt", prompt=None)

    def test_a_prompt_that_is_not_there(self):
        self.bad(1, ["nowhere.txt"], "-f", "nowhere.txt", prompt=None)

    # ---- budgets

    def test_budgets_that_are_none(self):
        for budget in ("0", "-5", "garbage", "", "12x", "0.0", "0%", "1.5", "120%", "nan", "64,", "64-32", "64-128*1",
                       "1e400", "99999999999999999999"):
            with self.subTest(budget):
                self.bad(2, ["udget"] + ([f"'{budget}'"] if budget else []), "--policy", "h2o", "--budget", budget)

    def test_a_budget_without_a_policy(self):
        self.bad(2, ["the budget 4 needs a policy", "--policy"], "--budget", 4)

    def test_what_is_asked_for_and_not_heeded_is_said(self):
        for said, arguments in (("--budget 4 has no effect: none of the policies uses a budget", ["--policy", "full"]),
                                ("h2o @ 4 is named 2 times, but runs once", ["--policy", "h2o", "--policy", "h2o"]),
                                ("--query-aware off has no effect: no prompt has a question",
                                 ["--policy", "h2o", "--query-aware", "off"]),
                                ("", ["--policy", "full", "--policy", "h2o"]),
                                ("", ["--policy", "random", "--budget", "12.341%,12.344%"])):  # equal when rounded
            with self.subTest(said):
                done = self.made("run", "-m", HF_MODEL, "-p", TEXT, *arguments, "--budget", 4, "-n", 1, "--force", "-q", "-o",
                                 "heeded.h5")
                self.assertEqual(done.stderr, said and f"{said}\n")

    def test_a_policy_without_a_budget(self):
        self.bad(2, ["snapkv", "needs a budget"], "--policy", "snapkv")

    def test_a_budget_not_above_the_window(self):
        self.bad(2, ["snapkv", "32", "window"], "--policy", "snapkv", "--budget", 32)
        self.bad(2, ["snapkv", "pyramidkv", "window"], "--policy", "snapkv", "--policy", "pyramidkv", "--budget", "8,20")
        self.bad(2, ["streaming-llm"], "--policy", "streaming-llm:sinks=16", "--budget", 16)

    def test_a_budget_wrong_for_some_fails_those_alone(self):
        arguments = ["run", "-m", HF_MODEL, "-p", TEXT, "-n", 4, "-t", 1, "--policy", "snapkv", "--policy", "h2o",
                     "--budget", "20,40", "-o", "some.h5"]
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("snapkv @ 20 failed", done.stderr)
        self.assertIn("no errors", self.made("inspect", "some.h5").stdout)
        with h5py.File(self.path("some.h5"), "r") as trace:
            runs = {run.attrs["label"]: run for run in trace["prompts/0/runs"].values()}
            self.assertEqual({label: run.attrs["status"] for label, run in runs.items()},
                             {"full": "complete", "snapkv @ 20": "failed", "snapkv @ 40": "complete",
                              "h2o @ 20": "complete", "h2o @ 40": "complete"})
            self.assertIn("window", runs["snapkv @ 20"].attrs["message"])
            self.assertEqual(len(runs["snapkv @ 40"]["output_ids"]), 4)

    # ---- policies

    def test_an_unknown_policy(self):
        self.bad(2, ["snapkw", "Did you mean snapkv"], "--policy", "snapkw", "--budget", 40)
        self.bad(2, ["xyz", "streaming-llm", "aperturekv"], "--policy", "xyz", "--budget", 40)
        self.bad(2, ["''"], "--policy", "", "--budget", 40)

    def test_an_unknown_parameter(self):
        self.bad(2, ["windw", "Did you mean window", "snapkv"], "--policy", "snapkv:windw=8", "--budget", 40)
        self.bad(2, ["sinks", "window"], "--policy", "snapkv:sinks=4", "--budget", 40)

    def test_a_parameter_out_of_range(self):
        for policy, named in (("snapkv:window=0", "window"), ("snapkv:window=many", "many"), ("snapkv:kernel=4", "kernel"),
                              ("snapkv:pooling=median", "median"), ("snapkv:window", "window"),
                              ("aperturekv:lambda=0.9", "lambda"), ("aperturekv:raba=perhaps", "perhaps"),
                              ("ada-snapkv:alpha=2", "alpha"), ("pyramidkv:beta=nan", "beta"), ("snapkv:,", "snapkv"),
                              ("aperturekv:divergence=kld", "divergence")):
            with self.subTest(policy):
                self.bad(2, [named], "--policy", policy, "--budget", 40)

    # ---- options

    def test_options_out_of_range(self):
        for n in (0, -3):
            self.bad(2, ["at least 1"], n=n)
        for name, arguments, named in (("temperature", ["--temp", -1], "temperature"), ("top-p", ["--top-p", 0], "top"),
                                       ("threads", ["-t", 0], "threads"), ("dtype", ["--dtype", "int4"], "int4"),
                                       ("device", ["--device", "tpu"], "tpu"), ("switch", ["--query-aware", "no"], "no")):
            with self.subTest(name):
                self.bad(2, [named], *arguments)

    def test_a_device_that_is_missing(self):
        done = self.run_program("run", "-m", HF_MODEL, "-p", TEXT, "-n", 1, "--device", "cuda", "-o", "cuda.h5")
        if done.returncode != 0:
            self.assertIn(done.returncode, (1, 2))
            self.assertIn("cuda", done.stderr.lower())
            self.assertEqual(list(self.folder.glob("cuda.h5*")), [])

    def test_devices_of_other_commands_that_run_a_model(self):
        needles = ["--lengths", 100, "--depths", 0.5, "-n", 1]
        for command in (["eval", "-m", HF_MODEL, *needles, "-o", "on.h5"],
                        ["profile-heads", "-m", HF_MODEL, *needles, "-o", "on.json"],
                        ["analyze", "-m", HF_MODEL, "--queries", "-p", TEXT, "-n", 1]):
            with self.subTest(command[0]):
                self.refuses(2, ["--device", "unknown device 'tpu'", "cuda:N"], *command, "--device", "tpu")
                self.refuses(1, ["--device cuda:99"], *command, "--device", "cuda:99")
                self.assertEqual(list(self.folder.glob("on.*")), [])
        self.made("analyze", "-m", HF_MODEL, "--queries", "-p", TEXT, "-n", 1, "--device", "cpu")
        # Commands that compute only on the CPU have no --device.
        self.refuses(2, ["--device", "--queries"], "analyze", HF_MODEL, "--device", "cpu")

    def test_where_a_figure_of_spectra_is_from(self):
        self.refuses(2, ["--force requires --output"], "analyze", HF_MODEL, "--force")
        self.refuses(2, ["unknown option --device"], "train-echo", "-m", HF_MODEL, "--device", "cpu", "-o", "e.safetensors")


if __name__ == "__main__":
    unittest.main()
