#!/usr/bin/env python3
"""`kvscope sweep --slurm` on a real Slurm of one node: shards that are killed, preempted or cancelled, and the joined trace."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import one_node_slurm
from program import HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG
from sweep_test import LLAMA, LONG, OPTIONS, SweepTest, words_of

TRACE = f"{LLAMA}-niah-seed-0"


@NEEDS_ENGINE
class Scripts(SweepTest):
    def test_a_printed_script(self):
        self.write_sweep("it's.yaml", model=HF_MODEL, **OPTIONS)
        printed = self.made("sweep", "it's.yaml", "--print-sbatch", "--array-size", 2, "--partition", "low", "--gres", "gpu:1",
                            "--time", "4:00:00", "--sbatch=--account=x", "--sbatch=--nice=5")
        self.assertIn("kvscope sweep it's --join 2", printed.stderr)
        for line in ("--array=1-2", "--requeue", "--partition=low", "--gres=gpu:1", "--time=4:00:00", "--account=x", "--nice=5"):
            self.assertIn(f"\n#SBATCH {line}\n", printed.stdout)
        self.path("script").write_text(printed.stdout)
        environment = {**os.environ, "SLURM_CPUS_ON_NODE": "1", "XDG_CACHE_HOME": str(self.cache)}
        for number in (1, 2):
            subprocess.run(["bash", "script"], cwd=self.folder, env={**environment, "SLURM_ARRAY_TASK_ID": str(number)},
                           check=True, capture_output=True)
        self.states("it's", "--join", 2)
        self.made("eval", "-m", HF_MODEL, *words_of(OPTIONS), "-o", "alone.h5")
        self.check_equal(f"it's/{TRACE}.h5", "alone.h5")

    def test_wrong_use(self):
        self.write_sweep("wrong.yaml", model=HF_MODEL, **OPTIONS)
        self.refuses(1, ["sbatch was not found", "--print-sbatch"], "sweep", "wrong.yaml", "--slurm",
                     variables={"PATH": str(self.folder)})
        self.refuses(2, ["--time", "need --slurm or --print-sbatch"], "sweep", "wrong.yaml", "--time", "1:00")
        self.assertIn("nothing to cancel", self.made("sweep", "wrong.yaml", "--cancel").stderr)
        self.assertEqual(self.states_without_slurm("wrong.yaml"), ["not begun"])
        self.assertIn("The sweep was not submitted to Slurm.", self.made("sweep", "wrong.yaml", "--status").stdout)
        self.states("wrong.yaml")
        self.assertEqual(self.states_without_slurm("wrong.yaml"), ["finished"])

    def states_without_slurm(self, sweep):
        rows = json.loads(self.made("sweep", sweep, "--status", "--format", "json").stdout)
        return [row["state"] for row in rows]


@NEEDS_ENGINE
class Slurm(SweepTest):
    @classmethod
    def prepare(cls):
        if reason := one_node_slurm.reason_to_skip():
            raise unittest.SkipTest(reason)
        cls.slurm = one_node_slurm.OneNodeSlurm(4)
        cls.addClassCleanup(cls.slurm.stop)

    def sweep(self, *arguments):
        return self.made("sweep", *arguments, variables=self.slurm.variables)

    def status(self, folder):
        rows = json.loads(self.sweep(folder, "--status", "--format", "json").stdout)
        return {row["shard"]: (row["state"], row["reason"]) for row in rows}

    def wait_until(self, what, condition):
        self.slurm.wait_until(what, condition, SECONDS_UNTIL_HUNG)

    def processes(self, *parts):
        """Returns the processes whose command lines contain all parts."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if all(any(part in word for word in words) for part in parts):
                found.append(int(path.parent.name))
        return found

    def freeze_shards(self, folder, numbers):
        """Stops the evaluations of these shards in the middle. Returns their processes."""
        frozen = {}
        end = time.monotonic() + SECONDS_UNTIL_HUNG
        while len(frozen) < len(numbers):
            self.assertLess(time.monotonic(), end)
            for number in numbers:
                part = self.path(folder) / "shards" / f"{TRACE}.shard-{number}-of-4.h5.part"
                if number not in frozen and any(part.glob("results*")):
                    frozen[number], = self.processes(f"--output={self.path(folder)}/", f"--shard={number}/4")
                    os.kill(frozen[number], signal.SIGSTOP)
                    self.assertTrue(part.exists(), "the shard ended before it was stopped")
            time.sleep(0.002)
        return frozen

    def test_a_killed_and_a_preempted_shard(self):
        self.write_sweep("array.yaml", model=HF_MODEL, threads=1, **OPTIONS | LONG)
        command = ("array.yaml", "--slurm", "--array-size", 4, "--partition", "low")
        said = self.sweep(*command).stderr
        self.assertRegex(said, r"job (\d+): 4 of 4 shards submitted\njob (\d+): joins the shards")
        frozen = self.freeze_shards("array", (1, 2))
        self.assertEqual([self.status("array")[f"{number}/4"][0] for number in (1, 2)], ["running", "running"])
        self.assertIn("nothing to submit", self.sweep(*command).stderr)
        # Shard 1 is killed. Its evaluation ends with it.
        parent = int(re.search(r"^PPid:\s*(\d+)$", pathlib.Path(f"/proc/{frozen[1]}/status").read_text(), re.MULTILINE)[1])
        os.kill(parent, signal.SIGKILL)
        os.kill(frozen[1], signal.SIGCONT)
        # Otherwise, Slurm could requeue shard 1, too.
        self.wait_until("shard 1 has failed", lambda: self.status("array")["1/4"][0] == "failed")
        # A job of a higher priority needs all processors, so that Slurm requeues the others.
        self.slurm.run("sbatch", "--partition=high", "--ntasks=4", "--output=/dev/null", "--wrap", "true")
        self.wait_until("shard 2 waits", lambda: self.status("array")["2/4"][0] == "waiting")
        self.assertEqual(self.processes(f"--output={self.path('array')}/", "--shard=2/4"), [])
        self.wait_until("all but shard 1 are finished", lambda: [
            self.status("array")[f"{number}/4"][0] for number in (2, 3, 4)] == 3 * ["finished"])
        self.assertRegex(self.path("array/logs/slurm-2.log").read_text(), "(?s)stopped.*resuming")
        self.wait_until("the first join has ended", lambda: not self.slurm.run("squeue", "--noheader").strip())
        self.assertIn("shard 1 of 4 is not finished", self.path("array/logs/slurm-join.log").read_text())
        self.assertEqual(self.status("array")["all"], ("not joined", ""))
        self.assertEqual(self.status("array")["1/4"], ("failed", "Slurm reports FAILED"))
        # The same command submits what failed.
        said = self.sweep(*command).stderr
        self.assertIn(f"{TRACE}.shard-1-of-4 failed: Slurm reports FAILED", said)
        self.assertIn("1 of 4 shards submitted", said)
        self.wait_until("the shards are joined", lambda: self.status("array") == {"all": ("joined", "")})
        self.made("eval", "-m", HF_MODEL, "--threads", 1, *words_of(OPTIONS | LONG), "-o", "alone.h5")
        self.check_equal(f"array/{TRACE}.h5", "alone.h5")
        self.assertIn("all traces are finished", self.sweep(*command).stderr)
        self.refuses(2, ["--array-size 5", "begun with 4 shards"], "sweep", "array", "--slurm", "--array-size", 5,
                     variables=self.slurm.variables)

    def test_cancelled_and_failing_shards(self):
        self.write_sweep("fails.yaml", model="missing.gguf", **OPTIONS | LONG)
        self.sweep("fails.yaml", "--slurm", "--array-size", 2)
        self.wait_until("both shards have failed", lambda: [
            self.status("fails")[f"{number}/2"][0] for number in (1, 2)] == 2 * ["failed"])
        self.assertIn("missing.gguf does not exist", self.status("fails")["1/2"][1])
        self.write_sweep("cancelled.yaml", model=HF_MODEL, **OPTIONS | LONG)
        self.sweep("cancelled.yaml", "--slurm", "--array-size", 2, "--sbatch=--hold")
        self.assertEqual(self.status("cancelled")["1/2"], ("waiting", "JobHeldUser"))
        self.assertIn("cancelled: ", self.sweep("cancelled", "--cancel").stderr)
        self.wait_until("the jobs are cancelled", lambda: self.status("cancelled")["1/2"][0] == "failed")
        self.assertEqual(self.status("cancelled")["2/2"], ("failed", "Slurm reports CANCELLED"))


if __name__ == "__main__":
    unittest.main()
