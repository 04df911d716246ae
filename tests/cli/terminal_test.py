#!/usr/bin/env python3
"""Output to a terminal: no control sequences, and tables that fit its width."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unicodedata
import unittest

import h5py

from program import (DEFAULT_MODEL, GGUF_MODEL, HF_MODEL, NEEDS_ENGINE, PROGRAM, SECONDS_UNTIL_HUNG, SOURCE, TEXT,
                     ProgramTest, csv_rows, environment)

HOSTILE = "a\x1b[31mred\x1b]0;title\x07\u009b2J\u202egnp.exe\u2066\r\nb"
COMMANDS_TERMINALS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


class HostileTexts(ProgramTest):
    @classmethod
    def prepare(cls):
        cls.trace = cls.folder / "hostile.h5"
        shutil.copy(SOURCE / "tests" / "data" / "trace" / "v1.0.h5", cls.trace)
        cls.trace.chmod(0o644)
        with h5py.File(cls.trace, "r+") as trace:
            trace.attrs["generator"] = HOSTILE
            trace["model"].attrs["name"] = HOSTILE
            for prompt in trace["prompts"].values():
                for name in ("name", "question", "text"):
                    prompt.attrs[name] = HOSTILE
                for run in prompt["runs"].values():
                    for name in ("label", "message", "output_text"):
                        run.attrs[name] = HOSTILE
        cls.odd = cls.folder / f"odd\x1b[31m\u202e.h5"
        shutil.copy(cls.trace, cls.odd)

    def clean(self, *arguments, code=0):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        for said in (done.stdout, done.stderr):
            self.assertIsNone(COMMANDS_TERMINALS.search(said), repr(said))
        return done

    def test_inspect(self):
        shown = self.clean("inspect", self.trace).stdout
        for part in ("␛[31mred", "⟨U+009B⟩2J", "⟨U+202E⟩gnp"):
            self.assertIn(part, shown)
        self.clean("inspect", self.trace, "--format", "md")
        self.clean("inspect", self.trace, "--format", "tex")
        block = self.clean("inspect", self.trace, "--prompt-text").stdout
        self.assertIn("⟨U+2066⟩␍\nb", block)

    def test_forms_for_programs_hold_what_the_trace_holds(self):
        rows = csv_rows(self.made("inspect", self.trace, "--format", "csv").stdout)
        self.assertEqual(rows[0]["answer"].replace("\r\n", "\n"), HOSTILE.replace("\r\n", "\n"))
        self.assertEqual(json.loads(self.made("inspect", self.trace, "--format", "json").stdout)["runs"][0]["answer"],
                         HOSTILE)

    def test_names_of_files(self):
        self.assertIn("odd␛[31m⟨U+202E⟩.h5", self.clean("inspect", self.odd).stdout)
        self.assertIn("no\x1bwhere".replace("\x1b", "␛"), self.clean("inspect", "no\x1bwhere", code=1).stderr)
        self.clean("models", self.odd, code=2)
        self.clean("export", self.odd, "--figure", "x\x1b[31m", "-o", "x.pdf", code=2)

    def test_what_an_export_says(self):
        self.assertIn("␛[31m", self.clean("export", self.trace, "--figure", "difference", "-o", "said.csv").stderr)
        self.clean("export", self.trace, "--figure", "all", "-o", "said-all.csv", "--force")

    def test_arguments(self):
        self.clean("x\x1b[31m", code=2)
        self.clean("policies", "--\x1b[31m", code=2)
        self.clean("policies", "\x1b[31m", code=2)
        self.clean("policies", "--format", "\x1b[31m", code=2)
        self.clean("inspect", "a", "b\x1b[31m", code=2)

    def test_models(self):
        folder = self.path("models") / "m\x1b[31m\u202e"
        shutil.copytree(HF_MODEL, folder)
        self.assertIn("m␛[31m⟨U+202E⟩", self.clean("inspect", folder).stdout)
        self.assertIn("m␛[31m⟨U+202E⟩", self.clean("models", self.path("models")).stdout)
        (folder / "config.json").write_text("{")
        self.clean("models", self.path("models"))
        self.clean("inspect", folder, code=1)

    @NEEDS_ENGINE
    def test_a_run(self):
        name = "p\x1b[31m.txt"
        self.path(name).write_text(TEXT)
        done = self.clean("run", "-m", HF_MODEL, "-f", name, "-n", 2, "-t", 1, "-o", "t\x1b[31m.h5")
        self.assertIn("p␛[31m: ", done.stderr)
        self.assertIn("t␛[31m.h5 written", done.stderr)


class Widths(ProgramTest):
    def on_a_terminal(self, columns, *arguments, **variables):
        """Returns a command's stdout on a terminal with this many columns."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        with subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=its,
                              stderr=subprocess.PIPE, env={**environment(self.cache), **variables}) as process:
            os.close(its)
            data = b""
            while True:
                try:
                    some = os.read(ours, 65536)
                except OSError:  # the other end was closed
                    break
                if not some:
                    break
                data += some
            self.assertEqual(process.wait(timeout=SECONDS_UNTIL_HUNG), 0, process.stderr.read())
        os.close(ours)
        return data.decode().replace("\r\n", "\n")

    @NEEDS_ENGINE
    @unittest.skipUnless(os.path.exists(DEFAULT_MODEL), "the default model is missing")
    def test_progress_says_what_it_counts(self):
        ours, its = pty.openpty()
        with subprocess.Popen([PROGRAM, "run", "-m", DEFAULT_MODEL, "-p", 10 * TEXT, "-n", "1", "-t", "1", "-o", "counts.h5"],
                              cwd=self.folder, stdout=subprocess.DEVNULL, stderr=its, env=environment(self.cache)):
            os.close(its)
            said = b""
            while b"written" not in said:
                said += os.read(ours, 65536)
        os.close(ours)
        self.assertRegex(said.decode(), r"prefill: (\d+)/\1 layers \[", "the last line shows the end")

    @staticmethod
    def widest(text):
        wide = ("W", "F")
        return max(sum(2 if unicodedata.east_asian_width(c) in wide else 1 for c in line) for line in text.splitlines())

    def test_tables_fit_the_terminal(self):
        everything = self.made("policies").stdout
        self.assertGreater(self.widest(everything), 200)
        for columns in (60, 80, 100, 140):
            for arguments in (["policies"], ["policies", "aperturekv"], ["figures"], ["inspect", GGUF_MODEL]):
                with self.subTest(f"{arguments} {columns}"):
                    shown = self.on_a_terminal(columns, *arguments)
                    table = shown.split("\n\n")[-1] if arguments[0] == "inspect" else shown
                    if arguments != ["policies", "aperturekv"]:  # its first line is a sentence
                        self.assertLessEqual(self.widest(table), columns)
        words = {word for word in everything.split() if len(word) <= 24}  # longer words may be broken
        self.assertEqual(words - set(self.on_a_terminal(100, "policies").split()), set())

    def test_the_table_of_runs_fits_the_terminal(self):
        trace = SOURCE / "tests" / "data" / "trace" / "v1.0.h5"
        shown = self.on_a_terminal(80, "inspect", trace)
        rows = [line for line in shown.splitlines() if re.match(r" *(Run|\d+)  ", line)]
        self.assertGreater(len(rows), 4)
        self.assertLessEqual(self.widest("\n".join(rows)), 80)

    def test_a_pipe_gets_whole_rows_unless_columns_says_otherwise(self):
        n_policies = len(self.made("policies", "--format", "jsonl").stdout.splitlines())
        self.assertEqual(len(self.made("policies").stdout.splitlines()), 1 + n_policies)
        narrow = subprocess.run([PROGRAM, "policies"], capture_output=True, text=True, check=True,
                                env={**environment(self.cache), "COLUMNS": "90"}, timeout=SECONDS_UNTIL_HUNG).stdout
        self.assertLessEqual(self.widest(narrow), 90)
        self.assertEqual(narrow, self.on_a_terminal(200, "policies", COLUMNS="90"))

    def test_forms_for_programs_know_no_width(self):
        self.assertEqual(self.on_a_terminal(60, "policies", "--format", "jsonl"),
                         self.made("policies", "--format", "jsonl").stdout)


if __name__ == "__main__":
    unittest.main()
