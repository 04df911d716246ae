#!/usr/bin/env python3
"""`kvscope clean` and `--max-disk`."""

import fcntl
import json
import os
import re
import subprocess
import time
import unittest

from program import HF_MODEL, NEEDS_ENGINE, PROGRAM, TEXT, ProgramTest

RUNS = ("-m", HF_MODEL, "--policy", "snapkv:window=8", "--budget", 24, "-n", 4, "--dtype", "f32", "-t", 1)


def process_that_ended():
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


class Clean(ProgramTest):
    def unfinished(self, name):
        folder = self.path(name)
        folder.mkdir(parents=True)
        folder.joinpath("trace.json").write_text("{}")
        folder.joinpath("lock").touch()
        folder.joinpath("prompt-0.h5").write_bytes(b"x" * 5000)
        return folder

    def found(self, *arguments):
        rows = json.loads(self.made("clean", *arguments, *([] if "--older-than" in arguments else ["--older-than", 0]), "--format",
                                      "json").stdout)
        return {os.path.basename(row["path"]): row for row in rows}

    def test_unfinished_traces_and_temporary_files(self):
        old, new, busy = (self.unfinished(f"t/{name}.h5.part") for name in ("old", "new", "busy"))
        foreign = self.unfinished("t/foreign.h5.part")
        foreign.joinpath("notes.txt").write_text("mine")
        self.path("t/my.part").mkdir()  # made by another program
        killed_join = self.path("t/joined.h5.part")
        killed_join.mkdir()
        for name in ("lock", "joined.h5.tmp"):
            killed_join.joinpath(name).touch()
        left = self.path(f"t/.x.json.{process_that_ended()}-0.tmp")
        important = self.path("important")
        important.mkdir()
        important.joinpath("data.csv").write_text("mine")
        link, folder = (self.path(f"t/.{name}.{process_that_ended()}-1.tmp") for name in ("link", "folder"))
        link.symlink_to(important)
        folder.mkdir()
        folder.joinpath("data.csv").write_text("mine")
        written = self.path(f"t/.x.json.{os.getpid()}-0.tmp")
        for path in (left, written, self.path("t/.x.json.tmp"), self.path("t/trace.h5")):
            path.touch()
        week_ago = time.time() - 7 * 86400
        for path in (*old.iterdir(), old):
            os.utime(path, (week_ago, week_ago))
        with open(busy / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = self.found("t")
            self.assertEqual(set(found), {old.name, new.name, busy.name, foreign.name, left.name, written.name,
                                          killed_join.name})
            self.assertEqual(found[new.name]["kind"], "unfinished trace")
            self.assertEqual(found[new.name]["bytes"], 5002)
            self.assertEqual(found[busy.name]["state"], "kept: in use")
            self.assertEqual(found[written.name]["state"], "kept: in use")
            self.assertIn("notes.txt, which kvscope did not make", found[foreign.name]["state"])
            self.assertEqual(found[left.name]["state"], "removable")
            self.assertAlmostEqual(found[old.name]["days"], 7, delta=0.1)
            self.assertEqual(set(self.found("t", "--older-than", 6)), {old.name})
            self.assertTrue(old.exists())  # without --remove, nothing is removed
            shown = self.made("clean", "t", "--older-than", 0).stdout
            self.assertRegex(shown, r"old\.h5\.part .* 7 days ")
            self.assertRegex(shown, r"new\.h5\.part .* \d+ (s|min) ")
            done = self.made("clean", "t", "--older-than", 6, "--remove")
            self.assertIn("1 removed: 5.0 kB", done.stderr)
            self.assertFalse(old.exists())
            self.assertTrue(new.exists())
            self.made("clean", "t", "--older-than", 0, "--remove")
        for path in (new, left, killed_join):
            self.assertFalse(path.exists(), path)
        for path in (important / "data.csv", link, folder / "data.csv", busy, foreign, written, self.path("t/my.part"),
                      self.path("t/.x.json.tmp"), self.path("t/trace.h5")):
            self.assertTrue(path.exists(), path)
        self.refuses(2, ["nowhere", "expected a folder, found nothing"], "clean", "nowhere")
        self.path("empty").mkdir()
        self.assertIn("nothing to remove is older than 1 day\n", self.made("clean", "empty").stderr)
        self.assertIn("nothing to remove\n", self.made("clean", "empty", "--older-than", 0).stderr)

    def test_the_cache(self):
        cache = self.path("cache/kvscope")
        for name in ("modes/a", "spectra/b.json", "libtorch/c"):
            cache.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            cache.joinpath(name).write_text("12345")
        self.path("no").mkdir()
        done = self.made("clean", "no", "--cache", "--remove", "--older-than", 0, variables={"XDG_CACHE_HOME": str(cache.parent)})
        self.assertIn("2 removed: 10 B", done.stderr)
        self.assertEqual([path.name for path in cache.rglob("*") if path.is_file()], ["c"])


@NEEDS_ENGINE
class DiskLimit(ProgramTest):
    def test_the_size_is_predicted_and_limited(self):
        self.path("texts").mkdir()
        for i in range(6):
            self.path(f"texts/{i}.txt").write_text(TEXT[i:])
        done = self.made("run", "texts", *RUNS, "-o", "whole.h5")
        self.assertRegex(done.stderr, r"predicted size of the trace: \d+ kB")
        self.refuses(2, ["the trace needs about", "--max-disk 50.0 kB", "--record rows (about"], "run", "texts", *RUNS, "-o",
                     "small.h5", "--max-disk", "50kB")
        self.assertFalse(self.path("small.h5.part").exists())
        rows = self.made("run", "texts", *RUNS, "-o", "rows.h5", "--record", "rows", "--max-disk", "100kB")
        self.assertIn("predicted size of the trace: 45.6 kB", rows.stderr)  # 12 rows
        self.refuses(2, ["--max-disk"], "run", "texts", *RUNS, "-o", "x.h5", "--max-disk", "much")
        self.refuses(2, ["--max-disk"], "run", "texts", *RUNS, "-o", "x.h5", "--max-disk", "0")

    def test_a_disk_with_too_little_space(self):
        disk = self.path("disk")
        disk.mkdir()
        mount = ("unshare", "--mount", "--map-root-user", "sh", "-c", 'mount -t tmpfs -o size="$1" none "$0" && shift && "$@"', str(disk))
        if subprocess.run((*mount, "64k", "true"), capture_output=True).returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.write_prompts("space.jsonl", 6)
        command = [PROGRAM, "run", str(self.path("space.jsonl")), *map(str, RUNS)]

        def ran(kilobytes, *before):
            """Returns the exit status, and the kilobytes that the error says the trace needs."""
            done = subprocess.run((*mount, f"{round(kilobytes)}k", *before, *command, "-o", str(disk / "t.h5")),
                                  capture_output=True, text=True)
            said = re.search(r"t\.h5 needs about ([\d.]+) ([kM])B (?:more )?until its parts are joined, but its disk has only "
                             r"[\d.]+ [kM]B free: free some space, .*--record rows", done.stderr)
            self.assertEqual("predicted size" in done.stderr, said is None, done.stderr)
            return done.returncode, said and float(said[1]) * (1000 if said[2] == "M" else 1)

        status, needed = ran(200)
        self.assertEqual(status, 1)
        self.assertEqual(ran(0.7 * needed), (1, needed))  # enough for the parts, but not for the trace beside them
        self.assertEqual(ran(1.2 * needed), (0, None))
        # A trace that is extended needs only the rest of the parts.
        self.write_prompts("space.jsonl", 3)
        self.made(*command[1:], "-o", "three.h5")
        self.write_prompts("space.jsonl", 6)
        copy = ("sh", "-c", 'cp "$0" "$1" && shift && "$@"', str(self.path("three.h5")), str(disk / "t.h5"))
        status, more = ran(self.path("three.h5").stat().st_size / 1024 + 50, *copy)
        self.assertEqual(status, 1)
        self.assertLess(more, 0.9 * needed)
        done = subprocess.run((*mount, "4m", *command, "-o", str(disk / "t.h5")), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_prediction_is_near_the_size(self):
        self.path("near").mkdir()
        for i in range(3):
            self.path(f"near/{i}.txt").write_text(TEXT[i:])
        said = self.made("run", "near", *RUNS, "-o", "near.h5").stderr
        predicted = 1000 * float(re.search(r"predicted size of the trace: ([0-9.]+) kB", said)[1])
        size = self.path("near.h5").stat().st_size
        self.assertTrue(0.7 * size < predicted < 2 * size, f"{predicted} {size}")

    def test_a_job_at_its_limit_keeps_the_finished_prompts(self):
        # In the folder, the rows of each prompt are a file, whose structure needs more bytes than its rows.
        self.write_prompts("limited.jsonl", 40)
        command = ("run", "limited.jsonl", *RUNS, "-o", "limited.h5", "--record", "rows")
        done = self.run_program(*command, "--max-disk", "110kB")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("would exceed --max-disk 110 kB. The finished prompts are kept", done.stderr)
        part = self.path("limited.h5.part")
        self.assertTrue(list(part.glob("results-prompts-*.h5")))
        self.assertLess(sum(file.stat().st_size for file in part.iterdir()), 125e3)
        self.assertIn("resuming", self.made(*command).stderr)
        self.refuses(2, ["--max-disk: expected a size", "2x"], "run", "limited.jsonl", *RUNS, "-o", "y.h5", "--max-disk", "2x")

    def write_prompts(self, name, n):
        self.path(name).write_text("".join(json.dumps({"context": TEXT[i % 9:]}) + "\n" for i in range(n)))


if __name__ == "__main__":
    unittest.main()
