#!/usr/bin/env python3
"""`--shard` runs a part of the prompts or samples, and `kvscope join` makes the trace that one process would have written."""

import json
import resource
import shutil
import signal
import time
import unittest

import h5py
import numpy

from program import CONTEXT_LENGTH, HF_MODEL, NEEDS_ENGINE, SECONDS_UNTIL_HUNG, TEXT, ProgramTest, clock_model

RUNS = ("-m", HF_MODEL, "--policy", "snapkv:window=8", "--policy", "random", "--budget", 24, "-n", 4, "--dtype", "f32", "-t", 1, "-q")
TASK = ("--task", "niah", "--lengths", "100,200", "--depths", "0.2,0.8", "--samples", 2, "-m", HF_MODEL, "--policy",
        "snapkv:window=8", "--policy", "h2o", "--budget", "24", "--dtype", "f32", "-t", 1, "-q")
QUESTIONS = ("--question", "Who jumps?", "--question", "And then?", "--query-aware", "off", "--policy", "oracle")
SLURM = "SLURM_ARRAY_TASK_"


def is_time(name):
    return name in ("created_utc", "seconds") or name.endswith("_s") or name in ("peak_bytes", "decode_tokens_per_s")


def contents(path):
    """Returns every name, attribute and value of a trace except times, and which data sets are one object."""
    found, links = {}, {}
    with h5py.File(path, "r") as trace:
        def add(name, item):
            found[name] = {k: str(v) for k, v in item.attrs.items() if not is_time(k)}
            if isinstance(item, h5py.Group):
                for key in item:
                    add(f"{name}/{key}", item[key])
                return
            columns = [column for column in item.dtype.names or () if not is_time(column)]
            found[f"{name} type"] = str(item.dtype)
            found[f"{name} values"] = repr((item[:][columns] if columns else item[:]).tolist())
            found[f"{name} is"] = links.setdefault(h5py.h5o.get_info(item.id).addr, name)
        add("", trace)
    return found


@NEEDS_ENGINE
class Shards(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.folder.joinpath("texts").mkdir()
        for i in range(5):
            cls.folder.joinpath("texts", f"{i}.txt").write_text(TEXT[7 * i:])
        cls.made("run", "texts", *RUNS, "-o", "one.h5")
        for i in (1, 2, 3):
            cls.made("run", "texts", *RUNS, "-o", "t.h5", "--shard", f"{i}/3")

    def shards(self, name="t", n=3):
        return [f"{name}.shard-{i}-of-{n}.h5" for i in range(1, n + 1)]

    def recipe(self, name):
        with h5py.File(self.path(name)) as trace:
            return json.loads(trace.attrs["recipe_json"])

    def check_equal(self, joined, whole):
        self.maxDiff = 2000
        there, wanted = contents(self.path(joined)), contents(self.path(whole))
        self.assertEqual(sorted(there), sorted(wanted))
        for name, value in wanted.items():
            self.assertEqual(there[name], value, name)

    def run_shards(self, name, n, *command):
        for i in range(1, n + 1):
            self.made(*command, "-o", f"{name}.h5", "--shard", f"{i}/{n}")

    def test_the_joined_trace_is_that_of_one_process(self):
        said = self.made("join", *reversed(self.shards()), "-o", "joined.h5").stderr
        self.assertIn("joined.h5 written: 5 prompts from 3 shards", said)
        self.assertNotIn("different devices", said)
        self.check_equal("joined.h5", "one.h5")
        self.assertIn("no errors", self.made("inspect", "joined.h5").stdout)
        self.assertEqual(self.made("inspect", "joined.h5", "--format", "csv").stdout.count("\n"),
                         self.made("inspect", "one.h5", "--format", "csv").stdout.count("\n"))
        for name in ("joined", "one"):
            self.made("export", f"{name}.h5", "--figure", "results-table", "-o", f"{name}.csv")
        drop = lambda name: [line for line in self.path(name).read_text().splitlines() if "created" not in line]
        self.assertEqual(len(drop("joined.csv")), len(drop("one.csv")))

    def test_a_shard_is_a_trace(self):
        shard = self.shards()[1]
        said = self.made("inspect", shard).stdout
        self.assertIn("no errors", said)
        self.assertIn("shard 2 of 3", said)
        with h5py.File(self.path(shard)) as trace:
            self.assertEqual([prompt.attrs["name"] for prompt in trace["prompts"].values()], ["1", "4"])
        self.assertEqual(self.recipe(shard)["job"]["numbers"], [1, 4])

    def test_a_finished_shard_stays_unchanged(self):
        shard = self.path(self.shards()[0])
        before = shard.read_bytes()
        done = self.made("run", "texts", *RUNS[:-1], "-o", "t.h5", "--shard", "1/3")
        self.assertIn("t.shard-1-of-3.h5 already contains all requested runs", done.stderr)
        self.assertEqual(shard.read_bytes(), before)

    def test_the_joined_trace_is_extended(self):
        self.made("join", *self.shards(), "-o", "grown.h5")
        self.assertIn("nothing to do", self.made("run", "texts", *RUNS[:-1], "-o", "grown.h5").stderr)
        shutil.copy(self.path("one.h5"), self.path("grown-one.h5"))
        for name in ("grown.h5", "grown-one.h5"):
            self.made("run", "texts", *RUNS, "--policy", "h2o", "-o", name)
        self.check_equal("grown.h5", "grown-one.h5")

    def test_shards_are_extended(self):
        for name in self.shards():
            shutil.copy(self.path(name), self.path(name.replace("t.", "more.")))
        command = ("run", "texts", *RUNS, "--policy", "h2o")
        self.made(*command, "-o", "more.h5", "--shard", "1/3")
        self.refuses(1, ["shards of different jobs", "runs: only the first has h2o @ 24"], "join", *self.shards("more"))
        for i in (2, 3):
            self.made(*command, "-o", "more.h5", "--shard", f"{i}/3")
        self.made("join", *self.shards("more"))
        shutil.copy(self.path("one.h5"), self.path("more-one.h5"))
        self.made(*command, "-o", "more-one.h5")
        self.check_equal("more.h5", "more-one.h5")

    def test_questions_about_a_context_stay_in_one_shard(self):
        command = ("run", "texts", *RUNS, *QUESTIONS)
        self.made(*command, "-o", "asked-one.h5")
        self.run_shards("asked", 2, *command)
        self.assertEqual(self.recipe("asked.shard-2-of-2.h5")["job"]["numbers"], [2, 3, 6, 7])
        self.made("join", *self.shards("asked", 2))
        self.check_equal("asked.h5", "asked-one.h5")
        self.assertIn("no errors", self.made("inspect", "asked.h5").stdout)

    def test_rows_alone(self):
        command = ("run", "texts", *RUNS, "--record", "rows")
        self.made(*command, "-o", "rows-one.h5")
        self.run_shards("rows", 3, *command)
        self.made("join", *self.shards("rows"))
        self.check_equal("rows.h5", "rows-one.h5")
        self.refuses(1, ["different jobs", "stored: --record rows and --record full"], "join", *self.shards("rows")[:2],
                     self.shards()[2], "-o", "no.h5")
        self.assertFalse(self.path("no.h5").exists())

    def test_a_task(self):
        self.made("eval", *TASK, "-o", "niah-one.h5")
        self.run_shards("niah", 3, "eval", *TASK)
        self.made("join", *self.shards("niah"))
        self.check_equal("niah.h5", "niah-one.h5")
        self.assertIn("already contains these results", self.made("eval", *TASK[:-1], "-o", "niah.h5").stderr)

    def test_a_killed_shard_resumes(self):
        self.path("many").mkdir()
        for i in range(12):
            self.path("many").joinpath(f"{i:02}.txt").write_text(TEXT[i:])
        command = ("run", "many", *RUNS)
        self.made(*command, "-o", "killed.h5", "--shard", "1/2")
        process = self.start(*command, "-o", "killed.h5", "--shard", "2/2")
        parts = self.path("killed.shard-2-of-2.h5.part")
        while process.poll() is None and not (parts / "run-2-1.h5").exists():
            time.sleep(0.002)
        process.kill()
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.refuses(1, ["shard 2 of 2 is missing", "killed.shard-2-of-2.h5.part is unfinished"], "join",
                     "killed.shard-1-of-2.h5")
        self.refuses(1, ["unfinished shard"], "join", *self.shards("killed", 2))
        self.assertIn("resuming killed.shard-2-of-2.h5",
                      self.made(*command[:-1], "-o", "killed.h5", "--shard", "2/2").stderr)
        self.made("join", *self.shards("killed", 2))
        self.made(*command, "-o", "never-killed.h5")
        self.check_equal("killed.h5", "never-killed.h5")

    def test_missing_repeated_and_foreign_shards(self):
        one, two, three = self.shards()
        self.refuses(1, ["shard 3 of 3 is missing: name t.shard-3-of-3.h5, too"], "join", one, two, "-o", "no.h5")
        shutil.copy(self.path(one), self.path("lonely.shard-1-of-3.h5"))
        self.refuses(1, ["shard 2 of 3 is missing: lonely.shard-2-of-3.h5 does not exist; run the command with --shard 2/3",
                         "shard 3 of 3 is missing"], "join", "lonely.shard-1-of-3.h5")
        self.refuses(1, [f"{one} and {one} are both shard 1 of 3"], "join", one, one, two, three, "-o", "no.h5")
        self.made("run", "texts", *RUNS, "--seed", 4, "-o", "four.h5", "--shard", "1/3")
        self.refuses(1, [f"{one} and four.shard-1-of-3.h5 are shards of different jobs", "seed: 0 and 4"], "join", one,
                     "four.shard-1-of-3.h5", two, three, "-o", "no.h5")
        self.made("run", "texts", *RUNS, "--seed", 5, "-o", "seed.h5", "--shard", "3/3")
        self.refuses(1, [f"{one} and seed.shard-3-of-3.h5 are shards of different jobs", "seed: 0 and 5"], "join", one, two,
                     "seed.shard-3-of-3.h5", "-o", "no.h5")
        self.made("run", "texts", *RUNS, "-o", "half.h5", "--shard", "2/2")
        self.refuses(1, ["number of shards: 3 and 2"], "join", one, "half.shard-2-of-2.h5", "-o", "no.h5")
        self.path("fewer").mkdir()
        for i in range(3):
            shutil.copy(self.path("texts") / f"{i}.txt", self.path("fewer"))
        self.made("run", "fewer", *RUNS, "-o", "fewer.h5", "--shard", "3/3")
        self.refuses(1, ["number of prompts: 5 and 3"], "join", one, two, "fewer.shard-3-of-3.h5", "-o", "no.h5")
        for i in (2, 3, 4):
            self.path("fewer").joinpath(f"{i}.txt").write_text(TEXT.upper())
        self.made("run", "fewer", *RUNS, "-o", "other.h5", "--shard", "3/3")
        self.refuses(1, ["different jobs", "prompts: texts"], "join", one, two, "other.shard-3-of-3.h5", "-o", "no.h5")
        self.refuses(1, ["one.h5: expected a trace that a command with --shard wrote"], "join", "one.h5", "-o", "no.h5")
        self.refuses(1, ["nowhere.h5 does not exist"], "join", "nowhere.h5", "-o", "no.h5")
        self.refuses(1, ["nowhere.h5 does not exist"], "join", "nowhere.h5")
        for output in ((), ("-o", "no.h5")):
            self.refuses(1, ["nowhere.shard-*-of-4.h5: no file matches this pattern"], "join", "nowhere.shard-*-of-4.h5", *output)
        self.refuses(2, ["choose the output with -o"], "join", "one.h5")
        self.assertEqual(list(self.folder.glob("no.h5*")), [])

    def test_outputs(self):
        self.refuses(1, ["is a shard: choose another output"], "join", *self.shards(), "-o", self.shards()[0], "--force")
        shutil.copy(self.path("one.h5"), self.path("there.h5"))
        self.assertIn("there.h5 already contains", self.made("join", *self.shards(), "-o", "there.h5").stderr)
        self.made("run", "texts/0.txt", *RUNS, "-o", "different.h5")
        before = self.path("different.h5").read_bytes()
        self.refuses(1, ["different.h5 exists and is a different file", "--force"], "join", *self.shards(), "-o", "different.h5")
        self.assertEqual(self.path("different.h5").read_bytes(), before)
        self.made("join", *self.shards(), "-o", "different.h5", "--force")
        self.check_equal("different.h5", "one.h5")
        self.path("notes.txt").write_text("notes")
        self.refuses(1, ["notes.txt"], "join", *self.shards(), "-o", "notes.txt", "--force")
        self.refuses(1, ["there is no folder"], "join", *self.shards(), "-o", "no/such/t.h5")
        for name in ("there", "different", "notes"):
            self.assertEqual(list(self.folder.glob(f"{name}*.part")), [])

    def test_an_unfinished_trace_at_the_output(self):
        process = self.start("run", "texts", *RUNS, "-o", "begun.h5")
        parts = self.path("begun.h5.part")
        while process.poll() is None and not (parts / "run-1-0.h5").exists():
            time.sleep(0.002)
        process.kill()
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.refuses(1, ["begun.h5.part contains an unfinished trace"], "join", *self.shards(), "-o", "begun.h5")
        self.assertTrue((parts / "run-1-0.h5").exists())
        self.made("join", *self.shards(), "-o", "begun.h5", "--force")
        self.check_equal("begun.h5", "one.h5")
        self.assertFalse(parts.exists())

    def test_a_full_disk(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        self.refuses(1, ["cannot write full.h5.part/joined.h5.tmp", "free disk space"], "join", *self.shards(), "-o", "full.h5",
                     preexec_fn=small_files)
        self.assertEqual(list(self.folder.glob("full.h5*")), [])

    def test_a_damaged_shard(self):
        for name in self.shards():
            shutil.copy(self.path(name), self.path(name.replace("t.", "damaged.")))
        path = self.path("damaged.shard-2-of-3.h5")
        with h5py.File(path) as trace:
            data_set = trace["prompts/1/full/window_attention"]
            at = data_set.id.get_chunk_info(0).byte_offset + 20
        bytes_of_file = bytearray(path.read_bytes())
        bytes_of_file[at:at + 40] = bytes(40)
        path.write_bytes(bytes_of_file)
        self.refuses(1, ["damaged.shard-2-of-3.h5", "window_attention"], "join", *self.shards("damaged"))
        self.assertEqual(list(self.folder.glob("damaged.h5*")), [])

    def test_a_stopped_join(self):
        for name in self.shards():
            shutil.copy(self.path(name), self.path(name.replace("t.", "stopped.")))
        with h5py.File(self.path("stopped.shard-3-of-3.h5"), "r+") as trace:  # thousands of places to stop at
            prompt = next(iter(trace["prompts"].values()))
            for i in range(5000):
                prompt.create_dataset(f"more/{i}", data=numpy.arange(10))
        process = self.start("join", *self.shards("stopped"))
        part = self.path("stopped.h5.part")
        while process.poll() is None and not part.exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        self.assertIn("stopped; nothing was written", said)
        self.assertFalse(self.path("stopped.h5").exists())
        self.assertFalse(part.exists())
        self.made("join", *self.shards(), "-o", "stopped.h5")
        self.check_equal("stopped.h5", "one.h5")

    def test_shards_of_different_processors_are_named(self):
        for name in self.shards():
            shutil.copy(self.path(name), self.path(name.replace("t.", "mixed.")))
        with h5py.File(self.path("mixed.shard-2-of-3.h5"), "r+") as trace:
            recipe = json.loads(trace.attrs["recipe_json"])
            recipe["instructions"] = "elsewhere"
            trace.attrs["recipe_json"] = json.dumps(recipe)
            rows = trace["results/prompts"][:]
            rows["instructions"] = b"elsewhere"
            kind = trace["results/prompts"].dtype
            del trace["results/prompts"]
            trace.create_dataset("results/prompts", data=rows, dtype=kind)
        said = self.made("join", *self.shards("mixed")).stderr
        self.assertIn("different devices or versions", said)
        self.assertRegex(said, r"cpu with elsewhere.*: shard 2\n")
        self.assertRegex(said, r"cpu with .*: shard 1, 3\n")
        self.assertEqual(self.recipe("mixed.h5"), self.recipe("one.h5"))

    def test_more_shards_than_prompts(self):
        command = ("run", "-f", "texts/0.txt", "-f", "texts/1.txt", *RUNS)
        self.run_shards("two", 4, *command)
        said = self.made(*command, "-o", "two.h5", "--shard", "3/4").stderr
        self.assertIn("shard 3 of 4 has no prompts, because the job has only 2", said)
        self.assertEqual(sorted(path.name for path in self.folder.glob("two*")), self.shards("two", 4)[:2])
        self.made("join", *self.shards("two", 4)[:2])
        self.made(*command, "-o", "two-one.h5")
        self.check_equal("two.h5", "two-one.h5")
        said = self.refuses(1, ["shard 2 of 4 is missing"], "join", "two.shard-1-of-4.h5", "-o", "no.h5")
        self.assertNotIn("shard 3", said)
        self.assertIn("has no prompts", self.made("eval", *TASK, "-o", "few.h5", "--shard", "9/9").stderr)

    def test_an_empty_shard_names_what_is_left_out(self):
        self.path("long.txt").write_text(TEXT * CONTEXT_LENGTH)
        self.refuses(1, ["long.txt", "This prompt is left out", "shard 2 of 2 has no prompts, because the job has only 1"],
                     "run", "-f", "texts/0.txt", "-f", "long.txt", *RUNS, "-o", "left.h5", "--shard", "2/2")
        line = json.dumps({"context": TEXT, "question": "Who jumps?", "answers": ["fox"]})
        self.path("mine.jsonl").write_text(f"{line}\n{{\n")
        self.refuses(1, ["mine.jsonl:2: expected an object", "This sample is left out", "shard 3 of 3 has no prompts"], "eval",
                     "--task", "jsonl", "--file", "mine.jsonl", *TASK[8:], "-o", "left.h5", "--shard", "3/3")
        self.assertEqual(list(self.folder.glob("left*")), [])

    def test_a_template_with_the_time(self):
        """Shards that begin later render the template with the time of the first shard."""
        model = clock_model(self.path("clock"))
        command = ("run", "texts", *RUNS[2:], "-m", model)
        self.made(*command, "-o", "clock.h5", "--shard", "2/2")
        time.sleep(1.1)
        self.made(*command, "-o", "clock.h5", "--shard", "1/2")
        self.made("join", *self.shards("clock", 2))
        with h5py.File(self.path("clock.h5")) as trace:
            self.assertEqual(len({prompt.attrs["text"][:24] for prompt in trace["prompts"].values()}), 1)
        self.assertIn("nothing to do", self.made(*command[:-3], "-m", model, "-o", "clock.h5").stderr)

    def test_slurm(self):
        def task(number, count=3, first=1, last=None):
            return {SLURM + "ID": str(number), SLURM + "COUNT": str(count), SLURM + "MIN": str(first),
                    SLURM + "MAX": str(first + count - 1 if last is None else last)}
        command = ("run", "texts", *RUNS, "-o", "slurm.h5", "--shard", "auto")
        for number in (10, 11, 12):
            self.made(*command, variables=task(number, first=10))
        self.made("join", *self.shards("slurm"))
        self.check_equal("slurm.h5", "one.h5")
        self.made("run", "texts/0.txt", *RUNS, "-o", "plain.h5", variables=task(2))  # only if asked
        self.assertTrue(self.path("plain.h5").exists())
        self.refuses(2, ["SLURM_ARRAY_TASK_ID is not set", "--shard 2/4"], *command)
        self.refuses(2, ["3 tasks from 0 to 4", "--array=1-3"], *command, variables=task(2, first=0, last=4))
        self.refuses(2, ['expected a number in SLURM_ARRAY_TASK_ID, found "x"'], *command, variables=task("x"))
        self.refuses(2, ["SLURM_ARRAY_TASK_ID is 7"], *command, variables=task(7))

    def test_wrong_shards(self):
        for shard, message in (("0/3", "a shard from 1 to 3, found 0"), ("4/3", "a shard from 1 to 3, found 4"),
                               ("1/0", "1 to 100000 shards, found 0"), ("x", "as 2/4, or auto"), ("1", "as 2/4, or auto"),
                               ("-1/3", "as 2/4"), ("1/3/5", "as 2/4"), ("1.5/3", "as 2/4"), ("/", "as 2/4")):
            with self.subTest(shard):
                for command in (("run", "texts", *RUNS), ("eval", *TASK)):
                    self.refuses(2, [f"--shard {shard}", message], *command, "-o", "wrong.h5", f"--shard={shard}")
        self.assertEqual(list(self.folder.glob("wrong*")), [])


if __name__ == "__main__":
    unittest.main()
