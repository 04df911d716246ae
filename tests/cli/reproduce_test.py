#!/usr/bin/env python3
"""The command that `inspect --commands` prints for a run reproduces its kept sets from the trace's token ids."""

import json
import os
import re
import shlex
import subprocess
import unittest

import h5py

from program import (DEFAULT_MODEL, GGUF_MODEL, HF_MODEL, MODELS, NEEDS_ENGINE, PROGRAM, SOURCE, TEXT, ProgramTest,
                     environment)

CLASSIFIER = SOURCE / "tests" / "data" / "classifiers" / "bert"
QUESTIONS = ["--question", "Which animal is lazy?", "--question", "How many hens?", "--query-aware", "off"]

# For every option of `run`: a value that changes a run. None means that the option changes no run, because it names an output
# or how the work is done. A new option fails the test below: decide which kind it is, and whether `inspect --commands` must
# print it.
OPTIONS = {
    "--prompt": None, "--prompt-name": ["a\nname"], "--prompt-file": None, "--question": ["Which animal is lazy?"],
    "--query-aware": ["off", *QUESTIONS[:4]], "--prompt-from": None, "--policy": None, "--budget": ["20%"],
    "--n-predict": [3], "--ignore-eos": [], "--output": None, "--dtype": ["bf16"], "--device": None, "--isolated": [],
    "--temp": [1.5], "--top-p": [0.4, "--temp", 2], "--seed": [7, "--temp", 1], "--sampling-seed": [9, "--temp", 1],
    "--window": [5], "--threads": None, "--chat-template": ["off"], "--apply-chat-template": [], "--no-template": [],
    "--no-special": ["--no-template"],
    "--analyze": None, "--alignment": [], "--no-compare": [], "--no-record": [], "--record": None, "--shard": None, "--max-disk": None,
    "--timings": None, "--same-window": None,
    "--force": None, "--quiet": None, "--help": None, "--model": None,
}


def commands_in(text):
    """Returns the commands that a shell would run from kvscope's output."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def remarks_in(text):
    return [line for line in text.splitlines() if line.startswith("#")]


@NEEDS_ENGINE
class Reproduce(ProgramTest):
    def commands(self, trace, model):
        return commands_in(self.made("inspect", trace, "--commands", "-m", model).stdout)

    def every_policy(self, model):
        """Returns every registered policy with the parameters that it needs for the model."""
        names = [row["policy"] for row in self.json("policies")]
        self.assertIn("oracle", names)
        maps = self.maps(model)
        needed = {"headkv": f"headkv:importance={self.importance()}", "llmlingua-2": f"llmlingua-2:model={CLASSIFIER}",
                  "echokv": f"echokv:recent=20,maps={maps}", "echokv-hybrid": f"echokv-hybrid:recent=20,maps={maps}"}
        return [needed.get(name, name) for name in names if name != "full"]

    def json(self, *arguments):
        return json.loads(self.made(*arguments, "--format", "json").stdout)

    def importance(self):
        path = self.path("heads.json")
        path.write_text(json.dumps({f"{layer}-{head}": [(1 + layer * 7 + head * 3) % 5 / 10]
                                    for layer in range(2) for head in range(4)}))
        return path

    def maps(self, model):
        path = self.path(f"maps-{model.name}.safetensors")
        self.path("text.txt").write_text("\n".join(f"{i}. {TEXT}" for i in range(20)))
        self.made("train-echo", "-m", model, "text.txt", "--sequence", 100, "--dtype", "f32", "-o", path, "--force")
        return path

    def check(self, trace, model, first=0, prompts=None):
        """Runs each command in a shell and compares its kept sets and answer with the trace.

        @param first the number of the first run to check
        @param prompts the numbers of the prompts to check; all by default
        """
        commands = self.commands(trace, model)
        outputs = [shlex.split(command)[-1] for command in commands]
        self.assertEqual(len(set(outputs)), len(outputs))
        with h5py.File(self.path(trace), "r") as stored:
            runs = [(prompt, run) for prompt in range(len(stored["prompts"]))
                    for run in range(len(stored[f"prompts/{prompt}/runs"]))]
            self.assertEqual(len(commands), len(runs))
            chosen = [(command, (prompt, run)) for command, (prompt, run) in zip(commands, runs)
                      if run >= first and (prompts is None or prompt in prompts)]
            self.run_by_a_shell([command for command, _ in chosen])
            for command, (prompt, run) in chosen:
                with self.subTest(command):
                    self.compare(stored, prompt, run, shlex.split(command)[-1])

    def run_by_a_shell(self, commands):
        (self.folder / "bin").mkdir(exist_ok=True)
        link = self.folder / "bin" / "kvscope"
        if not link.exists():
            link.symlink_to(PROGRAM)
        outputs = [self.path(shlex.split(command)[-1]) for command in commands]
        self.addCleanup(lambda: [path.unlink(missing_ok=True) for path in outputs])
        script = "set -e\n" + "\n".join(f"{command} -q -t 1" for command in commands)
        env = environment(self.cache)
        done = subprocess.run(["sh", "-c", script], cwd=self.folder, capture_output=True, text=True, check=False,
                              env=env | {"PATH": f"{link.parent}:{env['PATH']}"})
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stderr}")

    def compare(self, stored, prompt, run, output):
        recorded = stored[f"prompts/{prompt}/runs/{run}"]
        with h5py.File(self.path(output), "r") as made:
            tokens = stored[f"prompts/{prompt}/token_ids"][:].tolist()
            asked = next(p for p in made["prompts"].values() if p["token_ids"][:].tolist() == tokens)
            for name in ("text", "question", "query_aware", "n_context", "template"):
                self.assertEqual(asked.attrs[name], stored[f"prompts/{prompt}"].attrs[name], name)
            same = asked[f"runs/{len(asked['runs']) - 1}"]
            for name in ("policy", "parameters_json", "budget", "granularity", "mode", "seed"):
                self.assertEqual(same.attrs[name], recorded.attrs[name], name)
            for name in ("kept_offsets", "kept_indices", "output_ids"):
                self.assertEqual(same[name][:].tolist(), recorded[name][:].tolist(), name)

    def test_every_policy_of_the_registry(self):
        policies = [word for policy in self.every_policy(HF_MODEL) for word in ("--policy", policy)]
        self.make_trace("it's a trace.h5", *policies, "--budget", 150, *QUESTIONS[:2], "--temp", 1.5, "--seed", 3)
        runs = self.json("inspect", "it's a trace.h5")["tree"]
        failed = [node["path"] for node in runs for name, attribute in node.get("attributes", {}).items()
                  if name == "status" and attribute["value"] == "failed"]
        self.assertEqual(failed, [])
        self.check("it's a trace.h5", HF_MODEL)

    def test_every_policy_after_several_questions(self):
        policies = [word for policy in self.every_policy(GGUF_MODEL) for word in ("--policy", policy)]
        self.make_trace("several.h5", *policies, "--budget", 150, *QUESTIONS, model=GGUF_MODEL)
        # test_every_option_of_run also checks the first of several questions.
        self.check("several.h5", GGUF_MODEL, prompts=[1])

    def options_of_run(self):
        lines = [line.strip() for line in self.made("run", "--help").stdout.splitlines() if re.match(r"\s+-", line)]
        names = [re.split(r"\s{2,}|\s[A-Z\[]", line)[0] for line in lines]
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "\n".join(names)))

    def test_every_option_of_run(self):
        aliases = {"--file": "--prompt-file", "--predict": "--n-predict"}
        known = {aliases.get(name, name) for name in self.options_of_run()}
        self.assertEqual(known - set(OPTIONS), set(), "options that this test does not know")
        self.assertEqual(set(OPTIONS) - known, set(), "options that the program lacks")
        for option, values in OPTIONS.items():
            if values is None:
                continue
            with self.subTest(option):
                name = f"with{option}.h5"
                budget = [] if option == "--budget" else ["--budget", 24]
                dtype = [] if option == "--dtype" else ["--dtype", "f32"]
                tokens = [] if option == "--n-predict" else ["-n", 8]
                self.made("run", "-m", HF_MODEL, "-p", TEXT, *tokens, "-t", 1, "-q", "--policy", "oracle", "--policy",
                          "random", *budget, *dtype, option, *values, "-o", name)
                self.check(name, HF_MODEL, first=1)

    def test_what_cannot_be_repeated_is_said(self):
        importance = self.importance()
        self.run_program("run", "-m", HF_MODEL, "-p", TEXT, "-n", 2, "-t", 1, "--policy", "streaming-llm:sinks=40",
                         "--policy", f"headkv:importance={importance}", "--budget", "20%", "-o", "said.h5")
        said = self.made("inspect", "said.h5", "--commands").stdout
        remarks = "\n".join(remarks_in(said))
        self.assertIn("inspect said.h5 --commands -m MODEL", remarks)
        self.assertRegex(remarks, r"streaming-llm.*failed, and the command repeats it: ")
        self.assertIn(f"reads {importance}", remarks)
        self.assertEqual(len(commands_in(said)), 3)
        importance.unlink()
        self.assertIn("that was not found", self.made("inspect", "said.h5", "--commands").stdout)

    @unittest.skipUnless(os.path.exists(DEFAULT_MODEL), "the default model is missing")
    def test_the_default_model(self):
        self.made("run", "-m", DEFAULT_MODEL, "-p", TEXT, "-n", 3, "--policy", "aperturekv", "--budget", 24, "-o",
                  "default.h5")
        self.check("default.h5", DEFAULT_MODEL, first=1)

    def test_another_model_is_refused(self):
        self.make_trace("other-t.h5")
        self.refuses(2, ["other-t.h5", "fingerprint", "-m"], "run", "-m", MODELS / "qwen2-biases", "--prompt-from",
                     "other-t.h5", "-n", 2, "-o", "other.h5")
        self.assertEqual(list(self.folder.glob("other.h5*")), [])

    def test_wrong_places_and_contradictions_are_refused(self):
        self.make_trace("wrong-t.h5", n=1)
        common = ["run", "-m", HF_MODEL, "-n", 1, "-o", "no.h5"]
        self.refuses(2, ["there is no prompt 3"], *common, "--prompt-from", "wrong-t.h5:3")
        self.refuses(1, ["gone.h5"], *common, "--prompt-from", "gone.h5:0")
        self.refuses(2, ["--prompt-from"], *common, "--prompt-from", "wrong-t.h5", "-p", "a text")
        self.refuses(2, ["--prompt-from"], *common, "--prompt-from", "wrong-t.h5", "--question", "Who?")


if __name__ == "__main__":
    unittest.main()
