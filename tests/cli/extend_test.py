#!/usr/bin/env python3
"""A command with further policies, budgets, prompts or questions extends a trace."""

import json
import shutil
import signal
import time
import unittest

import h5py

from program import HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG, SOURCE, TEXT, ProgramTest, clock_model, snapshot

CLASSIFIER = SOURCE / "tests" / "data" / "classifiers" / "bert"
CONTROL_TOKEN = "<|im_end|>"  # in all small models


@NEEDS_ENGINE
class Extended(ProgramTest):
    """A complete trace is extended by additional runs and prompts of the same command."""
    @staticmethod
    def command(output, *arguments, policies=("snapkv:window=8",), budgets="20,30"):
        named = [word for policy in policies for word in ("--policy", policy)]
        return ["run", "-m", HF_MODEL, "-p", TEXT, "-n", 8, "--dtype", "f32", "-t", 1, *named, "--budget", budgets,
                *arguments, "-o", output]

    def old_runs(self, name, prompt=0, n=3):
        """Returns all names and values of the first runs, including times, which show whether a run was repeated."""
        with h5py.File(self.path(name), "r") as trace:
            runs = trace[f"prompts/{prompt}/runs"]
            return repr([(sorted((k, str(v)) for k, v in runs[str(j)].attrs.items()),
                          {name: runs[str(j)][name][()].tolist() for name in runs[str(j)]
                           if isinstance(runs[str(j)][name], h5py.Dataset)}) for j in range(n)])

    def labels(self, name, prompt=0):
        with h5py.File(self.path(name), "r") as trace:
            runs = trace[f"prompts/{prompt}/runs"]
            return [runs[str(j)].attrs["label"] for j in range(len(runs))]

    def becomes_what_one_command_makes(self, name, before, after):
        """@param before, after: arguments of `command` for the complete trace and for the extension"""
        self.made(*self.command(f"{name}.h5", *before[0], **before[1]))
        old = self.old_runs(f"{name}.h5")
        said = self.made(*self.command(f"{name}.h5", *after[0], **after[1]), "--timings", f"{name}.json").stderr
        self.assertIn(f"extending {name}.h5", said)
        with h5py.File(self.path(f"{name}.h5"), "r") as trace:
            n_runs = sum(len(prompt["runs"]) for prompt in trace["prompts"].values())
        seconds = json.loads(self.path(f"{name}.json").read_text())
        self.assertEqual(seconds["n_runs"], n_runs - 3)
        self.assertLessEqual(seconds["n_generated"], 8 * (n_runs - 3 + 1), "only the full run of the old runs is decoded")
        self.assertEqual(self.old_runs(f"{name}.h5"), old)
        self.assertFalse(self.path(f"{name}.h5.part").exists())
        self.assertIn("no errors", self.made("inspect", f"{name}.h5").stdout)
        self.made(*self.command(f"{name}-once.h5", *after[0], **after[1]))
        self.assertEqual(snapshot(self.path(f"{name}.h5")), snapshot(self.path(f"{name}-once.h5")))
        bytes_before = self.path(f"{name}.h5").read_bytes()
        self.assertIn("nothing to do", self.made(*self.command(f"{name}.h5", *after[0], **after[1])).stderr)
        self.assertEqual(self.path(f"{name}.h5").read_bytes(), bytes_before)

    def test_more_policies_and_budgets(self):
        more = {"policies": ("snapkv:window=8", "h2o", "oracle"), "budgets": "20,30,25"}
        for mode in ((), ("--isolated",)):
            with self.subTest(mode):
                name = f"more{len(mode)}"
                # The trace's first runs come first, then the added runs in the order of the commands.
                self.made(*self.command(f"{name}.h5", *mode))
                old = self.old_runs(f"{name}.h5")
                self.made(*self.command(f"{name}.h5", *mode, policies=("snapkv:window=8", "h2o", "oracle")))
                self.made(*self.command(f"{name}.h5", *mode, **more))
                self.assertEqual(self.old_runs(f"{name}.h5"), old)
                self.made(*self.command(f"{name}-once.h5", *mode, **more))
                both = [dict(zip(self.labels(one), range(10))) for one in (f"{name}.h5", f"{name}-once.h5")]
                self.assertEqual(both[0].keys(), both[1].keys())
                with h5py.File(self.path(f"{name}.h5"), "r") as a, h5py.File(self.path(f"{name}-once.h5"), "r") as b:
                    for label in both[0]:
                        of_a, of_b = (t[f"prompts/0/runs/{at[label]}"] for t, at in zip((a, b), both))
                        self.assertEqual(list(of_a), list(of_b))
                        for data_set in of_a:
                            if isinstance(of_a[data_set], h5py.Dataset):
                                self.assertEqual(of_a[data_set][()].tobytes(), of_b[data_set][()].tobytes(),
                                                 f"{label} {data_set}")
        self.becomes_what_one_command_makes("behind", ((), {}), ((), {"policies": ("snapkv:window=8", "h2o", "laq:window=8")}))

    def test_more_prompts(self):
        self.path("other.txt").write_text(TEXT + " Or was it another one, who had come before all of them?")
        self.becomes_what_one_command_makes("prompts", ((), {}), (("-f", self.path("other.txt")), {}))
        self.becomes_what_one_command_makes("both", ((), {}), (("-f", self.path("other.txt")), {"policies": ("snapkv:window=8", "h2o")}))

    def test_more_questions_of_one_context(self):
        asked = ("--query-aware", "off", "--question", "Who was it?")
        self.becomes_what_one_command_makes("asked", (asked, {}), ((*asked, "--question", "When was it?"),
                                                                   {"policies": ("snapkv:window=8", "h2o")}))
        with h5py.File(self.path("asked.h5"), "r") as trace:
            self.assertEqual(trace["prompts/1"].attrs["context_of"], 0)
            self.assertEqual(trace["prompts/0/runs/3/kept_indices"], trace["prompts/1/runs/3/kept_indices"])

    def test_runs_that_are_not_asked_for_stay(self):
        self.made(*self.command("stay.h5"))
        old = self.old_runs("stay.h5")
        self.made(*self.command("stay.h5", policies=("h2o",), budgets="25"))
        self.assertEqual(self.labels("stay.h5"), ["full", "snapkv:window=8 @ 20", "snapkv:window=8 @ 30", "h2o @ 25"])
        self.assertEqual(self.old_runs("stay.h5"), old)
        said = self.made(*self.command("stay.h5"))
        self.assertIn("nothing to do", said.stderr)
        self.assertIn("h2o", said.stdout)
        # An added prompt has all runs.
        self.path("third.txt").write_text(TEXT + " And then there was none.")
        self.made(*self.command("stay.h5", "-f", self.path("third.txt")))
        self.assertEqual(self.labels("stay.h5", 1), self.labels("stay.h5"))

    def test_a_kill_leaves_the_old_trace_and_what_is_finished(self):
        arguments = self.command("killed.h5", "--isolated")
        self.made(*arguments)
        old, before = self.old_runs("killed.h5"), self.path("killed.h5").read_bytes()
        many = self.command("killed.h5", "--isolated", policies=("snapkv:window=8", "h2o"), budgets="20,30,21-80+1")
        part = self.path("killed.h5.part")
        process = self.start(*many)
        deadline = time.monotonic() + SECONDS_UNTIL_HUNG
        while process.poll() is None and not (part / "run-0-4.h5").exists():
            self.assertLess(time.monotonic(), deadline, "no run was finished")
            time.sleep(0.001)
        process.kill()
        process.communicate()
        self.assertEqual(self.path("killed.h5").read_bytes(), before)
        finished = sorted(path.name for path in part.glob("run-*.h5"))
        self.assertGreaterEqual(len(finished), 2)
        self.assertIn("incomplete", self.made("inspect", part).stdout)
        self.assertIn("an unfinished extension is in", self.made("inspect", "killed.h5").stdout)
        self.assertIn("nothing to do", self.made(*arguments).stderr, "the old command still matches its trace")
        self.assertTrue((part / "run-0-4.h5").exists())
        with h5py.File(part / "run-0-3.h5", "r") as kept:
            seconds = kept["prompts/0/runs/3"].attrs["prefill_s"]
        said = self.made(*many).stderr
        self.assertIn("extending killed.h5", said)
        self.assertIn("resuming killed.h5", said)
        self.assertFalse(part.exists())
        self.assertEqual(self.old_runs("killed.h5"), old)
        with h5py.File(self.path("killed.h5"), "r") as trace:
            self.assertEqual(trace["prompts/0/runs/3"].attrs["prefill_s"], seconds)
        self.assertIn("no errors", self.made("inspect", "killed.h5").stdout)

    def by_name(self, name):
        """Returns, by prompt name and question, hashes of all data sets of each run, and whose context it shares."""
        found = {}
        with h5py.File(self.path(name), "r") as trace:
            named = {number: (prompt.attrs["name"], prompt.attrs["question"]) for number, prompt in trace["prompts"].items()}
            for number, prompt in trace["prompts"].items():
                shared = prompt.attrs.get("context_of")
                found[named[number]] = None if shared is None else named[str(shared)]
                for run in prompt["runs"].values():
                    found[*named[number], run.attrs["label"]] = {
                        key: hash(item[()].tobytes()) for key, item in run.items() if isinstance(item, h5py.Dataset)}
        return found

    def start_until(self, part, *arguments):
        """Starts a command and waits until this file exists."""
        process = self.start(*arguments)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + SECONDS_UNTIL_HUNG
        while not self.path(part).exists():
            self.assertIsNone(process.poll(), f"the program ended before it wrote {part}")
            self.assertLess(time.monotonic(), deadline, f"{part} was not written")
            time.sleep(0.001)
        return process

    def test_a_question_behind_another_file(self):
        """It shares the first question's context, although a prompt with another context is between them."""
        self.path("between.txt").write_text(TEXT + " Or was it another one?")
        asked = ("-f", self.path("between.txt"), "--query-aware", "off", "--question", "Who was it?")
        more = (*asked, "--question", "When?")
        runs = {"policies": ("snapkv:window=8", "oracle")}
        for mode in ((), ("--isolated",)):
            with self.subTest(mode):
                self.made(*self.command(f"q{len(mode)}.h5", *asked, *mode))
                self.made(*self.command(f"q{len(mode)}.h5", *more, *mode, **runs))
                self.made(*self.command(f"q{len(mode)}-once.h5", *more, *mode, **runs))
                self.assertEqual(self.by_name(f"q{len(mode)}.h5"), self.by_name(f"q{len(mode)}-once.h5"))
                self.assertIn("no errors", self.made("inspect", f"q{len(mode)}.h5").stdout)

    def test_a_prompt_of_another_trace_keeps_the_time_of_its_template(self):
        """llmlingua-2 needs the context, which only the template at the original time separates from the text."""
        common = ("-m", clock_model(self.path("clock")), "-n", 4, "--dtype", "f32", "-t", 1, "-o")
        self.made("run", "-p", TEXT, *common, "clock-1.h5")
        commands = [("run", "--prompt-from", f"clock-{i}.h5", "--policy", policy, "--budget", 30, *common, f"clock-{i + 1}.h5")
                    for i, policy in enumerate(("h2o", "random", f"llmlingua-2:model={CLASSIFIER}"), 1)]
        for command in commands:
            time.sleep(1.1)  # so that the time changes by a second
            self.made(*command)
        time.sleep(1.1)
        for command in commands:
            self.assertIn("nothing to do", self.made(*command).stderr)
        self.made("run", "-p", TEXT, *common, "clock-1.h5", "--policy", "h2o", "--budget", 30)

    def test_a_run_whose_file_is_gone_stays(self):
        """Runs that are not repeated need no file."""
        importance = self.path("importance.json")
        scores = json.dumps({f"{layer}-{head}": [(1 + layer * 7 + head * 3) % 5 / 10]
                             for layer in range(2) for head in range(4)})
        importance.write_text(scores)
        self.path("prompt.txt").write_text(TEXT + " And then there was none.")
        headkv = "headkv:importance=importance.json"
        self.made(*self.command("file.h5", policies=(headkv,), budgets="40"))
        old = self.old_runs("file.h5", n=2)
        for policy, change in (("h2o", importance.unlink), ("random", lambda: importance.write_text(scores + "\n"))):
            with self.subTest(policy):
                change()
                self.made(*self.command("file.h5", policies=(policy,), budgets="40"))
                self.assertEqual(self.old_runs("file.h5", n=2), old)
                said = self.refuses(1, ["file.h5 ", headkv, str(importance), "another output"],
                                    *self.command("file.h5", "-f", "prompt.txt", policies=(policy,), budgets="40"))
                self.assertNotIn("--force", said)
        self.assertEqual(self.labels("file.h5"), ["full", f"{headkv} @ 40", "h2o @ 40", "random @ 40"])
        self.refuses(1, ["file.h5 ", "the run headkv @ 40 differs in files"], *self.command("file.h5", policies=(headkv,), budgets="40"))
        importance.write_text(scores)
        self.made(*self.command("file.h5", "-f", "prompt.txt", policies=("h2o",), budgets="40"))
        self.assertEqual(self.labels("file.h5", 1), self.labels("file.h5"))

    def test_the_order_of_questions_changes_no_oracle(self):
        questions = ["Who was it?", "When did the fox come?", "How many hens are there in the garden?", "Why?"]
        for name, order in (("forth", questions), ("back", questions[::-1])):
            asked = [word for question in order for word in ("--question", question)]
            self.made(*self.command(f"{name}.h5", "--query-aware", "off", *asked, policies=("oracle",)))
        forth, back = (self.by_name(f"{name}.h5") for name in ("forth", "back"))
        runs = [key for key in forth if len(key) == 3]
        self.assertEqual({key: forth[key] for key in runs}, {key: back[key] for key in runs})

    def test_a_question_that_would_change_a_finished_oracle_is_refused(self):
        asked = ("--query-aware", "off", "--question", "Who was it?")
        more = (*asked, "--question", "When?")
        self.made(*self.command("oracle.h5", *asked, policies=("oracle",)))
        before = self.path("oracle.h5").read_bytes()
        named = ["oracle @ 20", "all questions", "When?", "another output"]
        said = self.refuses(1, ["oracle.h5 ", *named], *self.command("oracle.h5", *more, policies=("oracle",)))
        self.assertNotIn("--force", said)
        self.assertEqual(self.path("oracle.h5").read_bytes(), before)
        self.assertFalse(self.path("oracle.h5.part").exists())
        # Another context may have any number of questions.
        self.path("context.txt").write_text(TEXT + " Or was it another one?")
        self.made(*self.command("oracle.h5", *asked, "-f", self.path("context.txt"), policies=("oracle",)))
        # The same for an unfinished trace.
        begun = {"policies": ("oracle",), "budgets": "20-90+1"}
        process = self.start_until("half.h5.part/run-0-1.h5", *self.command("half.h5", *asked, "--isolated", **begun))
        process.kill()
        process.communicate()
        self.refuses(1, ["half.h5.part ", *named], *self.command("half.h5", *more, "--isolated", **begun))
        self.assertIn("resuming", self.made(*self.command("half.h5", *asked, "--isolated", **begun)).stderr)

    def test_a_command_that_names_a_part_of_an_unfinished_trace(self):
        """The command finishes the trace that a longer command began."""
        few = self.command("part.h5", "--isolated", policies=("h2o",), budgets="20-90+1")
        process = self.start_until("part.h5.part/run-0-1.h5", *few)
        process.kill()
        process.communicate()
        process = self.start_until("part.h5.part/run-0-4.h5", *self.command(
            "part.h5", "--isolated", policies=("h2o", "random"), budgets="20-90+1"))
        process.kill()
        process.communicate()
        said = self.made(*few).stderr
        self.assertIn("resuming part.h5; 71 runs that an earlier command began are finished, too", said)
        self.assertEqual(len(self.labels("part.h5")), 1 + 2 * 71)
        self.assertIn("nothing to do", self.made(*few).stderr)

    def test_what_is_in_the_way_of_a_complete_trace(self):
        """An unfinished extension or replacement does not damage the existing trace."""
        many = {"policies": ("snapkv:window=8", "h2o"), "budgets": "20,30,21-90+1"}
        other = {"policies": ("random",), "budgets": "20"}
        for kind, begins in (("extension", ("--isolated",)), ("replacement", ("--isolated", "-n", 9, "--force"))):
            with self.subTest(kind):
                output = f"{kind}.h5"
                self.made(*self.command(output, "--isolated"))
                before = self.path(output).read_bytes()
                begun = [word for word in self.command(output, *begins, **many)]
                if "-n" in begins:
                    del begun[begun.index("-n"):begun.index("-n") + 2]
                process = self.start_until(f"{output}.part/run-0-4.h5", *begun)
                process.send_signal(signal.SIGSTOP)
                wanted = self.command(output, "--isolated", **other)
                self.refuses(1, ["another kvscope is writing"], *wanted)
                process.kill()
                process.communicate()
                said = self.refuses(1, [f"{output}.part contains an unfinished {kind} of {output}", "repeat the earlier command",
                                        "remove the folder", "stays unchanged"], *wanted)
                self.assertNotIn("--force", said)
                self.assertEqual(self.path(output).read_bytes(), before)
                shutil.rmtree(self.path(f"{output}.part"))
                self.made(*wanted)
                self.assertEqual(self.labels(output), ["full", "snapkv:window=8 @ 20", "snapkv:window=8 @ 30", "random @ 20"])

    def test_a_prompt_with_other_tokens_is_refused(self):
        self.made(*self.command("tokens.h5"))
        with h5py.File(self.path("tokens.h5"), "r+") as trace:
            trace["prompts/0/token_ids"][3] += 1
        before = self.path("tokens.h5").read_bytes()
        self.refuses(1, ["tokens.h5", "different tokens from token 3 on", "--force"],
                     *self.command("tokens.h5", policies=("snapkv:window=8", "h2o")))
        self.assertEqual(self.path("tokens.h5").read_bytes(), before)
        self.assertFalse(self.path("tokens.h5.part").exists())

    def written_by_an_earlier_version(self, name):
        """Removes the fields that recipes lacked before context and question were tokenized as one text."""
        with h5py.File(self.path(name), "r+") as trace:
            recipe = json.loads(trace.attrs["recipe_json"])
            for prompt in recipe["prompts"]:
                for key in ("special", "tokens"):
                    prompt.pop(key, None)
            trace.attrs["recipe_json"] = json.dumps(recipe)

    def test_a_trace_of_an_earlier_version_is_extended_where_its_tokens_are_the_same(self):
        for name, asked in (("earlier-asked", ("--question", "Who was it?")), ("earlier-apart", ("--query-aware", "off", "--question", "Who?")),
                            ("earlier-bare", ("--no-template",)), ("earlier-both", ("--no-template", "--question", "Who was it?"))):
            with self.subTest(name):
                self.made(*self.command(f"{name}.h5", *asked))
                self.written_by_an_earlier_version(f"{name}.h5")
                old = self.old_runs(f"{name}.h5")
                self.assertIn("nothing to do", self.made(*self.command(f"{name}.h5", *asked)).stderr)
                more = self.command(f"{name}.h5", *asked, policies=("snapkv:window=8", "h2o"))
                self.assertIn(f"extending {name}.h5", self.made(*more).stderr)
                self.assertEqual(self.old_runs(f"{name}.h5"), old)
                self.assertEqual(len(self.labels(f"{name}.h5")), 5)
                self.assertIn("nothing to do", self.made(*more).stderr)
                self.assertIn("no errors", self.made("inspect", f"{name}.h5").stdout)

    def test_a_trace_of_an_earlier_version_with_other_tokens_is_refused_with_the_reason(self):
        asked = ("--query-aware", "off", "--question", "Who was it?")
        for name, said in (("token_ids", "different tokens from token 3 on"), ("n_context", "another position of the question's first token")):
            with self.subTest(name):
                self.made(*self.command(f"{name}.h5", *asked))
                self.written_by_an_earlier_version(f"{name}.h5")
                with h5py.File(self.path(f"{name}.h5"), "r+") as trace:
                    if name == "token_ids":
                        trace["prompts/0/token_ids"][3] += 1
                    else:
                        recipe = json.loads(trace.attrs["recipe_json"])
                        recipe["prompts"][0]["n_context"] -= 1
                        trace.attrs["recipe_json"] = json.dumps(recipe)
                        trace["prompts/0"].attrs.modify("n_context", trace["prompts/0"].attrs["n_context"] - 1)
                before = self.path(f"{name}.h5").read_bytes()
                self.refuses(1, [f"{name}.h5", said, "tokenized context and question separately", "--force"],
                             *self.command(f"{name}.h5", *asked, policies=("snapkv:window=8", "h2o")))
                self.assertEqual(self.path(f"{name}.h5").read_bytes(), before)

    def test_a_bare_text_whose_control_tokens_an_earlier_version_read_as_letters(self):
        self.path("control.txt").write_text(TEXT + CONTROL_TOKEN)
        def command(*arguments, **more):
            return ["run", "-m", HF_MODEL, "-f", self.path("control.txt"), "-n", 8, "--dtype", "f32", "-t", 1,
                    "--no-template", *arguments, "--policy", "snapkv:window=8", "--budget", "20,30", "-o", "control.h5"]
        self.made(*command("--no-special"))
        self.written_by_an_earlier_version("control.h5")
        self.refuses(1, ["control.h5", "different tokens", "--no-special", "--force"], *command("--policy", "h2o"))
        self.assertIn("extending", self.made(*command("--no-special", "--policy", "h2o")).stderr)

    def test_runs_that_cannot_be_made_are_wrong_usage_as_always(self):
        self.made(*self.command("wrong.h5"))
        before = self.path("wrong.h5").read_bytes()
        self.refuses(2, ["snapkv:window=8 @ 4"], *self.command("wrong.h5", budgets="20,30,4"))
        self.assertEqual(self.path("wrong.h5").read_bytes(), before)
        self.assertFalse(self.path("wrong.h5.part").exists())


if __name__ == "__main__":
    unittest.main()
