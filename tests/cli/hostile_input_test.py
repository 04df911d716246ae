#!/usr/bin/env python3
"""Input that could make kvscope hang or run out of memory: endless and special files, endless templates and tokenizers, traces
that link elsewhere. Each must end with a message. A hanging program fails by its timeout."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import h5py
import numpy

from program import HF_MODEL, MODELS, NEEDS_ENGINE, PROGRAM, SOURCE, TEXT, ProgramTest, environment

SINGLE = MODELS / "smollm2-tied"
GOOD_TRACE = SOURCE / "tests" / "data" / "trace" / "v1.0.h5"
LIBRARY_WORDS = ("[json.exception", "Exception raised from", "terminate called", "std::bad_alloc")

ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"


class Hostile(ProgramTest):
    def refuses(self, code, messages, *arguments, **options):
        said = super().refuses(code, messages, *arguments, **options)
        for words in LIBRARY_WORDS:
            self.assertNotIn(words, said)
        return said

    def model(self, name, files):
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(SINGLE, folder)
        for file, text in files.items():
            (folder / file).write_text(text)
        return folder

    def fifo(self, name):
        path = self.path(name)
        if not path.exists():
            os.mkfifo(path)
        return path

    def trace(self, name="t.h5"):
        path = self.path(name)
        shutil.copyfile(GOOD_TRACE, path)
        return path


class Files(Hostile):
    def test_a_pipe_for_a_model(self):
        pipe = self.fifo("pipe")
        self.refuses(1, ["pipe"], "inspect", pipe)
        self.refuses(1, ["pipe.gguf"], "inspect", self.fifo("pipe.gguf"))
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                     "model.safetensors"):
            with self.subTest(file):
                folder = self.model("piped", {})
                (folder / file).unlink(missing_ok=True)
                os.mkfifo(folder / file)
                self.refuses(1, [file], "inspect", folder)

    def test_a_pipe_for_a_trace(self):
        for command in (["inspect"], ["inspect", "--format", "json"], ["inspect", "--commands"],
                        ["export", "--figure", "coverage", "-o", "f.pdf"]):
            with self.subTest(command):
                self.refuses(1, ["pipe.h5"], *command, self.fifo("pipe.h5"))

    def test_a_device_for_a_trace_or_model(self):
        self.refuses(1, ["/dev/zero"], "inspect", "/dev/zero")
        self.refuses(1, ["/dev/zero"], "export", "/dev/zero", "--figure", "coverage", "-o", "f.pdf")

    @NEEDS_ENGINE
    def test_prompts_without_an_end_or_a_beginning(self):
        run = ["run", "-m", HF_MODEL, "-n", 2, "-t", 1, "-o", "p.h5"]
        self.refuses(1, ["/dev/zero", "256 MB"], *run, "-f", "/dev/zero")
        self.refuses(1, ["pipe", "no program writes to"], *run, "-f", self.fifo("pipe"))
        with open("/dev/zero", "rb") as endless:
            done = subprocess.run([PROGRAM, *map(str, run), "-f", "-"], cwd=self.folder, env=environment(self.cache),
                                  stdin=endless, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard input", done.stderr)
        evaluate = ["eval", "-m", HF_MODEL, "--policy", "h2o", "--budget", 20, "-o", "e.h5"]
        self.refuses(1, ["/dev/zero", "256 MB"], *evaluate, "--haystack", "/dev/zero")
        self.refuses(1, ["pipe", "no program writes to"], *evaluate, "--haystack", self.fifo("pipe"))
        self.refuses(1, ["pipe"], "profile-heads", "-m", HF_MODEL, "--haystack", self.fifo("pipe"), "-o", "heads.json")

    @NEEDS_ENGINE
    def test_a_prompt_through_a_pipe_that_is_written_to(self):
        reading, writing = os.pipe()
        os.write(writing, TEXT.encode())
        os.close(writing)
        try:
            self.made("run", "-m", HF_MODEL, "-n", 2, "-t", 1, "--policy", "h2o", "--budget", 20, "-o", "piped.h5", "-f",
                      f"/dev/fd/{reading}", pass_fds=[reading])
        finally:
            os.close(reading)

    @NEEDS_ENGINE
    def test_a_pipe_for_an_importance_file(self):
        said = self.run_program("run", "-m", HF_MODEL, "-p", TEXT, "-n", 2, "-t", 1, "--policy",
                                f"headkv:importance={self.fifo('pipe')}", "--budget", 20, "-o", "i.h5").stderr
        self.assertIn("pipe", said)


class Numbers(Hostile):
    @NEEDS_ENGINE
    def test_lengths_beyond_every_context(self):
        for command in ("eval", "profile-heads"):
            with self.subTest(command):
                more = ["--policy", "h2o", "--budget", 20] if command == "eval" else []
                self.refuses(2, ["--lengths 2147483648", "context is 512"], command, "-m", HF_MODEL, *more, "--lengths",
                             2147483648, "-o", "n.h5")

    @NEEDS_ENGINE
    def test_a_range_of_budgets_beyond_every_prompt(self):
        done = self.run_program("run", "-m", HF_MODEL, "-p", TEXT, "-n", 2, "-t", 1, "--dtype", "f32", "--policy", "h2o",
                                "--budget", "1-1000000000*2", "-o", "b.h5")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertTrue(done.stderr.strip(), "no output")
        for words in LIBRARY_WORDS:
            self.assertNotIn(words, done.stderr)

    @NEEDS_ENGINE
    def test_tokens_ahead_beyond_every_context(self):
        run = ["run", "-m", HF_MODEL, "-p", TEXT, "-n", 2, "-t", 1, "--dtype", "f32", "--budget", 40, "-o", "l.h5"]
        self.refuses(2, ["lookahead", "1048576", "1000000000"], *run, "--policy", "laq:lookahead=1000000000")
        self.refuses(2, ["pseudo_tokens", "1048576"], *run, "--policy", "dapq:pseudo_tokens=1000000000")
        for policy in ("laq:lookahead=1000000", "dapq:pseudo_tokens=1000000"):
            with self.subTest(policy):
                self.refuses(2, ["1000000 tokens", "context is only 512"], *run, "--policy", policy)


class Models(Hostile):
    TEMPLATES = {
        "a list that holds itself": ("{% set l = [] %}{% set _ = l.append(l) %}{{ l }}", "64 MB of stack"),
        "loops in loops": (ENDLESS, "longer than the limit of"),
        "a text of 10 GB": ("{{ 'x' * 10000000000 }}", "1024 MB"),
    }

    @NEEDS_ENGINE
    def test_templates_beyond_the_limits(self):
        for name, (template, limit) in self.TEMPLATES.items():
            with self.subTest(name):
                folder = self.model("template", {"chat_template.jinja": template})
                self.refuses(1, ["chat_template.jinja", limit], "run", "-m", folder, "-p", TEXT, "-n", 2, "-t", 1, "-o",
                             "t.h5")

    def test_a_template_that_cannot_be_read_is_told_by_inspect(self):
        for template in ("{% if %}", "{{ " + "(" * 100000 + "1" + ")" * 100000 + " }}", "{% for x in y %}" * 100000):
            self.refuses(1, ["chat_template.jinja", "not valid Jinja"], "inspect",
                         self.model("template", {"chat_template.jinja": template}))

    def growing_tokenizer(self):
        tokenizer = json.loads((SINGLE / "tokenizer.json").read_text())
        grow = {"type": "Replace", "pattern": {"String": "o"}, "content": "oooooooooooooooo"}
        tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [grow] * 12}
        return tokenizer

    @NEEDS_ENGINE
    def test_a_tokenizer_whose_replacements_grow(self):
        folder = self.model("grows", {"tokenizer.json": json.dumps(self.growing_tokenizer())})
        self.refuses(1, ["tokenizer.json", "was stopped"], "run", "-m", folder, "-p", TEXT, "-n", 2, "-t", 1, "-o", "t.h5")

    def test_inspect_bounds_a_tokenizer_too(self):
        tokenizer = self.growing_tokenizer()
        ids = [token["id"] for token in tokenizer["added_tokens"]] + list(tokenizer["model"]["vocab"].values())
        tokenizer["added_tokens"].append({"id": max(ids) + 1, "content": "<ooo>", "normalized": True, "special": False})
        folder = self.model("grows", {"tokenizer.json": json.dumps(tokenizer)})
        self.refuses(1, ["tokenizer.json", "was stopped"], "inspect", folder)

    def test_numbers_beyond_every_computer(self):
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            with self.subTest(file):
                text = (SINGLE / file).read_text().rstrip().removesuffix("}") + ', "vast": 1e99999}'
                self.refuses(1, [file, "a number in it"], "inspect", self.model("vast", {file: text}))

    @NEEDS_ENGINE
    def test_signals_end_a_template_that_renders_for_ever(self):
        folder = self.model("endless", {"chat_template.jinja": ENDLESS})
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = self.start("run", "-m", folder, "-p", TEXT, "-n", 2, "-t", 1, "-o", "s.h5")
                self.wait_for_template(process)
                process.send_signal(number)
                said = process.communicate(timeout=60)[1]
                self.assertNotEqual(process.returncode, 0)
                # It stopped immediately and did not wait for the time limit.
                self.assertNotIn("was stopped", said)
                self.assertEqual(self.template_processes(process.pid), [])

    @staticmethod
    def template_processes(parent):
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            if name.startswith("kvscope-chat") and rest.split()[1] == str(parent):
                found.append(int(entry))
        return found

    def wait_for_template(self, process):
        """Waits until the template is rendered. Reading it takes only milliseconds."""
        seen = set()
        for _ in range(6000):
            now = self.template_processes(process.pid)
            if len(seen | set(now)) > 1 or (now and now[0] in seen):
                return
            seen |= set(now)
            if process.poll() is not None:
                self.fail(process.communicate()[1])
            time.sleep(0.02)
        self.fail("no template was rendered")


class Traces(Hostile):
    def test_links_out_of_the_file_are_not_followed(self):
        pipe = self.fifo("elsewhere.h5")
        for group in ("/model", "/prompts", "/prompts/0", "/prompts/0/token_ids", "/results", "/prompts/0/runs/0"):
            with self.subTest(group):
                path = self.trace("links.h5")
                with h5py.File(path, "r+") as trace:
                    if group in trace:
                        del trace[group]
                    trace[group] = h5py.ExternalLink(str(pipe), "/")
                done = self.run_program("inspect", path)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("does not follow such links", done.stdout + done.stderr)
                self.run_program("inspect", path, "--format", "json")
                self.run_program("inspect", path, "--commands")
                self.run_program("export", path, "--figure", "coverage", "-o", "f.pdf")

    def test_soft_links_that_go_round(self):
        path = self.trace("round.h5")
        with h5py.File(path, "r+") as trace:
            del trace["/model"]
            trace["/model"] = h5py.SoftLink("/other")
            trace["/other"] = h5py.SoftLink("/model")
        self.assertEqual(self.run_program("inspect", path).returncode, 1)

    def test_values_in_other_files_are_not_read(self):
        path = self.trace("outside.h5")
        with h5py.File(path, "r+") as trace:
            ids = trace["/prompts/0/token_ids"]
            shape, kind = ids.shape, ids.dtype
            del trace["/prompts/0/token_ids"]
            trace["/prompts/0"].create_dataset("token_ids", shape, kind, external=[(str(self.fifo("raw")), 0, 4096)])
        done = self.run_program("inspect", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("other files", done.stdout + done.stderr)

        path = self.trace("virtual.h5")
        with h5py.File(path, "r+") as trace:
            del trace["/prompts/0/token_ids"]
            layout = h5py.VirtualLayout(shape, kind)
            layout[:] = h5py.VirtualSource(str(self.fifo("raw")), "x", shape)
            trace["/prompts/0"].create_virtual_dataset("token_ids", layout)
        done = self.run_program("inspect", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("other files", done.stdout + done.stderr)

    def test_a_group_nested_3000_deep(self):
        path = self.trace("deep.h5")
        with h5py.File(path, "r+") as trace:
            group = trace
            for _ in range(3000):
                group = group.create_group("g")
        self.refuses(1, ["deep.h5", "64 levels"], "inspect", path, "--format", "json")
        self.made("inspect", path)

    def test_texts_that_are_no_utf8(self):
        path = self.trace("latin.h5")
        with h5py.File(path, "r+") as trace:
            for name in ("name", "text"):
                del trace["/prompts/0"].attrs[name]
                kind = h5py.h5t.py_create("S4")
                kind.set_cset(h5py.h5t.CSET_UTF8)
                attribute = h5py.h5a.create(trace["/prompts/0"].id, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR))
                attribute.write(numpy.array(b"a\xe9\xffb", dtype="S4"), mtype=kind)
        done = self.run_program("inspect", path, "--format", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        problems = json.loads(done.stdout)["problems"]
        self.assertEqual([p["path"] for p in problems if p["expected"] == "text in UTF-8"],
                         ["/prompts/0@name", "/prompts/0@text"])
        self.assertNotIn("json.exception", done.stderr)
        done = self.run_program("inspect", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("text in UTF-8", done.stdout)

    def test_a_folder_whose_record_is_a_pipe(self):
        folder = self.path("u.h5.part")
        folder.mkdir(exist_ok=True)
        if not (folder / "trace.json").exists():
            os.mkfifo(folder / "trace.json")
        self.refuses(1, ["u.h5.part"], "inspect", folder)


if __name__ == "__main__":
    unittest.main()
