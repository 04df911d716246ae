#!/usr/bin/env python3
"""Finished results stay on disk: kills, Ctrl-C, a full disk, and existing outputs."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time
import unittest

import h5py

from program import (DEFAULT_MODEL, HF_MODEL, NEEDS_ENGINE, PROGRAM, SECONDS_UNTIL_HUNG, TEXT, ProgramTest, clock_model,
                     environment, snapshot)

SMALL_FILE = 8 * 1024  # bytes; less than a prompt's part


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
        for named, command in {"the prompt 'prompt' differs in": self.command(*self.arguments, prompt=TEXT + " Or not."),
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
