#!/usr/bin/env python3
"""Shared and isolated runs keep and answer the same. Several questions can share one compressed context."""

import unittest

import h5py
import numpy

from program import DEFAULT_MODEL, GGUF_MODEL, HF_MODEL, MODELS, NEEDS_ENGINE, TEXT, ProgramTest

POLICIES = ["--policy", "snapkv:window=8", "--policy", "ada-snapkv:window=8", "--policy", "h2o", "--policy",
            "pyramidkv:window=8,beta=4", "--policy", "aperturekv", "--policy", "streaming-llm:rolling=on"]
QUESTIONS = ["Which animal is lazy?", "How many hens are there in winter?"]


@NEEDS_ENGINE
class SharedAndIsolated(ProgramTest):
    def check(self, model, *arguments):
        self.make_trace("shared.h5", *POLICIES, "--budget", "24,60", *arguments, "--force", model=model, n=12)
        self.make_trace("isolated.h5", *POLICIES, "--budget", "24,60", *arguments, "--isolated", "--force", model=model,
                        n=12)
        with h5py.File(self.path("shared.h5"), "r") as shared, h5py.File(self.path("isolated.h5"), "r") as isolated:
            self.assertEqual(len(shared["prompts"]), len(isolated["prompts"]))
            for prompt in shared["prompts"]:
                ours, theirs = shared[f"prompts/{prompt}"], isolated[f"prompts/{prompt}"]
                numpy.testing.assert_allclose(theirs["full/last_logits"][:], ours["full/last_logits"][:], atol=1e-4)
                self.assertEqual(len(ours["runs"]), 1 + 2 * len(POLICIES) // 2)
                for j, run in ours["runs"].items():
                    with self.subTest(run.attrs["label"], prompt=prompt):
                        self.same(run, theirs["runs"][j], prompt == "0")

    def same(self, shared, isolated, is_first):
        self.assertEqual((shared.attrs["mode"], isolated.attrs["mode"]), ("shared", "isolated"))
        self.assertEqual(shared.attrs["label"], isolated.attrs["label"])
        for name in ("kept_offsets", "kept_indices", "output_ids", "cache_bytes"):
            self.assertEqual(shared[name][:].tolist(), isolated[name][:].tolist(), name)
        numpy.testing.assert_allclose(isolated["step_kl"][:], shared["step_kl"][:], atol=1e-4)
        numpy.testing.assert_allclose(isolated["output_error"][:], shared["output_error"][:], atol=1e-4)
        measured = {"decode_s", "decode_tokens_per_s"}
        if is_first:  # later questions start from an existing cache
            measured |= {"first_token_s", "peak_bytes"}
        self.assertLessEqual(measured, set(isolated.attrs))
        self.assertFalse(measured & set(shared.attrs))

    def test_hugging_face_directory(self):
        self.check(HF_MODEL)

    def test_gguf(self):
        self.check(GGUF_MODEL)

    def test_sliding_window(self):
        self.check(MODELS / "mistral-window")

    def test_questions(self):
        self.check(HF_MODEL, "--query-aware", "off", "--question", QUESTIONS[0], "--question", QUESTIONS[1])


@NEEDS_ENGINE
class Questions(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.both = cls.ask("both.h5", QUESTIONS, "off")

    @classmethod
    def ask(cls, name, questions, query_aware):
        asked = [argument for question in questions for argument in ("--question", question)]
        cls.make_trace(name, *POLICIES, "--budget", 40, "--query-aware", query_aware, *asked, n=12)
        trace = h5py.File(cls.folder / name, "r")
        cls.addClassCleanup(trace.close)
        return trace

    def test_inspect_finds_no_errors(self):
        done = self.made("inspect", "both.h5")
        self.assertIn("no errors", done.stdout)
        for question in QUESTIONS:
            self.assertIn(question, done.stdout)
        self.assertIn("question hidden", done.stdout)

    def test_each_question_is_a_prompt_with_the_same_context(self):
        self.assertEqual(sorted(self.both["prompts"]), ["0", "1"])
        first, second = self.both["prompts/0"], self.both["prompts/1"]
        n = int(first.attrs["n_context"])
        for prompt, question in zip((first, second), QUESTIONS):
            self.assertEqual(prompt.attrs["question"], question)
            self.assertIn(f"{TEXT}\n\n{question}", prompt.attrs["text"])
            self.assertEqual(int(prompt.attrs["query_aware"]), 0)
            self.assertEqual(int(prompt.attrs["n_context"]), n)
            self.assertGreater(int(prompt.attrs["n_tokens"]), n)
            self.assertEqual(prompt["token_ids"].shape, (int(prompt.attrs["n_tokens"]),))
            shown = "".join(prompt["token_text"].asstr()[n:])
            self.assertIn(question.replace(" ", ""), "".join(c for c in shown if c.isalnum() or c == "?"))
        self.assertEqual(first["token_ids"][:n].tolist(), second["token_ids"][:n].tolist())
        self.assertNotEqual(first["token_ids"][n:].tolist(), second["token_ids"][n:].tolist())
        self.assertNotIn("context_of", first.attrs)
        self.assertEqual(int(second.attrs["context_of"]), 0)

    def test_what_belongs_to_the_context_is_stored_once(self):
        first, second = self.both["prompts/0"], self.both["prompts/1"]
        for name in ("full/window_attention", "full/head_jsd", "full/adjacent_similarity/k",
                     "full/mode_contribution/q", "full/layer_similarity/v"):
            self.assertEqual(first[name], second[name], name)  # h5py: the same HDF5 object
        self.assertNotEqual(first["full/last_logits"], second["full/last_logits"])
        for j in first["runs"]:
            for name in ("kept_offsets", "kept_indices", "scores"):
                if name in first["runs"][j]:
                    self.assertEqual(first["runs"][j][name], second["runs"][j][name], name)
            self.assertNotEqual(first["runs"][j]["output_ids"], second["runs"][j]["output_ids"])

    def test_the_policies_see_the_context_alone(self):
        n = int(self.both["prompts/0"].attrs["n_context"])
        self.assertEqual(self.both["prompts/0/full/window_attention"].shape[2], n)
        for run in self.both["prompts/0/runs"].values():
            self.assertLess(int(run["kept_indices"][:].max()), n)
            if "scores" in run:
                self.assertEqual(run["scores"].shape[2], n)
        full = self.both["prompts/0/runs/0"]
        self.assertEqual(full.attrs["budget"], n)

    def test_each_question_is_answered_as_if_asked_alone(self):
        """The caches for the second question contain nothing of the first."""
        for i, question in enumerate(QUESTIONS):
            alone = self.ask(f"alone{i}.h5", [question], "off")
            for j, run in self.both[f"prompts/{i}/runs"].items():
                with self.subTest(run.attrs["label"], question=question):
                    other = alone[f"prompts/0/runs/{j}"]
                    self.assertGreater(len(run["output_ids"]), 0)
                    self.assertEqual(run["output_ids"][:].tolist(), other["output_ids"][:].tolist())
                    self.assertEqual(run["kept_indices"][:].tolist(), other["kept_indices"][:].tolist())
                    numpy.testing.assert_allclose(run["step_kl"][:], other["step_kl"][:], atol=1e-5)

    def test_the_questions_have_answers_of_their_own(self):
        answers = [self.both[f"prompts/{i}/runs/0/output_ids"][:].tolist() for i in (0, 1)]
        self.assertNotEqual(*answers)

    def test_a_question_leaves_the_text_as_it_is(self):
        """Context and question give the tokens and logits of the same text as one prompt."""
        context, question = "The code is 58-21-94.", "What is the code?"
        run = ["run", "-m", DEFAULT_MODEL, "--no-template", "-n", 2, "--dtype", "f32", "-t", 1]
        self.made(*run, "-p", context, "--question", question, "-o", "apart.h5")
        self.made(*run, "-p", f"{context}\n\n{question}", "-o", "one.h5")
        with h5py.File(self.path("apart.h5"), "r") as apart, h5py.File(self.path("one.h5"), "r") as one:
            for name in ("token_ids", "full/last_logits"):
                self.assertEqual(apart[f"prompts/0/{name}"][:].tolist(), one[f"prompts/0/{name}"][:].tolist(), name)

    def test_query_aware_sees_the_question(self):
        aware = self.ask("aware.h5", [QUESTIONS[0]], "on")["prompts/0"]
        blind = self.both["prompts/0"]
        self.assertEqual(int(aware.attrs["query_aware"]), 1)
        self.assertEqual(aware["token_ids"][:].tolist(), blind["token_ids"][:].tolist())
        n = int(aware.attrs["n_tokens"])
        self.assertEqual(aware["full/window_attention"].shape[2], n)
        self.assertEqual(int(aware["runs/1/kept_indices"][:].max()), n - 1)
        self.assertEqual(aware["runs/0/output_ids"][:].tolist(), blind["runs/0/output_ids"][:].tolist(),
                         "the full cache gives the same answer in both modes")


if __name__ == "__main__":
    unittest.main()
