#!/usr/bin/env python3
"""The command that `inspect --commands` names for a run makes the same kept sets again, from the trace's token ids."""

import os
import shlex
import unittest

import h5py

from program import GGUF_MODEL, HF_MODEL, MODELS, NEEDS_ENGINE, TEXT, ProgramTest

DEFAULT_MODEL = os.environ.get("KVSCOPE_DEFAULT_MODEL", "")
POLICIES = ["--policy", "snapkv:window=8,pooling=avg", "--policy", "ada-snapkv:window=8,alpha=0.5", "--policy",
            "aperturekv:granularity=query_head", "--policy", "streaming-llm"]


@NEEDS_ENGINE
class Reproduce(ProgramTest):
    def commands(self, trace):
        return self.made("inspect", trace, "--commands").stdout.splitlines()

    def again(self, command, output, model):
        """Runs a command line as a shell reads it, with the model and an output of its own."""
        words = shlex.split(command)
        self.assertEqual(words[:2], ["kvscope", "run"])
        words[words.index("-o") + 1] = output
        self.made(*words[1:], "-m", model, "-t", 1, "--force")

    def check(self, trace, model, first=0):
        commands = self.commands(trace)
        with h5py.File(self.path(trace), "r") as stored:
            runs = [(prompt, run) for prompt in range(len(stored["prompts"]))
                    for run in range(len(stored[f"prompts/{prompt}/runs"]))]
            self.assertEqual(len(commands), len(runs))
            for command, (prompt, run) in list(zip(commands, runs))[first:]:
                recorded = stored[f"prompts/{prompt}/runs/{run}"]
                with self.subTest(command):
                    self.again(command, "again.h5", model)
                    with h5py.File(self.path("again.h5"), "r") as made:
                        asked = made["prompts/0"]
                        self.assertEqual(asked["token_ids"][:].tolist(),
                                         stored[f"prompts/{prompt}/token_ids"][:].tolist())
                        for name in ("text", "question", "query_aware", "n_context", "template"):
                            self.assertEqual(asked.attrs[name], stored[f"prompts/{prompt}"].attrs[name], name)
                        same = asked[f"runs/{len(asked['runs']) - 1}"]
                        for name in ("policy", "parameters_json", "budget", "granularity", "mode"):
                            self.assertEqual(same.attrs[name], recorded.attrs[name], name)
                        for name in ("kept_offsets", "kept_indices", "output_ids"):
                            self.assertEqual(same[name][:].tolist(), recorded[name][:].tolist(), name)

    def test_every_run_of_a_small_model(self):
        self.make_trace("it's a trace.h5", *POLICIES, "--budget", "24", "--question", "Which animal is lazy?")
        self.check("it's a trace.h5", HF_MODEL)

    def test_questions_asked_of_one_context_and_isolated_runs(self):
        questions = ["--question", "Which animal is lazy?", "--question", "How many hens?", "--query-aware", "off"]
        self.make_trace("questions.h5", "--policy", "h2o", "--budget", "24", *questions, "--isolated",
                        model=GGUF_MODEL)
        self.check("questions.h5", GGUF_MODEL)

    @unittest.skipUnless(os.path.exists(DEFAULT_MODEL), "there is no default model here")
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
