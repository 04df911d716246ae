#!/usr/bin/env python3
"""`kvscope sweep` runs a grid that a YAML file describes. Its traces are those of `kvscope run` and `eval`."""

import json
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import h5py

from program import GGUF_MODEL, HF_MODEL, NEEDS_ENGINE, PROGRAM, SECONDS_UNTIL_HUNG, TEXT, ProgramTest, environment
from shard_test import contents

OPTIONS = {"lengths": "100,200", "depths": 0.5, "samples": 2, "policy": ["snapkv:window=8", "random"], "budget": "24,32",
           "dtype": "f32", "n_predict": 4}
LLAMA, GGUF = HF_MODEL.name, GGUF_MODEL.stem
LONG = {"lengths": 200, "samples": 40, "depths": "0.1,0.5,0.9"}  # an evaluation that can be interrupted


def words_of(options):
    """Returns the command line of the options."""
    return [word for name, value in options.items() for one in (value if isinstance(value, list) else [value])
            for word in (f"--{name}", one)]


class SweepTest(ProgramTest):
    def write_sweep(self, name, **options):
        """Writes JSON, which is YAML."""
        self.path(name).write_text(json.dumps(options, default=str, indent=1))

    def check_equal(self, name, other):
        self.maxDiff = 2000
        self.assertEqual(contents(self.path(name)), contents(self.path(other)))

    def states(self, *arguments, code=0):
        done = self.run_program("sweep", *arguments, "--format", "json")
        self.assertEqual(done.returncode, code, done.stderr)
        return {row["trace"]: row for row in json.loads(done.stdout)}

    def attempt(self, folder, part):
        return json.loads(self.path(folder).joinpath("logs", f"{part}.json").read_text())

    def wait_for(self, process, condition):
        """Waits until the condition holds. The process must not end before."""
        end = time.monotonic() + SECONDS_UNTIL_HUNG
        while not condition():
            self.assertIsNone(process.poll(), "the sweep ended too early")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.002)

    def assert_no_process_uses(self, folder):
        end = time.monotonic() + SECONDS_UNTIL_HUNG
        while any(str(folder) in text for text in self.command_lines()):
            self.assertLess(time.monotonic(), end, "a process of a stopped sweep continues")
            time.sleep(0.01)

    @staticmethod
    def command_lines():
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                pass


@NEEDS_ENGINE
class Sweep(SweepTest):
    def test_a_grid(self):
        self.write_sweep("grid.yaml", model=[HF_MODEL, GGUF_MODEL], task="niah", seed="0,3", **OPTIONS)
        states = self.states("grid.yaml")
        names = [f"{model}-niah-seed-{seed}" for model in (LLAMA, GGUF) for seed in (0, 3)]
        self.assertEqual([(name, row["state"], row["runs"]) for name, row in states.items()],
                         [(name, "finished", 5) for name in names])
        self.assertEqual(sorted(path.name for path in self.path("grid").glob("*.h5")), sorted(f"{name}.h5" for name in names))
        self.made("eval", "--task", "niah", "-m", HF_MODEL, "--seed", 3, *words_of(OPTIONS), "-o", "alone.h5")
        self.check_equal(f"grid/{LLAMA}-niah-seed-3.h5", "alone.h5")
        self.made("export", *(f"grid/{name}.h5" for name in names), "--figure", "results-table", "-o", "grid.csv")
        # Finished traces are skipped, and the folder contains its settings.
        times = {path: path.stat().st_mtime_ns for path in self.path("grid").glob("*.h5")}
        self.assertEqual({row["state"] for row in self.states("grid").values()}, {"was finished"})
        self.assertEqual(times, {path: path.stat().st_mtime_ns for path in self.path("grid").glob("*.h5")})

    def test_the_command_line_replaces_the_file(self):
        self.write_sweep("line.yaml", model=HF_MODEL, **OPTIONS)
        self.path("heads.json").write_text(json.dumps({f"{layer}-{head}": [0.5] for layer in range(2) for head in range(4)}))
        self.states("line.yaml", "-o", "files", "--samples", 1, "--policy", "headkv:importance=heads.json,window=8", "--seed", 2)
        self.assertIn(f"policy: headkv:window=8,importance={self.path('heads.json').resolve()}\n",
                      self.path("files/effective.yaml").read_text())
        command = ("line.yaml", "-o", "replaced", "--samples", 1, "--policy", "h2o", "--seed", 2)
        self.assertEqual(list(self.states(*command)), [f"{LLAMA}-niah-seed-2"])
        self.made("eval", "-m", HF_MODEL, "--seed", 2, *words_of(OPTIONS | {"samples": 1, "policy": "h2o"}), "-o", "line.h5")
        self.check_equal(f"replaced/{LLAMA}-niah-seed-2.h5", "line.h5")
        effective = self.path("replaced/effective.yaml").read_text()
        for line in ("policy: h2o", "budget: 24,32", "samples: 1", "seed: 2", "# device: cpu"):
            self.assertIn(f"\n{line}\n", effective)
        # A further policy extends the traces of the folder.
        states = self.states("replaced", "--policy", "h2o", "--policy", "random")
        self.assertEqual([(row["state"], row["runs"]) for row in states.values()], [("finished", 5)])
        self.made("eval", "-m", HF_MODEL, "--seed", 2, *words_of(OPTIONS | {"samples": 1, "policy": ["h2o", "random"]}), "-o",
                  "line.h5")
        self.check_equal(f"replaced/{LLAMA}-niah-seed-2.h5", "line.h5")

    def test_tasks_with_their_own_settings(self):
        self.path("mine.jsonl").write_text(json.dumps({"context": TEXT, "question": "Who?", "answers": ["fox"]}) + "\n")
        self.path("tasks.yaml").write_text(f"""
model: {HF_MODEL}
task:
  - niah:
      lengths: [100, 200]
      samples: 1
  - jsonl: {{file: mine.jsonl}}
seed: [0, 1]
policy: streaming-llm
budget: 20%
depths: 0.5
n-predict: 2
""")
        states = self.states("tasks.yaml")
        self.assertEqual(list(states), [f"{LLAMA}-niah-seed-0", f"{LLAMA}-niah-seed-1", f"{LLAMA}-jsonl"])
        self.assertEqual({row["state"] for row in states.values()}, {"finished"}, states)
        arguments = self.attempt("tasks", f"{LLAMA}-jsonl")["arguments"]
        self.assertIn(f"--file={self.path('mine.jsonl')}", arguments)
        self.assertFalse([word for word in arguments if "depths" in word or "seed" in word])
        # The command line chooses a task, with its settings in the file.
        self.assertEqual(list(self.states("tasks.yaml", "-o", "chosen", "--task", "niah", "--seed", 0)), [f"{LLAMA}-niah-seed-0"])
        self.assertTrue({"--lengths=100", "--lengths=200", "--samples=1"} <= set(
            self.attempt("chosen", f"{LLAMA}-niah-seed-0")["arguments"]))
        # The stored settings describe the same traces.
        self.assertEqual({row["state"] for row in self.states("tasks").values()}, {"was finished"})
        # A changed file is read again.
        self.path("mine.jsonl").write_text(2 * (json.dumps({"context": TEXT, "question": "When?", "answers": ["x"]}) + "\n"))
        self.assertEqual(self.states("tasks", code=1)[f"{LLAMA}-jsonl"]["state"], "failed")  # it is another evaluation

    def test_other_spellings_of_tasks(self):
        self.write_sweep("spelled.yaml", model=HF_MODEL, task=[{"NIAH": {"samples": 1}}, "niah", "Niah"],
                         **OPTIONS | {"samples": 2})
        self.assertEqual(list(self.states("spelled.yaml")), [f"{LLAMA}-niah-seed-0"])
        arguments = self.attempt("spelled", f"{LLAMA}-niah-seed-0")["arguments"]
        self.assertEqual([word for word in arguments if "samples" in word], ["--samples=1"])
        self.assertEqual(list(self.states("spelled", "--task", "NIAH,niah")), [f"{LLAMA}-niah-seed-0"])

    def test_prompts(self):
        self.path("texts").mkdir()
        for i in range(3):
            self.path("texts").joinpath(f"{i}.txt").write_text(TEXT[9 * i:])
        self.path("texts.yaml").write_text(f"model: {HF_MODEL}\nprompts: texts\nquestion: [\"Who?\", \"When?\"]\nrecord: rows\n"
                                           "policy: h2o\nbudget: 24\ndtype: f32\nn-predict: 2\nno-template: true\n")
        predicted = self.states("texts.yaml", "-o", "asked", "--dry-run")[f"{LLAMA}-prompts-seed-0"]
        self.assertEqual(list(self.states("texts.yaml", "-o", "asked")), [f"{LLAMA}-prompts-seed-0"])
        self.made("run", "texts", "-m", HF_MODEL, "--question", "Who?", "--question", "When?", "--record", "rows", "--policy",
                  "h2o", "--budget", 24, "--dtype", "f32", "-n", 2, "--no-template", "-q", "-o", "texts.h5")
        self.check_equal(f"asked/{LLAMA}-prompts-seed-0.h5", "texts.h5")
        with h5py.File(self.path("texts.h5")) as trace:
            lengths = trace["results/prompts"]["length"]
        self.assertEqual((predicted["prompts"], predicted["runs"]), (6, 2))
        self.assertEqual(predicted["tokens"], lengths.sum() // 2)  # each prompt has two rows

    def test_a_sweep_continues_from_another_folder(self):
        self.path("elsewhere").mkdir()
        self.path("moved.txt").write_text(TEXT)
        shutil.copy(GGUF_MODEL, self.path("moved.gguf"))
        self.make_trace("prompts.h5", model=GGUF_MODEL, n=1)
        for prompts in ({"prompts": ["moved.txt"]}, {"prompt-from": "prompts.h5:0"}):
            name = next(iter(prompts))
            with self.subTest(name):
                self.write_sweep(f"{name}.yaml", model="moved.gguf", policy="h2o", budget=24, n_predict=1, **prompts)
                self.states(f"{name}.yaml")
                done = subprocess.run([PROGRAM, "sweep", f"../{name}", "--policy", "h2o", "--policy", "random", "--format", "json"],
                                      cwd=self.path("elsewhere"), env=environment(self.cache), stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, check=False, timeout=SECONDS_UNTIL_HUNG)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([row["state"] for row in json.loads(done.stdout)], ["finished"])

    def test_a_failing_trace_fails_alone(self):
        self.write_sweep("fails.yaml", model=["missing.gguf", HF_MODEL], **OPTIONS)
        states = self.states("fails.yaml", code=1)
        self.assertEqual([row["state"] for row in states.values()], ["failed", "finished"])
        self.assertIn("missing.gguf does not exist", states["missing-niah-seed-0"]["reason"])
        shutil.copy(GGUF_MODEL, self.path("missing.gguf"))
        self.assertEqual([row["state"] for row in self.states("fails").values()], ["finished", "was finished"])

    def test_failed_runs_do_not_block_a_trace(self):
        options = OPTIONS | {"policy": ["streaming-llm:sinks=40", "random"]}  # a budget of 24 or 32 has no place for 40 sinks
        self.write_sweep("refused.yaml", model=HF_MODEL, **options)
        name = f"{LLAMA}-niah-seed-0"
        first = self.states("refused.yaml", "--jobs", 2, code=1)[name]
        self.assertEqual(first["state"], "finished", first)
        for number in (1, 2):
            self.assertIn(f"{name}.shard-{number}-of-2: 4 runs failed; see ", first["reason"])
        self.assertEqual(self.run_program("eval", "-m", HF_MODEL, *words_of(options), "-o", "refused.h5").returncode, 1)
        self.check_equal(f"refused/{name}.h5", "refused.h5")
        again = self.states("refused", "--jobs", 2, code=1)[name]
        self.assertEqual((again["state"], again["reason"]), ("was finished", first["reason"]))

    def test_left_out_samples_do_not_block_a_trace(self):
        lines = [{"context": text, "question": "Who?", "answers": ["fox"]} for text in (TEXT, 20 * TEXT, TEXT[9:], TEXT[18:])]
        self.path("long.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.write_sweep("long.yaml", model=HF_MODEL, task="jsonl", file="long.jsonl", policy="h2o", budget=24, n_predict=2)
        name = f"{LLAMA}-jsonl"
        self.assertEqual([row["state"] for row in self.states("long.yaml", "--shard", "1/2", code=1).values()],
                         ["shard 1 of 2 finished"])
        row = self.states("long", "--jobs", 2, code=1)[name]
        self.assertEqual(row["state"], "finished", row)
        self.assertIn("1 prompt is left out; see ", row["reason"])
        with h5py.File(self.path(f"long/{name}.h5")) as trace:
            self.assertEqual(len(set(trace["results/jsonl"]["sample_id"])), 3)
        # One process: the complete trace is not repeated.
        row = self.states("long.yaml", "-o", "undivided", code=1)[name]
        self.assertEqual(row["state"], "finished", row)
        self.assertEqual(self.states("undivided", code=1)[name]["state"], "was finished")
        # A trace that cannot be extended has failed, although the earlier trace is there.
        self.path("undivided/logs").joinpath(f"{name}.json").unlink()
        self.path("long.jsonl").write_text(json.dumps(lines[3]) + "\n")
        row = self.states("undivided", code=1)[name]
        self.assertEqual(row["state"], "failed", row)
        self.assertNotIn("\n", row["reason"])
        self.assertNotRegex(row["reason"], "(written|:)$")

    def test_models_of_the_same_name(self):
        for name in ("a", "b"):
            self.path(name).mkdir()
            shutil.copy(GGUF_MODEL, self.path(name) / "model.gguf")
        self.write_sweep("names.yaml", model=["a/model.gguf", "b/model.gguf"], **OPTIONS)
        names = list(self.states("names.yaml", "--samples", 1))
        self.assertEqual(len(set(names)), 2)
        self.assertTrue(all(name.startswith("model-") for name in names), names)

    def test_a_dry_run(self):
        self.write_sweep("dry.yaml", model=[HF_MODEL, "none.gguf"], seed=[0, 1], **OPTIONS)
        states = self.states("dry.yaml", "--dry-run", code=1)
        self.assertFalse(self.path("dry").exists())
        first = states[f"{LLAMA}-niah-seed-0"]
        self.assertEqual((first["state"], first["prompts"], first["runs"]), ("to run", 4, 5))
        self.assertGreater(first["seconds"], 0)
        self.assertGreater(first["memory_bytes"], 2 << 20)
        self.assertEqual(states["none-niah-seed-1"]["state"], "failed")
        self.assertIn("none.gguf", states["none-niah-seed-1"]["reason"])
        self.states("dry.yaml", "--model", HF_MODEL)
        self.assertEqual({row["state"] for row in self.states("dry", "--dry-run").values()}, {"was finished"})
        text = self.made("sweep", "dry.yaml", "--model", HF_MODEL, "--seed", 5, "--dry-run").stdout
        self.assertIn("1 trace to run: 20 runs", " ".join(text.split()))

    def test_the_name_has_the_default_seed_of_the_task(self):
        self.write_sweep("seeds.yaml", model="none.gguf", task="niah,ruler,helmet", policy="h2o", budget=24)
        self.assertEqual(list(self.states("seeds.yaml", "--dry-run", code=1)),
                         ["none-niah-seed-0", "none-ruler-seed-42", "none-helmet-seed-42"])

    def test_wrong_files(self):
        for text, message in (
                ("polcy: snapkv", "bad.yaml:1: unknown key 'polcy'. Did you mean policy"),
                ("policy: h2o\nbudget: 24\nsample: 2", "bad.yaml:3: unknown key 'sample'. Did you mean samples"),
                ("policy: snapvk\nbudget: 24", "bad.yaml:1: "), ("policy: h2o\nbudget: many", "bad.yaml:2: "),
                ("policy: h2o", "h2o needs a budget"),
                ("policy: h2o\nbudget: 24\nsamples: few", "bad.yaml:3: --samples: expected a whole number"),
                ("policy: h2o\nbudget: 24\n\nsamples: [1, 2]", "bad.yaml:4: samples takes one value, found 2"),
                ("policy: h2o\nbudget: 24\nsamples:", "bad.yaml:3: expected a value of samples, found nothing"),
                ("policy: h2o\nbudget: 24\nsamples: {a: 1}", "bad.yaml:3: expected a value of samples, found keys"),
                ("policy: h2o\nbudget: 24\npolicy: h2o", "bad.yaml:3: policy is set twice"),
                ("policy: h2o\nbudget: 24\ntask: nieh", "bad.yaml:3: "),
                ("policy: h2o\nbudget: 24\ntask: niah\nfile: x.jsonl", "bad.yaml:4: --file is an option of the task"),
                ("policy: h2o\nbudget: 24\ntask: [{niah: {policy: h2o}}]", "bad.yaml:3: policy applies to all tasks"),
                ("policy: h2o\nbudget: 24\ntask:\n- niah: {samples: 1}\n- NIAH: {samples: 2}", "bad.yaml:5: the task niah has "),
                ("policy: h2o\nbudget: 24\ntask: niah\nprompts: x", "either tasks or prompts"),
                ("policy: h2o\nbudget: 24\nquestion: Who?", "bad.yaml:3: unknown option --question"),
                ("policy: h2o\nbudget: 24\noutput: x.h5", "bad.yaml:3: output cannot be set in a file"),
                ("policy: h2o\nbudget: 24\nseed: -1", "bad.yaml:3: "), ("query-aware: maybe", "bad.yaml:1: "),
                ("prompts: x\nno-template: perhaps", "bad.yaml:2: expected no-template: true or false, found 'perhaps'"),
                ("policy: h2o\n---\nbudget: 24", "bad.yaml:3: expected one document, found another after `---`"),
                ("policy: h2o\nbudget: 24\n---\n", "bad.yaml:4: expected one document"),
                ("policy: [h2o", "a list that begins with [ has no ]"),
                ("policy: \"h2o", "a text in quotes has no closing quote"), ("policy: h2o}\n- x", "bad.yaml:"),
                ("- h2o", "bad.yaml:1: expected lines such as"), ("", "expected lines such as"),
                ("a: &a [*a]", "bad.yaml:1: unknown key 'a'"), ("[" * 5000, "bad.yaml"), ("\0", "bad.yaml")):
            with self.subTest(text[:60]):
                self.path("bad.yaml").write_text(text)
                self.refuses(2, [message], "sweep", "bad.yaml")
                self.assertFalse(self.path("bad").exists())
        self.refuses(1, ["none.yaml does not exist"], "sweep", "none.yaml")
        self.path("good.yaml").write_text("policy: h2o\nbudget: 24\n")
        self.refuses(2, ["--samples takes one value", "'1'", "'2'"], "sweep", "good.yaml", "--samples", 1, "--samples", 2)
        self.refuses(2, ["good.yaml is a file"], "sweep", "good.yaml", "-o", "good.yaml")

    def test_a_killed_sweep_continues(self):
        self.write_sweep("killed.yaml", model=HF_MODEL, seed="0,1", **OPTIONS | LONG)
        process = self.start("sweep", "killed.yaml", "-q")
        self.wait_for(process, lambda: any(self.path("killed").glob(f"{LLAMA}-niah-seed-0.h5.part/results*")))
        process.kill()
        process.communicate(timeout=SECONDS_UNTIL_HUNG)
        self.assert_no_process_uses("killed/")
        self.assertFalse(self.path(f"killed/{LLAMA}-niah-seed-0.h5").exists())
        said = self.made("sweep", "killed.yaml").stderr
        self.assertIn(f"{LLAMA}-niah-seed-0: resuming", said)
        self.made("eval", "-m", HF_MODEL, *words_of(OPTIONS | LONG), "--seed", 0, "-o", "never-killed.h5")
        self.check_equal(f"killed/{LLAMA}-niah-seed-0.h5", "never-killed.h5")

    def test_a_stopped_sweep_continues(self):
        self.write_sweep("stopped.yaml", model=HF_MODEL, **OPTIONS | LONG)
        process = self.start("sweep", "stopped.yaml")
        self.wait_for(process, lambda: any(self.path("stopped").glob(f"{LLAMA}-niah-seed-0.h5.part/results*")))
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=SECONDS_UNTIL_HUNG)[1]
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        self.assertIn("the same command continues", said)
        self.assert_no_process_uses("stopped/")
        self.assertIsNone(self.attempt("stopped", f"{LLAMA}-niah-seed-0")["exit_code"])
        self.assertIn("resuming", self.made("sweep", "stopped").stderr)


@NEEDS_ENGINE
class Processes(SweepTest):
    def test_a_trace_is_divided_among_processes(self):
        self.write_sweep("one.yaml", model=HF_MODEL, device="auto", **OPTIONS)
        self.made("eval", "-m", HF_MODEL, *words_of(OPTIONS), "-o", "alone.h5")
        done = self.made("sweep", "one.yaml", "--jobs", 3, variables={"CUDA_VISIBLE_DEVICES": "4,6"})
        self.assertIn(f"{LLAMA}-niah-seed-0.shard-3-of-3", done.stderr)
        self.check_equal(f"one/{LLAMA}-niah-seed-0.h5", "alone.h5")
        shards = [self.attempt("one", f"{LLAMA}-niah-seed-0.shard-{i}-of-3") for i in (1, 2, 3)]
        self.assertEqual([one["environment"] for one in shards],
                         [["OMP_NUM_THREADS=1", f"CUDA_VISIBLE_DEVICES={card}"] for card in (4, 6, 4)])
        self.assertEqual([row["state"] for row in self.states("one", "--jobs", 2).values()], ["was finished"])

    def test_a_begun_division_is_kept(self):
        self.write_sweep("begun.yaml", model=HF_MODEL, **OPTIONS)
        self.made("sweep", "begun.yaml", "--shard", "2/3", "-q")
        self.assertEqual([path.name for path in self.path("begun").rglob("*.h5")], [f"{LLAMA}-niah-seed-0.shard-2-of-3.h5"])
        self.states("begun", "--jobs", 2)
        self.made("eval", "-m", HF_MODEL, *words_of(OPTIONS), "-o", "undivided.h5")
        self.check_equal(f"begun/{LLAMA}-niah-seed-0.h5", "undivided.h5")

    def test_shards_are_joined(self):
        self.write_sweep("parts.yaml", model=HF_MODEL, seed=[0, 1], **OPTIONS)
        for state in "finished", "was finished":
            done = self.made("sweep", "parts.yaml", "--shard", "1/2", "--format", "json")
            self.assertEqual([row["state"] for row in json.loads(done.stdout)], 2 * [f"shard 1 of 2 {state}"])
            self.assertRegex(done.stderr, "when all 2 shards are finished, `kvscope sweep [^ ]*parts --join 2` joins them")
        states = self.states("parts", "--join", 2, code=1)
        self.assertEqual({row["reason"] for row in states.values()}, {"shard 2 of 2 is not finished"})
        self.states("parts", "--shard", "2/2", "--jobs", 2)
        self.states("parts", "--join", 2)
        self.made("eval", "-m", HF_MODEL, *words_of(OPTIONS), "--seed", 1, "-o", "unsharded.h5")
        self.check_equal(f"parts/{LLAMA}-niah-seed-1.h5", "unsharded.h5")
        # Shards and the joined trace accept a further policy.
        more = ("parts", "--policy", "snapkv:window=8", "--policy", "random", "--policy", "h2o")
        for number in (1, 2):
            self.states(*more, "--shard", f"{number}/2")
        self.assertEqual([row["state"] for row in self.states(*more, "--join", 2).values()], 2 * ["finished"])
        self.made("eval", "-m", HF_MODEL, *words_of(OPTIONS | {"policy": ["snapkv:window=8", "random", "h2o"]}), "--seed", 1,
                  "-o", "more.h5")
        self.check_equal(f"parts/{LLAMA}-niah-seed-1.h5", "more.h5")
        self.refuses(2, ["a shard from 1 to 2, found 3"], "sweep", "parts", "--shard", "3/2")


if __name__ == "__main__":
    unittest.main()
