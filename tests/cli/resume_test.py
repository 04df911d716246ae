#!/usr/bin/env python3
"""Finished results stay on disk: kills, Ctrl-C, a full disk, and existing outputs."""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import h5py

from program import (DEFAULT_MODEL, HF_MODEL, NEEDS_ENGINE, PROGRAM, SECONDS_UNTIL_HUNG, SOURCE, TEXT, ProgramTest,
                     environment)

CLASSIFIER = SOURCE / "tests" / "data" / "classifiers" / "bert"
CONTROL_TOKEN = "<|im_end|>"  # in all small models
SMALL_FILE = 8 * 1024  # bytes; less than a prompt's part


def snapshot(path):
    """Returns every name and value of a trace except times."""
    def is_time(name):
        return name.endswith("_s") or name == "peak_bytes"
    found = {}
    with h5py.File(path, "r") as trace:
        def visit(name, item):
            found[name] = {k: str(v) for k, v in item.attrs.items() if not is_time(k)}
            if isinstance(item, h5py.Dataset):
                columns = [column for column in item.dtype.names or () if not is_time(column)]
                found[f"{name} values"] = (item[:][columns] if columns else item[:]).tolist()
        trace.visititems(visit)
    return repr(found)


def clock_model(path):
    """Returns a copy of the small model whose chat template contains the time."""
    shutil.copytree(HF_MODEL, path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    config["chat_template"] = ("Now {{ strftime_now('%Y-%m-%d %H:%M:%S') }}. "
                               "{% for m in messages %}{{ m['content'] }}{% endfor %}")
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def limit_files():
    """For the child process: writing beyond the limit fails as on a full disk instead of killing the process."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_FILE, SMALL_FILE))


@NEEDS_ENGINE
class Interrupted(ProgramTest):
    @staticmethod
    def command(n_budgets, output, model=HF_MODEL):
        return ["run", "-m", model, "-p", TEXT, "--policy", "streaming-llm", "--policy", "h2o", "--policy",
                "snapkv:window=8", "--budget", f"20-{19 + n_budgets}+1", "--isolated", "-n", 24, "--dtype", "f32",
                "-t", 1, "-o", output]

    def interrupt(self, kind, name, model=HF_MODEL):
        """Signals a partly finished run. Returns its arguments and output."""
        for n_budgets in (20, 60, 150):
            arguments = self.command(n_budgets, f"{name}{n_budgets}.h5", model)
            output = self.path(f"{name}{n_budgets}.h5")
            part = pathlib.Path(f"{output}.part")
            process = self.start(*arguments)
            deadline = time.monotonic() + SECONDS_UNTIL_HUNG
            while process.poll() is None and not (part / "run-0-2.h5").exists():
                if time.monotonic() > deadline:
                    process.kill()
                    self.fail("no run was finished")
                time.sleep(0.001)
            process.send_signal(kind)
            _, said = process.communicate(timeout=SECONDS_UNTIL_HUNG)
            if not output.exists():
                return arguments, output, process.returncode, said
        self.fail("the program always ended before the signal")

    def resumes(self, arguments, output):
        """The same command continues from the unchanged parts and gives the result of an undisturbed run."""
        part = pathlib.Path(f"{output}.part")
        finished = sorted(p.name for p in part.glob("run-0-*.h5"))
        n_runs = 1 + 3 * int(output.stem.lstrip("abcdefghijklmnopqrstuvwxyz"))
        self.assertGreaterEqual(len(finished), 2)
        self.assertLess(len(finished), n_runs)
        incomplete = self.made("inspect", part).stdout
        self.assertIn("incomplete", incomplete)
        figure = self.path(f"{output.stem}.csv")
        self.made("export", part, "--figure", "coverage", "-o", figure)
        self.assertGreaterEqual(len(figure.read_text().splitlines()), len(finished) - 1)
        with h5py.File(part / "run-0-1.h5", "r") as kept:
            before = dict(kept["prompts/0/runs/1"].attrs)["prefill_s"]

        done = self.made(*arguments)
        self.assertIn("resuming", done.stderr)
        self.assertFalse(part.exists())
        self.assertIn("no errors", self.made("inspect", output).stdout)
        with h5py.File(output, "r") as trace:
            self.assertEqual(len(trace["prompts/0/runs"]), n_runs)
            self.assertEqual(trace["prompts/0/runs/1"].attrs["prefill_s"], before, "computed again instead of kept")

        undisturbed = self.path("undisturbed.h5")
        self.made(*arguments[:-1], undisturbed)
        self.assertEqual(snapshot(output), snapshot(undisturbed))
        undisturbed.unlink()

    def test_kill(self):
        arguments, output, code, _ = self.interrupt(signal.SIGKILL, "killed")
        self.assertEqual(code, -signal.SIGKILL)
        self.resumes(arguments, output)

    def test_ctrl_c(self):
        arguments, output, code, said = self.interrupt(signal.SIGINT, "stopped")
        self.assertEqual(code, -signal.SIGINT, said)  # a shell reports 130
        self.assertIn(f"{output.name}.part", said)
        self.assertIn("same command", said)
        self.resumes(arguments, output)

    def test_a_template_that_writes_the_time(self):
        """A trace can be resumed, and found complete, at another time than it was begun."""
        model = clock_model(self.path("clock"))
        commands = {}
        run, output, _, _ = self.interrupt(signal.SIGKILL, "clock", model)
        commands["run"] = (run, output)
        needles = self.path("needles.h5")
        commands["eval"] = (["eval", "-m", model, "--lengths", 100, "--depths", 0.5, "--samples", 1, "-n", 2, "--policy",
                             "h2o", "--budget", 20, "-t", 1, "-o", needles], needles)
        self.run_program(*commands["eval"][0])
        with h5py.File(f"{output}.part/prompt-0.h5", "r") as part:
            begun = part["prompts/0"].attrs["text"]
        self.assertRegex(begun, r"Now \d{4}-")
        time.sleep(1.1)  # so that the time changes by a second
        self.assertIn("resuming", self.made(*run).stderr)
        with h5py.File(output, "r") as trace:
            self.assertEqual(trace["prompts/0"].attrs["text"], begun)
        time.sleep(1.1)
        for name, (command, _) in commands.items():
            with self.subTest(name):
                self.assertIn("already", self.run_program(*command).stderr)

    def stopped_behind(self, part, output, *arguments):
        """Stops a run of the default model when this file is in its .part. Returns its output."""
        process = self.start("run", "-m", DEFAULT_MODEL, *arguments, "-t", 1, "-o", output)
        while process.poll() is None and not pathlib.Path(f"{output}.part/{part}").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        return said

    @unittest.skipUnless(os.path.exists(DEFAULT_MODEL), "the default model is missing")
    def test_the_prompt_alone_was_read(self):
        said = self.stopped_behind("prompt-0.h5", self.path("read.h5"), "-p", TEXT, "--ignore-eos", "-n", 4000)
        self.assertIn("stopped before a run was finished", said)
        self.assertIn("repeats its prefill", said)

    @unittest.skipUnless(os.path.exists(DEFAULT_MODEL), "the default model is missing")
    def test_nothing_was_finished(self):
        output = self.path("begun.h5")
        said = self.stopped_behind("model.h5", output, "-p", 80 * TEXT, "--policy", "snapkv", "--budget", 64, "-n", 4)
        self.assertIn("stopped without results; the same command starts from the beginning", said)
        self.assertFalse(pathlib.Path(f"{output}.part").exists())

    @unittest.skipUnless(os.path.exists(DEFAULT_MODEL), "the default model is missing")
    def test_nothing_was_finished_beside_a_file_of_somebodys_own(self):
        output = self.path("mine.h5")
        process = self.start("run", "-m", DEFAULT_MODEL, "-p", 80 * TEXT, "--policy", "snapkv", "--budget", 64, "-n", 4, "-t",
                             1, "-o", output)
        part = pathlib.Path(f"{output}.part")
        while process.poll() is None and not (part / "model.h5").exists():
            time.sleep(0.001)
        (part / "notes.txt").write_text("mine")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual((part / "notes.txt").read_text(), "mine")

    def test_sigterm(self):
        arguments, output, code, said = self.interrupt(signal.SIGTERM, "ended")
        self.assertEqual(code, -signal.SIGTERM, said)
        self.assertIn("same command", said)
        self.resumes(arguments, output)

    def test_a_shells_loop_ends_with_it(self):
        """Ctrl-C reaches the whole process group. bash continues unless the signal killed the command."""
        loop = 'for i in 1 2 3; do echo "round $i"; "$@"; done'
        words = list(map(str, self.command(400, "loop.h5")))
        process = subprocess.Popen(["bash", "-c", loop, "bash", PROGRAM, *words], cwd=self.folder,
                                   env=environment(self.cache), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        deadline = time.monotonic() + SECONDS_UNTIL_HUNG
        while process.poll() is None and not self.path("loop.h5.part/run-0-0.h5").exists():
            self.assertLess(time.monotonic(), deadline, "no run was finished")
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(said, "round 1\n")
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_ignored_signals_stay_ignored(self):
        """Ignored signals, as under nohup or in the background of a script."""
        process = self.start(*self.command(20, "ignoring.h5"),
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        while process.poll() is None and not self.path("ignoring.h5.part/model.h5").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(process.returncode, 0)


@NEEDS_ENGINE
class Stopped(ProgramTest):
    """The other commands that run models die of the signal and leave no file that looks finished."""

    def stops(self, kind, *arguments, begun):
        process = self.start(*arguments)
        for line in process.stderr:
            if begun in line:
                break
        process.send_signal(kind)
        said = process.communicate(timeout=SECONDS_UNTIL_HUNG)[1]
        self.assertEqual(process.returncode, -kind, said)
        return said

    def test_eval(self):
        said = self.stops(signal.SIGINT, "eval", "-m", HF_MODEL, "--policy", "snapkv:window=8", "--budget", 24,
                          "--lengths", 300, "--samples", 200, "-o", "e.h5", begun=": full ")
        self.assertIn("e.h5.part", said)

    @staticmethod
    def catches(kind, status):
        """Whether a process has a handler for the signal, from its /proc/…/status."""
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return int(caught.split()[1], 16) >> (kind - 1) & 1

    def test_eval_while_its_model_is_read(self):
        """Thousands of samples are tokenized before the weights are read."""
        process = self.start("eval", "-m", HF_MODEL, "--policy", "snapkv:window=8", "--budget", 24, "--lengths", 300,
                             "--samples", 10_000, "-o", "early.h5")
        status = pathlib.Path(f"/proc/{process.pid}/status")
        while process.poll() is None and not self.catches(signal.SIGINT, status.read_text()):
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=SECONDS_UNTIL_HUNG)[1]
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        self.assertIn("stopped without results", said)
        self.assertEqual(list(self.folder.glob("early.h5*")), [])

    def test_profile_heads(self):
        said = self.stops(signal.SIGTERM, "profile-heads", HF_MODEL, "--lengths", 300, "--samples", 200, "-o", "heads.json",
                          begun="remaining")
        self.assertIn("starts from the beginning", said)
        self.assertEqual(list(self.folder.glob("*heads.json*")), [])


class ReaderHasEnough(ProgramTest):
    def test_a_broken_pipe_ends_the_program_quietly(self):
        for ignored in (False, True):
            with self.subTest(ignored=ignored):
                reading, writing = os.pipe()
                os.close(reading)
                disposition = signal.SIG_IGN if ignored else signal.SIG_DFL
                done = self.run_program("policies", "--format", "md", stdout=writing, restore_signals=False,
                                        preexec_fn=lambda: signal.signal(signal.SIGPIPE, disposition))
                os.close(writing)
                self.assertEqual(done.returncode, -signal.SIGPIPE)
                self.assertEqual(done.stderr, "")


@NEEDS_ENGINE
class ExistingOutput(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.arguments = ["--policy", "snapkv:window=8", "--budget", "20,30"]
        cls.make_trace("t.h5", *cls.arguments)
        cls.bytes = (cls.folder / "t.h5").read_bytes()

    def setUp(self):
        self.path("t.h5").write_bytes(self.bytes)

    def command(self, *arguments, output="t.h5", prompt=TEXT, n=8):
        return ["run", "-m", HF_MODEL, "-p", prompt, "-n", n, "--dtype", "f32", "-t", 1, *arguments, "-o", output]

    def unchanged(self):
        self.assertEqual(self.path("t.h5").read_bytes(), self.bytes)
        self.assertFalse(self.path("t.h5.part").exists())

    def test_a_finished_trace_is_inspected_and_drawn_by_the_name_of_its_folder(self):
        self.assertIn("complete", self.made("inspect", self.path("t.h5.part")).stdout)
        self.made("export", self.path("t.h5.part"), "--figure", "budgets", "-o", self.path("budgets.csv"))
        self.unchanged()

    def test_the_same_recipe_has_nothing_to_do(self):
        done = self.made(*self.command(*self.arguments))
        self.assertIn("nothing to do", done.stderr)
        self.unchanged()

    def test_other_instructions_round_otherwise(self):
        """They do not resume a trace, because its halves would have different numbers."""
        arguments = self.command("--policy", "snapkv:window=8", "--budget", 20, output="generic.h5")
        self.run_program(*arguments, variables={"KVSCOPE_SIMD": "generic"}).check_returncode()
        again = self.run_program(*arguments, variables={"KVSCOPE_SIMD": "generic"})
        self.assertIn("nothing to do", again.stderr)
        if self.run_program("--version", variables={"KVSCOPE_SIMD": "avx2"}).returncode != 0:
            self.skipTest("this processor has only generic instructions")
        other = self.run_program(*arguments, variables={"KVSCOPE_SIMD": "avx2"})
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertIn('instructions: existing "generic", requested "avx2"', other.stderr)

    def test_failed_runs_are_told_each_time(self):
        arguments = self.command("--policy", "snapkv:window=8", "--policy", "streaming-llm:sinks=40", "--budget", 20, "-q",
                                 output="failed.h5")
        for again in (False, True):
            with self.subTest(again=again):
                said = self.refuses(1, ["streaming-llm:sinks=40 @ 20 failed: ", "1 of 3 runs failed",
                                        "inspect failed.h5 --commands"], *arguments)
                self.assertEqual(said.count(" failed: "), 1)

    def test_runs_that_failed_before_a_kill_are_told_when_the_command_goes_on(self):
        arguments = self.command("--policy", "streaming-llm:sinks=40", "--policy", "h2o", "--budget", "20-39",
                                 "--isolated", "-q", output="goes-on.h5")
        process = self.start(*arguments)
        deadline = time.monotonic() + SECONDS_UNTIL_HUNG
        while process.poll() is None and not self.path("goes-on.h5.part/run-0-22.h5").exists():
            self.assertLess(time.monotonic(), deadline, "no run was finished")
            time.sleep(0.001)
        process.kill()
        process.communicate()
        self.assertFalse(self.path("goes-on.h5").exists(), "the program ended before the signal")
        self.refuses(1, ["streaming-llm:sinks=40 @ 20 failed: ", "20 of 41 runs failed"], *arguments)

    def test_another_recipe_is_refused(self):
        more = ("--policy", "h2o", "--budget", "20,30")
        for named, command in {"prompts/0/text": self.command(*self.arguments, prompt=TEXT + " Or not."),
                               'mode: existing "shared", requested "isolated"': self.command(*self.arguments, "--isolated"),
                               "new_tokens: existing 8, requested 9": self.command(*more, n=9),
                               "seed: existing 0, requested 1": self.command(*more, "--seed", 1)}.items():
            with self.subTest(named):
                self.refuses(1, ["t.h5", "--force", named], *command)
                self.unchanged()

    def test_force_replaces(self):
        self.made(*self.command("--policy", "h2o", "--budget", 25, "--force"))
        with h5py.File(self.path("t.h5"), "r") as trace:
            self.assertEqual([run.attrs["policy"] for run in trace["prompts/0/runs"].values()], ["full", "h2o"])

    def test_a_file_that_is_no_trace_is_kept(self):
        self.path("notes.txt").write_text("mine")
        self.refuses(1, ["notes.txt", "--force"], *self.command(*self.arguments, output="notes.txt"))
        self.assertEqual(self.path("notes.txt").read_text(), "mine")
        self.assertFalse(self.path("notes.txt.part").exists())

    def test_a_folder_in_the_way_is_kept_even_by_force(self):
        part = self.path("x.h5.part")
        part.mkdir(exist_ok=True)
        (part / "diary.txt").write_text("mine")
        for force in ([], ["--force"]):
            self.refuses(1, ["x.h5.part"], *self.command(*self.arguments, *force, output="x.h5"))
            self.assertEqual((part / "diary.txt").read_text(), "mine")

    def test_wrong_usage_leaves_nothing_in_the_way(self):
        for named, command in {"--n-predict": self.command(output="new.h5", n=0),
                               "temperature": self.command("--temp", -1, output="new.h5"),
                               "top-p": self.command("--top-p", 1.5, output="new.h5"),
                               "window": self.command("--policy", "snapkv:window=8", "--budget", 8, output="new.h5")}.items():
            with self.subTest(named):
                said = self.refuses(2, [], *command)
                self.assertIn(named, said.replace("top_p", "top-p"))
                self.assertEqual(list(self.folder.glob("new.h5*")), [])


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
        self.refuses(1, ["file.h5 ", "runs/1/files"], *self.command("file.h5", policies=(headkv,), budgets="40"))
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
        self.assertIn("resuming part.h5, with 71 runs that an earlier command began", said)
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


@NEEDS_ENGINE
class NoRoom(ProgramTest):
    def command(self, output):
        return ["run", "-m", HF_MODEL, "-p", TEXT, "--policy", "h2o", "--budget", 30, "-n", 4, "--dtype", "f32", "-t",
                1, "-o", output]

    def test_a_full_disk(self):
        output = self.path("full.h5")
        done = self.run_program(*self.command(output), preexec_fn=limit_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("full.h5", done.stderr)
        self.assertRegex(done.stderr, "(?i)(file too large|no space|full)")
        self.assertFalse(output.exists())
        self.made(*self.command(output))
        self.assertIn("no errors", self.made("inspect", output).stdout)

    def test_a_full_disk_while_drawing(self):
        self.made(*self.command("drawn.h5"))
        figure = self.path("figure.png")
        arguments = ["export", "drawn.h5", "--figure", "retention", "--dpi", 600, "-o", figure]
        done = self.run_program(*arguments, preexec_fn=limit_files)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("figure.png", done.stderr)
        self.assertEqual([p.name for p in self.folder.glob("figure*")], [])

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w") as full:
            done = self.run_program("policies", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

        for said in (["--version"], ["--help"], ["run", "--help"]):
            with open("/dev/full", "w") as full:
                done = self.run_program(*said, stdout=full)
            self.assertEqual(done.returncode, 1, said)
            self.assertIn("standard output", done.stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_progress_that_nobody_can_read_costs_nothing(self):
        with open("/dev/full", "w") as full:
            done = self.run_program(*self.command("unread.h5"), stderr=full)
            self.assertEqual(done.returncode, 0)
            self.made("inspect", "unread.h5")
            drawn = self.run_program("export", "unread.h5", "--figure", "all", "-o", "unread.csv", stderr=full)
        self.assertEqual(drawn.returncode, 0)
        self.assertTrue(self.path("unread-retention.csv").exists())

    def test_a_terminal_that_goes_away_does_not_end_a_run(self):
        ours, theirs = os.openpty()
        process = subprocess.Popen([PROGRAM, *map(str, self.command("alone.h5"))], cwd=self.folder, env=environment(self.cache),
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        os.close(theirs)
        os.close(ours)
        process.wait(timeout=SECONDS_UNTIL_HUNG)
        self.made("inspect", "alone.h5")  # the trace is complete

    def test_a_limit_of_a_files_size_is_told(self):
        self.made(*self.command("limited.h5"))
        done = self.run_program("export", "limited.h5", "--figure", "all", "--dpi", 600, "-o", "limited.png",
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_FILE, SMALL_FILE)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ulimit -f", done.stderr)
        self.assertEqual([p.name for p in self.folder.glob(".limited*")], [])

    def test_a_long_name_is_a_name(self):
        self.made(*self.command("short.h5"))
        name = "x" * 250 + ".csv"
        self.made("export", "short.h5", "--figure", "retention", "-o", name)
        self.assertTrue(self.path(name).exists())

    def test_timings_replace_other_timings_alone(self):
        self.path("mine.json").write_text("precious")
        for forced in ((), ("--force",)):
            self.refuses(1, ["mine.json"], *self.command("timed.h5"), "--timings", "mine.json", *forced)
            self.assertEqual(self.path("mine.json").read_text(), "precious")
        self.path("link.json").symlink_to("timed.h5")  # a link to a file that does not exist yet
        for name in ("./timed.h5", "timed.h5.part", "link.json"):
            self.refuses(2, ["--timings", name], *self.command("timed.h5"), "--timings", name, "--force")
        self.made(*self.command("timed.h5"), "--timings", "seconds.json")
        self.assertIn("prefill_s", self.path("seconds.json").read_text())
        self.assertIn("nothing to do", self.made(*self.command("timed.h5"), "--timings", "seconds.json").stderr)
        self.made(*self.command("timed.h5"), "--timings", "seconds.json", "--force")

    def test_outputs_that_cannot_be_written(self):
        self.path("folder.h5").mkdir()
        with tempfile.TemporaryDirectory() as gone:
            pass
        for name, output in {"no such folder": f"{gone}/t.h5", "a folder": "folder.h5",
                             "no place for files": "/proc/t.h5"}.items():
            with self.subTest(name):
                self.refuses(1, [output], *self.command(output))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_without_permission(self):
        locked = self.path("locked")
        locked.mkdir()
        locked.chmod(0o500)
        self.addCleanup(locked.chmod, 0o700)
        self.refuses(1, ["locked/t.h5", "ermission"], *self.command("locked/t.h5"))


if __name__ == "__main__":
    unittest.main()
