"""Shells complete commands, options, values and files by the scripts of `kvscope --completion`."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from program import FIGURE_FILES, NEEDS_ENGINE, POLICY_FILES, ProgramTest, help_of

SECONDS_UNTIL_HUNG = 60


class Bash(ProgramTest):
    @classmethod
    def prepare(cls):
        (cls.folder / "bash.sh").write_text(cls.made("--completion", "bash").stdout)
        (cls.folder / "a report.txt").write_text("text")
        (cls.folder / "folder").mkdir()

    def completions(self, line):
        """Returns the completions at the end of the line, whose words bash splits as readline does."""
        words = [word for word in re.split(r"(=)| +", line) if word]
        if line.endswith(" "):
            words.append("")
        script = ('source bash.sh; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kvscope; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "--norc", "-u", "-c", script, "bash", *words], cwd=self.folder, capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stderr, "")
        return sorted(filter(None, done.stdout.splitlines()))

    def test_commands(self):
        listed = re.findall(r"^  ([a-z-]+) {2,}\S", help_of().split("Subcommands:")[1], re.MULTILINE)
        self.assertEqual(self.completions("kvscope "), sorted(listed))
        self.assertEqual(self.completions("kvscope pol"), ["policies"])
        self.assertEqual(self.completions("kvscope --comp"), ["--completion"])
        self.assertEqual(self.completions("kvscope --completion "), ["bash", "fish", "zsh"])

    def test_every_option_of_the_help(self):
        for command in self.completions("kvscope "):
            declared = re.findall(r"(?<=[ ,])--?[a-z][\w-]*", "\n".join(
                line.split("   ")[0] for line in help_of(command).splitlines() if re.match(r"  (\w+,)?-", line)))
            with self.subTest(command):
                self.assertGreater(len(declared), 2)
                self.assertLessEqual(set(declared), set(self.completions(f"kvscope {command} -")))

    def test_no_command(self):
        for option in (["--completion", "bash"], ["--man"]):
            self.refuses(2, [option[0]], *option, "policies")

    def test_values(self):
        self.assertEqual(self.completions("kvscope export t.h5 --figure "), sorted([*FIGURE_FILES, "all"]))
        self.assertEqual(self.completions("kvscope export t.h5 --figure=reten"), ["retention"])
        self.assertEqual(self.completions("kvscope policies --format="), ["csv", "json", "jsonl", "md", "tex", "text"])
        self.assertEqual(len(self.completions("kvscope policies ")), len(POLICY_FILES))
        self.assertEqual(self.completions("kvscope policies snapkv --csv"), ["--csv-safe"])
        self.assertEqual(self.completions("kvscope export t.h5 --width "), [])

    @NEEDS_ENGINE
    def test_values_of_runs(self):
        self.assertEqual(self.completions("kvscope run --policy sn"), ["snapkv"])
        self.assertEqual(self.completions("kvscope run --query_aware "), ["off", "on"])
        self.assertEqual(self.completions("kvscope run --device="), ["auto", "cpu", "cuda"])

    def test_files(self):
        self.assertEqual(self.completions("kvscope inspect a"), ["a report.txt"])
        self.assertEqual(self.completions("kvscope models "), ["folder"])

    @NEEDS_ENGINE
    def test_files_of_options(self):
        for option in ("-f", "--file", "--prompt-file"):
            self.assertEqual(self.completions(f"kvscope run {option} a"), ["a report.txt"])


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class Fish(ProgramTest):
    def completions(self, line):
        self.path("kvscope.fish").write_text(self.made("--completion", "fish").stdout)
        done = subprocess.run(["fish", "--no-config", "-c", "source kvscope.fish; complete -C $argv[1]", line],
                              cwd=self.folder, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return sorted(words.split("\t")[0] for words in done.stdout.splitlines())

    def test_completions(self):
        self.assertEqual(self.completions("kvscope pol"), ["policies"])
        self.assertEqual(self.completions("kvscope policies --form"), ["--format"])
        self.assertEqual(self.completions("kvscope policies --format=js"), ["--format=json", "--format=jsonl"])
        self.assertEqual(len(self.completions("kvscope policies ")), len(POLICY_FILES))
        self.path("folder").mkdir(exist_ok=True)
        self.path("report.txt").write_text("text")
        self.assertEqual(self.completions("kvscope models "), ["folder/"])
        self.assertEqual(self.completions("kvscope inspect rep"), ["report.txt"])


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class Zsh(ProgramTest):
    def setUp(self):
        """Starts an interactive zsh in a terminal."""
        self.path("_kvscope").write_text(self.made("--completion", "zsh").stdout)
        self.path("report.txt").write_text("text")
        process, self.terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "", "HOME": str(self.folder)})
        self.addCleanup(os.waitpid, process, 0)
        self.addCleanup(os.close, self.terminal)
        # Ctrl+X prints the line in brackets, so that it differs from the terminal's echo, and then empties it.
        setup = ("fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; zstyle ':completion:*' menu no; "
                 "show() { print -r -- \"[[$BUFFER]]\"; BUFFER= }; zle -N show; bindkey '^X' show; print re''ady\n")
        os.write(self.terminal, setup.encode())
        self.read_until("ready")

    def read_until(self, end):
        text = ""
        last = time.monotonic() + SECONDS_UNTIL_HUNG
        while end not in text:
            ready, _, _ = select.select([self.terminal], [], [], max(0, last - time.monotonic()))
            self.assertTrue(ready, f"zsh did not print {end} but {text}")
            text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def test_completions(self):
        for typed, completed in (("kvscope pol", "kvscope policies "),
                                 ("kvscope policies --form", "kvscope policies --format="),
                                 ("kvscope policies --format=js", "kvscope policies --format=json"),
                                 ("kvscope policies --format cs", "kvscope policies --format csv "),
                                 ("kvscope policies pyra", "kvscope policies pyramidkv "),
                                 ("kvscope inspect rep", "kvscope inspect report.txt "),
                                 ("kvscope --completion=f", "kvscope --completion=fish ")):
            with self.subTest(typed):
                os.write(self.terminal, f"{typed}\t\x18".encode())
                shown = re.search(r"\[\[(.*?)\]\]", self.read_until("]]"))
                self.assertEqual(shown.group(1), completed)


class ManualPage(ProgramTest):
    def test_sections_commands_and_options(self):
        page = self.made("--man").stdout
        self.assertEqual(re.findall(r"^\.SH (.*)", page, re.MULTILINE),
                         ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "FILES", "ENVIRONMENT", "EXIT STATUS", "EXAMPLES",
                          "SEE ALSO"])
        for command in ("export", "inspect", "policies"):
            self.assertIn(f".SS kvscope {command}\n", page)
        self.assertIn("\\fB\\-\\-figure\\fR", page)
        self.assertNotIn("kvscope demo\n", page.split(".SH FILES")[0])

    def test_no_names_of_the_parser(self):
        commands = re.findall(r"^  ([a-z-]+) {2,}\S", help_of().split("Subcommands:")[1], re.MULTILINE)
        for page in (self.made("--man").stdout, help_of(), *map(help_of, commands)):
            self.assertNotIn("{false}", page)
            self.assertNotRegex(page, r"[A-Z]{3,}:[A-Z{]")

    @unittest.skipUnless(shutil.which("mandoc") or shutil.which("groff"), "neither mandoc nor groff is installed")
    def test_formatters_print_no_warning(self):
        self.path("kvscope.1").write_text(self.made("--man").stdout)
        for command in (["mandoc", "-Tlint", "-Wwarning"], ["groff", "-man", "-Tutf8", "-ww", "-z"]):
            if shutil.which(command[0]):
                done = subprocess.run([*command, "kvscope.1"], cwd=self.folder, capture_output=True, text=True, check=False)
                self.assertEqual(done.stdout + done.stderr, "")


if __name__ == "__main__":
    unittest.main()
